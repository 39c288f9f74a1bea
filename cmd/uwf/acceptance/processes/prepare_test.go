package processes

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/internal/testmode"
)

const threeRoles = `name: flow
description: Three roles, each checked.
roles:
  one: {description: d, goal: g, capabilities: [], procedure: p, output: o, checks: [test], frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}}
  two: {description: d, goal: g, capabilities: [], procedure: p, output: o, checks: [test], frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}}
  three: {description: d, goal: g, capabilities: [], procedure: p, output: o, checks: [test], frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}}
graph:
  $START: {_: {role: one, prompt: go}}
  one: {done: {role: two, prompt: on}}
  two: {done: {role: three, prompt: on}}
  three: {done: {role: $END, prompt: end}}
`

// TestPreparedSteps: of three steps of a thread the first one installs and compiles, and the
// others find that done: they take at most a fifth of its processor time, confined and in a
// HOME of their own. uwf's own share, as that of a step with nothing to do, is not counted.
func TestPreparedSteps(t *testing.T) {
	if !testmode.HasProcesses() {
		t.Skip("NOT CHECKED: set UWF_TEST=processes: it compiles Go's standard library, which takes half a minute; prepare.txtar runs the same commands' way")
	}
	for name, c := range map[string]struct {
		needs, prepare, check, work string
		files                       func(t *testing.T) map[string]string
	}{
		"go": {"go", `["go build ./...", "go vet ./...", "go test -run '^$' ./..."]`, "go test ./...", `printf 'package m\n\nvar %s = 1\n' "$UWF_ROLE" > "$UWF_ROLE.go"; go build ./...`, func(*testing.T) map[string]string {
			return map[string]string{
				"go.mod": "module m\n\ngo 1.21\n", "m.go": "package m\n\nimport \"strings\"\n\nvar Name = strings.ToLower(\"M\")\n",
				"m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestM(t *testing.T) {\n\tif Name != \"m\" {\n\t\tt.Fatal(Name)\n\t}\n}\n",
			}
		}},
		"npm": {"npm", `["npm ci --no-audit --no-fund"]`, `node -e "require('left')"`, `node -e "require('left')"; echo "$UWF_ROLE" > "$UWF_ROLE.txt"`, npmFiles},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skipf("NOT CHECKED: %s is not here", c.needs)
			}
			m := newLab(t, threeRoles, "steps: []", nil).machine("a")
			files := c.files(t)
			files["agent.sh"] = "#!/bin/sh\nset -eu\n" + c.work + "\nprintf -- '---\\n$status: done\\n---\\n' | uwf agent commit\n"
			files["idle.sh"] = "#!/bin/sh\nprintf -- '---\\n$status: done\\n---\\n' | uwf agent commit\n"
			for name, text := range files {
				m.write(filepath.Join(m.clone, name), text)
			}
			for _, agent := range []string{"agent.sh", "idle.sh"} {
				m.check(os.Chmod(filepath.Join(m.clone, agent), 0o755)) //nolint:gosec // a program
			}
			m.git(m.clone, "add", "-A")
			m.git(m.clone, "commit", "-qm", "begin")
			m.git(m.clone, "push", "-q", "origin", "HEAD")
			step := func(id, agent string) time.Duration {
				j := m.start([]string{clitest.EnvCells + "=1"}, "thread", "step", id, "--agent", filepath.Join(m.clone, agent)).ends(0)
				return j.cmd.ProcessState.UserTime() + j.cmd.ProcessState.SystemTime()
			}
			settings := filepath.Join(m.home, "config.yaml")
			m.write(settings, "state: {remote: origin}\nchecks: {test: 'true'}\n")
			own := step(m.startThread(), "idle.sh")
			m.write(settings, "state: {remote: origin}\nworkspace: {prepare: "+c.prepare+"}\nchecks: {test: "+strconv.Quote(c.check)+"}\n")
			id := m.startThread()
			first := step(id, "agent.sh") - own
			for range 2 {
				if later := step(id, "agent.sh") - own; later > first/5 {
					t.Errorf("the first step's commands took %s of processor time, a later one's %s", first, later)
				}
			}
			t.Logf("the first step's commands took %s, uwf itself %s", first, own)
			m.sound()
		})
	}
}

// npmFiles are a package that needs another one, which a registry on this machine has and whose
// installation takes a while.
func npmFiles(t *testing.T) map[string]string {
	const built = `const end = process.cpuUsage().user + 25e5; while (process.cpuUsage().user < end); require("fs").writeFileSync("built.js", "module.exports = 1")`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{
		"package/package.json": `{"name": "left", "version": "1.0.0", "scripts": {"install": "node install.js"}}`,
		"package/install.js":   built, "package/index.js": `module.exports = require("./built.js")`,
	} {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed.Bytes()) }))
	t.Cleanup(registry.Close)
	sum := sha512.Sum512(packed.Bytes())
	lock := fmt.Sprintf(`{"name": "m", "lockfileVersion": 3, "requires": true, "packages": {
  "": {"name": "m", "dependencies": {"left": "1.0.0"}},
  "node_modules/left": {"version": "1.0.0", "resolved": "%s/left-1.0.0.tgz", "integrity": "sha512-%s", "hasInstallScript": true}
}}`, registry.URL, base64.StdEncoding.EncodeToString(sum[:]))
	return map[string]string{"package.json": `{"name": "m", "dependencies": {"left": "1.0.0"}}`, "package-lock.json": lock, ".gitignore": "/node_modules/\n"}
}

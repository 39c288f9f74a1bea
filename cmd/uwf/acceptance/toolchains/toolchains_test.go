// Package toolchains tries projects of many languages as people have them: a command installs
// what they need before the agent works, and a confined check runs their tests. One test of each
// listens on loopback, and one uses a pool of processes or threads.
package toolchains

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"golang.org/x/tools/txtar"
)

// variable asks for the table; installing takes minutes, and the network.
const variable = "UWF_TOOLCHAINS"

func TestMain(m *testing.M) { clitest.Main(m, nil) }

const flow = `name: one
description: A developer, whose work is tested.
roles:
  dev: {description: d, goal: g, capabilities: [], procedure: p, output: o, checks: [test], frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}}
graph:
  $START: {_: {role: dev, prompt: begin}}
  dev: {done: {role: $END, prompt: bye}}
`

const script = `steps:
  - role: dev
    write: {made-by-the-agent.txt: "done\n"}
    output: "---\n$status: done\n---\n"
`

// TestToolchains runs each project of testdata. The first line of its comment names the programs
// that it needs.
func TestToolchains(t *testing.T) {
	if os.Getenv(variable) == "" {
		t.Skip("on demand: .ci/run toolchains")
	}
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no projects", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		project, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			needs, _, _ := strings.Cut(string(project.Comment), "\n")
			for program := range strings.FieldsSeq(needs) {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("not checked: %s is not here", program)
				}
			}
			runProject(t, project)
		})
	}
}

// runProject makes a repository of a project's files, but for settings.yaml, which is the
// person's, and runs a thread in it.
func runProject(t *testing.T, project *txtar.Archive) {
	t.Helper()
	dir := t.TempDir()
	repo, home := filepath.Join(dir, "repo"), filepath.Join(dir, "uwf")
	files := append(project.Files, txtar.File{Name: "../flow.yaml", Data: []byte(flow)}, txtar.File{Name: "../script.yaml", Data: []byte(script)})
	for _, f := range files {
		path := filepath.Join(repo, filepath.FromSlash(f.Name))
		data := f.Data
		if f.Name == "settings.yaml" {
			path = filepath.Join(home, "config.yaml")
			data = append([]byte("sandbox: require\nconfine: {network: gateway}\n"), data...)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for at := dir; at != filepath.Dir(os.TempDir()) && at != "/"; at = filepath.Dir(at) {
		_ = os.Chmod(at, 0o755) // agents are another user; what isn't this test's is open anyway
	}
	git(t, repo, "init", "-q", "-b", "main")
	git(t, repo, "add", "-A")
	git(t, repo, "-c", "user.name=Pat", "-c", "user.email=pat@example.com", "commit", "-q", "-m", "first")

	cmd := exec.CommandContext(t.Context(), "uwf", "run", filepath.Join(dir, "flow.yaml"), "-p", "x", "--agent", "uwf agent mock "+filepath.Join(dir, "script.yaml"), "--jq", `.steps[0].checks[]? | "\(.name) \(.status) \(.output // "")"`)
	cmd.Dir, cmd.Env = repo, append(os.Environ(), "UWF_HOME="+home)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || !strings.HasPrefix(got, "test passed") {
		t.Errorf("%v: %s\nwant a check that passed\n%s", err, got, said.String())
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

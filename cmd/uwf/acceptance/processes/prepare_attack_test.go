package processes

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

// attacked is a machine whose steps are prepared and checked, confined.
type attacked struct{ *machine }

// newAttacked makes one whose repository has some files, and whose agents run a script each.
func newAttacked(t *testing.T, settings string, files map[string]string, agents map[string]string) attacked {
	t.Helper()
	if report := sandbox.Probe(); !report.Usable() {
		t.Skipf("NOT TESTED: no command can be confined here: %s", report)
	}
	a := attacked{newLab(t, threeRoles, "steps: []", nil).machine("a")}
	for name, text := range files {
		a.write(filepath.Join(a.clone, name), text)
	}
	a.git(a.clone, "add", "-A")
	a.git(a.clone, "commit", "-qm", "begin")
	a.git(a.clone, "push", "-q", "origin", "HEAD")
	for name, text := range agents {
		a.write(a.path(name), "#!/bin/sh\nset -eu\n"+text+"\nprintf -- '---\\n$status: done\\n---\\n' | uwf agent commit\n")
		a.check(os.Chmod(a.path(name), 0o755)) //nolint:gosec // a program
	}
	a.write(filepath.Join(a.home, "config.yaml"), "state: {remote: origin}\n"+settings)
	return a
}

func (a attacked) run(id, agent string, env ...string) *job {
	a.Helper()
	return a.start(append([]string{clitest.EnvCells + "=1"}, env...), "thread", "step", id, "--agent", a.path(agent))
}

// TestPoisonedCaches: what an agent writes into HOME and into ignored files is read by no other
// role, no check, and no other thread.
func TestPoisonedCaches(t *testing.T) {
	t.Parallel()
	const places = `"$HOME/.cache/go-build" "$HOME/.npm/_cacache" "$HOME/go/pkg/mod/m" node_modules/.bin`
	const pristine = `for d in ` + places + `; do test "$(ls "$d")" = mark || { echo "$d is poisoned: $(ls -a "$d")"; exit 1; }; done; test "$(cat node_modules/.bin/mark)" = pristine; test ! -e "$HOME/.profile"; test ! -e own`
	a := newAttacked(t, "workspace:\n  prepare:\n    - for d in "+places+"; do mkdir -p \"$d\"; echo pristine > \"$d/mark\"; done\nchecks: {test: '"+strings.ReplaceAll(pristine, "'", "''")+"'}\n",
		map[string]string{".gitignore": "/node_modules/\n"}, map[string]string{
			"poison": pristine + `
for d in ` + places + `; do chmod 700 "$d"; rm -f "$d/mark"; echo evil > "$d/mark"; echo evil > "$d/poison"; done
echo evil > "$HOME/.profile"; mkdir own; echo '*' > own/.gitignore; echo "$UWF_ROLE" > "$UWF_ROLE.txt"`,
		})
	id, other := a.startThread(), a.startThread()
	for _, thread := range []string{id, id, other, id, other} {
		a.run(thread, "poison").ends(0)
	}
	a.sound()
}

// TestPreparedNetwork: the commands reach the network as long as the files that decide what they
// do are the base commit's. Once an agent changed one, they reach nothing, and what they make is
// the thread's own.
func TestPreparedNetwork(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var reached atomic.Int32
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	}()
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("NOT TESTED: bash opens the connection")
	}
	dial := fmt.Sprintf("bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d' 2>/dev/null && echo yes || echo no", l.Addr().(*net.TCPAddr).Port)
	const said = "cat node_modules/said; cat node_modules/script; cat node_modules/reached; "
	a := newAttacked(t, "workspace: {prepare: ['sh scripts/*setup.sh']}\nchecks: {test: 'true'}\n",
		map[string]string{
			".gitignore": "/node_modules/\n", "package.json": `{"name": "base"}`, "scripts/build.js": "base\n",
			"scripts/setup.sh": "mkdir -p node_modules; cat package.json > node_modules/said; cat scripts/build.js > node_modules/script; (" + dial + ") > node_modules/reached; echo >> \"$HOME/fetched\"; wc -l < \"$HOME/fetched\" > node_modules/times\n",
		}, map[string]string{
			"script":   said + `test "$(cat node_modules/reached)" = yes; test "$(cat node_modules/script)" = base; test "$(cat node_modules/said)" = '{"name": "base"}'; echo evil > scripts/build.js`,
			"manifest": said + `test "$(cat node_modules/script)" = base; echo '{"name": "evil"}' > package.json`,
			"closed":   said + `test "$(cat node_modules/reached)" = no; test "$(cat node_modules/script)" = "$(cat scripts/build.js)"; test "$(cat node_modules/said)" = '{"name": "evil"}'; test $(cat node_modules/times) = 2`,
		})
	id := a.startThread()
	a.run(id, "script").ends(0)
	if reached.Load() != 1 {
		t.Fatalf("the base commit's commands reached the network %d times, so this shows nothing", reached.Load())
	}
	a.run(id, "manifest").ends(0) // with the image of the base, which knows nothing of the script
	a.run(id, "closed").ends(0)
	second, third := a.startThread(), a.startThread()
	a.run(second, "manifest").ends(0)
	a.run(second, "closed").ends(0)
	a.run(third, "script").ends(0)
	if reached.Load() != 1 {
		t.Errorf("reached %d times", reached.Load())
	}
	own, err := filepath.Glob(filepath.Join(a.home, "images", "*", "threads", "*", "*", "*", "tree"))
	shared, serr := filepath.Glob(filepath.Join(a.home, "images", "*", "*", "*", "tree"))
	if err != nil || serr != nil || len(own) != 1 || len(shared) != 1 || !strings.Contains(own[0], second) { // the first one's went with it
		t.Errorf("images of threads %q, shared ones %q", own, shared)
	}
	a.sound()
}

// TestPreparedEnvironment: what prepares and what checks gets no key, no token, and no way to the
// model or to the job's services.
func TestPreparedEnvironment(t *testing.T) {
	t.Parallel()
	names := []string{
		"ACTIONS_RUNTIME_TOKEN", "ACTIONS_CACHE_URL", "ACTIONS_RESULTS_URL", "ACTIONS_RUNTIME_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL",
		"GITHUB_TOKEN", "GH_TOKEN", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "UWF_GATEWAY", "SSH_AUTH_SOCK", "UWF_HOME", "NPM_TOKEN",
	}
	a := newAttacked(t, "", map[string]string{"a": "1"}, map[string]string{"idle": "true"})
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			line := "if env | grep planted || env | cut -d= -f1 | grep -x " + name + "; then exit 1; fi"
			a.write(filepath.Join(a.home, "config.yaml"), "state: {remote: origin}\nworkspace: {prepare: ['"+line+"; echo ran >&2']}\nchecks: {test: '"+line+"'}\n")
			value := "planted-" + strings.ToLower(name)
			switch {
			case name == "UWF_HOME":
				value = a.home
			case strings.HasSuffix(name, "_URL"):
				value = "https://planted.example.com"
			}
			id := a.startThread()
			a.run(id, "idle", name+"="+value).ends(0)
			if got := a.start(nil, "thread", "step-details", id+":1", "--jq", ".prepare").ends(0).out.String(); !strings.HasSuffix(strings.TrimSpace(got)+"\n", "; echo ran >&2\nran\n") {
				t.Errorf("nothing was prepared: %s", got)
			}
		})
	}
}

// TestPreparedDamage: what a command that prepares starts, prints and fills ends with it.
func TestPreparedDamage(t *testing.T) {
	t.Parallel()
	word := fmt.Sprintf("3600.%d", os.Getpid()) + "77"
	secret := strings.Join([]string{"Kq7vN2", "xWm4Rt", "9bYs3Hd6"}, "")
	for name, c := range map[string]struct {
		line string
		code int
		says []string
	}{
		"daemons":  {"(setsid sleep " + word + " >/dev/null 2>&1 </dev/null &); sleep " + word + " & i=0; while [ $i -lt 20 ]; do sleep " + word + " & i=$((i+1)); done; true", 0, nil},
		"secret":   {"cat key; base64 key; exit 1", 1, []string{"exit code 1", "[redacted:OPENAI_API_KEY]"}},
		"floods":   {"cat key; yes", 1, []string{"it printed more than"}},
		"sparse":   {"mkdir node_modules; truncate -s 7T node_modules/big", 1, []string{"nine tenths of what is free"}},
		"outside":  {"echo x > '{outside}'", 1, []string{"ermission denied"}},
		"images":   {"ls '{home}/images'", 1, []string{"ermission denied"}},
		"settings": {"cat '{home}/config.yaml'", 1, []string{"ermission denied"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttacked(t, "", map[string]string{".gitignore": "/node_modules/\nkey\n"}, map[string]string{"idle": "true"})
			line := strings.NewReplacer("{outside}", a.path("outside"), "{home}", a.home, "cat key", "printf '%s%s%s\\n' Kq7vN2 xWm4Rt 9bYs3Hd6", "base64 key", "printf '%s%s%s' Kq7vN2 xWm4Rt 9bYs3Hd6 | base64").Replace(c.line)
			a.write(filepath.Join(a.home, "config.yaml"), "state: {remote: origin}\nworkspace:\n  prepare:\n    - |\n      "+line+"\nchecks: {test: 'true'}\n")
			id := a.startThread()
			j := a.run(id, "idle", "OPENAI_API_KEY="+secret).ends(c.code)
			for _, want := range c.says {
				j.says(want)
			}
			if strings.Contains(j.errs.String()+j.out.String()+a.bare("log", "-p", "--all"), secret) {
				t.Error("the secret is out")
			}
			if n := countProcesses(t, word); n > 0 {
				t.Errorf("%d processes live on", n)
			}
			if _, err := os.Stat(a.path("outside")); err == nil {
				t.Error("it wrote outside")
			}
			if left, err := filepath.Glob(filepath.Join(a.home, "images", "*", "*", ".new-*")); err != nil || len(left) > 0 {
				t.Errorf("left: %q %v", left, err)
			}
		})
	}
}

// TestPrepareKilled: of two processes that need the same image one makes it, and what a killed one
// had half made is removed and made again.
func TestPrepareKilled(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("NOT TESTED: bash opens the connection")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	begun := make(chan net.Conn)
	go func() {
		defer close(begun)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			begun <- c
		}
	}()
	line := fmt.Sprintf("mkdir node_modules && touch node_modules/half && exec bash -c 'cat < /dev/tcp/127.0.0.1/%d && touch node_modules/whole'", l.Addr().(*net.TCPAddr).Port)
	a := newAttacked(t, "workspace:\n  prepare:\n    - "+line+"\nchecks: {test: test -f node_modules/whole}\n", map[string]string{".gitignore": "/node_modules/\n"}, map[string]string{"idle": "test -f node_modules/whole"})
	count := func(pattern string) int {
		found, err := filepath.Glob(filepath.Join(a.home, "images", "*", "*", pattern))
		a.check(err)
		return len(found)
	}
	start := func(id string) *job {
		return a.start([]string{clitest.EnvCells + "=1"}, "thread", "step", id, "--agent", a.path("idle"))
	}
	killed := start(a.startThread())
	c := <-begun
	a.check(killed.cmd.Process.Kill())
	killed.dies()
	a.check(c.Close())
	if n := count(".new-*"); n != 1 {
		t.Fatalf("%d images are half made, so this shows nothing", n)
	}
	ids := []string{a.startThread(), a.startThread()}
	jobs := []*job{start(ids[0]), start(ids[1])}
	a.check((<-begun).Close()) // a second connection would wait for ever
	made := 0
	for i, j := range jobs {
		j.ends(0)
		if got := a.start(nil, "thread", "step-details", ids[i]+":1", "--jq", ".prepare").ends(0).out.String(); strings.Contains(got, "mkdir node_modules") {
			made++
		}
	}
	if half, images := count(".new-*"), count("*/tree/node_modules/whole"); made != 1 || half != 0 || images != 1 {
		t.Errorf("%d made one; %d half made ones and %d images are there", made, half, images)
	}
}

// TestPreparedOfBranches: what the commands of a branch that nobody has looked at leave in HOME
// is not what those of another branch begin with, though the lock files are the same.
func TestPreparedOfBranches(t *testing.T) {
	t.Parallel()
	a := newAttacked(t, "workspace: {prepare: ['sh scripts/*setup.sh']}\nchecks: {test: 'true'}\n",
		map[string]string{"package.json": "{}", "scripts/setup.sh": "cat build.js >> \"$HOME/said\"\n", "build.js": "base\n"},
		map[string]string{"first": `test "$(cat "$HOME/said")" = base`, "evil": `test "$(tail -n 1 "$HOME/said")" = evil`, "later": "test \"$(cat \"$HOME/said\")\" = 'base\nbase'"})
	push := func(branch, file, text string) {
		a.git(a.clone, "checkout", "-q", "-B", branch)
		a.write(filepath.Join(a.clone, file), text)
		a.git(a.clone, "add", "-A")
		a.git(a.clone, "commit", "-qm", file)
		a.git(a.clone, "push", "-q", "origin", "HEAD:"+branch)
	}
	start := func() string {
		var s struct{ Thread string }
		a.startInside("thread", "start", "flow", "-p", "x", "--base", strings.TrimSpace(a.git(a.clone, "branch", "--show-current"))).ends(0).json(&s)
		return s.Thread
	}
	a.run(start(), "first").ends(0)
	push("topic", "build.js", "evil\n")
	a.run(start(), "evil").ends(0)
	a.git(a.clone, "checkout", "-q", "main")
	push("main", "another.txt", "x\n")
	a.run(start(), "later").ends(0)
}

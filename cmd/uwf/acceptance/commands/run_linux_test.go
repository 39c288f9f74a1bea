package commands

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/internal/testpty"
)

// terminalFlow asks a question with choices.
const terminalFlow = `name: choose
description: d
roles:
  dev:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter: {type: object, properties: {$status: {enum: [done, ask]}, note: {type: string}, choices: {type: array, items: {type: string}}}, required: [$status]}
graph:
  $START: {_: {role: dev, prompt: begin}}
  dev:
    done: {role: $END, prompt: bye}
    ask: {role: $SUSPEND, prompt: "{{note}}"}
`

const terminalScript = `steps:
  - {role: dev, visit: 1, output: "---\n$status: ask\nnote: Which variant?\nchoices: [the first one, the second one]\n---\n"}
  - {role: dev, write: {a.txt: "two\n"}, output: "---\n$status: done\n---\n"}
`

// slowScript takes longer than anybody waits.
const slowScript = `steps:
  - {role: dev, delay: 10m, output: "---\n$status: done\n---\n"}
`

// newTerminalRun is a repository, and a way to run uwf at a terminal in it.
func newTerminalRun(t *testing.T) (dir string, run func(p *testpty.Terminal, args ...string) (code int)) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"repo/.keep": "", "flow.yaml": terminalFlow, "script.yaml": terminalScript, "slow.yaml": slowScript} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm-256color", "GIT_CONFIG_NOSYSTEM=1", "UWF_LOG=off",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = filepath.Join(dir, "repo"), env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return dir, func(p *testpty.Terminal, args ...string) int {
		ctx, cancel := context.WithCancel(p.Context)
		defer cancel()
		cmd := exec.CommandContext(ctx, "uwf", args...)
		cmd.Dir, cmd.Env = filepath.Join(dir, "repo"), env
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // so that ctrl-C is its signal
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Error(err)
		}
		return cmd.ProcessState.ExitCode()
	}
}

// TestAnswerInPlace: a question is asked on the terminal, with its choices, and the thread goes on
// with the answer; none leaves it waiting, and so does ctrl-C.
func TestAnswerInPlace(t *testing.T) {
	t.Parallel()
	_, run := newTerminalRun(t)
	start := []string{"run", "../flow.yaml", "-p", "Choose", "--agent", "uwf agent mock ../script.yaml", "--sandbox", "off"}
	for _, c := range []struct {
		name, keys string
		code       int
		sees       []string
	}{
		{"a number", "2\n", 0, []string{"dev asks:", "Which variant?", "1  the first one", "2  the second one", "step 2", "The thread has ended after 2 steps", "uwf thread diff"}},
		{"words", "Both of them\n", 0, []string{"The thread has ended after 2 steps"}},
		{"nothing", "\n", 3, []string{"The thread stands still after 1 step", "uwf run --continue"}},
		{"ctrl-C", "\x03", 3, []string{"The thread stands still after 1 step", "uwf run --continue"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := testpty.NewTerminal(t)
			go p.Sees("Your answer, 1 to 2 or in words (empty: later):", c.keys)
			if code := run(p, start...); code != c.code {
				t.Errorf("exit code %d, want %d:\n%s", code, c.code, p.Screen())
			}
			for _, want := range c.sees {
				p.Sees(want, "")
			}
		})
	}
	p := testpty.NewTerminal(t)
	go p.Sees("Your answer", "the first one\n")
	if code := run(p, "run", "--continue", "--agent", "uwf agent mock ../script.yaml", "--sandbox", "off"); code != 0 {
		t.Errorf("a thread that waits does not go on: exit code %d\n%s", code, p.Screen())
	}
}

// installFlow checks what its role did.
const installFlow = `name: install
description: d
roles:
  dev:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    checks: [test]
    frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}
graph:
  $START: {_: {role: dev, prompt: begin}}
  dev: {done: {role: $END, prompt: bye}}
`

// TestInstallIsOffered: what a lock file names is installed before agents work once a person says
// so, and they are not asked again. Without it the end says in yellow that the tests can't work,
// and why.
func TestInstallIsOffered(t *testing.T) {
	t.Parallel()
	const (
		asks   = "package-lock.json is here: install what it names before agents work?"
		script = "steps:\n  - {role: dev, write: {a.txt: a}, output: \"---\\n$status: done\\n---\\n\"}\n"
		npm    = "#!/bin/sh\nmkdir node_modules && echo \"$*\" > node_modules/arguments\n"
	)
	start := []string{"run", "../install.yaml", "-p", "Go", "--agent", "uwf agent mock ../install-script.yaml", "--sandbox", "off"}
	for _, c := range []struct {
		name, keys string
		sees       []string
		again      string
	}{
		{"yes", "npm ci\ny\n", []string{"Please answer with one of the letters", "check: test passed", "\x1b[32mThe thread has ended"}, "\x1b[32mThe thread has ended"},
		{"no", "\n", []string{
			"\x1b[33mThe thread has ended", "\x1b[33m  check, \x1b[0m\x1b[33mstep 1: test skipped", "nothing installs what package-lock.json names before agents work",
			"set workspace.prepare in .uwf/config.yaml", "| sh: jest: not found",
		}, "\x1b[33mThe thread has ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, run := newTerminalRun(t)
			for name, text := range map[string]string{
				"repo/package-lock.json": "{}", "repo/.gitignore": "node_modules\n", "install.yaml": installFlow, "install-script.yaml": script, "bin/npm": npm,
				".uwf/config.yaml": "checks: {test: 'test \"$(cat node_modules/arguments)\" = \"ci --ignore-scripts\" || { echo sh: jest: not found; exit 127; }'}\n",
			} {
				name = filepath.Join(dir, filepath.FromSlash(name))
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o700)); err != nil {
					t.Fatal(err)
				}
			}
			for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "second"}} {
				if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", filepath.Join(dir, "repo")}, args...)...).CombinedOutput(); err != nil {
					t.Fatalf("git %q: %v\n%s", args, err, out)
				}
			}
			p := testpty.NewTerminal(t)
			go p.Sees(asks, c.keys)
			if code := run(p, start...); code != 0 {
				t.Errorf("exit code %d:\n%s", code, p.Screen())
			}
			p.Sees("uwf thread read", "")
			for _, want := range c.sees {
				if !strings.Contains(p.Shown(), want) {
					t.Errorf("%q was not shown:\n%s", want, p.Screen())
				}
			}

			p = testpty.NewTerminal(t)
			code := run(p, start...)
			p.Sees("uwf thread read", "")
			if code != 0 || strings.Contains(p.Shown(), asks) || !strings.Contains(p.Shown(), c.again) {
				t.Errorf("exit code %d:\n%s", code, p.Screen())
			}
		})
	}
}

// TestWatch: what one process does another one sees, in place, until the end; and the list of jobs
// shows it.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir, run := newTerminalRun(t)
	goOn := filepath.Join(dir, "go-on")
	script := "steps:\n  - {role: dev, commands: [\"while [ ! -e " + goOn + " ]; do sleep 0.1; done\"], output: \"---\\n$status: done\\n---\\n\"}\n"
	if err := os.WriteFile(filepath.Join(dir, "waits.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	worker, watcher, lister := testpty.NewTerminal(t), testpty.NewTerminal(t), testpty.NewTerminal(t)
	ended := make(chan int)
	go func() {
		ended <- run(worker, "run", "../flow.yaml", "-p", "Take your time", "--agent", "uwf agent mock ../waits.yaml", "--sandbox", "off")
	}()
	worker.Sees("● dev", "")
	seen := make(chan int)
	go func() { seen <- run(watcher, "thread", "watch", "@latest") }()
	watcher.Sees("● dev → end", "")
	go lister.Sees("choose", "\x03")
	if code := run(lister, "ps", "-w"); code != 0 {
		t.Errorf("ps -w: exit code %d\n%s", code, lister.Screen())
	}
	if err := os.WriteFile(goOn, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != 0 {
		t.Errorf("the run: exit code %d\n%s", code, worker.Screen())
	}
	if code := <-seen; code != 0 {
		t.Errorf("the watching: exit code %d\n%s", code, watcher.Screen())
	}
	watcher.Sees("step 1  dev → done", "")
	watcher.Sees("is ended", "")
}

// TestStopAtTerminal: ctrl-C while an agent works ends it at once, is no failed attempt, and the
// thread goes on later.
func TestStopAtTerminal(t *testing.T) {
	t.Parallel()
	_, run := newTerminalRun(t)
	p := testpty.NewTerminal(t)
	go p.Sees("● dev", "\x03")
	if code := run(p, "run", "../flow.yaml", "-p", "Choose", "--agent", "uwf agent mock ../slow.yaml", "--sandbox", "off"); code != 1 {
		t.Fatalf("exit code %d\n%s", code, p.Screen())
	}
	p.Sees("uwf run --continue", "")
	checkNotFailed(t, run)
	q := testpty.NewTerminal(t)
	go q.Sees("Your answer", "1\n")
	if code := run(q, "run", "--continue", "--agent", "uwf agent mock ../script.yaml", "--sandbox", "off"); code != 0 {
		t.Errorf("exit code %d\n%s", code, q.Screen())
	}
}

// checkNotFailed looks whether the thread that was stopped is one that failed.
func checkNotFailed(t *testing.T, run func(p *testpty.Terminal, args ...string) int) {
	t.Helper()
	p := testpty.NewTerminal(t)
	if code := run(p, "thread", "show", "@latest", "--jq", `"it is \(.status)"`); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Screen())
	}
	p.Sees("it is active", "")
}

// TestStopAtEachPhase: ctrl-C ends a run wherever it is; before there is a thread nothing is left,
// and after that the thread goes on, with no attempt that counts as failed.
func TestStopAtEachPhase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		phase    string
		settings string // with %s for a command that never ends
		script   string
		stop     string // what is on the screen then; empty: the command runs
		threads  bool
	}{
		{phase: "consent", settings: "checks: {test: \"%s\"}", stop: "Do you consent?"},
		{phase: "prepare", settings: "workspace: {prepare: [\"%s\"]}", threads: true},
		{phase: "agent", script: "steps:\n  - {role: dev, commands: [\"%s\"], output: \"---\\n$status: done\\n---\\n\"}\n", threads: true},
		{phase: "check", settings: "checks: {test: \"%s\"}", threads: true},
	} {
		t.Run(c.phase, func(t *testing.T) {
			t.Parallel()
			dir, run := newTerminalRun(t)
			started, goOn := filepath.Join(dir, "started"), filepath.Join(dir, "go-on")
			command := "touch " + started + "; while [ ! -e " + goOn + " ]; do sleep 0.1; done"
			write := func(name, text string) {
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			write("repo/.uwf/config.yaml", strings.ReplaceAll(c.settings, "%s", command)+"\n")
			script := "steps:\n  - {role: dev, write: {a.txt: x}, output: \"---\\n$status: done\\n---\\n\"}\n"
			if c.script != "" {
				script = strings.ReplaceAll(c.script, "%s", command)
			}
			write("steps.yaml", script)
			write("flow.yaml", strings.Replace(terminalFlow, "    output: o\n", "    output: o\n    checks: [test]\n", 1))
			args := []string{"--agent", "uwf agent mock ../steps.yaml", "--sandbox", "off"}
			p := testpty.NewTerminal(t)
			go func() {
				if c.settings != "" && c.stop == "" {
					p.Sees("Do you consent?", "y\n")
				}
				if c.stop == "" {
					for p.Context.Err() == nil {
						if _, err := os.Stat(started); err == nil {
							break
						}
						time.Sleep(10 * time.Millisecond)
					}
				}
				p.Sees(c.stop, "\x03")
			}()
			if code := run(p, append([]string{"run", "../flow.yaml", "-p", "Stop"}, args...)...); code == 0 {
				t.Errorf("exit code 0\n%s", p.Screen())
			}
			if c.threads {
				checkNotFailed(t, run)
			}
			write("go-on", "")
			q := testpty.NewTerminal(t)
			if c.stop != "" {
				go q.Sees(c.stop, "n\n") // it was not answered, and is asked again
			}
			code := run(q, append([]string{"run", "--continue"}, args...)...)
			switch {
			case c.threads && code != 0:
				t.Errorf("it does not go on: exit code %d\n%s", code, q.Screen())
			case !c.threads:
				q.Sees("uwf: no uwf store here", "")
				if code != 2 {
					t.Errorf("exit code %d\n%s", code, q.Screen())
				}
			}
		})
	}
}

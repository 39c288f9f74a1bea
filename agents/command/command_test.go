package command_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/command"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/redact"
)

// TestMain makes the test binary what uwf is for a command, and the parent that is killed.
func TestMain(m *testing.M) {
	if code, ours := agents.RunHelper(os.Args, os.Environ()); ours {
		os.Exit(code)
	}
	if len(os.Args) == 5 && os.Args[1] == "parent" {
		os.Exit(beParent(os.Args[2], sandbox.Mode(os.Args[3]), os.Args[4]))
	}
	goleak.VerifyTestMain(m)
}

// beParent runs a command on a copy in temp until it is killed.
func beParent(temp string, mode sandbox.Mode, line string) int {
	self, err := os.Executable()
	if err == nil {
		box := sandbox.New(sandbox.Options{Mode: mode, Self: []string{self}, Environ: os.Environ()})
		r := command.NewRunner(command.Options{Self: []string{self}, Environ: os.Environ(), TempDir: temp, Sandbox: box})
		_, err = r.RunOnCopy(context.Background(), fillCopy, command.Command{Line: line})
	}
	fmt.Fprintln(os.Stderr, "the parent of a command ended:", err)
	return 1
}

func fillCopy(_ context.Context, dir string) error {
	return errors.Join(os.MkdirAll(filepath.Join(dir, "sub"), 0o755), os.WriteFile(filepath.Join(dir, "file"), []byte("as committed\n"), 0o644))
}

// bench is a folder to run commands in, and what runs them.
type bench struct {
	*testing.T
	dir, work string
	options   command.Options
}

// newBench makes one; confined, where this machine can.
func newBench(t *testing.T, confined bool) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "uwf-command-") //nolint:usetesting // no other user gets to those of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, dir: dir, work: filepath.Join(dir, "work")}
	b.options = command.Options{
		Self: []string{self}, Environ: append(os.Environ(), "GORACE=atexit_sleep_ms=0", "PATH=/usr/bin:/bin"), TempDir: filepath.Join(dir, "runs"), Grace: 200 * time.Millisecond,
	}
	for _, d := range []string{dir, b.work, b.options.TempDir} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chmod(d, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := fillCopy(t.Context(), b.work); err != nil {
		t.Fatal(err)
	}
	if report := sandbox.Probe(); confined && !report.Usable() {
		t.Skipf("NOT TESTED: nothing can be confined here: %s", report)
	} else if confined {
		b.options.Sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Self: b.options.Self, Environ: b.options.Environ, Report: &report})
	}
	return b
}

// bothWays runs a test with and without a sandbox.
func bothWays(t *testing.T, test func(b *bench)) {
	t.Helper()
	for name, confined := range map[string]bool{"free": false, "confined": true} {
		t.Run(name, func(t *testing.T) { test(newBench(t, confined)) })
	}
}

// run runs a command in the bench's folder, and checks that nothing is left of the run.
func (b *bench) run(ctx context.Context, c command.Command) command.Result {
	b.Helper()
	c.Dir = b.work
	res, err := command.NewRunner(b.options).Run(ctx, c)
	if err != nil {
		b.Fatal(err)
	}
	b.checkNothingLeft()
	return res
}

func (b *bench) checkNothingLeft() {
	b.Helper()
	if left, err := os.ReadDir(b.options.TempDir); err != nil || len(left) > 0 {
		b.Errorf("folders of runs were left: %v, %v", left, err)
	}
}

// What a command does, and what is said of it.
func TestRun(t *testing.T) {
	tests := map[string]struct {
		c       command.Command
		code    int
		signal  syscall.Signal
		stopped error
		left    int
		output  string
	}{
		"success":        {c: command.Command{Line: "cat file"}, output: "as committed\n"},
		"exit code":      {c: command.Command{Line: "echo out; echo err >&2; exit 3"}, code: 3, output: "out\nerr\n"},
		"signal":         {c: command.Command{Line: "kill -9 $$"}, code: -1, signal: syscall.SIGKILL},
		"words":          {c: command.Command{Argv: []string{"printf", "%s|", "a b", "$HOME", "*"}}, output: "a b|$HOME|*|\n"},
		"line":           {c: command.Command{Line: "printf '%s|' a b *"}, output: "a|b|file|sub|\n"},
		"a script":       {c: command.Command{Argv: []string{"/bin/sh", "-c", `echo "$0 $1"`, "x", "y"}}, output: "x y\n"},
		"place":          {c: command.Command{Line: "basename $PWD", Place: "sub"}, output: "sub\n"},
		"no input":       {c: command.Command{Line: "cat; read x || echo nothing"}, output: "nothing\n"},
		"no program":     {c: command.Command{Argv: []string{"no-such-program", "x"}}, code: 127, output: "no-such-program"},
		"no such words":  {c: command.Command{Line: "no-such-program x"}, code: 127, output: "no-such-program"},
		"no executable":  {c: command.Command{Argv: []string{"./file"}}, code: 126, output: "./file"},
		"timeout":        {c: command.Command{Line: "sleep 600", Timeout: 50 * time.Millisecond}, code: -1, signal: syscall.SIGTERM, stopped: command.ErrTimeout},
		"flood":          {c: command.Command{Line: "trap '' PIPE; yes"}, code: -1, signal: syscall.SIGTERM, stopped: command.ErrOutput, output: "bytes left out …]\ny\n"},
		"middle":         {c: command.Command{Line: "echo first; seq 100000; echo last", MaxOutput: 64}, output: "\n99999\n100000\nlast\n"},
		"beginning":      {c: command.Command{Line: "echo first; seq 100000; echo last", MaxOutput: 64}, output: "first\n1\n2\n3\n"},
		"no UTF-8":       {c: command.Command{Line: `printf 'a\377b\0c'`}, output: "a\uFFFDb\uFFFDc\n"},
		"terminal":       {c: command.Command{Line: `printf 'a\033[31mb\033]0;title\007c\r\nd\b'`}, output: "a\uFFFD[31mb\uFFFD]0;title\uFFFDc\nd\uFFFD\n"},
		"its child":      {c: command.Command{Line: "sleep 600 & echo done"}, left: 1, output: "done\n"},
		"a daemon":       {c: command.Command{Line: "setsid sh -c 'setsid sleep 600 </dev/null >/dev/null 2>&1 & exit'; echo done"}, left: 1, output: "done\n"},
		"more variables": {c: command.Command{Line: `echo "$A $GOCACHE"`, Environ: []string{"A=b", "GOCACHE=/c"}}, output: "b /c\n"},
	}
	bothWays(t, func(b *bench) {
		for name, tt := range tests {
			b.Run(name, func(t *testing.T) {
				b := *b
				b.T = t
				res := b.run(t.Context(), tt.c)
				if res.Code != tt.code || res.Signal != tt.signal || !errors.Is(res.Stopped, tt.stopped) || (res.Stopped == nil) != (tt.stopped == nil) {
					t.Errorf("it ended with %d, %v, %v", res.Code, res.Signal, res.Stopped)
				}
				if advice := map[error]string{command.ErrTimeout: "more time", command.ErrOutput: "print less"}[tt.stopped]; tt.stopped != nil && !strings.Contains(res.Stopped.Error(), advice) {
					t.Errorf("it says nothing of what to do: %v", res.Stopped)
				}
				if tt.stopped == nil && res.Left != tt.left {
					t.Errorf("%d processes were left", res.Left)
				}
				if !strings.Contains(res.Output, tt.output) || !utf8.ValidString(res.Output) || len(res.Output) > 20_000 {
					t.Errorf("output %q", res.Output)
				}
				if res.Duration <= 0 || res.CPU <= 0 {
					t.Errorf("took %s, %s of a processor", res.Duration, res.CPU)
				}
			})
		}
	})
}

// What can't be run is refused with a word, before anything runs.
func TestRefusals(t *testing.T) {
	b := newBench(t, false)
	if err := errors.Join(os.Symlink("/etc", filepath.Join(b.work, "out")), os.Symlink("sub", filepath.Join(b.work, "in"))); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(b.dir, "ran")
	line := "touch " + ran
	for name, tt := range map[string]struct {
		c    command.Command
		want string
	}{
		"nothing":                {command.Command{Dir: b.work}, "name one"},
		"blanks":                 {command.Command{Dir: b.work, Line: " \n"}, "name one"},
		"both":                   {command.Command{Dir: b.work, Line: line, Argv: []string{"touch", ran}}, "name one"},
		"no program":             {command.Command{Dir: b.work, Argv: []string{"", ran}}, "name one"},
		"no folder":              {command.Command{Line: line}, "no absolute path"},
		"a folder from here":     {command.Command{Dir: "work", Line: line}, "no absolute path"},
		"a missing folder":       {command.Command{Dir: b.work + "-not", Line: line}, "find its folder"},
		"a place outside":        {command.Command{Dir: b.work, Place: "..", Line: line}, "not within"},
		"a place elsewhere":      {command.Command{Dir: b.work, Place: "/etc", Line: line}, "not within"},
		"a place beside":         {command.Command{Dir: filepath.Join(b.work, "sub"), Place: b.work, Line: line}, "not within"},
		"a link out":             {command.Command{Dir: b.work, Place: "out", Line: line}, "not within"},
		"a missing place":        {command.Command{Dir: b.work, Place: "none", Line: line}, "find the place"},
		"a place that is a file": {command.Command{Dir: b.work, Place: "file", Line: line}, "not a directory"},
	} {
		_, err := command.NewRunner(b.options).Run(t.Context(), tt.c)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("one ran")
	}
	if res := b.run(t.Context(), command.Command{Place: filepath.Join(b.work, "in"), Line: "pwd -P"}); !strings.HasSuffix(res.Output, "/sub\n") {
		t.Errorf("a link within: %+v", res)
	}
}

// A command that can't be confined as it has to be is not run.
func TestRefusedSandbox(t *testing.T) {
	b := newBench(t, false)
	none := sandbox.Report{System: "linux", Why: "there is none"}
	b.options.Sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Self: b.options.Self, Report: &none})
	var refused *sandbox.RefusedError
	_, err := command.NewRunner(b.options).Run(t.Context(), command.Command{Dir: b.work, Line: "touch ran"})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), `run the command "touch ran"`) {
		t.Error(err)
	}
	b.checkNothingLeft()
	b.options.TempDir = filepath.Join(b.dir, "none")
	if _, err := command.NewRunner(b.options).Run(t.Context(), command.Command{Dir: b.work, Line: "touch ran"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder of its own: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(b.work, "ran")); err == nil {
		t.Error("it ran")
	}
}

// A command ends with the context, by its cause, also one that is deaf.
func TestInterrupt(t *testing.T) {
	bothWays(t, func(b *bench) {
		ctx, cancel := context.WithCancelCause(b.Context())
		reason := errors.New("the job was cancelled")
		go func() {
			for {
				if _, err := os.Lstat(filepath.Join(b.work, "begun")); err == nil {
					cancel(reason)
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		c := command.Command{Dir: b.work, Line: "trap '' TERM; touch begun; while :; do sleep 600; done"}
		res, err := command.NewRunner(b.options).Run(ctx, c)
		if err != nil || !errors.Is(res.Stopped, reason) || res.Signal != syscall.SIGKILL {
			b.Errorf("%+v, %v", res, err)
		}
		// What could not be removed any more, a later run removes.
		if err := command.NewRunner(b.options).RemoveLeftovers(context.Background()); err != nil {
			b.Error(err)
		}
		b.checkNothingLeft()
	})
}

// Of this process's environment a command gets nothing that is secret, or leads to a model.
func TestEnvironment(t *testing.T) {
	bothWays(t, func(b *bench) {
		for _, name := range []string{
			"OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN",
			"ACTIONS_CACHE_URL", "ACTIONS_RESULTS_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "GITHUB_ENV", "SSH_AUTH_SOCK", "UWF_HOME", "UWF_CONTEXT", "UWF_STAGE", "MY_PASSWORD",
		} {
			b.options.Environ = append(b.options.Environ, name+"=planted")
		}
		b.options.Environ = append(b.options.Environ, "LC_ALL=C", "HOME="+b.dir)
		env := strings.Split(b.run(b.Context(), command.Command{Line: "env"}).Output, "\n")
		for _, kv := range env {
			if strings.Contains(kv, "planted") || strings.Contains(kv, "POLICY") {
				b.Errorf("it got %s", kv)
			}
		}
		home := sandbox.Getenv(env, "HOME")
		if own := strings.HasPrefix(home, b.options.TempDir+"/"); sandbox.Getenv(env, "LC_ALL") != "C" || own != (b.options.Sandbox != nil) {
			b.Errorf("HOME is %s in %q", home, env)
		}
	})
}

// A secret is not shown, however it is printed: in pieces, or across what is cut away.
func TestRedaction(t *testing.T) {
	secret := strings.Join([]string{"planted", "secret", "0123456789"}, "-")
	r, err := redact.New(redact.Options{Secrets: []redact.Secret{{Name: "KEY", Value: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, false)
	b.options.Redact = r
	if err := os.WriteFile(filepath.Join(b.work, "key"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	halves := `printf %s "$(cut -c1-12 key)"; sleep 0.2; printf %s "$(cut -c13- key)" >&2; `
	tests := map[string]string{"whole": "cat key", "two writes": halves, "encoded": "base64 key"}
	for room := range len(secret) + 2 { // each way to divide it at the cut
		tests["at the cut "+strconv.Itoa(room)] = fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; cat key; head -c 2000 /dev/zero | tr '\\0' y", 64-room)
		tests["before the end "+strconv.Itoa(room)] = fmt.Sprintf("head -c 2000 /dev/zero | tr '\\0' x; cat key; head -c %d /dev/zero | tr '\\0' y", 64-room)
	}
	for name, line := range tests {
		got := b.run(t.Context(), command.Command{Line: line, MaxOutput: 128}).Output
		for n := 6; n <= len(secret); n++ {
			if strings.Contains(got, secret[:n]) || strings.Contains(got, secret[len(secret)-n:]) {
				t.Errorf("%s: %q holds %d characters of it", name, got, n)
				break
			}
		}
		if !strings.Contains(name, "cut") && !strings.Contains(name, "end") && !strings.Contains(got, "[redacted:KEY]") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

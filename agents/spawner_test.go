package agents_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

func TestSpawnerTakesAStep(t *testing.T) {
	w := newWorld(t)
	w.script(done + `    write: {src/new.txt: "content\n"}` + "\n    delete: [old.txt, none.txt]\n    commands: [\"cat src/new.txt > copy.txt\"]\n    delay: 10ms\n    stderr: \"working\\n\"\n    stdout: \"noise\\nmore noise\\n\"\n")
	if err := os.WriteFile(filepath.Join(w.task.Workspace, "old.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := w.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	step := w.step(d)
	if step.Role != role || step.Agent != "mock" || step.Start != w.task.Start || *step.Prev != *w.task.Prev || step.EdgePrompt != "again" {
		t.Errorf("step %+v", step)
	}
	if got := d.Nodes[step.Output].Payload; fmt.Sprint(got) != "map[$status:done note:all well]" {
		t.Errorf("output %v", got)
	}
	if got := d.Nodes[*step.Body].Payload; got != "# What I did\n\nThings." {
		t.Errorf("body %q", got)
	}
	if got := fmt.Sprint(d.Nodes[step.Detail].Payload); got != "map[role:developer sessionId:mock-1 stepIndex:1]" {
		t.Errorf("detail %v", got)
	}
	if u := d.Usage; u.Turns != 3 || u.InputTokens != 1000 || u.OutputTokens != 50 || u.CostUSD != 0.25 || u.DurationMs < 10 {
		t.Errorf("usage %+v", u)
	}
	if b, err := os.ReadFile(filepath.Join(w.task.Workspace, "copy.txt")); err != nil || string(b) != "content\n" {
		t.Errorf("the command's file: %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(w.task.Workspace, "old.txt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("old.txt was not deleted: %v", err)
	}
	if d.Stderr != "working" || w.stderr.String() != "working\n" {
		t.Errorf("stderr %q, passed on %q", d.Stderr, w.stderr.String())
	}
}

func TestSpawnerCorrects(t *testing.T) {
	w := newWorld(t)
	w.script(`
steps:
  - output:
      - "no frontmatter at all"
      - "---\n$status: sideways\n---\n"
      - "---\n$status: done\n---\nat last"
`)
	d, err := w.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Nodes[*w.step(d).Body].Payload; got != "at last" {
		t.Errorf("body %q", got)
	}
	if n := strings.Count(w.stderr.String(), "asking again"); n != 2 {
		t.Errorf("%d corrections: %s", n, w.stderr.String())
	}
	w.script(`steps: [{output: ["one", "two", "three", "---\n$status: done\n---\n"]}]`)
	d, err = w.run(t.Context())
	var exit *agents.ExitError
	if !errors.As(err, &exit) || exit.Code != 1 || !strings.Contains(err.Error(), "after 2 corrections") {
		t.Errorf("four answers: %v", err)
	}
	var kept []any
	for _, n := range d.Nodes {
		kept = append(kept, n.Payload)
	}
	if !slices.Contains(kept, any("three")) {
		t.Errorf("the last answer was not kept: %v", kept)
	}
}

// as is whether err is of type E, for tables.
func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// anyError is for those that are told by their text alone.
func anyError(err error) bool { return err != nil }

func isStage(err error) bool { return errors.Is(err, agents.ErrStage) }

func TestSpawnerFailures(t *testing.T) {
	const out = `output: "---\n$status: done\n---\n"`
	tests := []struct {
		name, entry string
		limits      agents.Limits
		timeout     time.Duration
		is          func(error) bool
		says        string
	}{
		{"prints nothing", out + `, handle: ""`, agents.Limits{}, 0, func(err error) bool { return errors.Is(err, agents.ErrNothingPrinted) }, "printed nothing"},
		{"prints no handle", out + `, handle: "all done!"`, agents.Limits{}, 0, anyError, "all done!"},
		{"prints another handle", out + `, handle: "0000000000000"`, agents.Limits{}, 0, anyError, "not among the 3 nodes"},
		{"prints JSON without hash", out + `, handle: "{}"`, agents.Limits{}, 0, anyError, "no stepHash"},
		{"prints broken JSON", out + `, handle: "{\"stepHash\":"`, agents.Limits{}, 0, anyError, "JSON"},
		{"prints a negative usage", out + `, handle: "{\"stepHash\":\"0000000000000\",\"usage\":{\"turns\":-1}}"`, agents.Limits{}, 0, anyError, "negative"},
		{"exits", `exit: 3, stderr: "it\e[2J hurts\r\n"`, agents.Limits{}, 0, as[*agents.ExitError], "exit code 3\nit\uFFFD[2J hurts"},
		{"is killed", `kill: true`, agents.Limits{}, 0, anyError, "memory"},
		{"never ends", `hang: true`, agents.Limits{}, 500 * time.Millisecond, anyError, "500ms"},
		{"prints 10 MB", `flood: 10485760, ` + out, agents.Limits{}, 0, anyError, "8388608 bytes on stdout"},
		{"answers 10 MB", `size: 10485760, ` + out, agents.Limits{}, 0, as[*agents.ExitError], "too large"},
		{"stages garbage", out + `, stage: {0000000000000.json: "{"}`, agents.Limits{}, 0, isStage, "0000000000000.json"},
		{"stages a foreign file", out + `, stage: {notes.txt: "x"}`, agents.Limits{}, 0, isStage, "notes.txt"},
		{"stages a lie", out + `, stage: {0000000000000.json: "{\"type\":\"7VQ43ZSJTEWA7\",\"payload\":\"\",\"timestamp\":1}"}`, agents.Limits{}, 0, isStage, "content of BZXYV1VK9W6ZQ"},
		{"stages too many", out, agents.Limits{Files: 2}, 0, isStage, "more than 2 files"},
		{"stages too much", out, agents.Limits{TotalSize: 100}, 0, isStage, "more than 100 bytes"},
		{"stages a large file", out, agents.Limits{FileSize: 10}, 0, isStage, "has more than 10 bytes"},
		{"fails its command", out + `, commands: ["exit 7"]`, agents.Limits{}, 0, as[*agents.ExitError], `"exit 7" ended with exit code 7`},
		{"has no script for it", out + `, role: other`, agents.Limits{}, 0, as[*agents.ExitError], "no entry for role developer at step 2 (visit 2, attempt 1)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.script("steps: [{" + tt.entry + "}]")
			w.options.Limits, w.task.Timeout = tt.limits, tt.timeout
			_, err := w.run(t.Context())
			var agent *task.AgentError
			if !errors.As(err, &agent) || agent.Agent != "mock" || !tt.is(err) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v (%T)", err, err)
			}
		})
	}
}

// TestSpawnerTakesALateStep: an agent that has handed over its step loses nothing by not ending in
// time.
func TestSpawnerTakesALateStep(t *testing.T) {
	w := newWorld(t)
	w.script(done)
	w.task.Timeout = time.Millisecond
	w.options.Inside = func(ctx context.Context, p agents.Program) (int, bool) {
		out := &bytes.Buffer{}
		program := exec.CommandContext(context.WithoutCancel(ctx), p.Argv[0], p.Argv[1:]...)
		program.Dir, program.Env, program.Stdout, program.Stderr = p.Dir, p.Environ, out, p.Stderr
		if err := program.Run(); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		_, _ = p.Stdout.Write(out.Bytes())
		return -1, true
	}
	d, err := w.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.step(d)
}

// The parent takes what it gets; whether the step answers the task is the seal's
// question.
func TestSpawnerPassesLiesOn(t *testing.T) {
	w := newWorld(t)
	w.script(`steps: [{output: "---\n$status: done\n---\n", as: {role: boss, agent: other, start: 0000000000000, prev: C700MP4XFW7FA}}]`)
	d, err := w.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := w.step(d); s.Role != "boss" || s.Agent != "other" || s.Start != "0000000000000" || *s.Prev != "C700MP4XFW7FA" {
		t.Errorf("step %+v", s)
	}
}

func TestSpawnerLeavesNoDaemon(t *testing.T) {
	w := newWorld(t)
	w.script(done + "    daemon: true\n")
	if _, err := w.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone(t, w.lastPID())
}

// Cancelling ends a deaf agent with its daemon, and keeps what was staged.
func TestSpawnerCancelled(t *testing.T) {
	w := newWorld(t)
	w.script("steps: [{hang: true, daemon: true}]")
	cause := errors.New("the claim is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for !strings.Contains(w.stderr.String(), "left process") {
			time.Sleep(5 * time.Millisecond)
		}
		cancel(cause)
	}()
	d, err := w.run(ctx)
	if !errors.Is(err, agents.ErrStopped) || !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	gone(t, w.lastPID())
	if len(d.Nodes) != 1 {
		t.Errorf("%d nodes kept, want the detail", len(d.Nodes))
	}
	for _, n := range d.Nodes {
		if n.Type != record.MockDetailSchema {
			t.Errorf("kept %+v", n)
		}
	}
}

// An agent that heeds SIGTERM is not killed, nor waited for until it would be.
func TestSpawnerCancelledWhileItWaits(t *testing.T) {
	w := newWorld(t)
	w.options.Grace = time.Hour
	w.script("steps: [{delay: 1h, output: x, stderr: x}]")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := w.run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, agents.ErrStopped) {
		t.Errorf("error %v", err)
	}
}

func TestSpawnersAtOnce(t *testing.T) {
	w := newWorld(t)
	w.script(done + "    delay: 50ms\n    commands: [\"sleep 0.1\"]\n")
	s := agents.NewSpawner(w.options)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			asked := w.task
			asked.Workspace = t.TempDir()
			if _, err := s.Run(t.Context(), asked, &task.Meter{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A child gets the allow-list and what the protocol adds, and nothing of what is
// secret here.
func TestSpawnerEnvironment(t *testing.T) {
	w := newWorld(t)
	secret := strings.Join([]string{"sk", "live", "0123456789"}, "-")
	w.options.Environ = append(os.Environ(),
		"GITHUB_TOKEN="+secret, "OPENAI_API_KEY="+secret, "MY_PASSWORD="+secret, "SSH_AUTH_SOCK=/tmp/agent",
		"HTTPS_PROXY=http://user:"+secret+"@proxy:8080", "GOPROXY=https://u:"+secret+"@proxy,direct", "http_proxy=user:"+secret+"@proxy",
		"LC_ALL=C", "GOFLAGS=-mod=mod", "UWF_BUILTIN_ALLOW_SHELL=1")
	w.options.Gateway = func(_ context.Context, task task.Task, m *task.Meter) ([]string, func(error) error, error) {
		m.Add(10, 5, 0.5)
		return []string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_API_KEY=once"}, func(error) error { return nil }, nil
	}
	w.options.Aliases = map[string]agents.Command{"env": {Command: "uwf agent environ", Env: map[string]string{"EXTRA": "1"}}}
	w.task.Command = "env"
	_, err := w.run(t.Context())
	if !errors.Is(err, agents.ErrNothingPrinted) {
		t.Fatal(err)
	}
	got := w.stderr.String()
	if strings.Contains(got, secret) || strings.Contains(got, "SSH_AUTH_SOCK") {
		t.Errorf("a secret reached the child:\n%s", got)
	}
	for _, want := range []string{
		"LC_ALL=C", "GOFLAGS=-mod=mod", "EXTRA=1", "PATH=", "OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_API_KEY=once",
		"UWF_CONTEXT=", "UWF_STAGE=", "UWF_THREAD=" + string(threadID), "UWF_ROLE=developer", "PWD=" + w.task.Workspace,
		"UWF_CALL_DIR=" + w.call, "UWF_BUILTIN_ALLOW_SHELL=1",
	} {
		if !strings.Contains("\n"+got, "\n"+want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

func TestSpawnerContext(t *testing.T) {
	w := newWorld(t)
	w.task.Command = "context"
	_, err := w.run(t.Context())
	if !errors.Is(err, agents.ErrNothingPrinted) {
		t.Fatal(err)
	}
	want := fmt.Sprintf("task %s developer 2, prompt \"Do it.\\n\", 1 steps\nmissing: true\n", threadID)
	if got := w.stderr.String(); got != want {
		t.Errorf("the child found %q, want %q", got, want)
	}
}

func TestSpawnerGatewayErrors(t *testing.T) {
	w := newWorld(t)
	w.script(done)
	refused := errors.New("budget reached")
	w.options.Gateway = func(context.Context, task.Task, *task.Meter) ([]string, func(error) error, error) {
		return nil, nil, refused
	}
	if _, err := w.run(t.Context()); !errors.Is(err, refused) {
		t.Errorf("a gateway that does not open: %v", err)
	}
	w.options.Gateway = func(context.Context, task.Task, *task.Meter) ([]string, func(error) error, error) {
		return nil, func(run error) error { return errors.Join(run, refused) }, nil
	}
	if d, err := w.run(t.Context()); !errors.Is(err, refused) || len(d.Nodes) != 4 {
		t.Errorf("a gateway that failed meanwhile: %v, %d nodes", err, len(d.Nodes))
	}
}

func TestSpawnerResolvesCommands(t *testing.T) {
	w := newWorld(t)
	bin := t.TempDir()
	program := filepath.Join(bin, "uwf-onpath")
	for file, mode := range map[string]os.FileMode{program: 0o755, filepath.Join(bin, "uwf-noexec"): 0o644, filepath.Join(w.call, "tool"): 0o755} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho \"$0|$1|$2|$3|$4\" >&2\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	w.options.Environ = []string{"PATH=relative:" + bin + ":/usr/bin:/bin"}
	w.options.Aliases = map[string]agents.Command{
		"alias": {Command: "uwf-onpath", Args: []string{"a b"}}, "broken": {Command: "'x"}, "mock": {Command: "uwf-onpath"},
	}
	tail := fmt.Sprintf("%s|developer", threadID)
	tests := []struct{ command, want string }{
		{"uwf-onpath", program + "|" + tail + "||"},
		{"uwf-onpath 'one word'  two", program + "|one word|two|" + tail},
		{"./tool \"x y\"", filepath.Join(w.call, "tool") + "|x y|" + tail + "|"},
		{"alias", program + "|a b|" + tail + "|"},
		{"mock", program + "|" + tail + "||"}, // the configuration goes first
	}
	for _, tt := range tests {
		w.task.Command = tt.command
		w.stderr.b.Reset()
		if _, err := w.run(t.Context()); !errors.Is(err, agents.ErrNothingPrinted) {
			t.Errorf("%s: %v", tt.command, err)
		}
		if got := strings.TrimSpace(w.stderr.String()); got != tt.want {
			t.Errorf("%s ran %q, want %q", tt.command, got, tt.want)
		}
	}
	s := agents.NewSpawner(w.options)
	for command, want := range map[string]string{
		"": "names no program", "'x": "quotes", "broken": "quotes", "nowhere": "no program \"nowhere\" on PATH", "uwf-noexec": "no program",
		"uwf-nowhere": "no program", "./none": "no such file", bin: "permission", "# comment": "names no program",
	} {
		var e *agents.CommandError
		if err := s.Check(command); !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%q) = %v, want %q", command, err, want)
		}
	}
	for _, command := range []string{"uwf agent mock x.yaml", "uwf-mock", "uwf-context", "context"} {
		if err := s.Check(command); err != nil {
			t.Errorf("Check(%q) = %v", command, err)
		}
	}
}

// Whatever an agent does to its folders, they go away, and nothing but what is in
// the stage is taken.
func TestSpawnerHostileFolders(t *testing.T) {
	scripts := map[string]string{
		"fifo":      `mkfifo "$UWF_STAGE/0000000000000.json"`,
		"symlink":   `ln -s /etc/passwd "$UWF_STAGE/0000000000000.json"`,
		"device":    `ln -s /dev/zero "$UWF_STAGE/0000000000000.json"`,
		"folder":    `mkdir "$UWF_STAGE/0000000000000.json"`,
		"moved":     `mv "$UWF_STAGE" "$UWF_STAGE.old"; ln -s /etc "$UWF_STAGE"`,
		"read-only": `mkdir -p "$UWF_STAGE/.a/b"; touch "$UWF_STAGE/.a/b/c"; chmod 0 "$UWF_STAGE/.a/b" "$UWF_STAGE/.a" "$UWF_STAGE"`,
		"context":   `chmod 777 "$UWF_CONTEXT"; rm -rf "$UWF_CONTEXT"; ln -s /etc "$UWF_CONTEXT"`,
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.task.Command = "/bin/sh -c '" + script + "; echo 0000000000000'"
			d, err := w.run(t.Context())
			if err == nil || len(d.Nodes) != 0 {
				t.Errorf("draft %+v, error %v", d, err)
			}
			if _, err := os.Stat("/etc/passwd"); err != nil {
				t.Error(err)
			}
		})
	}
}

// The context folder can't be changed by a process without special rights.
func TestContextIsReadOnly(t *testing.T) {
	w := newWorld(t)
	w.task.Command = `/bin/sh -c 'stat -c "%a %n" "$UWF_CONTEXT" "$UWF_CONTEXT"/* >&2'`
	if _, err := w.run(t.Context()); !errors.Is(err, agents.ErrNothingPrinted) {
		t.Skipf("no stat here: %v", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(w.stderr.String()), "\n") {
		if mode, _, _ := strings.Cut(line, " "); mode != "500" && mode != "444" {
			t.Errorf("writable: %s", line)
		}
	}
}

func FuzzHandle(f *testing.F) {
	f.Add("C700MP4XFW7FA")
	f.Add(`{"stepHash":"C700MP4XFW7FA","usage":{"turns":1}}`)
	f.Fuzz(func(t *testing.T, line string) {
		h, err := agents.ParseHandle(line)
		if err != nil {
			return
		}
		if _, err := node.ParseHash(string(h.StepHash)); err != nil {
			t.Errorf("%q gave %v", line, h)
		}
		again, err := agents.ParseHandle(h.String())
		if err != nil || again != h {
			t.Errorf("%v became %v, %v", h, again, err)
		}
	})
}

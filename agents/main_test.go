package agents_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/agents/mock"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// TestMain makes the test binary the agents below when it is called as uwf would
// be: `<binary> agent <name> …`.
func TestMain(m *testing.M) {
	if code, ours := agents.RunHelper(os.Args, os.Environ()); ours {
		os.Exit(code)
	}
	if len(os.Args) > 3 && os.Args[1] == "agent" {
		os.Exit(beAgent(os.Args[2], os.Args[3:]))
	}
	goleak.VerifyTestMain(m)
}

func beAgent(name string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	err := runAgent(ctx, name, args)
	var crash *mock.CrashError
	if errors.As(err, &crash) {
		return crash.Code
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func runAgent(ctx context.Context, name string, args []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	p := agents.Process{Args: args, Environ: os.Environ(), Dir: dir, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now}
	switch name {
	case "mock":
		b, err := os.ReadFile(filepath.Join(sandbox.Getenv(os.Environ(), agents.EnvCallDir), args[0]))
		if err != nil {
			return err
		}
		script, err := mock.Parse(args[0], b)
		if err != nil {
			return err
		}
		p.Args = args[1:]
		return agents.RunAdapter(ctx, &mock.Agent{Script: script, Stdout: os.Stdout}, p)
	case "deep": // fills its stage with folders in one another
		if err := nest(os.Getenv(agents.EnvStage), ".deep", 8000); err != nil {
			return err
		}
		return runAgent(ctx, "mock", args)
	case "environ":
		for _, kv := range os.Environ() {
			fmt.Fprintln(os.Stderr, kv)
		}
		return nil
	case "tool": // runs its program
		out, err := exec.Command(os.Getenv(agents.EnvProgram)).CombinedOutput()
		fmt.Fprintf(os.Stderr, "%s", out)
		return err
	case "renew":
		return renewLogin()
	case "context":
		return describeContext()
	}
	return fmt.Errorf("no agent %s", name)
}

// renewLogin does as programs that write their login anew: beside it, and then in its place.
func renewLogin() error {
	file := filepath.Join(os.Getenv("HOME"), ".tool/login.json")
	b, err := os.ReadFile(file)
	fmt.Fprintf(os.Stderr, "found %q\n", b)
	return errors.Join(err, os.WriteFile(file+".new", []byte("renewed"), 0o600), os.Rename(file+".new", file))
}

// nest makes folders in one another, deeper than any path can name.
func nest(dir, name string, depth int) error {
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for ; depth > 0 && err == nil; depth-- {
		if err = unix.Mkdirat(fd, name, 0o755); err != nil {
			break
		}
		next, oerr := unix.Openat(fd, name, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		err = errors.Join(oerr, unix.Close(fd))
		fd = next
	}
	return errors.Join(err, unix.Close(fd))
}

// describeContext prints what a child finds in its folder.
func describeContext() error {
	c, err := agents.LoadContext(os.Getenv(agents.EnvContext))
	if err != nil {
		return err
	}
	steps, err := c.Steps()
	if err != nil {
		return err
	}
	prompt, err := os.ReadFile(filepath.Join(os.Getenv(agents.EnvContext), "prompt.md"))
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "task %s %s %d, prompt %q, %d steps\n", c.Task.Thread, c.Task.Role, c.Task.Step, prompt, len(steps))
	_, err = c.Get("0000000000000")
	fmt.Fprintln(os.Stderr, "missing:", errors.Is(err, node.ErrNotFound))
	return nil
}

const (
	threadID = agenttest.Thread
	role     = agenttest.Role
)

// world is a task with everything around it.
type world struct {
	t       *testing.T
	task    task.Task
	options agents.Options
	stderr  *syncBuffer
	call    string // the folder that uwf was called in
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, stderr: &syncBuffer{}, call: t.TempDir()}
	w.task = agenttest.Task(t)
	w.task.Agent, w.task.Command = "mock", "uwf agent mock script.yaml"
	w.options = agents.Options{
		Self: []string{self}, Own: []string{"mock", "environ", "context", "deep"}, Dir: w.call, TempDir: t.TempDir(),
		Environ: os.Environ(), Stderr: w.stderr, Grace: 200 * time.Millisecond,
	}
	return w
}

// script writes the mock's script.
func (w *world) script(text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.call, "script.yaml"), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run(ctx context.Context) (task.Draft, error) {
	w.t.Helper()
	s := agents.NewSpawner(w.options)
	d, err := s.Run(ctx, w.task, &task.Meter{})
	if err := s.RemoveLeftovers(context.Background()); err != nil {
		w.t.Error(err)
	}
	left, rerr := os.ReadDir(w.options.TempDir)
	if rerr != nil || len(left) > 0 {
		w.t.Errorf("folders of the run were left: %v, %v", left, rerr)
	}
	return d, err
}

// step returns the StepNode that a draft's handle names.
func (w *world) step(d task.Draft) record.Step {
	w.t.Helper()
	step, err := record.ParseStep(d.Nodes[d.Handle])
	if err != nil {
		w.t.Fatalf("the draft's handle %s: %v", d.Handle, err)
	}
	return step
}

const done = `
steps:
  - output: |
      ---
      $status: done
      note: all well
      ---
      # What I did

      Things.
    usage: {turns: 3, inputTokens: 1000, outputTokens: 50, costUsd: 0.25}
`

// lastPID finds "left process <pid> behind" in what the mock printed.
func (w *world) lastPID() int {
	w.t.Helper()
	var pid int
	_, after, ok := strings.Cut(w.stderr.String(), "left process ")
	if _, err := fmt.Sscan(after, &pid); !ok || err != nil {
		w.t.Fatalf("no process in %q", w.stderr.String())
	}
	return pid
}

func gone(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there (%v)", pid, err)
	}
}

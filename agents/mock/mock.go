package mock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/internal/proc"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Name is the agent's name.
const Name = "mock"

// CrashError is the end that a script asks for: a process that exits with Code.
type CrashError struct{ Code int }

func (e *CrashError) Error() string {
	return fmt.Sprintf("mock: the script says to end with exit code %d", e.Code)
}

// ExitCode is the process's exit code.
func (e *CrashError) ExitCode() int { return e.Code }

// Agent plays a script for one step. It implements agents.Adapter and
// agents.Finisher.
type Agent struct {
	Script Script
	Stdout io.Writer // where noise goes

	entry  Entry
	said   int // outputs given so far
	detail node.Hash
}

var (
	_ agents.Adapter        = (*Agent)(nil)
	_ agents.Finisher       = (*Agent)(nil)
	_ agents.LiteralAdapter = (*Agent)(nil)
)

// Run plays the entry of the script that fits the task. It implements
// agents.Adapter.
func (a *Agent) Run(ctx context.Context, s *agents.Session) (agents.Answer, error) {
	m, err := findMoment(s)
	if err != nil {
		return agents.Answer{}, err
	}
	if a.entry, err = a.Script.Pick(m); err != nil {
		return agents.Answer{}, err
	}
	if a.detail, err = s.Stage.Put(record.MockDetailSchema, map[string]any{
		"sessionId": fmt.Sprintf("mock-%d", m.Step-1), "role": m.Role, "stepIndex": m.Step - 1,
	}); err != nil {
		return agents.Answer{}, err
	}
	if err := a.playScript(ctx, s); err != nil {
		return agents.Answer{}, fmt.Errorf("mock (script line %d): %w", a.entry.Line, err)
	}
	if err := a.failAsScripted(); err != nil {
		return agents.Answer{}, err
	}
	return a.scriptedAnswer()
}

// Continue gives the script's next output, and the last one again when there is
// no other. It implements agents.Adapter.
func (a *Agent) Continue(context.Context, *agents.Session, string) (agents.Answer, error) {
	return a.scriptedAnswer()
}

// Literal keeps models away from what the script says, unless the script wants one
// to read it: a mock costs nothing. It implements agents.LiteralAdapter.
func (a *Agent) Literal(*agents.Session) bool { return !a.entry.Extract }

// Finish lies where the script says so. It implements agents.Finisher.
func (a *Agent) Finish(s *agents.Session, step record.Step) (string, error) {
	as := a.entry.As
	if as.Role != "" {
		step.Role = as.Role
	}
	if as.Agent != "" {
		step.Agent = as.Agent
	}
	if as.Start != "" {
		step.Start = as.Start
	}
	if as.Prev != "" {
		step.Prev = &as.Prev
	}
	h, err := s.Stage.PutStep(step)
	if err != nil {
		return "", err
	}
	if a.entry.Handle != nil {
		return *a.entry.Handle, nil
	}
	return agents.Handle{StepHash: h, Usage: *step.Usage}.String(), nil
}

// findMoment finds out where in the thread this step is.
func findMoment(s *agents.Session) (Moment, error) {
	m := Moment{Role: s.Task.Role, Step: s.Task.Step, Visit: 1, Attempt: len(s.Task.PreviousAttempts) + 1}
	steps, err := s.Steps()
	if err != nil {
		return m, err
	}
	for _, step := range steps {
		if step.Role == m.Role {
			m.Visit++
		}
	}
	return m, nil
}

func (a *Agent) scriptedAnswer() (agents.Answer, error) {
	text := a.entry.Outputs[min(a.said, len(a.entry.Outputs)-1)]
	a.said++
	if pad := a.entry.Size - len(text); pad > 0 {
		text += strings.Repeat("x", pad)
	}
	return agents.Answer{Text: text, Detail: a.detail, Usage: a.entry.Usage}, nil
}

// playScript does what a working agent does: it takes its time, edits, runs, prints.
func (a *Agent) playScript(ctx context.Context, s *agents.Session) error {
	if err := sleepFor(ctx, a.entry.Delay); err != nil {
		return err
	}
	if err := a.editFiles(s); err != nil {
		return err
	}
	if err := a.runCommands(ctx, s); err != nil {
		return err
	}
	if _, err := io.WriteString(s.Stderr, a.entry.Stderr); err != nil {
		return fmt.Errorf("printing on stderr: %w", err)
	}
	if _, err := io.WriteString(a.Stdout, a.entry.Stdout); err != nil {
		return fmt.Errorf("printing on stdout: %w", err)
	}
	if a.entry.Daemon {
		return leaveDaemon(s)
	}
	return nil
}

func sleepFor(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// editFiles writes and deletes files of the workspace, and plants files in the stage.
func (a *Agent) editFiles(s *agents.Session) (err error) {
	root, err := os.OpenRoot(s.Workspace)
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, name := range slices.Sorted(maps.Keys(a.entry.Write)) {
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(name, []byte(a.entry.Write[name]), 0o644); err != nil {
			return err
		}
	}
	for _, name := range a.entry.Delete {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.entry.Stage)) {
		file := path.Join(s.Getenv(agents.EnvStage), path.Base(name))
		if err := os.WriteFile(file, []byte(a.entry.Stage[name]), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (a *Agent) runCommands(ctx context.Context, s *agents.Session) error {
	runner := proc.NewRunner(s.Getenv(proc.MarkName))
	env := append(agents.CleanEnviron(s.Environ), "PWD="+s.Workspace)
	for _, command := range a.entry.Commands {
		res, err := runner.Run(ctx, proc.Spec{
			Argv: []string{"/bin/sh", "-c", command}, Dir: s.Workspace, Env: env, Stdout: s.Stderr, Merge: true,
		})
		if err == nil {
			err = res.Stopped
		}
		if err != nil {
			return fmt.Errorf("command %q: %w", command, err)
		}
		if res.Code != 0 {
			return fmt.Errorf("command %q ended with exit code %d", command, res.Code)
		}
	}
	return nil
}

// leaveDaemon starts what is hardest to find again: a process in a session of its
// own, without environment, whose parent is gone.
func leaveDaemon(s *agents.Session) error {
	cmd := &exec.Cmd{
		Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 3600 & echo $!"},
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("leaving a daemon: %w", err)
	}
	cmd.Stdout = w
	err = cmd.Run()
	_ = w.Close()
	var pid int
	if err == nil {
		_, err = fmt.Fscan(r, &pid)
	}
	_ = r.Close()
	if err != nil {
		return fmt.Errorf("leaving a daemon: %w", err)
	}
	_, err = fmt.Fprintf(s.Stderr, "mock: left process %d behind\n", pid)
	return err
}

// failAsScripted ends the process as the script says, or not at all.
func (a *Agent) failAsScripted() error {
	if err := a.floodOutput(); err != nil {
		return err
	}
	for a.entry.Hang {
		time.Sleep(time.Hour)
	}
	if a.entry.Kill {
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			return err
		}
		time.Sleep(time.Hour) // the signal is on its way
	}
	if a.entry.Exit != nil {
		return &CrashError{Code: *a.entry.Exit}
	}
	return nil
}

func (a *Agent) floodOutput() error {
	line := []byte(strings.Repeat("noise ", 170) + "\n")
	for left := a.entry.Flood; left > 0; left -= len(line) {
		if _, err := a.Stdout.Write(line[:min(left, len(line))]); err != nil {
			return fmt.Errorf("printing on stdout: %w", err)
		}
	}
	return nil
}

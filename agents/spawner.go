package agents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/agents/internal/proc"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// Options configure a Spawner. Self and Environ are required.
type Options struct {
	// Self is this binary, and the words before "agent <name>" if there are any. Its
	// main calls RunHelper.
	Self []string
	// Own are the names of this binary's agents.
	Own []string
	// Foreign says, by name and command line, which of these run a program of somebody else's.
	// Nil: none does.
	Foreign func(agent string, argv []string) (Foreign, bool)
	// Aliases are the agents of the configuration, by name.
	Aliases map[string]Command
	// Environ is this process's environment, NAME=value.
	Environ []string
	// Dir is where uwf was called: relative programs are looked up from there.
	// Empty: programs must be absolute or on PATH.
	Dir string
	// TempDir holds the folders of running agents. Empty: the system's.
	TempDir string
	// Gateway opens the model for one run and counts into m what it costs. The
	// variables (NAME=value) say how to reach it: a base URL and a key that is
	// good for this run only. Done closes it once no process of the agent is left;
	// it is told how the run ended (nil: with a step) and returns what only the
	// gateway knows of that, such as a budget that was reached. An error of done
	// fails the run. Nil: the agent gets no model.
	Gateway func(ctx context.Context, t task.Task, m *task.Meter) (environ []string, done func(run error) error, err error)
	// AllowShell says, before each run, whether the shell gate of the builtin agent is
	// open. Nil: it is closed.
	AllowShell func() bool
	// FillHome fills the HOME of confined agents before each run. Nil: it begins empty.
	FillHome func(ctx context.Context, home string) error
	// SeedDir is a folder below one that exists, for what programs of Foreign agents fill a
	// HOME with. Empty: each run fills its own.
	SeedDir string
	// Sandbox confines agents. Nil: they are not confined.
	Sandbox *sandbox.Sandbox
	// Folder is the whole folder that tasks work in, where Task.Workspace may be a
	// part of it. Nil: Task.Workspace.
	Folder func() string
	// OwnFolder: that folder is no person's. See sandbox.Run.Own.
	OwnFolder bool
	// Gaps is told before a run what its sandbox can't enforce, a sentence each.
	// Nil: nobody is.
	Gaps func([]string)
	// Inside runs a program within this process if it can: an agent of this binary,
	// in tests of many steps. ok is false where it can't, and code the exit code. Nil:
	// every program is a child process, as everywhere else.
	Inside func(ctx context.Context, p Program) (code int, ok bool)
	// Stderr is where the agent's stderr goes while it runs. Nil: nowhere.
	Stderr io.Writer
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
	// Grace is what an agent gets between SIGTERM and SIGKILL. 0: a second.
	Grace time.Duration
	// Limits cap what an agent may print and stage.
	Limits Limits
}

// Program is an agent's program as it is to be run: its words, THREAD-ID and ROLE
// among them, its folder, and all of its environment.
type Program struct {
	Argv           []string
	Dir            string
	Environ        []string
	Stdout, Stderr io.Writer
}

// Limits cap what is taken from an agent. A zero field means the default.
type Limits struct {
	Stdout    int64 // bytes printed on stdout before the agent is killed
	Stderr    int64 // bytes of stderr passed on; the rest is only counted
	Files     int   // staged nodes
	FileSize  int64 // bytes of one staged node
	TotalSize int64 // bytes of all staged nodes
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Stdout: cmp.Or(l.Stdout, 8<<20), Stderr: cmp.Or(l.Stderr, 8<<20),
		Files: cmp.Or(l.Files, 10_000), FileSize: cmp.Or(l.FileSize, 4<<20), TotalSize: cmp.Or(l.TotalSize, 64<<20),
	}
}

// Spawner runs agents as child processes. It implements task.Agent. One process
// needs one Spawner; it is safe for concurrent use.
type Spawner struct {
	o      Options
	runner *proc.Runner

	mu   sync.Mutex
	over []string // folders of runs that are over
}

var _ task.Agent = (*Spawner)(nil)

// NewSpawner returns a Spawner.
func NewSpawner(o Options) *Spawner {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Stderr != nil {
		o.Stderr = &lockedWriter{w: o.Stderr}
	}
	o.Limits = o.Limits.withDefaults()
	return &Spawner{o: o, runner: proc.NewRunner(sandbox.Getenv(o.Environ, proc.MarkName), slices.Concat(o.Self, []string{proc.WatchName})...)}
}

// Check reports whether an agent's command line or alias can be run here,
// without running it. The error is a *CommandError or a *sandbox.RefusedError.
func (s *Spawner) Check(line string) error {
	if _, _, _, err := s.FindForeign(line); err != nil {
		return err
	}
	if err := s.o.Sandbox.Check(); !s.o.Sandbox.Waives(err) {
		return err
	}
	return nil
}

// Run runs the task's agent to its end. It implements task.Agent. The folders of the
// run stay until RemoveLeftovers.
func (s *Spawner) Run(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
	r, err := s.o.resolveCommand(cmp.Or(t.Command, t.Agent))
	if err != nil {
		return task.Draft{}, s.newAgentError(t, "it can't be started", "", err)
	}
	folders, err := makeFolders(s.o.TempDir, t)
	if err != nil {
		return task.Draft{}, s.newAgentError(t, "its folders can't be made", "", err)
	}
	defer s.retireFolders(folders)
	foreign, err := s.beginForeign(ctx, r, folders)
	if err != nil {
		return task.Draft{}, s.newAgentError(t, "it can't be started", "", err)
	}
	draft, err := s.runIn(ctx, t, m, run{folders: folders, resolved: r, foreign: foreign})
	if lerr := foreign.takeLoginBack(); lerr != nil && err == nil {
		err = s.newAgentError(t, "its login is not what it was", draft.Stderr, lerr)
	}
	return draft, err
}

// run is one run of an agent.
type run struct {
	*folders
	resolved
	foreign *foreignRun // nil: it runs nobody else's program
	model   []string    // the environment that leads to its model
}

// retireFolders notes that the folders of a run can be removed. That they can't be closed
// is no reason to lose its step: they are those of a process that was killed, once this one
// is gone.
func (s *Spawner) retireFolders(f *folders) {
	_ = f.closeFiles()
	s.mu.Lock()
	s.over = append(s.over, f.base)
	s.mu.Unlock()
}

// runIn opens the model, runs the process and reads what it left.
func (s *Spawner) runIn(ctx context.Context, t task.Task, m *task.Meter, r run) (task.Draft, error) {
	if s.o.Gateway == nil || r.ownLogin {
		return s.runConfined(ctx, t, r)
	}
	var err error
	var done func(error) error
	if r.model, done, err = s.o.Gateway(ctx, t, m); err != nil {
		return task.Draft{}, s.newAgentError(t, "its model can't be reached", "", err)
	}
	draft, err := s.runConfined(ctx, t, r)
	if derr := done(err); derr != nil {
		// The gateway knows why a model call failed: that goes before what the agent made of
		// it, and is said once.
		cause, detail := errors.Join(derr, unwrapCause(err)), draft.Stderr
		if errors.As(err, new(*ExitError)) { // that the agent then ended says nothing more
			cause = modelError{derr, err}
		}
		if why, _, _ := strings.Cut(derr.Error(), "\n"); strings.Contains(detail, why) {
			detail = ""
		}
		err = s.newAgentError(t, "its model failed", detail, cause)
	}
	return draft, err
}

// modelError is why a model call failed, and how the agent ended after it.
type modelError struct {
	error
	ended error
}

// Unwrap gives both.
func (e modelError) Unwrap() []error { return []error{e.error, e.ended} }

// unwrapCause takes the wrapping off an error of this package, so that it is not said
// twice whose agent it was.
func unwrapCause(err error) error {
	if agent, ok := errors.AsType[*task.AgentError](err); ok {
		return agent.Err
	}
	return err
}

// childEnviron is everything that the child finds in its environment. A confined one
// has a home of its own, and finds this binary where it can reach it.
func (s *Spawner) childEnviron(t task.Task, r run, cell *sandbox.Cell) []string {
	env := CleanEnviron(s.o.Environ)
	self := s.o.Self[0]
	if cell != nil {
		env, self = cell.Environ(env), cell.Self
	}
	names := slices.Sorted(maps.Keys(r.env))
	env = append(env, lists.Map(names, func(name string) string { return name + "=" + r.env[name] })...)
	env = append(r.foreign.ownHome(env),
		"PWD="+t.Workspace, EnvContext+"="+r.context, EnvStage+"="+r.stage,
		EnvThread+"="+string(t.Thread), EnvRole+"="+t.Role, EnvCallDir+"="+s.o.Dir,
	)
	if len(s.o.Self) == 1 {
		env = append(env, EnvBin+"="+self)
	}
	if s.o.AllowShell != nil && s.o.AllowShell() || sandbox.Getenv(s.o.Environ, EnvAllowShell) == "1" {
		env = append(env, EnvAllowShell+"=1")
	}
	return append(env, r.model...)
}

// runProcess runs the child and turns its end into a draft or a failure.
func (s *Spawner) runProcess(ctx context.Context, t task.Task, f *folders, argv, environ []string) (task.Draft, error) {
	began := s.o.Now()
	out := &tail{keep: keepStdout, most: s.o.Limits.Stdout}
	errs := &tail{keep: keepStderr, to: s.o.Stderr, pass: s.o.Limits.Stderr}
	res, runErr := s.launchProgram(ctx, proc.Spec{
		Argv: append(slices.Clone(argv), string(t.Thread), t.Role),
		Dir:  t.Workspace, Env: environ, Stdout: out, Stderr: errs,
		Timeout: t.Timeout, Grace: s.o.Grace, LateGrace: lateGrace,
	})
	nodes, stageErr := readStage(f.root, s.o.Limits)
	draft := task.Draft{
		Nodes: nodes, Stderr: errs.String(),
		Usage: record.Usage{DurationMs: s.o.Now().Sub(began).Milliseconds()},
	}
	h, err := ParseHandle(out.lastLine())
	late := ctx.Err() == nil && errors.Is(res.Stopped, proc.ErrTimeout) && err == nil // with its step, so that nothing is lost
	if eerr := checkEnd(ctx, t, res, runErr); eerr != nil && !late {
		return draft, s.newAgentError(t, "it ended without a step", draft.Stderr, eerr)
	}
	if err == nil {
		draft.Handle = h.StepHash
		h.Usage.DurationMs = draft.Usage.DurationMs
		draft.Usage = h.Usage
		if _, ok := nodes[h.StepHash]; !ok && stageErr == nil {
			err = newHandleError(out.lastLine(), fmt.Sprintf("it is not among the %d nodes in %s", len(nodes), EnvStage))
		}
	}
	if err := errors.Join(err, stageErr); err != nil {
		return draft, s.newAgentError(t, "its step can't be taken", draft.Stderr, err)
	}
	return draft, nil
}

// launchProgram runs the program to its end.
func (s *Spawner) launchProgram(ctx context.Context, spec proc.Spec) (proc.Result, error) {
	if s.o.Inside == nil {
		return s.runner.Run(ctx, spec)
	}
	inner, cancel := ctx, context.CancelFunc(func() {})
	if spec.Timeout > 0 {
		inner, cancel = context.WithTimeoutCause(ctx, spec.Timeout, proc.ErrTimeout)
	}
	defer cancel()
	code, ok := s.o.Inside(inner, Program{Argv: spec.Argv, Dir: spec.Dir, Environ: spec.Env, Stdout: spec.Stdout, Stderr: spec.Stderr})
	if !ok {
		return s.runner.Run(ctx, spec)
	}
	return proc.Result{Code: code, Stopped: context.Cause(inner)}, nil
}

// lateGrace is what an agent gets at the end of its time, to hand over an answer that it has.
const lateGrace = 5 * time.Second

// checkEnd says why a run can't have given a step, whatever it printed.
func checkEnd(ctx context.Context, t task.Task, res proc.Result, runErr error) error {
	switch {
	case runErr != nil:
		return runErr
	case res.Stopped == nil:
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrStopped, context.Cause(ctx))
	case errors.Is(res.Stopped, proc.ErrTimeout):
		return fmt.Errorf("it had not ended after %s; raise limits.stepTime (--step-time, the action's input timeout), or give the role less to do", t.Timeout)
	default:
		return res.Stopped
	}
	switch {
	case res.Signal != 0:
		return newSignalError(res.Signal)
	case res.Code != 0:
		return &ExitError{Code: res.Code}
	}
	return nil
}

func (s *Spawner) newAgentError(t task.Task, reason, detail string, err error) error {
	return &task.AgentError{Agent: cmp.Or(t.Agent, t.Command), Reason: reason, Detail: detail, Err: err}
}

// tail keeps the end of what is printed.
type tail struct {
	keep int       // bytes
	most int64     // that may be printed; 0: any number
	to   io.Writer // is given the beginning; nil: nobody is
	pass int64     // bytes of it
	n    int64     // bytes printed
	end  []byte
}

const (
	// keepStdout is far more than a handle has, and enough for a message.
	keepStdout = 64 << 10
	keepStderr = 4 << 10
)

func (t *tail) Write(p []byte) (int, error) {
	if room := t.pass - t.n; t.to != nil && room > 0 {
		// Whoever reads along must not be able to stop the agent.
		if _, err := t.to.Write(p[:min(room, int64(len(p)))]); err != nil {
			t.to = nil
		}
	}
	if t.n += int64(len(p)); t.most > 0 && t.n > t.most {
		return 0, fmt.Errorf("it printed more than %d bytes on stdout; only the handle belongs there, everything else on stderr", t.most)
	}
	if t.end = append(t.end, p...); len(t.end) > 2*t.keep {
		t.end = append(t.end[:0], t.end[len(t.end)-t.keep:]...)
	}
	return len(p), nil
}

// lastLine is the last line that is not blank.
func (t *tail) lastLine() string {
	end := bytes.TrimSpace(t.end)
	return string(bytes.TrimSpace(end[bytes.LastIndexByte(end, '\n')+1:]))
}

// String is the end, from the beginning of a line, as valid UTF-8 and without what a
// terminal would obey.
func (t *tail) String() string {
	b := t.end[max(len(t.end)-t.keep, 0):]
	if t.n > int64(len(b)) {
		if _, rest, ok := bytes.Cut(b, []byte("\n")); ok {
			b = rest
		}
		b = append([]byte("…\n"), b...)
	}
	return strings.TrimRight(text.Lines(string(b)), "\n\t ")
}

// lockedWriter lets agents that run at the same time share a writer.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

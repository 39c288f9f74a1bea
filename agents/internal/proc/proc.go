package proc

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrTimeout is the reason of a program that ran longer than Spec.Timeout.
var ErrTimeout = errors.New("it ran too long")

// MarkName is the environment variable that marks everything a program starts.
// Its value holds the marks of all enclosing programs, outermost first.
const MarkName = "UWF_PROCESS_MARK"

const (
	// DefaultGrace is what a program gets between SIGTERM and SIGKILL.
	DefaultGrace = time.Second
	// sweepFor bounds the hunt for the last descendant. It is far beyond what a
	// healthy machine needs, and short enough for a job that is being killed.
	sweepFor = 3 * time.Second
	// sweepLooks is how often the process table is looked at in any case: each
	// look that finds processes kills them, and reaps those killed before.
	sweepLooks = 8
	// drainFor bounds the wait for a pipe that nobody should hold any more.
	drainFor = 500 * time.Millisecond
)

// Spec is one program to run.
type Spec struct {
	Argv    []string      // Argv[0] is the program's absolute path
	Dir     string        // where it runs
	Env     []string      // all of its environment, but for the mark
	Stdin   *os.File      // nil: empty
	Stdout  io.Writer     // nil: discarded; an error of Write stops the program
	Stderr  io.Writer     // the same
	Merge   bool          // stderr goes to Stdout, in the order of printing
	Timeout time.Duration // 0: none
	Grace   time.Duration // between SIGTERM and SIGKILL; 0: DefaultGrace
	// LateGrace is the same once Timeout is over, for a program that still has something to hand
	// over; 0: Grace.
	LateGrace time.Duration
	// Started is called with the program's process id once it runs.
	Started func(pid int)
}

// Result is how a program ended.
type Result struct {
	Code    int            // its exit code; -1 when a signal ended it
	Signal  syscall.Signal // the signal that ended it, or 0
	Stopped error          // why it was stopped from here; nil when it ended by itself
	Left    int            // how many of its processes outlived it and were killed
	// CPU is the processor time of the program, of all that it started as far as that was
	// reaped, and of its watcher (some milliseconds).
	CPU time.Duration
}

// LeftoverError says that processes of the program could not be ended.
type LeftoverError struct {
	PIDs []int
	Err  error
}

func (e *LeftoverError) Error() string {
	msg := fmt.Sprintf("processes %v are still there after %s of killing", e.PIDs, sweepFor)
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg + "; end them by hand before running this again"
}

func (e *LeftoverError) Unwrap() error { return e.Err }

// Runner runs programs. Several may run at the same time, by one Runner or more.
type Runner struct {
	mark  string   // of the programs that enclose this process
	watch []string // command line of a watcher; empty: none
}

// NewRunner returns a Runner. Mark is the value of MarkName in this process's own
// environment: it lets an outer Runner recognise what is started here.
//
// Watch is a command line that ends in a call of [Watch], in a program of this very
// build: [WatchName] after the path of this one's. Then a watcher stands between this
// process and each program, and ends all of the program's processes when this process
// is killed outright. Without it they are left behind then, as a program wants whose
// own parent watches over it.
func NewRunner(mark string, watch ...string) *Runner { return &Runner{mark: mark, watch: watch} }

// programs are all groups that this process runs now, whichever Runner started them:
// the process table and the orphans in it are the process's, so that each sweep must
// know of them all.
var programs = struct {
	mu     sync.Mutex
	active map[*group]struct{}
}{active: map[*group]struct{}{}}

// group is one running program and what is known of its descendants.
type group struct {
	mark     string
	leader   int           // the program, or its watcher
	watcher  *watcher      // nil: nobody watches
	started  uint64        // the leader's start, in the units of process.start
	done     chan struct{} // closed when the leader is reaped
	state    *os.ProcessState
	err      error
	sessions map[int]struct{}
}

// Run runs a program until it ends, its time is up, a writer fails or ctx ends,
// and then kills whatever it left behind. The error says why it could not be
// started, or is a *LeftoverError; everything else is in the Result.
func (r *Runner) Run(ctx context.Context, s Spec) (Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.Timeout, ErrTimeout)
		defer cancel()
	}
	if err := context.Cause(ctx); err != nil {
		return Result{Code: -1, Stopped: err}, nil
	}
	out, err := newPump(s.Stdout, stop)
	if err != nil {
		return Result{}, err
	}
	errs, err := newPump(s.Stderr, stop)
	if err != nil {
		out.abandonPump()
		return Result{}, err
	}
	g, err := r.startProgram(s, out, errs)
	if err != nil {
		out.abandonPump()
		errs.abandonPump()
		return Result{}, err
	}
	return finishRun(ctx, s, g, out, errs)
}

// finishRun waits for the end, sweeps, and collects the output.
func finishRun(ctx context.Context, s Spec, g *group, out, errs *pump) (Result, error) {
	if s.Started != nil {
		s.Started(g.programPID())
	}
	var res Result
	select {
	case <-g.done:
	case <-ctx.Done():
		res.Stopped = context.Cause(ctx)
		grace := s.Grace
		if errors.Is(res.Stopped, ErrTimeout) {
			grace = cmp.Or(s.LateGrace, grace)
		}
		g.terminateGroup(grace)
	}
	g.watcher.dismissWatcher(g.done)
	left, err := g.sweepGroup()
	if err == nil {
		<-g.done
	}
	g.forgetGroup()
	out.waitDrained()
	errs.waitDrained()
	res.Left = left
	res.Code, res.Signal = g.exitStatus()
	if g.isReaped() && g.state != nil {
		res.CPU = g.state.UserTime() + g.state.SystemTime()
	}
	if g.watcher != nil && g.isReaped() {
		err = errors.Join(err, g.watcher.readEnding(&res))
	}
	g.watcher.closePipes()
	// A writer may fail on what was still in the pipe when the program ended.
	if res.Stopped == nil {
		res.Stopped = errors.Join(out.fail, errs.fail)
	}
	return res, err
}

// startProgram starts the program, or its watcher, which starts it.
func (r *Runner) startProgram(s Spec, out, errs *pump) (g *group, err error) {
	if len(s.Argv) == 0 {
		return nil, errors.New("no program to run")
	}
	mark := r.newMark()
	cmd := &exec.Cmd{
		Path: s.Argv[0], Args: s.Argv, Dir: s.Dir,
		Env:         append(slices.Clone(s.Env), MarkName+"="+mark),
		SysProcAttr: sessionAttributes(),
	}
	if s.Stdin != nil { // a nil *os.File is no nil io.Reader
		cmd.Stdin = s.Stdin
	}
	if out.w != nil {
		cmd.Stdout = out.w
	}
	switch {
	case s.Merge:
		cmd.Stderr = cmd.Stdout
	case errs.w != nil:
		cmd.Stderr = errs.w
	}
	if len(r.watch) == 0 {
		g, err = launchSession(cmd, mark)
	} else {
		g, err = launchWatched(r.watch, cmd, mark)
	}
	out.closeWriter()
	errs.closeWriter()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Argv[0], err)
	}
	return g, nil
}

// launchSession starts a program in a session of its own. On Linux it dies with the thread
// that started it, so that one thread is kept for it until the end.
func launchSession(cmd *exec.Cmd, mark string) (*group, error) {
	if err := adoptOrphans(); err != nil {
		return nil, fmt.Errorf("becoming the reaper of orphaned processes: %w", err)
	}
	g := &group{mark: mark, done: make(chan struct{}), sessions: map[int]struct{}{}}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		programs.mu.Lock() // so that no sweep sees the new process before it is known
		err := cmd.Start()
		if err == nil {
			g.leader = cmd.Process.Pid
			g.started = startOf(g.leader)
			g.sessions[g.leader] = struct{}{}
			programs.active[g] = struct{}{}
		}
		programs.mu.Unlock()
		started <- err
		if err != nil {
			return
		}
		g.err = cmd.Wait()
		g.state = cmd.ProcessState
		close(g.done)
	}()
	return g, <-started
}

func (r *Runner) newMark() string {
	return strings.TrimPrefix(r.mark+"/"+rand.Text(), "/")
}

// programPID is the process of the program itself.
func (g *group) programPID() int {
	if g.watcher != nil {
		return g.watcher.pid
	}
	return g.leader
}

func (g *group) forgetGroup() {
	programs.mu.Lock()
	defer programs.mu.Unlock()
	delete(programs.active, g)
}

// terminateGroup asks the group to end and waits until the leader has, or grace is over.
func (g *group) terminateGroup(grace time.Duration) {
	if g.watcher != nil {
		g.watcher.terminateProgram()
	} else {
		_ = syscall.Kill(-g.leader, syscall.SIGTERM) // gone already: nothing to ask
	}
	waitFor(g.done, cmp.Or(grace, DefaultGrace))
}

// waitFor waits until something is done, or for so long.
func waitFor(done <-chan struct{}, most time.Duration) {
	select {
	case <-done:
	case <-time.After(most):
	}
}

// isReaped reports whether the leader has ended and was waited for: its process id
// may belong to somebody else from then on.
func (g *group) isReaped() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

func (g *group) exitStatus() (int, syscall.Signal) {
	if !g.isReaped() || g.state == nil {
		return -1, 0
	}
	if ws, ok := g.state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, ws.Signal()
	}
	return g.state.ExitCode(), 0
}

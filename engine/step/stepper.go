package step

import (
	"context"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Folder is the agent's working folder.
type Folder interface {
	// Restore makes the folder equal to a commit.
	Restore(ctx context.Context, commit wire.ID) error
	// Snapshot makes a commit of the folder; nothing is pushed.
	Snapshot(ctx context.Context, req workspace.SnapshotRequest) (workspace.Snapshot, error)
	// Dir is where agents are started.
	Dir() string
	// Sub is a folder inside of it. One that leads outside, by whatever way, or
	// is not there is an error.
	Sub(location string) (string, error)
}

// Unpushed keeps each sealed step on this machine from before its first push until it is
// on the remote, see package unpushed.
type Unpushed interface {
	Write(s unpushed.Step) error
	// Read returns one of what is kept for a thread of a store: none is fs.ErrNotExist, and
	// what holds no step an *unpushed.BadError.
	Read(store string, id gitcas.ThreadID) (unpushed.Step, error)
	// Remove removes what was made under a claim, and leaves that of other jobs.
	Remove(store string, id gitcas.ThreadID, nonce string) error
	// SetAside moves what is kept in a path out of the way, and returns where to.
	SetAside(path string) (string, error)
	// Path is where what was made under a claim is kept.
	Path(store string, id gitcas.ThreadID, nonce string) string
}

// Stepper steps threads, and can all that its Engine can. Agent, Folder and Fence are
// required.
type Stepper struct {
	*thread.Engine
	Agent  task.Agent
	Folder Folder
	// Fence returns the random word around text that came from outside.
	Fence func() string
	// RemoveLeftovers removes what runs of agents left on this machine. It is called when
	// a step is over, whatever came of it, since it may take long; nil: nothing is left.
	RemoveLeftovers func(ctx context.Context) error
	// Unpushed keeps sealed steps on this machine until they are pushed; nil: nothing does.
	Unpushed Unpushed
}

// Request names the thread to step.
type Request struct {
	Thread gitcas.ThreadID
	// ExpectHead is the head that the caller was told to step; zero: any.
	ExpectHead node.Pin
	// Agent overrides the configured agent: an alias or a command line.
	Agent string
	// Deliver leaves an ended thread on the tip, for a job that delivers it.
	Deliver bool
	// Next is asked before the step is committed, and where another one follows, whether the
	// caller takes that at once, and as which job: the thread is claimed for it in the same
	// push then, see Result.Held. Nil: it doesn't.
	Next func() (lease.Identity, bool)
	// Held is the claim that the step before has left for this one; nil: there is none. It
	// is released whatever comes of the step.
	Held *lease.Lease
	// Ahead: the next step is that of jobs which the caller starts, see ClaimAhead.
	Ahead bool
	// Nonce is that of the claim which was made ahead for this step; empty: none. Where it is
	// not on the thread, and no other one, the thread is claimed as usual.
	Nonce string
	// HandsOver: what the agent leaves another job commits, so that the agent is stopped in
	// time for that.
	HandsOver bool
	// OnClaimed is told what the agent is to do, once the thread is claimed and the limits are
	// checked, before the agent runs: an error keeps it from that, and is the step's. Nil:
	// nobody is told.
	OnClaimed func(ctx context.Context, t task.Task) error
	// Effects is asked for what is known of the thread's comment and pull request
	// whenever its entry is written; may be nil. It may be asked more than once.
	Effects func() life.Effects
}

// Step runs one cycle of a thread. The error, if any, is one of this package's
// types, or the Store's. The Result is filled in
// as far as things went, also beside an error.
func (e *Stepper) Step(ctx context.Context, req Request) (thread.Result, error) {
	r := newRun(e, req)
	ctx, stop := deadline.WatchInterrupt(ctx, e.Clock)
	defer stop()
	res, err := r.runCycle(ctx)
	res.PutBack = r.putBack
	if err != nil {
		err = e.CleanError(err)
		res.Error = thread.NewStepError(err)
		if res.Usage == nil {
			res.Usage = r.lost
		}
	}
	if e.RemoveLeftovers != nil {
		ctx, cancel := deadline.Outlive(ctx, 0, deadline.CleanupGrace)
		defer cancel()
		if lerr := e.RemoveLeftovers(ctx); lerr != nil {
			e.Emit(thread.Event{Kind: "notice", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Text: e.CleanError(lerr).Error()})
		}
	}
	return res, err
}

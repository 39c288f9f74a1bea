// Package step runs one cycle of a thread, moderator → agent → extract, by the step protocol
// of the design, and returns. There is a file for each phase: decide whose turn it is and
// what the limits leave; claim; prepare the task and the workspace; run the agent; seal what
// it left; keep it on this machine; commit, or suspend, or keep it as an attempt; and bring
// in what another job sealed. What a phase finds out is in the type that the next embeds:
// turn, agentRun, keeper, run.
package step

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// turn is the first phase of a step: what the job read of the thread, whose turn it is, and
// what the limits leave. Nothing is paid for.
type turn struct {
	*thread.Session
	e        *Stepper
	req      Request
	plan     plan
	used     moderator.Totals
	share    *task.Budget // what the month's limits leave the agent; nil: they were not asked
	tried    *attempt.Ledger
	brought  *brought // the sealed step of another job; nil: it is this one's own
	approval approval
}

func newTurn(e *Stepper, req Request) turn {
	s := thread.NewSession(e.Engine, life.Step, req.Thread, req.ExpectHead)
	s.Effects, s.Whole = req.Effects, req.OnClaimed != nil
	return turn{Session: s, e: e, req: req, tried: attempt.NewLedger(e.Store, &s.Thread, "")}
}

// agentRun is the second one: what the agent is asked, the folder that it works in, and
// what it leaves there.
type agentRun struct {
	turn
	task     task.Task
	meter    task.Meter
	from     wire.ID // the commit that the folder was restored to
	restored bool
	snap     *workspace.Snapshot
	// unreadable: no picture of the folder can be taken. To try again takes as long.
	unreadable bool
	// checks are the results of the role's checks on the tree checked; spent is what runs of
	// the agent say of themselves whose work did not pass.
	checks  []record.Check
	checked wire.ID
	spent   record.Usage
	// prepared is what was printed when the folder was made ready.
	prepared string
	// notes are the step's; leftOut is not in the folder.
	notes   []string
	leftOut []workspace.LeftOut
}

// keeper keeps what came of it, on this machine until it is pushed, and as an attempt where
// it leads to no step.
type keeper struct {
	agentRun
	onDisk bool          // the sealed step is kept on this machine
	stays  bool          // and is not removed when it is an attempt, too: what was in its way can be mended
	made   *record.Step  // the sealed step, from when it is pushed; another job may bring it in
	lost   *record.Usage // what this run took and led to no step
	tries  int           // failed attempts at the step that count, with this run's
}

// run is one run of the protocol: it takes a turn, has the agent run, and commits.
type run struct{ keeper }

func newRun(e *Stepper, req Request) *run {
	r := &run{keeper{agentRun: agentRun{turn: newTurn(e, req)}}}
	r.Took = func() (moderator.Totals, *record.Usage) { return r.used, r.lost }
	return r
}

func (r *run) runCycle(ctx context.Context) (thread.Result, error) {
	if r.req.Held != nil {
		r.Lease = r.req.Held
		defer r.Lease.Release(ctx)
	}
	if err := r.Load(ctx); err != nil {
		return r.describeThread(), err
	}
	switch {
	case r.req.HandsOver: // what lies there is of jobs before, and would be taken for this one's
		if err := r.e.Unpushed.Clear(r.View.StoreID()); err != nil {
			return r.describeThread(), err
		}
	case r.req.Held == nil: // else the step before has looked
		if res, in, err := r.bringIn(ctx); in && !res.Again || err != nil {
			return res, err
		}
	}
	if done, res, err := r.CheckUnclaimed(ctx); done || err != nil {
		r.e.DropClaim(ctx, r.View, r.ID)
		return res, err
	}
	if err := r.decideRole(ctx); err != nil {
		r.e.DropClaim(ctx, r.View, r.ID)
		return r.describeThread(), err
	}
	ask := r.req.Hold
	if !r.plan.runsAgent() {
		ask = nil
	}
	hold, stop := r.AskHold(ctx, ask)
	defer stop()
	if err := r.takeClaim(ctx); err != nil {
		return r.describeThread(), err
	}
	defer r.Lease.Release(ctx)
	r.Lease.HandsOver = r.req.HandsOver
	r.e.Emit(thread.Event{Kind: "claimed", Thread: r.ID, Step: r.StepNumber(), Role: r.plan.role})
	return r.actOnPlan(ctx, hold())
}

// actOnPlan does what was decided, with the claim in hand.
func (r *run) actOnPlan(ctx context.Context, hold life.Hold) (thread.Result, error) {
	if err := r.countDead(ctx); err != nil {
		return r.describeThread(), err
	}
	if hold != (life.Hold{}) {
		err := r.HoldBack(ctx, r.waitingRole(), hold)
		return r.describeThread(), err
	}
	held, _ := r.Lease.Current()
	failed := life.CountAttempts(r.Entry, r.ID, held.Died)
	if err := r.holdMonth(ctx, failed); err != nil {
		return r.describeThread(), err
	}
	switch {
	case r.req.HandsOver && (!r.plan.runsAgent() || failed >= life.MaxAttempts):
		return r.describeThread(), nil // it is the other job's
	case r.plan.limit != nil:
		if err := r.Suspend(ctx, r.waitingRole(), r.plan.limit.Error(), nil, nil); err != nil {
			return r.describeThread(), err
		}
		return r.describeThread(), life.NewLimitError(r.ID, r.plan.limit)
	case r.plan.end:
		return r.endThread(ctx)
	case r.plan.suspend != "":
		return r.suspendThread(ctx, r.plan.suspend)
	case failed >= life.MaxAttempts:
		return r.suspendThread(ctx, describeTooMany(failed))
	}
	return r.workAndCommit(ctx)
}

// describeTooMany is why a thread waits whose step failed again and again.
func describeTooMany(n int) string { return fmt.Sprintf("%d attempts at this step failed", n) }

// workAndCommit runs the agent and commits what it did.
func (r *run) workAndCommit(ctx context.Context) (thread.Result, error) {
	if err := r.prepareTask(); err != nil {
		return r.describeThread(), r.failStep(ctx, "prepare", task.Draft{}, err)
	}
	if err := r.checkPush(ctx); err != nil {
		return r.describeThread(), err
	}
	var div *workbranch.DivergedError
	switch err := r.restoreFolder(ctx); {
	case errors.As(err, &div) && r.req.HandsOver:
		return r.describeThread(), nil // the same
	case errors.As(err, &div):
		return r.suspendThread(ctx, div.Error())
	case life.KindOf(err) == life.KindNotYours:
		return r.describeThread(), err
	case errors.Is(err, wire.ErrPromised): // no attempt could do better
		return r.describeThread(), &life.FailedError{Thread: r.ID, Role: r.plan.role, Phase: "workspace", Err: err}
	case err != nil:
		return r.describeThread(), r.failStep(ctx, "workspace", task.Draft{}, err)
	}
	if err := r.assemblePrompt(ctx); err != nil {
		return r.describeThread(), r.failStep(ctx, "prepare", task.Draft{}, err)
	}
	r.e.Reached("workspace")
	draft, err := r.runAgent(ctx)
	if err != nil {
		return r.describeThread(), err
	}
	r.e.Reached("agent")
	// The work is done and paid for: an interrupt no longer cuts it off at once.
	ctx, cancel := deadline.Outlive(ctx, deadline.SealTimeout, deadline.CommitGrace)
	defer cancel()
	step, next, phase, err := r.sealAndDecide(draft)
	if err != nil {
		return r.describeThread(), r.failStep(ctx, phase, draft, err)
	}
	if r.snap, err = r.takeSnapshot(ctx, next.result, step); err == nil {
		err = checkUnchanged(&r.agentRun, r.snap)
	}
	step.step.Notes = r.notes
	if err != nil {
		return r.describeThread(), r.failStep(ctx, "workspace", draft, err)
	}
	if r.req.HandsOver {
		return r.handOver(ctx, draft, step, next)
	}
	r.keepOnDisk(step)
	r.sealPatch(ctx, step)
	return r.commitStep(ctx, draft, step, next)
}

// sealAndDecide seals what the agent left, and asks the moderator what follows from it; phase
// is where that failed.
func (r *agentRun) sealAndDecide(d task.Draft) (step *sealed, next plan, phase string, err error) {
	if step, err = r.sealDraft(d); err != nil {
		return nil, next, "seal", err
	}
	if next, err = r.nextAfter(step); err != nil {
		return nil, next, "extract", err
	}
	if next.suspend != "" { // nobody has checked it
		step.step.Checks = nil
	}
	r.e.Emit(thread.Event{Kind: "sealed", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Status: next.result, Usage: *step.step.Usage})
	return step, next, "", nil
}

// Folder is the agent's working folder.
type Folder interface {
	// Restore makes the folder equal to a commit of a thread that began from base; zero: from
	// nothing. If the folder has submodules, base says where their repositories are.
	Restore(ctx context.Context, commit, base wire.ID) error
	// TakeSnapshot makes a commit of the folder; nothing is pushed.
	TakeSnapshot(ctx context.Context, req workspace.SnapshotRequest) (workspace.Snapshot, error)
	// ListLeftOut is what Restore left out of the folder.
	ListLeftOut() []workspace.LeftOut
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
	// Clear removes all that is kept for a store.
	Clear(store string) error
	// SetAside moves what is kept in a path out of the way, and returns where to.
	SetAside(path string) (string, error)
	// Path is where what was made under a claim is kept.
	Path(store string, id gitcas.ThreadID, nonce string) string
}

// Stepper steps threads, and can all that its Engine can. Agent and Folder are
// required.
type Stepper struct {
	*thread.Engine
	Agent  task.Agent
	Folder Folder
	// Repository reads what the thread's work began from; nil: agents are told nothing of it.
	Repository Repository
	// CommonFirst reports whether an agent, by its name, is told what is common to all roles
	// first; nil: none is.
	CommonFirst func(agent string) bool
	// Checker runs the checks that roles have; nil: nothing does, and no step has results.
	Checker Checker
	// Preparer makes the folder ready for agents; nil: it is as the commit has it.
	Preparer Preparer
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
	// HandsOver: this job can push nothing. It keeps the sealed step, or what there is of one
	// that failed, in Unpushed, which is required then, for another job that takes it over; the
	// agent is stopped in time for that. What needs no agent is left to that job.
	HandsOver bool
	// TakesOver reads what such a job left, as Unpushed does: the step is made of that, and no
	// agent runs. An error of life.KindNotYours: that job had none to run, and the step is given
	// up where one is to run by now. Nil: one does.
	TakesOver func(store string, id gitcas.ThreadID) (unpushed.Step, error)
	// CheckChanges is asked about the files that such a step changes: an error is the step's.
	// Nil: all can be pushed.
	CheckChanges func(changes []workspace.Change) error
	// Hold is asked, while the thread is claimed for an agent's work, what keeps it from going on:
	// that makes it wait, or ends it, before anything is paid for. Nil: nothing does.
	Hold func(ctx context.Context, t *reading.Thread) life.Hold
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
	if err = res.Conclude(e.Redact, err); err != nil && res.Usage == nil {
		res.Usage = r.lost
	}
	if e.RemoveLeftovers != nil {
		ctx, cancel := deadline.Outlive(ctx, 0, deadline.CleanupGrace)
		defer cancel()
		if lerr := e.RemoveLeftovers(ctx); lerr != nil {
			e.Emit(thread.Event{Kind: "notice", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Text: thread.CleanError(e.Redact, lerr).Error()})
		}
	}
	return res, err
}

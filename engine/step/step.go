package step

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
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
	tried    *attempt.Ledger
	brought  *brought // the sealed step of another job; nil: it is this one's own
	approval approval
}

func newTurn(e *Stepper, req Request) turn {
	s := thread.NewSession(e.Engine, life.Step, req.Thread, req.ExpectHead)
	s.Effects = req.Effects
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
	putBack    []string // what the agent changed in a .git
}

// keeper keeps what came of it, on this machine until it is pushed, and as an attempt where
// it leads to no step.
type keeper struct {
	agentRun
	onDisk bool          // the sealed step is kept on this machine
	made   *record.Step  // the sealed step, from when it is pushed; another job may bring it in
	lost   *record.Usage // what this run took and led to no step
	tries  int           // failed attempts at the step that count, with this run's
}

// run is one run of the protocol: it takes a turn, has the agent run, and commits.
type run struct{ keeper }

func newRun(e *Stepper, req Request) *run {
	return &run{keeper{agentRun: agentRun{turn: newTurn(e, req)}}}
}

func (r *run) runCycle(ctx context.Context) (thread.Result, error) {
	if r.req.Held != nil {
		r.Lease = r.req.Held
		defer r.Lease.Release(ctx)
	}
	if err := r.Load(ctx); err != nil {
		return r.describeThread(), err
	}
	if r.req.Held == nil { // else the step before has looked
		if res, in, err := r.bringIn(ctx); in && !res.Again || err != nil {
			return res, err
		}
	}
	if done, res, err := r.checkUnclaimed(ctx); done || err != nil {
		r.e.DropClaim(ctx, r.View, r.ID)
		return res, err
	}
	if err := r.decideRole(ctx); err != nil {
		r.e.DropClaim(ctx, r.View, r.ID)
		return r.describeThread(), err
	}
	if !(r.req.Held != nil && r.Lease.TakeUp(r.View, r.Entry, r.claimTerms().Budget)) && !r.takeAhead() {
		v, h, err := r.e.Claim(ctx, r.View, r.ID, r.claimTerms())
		if err != nil {
			return r.describeRefused(err), err
		}
		r.View, r.Lease = v, h
		r.Entry, _ = v.Entry(r.ID)
	}
	defer r.Lease.Release(ctx)
	r.Lease.HandsOver = r.req.HandsOver
	r.e.Emit(thread.Event{Kind: "claimed", Thread: r.ID, Step: r.StepNumber(), Role: r.plan.role})
	return r.actOnPlan(ctx)
}

// actOnPlan does what was decided, with the claim in hand.
func (r *run) actOnPlan(ctx context.Context) (thread.Result, error) {
	if err := r.countDead(ctx); err != nil {
		return r.describeThread(), err
	}
	switch {
	case r.plan.limit != nil:
		if err := r.Suspend(ctx, r.waitingRole(), r.plan.limit.Error(), nil, nil); err != nil {
			return r.describeThread(), err
		}
		return r.describeThread(), life.Limited(r.ID, r.plan.limit)
	case r.plan.end:
		return r.endThread(ctx)
	case r.plan.suspend != "":
		return r.suspendThread(ctx, r.plan.suspend)
	}
	held, _ := r.Lease.Current()
	if n := life.CountAttempts(r.Entry, r.ID, held.Died); n >= life.MaxAttempts {
		return r.suspendThread(ctx, describeTooMany(n))
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
	var div *workbranch.DivergedError
	switch err := r.restoreFolder(ctx); {
	case errors.As(err, &div):
		return r.suspendThread(ctx, div.Error())
	case life.KindOf(err) == life.KindNotYours:
		return r.describeThread(), err
	case err != nil:
		return r.describeThread(), r.failStep(ctx, "workspace", task.Draft{}, err)
	}
	if err := r.enterLocation(); err != nil {
		return r.describeThread(), r.failStep(ctx, "workspace", task.Draft{}, err)
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
	step, err := r.sealDraft(draft)
	if err != nil {
		return r.describeThread(), r.failStep(ctx, "seal", draft, err)
	}
	next, err := r.nextAfter(step)
	if err != nil {
		return r.describeThread(), r.failStep(ctx, "extract", draft, err)
	}
	r.e.Emit(thread.Event{Kind: "sealed", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Status: next.status, Usage: *step.step.Usage})
	if r.snap, err = r.takeSnapshot(ctx, next.status, step); err != nil {
		return r.describeThread(), r.failStep(ctx, "workspace", draft, err)
	}
	r.keepOnDisk(step)
	r.sealPatch(ctx, step)
	return r.commitStep(ctx, draft, step, next)
}

// describeRefused is the result of a job that did not get the thread.
func (r *turn) describeRefused(err error) thread.Result {
	res := r.describeThread()
	var claimed *life.ClaimedError
	if errors.As(err, &claimed) && claimed.For == "" {
		res.Status = "running"
	}
	return res
}

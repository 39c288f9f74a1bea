package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/runner/authority"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/delivery"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// steps does the steps of one thread, and what follows from each.
type steps struct {
	*effects.Effects
	gate       *authority.Gate
	finder     *finder
	dispatcher *dispatcher
	delivery   *delivery.Delivery
	work       Worker
	halted     bool        // it was suspended by a step of this job
	pull       *forge.Pull // the thread's, as this job read it last; nil: it read none
	held       bool        // what is left of the month's limits is reserved by steps of other threads
}

// continueThread steps a thread in this very job. If agents run in another one, it starts that.
func (j *steps) continueThread(ctx context.Context, id gitcas.ThreadID, head node.Hash) error {
	if ci.RunsAgents(j.Inputs.Command) {
		return j.stepThread(ctx, id, node.Pin{Hash: head})
	}
	p, err := j.LoadThread(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case p.Entry.Status == gitcas.StatusEnded && j.Inputs.Command == ci.CommandCommit:
		return j.stepThread(ctx, id, node.Pin{Hash: head})
	case p.Entry.Status == gitcas.StatusSuspended:
		return j.FinishOK(fmt.Sprintf("thread %s waits for a person", id))
	}
	if held, err := j.holdBack(ctx, p); held || err != nil {
		return err
	}
	j.UpdateComment(ctx, p, j.DescribeThread(p, report.Queued))
	j.RecordComment(ctx, p)
	return j.dispatcher.dispatchNext(ctx, id, p.Head(), p)
}

// stepThread does one step of a thread, or as many as a job may, and what follows from it.
func (j *steps) stepThread(ctx context.Context, id gitcas.ThreadID, expect node.Pin) error {
	if err := j.work.PrepareFolder(ctx, id); err != nil {
		return j.suspendBroken(ctx, id, expect.Hash, err)
	}
	stepper := *j.Engine
	stepper.Agent = guardedAgent{j.Engine.Agent, j}
	observe := j.Engine.Observe
	j.Engine.Observe = func(e thread.Event) {
		if e.Kind == "suspended" {
			j.halted = true
		}
		if observe != nil {
			observe(e)
		}
	}
	defer func() { j.Engine.Observe = observe }()
	defer j.dispatcher.releaseAhead(ctx)
	var longest time.Duration
	var held *lease.Lease
	for n := 1; ; n++ {
		began := j.Now()
		var next *lease.Identity // as which this job does a further step
		goOn := func() (lease.Identity, bool) {
			if j.dispatcher.pairs {
				return j.Engine.Who, j.Inputs.Dispatch != ci.DispatchOff
			}
			if n >= j.Inputs.StepsPerJob || !j.hasTimeFor(max(longest, j.Now().Sub(began))) || ctx.Err() != nil {
				return lease.Identity{}, false
			}
			who, err := j.work.NextIdentity()
			if err != nil {
				j.Warn("no further step is done in this job", err)
				return who, false
			}
			next = &who
			return who, true
		}
		req := step.Request{Thread: id, ExpectHead: expect, Agent: j.Inputs.Agent, Deliver: true, Hold: j.holdStep, OnClaimed: j.beginStep, Effects: j.ListEffects, Next: goOn, Ahead: j.dispatcher.pairs, Held: held, Nonce: j.Inputs.Claim}
		if j.Inputs.Command == ci.CommandCommit {
			req.TakesOver, req.CheckChanges, req.Hold = j.readArtifact, j.checkWorkflowFiles, nil // what an agent has done is not lost
		}
		res, err := stepper.Step(ctx, req)
		j.work.RememberFolder(ctx)
		j.NoteResult(res)
		longest = max(longest, j.Now().Sub(began))
		switch {
		case err != nil:
			return j.endAfterError(ctx, res, expect, err)
		case res.Done:
			return j.deliverThread(ctx, id, res.Pin())
		case res.Suspended != nil:
			return j.tellWaiting(ctx, res)
		case j.dispatcher.pairs, res.Again: // the runs of the further steps that it did are taken
			j.dispatcher.ahead = res.Held
			return j.startNextJob(ctx, res)
		}
		if next == nil {
			goOn()
		}
		if next == nil || ctx.Err() != nil {
			res.Held.Release(ctx)
			return j.startNextJob(ctx, res)
		}
		j.Engine.Who, held, expect = *next, res.Held, res.Pin()
	}
}

// spareTime is what a job keeps for the effects of its last step, and for a step that
// takes longer than the ones before.
const spareTime = 2 * time.Minute

// hasTimeFor reports whether there is time for one more step like the longest one.
func (j *steps) hasTimeFor(longest time.Duration) bool {
	d := j.Job.Deadline
	return d.IsZero() || j.Now().Add(longest+longest/2+spareTime).Before(d)
}

// startNextJob starts the next job. A thread that people change after this one's commit is dispatched
// all the same: that job sees it, and ends.
func (j *steps) startNextJob(ctx context.Context, res thread.Result) error {
	load := j.LoadThread
	if res.View != nil {
		load = func(ctx context.Context, id gitcas.ThreadID) (*threadview.Thread, error) {
			return j.ReadThread(ctx, res.View, id)
		}
	}

	p, err := load(ctx, res.Thread)
	switch {
	case errors.Is(err, gitcas.ErrUnknownThread):
		return j.FinishOK(fmt.Sprintf("thread %s was ended without this job", res.Thread))
	case err != nil: // how it looked before its step says nothing of now
		j.Warn("the thread can't be shown as it is now", err)
		p = nil
	case p.Entry.Head != res.Head || p.Entry.Status != gitcas.StatusActive:
		return j.FinishOK(fmt.Sprintf("thread %s has gone on, or was made to wait, without this job", res.Thread))
	default:
		if j.dispatcher.pairs {
			if held, err := j.holdBack(ctx, p); held || err != nil {
				return err
			}
			j.UpdateComment(ctx, p, j.DescribeThread(p, report.Queued))
			break
		}
		t := j.DescribeThread(p, report.Queued)
		j.Shown = &t // that job is about to write the comment
	}
	return j.dispatcher.dispatchNext(ctx, res.Thread, res.Pin(), p)
}

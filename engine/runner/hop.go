package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/picture"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// goOn steps a thread in this very job; where agents run in a job of their own, it
// starts that one.
func (j *job) goOn(ctx context.Context, id gitcas.ThreadID, head node.Hash) error {
	if j.in.Command != CommandCommit {
		return j.hop(ctx, id, node.Pin{Hash: head})
	}
	p, err := j.look(ctx, id)
	if err != nil {
		return err
	}
	switch {
	case p.Entry.Status == gitcas.StatusEnded:
		return j.hop(ctx, id, node.Pin{Hash: head})
	case p.Entry.Status == gitcas.StatusSuspended:
		return j.quiet(fmt.Sprintf("thread %s waits for a person", id))
	}
	j.tell(ctx, p, j.view(p, report.Queued))
	j.record(ctx, p)
	return j.dispatch(ctx, id, p.Head(), p)
}

// hop does one step of a thread, or as many as a job may, and what follows from it.
func (j *job) hop(ctx context.Context, id gitcas.ThreadID, expect node.Pin) error {
	if err := j.Work.Use(ctx, id); err != nil {
		return j.broken(ctx, id, expect.Hash, err)
	}
	inner, observe := j.Engine.Agent, j.Engine.Observe
	j.Engine.Agent = announcer{j.agent(), j}
	j.Engine.Observe = func(e thread.Event) {
		if e.Kind == "suspended" {
			j.halted = true
		}
		if observe != nil {
			observe(e)
		}
	}
	defer func() { j.Engine.Agent, j.Engine.Observe = inner, observe }()
	defer j.releaseAhead(ctx)
	var longest time.Duration
	var held *lease.Lease
	for n := 1; ; n++ {
		began := j.Now()
		var next *lease.Identity // as which this job does a further step
		goOn := func() (lease.Identity, bool) {
			if j.pairs {
				return j.Engine.Who, j.in.Dispatch != DispatchOff
			}
			if n >= j.in.StepsPerJob || !j.timeFor(max(longest, j.Now().Sub(began))) || ctx.Err() != nil {
				return lease.Identity{}, false
			}
			who, err := j.Work.NextIdentity()
			if err != nil {
				j.warn("no further step is done in this job", err)
				return who, false
			}
			next = &who
			return who, true
		}
		res, err := j.Engine.Step(ctx, step.Request{Thread: id, ExpectHead: expect, Agent: j.in.Agent, Deliver: true, Effects: j.effects, Next: goOn, Ahead: j.pairs, Held: held, Nonce: j.in.Claim})
		j.Work.Leave(ctx)
		j.note(res)
		longest = max(longest, j.Now().Sub(began))
		switch {
		case err != nil:
			return j.stopped(ctx, res, expect, err)
		case res.Done:
			return j.deliver(ctx, id, res.Pin())
		case res.Suspended != nil:
			return j.waits(ctx, res)
		case j.pairs, res.Again: // the runs of the further steps that it did are taken
			j.ahead = res.Held
			return j.advance(ctx, res)
		}
		if next == nil {
			goOn()
		}
		if next == nil || ctx.Err() != nil {
			res.Held.Release(ctx)
			return j.advance(ctx, res)
		}
		j.Engine.Who, held, expect = *next, res.Held, res.Pin()
	}
}

// spareTime is what a job keeps for the effects of its last step, and for a step that
// takes longer than the ones before.
const spareTime = 2 * time.Minute

// timeFor reports whether there is time for one more step like the longest one.
func (j *job) timeFor(longest time.Duration) bool {
	d := j.Job.Deadline
	return d.IsZero() || j.Now().Add(longest+longest/2+spareTime).Before(d)
}

// look reads a thread anew, for what is shown of it.
func (j *job) look(ctx context.Context, id gitcas.ThreadID) (*picture.Picture, error) {
	ctx, cancel := effectContext(ctx)
	defer cancel()
	v, err := j.Engine.Store.Load(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read thread %s: %w", id, err)
	}
	j.store, j.latest = v.StoreID(), v
	p, err := picture.Seen(ctx, v, id)
	if err == nil {
		j.last = p
	}
	return p, err
}

// pictureOf is how a thread looks now; where that can't be read, how it looked last.
func (j *job) pictureOf(ctx context.Context, id gitcas.ThreadID) *picture.Picture {
	p, err := j.look(ctx, id)
	if err != nil {
		if !errors.Is(err, gitcas.ErrUnknownThread) { // it is over: what was last is to be shown
			j.warn("the thread can't be shown as it is now", err)
		}
		if j.last == nil || j.last.ID != id {
			return nil
		}
		return j.last
	}
	return p
}

// advance starts the next job.
func (j *job) advance(ctx context.Context, res thread.Result) error {
	p, err := j.look(ctx, res.Thread)
	switch {
	case errors.Is(err, gitcas.ErrUnknownThread):
		return j.quiet(fmt.Sprintf("thread %s was ended without this job", res.Thread))
	case err != nil: // how it looked before its step says nothing of now
		j.warn("the thread can't be shown as it is now", err)
		p = nil
	case p.Entry.Head != res.Head || p.Entry.Status != gitcas.StatusActive:
		return j.quiet(fmt.Sprintf("thread %s has gone on, or was made to wait, without this job", res.Thread))
	default:
		j.tell(ctx, p, j.view(p, report.Queued))
	}
	return j.dispatch(ctx, res.Thread, res.Pin(), p)
}

// waits tells that a person has to do something.
func (j *job) waits(ctx context.Context, res thread.Result) error {
	j.out.Status = string(gitcas.StatusSuspended)
	reason := ""
	if res.Suspended != nil {
		reason = res.Suspended.Reason
	}
	if p := j.pictureOf(ctx, res.Thread); p != nil && p.Entry.Status == gitcas.StatusSuspended {
		t, label := j.view(p, report.Waiting), labelWaiting
		if failures(p.Entry) >= life.MaxAttempts {
			t.State, label = report.Failed, labelFailed
			t.Failure = countTries(p.Entry)
			t.Failure.Role, t.Failure.Message, t.Failure.Advice = t.Role, t.Question, "Comment /uwf retry to try again."
			t.Question = ""
		}
		j.tell(ctx, p, t)
		j.mark(ctx, p, label)
		j.record(ctx, p)
	}
	return j.quiet(fmt.Sprintf("thread %s waits for a person: %s", res.Thread, firstLine(reason)))
}

// failures are the attempts at the thread's next step that count.
func failures(e gitcas.Entry) int {
	n := len(e.Attempts)
	if e.Next != nil {
		n -= e.Next.Forgiven
	}
	return max(n, 0)
}

// stopped ends a job whose step gave an error, green or red.
func (j *job) stopped(ctx context.Context, res thread.Result, expect node.Pin, err error) error {
	var limit *life.LimitError
	switch life.KindOf(err) {
	case life.KindNotYours:
		if res.Deliver && (expect.Hash == "" || expect.Hash == res.Head) {
			return j.deliver(ctx, res.Thread, res.Pin())
		}
		var moved *life.NotYoursError
		if j.in.Command == CommandCommit || errors.As(err, &moved) && moved.Kept != "" { // an agent was at work
			j.tellStopped(ctx, res.Thread)
		}
		return j.quiet(err.Error())
	case life.KindSuspended:
		if j.halted || j.Job.Attempt > 1 {
			return j.waits(ctx, res)
		}
		j.out.Status = string(gitcas.StatusSuspended)
		return j.quiet(err.Error())
	case life.KindLimit:
		if errors.As(err, &limit) {
			j.limited(ctx, res, limit)
		}
		return err
	case life.KindDamaged:
		return err
	}
	j.out.Status = "failed"
	var failed *life.FailedError
	if errors.As(err, &failed) && (failed.Attempt != "" || failed.Unsure) {
		j.failed(ctx, res.Thread, err)
		return err
	}
	if ctx.Err() != nil || errors.Is(err, wire.ErrUnreachable) || errors.Is(err, wire.ErrLostRace) {
		return err // nothing is wrong with the thread: the sweep takes it up again
	}
	return j.broken(ctx, res.Thread, cmp.Or(expect.Hash, res.Head), err)
}

// limited tells that the thread may go no further.
func (j *job) limited(ctx context.Context, res thread.Result, err *life.LimitError) {
	j.out.Status = string(gitcas.StatusSuspended)
	p := j.pictureOf(ctx, res.Thread)
	if p == nil {
		return
	}
	t := j.view(p, report.Limited)
	t.Question = err.Err.Error()
	var reached *moderator.LimitError
	if errors.As(err.Err, &reached) {
		t.Limit = reached.Limit
	}
	j.tell(ctx, p, t)
	j.mark(ctx, p, labelWaiting)
	j.record(ctx, p)
}

// failed tells that the step failed, and what was kept of it.
func (j *job) failed(ctx context.Context, id gitcas.ThreadID, err error) {
	p := j.pictureOf(ctx, id)
	if p == nil {
		return
	}
	t := j.view(p, report.Failed)
	t.Question = ""
	t.Failure = j.failure(p, err)
	j.tell(ctx, p, t)
	j.mark(ctx, p, labelFailed)
	j.record(ctx, p)
}

// broken ends a job that could not even try: its configuration or its definition is
// wrong, or the key is missing. The next job would fare no better, so the thread is
// made to wait, and the sweep leaves it alone.
func (j *job) broken(ctx context.Context, id gitcas.ThreadID, head node.Hash, cause error) error {
	j.out.Status = "failed"
	j.out.Thread = id
	if head == "" {
		if p, err := j.look(ctx, id); err == nil {
			head = p.Entry.Head
		}
	}
	sctx, cancel := effectContext(ctx)
	defer cancel()
	done, err := j.Engine.SuspendAt(sctx, id, head, cause.Error())
	if err != nil {
		return errors.Join(cause, err)
	}
	if done {
		j.failed(ctx, id, cause)
	}
	return cause
}

// failure is an error as it is shown.
func (j *job) failure(p *picture.Picture, err error) *report.Failure {
	f := countTries(p.Entry)
	f.Message, f.ByForge, f.Advice = err.Error(), byForge(err), j.advice(err, p.Entry.Status)
	var failed *life.FailedError
	if errors.As(err, &failed) {
		f.Role, f.Phase, f.Attempt, f.Message = failed.Role, failed.Phase, failed.Attempt, failed.Err.Error()
	}
	return f
}

// countTries makes a failure with the tries that there were.
func countTries(e gitcas.Entry) *report.Failure {
	n := len(e.Attempts)
	return &report.Failure{Tries: n, Forgiven: n - failures(e), MaxTries: life.MaxAttempts}
}

// byForge reports whether an error's words are what the forge answered.
func byForge(err error) bool {
	var e *forge.Error
	return errors.As(err, &e) && e.Status != 0
}

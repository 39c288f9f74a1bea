package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// suspended suspends the thread and returns the error that the step ends with.
func (r *stepRun) suspended(ctx context.Context, reason string) (Result, error) {
	if err := r.suspend(ctx, reason); err != nil {
		return r.result(), err
	}
	return r.result(), &life.SuspendedError{Thread: r.ID, Role: r.waitingRole(), Reason: reason}
}

// suspendWith suspends a thread whose finished step can't be placed on the work
// branch; the step is kept as an attempt in the same push.
func (r *stepRun) suspendWith(ctx context.Context, d task.Draft, cause *workbranch.DivergedError) (Result, error) {
	nodes, text := r.salvage(ctx, "commit", d, cause)
	err := r.suspendPush(ctx, cause.Error(), &gitcas.Attempt{
		Thread: r.ID, Run: r.madeBy().ID, Attempt: r.madeBy().Attempt, Parents: r.workParents(),
		Nodes: nodes, WorkTree: r.salvageTree(ctx), Error: text, At: r.lease.ServerTime(),
	})
	var moved *life.NotYoursError
	switch {
	case errors.As(err, &moved):
		return r.endUncommitted(r.yielded(ctx, "commit", d, moved.Reason))
	case err != nil:
		// The work is done: whatever keeps the thread from being suspended, it is kept.
		return r.endUncommitted(r.failed(ctx, "commit", d, errors.Join(cause, err)))
	}
	r.dropFromDisk()
	return r.result(), &life.SuspendedError{Thread: r.ID, Role: r.waitingRole(), Reason: cause.Error()}
}

func (r *stepRun) waitingRole() string {
	switch {
	case r.plan.role != "":
		return r.plan.role
	case r.delivering:
		return "" // all roles are done
	}
	if n := len(r.Chain.Steps); n > 0 {
		return r.Chain.Steps[n-1].Role
	}
	return ""
}

func (r *stepRun) suspend(ctx context.Context, reason string) error {
	return r.suspendPush(ctx, reason, nil)
}

// suspendPush changes the entry and deletes this job's claim in one push: a job
// without the claim may not suspend a thread.
func (r *stepRun) suspendPush(ctx context.Context, reason string, attempt *gitcas.Attempt) error {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.CommitGrace)
	defer cancel()
	r.e.branches().CatchUp(ctx, r.View, r.ID, r.Entry.Work)
	reason = text.Cut(reason, life.MaxReason)
	var after gitcas.Entry
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(r.ID)
		if !alive || !life.SameThread(entry, r.Entry) {
			return nil, &life.NotYoursError{Thread: r.ID, Reason: "it changed before it could be suspended"}
		}
		held, claimed := v.Claim(r.ID)
		if !claimed || !r.lease.Owns(held.Claim) {
			return nil, &life.NotYoursError{Thread: r.ID, Reason: "the claim was lost before it could be suspended"}
		}
		life.LinkAttempts(&entry, r.ID, held.Died)
		r.effects(&entry)
		entry.Status, entry.Pause = gitcas.StatusSuspended, nil
		entry.Suspended = &gitcas.Suspended{Role: r.waitingRole(), Reason: reason}
		release, _ := gitcas.ClaimUpdate(r.ID, &held, nil, v.Time())
		c := &gitcas.Change{
			Subject:  story.Subject(r.Title(), r.ID, fmt.Sprintf("suspended · step %d", r.StepNumber())),
			Body:     reason,
			Trailers: story.EntryTrailers(r.ID, entry),
			Refs:     []wire.RefUpdate{release},
		}
		if attempt != nil {
			if err := r.addAttempt(c, v, "failure", *attempt, r.workObjects()); err != nil {
				return nil, err
			}
			life.LinkAttempts(&entry, r.ID, nil, gitcas.AttemptRef(r.ID, attempt.Run, attempt.Attempt))
		}
		c.Threads = map[gitcas.ThreadID]*gitcas.Entry{r.ID: &entry}
		c.Landed = func(*gitcas.View) { after = entry }
		return c, nil
	}
	v, err := r.e.update(ctx, r.View, build, r.ID)
	if err != nil {
		return err
	}
	r.View, r.Entry = v, after
	r.lease.Adopt(v)
	r.e.reached("suspend")
	r.e.observe(Event{Kind: "suspended", Thread: r.ID, Step: r.StepNumber(), Role: r.waitingRole(), Text: reason})
	return nil
}

// finish ends a thread whose moderator says so without a step: one whose last
// step was committed by an older version or another tool.
func (r *stepRun) finish(ctx context.Context) (Result, error) {
	after := r.Entry
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(r.ID)
		if !alive {
			return nil, r.e.gone(ctx, v, r.ID)
		}
		held, claimed := v.Claim(r.ID)
		if !life.SameThread(entry, r.Entry) || !claimed || !r.lease.Owns(held.Claim) {
			return nil, &life.NotYoursError{Thread: r.ID, Reason: "it changed before it could be ended"}
		}
		release, _ := gitcas.ClaimUpdate(r.ID, &held, nil, v.Time())
		r.effects(&entry)
		entry.Status = gitcas.StatusEnded
		entry.Next, entry.Pause, entry.Attempts = nil, nil, nil
		if r.req.Deliver {
			entry.Deliver, entry.Since = true, v.Time().UnixMilli()
		}
		c := &gitcas.Change{
			Subject:  story.Subject(r.Title(), r.ID, "ended"),
			Trailers: story.EntryTrailers(r.ID, entry),
			Threads:  map[gitcas.ThreadID]*gitcas.Entry{r.ID: &entry},
			Refs:     []wire.RefUpdate{release},
			Landed:   func(*gitcas.View) { after = entry },
		}
		if !r.req.Deliver {
			c.Archive = []gitcas.Ended{r.ended(entry, entry.Head, gitcas.ReasonEnded, "")}
		}
		return c, nil
	}
	v, err := r.e.update(ctx, r.View, build, r.ID)
	if err != nil {
		return r.result(), err
	}
	r.View = v
	r.lease.Adopt(v)
	res := r.result()
	res.tell(after)
	res.Status, res.Done = string(gitcas.StatusEnded), true
	return res, nil
}

// Cancel ends a thread for good: it never runs again. A job that works on it
// finds its claim gone and keeps what it has as an attempt.
func (e *Engine) Cancel(ctx context.Context, id gitcas.ThreadID, reason string) (gitcas.Ended, error) {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return gitcas.Ended{}, fmt.Errorf("cancel thread %s: %w", id, err)
	}
	if entry, alive := v.Entry(id); alive {
		e.branches().CatchUp(ctx, v, id, entry.Work)
	}
	var line gitcas.Ended
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		c, l, err := e.cancelChange(ctx, v, id, reason)
		if c != nil {
			c.Landed = func(*gitcas.View) { line = l }
		} else {
			line = l
		}
		return c, err
	}
	if _, err := e.update(ctx, v, build, id); err != nil {
		return gitcas.Ended{}, err
	}
	e.reached("cancel")
	return line, nil
}

func (e *Engine) cancelChange(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, note string) (*gitcas.Change, gitcas.Ended, error) {
	entry, alive := v.Entry(id)
	if !alive {
		ended, ok, err := e.Store.FindEnded(ctx, v, id)
		switch {
		case err != nil:
			return nil, ended, err
		case !ok:
			return nil, ended, life.NewUnknownThreadError(v, id)
		case ended.Reason == gitcas.ReasonCancelled:
			return nil, ended, nil // cancelled is cancelled, whoever did it
		}
		return nil, ended, &life.NotYoursError{Thread: id, Reason: life.DescribeEnd(ended)}
	}
	chain, err := v.Chain(ctx, id)
	if err != nil {
		return nil, gitcas.Ended{}, err
	}
	steps := make([]node.Hash, 0, len(chain.Steps))
	for _, s := range chain.Steps {
		steps = append(steps, s.Hash)
	}
	clean, _, err := e.Redact.Value(note)
	if err != nil {
		return nil, gitcas.Ended{}, fmt.Errorf("check the reason for secrets: %w", err)
	}
	note, _ = clean.(string)
	note = text.Cut(note, life.MaxReason)
	line := gitcas.Ended{
		Thread: id, Workflow: chain.Start.Workflow, Head: entry.Head, CompletedAt: v.Time().UnixMilli(),
		Reason: gitcas.ReasonCancelled, Note: note, Key: entry.Key, Steps: steps, PR: entry.PR, Work: entry.Work,
		Title: entry.Title, By: entry.By, ClosedBy: e.By.OnRecord(), Used: e.costOf(ctx, v, id),
		Commit: v.Tip().String(),
	}
	c := &gitcas.Change{
		Subject:  story.Subject(entry.Title, id, fmt.Sprintf("cancelled · step %d", len(steps))),
		Body:     note,
		Trailers: story.EntryTrailers(id, entry),
		Archive:  []gitcas.Ended{line},
	}
	if held, claimed := v.Claim(id); claimed {
		release, _ := gitcas.ClaimUpdate(id, &held, nil, v.Time())
		c.Refs = append(c.Refs, release)
	}
	return story.Sign(c, e.By), line, nil
}

// costOf is what a thread took so far, with the attempts at its next step that failed;
// nil where that can't be read.
func (e *Engine) costOf(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) *gitcas.Cost {
	r, t, err := attempt.CountWithChain(ctx, e.Store, v, id)
	if err != nil {
		return nil
	}
	cost := story.CostOf(t)
	cost.Steps = len(r.Chain.Steps)
	return &cost
}

// gone says why a thread is not alive: it has ended, or there never was one.
func (e *Engine) gone(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	ended, ok, err := e.Store.FindEnded(ctx, v, id)
	switch {
	case err != nil:
		return fmt.Errorf("look for thread %s among the ended ones: %w", id, err)
	case !ok:
		return life.NewUnknownThreadError(v, id)
	}
	return &life.NotYoursError{Thread: id, Reason: life.DescribeEnd(ended)}
}

// Suspend makes a thread wait, on a person's word. A job that works on it finds
// its claim gone and keeps what it has as an attempt.
func (e *Engine) Suspend(ctx context.Context, id gitcas.ThreadID, reason string) error {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("suspend thread %s: %w", id, err)
	}
	if entry, alive := v.Entry(id); alive {
		e.branches().CatchUp(ctx, v, id, entry.Work)
	}
	clean, _, err := e.Redact.Value(reason)
	if err != nil {
		return fmt.Errorf("check the reason for secrets: %w", err)
	}
	reason, _ = clean.(string)
	reason = text.Cut(reason, life.MaxReason)
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		switch {
		case !alive:
			return nil, e.gone(ctx, v, id)
		case entry.Status != gitcas.StatusActive:
			return nil, &life.NotYoursError{Thread: id, Reason: "its status is " + string(entry.Status)}
		}
		return story.Sign(suspendChange(v, id, entry, reason, e.By), e.By), nil
	}
	if _, err := e.update(ctx, v, build, id); err != nil {
		return err
	}
	e.reached("suspend")
	return nil
}

// suspendChange makes a thread wait and deletes its claim, in one push.
func suspendChange(v *gitcas.View, id gitcas.ThreadID, entry gitcas.Entry, reason string, p *story.Person) *gitcas.Change {
	role := ""
	if entry.Next != nil {
		role = entry.Next.Role
	}
	entry.Status, entry.Pause, entry.Suspended = gitcas.StatusSuspended, nil, &gitcas.Suspended{Role: role, Reason: reason, By: p.OnRecord()}
	c := &gitcas.Change{
		Subject:  story.Subject(entry.Title, id, "suspended before "+text.OneLine(role)),
		Body:     reason,
		Trailers: story.EntryTrailers(id, entry),
		Threads:  map[gitcas.ThreadID]*gitcas.Entry{id: &entry},
	}
	if held, claimed := v.Claim(id); claimed {
		if (held.For == life.ForDelivery) == entry.Deliver {
			life.LinkAttempts(&entry, id, held.Died)
		}
		release, _ := gitcas.ClaimUpdate(id, &held, nil, v.Time())
		c.Refs = append(c.Refs, release)
	}
	return c
}

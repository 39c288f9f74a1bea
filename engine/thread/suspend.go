package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// Suspend makes a thread wait, on a person's word. A job that works on it finds
// its claim gone and keeps what it has as an attempt.
func (e *Engine) Suspend(ctx context.Context, id gitcas.ThreadID, reason string) error {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("suspend thread %s: %w", id, err)
	}
	if entry, alive := v.Entry(id); alive {
		e.Branches().CatchUp(ctx, v, id, entry.Work)
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
			return nil, e.ExplainAbsence(ctx, v, id)
		case entry.Status != gitcas.StatusActive:
			return nil, &life.NotYoursError{Thread: id, Reason: "its status is " + string(entry.Status)}
		}
		return story.Sign(suspendChange(v, id, entry, reason, e.By), e.By), nil
	}
	if _, err := e.Update(ctx, v, build, id); err != nil {
		return err
	}
	e.Reached("suspend")
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

// SuspendAt makes a thread wait for a person when nobody will go on with it, as when
// the job that should was refused: only where it is still at that head, and nobody
// works on it. Else, and where it waits or is over already, nothing is done. An ended
// thread waits for its delivery then. One whose own nodes can't be read waits, too.
func (e *Engine) SuspendAt(ctx context.Context, id gitcas.ThreadID, head node.Hash, reason string) (done bool, err error) {
	clean, _, err := e.Redact.Value(reason)
	if err != nil {
		return false, fmt.Errorf("check the reason for secrets: %w", err)
	}
	reason, _ = clean.(string)
	reason = text.Cut(reason, life.MaxReason)
	ids := []gitcas.ThreadID{id}
	v, err := e.Store.Load(ctx, ids...)
	if errors.Is(err, gitcas.ErrDamaged) {
		ids = nil
		v, err = e.Store.Load(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("suspend thread %s: %w", id, err)
	}
	if entry, alive := v.Entry(id); alive && entry.Head == head {
		e.Branches().CatchUp(ctx, v, id, entry.Work)
	}
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		pending := entry.Status == gitcas.StatusActive || entry.Status == gitcas.StatusEnded && entry.Deliver
		held, claimed := v.Claim(id)
		if !alive || entry.Head != head || !pending || claimed && held.Head == entry.Head && !e.Leases().IsSurelyDead(v, held.Claim) {
			return nil, nil
		}
		c := suspendChange(v, id, entry, reason, nil)
		c.Landed = func(*gitcas.View) { done = true }
		return c, nil
	}
	if _, err := e.Update(ctx, v, build, ids...); err != nil {
		return false, fmt.Errorf("suspend thread %s: %w", id, err)
	}
	if done {
		e.Reached("suspend")
	}
	return done, nil
}

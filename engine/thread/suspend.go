package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// Suspend makes a thread wait, on a person's word. A job that works on it finds
// its claim gone and keeps what it has as an attempt.
func (e *Engine) Suspend(ctx context.Context, id gitcas.ThreadID, reason string) error {
	reason, err := cleanReason(e.Redact, reason)
	if err != nil {
		return err
	}
	_, err = e.performDeed(ctx, id, life.Suspend, func(v *gitcas.View, s life.Standing) (*gitcas.Change, error) {
		return suspendChange(v, id, s.Entry, reason, e.By), nil
	})
	if err == nil {
		e.Reached("suspend")
	}
	return err
}

// suspendChange makes a thread wait and deletes its claim, in one push.
func suspendChange(v *gitcas.View, id gitcas.ThreadID, entry gitcas.Entry, reason string, p *story.Person) *gitcas.Change {
	role := ""
	if entry.Next != nil {
		role = entry.Next.Role
	}
	life.MakeWait(&entry, role, reason, p.OnRecord())
	life.NoteClaim(&entry, v, id)
	c := &gitcas.Change{}
	if held, claimed := dropClaim(c, v, id); claimed && (held.For == life.ForDelivery) == entry.Deliver {
		life.LinkAttempts(&entry, id, held.Died)
	}
	return story.SetEntry(c, id, entry, "suspended before "+text.OneLine(role), reason, p)
}

// dropClaim deletes a thread's claim with a change; false: there is none.
func dropClaim(c *gitcas.Change, v *gitcas.View, id gitcas.ThreadID) (gitcas.Held, bool) {
	held, claimed := v.FindClaim(id)
	if claimed {
		c.Refs = append(c.Refs, lease.DropClaim(id, held))
	}
	return held, claimed
}

// SuspendAt makes a thread wait for a person when nobody will go on with it, as when
// the job that should was refused: only where it is still at that head, and nobody
// works on it. Else, and where it waits or is over already, nothing is done. An ended
// thread waits for its delivery then. One whose own nodes can't be read waits, too.
func (e *Engine) SuspendAt(ctx context.Context, id gitcas.ThreadID, head node.Hash, reason string) (done bool, err error) {
	if reason, err = cleanReason(e.Redact, reason); err != nil {
		return false, err
	}
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
		held, claimed := v.FindClaim(id)
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

package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workbranch"
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
	c := &gitcas.Change{}
	if held, claimed := dropClaim(c, v, id); claimed && (held.For == life.ForDelivery) == entry.Deliver {
		life.LinkAttempts(&entry, id, held.Died)
	}
	return story.SetEntry(c, id, entry, "suspended before "+text.OneLine(role), reason, p)
}

// dropClaim deletes a thread's claim with a change; false: there is none.
func dropClaim(c *gitcas.Change, v *gitcas.View, id gitcas.ThreadID) (gitcas.Held, bool) {
	held, claimed := v.Claim(id)
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

// Pause makes a thread wait before its next step. A step that runs is left alone:
// it is committed, and the thread waits after it.
//
// It takes two pushes. The first asks for the pause in the thread's entry; a commit
// takes no offence at that, and nobody who reads it begins a step. The second, with
// the thread's claim in hand, makes the thread suspended: it is left to the job that
// works on the thread where there is one.
func (e *Engine) Pause(ctx context.Context, id gitcas.ThreadID, reason string) error {
	reason, err := cleanWords(e.Redact, "reason", reason)
	if err != nil {
		return err
	}
	pause := gitcas.Pause{Reason: cmp.Or(text.Cut(reason, life.MaxReason), life.PausedByPerson), By: e.By.OnRecord()}
	v, err := e.performDeed(ctx, id, life.Pause, func(_ *gitcas.View, s life.Standing) (*gitcas.Change, error) {
		if s.Entry.Pause != nil && reflect.DeepEqual(*s.Entry.Pause, pause) {
			return nil, nil
		}
		s.Entry.Pause = &pause
		return story.SetEntry(&gitcas.Change{}, id, s.Entry, "to be paused", pause.Reason, e.By), nil
	})
	if err != nil {
		return err
	}
	e.Reached("pause asked")
	return e.suspendIfPaused(ctx, v, id)
}

// suspendIfPaused suspends a thread that is to pause, unless a step of it runs.
func (e *Engine) suspendIfPaused(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	v, err := e.Store.Reload(ctx, v, id)
	if err != nil {
		return fmt.Errorf("the pause of thread %s is noted, and holds from its next step on; but: %w", id, err)
	}
	entry, alive := v.Entry(id)
	if !alive || entry.Pause == nil || entry.Status != gitcas.StatusActive {
		return nil // the running step was over, or somebody else was faster
	}
	if held, claimed := v.Claim(id); claimed && e.Leases().Counts(v, held.Claim, entry) {
		return nil // whoever holds it sees to it
	}
	e.Branches().CatchUp(ctx, v, id, workbranch.Of(id, entry))
	err = e.withClaim(ctx, v, id, forDeed(life.Pause), func(_ *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
		if entry.Pause == nil {
			return nil, nil
		}
		pause, role := *entry.Pause, life.WaitingRole(*entry)
		life.ApplyPause(entry, role)
		var by *story.Person
		if reflect.DeepEqual(pause.By, e.By.OnRecord()) { // else somebody paused it at the same time
			by = e.By
		}
		return story.SetEntry(&gitcas.Change{}, id, *entry, "suspended before "+text.OneLine(role), pause.Reason, by), nil
	})
	if life.KindOf(err) == life.KindNotYours {
		return nil // somebody works on it after all: the same holds
	}
	return err
}

package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
)

// withClaim changes a thread's entry while no job works on it: with the thread's claim
// in hand, which goes in the same push. change gets the entry, in which the jobs
// that died are linked already, and completes the push; nil: nothing is to be done.
// It is asked again after a lost race, always about the same entry.
func (e *Engine) withClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t lease.Terms,
	change func(v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error),
) error {
	do := string(t.Purpose)
	v, h, err := e.Claim(ctx, v, id, t)
	if err != nil {
		return explainBusy(id, t.Purpose, err)
	}
	defer h.Release(ctx)
	e.Reached(do + " claimed")
	before, _ := v.Entry(id)
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		held, claimed := v.Claim(id)
		if !alive || !life.SameThread(entry, before) || !claimed || !h.Owns(held.Claim) {
			return nil, life.Refuse(t.Purpose, id, "it changed meanwhile", life.LookAgain(id))
		}
		life.LinkAttempts(&entry, id, held.Died)
		asked := entry.Pause
		c, err := change(v, &entry)
		if err != nil || c == nil {
			return nil, err
		}
		if before.Pause == nil && entry.Status == gitcas.StatusActive {
			entry.Pause = asked // since the claim, by somebody who left it to whoever holds that
		}
		c.Threads = map[gitcas.ThreadID]*gitcas.Entry{id: &entry}
		c.Refs = append(c.Refs, lease.Drop(id, held))
		return c, nil
	}
	v, err = e.Update(ctx, v, build, id)
	if err != nil {
		return err
	}
	h.Adopt(v)
	e.Reached(do)
	return nil
}

// forDeed are the terms under which a person does something with a thread.
func forDeed(d life.Deed) lease.Terms { return lease.Terms{Purpose: d, Work: lease.DeedTime} }

// explainBusy says what a person does with a thread that could not be claimed.
func explainBusy(id gitcas.ThreadID, d life.Deed, err error) error {
	var refused *life.Error
	var by *life.ClaimedError
	switch {
	case !errors.As(err, &refused):
		return fmt.Errorf("%s thread %s: %w", d, id, err)
	case errors.As(err, &by):
		refused.Next = (&life.Standing{Thread: id, Alive: true, Claim: &by.Claim}).Next(d)
	default:
		refused.Next = []life.Verb{life.LookAgain(id)}
	}
	return refused
}

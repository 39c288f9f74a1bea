package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
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
		held, claimed := v.FindClaim(id)
		if !alive || !life.SameThread(entry, before) || !claimed || !h.Owns(held.Claim) {
			return nil, life.Refuse(t.Purpose, id, "it changed meanwhile", life.NewLookAgainVerb(id))
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
		c.Refs = append(c.Refs, lease.DropClaim(id, held))
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

// performDeed does a deed in one push, where it may be done. What cuts off a job at work leaves its
// work branch with all commits of the thread. build is asked again after a lost race.
func (e *Engine) performDeed(ctx context.Context, id gitcas.ThreadID, d life.Deed, build func(v *gitcas.View, s life.Standing) (*gitcas.Change, error)) (*gitcas.View, error) {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("%s thread %s: %w", d, id, err)
	}
	if entry, alive := v.Entry(id); alive && (d == life.Cancel || d == life.Suspend) {
		e.Branches().CatchUp(ctx, v, id, entry.Work)
	}
	return e.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		s, err := e.Judge(ctx, v, id, d)
		if err != nil {
			return nil, err
		}
		return build(v, s)
	}, id)
}

// forDeed are the terms under which a person does something with a thread.
func forDeed(d life.Deed) lease.Terms { return lease.Terms{Purpose: d, Work: lease.DeedTime} }

// explainBusy says what a person does with a thread that could not be claimed.
func explainBusy(id gitcas.ThreadID, d life.Deed, err error) error {
	var refused *life.DeedError
	var by *life.ClaimedError
	switch {
	case !errors.As(err, &refused):
		return fmt.Errorf("%s thread %s: %w", d, id, err)
	case errors.As(err, &by):
		refused.Next = (&life.Standing{Thread: id, Alive: true, Claim: &by.Claim}).Next(d)
	default:
		refused.Next = []life.Verb{life.NewLookAgainVerb(id)}
	}
	return refused
}

// Judge is how a thread stands in a view, and the error that says why a deed may not be done
// with it now, and what else may: see docs/states.md.
func (e *Engine) Judge(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, d life.Deed) (life.Standing, error) {
	s := life.Standing{Thread: id}
	if s.Entry, s.Alive = v.Entry(id); s.Alive {
		e.noteClaim(v, &s, d)
	} else {
		var err error
		if s.Ended, err = reading.FindEnded(ctx, v, id); err != nil {
			return s, err
		}
	}
	err := s.Judge(d)
	if len(life.NextOf(err)) > 0 { // they hang on more than was read
		e.noteOutlook(ctx, v, &s)
		err = s.Judge(d)
	}
	return s, err
}

// noteClaim notes who works on a thread, or died on it. Any claim can be taken.
func (e *Engine) noteClaim(v *gitcas.View, s *life.Standing, d life.Deed) {
	held, claimed := v.FindClaim(s.Thread)
	purpose := life.Deed("")
	if s.Entry.Deliver {
		purpose = life.Deliver
	}
	switch {
	case claimed && d == life.Take:
		s.Claim = &held.Claim
	case !claimed || held.Head != s.Entry.Head:
	case !e.Leases().IsAlive(v, held.Claim):
		_, s.Died = lease.RecordDeadClaim(v, s.Thread, held, purpose)
	default:
		s.Claim = &held.Claim
	}
}

// noteOutlook notes what a person can do with a thread, as far as that can be read.
func (e *Engine) noteOutlook(ctx context.Context, v *gitcas.View, s *life.Standing) {
	switch s.FindState() {
	case life.Ended:
		t, _, err := reading.ReadAnywhere(ctx, v, s.Thread)
		s.Reopens = err == nil && t.Def.Resume != nil
	case life.Active, life.Failed:
		s.Limit = e.limitAhead(ctx, v, s.Thread)
		if sum, err := v.ReadSummary(ctx, s.Thread); err == nil {
			s.Steps = sum.Used.Steps
		}
	}
}

// limitAhead is the limit that a thread's next step will find reached; nil: none.
func (e *Engine) limitAhead(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	t, err := reading.Read(ctx, v, id)
	if err != nil {
		return nil //nolint:nilerr // the next step will say
	}
	role := life.WaitingRole(t.Entry)
	used, err := attempt.NewLedger(e.Store, t, role).CountUsed(ctx, t.Entry.Attempts)
	if err != nil {
		return nil //nolint:nilerr // the next step will say
	}
	return LimitsOf(e.Settings, t).Check(used, role)
}

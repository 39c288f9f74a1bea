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
func (e *Engine) withClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, do string,
	change func(v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error),
) error {
	return e.withClaimOn(ctx, v, id, lease.Terms{Purpose: do, Work: lease.DeedTime}, change)
}

// withClaimOn is withClaim with the terms of the claim.
func (e *Engine) withClaimOn(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t lease.Terms,
	change func(v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error),
) error {
	do := t.Purpose
	v, h, err := e.Claim(ctx, v, id, t)
	if err != nil {
		return explainBusy(id, do, err)
	}
	defer h.Release(ctx)
	e.Reached(do + " claimed")
	before, _ := v.Entry(id)
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		held, claimed := v.Claim(id)
		if !alive || !life.SameThread(entry, before) || !claimed || !h.Owns(held.Claim) {
			return nil, &life.RefusedError{Thread: id, Do: do, Reason: "it changed meanwhile", Advice: "look at it and try again: uwf thread show " + string(id)}
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
		release, _ := gitcas.ClaimUpdate(id, &held, nil, v.Time())
		c.Threads = map[gitcas.ThreadID]*gitcas.Entry{id: &entry}
		c.Refs = append(c.Refs, release)
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

// explainBusy says in a person's words that a thread could not be claimed.
func explainBusy(id gitcas.ThreadID, do string, err error) error {
	var claimed *life.ClaimedError
	var moved *life.NotYoursError
	switch {
	case errors.As(err, &claimed):
		refused := &life.RefusedError{Thread: id, Do: do, Reason: claimed.Error(), Advice: "wait until that step is over: uwf thread wait " + string(id), Cause: claimed}
		if claimed.For != "" {
			refused.Advice = "look at it and try again: uwf thread show " + string(id)
		}
		if do == life.ForRetry {
			refused.Advice += "\nif whoever it is is dead: uwf thread retry --take " + string(id)
		}
		return refused
	case errors.As(err, &moved):
		return &life.RefusedError{Thread: id, Do: do, Reason: moved.Reason, Advice: "look at it and try again: uwf thread show " + string(id), Cause: err}
	}
	return fmt.Errorf("%s thread %s: %w", do, id, err)
}

// readAlive returns the entry of a thread that is to be changed, or why that can't be.
func (e *Engine) readAlive(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, do string) (gitcas.Entry, error) {
	entry, alive := v.Entry(id)
	switch {
	case !alive:
		ended, ok, err := e.Store.FindEnded(ctx, v, id)
		switch {
		case err != nil:
			return entry, fmt.Errorf("look for thread %s among the ended ones: %w", id, err)
		case !ok:
			return entry, life.NewUnknownThreadError(v, id)
		}
		return entry, &life.RefusedError{Thread: id, Do: do, Reason: life.DescribeEnd(ended), Advice: adviser{e}.adviseAfterEnd(ctx, v, ended)}
	case entry.Status == gitcas.StatusEnded:
		return entry, &life.RefusedError{Thread: id, Do: do, Reason: "it has ended and is being delivered"}
	}
	return entry, nil
}

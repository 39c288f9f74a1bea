package thread

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
)

// leases claims threads for this job.
func (e *Engine) leases() *lease.Keeper {
	return &lease.Keeper{
		Store: e.Store, Clock: e.Clock, Who: e.Who, NewNonce: e.Nonce, Released: &e.released, Reached: e.reached,
		Notice: func(id gitcas.ThreadID, text string) { e.observe(Event{Kind: "notice", Thread: id, Text: text}) },
	}
}

// branches are the work branches of the store's remote.
func (e *Engine) branches() *workbranch.Branches {
	return &workbranch.Branches{Store: e.Store, Clock: e.Clock}
}

// claim takes the thread, as it stands in v, for this job. The returned view is
// a fresh one, read after the claim was won; the entry in it equals v's.
func (e *Engine) claim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t lease.Terms) (*gitcas.View, *lease.Lease, error) {
	won, l, err := e.winClaim(ctx, v, id, t)
	if err != nil {
		return nil, nil, err
	}
	fresh, err := l.Recheck(ctx, won)
	return fresh, l, err
}

// winClaim is claim without the second look.
func (e *Engine) winClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t lease.Terms) (*gitcas.View, *lease.Lease, error) {
	won, l, err := e.leases().Win(ctx, v, id, t)
	if err != nil && !errors.Is(err, gitcas.ErrUnsure) {
		e.dropClaim(ctx, v, id)
	}
	return won, l, err
}

// dropClaim deletes a claim of this job that v shows: one whose process ended before it
// could. A step that had begun under it on the thread's head counts as an attempt, and what
// it used; where that can't be written down the claim stays, for who claims the thread next.
func (e *Engine) dropClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) {
	held, claimed := v.Claim(id)
	if !claimed || !e.leases().IsLeftBehind(v, held.Claim) {
		return
	}
	if held.For == "" {
		ctx, cancel := deadline.Outlive(ctx, 0, deadline.ReleaseGrace)
		defer cancel()
		var err error
		if v, err = e.FreeClaim(ctx, v, id); err != nil {
			return
		}
		if held, claimed = v.Claim(id); !claimed || !e.leases().IsLeftBehind(v, held.Claim) {
			return
		}
	}
	e.leases().Release(ctx, id, held)
}

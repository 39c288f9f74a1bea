package step

import (
	"context"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
)

// ClaimAhead claims a thread, as a view shows it, for the jobs that the caller starts for its
// next step: each gives the nonce to its Request. It is to be released where they can't be
// started. Nil: that step runs no agent, so that there is nothing to be claimed for.
func (e *Stepper) ClaimAhead(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*lease.Lease, error) {
	r := newTurn(e, Request{Thread: id})
	r.Thread = *reading.Locate(ctx, v, id)
	if _, _, err := r.checkUnclaimed(ctx); err != nil {
		return nil, e.CleanError(err)
	}
	if err := r.decideRole(ctx); err != nil {
		return nil, e.CleanError(err)
	}
	if r.plan.role == "" || r.plan.suspend != "" || r.plan.limit != nil {
		return nil, nil //nolint:nilnil,nilerr // no agent: a limit is for that step to tell
	}
	t := r.claimTerms()
	t.Ahead = true
	// Whoever works under it reads the thread anew, as recheck does.
	_, h, err := e.WinClaim(ctx, v, id, t)
	if err != nil {
		return nil, e.CleanError(err)
	}
	return h, nil
}

// takeAhead goes on with the claim that was made ahead for this step, if it is on the thread.
func (r *turn) takeAhead() bool {
	l := r.e.Leases().Continue(r.View, r.ID, r.req.Nonce, r.claimTerms().Budget)
	if l != nil {
		r.Lease = l
	}
	return l != nil
}

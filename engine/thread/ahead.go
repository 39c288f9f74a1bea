package thread

import (
	"context"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
)

// Agents may run in a job that can push nothing. Then whoever starts that job claims the
// thread for it: the claim's nonce travels with the start, and both jobs of that run, the one
// with the agent and the one that commits, own the claim by it. It is made ahead, so it allows
// for the time that both wait for a runner; and as it is not renewed, all that the agent may
// use is charged where the jobs die.

// ClaimAhead claims a thread, as a view shows it, for the jobs that the caller starts for its
// next step: each gives the nonce to its StepRequest. It is to be released where they can't be
// started. Nil: that step runs no agent, so that there is nothing to be claimed for.
func (e *Engine) ClaimAhead(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*lease.Lease, error) {
	r := newRun(e, StepRequest{Thread: id})
	r.Thread = *reading.Locate(ctx, v, id)
	if _, _, err := r.beforeClaim(ctx); err != nil {
		return nil, e.cleanError(err)
	}
	if err := r.decide(ctx); err != nil {
		return nil, e.cleanError(err)
	}
	if r.plan.role == "" || r.plan.suspend != "" || r.plan.limit != nil {
		return nil, nil //nolint:nilnil,nilerr // no agent: a limit is for that step to tell
	}
	t := r.terms()
	t.Ahead = true
	// Whoever works under it reads the thread anew, as recheck does.
	_, h, err := e.winClaim(ctx, v, id, t)
	if err != nil {
		return nil, e.cleanError(err)
	}
	return h, nil
}

// takeAhead goes on with the claim that was made ahead for this step, if it is on the thread.
func (r *stepRun) takeAhead() bool {
	l := r.e.leases().Continue(r.View, r.ID, r.req.Nonce, r.terms().Budget)
	if l != nil {
		r.lease = l
	}
	return l != nil
}

package thread

import (
	"context"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// A job that does several steps of a thread pushes each step together with its claim for
// the next one: pushes are scarce. n steps so take n+1 of them.

// HeldClaim is the claim of a thread's next step, which went out with a step's commit. It
// is to be given to that step, see StepRequest.Held, or released.
type HeldClaim struct{ h *hold }

// Release lets the thread go, where no next step is taken after all. Nil is none.
func (c *HeldClaim) Release(ctx context.Context) {
	if c != nil {
		c.h.release(ctx)
	}
}

// nextClaim is a claim that is to go out with a step's commit.
type nextClaim struct {
	h *hold
	t terms
}

// Nonce tells the claim from all others; empty where there is none.
func (c *HeldClaim) Nonce() string {
	if c == nil {
		return ""
	}
	return c.h.nonce
}

// planNext decides, before a step is committed, whether this job takes the next one at
// once: whoever asked for this step says so, and the limits leave something for it.
func (r *stepRun) planNext(next verdict, usage *record.Usage) (*nextClaim, error) {
	if r.req.Next == nil || next.role == "" {
		return nil, nil
	}
	after := newRun(r.e, r.req)
	after.entry, after.def, after.used, after.plan = r.entry, r.def, r.used, next.plan
	after.used.Add(r.task.Role, usage)
	if limit := after.limits().Check(after.used, next.role); limit != nil {
		return nil, nil //nolint:nilerr // the next job finds it, and says so
	}
	who, goesOn := r.req.Next()
	if !goesOn {
		return nil, nil
	}
	t := after.terms()
	t.ahead = r.req.Ahead
	h, err := r.e.newHold(r.id, who, t)
	return &nextClaim{h, t}, err
}

// exchange is the update of the thread's claim that goes out with a step's commit: away, or,
// where n is not nil, to that of the next step.
func (n *nextClaim) exchange(v *gitcas.View, id gitcas.ThreadID, held gitcas.Held, head node.Hash) (wire.RefUpdate, []wire.PackObject, gitcas.Held) {
	if n == nil {
		upd, _ := gitcas.ClaimUpdate(id, &held, nil, v.Time())
		return upd, nil, gitcas.Held{}
	}
	c := n.h.newClaim(v, head, n.t)
	upd, objs := gitcas.ClaimUpdate(id, &held, &c, v.Time())
	return upd, objs, gitcas.Held{ID: upd.New, Claim: c}
}

// takeUp goes on with the claim that went out with the step before, if it is still on the
// thread as v shows it, which was read after that.
func (r *stepRun) takeUp() bool {
	if r.req.Held == nil {
		return false
	}
	h := r.hold
	h.adopt(r.v)
	held, ok := h.current()
	if !ok || held.Head != r.entry.Head {
		return false
	}
	h.entry, h.latest, h.budget = r.entry, r.v, r.terms().budget
	return true
}

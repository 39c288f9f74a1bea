package step

import (
	"context"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
)

// limits are those that hold for this thread.
func (r *turn) limits() moderator.Limits { return r.e.LimitsOf(&r.Thread) }

// ledger reads the attempts at this step, as of the role whose turn it is.
func (r *turn) ledger() *attempt.Ledger {
	r.tried.Role = r.plan.role
	if r.brought != nil {
		r.tried.Replaces = r.brought.replaces
	}
	return r.tried
}

// countUsed counts what the thread has used, with the attempts at this step that refs hold.
func (r *turn) countUsed(ctx context.Context, refs []string) (moderator.Totals, error) {
	return r.ledger().CountUsed(ctx, refs)
}

// budget is what the limits leave for the next step. The limits were checked
// before, so what is left is more than nothing.
func (r *turn) budget() task.Budget {
	l := r.limits()
	var b task.Budget
	if l.Tokens > 0 {
		b.Tokens = max(l.Tokens-r.used.Tokens, 1)
	}
	if l.CostUSD > 0 {
		b.CostUSD = l.CostUSD - r.used.CostUSD
	}
	return b
}

// terms are those of a claim for what was decided.
func (r *turn) terms() lease.Terms {
	t := lease.Terms{Work: r.e.Settings.Timeout()}
	if r.plan.role != "" && r.plan.suspend == "" && r.plan.limit == nil {
		t.Budget = r.budget()
	}
	return t
}

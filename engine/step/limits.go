package step

import (
	"context"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
)

// effectiveLimits are those that hold for this thread.
func (r *turn) effectiveLimits() moderator.Limits { return r.e.LimitsOf(&r.Thread) }

// attemptLedger reads the attempts at this step, as of the role whose turn it is.
func (r *turn) attemptLedger() *attempt.Ledger {
	r.tried.Role = r.plan.role
	if r.brought != nil {
		r.tried.Replaces = r.brought.replacesClaim
	}
	return r.tried
}

// countUsed counts what the thread has used, with the attempts at this step that refs hold.
func (r *turn) countUsed(ctx context.Context, refs []string) (moderator.Totals, error) {
	return r.attemptLedger().CountUsed(ctx, refs)
}

// remainingBudget is what the limits leave for the next step. The limits were checked
// before, so what is left is more than nothing.
func (r *turn) remainingBudget() task.Budget {
	l := r.effectiveLimits()
	var b task.Budget
	if l.Tokens > 0 {
		b.Tokens = max(l.Tokens-r.used.Tokens, 1)
	}
	if l.CostUSD > 0 {
		b.CostUSD = l.CostUSD - r.used.CostUSD
	}
	return b
}

// claimTerms are those of a claim for what was decided.
func (r *turn) claimTerms() lease.Terms {
	t := lease.Terms{Work: r.e.Settings.Timeout()}
	if r.plan.role != "" && r.plan.suspend == "" && r.plan.limit == nil {
		t.Budget = r.remainingBudget()
	}
	return t
}

package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/workflow"
)

// limitsOf are the limits that hold for a thread.
func (e *Engine) limitsOf(t *reading.Thread) moderator.Limits {
	return life.EffectiveLimits(e.Settings.Limits(t.Def.Name), t.Def, t.Entry.Limits)
}

// limits are those that hold for this thread.
func (r *stepRun) limits() moderator.Limits { return r.e.limitsOf(&r.Thread) }

// ledger reads the attempts at this step, as of the role whose turn it is.
func (r *stepRun) ledger() *attempt.Ledger {
	r.tried.Role = r.plan.role
	if r.brought != nil {
		r.tried.Replaces = r.brought.replaces
	}
	return r.tried
}

// countUsed counts what the thread has used, with the attempts at this step that refs hold.
func (r *stepRun) countUsed(ctx context.Context, refs []string) (moderator.Totals, error) {
	return r.ledger().CountUsed(ctx, refs)
}

// checkPrices refuses a limit on cost that can't be kept, since nobody knows what some
// role's model costs.
func (e *Engine) checkPrices(def *workflow.Definition, own map[string]float64) error {
	limit := life.EffectiveLimits(e.Settings.Limits(def.Name), def, own).CostUSD
	for _, role := range def.RoleNames() {
		if err := e.checkPrice(def.Name, role, "", limit); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) checkPrice(workflow, role, agent string, limit float64) error {
	if limit <= 0 {
		return nil
	}
	if err := e.Settings.CheckPrices(workflow, role, agent); err != nil {
		return &life.UsageError{Msg: fmt.Sprintf("a limit of $%g on the thread's cost can't be kept: role %s: %v", limit, role, err)}
	}
	return nil
}

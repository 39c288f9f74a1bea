package thread

import (
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/workflow"
)

// LimitsOf are the limits that hold for a thread.
func (e *Engine) LimitsOf(t *reading.Thread) moderator.Limits {
	return life.EffectiveLimits(e.Settings.Limits(t.Def.Name), t.Def, t.Entry.Limits)
}

// checkPrices refuses a limit on cost that can't be kept, since nobody knows what some
// role's model costs.
func (e *Engine) checkPrices(def *workflow.Definition, own map[string]float64) error {
	limit := life.EffectiveLimits(e.Settings.Limits(def.Name), def, own).CostUSD
	for _, role := range def.RoleNames() {
		if err := e.CheckPrice(def.Name, role, "", limit); err != nil {
			return err
		}
	}
	return nil
}

// CheckPrice is checkPrices of one role, with the agent that the caller chose.
func (e *Engine) CheckPrice(workflow, role, agent string, limit float64) error {
	if limit <= 0 {
		return nil
	}
	if err := e.Settings.CheckPrices(workflow, role, agent); err != nil {
		return life.Usagef("a limit of $%g on the thread's cost can't be kept: role %s: %v", limit, role, err)
	}
	return nil
}

package thread

import (
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workflow"
)

// Settings says which agent works a role, with which model, and how far a thread
// may go.
type Settings interface {
	// Agent returns the name that is recorded, and the command to run, for a role of a
	// definition.
	Agent(def *workflow.Definition, role, override string) (name, command string, err error)
	// Model returns nil where the agent needs none or none is configured.
	Model(workflow, role string) *task.Model
	// ExtractModel reads the fields of an answer that the agent could not put into
	// form after its corrections; nil: none does.
	ExtractModel(workflow, role string) *task.Model
	// CheckPrices makes sure that what a role costs can be told, whichever model it asks
	// through uwf: without that no limit on cost can be kept. The error says what to do.
	CheckPrices(workflow, role, override string) error
	// Limits of a thread of that workflow.
	Limits(workflow string) moderator.Limits
	// MonthLimits are those of all threads of the store together.
	MonthLimits() moderator.MonthLimits
	// Timeout of one agent run; 0: none.
	Timeout() time.Duration
}

// LimitsOf are the limits that hold for a thread.
func LimitsOf(s Settings, t *reading.Thread) moderator.Limits {
	return life.EffectiveLimits(s.Limits(t.Def.Name), t.Def, t.Entry.Limits)
}

// CheckCostLimit refuses a limit on cost that can't be kept, since nobody knows what some
// role's model costs.
func CheckCostLimit(s Settings, def *workflow.Definition, own map[string]float64) error {
	limit := life.EffectiveLimits(s.Limits(def.Name), def, own).CostUSD
	for _, role := range def.RoleNames() {
		if err := CheckPrice(s, def.Name, role, "", limit); err != nil {
			return err
		}
	}
	return nil
}

// CheckPrice is CheckCostLimit of one role, with the agent that the caller chose.
func CheckPrice(s Settings, workflow, role, agent string, limit float64) error {
	month := s.MonthLimits().CostUSD
	if limit <= 0 && month <= 0 {
		return nil
	}
	err := s.CheckPrices(workflow, role, agent)
	switch {
	case err == nil:
		return nil
	case limit <= 0:
		return life.Usagef("a limit of $%g on a month's cost can't be kept: role %s: %v", month, role, err)
	}
	return life.Usagef("a limit of $%g on the thread's cost can't be kept: role %s: %v", limit, role, err)
}

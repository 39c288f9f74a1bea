package thread

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
)

// limits of this thread.
func (r *stepRun) limits() moderator.Limits {
	return effective(r.e.Settings.Limits(r.def.Name), r.def.Limits, r.entry.Limits)
}

// Effective are the limits that a thread has: of the configured ones, the
// workflow's and the thread's own the lowest, each by itself, else the defaults.
func Effective(configured moderator.Limits, d *workflow.Definition, own map[string]float64) moderator.Limits {
	return effective(configured, d.Limits, own)
}

// effective limits: of the configured ones, the workflow's and the thread's own the
// lowest, each by itself. The defaults hold only where nobody set any.
func effective(configured moderator.Limits, w *workflow.Limits, own map[string]float64) moderator.Limits {
	out := lowest(configured, ownLimits(own))
	if w != nil {
		out = lowest(out, moderator.Limits(*w))
	}
	def := moderator.DefaultLimits()
	if out.MaxSteps == 0 {
		out.MaxSteps = def.MaxSteps
	}
	if out.MaxStepsPerRole == 0 {
		out.MaxStepsPerRole = def.MaxStepsPerRole
	}
	return out
}

func lowest(a, b moderator.Limits) moderator.Limits {
	return moderator.Limits{
		MaxSteps:        lower(a.MaxSteps, b.MaxSteps),
		MaxStepsPerRole: lower(a.MaxStepsPerRole, b.MaxStepsPerRole),
		Tokens:          lower(a.Tokens, b.Tokens),
		CostUSD:         lower(a.CostUSD, b.CostUSD),
		Wall:            lower(a.Wall, b.Wall),
	}
}

// lower of two limits; what is not above zero is none.
func lower[T cmp.Ordered](a, b T) T {
	var none T
	switch {
	case a <= none:
		return max(b, none)
	case b <= none:
		return a
	}
	return min(a, b)
}

// maxOwnLimit is where a thread's own limits end: every larger one is as good as
// none, and would not fit a duration.
const maxOwnLimit = 1 << 31

// ownLimits are those in a thread's entry. Anyone who can push the state branch can
// write them: nothing there takes a configured limit away.
func ownLimits(own map[string]float64) moderator.Limits {
	get := func(name string) float64 { return min(max(own[name], 0), maxOwnLimit) }
	return moderator.Limits{
		MaxSteps:        int(math.Ceil(get("maxSteps"))),
		MaxStepsPerRole: int(math.Ceil(get("maxStepsPerRole"))),
		Tokens:          int64(math.Ceil(get("tokens"))),
		CostUSD:         get("costUsd"),
		Wall:            time.Duration(get("wall") * float64(time.Second)),
	}
}

// checkPrices refuses a limit on cost that can't be kept, since nobody knows what some
// role's model costs.
func (e *Engine) checkPrices(def *workflow.Definition, own map[string]float64) error {
	limit := Effective(e.Settings.Limits(def.Name), def, own).CostUSD
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
		return &UsageError{Msg: fmt.Sprintf("a limit of $%g on the thread's cost can't be kept: role %s: %v", limit, role, err)}
	}
	return nil
}

// limitNames are the limits that a thread's entry can hold; wall is in seconds.
func limitNames() []string {
	return []string{"maxSteps", "maxStepsPerRole", "tokens", "costUsd", "wall"}
}

// checkLimits refuses limits that would do nothing.
func checkLimits(own map[string]float64) error {
	for _, name := range slices.Sorted(maps.Keys(own)) {
		n := own[name]
		if !slices.Contains(limitNames(), name) {
			return &UsageError{Msg: fmt.Sprintf("there is no limit %q; there are %s", name, strings.Join(limitNames(), ", "))}
		}
		if !(n > 0) || n > maxOwnLimit {
			return &UsageError{Msg: fmt.Sprintf("limit %s can't be %v: it is more than 0 and at most %d", name, n, maxOwnLimit)}
		}
	}
	return nil
}

// raise returns a thread's own limits with some of them raised.
func raise(own, to map[string]float64) (map[string]float64, error) {
	if len(to) == 0 {
		return own, nil
	}
	out := maps.Clone(own)
	if out == nil {
		out = make(map[string]float64, len(to))
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if was := own[name]; was > to[name] {
			return nil, &UsageError{Msg: fmt.Sprintf("limit %s of the thread is %v; resuming can only raise it, not lower it to %v", name, was, to[name])}
		}
		out[name] = to[name]
	}
	return out, nil
}

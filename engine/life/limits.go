package life

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
)

// EffectiveLimits are the limits that a thread has: of the configured ones, the workflow's and the
// thread's own the lowest, each by itself. The defaults hold only where nobody set any.
func EffectiveLimits(configured moderator.Limits, d *workflow.Definition, own map[string]float64) moderator.Limits {
	out := configured.Tighten(OwnLimits(own))
	if d.Limits != nil {
		out = out.Tighten(moderator.Limits(*d.Limits))
	}
	def := moderator.DefaultLimits()
	out.MaxSteps = cmp.Or(out.MaxSteps, def.MaxSteps)
	out.MaxStepsPerRole = cmp.Or(out.MaxStepsPerRole, def.MaxStepsPerRole)
	return out
}

// OwnLimits are those in a thread's entry. Anyone who can push the state branch can
// write them: nothing there takes a configured limit away.
func OwnLimits(own map[string]float64) moderator.Limits {
	get := func(name string) float64 { return min(max(own[name], 0), workflow.MaxLimit) }
	return moderator.Limits{
		MaxSteps:        int(math.Ceil(get("maxSteps"))),
		MaxStepsPerRole: int(math.Ceil(get("maxStepsPerRole"))),
		Tokens:          int64(math.Ceil(get("tokens"))),
		CostUSD:         get("costUsd"),
		Wall:            time.Duration(get("wall") * float64(time.Second)),
	}
}

// CheckLimits refuses limits of a thread's entry that would do nothing; wall is in seconds there.
func CheckLimits(own map[string]float64) error {
	for _, name := range slices.Sorted(maps.Keys(own)) {
		n := own[name]
		if !slices.Contains(workflow.LimitNames(), name) {
			return Usagef("there is no limit %q; there are %s", name, strings.Join(workflow.LimitNames(), ", "))
		}
		if !(n > 0) || n > workflow.MaxLimit {
			return Usagef("limit %s can't be %v: it is more than 0 and at most %d", name, n, workflow.MaxLimit)
		}
	}
	return nil
}

// RaiseLimits returns a thread's own limits with some of them raised.
func RaiseLimits(own, to map[string]float64) (map[string]float64, error) {
	if len(to) == 0 {
		return own, nil
	}
	out := maps.Clone(own)
	if out == nil {
		out = make(map[string]float64, len(to))
	}
	for _, name := range slices.Sorted(maps.Keys(to)) {
		if was := own[name]; was > to[name] {
			return nil, Usagef("limit %s of the thread is %v; resuming can only raise it, not lower it to %v", name, was, to[name])
		}
		out[name] = to[name]
	}
	return out, nil
}

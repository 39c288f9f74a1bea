package moderator_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/gitcas/record"
)

func TestLimits(t *testing.T) {
	var used moderator.Totals
	used.Add("a", &record.Usage{InputTokens: 60, OutputTokens: 40, CostUSD: 1.5, DurationMs: 90_000})
	used.Add("b", nil)
	used.Add("a", &record.Usage{InputTokens: 1, CostUSD: 0.5, DurationMs: 30_000})
	for _, tt := range []struct {
		limits moderator.Limits
		role   string
		want   string
		text   string
	}{
		{moderator.Limits{}, "a", "", ""},
		{moderator.DefaultLimits(), "a", "", ""},
		{moderator.Limits{MaxSteps: 4}, "a", "", ""},
		{moderator.Limits{MaxSteps: 3}, "c", "maxSteps", "limit maxSteps reached: the thread has used 3 steps of 3; raise limits.maxSteps to go on"},
		{moderator.Limits{MaxStepsPerRole: 2}, "a", "maxStepsPerRole", "limit maxStepsPerRole reached: role a has used 2 steps of 2; raise limits.maxStepsPerRole to go on"},
		{moderator.Limits{MaxStepsPerRole: 2}, "b", "", ""},
		{moderator.Limits{MaxStepsPerRole: 1}, "b", "maxStepsPerRole", "limit maxStepsPerRole reached: role b has used 1 step of 1; raise limits.maxStepsPerRole to go on"},
		{moderator.Limits{Tokens: 101}, "a", "tokens", "limit tokens reached: the thread has used 101 tokens of 101; raise limits.tokens to go on"},
		{moderator.Limits{Tokens: 102}, "a", "", ""},
		{moderator.Limits{CostUSD: 2}, "a", "costUsd", "limit costUsd reached: the thread has used $2.00 of $2.00; raise limits.costUsd to go on"},
		{moderator.Limits{Wall: 2 * time.Minute}, "a", "wall", "limit wall reached: the thread has used 2m0s of 2m0s; raise limits.wall to go on"},
		{moderator.Limits{Wall: 121 * time.Second}, "a", "", ""},
	} {
		err := tt.limits.Check(used, tt.role)
		var limit *moderator.LimitError
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%+v, %s: %v", tt.limits, tt.role, err)
		case tt.want != "" && (!errors.As(err, &limit) || limit.Limit != tt.want || err.Error() != tt.text):
			t.Errorf("%+v, %s: %v; want %s", tt.limits, tt.role, err, tt.text)
		}
	}
	d := moderator.DefaultLimits()
	if d.MaxSteps != 30 || d.MaxStepsPerRole != 10 {
		t.Errorf("default limits %+v", d)
	}
}

// What a stored step says of itself gives no room within the limits.
func TestTotalsOfHostileSteps(t *testing.T) {
	const most = 1<<53 - 1
	for name, u := range map[string]record.Usage{
		"less than nothing": {InputTokens: -most, OutputTokens: -most, DurationMs: -most, CostUSD: -1e15},
		"overflowing":       {InputTokens: most, OutputTokens: most, DurationMs: most, CostUSD: math.MaxFloat64},
		"largest":           {InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, DurationMs: math.MaxInt64},
	} {
		l := moderator.Limits{Tokens: 100, CostUSD: 1, Wall: time.Minute}
		for limit, one := range map[string]moderator.Limits{"tokens": {Tokens: l.Tokens}, "costUsd": {CostUSD: l.CostUSD}, "wall": {Wall: l.Wall}} {
			var totals moderator.Totals
			totals.Add("a", &record.Usage{InputTokens: 100, DurationMs: 60_000, CostUSD: 1})
			for range 10_000 {
				totals.Add("a", &u)
			}
			var reached *moderator.LimitError
			if err := one.Check(totals, "a"); !errors.As(err, &reached) || reached.Limit != limit {
				t.Errorf("%s, %s: %v, %+v", name, limit, err, totals)
			}
		}
	}
}

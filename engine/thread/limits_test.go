package thread_test

import (
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
)

func TestLimits(t *testing.T) {
	died := func(tokens int64, took time.Duration) func(*fixture) {
		return func(f *fixture) {
			c := f.other(21 * time.Minute)
			c.Tokens, c.Since = tokens, c.Renewed-took.Milliseconds()
			f.claimBy(c)
		}
	}
	fail := func(f *fixture) {
		answer := f.agent
		f.agent = f.fails
		_, err := f.step("f")
		f.code(err, life.KindFailed)
		f.agent = answer
	}
	step := func(f *fixture) { f.steps("s") }
	for name, c := range map[string]struct {
		limits moderator.Limits
		own    map[string]float64
		before func(*fixture)
		says   string // empty: within the limits
	}{
		"steps":                     {moderator.Limits{MaxSteps: 1}, nil, step, "limits.maxSteps"},
		"steps, with a failed one":  {moderator.Limits{MaxSteps: 1}, nil, fail, "limits.maxSteps"},
		"steps, with a dead one":    {moderator.Limits{MaxSteps: 1}, nil, died(0, 0), "limits.maxSteps"},
		"one step is left":          {moderator.Limits{MaxSteps: 2}, nil, step, ""},
		"per role":                  {moderator.Limits{MaxStepsPerRole: 1}, nil, fail, "role a"},
		"per role, another":         {moderator.Limits{MaxStepsPerRole: 1}, nil, step, ""},
		"tokens":                    {moderator.Limits{Tokens: 11}, nil, step, "11 tokens"},
		"tokens of a failed one":    {moderator.Limits{Tokens: 110}, nil, fail, "110 tokens"},
		"tokens of a dead one":      {moderator.Limits{Tokens: 500}, nil, died(500, 0), "500 tokens"},
		"cost":                      {moderator.Limits{CostUSD: 0.5}, nil, step, "$0.50"},
		"cost is left":              {moderator.Limits{CostUSD: 0.51}, nil, step, ""},
		"time of a dead one":        {moderator.Limits{Wall: time.Minute}, nil, died(0, 2*time.Minute), "wall"},
		"the thread's own":          {moderator.Limits{MaxSteps: 9}, map[string]float64{"maxSteps": 1}, step, "limits.maxSteps"},
		"its own is the higher one": {moderator.Limits{MaxSteps: 1}, map[string]float64{"maxSteps": 9}, step, "limits.maxSteps"},
		"its own is no number of steps": {moderator.Limits{MaxSteps: 1, Tokens: 11, Wall: time.Hour},
			map[string]float64{"maxSteps": -1, "tokens": -1, "costUsd": -1, "maxStepsPerRole": 1e300, "wall": 1e300}, step, "limits.maxSteps"},
		"a part of a step": {moderator.Limits{}, map[string]float64{"maxSteps": 0.5}, step, "limits.maxSteps"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				if c.own != nil { // by whoever can push the state branch
					f.edit(func(e *gitcas.Entry) { e.Limits = c.own })
				}
				c.before(f)
				f.limits = c.limits
				runs := len(f.runs)
				res, err := f.step("r1")
				if c.says == "" {
					f.ok(err)
					return
				}
				f.says(f.code(err, life.KindLimit), c.says)
				if len(f.runs) != runs {
					f.Error("an agent ran")
				}
				if e := f.entry(); e.Status != gitcas.StatusSuspended || res.Status != "suspended" || res.Suspended == nil {
					f.Errorf("%+v\n%+v", e, res)
				}
				f.unclaimed()
				_, err = f.step("r2")
				f.says(f.code(err, life.KindSuspended), c.says)
				f.limits = moderator.Limits{}
				if c.own == nil {
					f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: ""}))
					f.steps("r3")
				}
			})
		})
	}
}

// TestBudget: what an agent may use is what the limits leave.
func TestBudget(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.limits = moderator.Limits{Tokens: 100, CostUSD: 2}
		f.start()
		f.steps("r1", "r2")
		if a, b := f.runs[0].Budget, f.runs[1].Budget; a != (task.Budget{Tokens: 100, CostUSD: 2}) || b != (task.Budget{Tokens: 89, CostUSD: 1.5}) {
			f.Errorf("%+v, %+v", a, b)
		}
	})
}

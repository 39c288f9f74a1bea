package thread_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
)

var errNoPrice = errors.New("what the model m costs is unknown: uwf config set models.m.price.input DOLLARS")

const limited = `
name: limited
description: It may cost little.
limits: {costUsd: 2}
roles:
  a: {description: x, goal: x, capabilities: [], procedure: x, output: x, frontmatter: {type: object, required: [$status], properties: {$status: {const: done}}}}
graph:
  $START: {_: {role: a, prompt: x}}
  a: {done: {role: $END, prompt: ""}}
`

// A limit on cost that can't be kept, since nobody knows what a role's model costs, is
// refused before there is a thread, wherever it is set.
func TestCostLimitsNeedPrices(t *testing.T) {
	own := map[string]float64{"costUsd": 3}
	for name, c := range map[string]struct {
		limits moderator.Limits
		start  func(*fixture) error
		says   string
	}{
		"configured": {moderator.Limits{CostUSD: 1}, func(f *fixture) error {
			_, err := f.engine("start", 1).Start(f.Context(), startRequest(testThread))
			return err
		}, "a limit of $1 "},
		"its own": {moderator.Limits{}, func(f *fixture) error {
			req := startRequest(testThread)
			req.Limits = own
			_, err := f.engine("start", 1).Start(f.Context(), req)
			return err
		}, "a limit of $3 "},
		"the workflow's": {moderator.Limits{}, func(f *fixture) error {
			d, err := workflow.Parse("test.yaml", []byte(limited), workflow.Options{})
			f.ok(err)
			_, err = f.engine("start", 1).Start(f.Context(), f.requestOf(d))
			return err
		}, "a limit of $2 "},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.limits = c.limits
				f.noPrice = func(role string) bool { return role == "b" || strings.HasPrefix(name, "the workflow") }
				err := c.start(f)
				var usage *life.DeedError
				if !errors.As(err, &usage) {
					f.Fatalf("%v", err)
				}
				f.says(err.Error(), c.says, "role ", errNoPrice.Error())
				if n := len(f.all().Threads()); n != 0 {
					f.Errorf("%d threads are there", n)
				}
				f.noPrice = nil // 0 is a price like any other
				f.ok(c.start(f))
			})
		})
	}
}

// A thread that runs gets no limit that can't be kept, and one whose model has lost its
// price does no step.
func TestCostLimitsNeedPricesLater(t *testing.T) {
	own := map[string]float64{"costUsd": 3}
	inBubble(t, func(f *fixture) {
		f.noPrice = func(string) bool { return true }
		req := startRequest(testThread)
		req.Key = "issue/1"
		_, err := f.engine("start", 1).Start(f.Context(), req) // without a limit on cost nothing needs a price
		f.ok(err)
		f.steps("r1")
		f.limits = moderator.Limits{MaxSteps: 1}
		_, err = f.step("r2")
		f.code(err, life.KindLimit)
		f.limits = moderator.Limits{}

		was := f.entry()
		err = f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Limits: own})
		f.says(f.code(err, life.KindUsage), "a limit of $3 ", errNoPrice.Error())
		if now := f.entry(); now.Status != was.Status || len(now.Limits) > 0 {
			f.Errorf("%+v", now)
		}
		_, err = f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: "01JD0000000000000000000009", From: testThread, Steps: 1, Limits: own})
		f.says(f.code(err, life.KindUsage), errNoPrice.Error())
		if n := len(f.all().Threads()); n != 1 {
			f.Errorf("%d threads are there", n)
		}

		f.noPrice = nil
		f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Limits: own}))
		f.noPrice = func(role string) bool { return role == "b" }
		_, err = f.step("r3")
		f.says(f.code(err, life.KindUsage), "role b", errNoPrice.Error())
		f.paid(1)
		f.unclaimed()
		req.ID = "01JD0000000000000000000008"
		f.limits = moderator.Limits{CostUSD: 1}
		if there, err := f.engine("start", 2).Start(f.Context(), req); err != nil || !there.Existed {
			f.Errorf("the thread with that key is not taken: %+v, %v", there, err)
		}
	})
}

// An ended thread gets no limit that can't be kept either.
func TestCostLimitsNeedPricesAfterTheEnd(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1", "r2")
		f.noPrice = func(string) bool { return true }
		err := f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "again", Limits: map[string]float64{"costUsd": 3}})
		f.says(f.code(err, life.KindUsage), errNoPrice.Error())
		f.history()
	})
}

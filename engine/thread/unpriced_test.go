package thread_test

import (
	"context"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/layout"
)

// What nobody knows the price of is on record as that, and is told as that, nowhere as
// a cost of nothing; a sum of it with what is known is the least that it cost.
func TestUnknownCostIsTold(t *testing.T) {
	inBubble(t, func(f *fixture) {
		priced := false
		answer := f.agent
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			if priced {
				return answer(ctx, t, m)
			}
			m.AddUnpriced(10, 1)
			return f.draftOf(t).output(map[string]any{"$status": "done", "note": "x"}).done(), nil
		}
		f.start()
		f.steps("r1")
		if u := f.chain().Steps[0].Usage; !u.Unpriced || u.CostUSD != 0 {
			f.Errorf("on record is %+v", u)
		}
		if e := f.entry(); !e.Used.Unpriced {
			f.Errorf("the entry says %+v", e.Used)
		}
		c, _, trailers := f.tip()
		index, _ := f.file(c.Tree, layout.IndexPath(testThread))
		f.says(index, "11 tokens, cost unknown, with tries", "| 11 | cost unknown |")
		f.says(f.page(1, "a"), "10 tokens in, 1 out, cost unknown.")
		for _, tr := range trailers {
			if tr.Key == "Uwf-Cost" {
				f.Errorf("%s: %s", tr.Key, tr.Value)
			}
		}
		priced = true
		f.agent = answer
		f.limits = moderator.Limits{CostUSD: 0.5}
		f.steps("r2")
		ended := f.history()
		if ended.Used == nil || !ended.Used.Unpriced || ended.Used.CostUSD != 0.5 {
			f.Errorf("the history says %+v", ended.Used)
		}
		c, _, _ = f.tip()
		day, _ := f.file(c.Tree, "history/2000/01-01.md")
		f.says(day, "| 22 | at least $0.5000 |")
		report, err := f.store().Fsck(f.Context(), true)
		if err != nil || len(report.Problems) > 0 {
			f.Errorf("%+v, %v", report.Problems, err)
		}
	})
}

// A limit that is reached says that more was spent, and a job that died without a price
// is counted as one of which the cost is unknown.
func TestUnknownCostOfTheDead(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		c := f.other(21 * time.Minute)
		c.Tokens, c.CostUSD, c.Unpriced = 500, 0.7, true
		f.claimBy(c)
		f.limits = moderator.Limits{CostUSD: 0.6}
		_, err := f.step("r1")
		f.says(f.code(err, life.KindLimit), "has used at least $0.70 of $0.60")
	})
}

// What a running job was charged is in its claim, and that it is not all.
func TestClaimsSayUnpriced(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		seen := false
		answer := f.agent
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			m.AddUnpriced(100, 1)
			time.Sleep(3 * lease.RenewEvery)
			if c, ok := f.view().FindClaim(testThread); ok {
				seen = c.Tokens == 101 && c.Unpriced
			}
			return answer(ctx, t, m)
		}
		f.steps("r1")
		if !seen {
			f.Error("the claim does not say it")
		}
	})
}

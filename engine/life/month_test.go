package life

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// The 27th of November, and threads that began in October and in November 2026.
var (
	november = time.Date(2026, 11, 27, 0, 20, 0, 0, time.UTC)
	december = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
)

const (
	oldThread gitcas.ThreadID = "01M4HHR0000000000000000001"
	newThread gitcas.ThreadID = "01M71C29000000000000000001"
	anyHead   node.Hash       = "0123456789ABC"
)

func TestIDsOfTheTable(t *testing.T) {
	if a, b := oldThread.Time().UTC(), newThread.Time().UTC(); a.Month() != time.October || b.Month() != time.November || a.Year() != 2026 || b.Year() != 2026 {
		t.Fatal(a, b)
	}
}

func took(tokens int64, costUSD float64) moderator.Totals {
	return moderator.Totals{Steps: 1, Tokens: tokens, CostUSD: costUSD}
}

func TestNoteSpent(t *testing.T) {
	own := &record.Usage{InputTokens: 3, OutputTokens: 2, CostUSD: 0.5}
	for name, tt := range map[string]struct {
		id     gitcas.ThreadID
		was    gitcas.Spent
		before moderator.Totals
		own    *record.Usage
		at     time.Time
		want   gitcas.Spent
	}{
		"a thread of this month":                  {newThread, gitcas.Spent{}, took(10, 1), own, november, gitcas.Spent{Month: "2026-11", Tokens: 15, CostUSD: 1.5}},
		"nothing new":                             {newThread, gitcas.Spent{}, took(10, 1), nil, november, gitcas.Spent{Month: "2026-11", Tokens: 10, CostUSD: 1}},
		"an older one, of which nothing is noted": {oldThread, gitcas.Spent{}, took(10, 1), own, november, gitcas.Spent{Month: "2026-11", Tokens: 15, CostUSD: 1.5, TokensBefore: 10, CostBefore: 1}},
		"noted in this month":                     {oldThread, gitcas.Spent{Month: "2026-11", Tokens: 10, CostUSD: 1, TokensBefore: 4, CostBefore: 0.5}, took(10, 1), own, november, gitcas.Spent{Month: "2026-11", Tokens: 15, CostUSD: 1.5, TokensBefore: 4, CostBefore: 0.5}},
		"the month turned":                        {newThread, gitcas.Spent{Month: "2026-11", Tokens: 10, CostUSD: 1, TokensBefore: 4, CostBefore: 0.5}, took(10, 1), own, december, gitcas.Spent{Month: "2026-12", Tokens: 15, CostUSD: 1.5, TokensBefore: 10, CostBefore: 1}},
		"more was noted than is known":            {newThread, gitcas.Spent{Month: "2026-11", Tokens: 20, CostUSD: 2}, took(10, 1), own, november, gitcas.Spent{Month: "2026-11", Tokens: 25, CostUSD: 2.5}},
		"less takes nothing back":                 {newThread, gitcas.Spent{Month: "2026-11", Tokens: 10, CostUSD: 1}, took(1, 0.1), &record.Usage{InputTokens: -3, CostUSD: -1}, november, gitcas.Spent{Month: "2026-11", Tokens: 10, CostUSD: 1}},
		"no sum overflows":                        {newThread, gitcas.Spent{Month: "2026-11", Tokens: math.MaxInt64, CostUSD: math.MaxFloat64}, took(1, 1), own, november, gitcas.Spent{Month: "2026-11", Tokens: 1<<40 + 5, CostUSD: 1<<40 + 0.5}},
	} {
		e := gitcas.Entry{Spent: tt.was}
		if NoteSpent(&e, tt.id, tt.before, tt.own, tt.at); e.Spent != tt.want {
			t.Errorf("%s: %+v, want %+v", name, e.Spent, tt.want)
		}
	}
}

func TestUsedInMonth(t *testing.T) {
	used := gitcas.Used{Head: anyHead, Steps: 1, Tokens: 10, CostUSD: 1}
	cost := &gitcas.Cost{Steps: 1, Tokens: 10, CostUSD: 1}
	noted := gitcas.Spent{Month: "2026-11", Tokens: 16, CostUSD: 1.75, TokensBefore: 4, CostBefore: 0.5}
	huge := gitcas.Spent{Month: "2026-11", Tokens: math.MaxInt64, CostUSD: 1e15}
	less := gitcas.Spent{Month: "2026-11", Tokens: 1, TokensBefore: math.MaxInt64, CostBefore: 1e15}
	at := november.UnixMilli()
	for name, tt := range map[string]struct {
		id     gitcas.ThreadID
		entry  gitcas.Entry
		ended  *gitcas.Ended
		tokens int64
		cost   float64
	}{
		"alive":                            {newThread, gitcas.Entry{Head: anyHead, Used: used}, nil, 10, 1},
		"of another head":                  {newThread, gitcas.Entry{Head: "1123456789ABC", Used: used}, nil, 0, 0},
		"of an earlier month":              {oldThread, gitcas.Entry{Head: anyHead, Used: used}, nil, 0, 0},
		"with what attempts took":          {newThread, gitcas.Entry{Head: anyHead, Used: used, Spent: noted}, nil, 12, 1.25},
		"over a month's end":               {oldThread, gitcas.Entry{Head: anyHead, Used: used, Spent: noted}, nil, 12, 1.25},
		"idle since last month":            {oldThread, gitcas.Entry{Head: anyHead, Used: used, Spent: gitcas.Spent{Month: "2026-10", Tokens: 10, CostUSD: 1}}, nil, 0, 0},
		"more than noted, by others":       {oldThread, gitcas.Entry{Head: anyHead, Used: used, Spent: gitcas.Spent{Month: "2026-10", Tokens: 4, CostUSD: 0.75}}, nil, 6, 0.25},
		"ended":                            {newThread, gitcas.Entry{}, &gitcas.Ended{CompletedAt: at, Used: cost}, 10, 1},
		"ended, with what attempts took":   {oldThread, gitcas.Entry{}, &gitcas.Ended{CompletedAt: at, Used: cost, Spent: &noted}, 12, 1.25},
		"ended, nobody knows what it took": {newThread, gitcas.Entry{}, &gitcas.Ended{CompletedAt: at, Spent: &noted}, 12, 1.25},
		"ended in October":                 {newThread, gitcas.Entry{}, &gitcas.Ended{CompletedAt: at - 30*24*3_600_000, Used: cost}, 0, 0},
		"ended in a month to come":         {newThread, gitcas.Entry{}, &gitcas.Ended{CompletedAt: at + 30*24*3_600_000, Used: cost}, 0, 0},
		"ended, old and not noted":         {oldThread, gitcas.Entry{}, &gitcas.Ended{CompletedAt: at, Used: cost}, 0, 0},
		"hostile, huge":                    {newThread, gitcas.Entry{Spent: huge}, nil, 1 << 40, 1 << 40},
		"hostile, less than nothing":       {newThread, gitcas.Entry{Spent: less}, nil, 0, 0},
	} {
		var all moderator.Totals
		if tt.ended != nil {
			tt.ended.Thread = tt.id
			AddEndedOfMonth(&all, *tt.ended, november)
		} else {
			AddEntryOfMonth(&all, tt.id, tt.entry, november)
		}
		if all.Tokens != tt.tokens || all.CostUSD != tt.cost {
			t.Errorf("%s: %d tokens, $%v; want %d, $%v", name, all.Tokens, all.CostUSD, tt.tokens, tt.cost)
		}
	}
	var all moderator.Totals
	AddEntryOfMonth(&all, newThread, gitcas.Entry{Head: anyHead, Used: gitcas.Used{Head: anyHead, Unpriced: true}}, november)
	if !all.Unpriced {
		t.Error("that nobody knows a price is lost")
	}
	all = moderator.Totals{}
	AddEndedOfMonth(&all, gitcas.Ended{Thread: newThread, CompletedAt: at, Used: &gitcas.Cost{Unpriced: true}}, november)
	if !all.Unpriced {
		t.Error("that nobody knows a price is lost at the end")
	}
}

func TestShareMonth(t *testing.T) {
	type limits = moderator.MonthLimits
	usd := func(n float64) task.Budget { return task.Budget{CostUSD: n} }
	claim := func(since int64, nonce string, n float64) Reservation { return Reservation{since, nonce, usd(n)} }
	own := claim(5, "m", 4)
	for name, tt := range map[string]struct {
		limits limits
		used   moderator.Totals
		own    Reservation
		others []Reservation
		want   task.Budget
		says   string
		yields bool
	}{
		"no limit":                     {limits{}, took(9, 9), own, []Reservation{claim(1, "a", 99)}, usd(4), "", false},
		"alone":                        {limits{CostUSD: 10}, took(0, 0), own, nil, usd(4), "", false},
		"less is left":                 {limits{CostUSD: 10}, took(0, 7.5), own, nil, usd(2.5), "", false},
		"beside another":               {limits{CostUSD: 10}, took(0, 2), own, []Reservation{claim(1, "a", 4)}, usd(4), "", false},
		"ten tenths":                   {limits{CostUSD: 0.7}, took(0, 0), claim(9, "m", 0.07), repeat(claim(1, "a", 0.7/10), 9), usd(0.07), "", false},
		"eleven tenths":                {limits{CostUSD: 0.7}, took(0, 0), claim(9, "m", 0.07), repeat(claim(1, "a", 0.7/10), 10), task.Budget{}, "$0.00 was used, and 10 steps at work may use $0.70", false},
		"reached":                      {limits{CostUSD: 10}, took(0, 10), own, nil, task.Budget{}, "limit month.costUsd reached: all threads together have used $10.00 of $10.00 in November 2026; let it go on from 2026-12-01 00:00 UTC on, or before that with a higher limits.month.costUsd", false},
		"reached, but for rounding":    {limits{CostUSD: 0.2}, took(0, 0.19999999999999996), own, nil, task.Budget{}, "limit month.costUsd reached", false},
		"reached, and more":            {limits{CostUSD: 10}, took(0, 12), own, []Reservation{claim(1, "a", 4)}, task.Budget{}, "limit month.costUsd reached", false},
		"reached, price unknown":       {limits{CostUSD: 10}, moderator.Totals{CostUSD: 10, Unpriced: true}, own, nil, task.Budget{}, "at least $10.00", false},
		"tokens reached":               {limits{Tokens: 100}, took(100, 0), own, nil, task.Budget{}, "limit month.tokens reached: all threads together have used 100 tokens of 100 in", false},
		"an earlier one holds it":      {limits{CostUSD: 10}, took(0, 4), own, []Reservation{claim(1, "a", 3)}, task.Budget{}, "limits.month.costUsd ($10.00 a month) leaves nothing for it now: $4.00 was used, and 1 step at work may use $3.00", false},
		"a later one is to let go":     {limits{CostUSD: 10}, took(0, 4), own, []Reservation{claim(6, "a", 3)}, task.Budget{}, "may use $3.00", true},
		"one of that time goes before": {limits{CostUSD: 10}, took(0, 4), own, []Reservation{claim(5, "l", 3)}, task.Budget{}, "may use $3.00", false},
		"one of that time comes after": {limits{CostUSD: 10}, took(0, 4), own, []Reservation{claim(5, "n", 3)}, task.Budget{}, "may use $3.00", true},
		"later and earlier ones":       {limits{CostUSD: 10}, took(0, 4), own, []Reservation{claim(6, "a", 3), claim(1, "a", 3)}, task.Budget{}, "2 steps at work may use $6.00", false},
		"tokens and cost":              {limits{Tokens: 100, CostUSD: 10}, took(90, 1), Reservation{5, "m", task.Budget{Tokens: 50, CostUSD: 4}}, nil, task.Budget{Tokens: 10, CostUSD: 4}, "", false},
		"one yields, the other not": {limits{Tokens: 100, CostUSD: 10}, took(0, 4), Reservation{5, "m", task.Budget{Tokens: 60, CostUSD: 4}},
			[]Reservation{claim(1, "a", 3), {6, "b", task.Budget{Tokens: 50}}}, task.Budget{}, "limits.month.costUsd", false},
	} {
		got, err := ShareMonth(tt.limits, tt.used, tt.own, tt.others, november)
		var held *MonthHeldError
		errors.As(err, &held)
		switch {
		case tt.says == "" && (err != nil || got.Tokens != tt.want.Tokens || math.Abs(got.CostUSD-tt.want.CostUSD) > 1e-9):
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, tt.want)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
			t.Errorf("%s: %+v, %v; want %q", name, got, err, tt.says)
		case (held != nil && held.Yields) != tt.yields:
			t.Errorf("%s: yields: %+v", name, held)
		}
	}
}

func repeat(r Reservation, n int) (out []Reservation) {
	for range n {
		out = append(out, r)
	}
	return out
}

// Of steps that look whenever their claims are there, in whatever order, no more begin than the
// month has room for; and once all have looked often enough, at least one did.
func TestShareMonthInAnyOrder(t *testing.T) {
	const each, limit = 3.0, 10.0
	var perm func(k int, order []int, visit func([]int))
	perm = func(k int, order []int, visit func([]int)) {
		if k == len(order) {
			visit(order)
			return
		}
		for i := k; i < len(order); i++ {
			order[k], order[i] = order[i], order[k]
			perm(k+1, order, visit)
			order[k], order[i] = order[i], order[k]
		}
	}
	perm(0, []int{0, 1, 2, 3, 4}, func(order []int) {
		for seen := 1; seen <= len(order); seen++ { // so many claims are there before the first looks
			claims, begun := map[int]Reservation{}, map[int]bool{}
			add := func(i int) {
				claims[i] = Reservation{Since: int64(9 - i), Nonce: "n", Budget: task.Budget{CostUSD: each}}
			}
			for _, i := range order[:seen] {
				add(i)
			}
			for range 2 {
				for _, i := range order {
					if begun[i] {
						continue
					}
					if _, claimed := claims[i]; !claimed {
						add(i)
					}
					var others []Reservation
					for j, r := range claims {
						if j != i {
							others = append(others, r)
						}
					}
					_, err := ShareMonth(moderator.MonthLimits{CostUSD: limit}, moderator.Totals{}, claims[i], others, november)
					var held *MonthHeldError
					switch {
					case err == nil:
						begun[i] = true
					case errors.As(err, &held) && !held.Yields:
						delete(claims, i)
					}
				}
			}
			if sum := float64(len(begun)) * each; sum > limit || len(begun) == 0 {
				t.Fatalf("order %v, %d claimed at first: %v began", order, seen, begun)
			}
		}
	})
}

func TestRemainingBudget(t *testing.T) {
	month := moderator.MonthLimits{Tokens: 1001, CostUSD: 50}
	for name, tt := range map[string]struct {
		limits moderator.Limits
		month  moderator.MonthLimits
		want   task.Budget
	}{
		"nothing bounds it":   {moderator.Limits{}, moderator.MonthLimits{}, task.Budget{}},
		"a tenth of a month":  {moderator.Limits{}, month, task.Budget{Tokens: 101, CostUSD: 5}},
		"the thread's own":    {moderator.Limits{Tokens: 30, CostUSD: 2}, month, task.Budget{Tokens: 20, CostUSD: 1}},
		"one token at least":  {moderator.Limits{Tokens: 10}, moderator.MonthLimits{}, task.Budget{Tokens: 1}},
		"tokens of the month": {moderator.Limits{CostUSD: 2}, moderator.MonthLimits{Tokens: 1}, task.Budget{Tokens: 1, CostUSD: 1}},
	} {
		if got := RemainingBudget(tt.limits, tt.month, took(10, 1)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestReservationOf(t *testing.T) {
	for name, tt := range map[string]struct {
		claim gitcas.Claim
		want  task.Budget
	}{
		"what it names":   {gitcas.Claim{Tokens: 1, CostUSD: 0.1, ReserveTokens: 10, ReserveUSD: 1}, task.Budget{Tokens: 10, CostUSD: 1}},
		"of an older uwf": {gitcas.Claim{Tokens: 1, CostUSD: 0.1}, task.Budget{Tokens: 1, CostUSD: 0.1}},
		"it used more":    {gitcas.Claim{Tokens: 11, CostUSD: 1.1, ReserveTokens: 10, ReserveUSD: 1}, task.Budget{Tokens: 11, CostUSD: 1.1}},
	} {
		if got := ReservationOf(tt.claim); got.Budget != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A thread for which the month has nothing left is told so, and how it goes on.
func TestWaysOnAfterAMonth(t *testing.T) {
	for limit, want := range map[string]string{"month.costUsd": overMonth, "month.tokens": overMonth, "month.steps": "answer", "month.": "answer"} {
		e := gitcas.Entry{Status: gitcas.StatusSuspended, Suspended: &gitcas.Suspended{Role: "developer", Reason: "limit " + limit + " reached: x"}}
		if got := WaysOn("T", e)[0]; got.For != want || got.Do != Resume || (got.Needs == "") != (want == overMonth) {
			t.Errorf("%s: %+v", limit, got)
		}
	}
	err := NewLimitError("T", &moderator.LimitError{Limit: "month.costUsd", Used: "$2.00", Max: "$2.00", Month: moderator.MonthStart(november)})
	if got := err.Next[0]; got != (Verb{For: overMonth, Do: Resume, Thread: "T"}) {
		t.Errorf("%+v", got)
	}
}

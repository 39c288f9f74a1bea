package thread_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// numberedThread is the n-th thread that is not the one at hand.
func numberedThread(n int) gitcas.ThreadID {
	return gitcas.ThreadID(fmt.Sprintf("01JD0000000000000000000%03d", 100+n))
}

// startOther starts another thread.
func (f *fixture) startOther(id gitcas.ThreadID) {
	f.Helper()
	_, err := f.engine("start", 1).Start(f.Context(), startRequest(id))
	f.ok(err)
}

// stepOf is a job for another thread.
func (f *fixture) stepOf(id gitcas.ThreadID, run string) error {
	f.Helper()
	_, err := f.stepWith(run, 1, f.at(id))
	return err
}

// TestMonthLimit: what counts for the month's limit, whichever thread took it.
func TestMonthLimit(t *testing.T) {
	other := numberedThread(1)
	for name, c := range map[string]struct {
		before func(f *fixture)
		usd    float64 // what that took
	}{
		"nothing":   {func(*fixture) {}, 0},
		"its own":   {func(f *fixture) { f.steps("s") }, 0.5},
		"of others": {func(f *fixture) { f.ok(f.stepOf(other, "s")) }, 0.5},
		"a failed attempt": {func(f *fixture) {
			f.agent = f.fails
			f.code(f.stepOf(other, "s"), life.KindFailed)
			f.agent = f.answer("done", "approved")
		}, 1},
		"a failed attempt and a step": {func(f *fixture) {
			f.agent = f.fails
			f.code(f.stepOf(other, "s"), life.KindFailed)
			f.agent = f.answer("done", "approved")
			f.ok(f.stepOf(other, "s2"))
		}, 1.5},
		"ended": {func(f *fixture) { f.ok(f.stepOf(other, "s1")); f.ok(f.stepOf(other, "s2")) }, 1},
		"removed after its end": {func(f *fixture) {
			f.ok(f.stepOf(other, "s1"))
			f.ok(f.stepOf(other, "s2"))
			f.ok(f.engine("p", 1).Remove(f.Context(), other))
		}, 1},
		"cancelled": {func(f *fixture) {
			f.agent = f.fails
			f.code(f.stepOf(other, "s"), life.KindFailed)
			f.agent = f.answer("done", "approved")
			_, err := f.engine("p", 1).Cancel(f.Context(), other, "")
			f.ok(err)
		}, 1},
		"a job that died": {func(f *fixture) {
			at := time.Now().Add(-time.Hour).UnixMilli()
			f.claimOther(other, gitcas.Claim{Run: "x", Attempt: 1, CostUSD: 0.75, ReserveUSD: 3, Since: at, Renewed: at})
		}, 0.75},
		"a job that died, and whose claim was freed": {func(f *fixture) {
			at := time.Now().Add(-time.Hour).UnixMilli()
			f.claimOther(other, gitcas.Claim{Run: "x", Attempt: 1, CostUSD: 0.75, ReserveUSD: 3, Since: at, Renewed: at})
			_, err := f.engine("p", 1).FreeClaim(f.Context(), f.all(), other)
			f.ok(err)
		}, 0.75},
		"a job that died, whose thread went on": {func(f *fixture) {
			at := time.Now().Add(-time.Hour).UnixMilli()
			f.claimOther(other, gitcas.Claim{Run: "x", Attempt: 1, CostUSD: 0.75, ReserveUSD: 3, Since: at, Renewed: at})
			_, err := f.engine("p", 1).FreeClaim(f.Context(), f.all(), other)
			f.ok(err)
			f.ok(f.stepOf(other, "s"))
		}, 1.25},
		"its own job that died": {func(f *fixture) {
			at := time.Now().Add(-time.Hour).UnixMilli()
			f.claimOther(testThread, gitcas.Claim{Run: "x", Attempt: 1, CostUSD: 0.75, ReserveUSD: 3, Since: at, Renewed: at})
		}, 0.75},
		"cancelled at work":              {func(f *fixture) { f.cutOffAtWork(other, f.cancels) }, 10},
		"cancelled after its first step": {func(f *fixture) { f.ok(f.stepOf(other, "s")); f.cutOffAtWork(other, f.cancels) }, 10.5},
		"cancelled after its job died": {func(f *fixture) {
			at := time.Now().Add(-time.Hour).UnixMilli()
			f.claimOther(other, gitcas.Claim{Run: "x", Attempt: 1, CostUSD: 0.75, ReserveUSD: 3, Since: at, Renewed: at})
			f.cancels(other)
		}, 0.75},
		"cancelled under somebody's claim": {func(f *fixture) {
			f.claimOther(other, gitcas.Claim{Run: "x", Attempt: 1, CostUSD: 0.75, For: string(life.Poke)})
			f.cancels(other)
		}, 0},
		"suspended at work": {func(f *fixture) { f.cutOffAtWork(other, f.suspends) }, 10},
		"suspended at work, and gone on": {func(f *fixture) {
			f.cutOffAtWork(other, f.suspends)
			f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: other}))
			f.ok(f.stepOf(other, "s2"))
		}, 10.5},
		"suspended at work, and cancelled": {func(f *fixture) { f.cutOffAtWork(other, f.suspends); f.cancels(other) }, 10},
		"suspended at work in the month before": {func(f *fixture) {
			f.cutOffAtWork(other, f.suspends)
			time.Sleep(32 * 24 * time.Hour)
		}, 0},
		"a claim of a head before": {func(f *fixture) {
			f.claimOther(other, gitcas.Claim{Run: "x", Attempt: 1, CostUSD: 0.75, Head: "0123456789ABC"})
		}, 0},
		"what a fork shares": {func(f *fixture) {
			f.ok(f.stepOf(other, "s"))
			_, err := f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: numberedThread(2), From: other, Steps: 1})
			f.ok(err)
		}, 0.5},
		"what a fork shares that was made without a limit": {func(f *fixture) {
			f.ok(f.stepOf(other, "s"))
			month := f.month
			f.month = moderator.MonthLimits{}
			_, err := f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: numberedThread(2), From: other, Steps: 1})
			f.ok(err)
			f.month = month
		}, 0.5},
		"of the month before": {func(f *fixture) {
			f.steps("s")
			f.ok(f.stepOf(other, "s1"))
			f.ok(f.stepOf(other, "s2"))
			time.Sleep(32 * 24 * time.Hour)
		}, 0},
		"over a month's end": {func(f *fixture) {
			f.ok(f.stepOf(other, "s1"))
			time.Sleep(32 * 24 * time.Hour)
			f.ok(f.stepOf(other, "s2"))
		}, 0.5},
		"poked": {func(f *fixture) {
			f.ok(f.stepOf(other, "s"))
			f.ok(f.engine("p", 1).Poke(f.Context(), other, "again"))
		}, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			for _, more := range []float64{0, 0.01} {
				inBubble(t, func(f *fixture) {
					f.month = moderator.MonthLimits{CostUSD: 1000}
					f.start()
					f.startOther(other)
					c.before(f)
					f.month.CostUSD = c.usd + more
					if f.month.CostUSD == 0 {
						f.month = moderator.MonthLimits{Tokens: 1} // it is the only limit then
					}
					runs := len(f.runs)
					_, err := f.step("r")
					if more > 0 || c.usd == 0 {
						f.ok(err)
						if b := f.runs[runs].Budget; more > 0 && b.CostUSD > more+1e-9 {
							t.Errorf("$%.2f is left, the budget is %+v", more, b)
						}
						return
					}
					f.says(f.code(err, life.KindLimit), fmt.Sprintf("limit month.costUsd reached: all threads together have used $%.2f of $%.2f in January 2000; let it go on from 2000-02-01 00:00 UTC", c.usd, c.usd)[:60], "once the month is over")
					f.paid(runs)
					f.unclaimed()
				})
			}
		})
	}
}

// cancels is a person who cancels a thread, suspends one who suspends it.
func (f *fixture) cancels(id gitcas.ThreadID) {
	_, err := f.engine("p", 1).Cancel(f.Context(), id, "")
	f.ok(err)
}

func (f *fixture) suspends(id gitcas.ThreadID) {
	f.ok(f.engine("p", 1).Suspend(f.Context(), id, "stop"))
}

// cutOffAtWork has a person cut off the next step of another thread when its agent has used $8 of
// the $100 that the month leaves it: its claim is charged $10.
func (f *fixture) cutOffAtWork(id gitcas.ThreadID, by func(gitcas.ThreadID)) {
	f.Helper()
	agent := f.agent
	f.agent = func(ctx context.Context, _ task.Task, m *task.Meter) (task.Draft, error) {
		m.Add(10, 1, 8)
		by(id)
		<-ctx.Done()
		return task.Draft{}, context.Cause(ctx)
	}
	f.code(f.stepOf(id, "cut"), life.KindNotYours)
	f.agent = agent
}

// TestCancelledAtWork: what a job used that a person cut off is in the thread's line of history,
// with or without a limit on a month.
func TestCancelledAtWork(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.limits.CostUSD = 100.5 // the first step leaves $100 of it
		f.start()
		f.steps("r")
		f.cutOffAtWork(testThread, f.cancels)
		if line := f.history(); line.Used == nil || line.Used.CostUSD != 10.5 || line.Used.Steps != 1 || line.Spent == nil || line.Spent.CostUSD != 10.5 {
			t.Errorf("%+v, %+v", line.Used, line.Spent)
		}
	})
}

// claimOther puts a claim on another thread; without a head that is the thread's.
func (f *fixture) claimOther(id gitcas.ThreadID, c gitcas.Claim) {
	f.Helper()
	v := f.all()
	entry, _ := v.Entry(id)
	if c.Head == "" {
		c.Head = entry.Head
	}
	if c.Since == 0 {
		c.Since = time.Now().UnixMilli()
		c.Renewed = c.Since
	}
	upd, objs := view.ClaimUpdate(id, nil, &c, time.Now())
	_, err := f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{upd}, Objects: objs})
	f.ok(err)
}

// TestMonthLimitOfAThread: a thread for which the month has nothing left waits, and goes on when
// the month has turned, or with a higher limit, on a person's word.
func TestMonthLimitOfAThread(t *testing.T) {
	for name, turn := range map[string]func(f *fixture){
		"the month turns":     func(*fixture) { time.Sleep(32 * 24 * time.Hour) },
		"the limit is raised": func(f *fixture) { f.month.CostUSD = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.month.CostUSD = 0.5
				f.start()
				f.steps("r1")
				plan, err := f.engine("dry", 1).PlanStep(f.Context(), f.at(testThread))
				f.says(f.code(err, life.KindLimit), "limit month.costUsd reached")
				f.unclaimed()
				if plan.Role != "b" {
					t.Errorf("%+v", plan)
				}
				res, err := f.step("r2")
				f.says(f.code(err, life.KindLimit), "limit month.costUsd reached")
				if e := f.entry(); e.Status != gitcas.StatusSuspended || res.Status != "suspended" {
					t.Errorf("%+v", e)
				}
				_, err = f.step("r3")
				f.says(f.code(err, life.KindSuspended), "limit month.costUsd reached", "once the month is over")
				f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread}))
				_, err = f.step("r4")
				f.code(err, life.KindLimit)
				f.paid(1)
				turn(f)
				f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread}))
				f.steps("r5")
				f.paid(2)
				if line := f.history(); line.Spent == nil || line.Spent.CostUSD != 1 || line.Spent.CostBefore != map[bool]float64{true: 0.5}[name == "the month turns"] {
					t.Errorf("%+v", line.Spent)
				}
			})
		})
	}
}

// TestMonthIsNotAsked: without a limit nothing is read for it, and nothing noted; with one, a step
// takes one listing more and six reads at most (docs/costs.md), at a month's end too.
func TestMonthIsNotAsked(t *testing.T) {
	lists, fetches := map[bool]int64{}, map[bool]int64{}
	for _, limited := range []bool{false, true} {
		inBubble(t, func(f *fixture) {
			for n := range 28 { // one ended on each day
				f.startOther(numberedThread(n))
				f.ok(f.stepOf(numberedThread(n), "a"))
				f.ok(f.stepOf(numberedThread(n), "b"))
				time.Sleep(24 * time.Hour)
			}
			if limited {
				f.month.Tokens = 100_000 // the step begins no other tenth, so that its claim is not renewed
			}
			f.start()
			f.remote.lists.Store(0)
			f.remote.fetches.Store(0)
			f.steps("r1")
			lists[limited], fetches[limited] = f.remote.lists.Load(), f.remote.fetches.Load()
			if noted := f.entry().Spent.Month != ""; noted != limited {
				t.Errorf("limited: %v, noted: %+v", limited, f.entry().Spent)
			}
		})
	}
	if more := fetches[true] - fetches[false]; lists[true] != lists[false]+1 || more < 3 || more > 6 {
		t.Errorf("%d listings with a limit, %d without; %d and %d reads", lists[true], lists[false], fetches[true], fetches[false])
	}
}

// TestMonthNeedsPrices: a limit on a month's cost can't be kept without prices either.
func TestMonthNeedsPrices(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.month.CostUSD = 5
		f.noPrice = func(string) bool { return true }
		_, err := f.engine("start", 1).Start(f.Context(), startRequest(testThread))
		f.says(f.code(err, life.KindUsage), "a limit of $5 on a month's cost can't be kept: role a", errNoPrice.Error())
		f.month = moderator.MonthLimits{Tokens: 5}
		f.start()
		f.month.CostUSD = 5
		_, err = f.step("r1")
		f.says(f.code(err, life.KindUsage), "on a month's cost can't be kept")
	})
}

// TestMonthHeld: a step does not begin while others at work may use what is left. It lets go;
// where they came later, it waits for half a minute whether they do.
func TestMonthHeld(t *testing.T) {
	other := numberedThread(1)
	for name, c := range map[string]struct {
		claim func(f *fixture) gitcas.Claim
		gone  time.Duration // after which the claim is gone; 0: it stays
		ran   bool
		waits time.Duration
	}{
		"an earlier one":           {func(*fixture) gitcas.Claim { return gitcas.Claim{ReserveUSD: 3} }, 0, false, 0},
		"an earlier one, in time":  {func(*fixture) gitcas.Claim { return gitcas.Claim{ReserveUSD: 2} }, 0, true, 0},
		"one that says no reserve": {func(*fixture) gitcas.Claim { return gitcas.Claim{CostUSD: 3} }, 0, false, 0},
		"a delivery":               {func(*fixture) gitcas.Claim { return gitcas.Claim{ReserveUSD: 3, For: life.ForDelivery} }, 0, true, 0},
		"a later one that lets go": {func(*fixture) gitcas.Claim {
			return gitcas.Claim{ReserveUSD: 3, Since: time.Now().Add(time.Minute).UnixMilli(), Renewed: time.Now().UnixMilli()}
		}, 10 * time.Second, true, 12 * time.Second},
		"a later one that stays": {func(*fixture) gitcas.Claim {
			return gitcas.Claim{ReserveUSD: 3, Since: time.Now().Add(time.Minute).UnixMilli(), Renewed: time.Now().UnixMilli()}
		}, 0, false, 27 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.month.CostUSD, f.limits.CostUSD = 5, 3
				f.start()
				f.startOther(other)
				claim := c.claim(f)
				claim.Run, claim.Attempt = "x", 1
				f.claimOther(other, claim)
				if c.gone > 0 {
					go func() {
						time.Sleep(c.gone)
						held, _ := f.all().FindClaim(other)
						upd, _ := view.ClaimUpdate(other, &held, nil, time.Now())
						_, _ = f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{upd}})
					}()
				}
				defer time.Sleep(c.gone)
				before := time.Now()
				_, err := f.step("r")
				if took := time.Since(before); took != c.waits {
					t.Errorf("it took %s, want %s", took, c.waits)
				}
				f.unclaimed()
				if c.ran {
					f.ok(err)
					f.paid(1)
					return
				}
				f.says(f.code(err, life.KindNotYours), "limits.month.costUsd ($5.00 a month) leaves nothing for it now: $0.00 was used, and 1 step at work may use $3.00", "then let it work: step "+string(testThread))
				if e := f.entry(); e.Status != gitcas.StatusActive {
					t.Errorf("%+v", e)
				}
				f.paid(0)
			})
		})
	}
}

// TestMonthInterrupted: who waits for others to let go is stopped like anybody.
func TestMonthInterrupted(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.month.CostUSD, f.limits.CostUSD = 5, 3
		f.start()
		f.startOther(numberedThread(1))
		f.claimOther(numberedThread(1), gitcas.Claim{Run: "x", Attempt: 1, ReserveUSD: 3, Since: time.Now().Add(time.Minute).UnixMilli(), Renewed: time.Now().UnixMilli()})
		ctx, cancel := context.WithTimeout(f.Context(), 4*time.Second)
		defer cancel()
		before := time.Now()
		if _, err := f.engine("r", 1).Step(ctx, f.at(testThread)); err == nil || time.Since(before) > 5*time.Second {
			t.Errorf("%v after %s", err, time.Since(before))
		}
		f.unclaimed()
		f.paid(0)
	})
}

// TestMonthOfTwoJobs: where agents run in a job that can push nothing, that job asks what the
// month leaves; what it paid for is committed, whatever the month has left by then.
func TestMonthOfTwoJobs(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.month.CostUSD, f.timeout = 5, time.Minute
		f.start()
		h := f.claimAhead("starter")
		if c, _ := f.view().FindClaim(testThread); c.ReserveUSD != 0.5 || c.CostUSD != 0.5 {
			t.Errorf("%+v", c)
		}
		_, err := f.runFirstJob(h.Nonce())
		f.ok(err)
		left := f.disk
		f.disk = nil
		f.startOther(numberedThread(1))
		f.ok(f.stepOf(numberedThread(1), "x"))
		f.disk, f.month.CostUSD = left, 0.5
		_, err = f.runSecondJob(h.Nonce())
		f.ok(err)
		f.paid(2)
		h = f.claimAhead("starter2")
		res, err := f.runFirstJob(h.Nonce())
		f.ok(err)
		if res.Result != "" {
			t.Errorf("%+v", res)
		}
		f.disk = &memoryDisk{}
		_, err = f.runSecondJob(h.Nonce())
		f.says(f.code(err, life.KindLimit), "limit month.costUsd reached")
		f.paid(2)
		f.unclaimed()
	})
}

// TestMonthOfStepsInOneJob: the claim that a commit leaves for the next step of its job is no
// way past the limit.
func TestMonthOfStepsInOneJob(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.month.CostUSD = 1
		f.agent = f.answer("done", "rejected")
		f.start()
		_, err := f.goesOn("r", 4, func(thread.Result) {})
		f.says(f.code(err, life.KindLimit), "limit month.costUsd reached")
		f.paid(2)
		f.unclaimed()
	})
}

// TestMonthRace: jobs of many threads that begin at once, on remotes with and without atomic
// pushes. Whatever comes of each, what is reserved at a time and used before it never
// passes the limit; and in the end all that there was is used.
func TestMonthRace(t *testing.T) {
	const threads, limit = 12, 5.0
	for _, atomic := range []bool{true, false} {
		bubble(t, atomic, func(f *fixture) {
			f.month.CostUSD = limit
			f.limits.CostUSD = 2
			var mu sync.Mutex
			var used, reserved, most float64
			f.agent = func(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
				mu.Lock()
				reserved += t.Budget.CostUSD
				most = max(most, used+reserved)
				mu.Unlock()
				time.Sleep(time.Duration(t.Step) * time.Minute)
				spends := min(0.4, t.Budget.CostUSD)
				m.Add(10, 1, spends)
				mu.Lock()
				reserved -= t.Budget.CostUSD
				used += spends
				mu.Unlock()
				return newDraft(f.T, t).output(map[string]any{"$status": map[string]string{"a": "done", "b": "rejected"}[t.Role], "note": "x"}).done(), nil
			}
			for n := range threads {
				f.startOther(numberedThread(n))
			}
			kinds := map[life.Kind]int{}
			for round := range 60 {
				if kinds[life.KindLimit] == threads {
					break
				}
				var wg sync.WaitGroup
				for n := range threads {
					e := f.engine(fmt.Sprintf("r%d-%d", round, n), 1)
					wg.Go(func() {
						_, err := e.Step(f.Context(), step.Request{Thread: numberedThread(n)})
						mu.Lock()
						kinds[life.KindOf(err)]++
						mu.Unlock()
						switch life.KindOf(err) {
						case life.KindDone, life.KindNotYours, life.KindLimit, life.KindSuspended:
						default:
							f.Errorf("atomic %v: %v", atomic, err)
						}
					})
				}
				wg.Wait()
			}
			if most > limit+1e-6 || used < limit-1e-6 || used > limit+1e-6 {
				f.Errorf("atomic %v: at most $%.4f were used and reserved, $%.4f used, of $%.2f", atomic, most, used, limit)
			}
			if kinds[life.KindLimit] != threads || kinds[life.KindNotYours] == 0 {
				f.Errorf("atomic %v: %v", atomic, kinds)
			}
		})
	}
}

// TestMonthOfABroughtInStep: a step that was paid for and could not be pushed is brought in,
// whatever the month has left by then, and counts for it.
func TestMonthOfABroughtInStep(t *testing.T) {
	onDisk(t, true, func(f *fixture) {
		left := f.disk
		f.disk = nil
		f.startOther(numberedThread(1))
		f.ok(f.stepOf(numberedThread(1), "x"))
		f.disk, f.month.CostUSD = left, 0.5
		paid := len(f.runs)
		f.steps("r2")
		f.paid(paid)
		if s := f.entry().Spent; s.CostUSD != 0.5 || s.CostBefore != 0 {
			t.Errorf("%+v", s)
		}
		_, err := f.step("r3")
		f.says(f.code(err, life.KindLimit), "all threads together have used $1.00 of $0.50")
		f.paid(paid)
	})
}

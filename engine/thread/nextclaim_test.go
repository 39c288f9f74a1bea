package thread_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// goesOn is a job that does n steps, one after the other. between is called when a step is
// done and the next one has not begun.
func (f *fixture) goesOn(run string, n int, between func(thread.Result)) (last thread.Result, err error) {
	e := f.engine(run, 1)
	var held *lease.Lease
	for i := 1; ; i++ {
		last, err = e.Step(f.Context(), step.Request{Thread: testThread, Held: held, Next: func() (lease.Identity, bool) {
			who := e.Who
			who.Run = fmt.Sprintf("%s-%d", run, i+1)
			return who, i < n
		}})
		if err != nil || i == n || last.Done || last.Suspended != nil {
			return last, err
		}
		between(last)
		e.Who.Run, held = fmt.Sprintf("%s-%d", run, i+1), last.Held
	}
}

// TestStepsOfOneJob: n steps in one job are n+1 pushes, and each is claimed under its own
// run.
func TestStepsOfOneJob(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		bubble(t, true, func(f *fixture) {
			f.start()
			f.agent = f.answer("done", "rejected")
			var pushes int
			f.remote.setBefore(func(op string, _ wire.PushRequest) error {
				if op == "push" {
					pushes++
				}
				return nil
			})
			var claims []string
			_, err := f.goesOn("r1", n, func(thread.Result) {
				c, ok := f.view().FindClaim(testThread)
				if !ok || c.Head != f.entry().Head {
					f.Errorf("between two steps the claim is %+v", c)
				}
				claims = append(claims, c.Run)
			})
			f.ok(err)
			if want := []string{"r1-2", "r1-3", "r1-4"}[:n-1]; pushes != n+1 || !slices.Equal(claims, want) {
				f.Errorf("%d steps took %d pushes, with claims of %v", n, pushes, claims)
			}
			f.paid(n)
			f.unclaimed()
			f.sound()
		})
	}
}

// TestSeveralStepsAgain: a job that is run again after several steps finds that it has done
// them; one whose run is named alike does not.
func TestSeveralStepsAgain(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		began := node.Pin{Hash: f.entry().Head}
		f.agent = f.answer("done", "rejected")
		_, err := f.goesOn("r1", 2, func(thread.Result) {})
		f.ok(err)
		res, err := f.stepWith("r1", 2, step.Request{Thread: testThread, ExpectHead: began})
		f.ok(err)
		if !res.Again || res.Step != 2 {
			f.Errorf("the result is %+v", res)
		}
		for _, run := range []string{"r", "r1-", "r1-1"} {
			_, err = f.stepWith(run, 1, step.Request{Thread: testThread, ExpectHead: began})
			f.code(err, life.KindNotYours)
		}
		f.paid(2)
	})
}

// TestBetweenTwoSteps: whatever happens between two steps of a job, the thread is stepped as
// it is then, and no claim stays.
func TestBetweenTwoSteps(t *testing.T) {
	for name, c := range map[string]struct {
		between func(f *fixture)
		code    life.Kind
		paid    int
	}{
		"suspended": {func(f *fixture) { f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait")) }, life.KindSuspended, 1},
		"paused":    {func(f *fixture) { f.ok(f.engine("p", 1).Pause(f.Context(), testThread, "wait")) }, life.KindSuspended, 1},
		"cancelled": {func(f *fixture) {
			_, err := f.engine("p", 1).Cancel(f.Context(), testThread, "no")
			f.ok(err)
		}, life.KindNotYours, 1},
		"taken over": {func(f *fixture) { f.claimBy(f.other(0)) }, life.KindNotYours, 1},
		"limited":    {func(f *fixture) { f.limits.MaxSteps = 1 }, life.KindLimit, 1},
		"the server is away for a while": {func(f *fixture) {
			back := time.Now().Add(5 * time.Minute)
			f.remote.setBefore(func(string, wire.PushRequest) error {
				if time.Now().Before(back) {
					return unreachable()
				}
				return nil
			})
		}, life.KindDone, 2},
		"its agent takes long": {func(f *fixture) { f.waits(10*time.Minute, func(time.Duration) {}) }, life.KindDone, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				_, err := f.goesOn("r1", 2, func(thread.Result) { c.between(f) })
				f.code(err, c.code)
				f.paid(c.paid)
				if held, ok := f.view().FindClaim(testThread); ok && held.Host == f.host {
					f.Errorf("a claim is left: %+v", held)
				}
				f.sound()
			})
		})
	}
}

// TestKilledBetweenTwoSteps: a job that dies with the claim of a step that it has not begun
// is followed by another one.
func TestKilledBetweenTwoSteps(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.killedAt("commit", func() { _, _ = f.goesOn("r1", 2, func(thread.Result) {}) })
		if _, ok := f.view().FindClaim(testThread); !ok {
			t.Fatal("no claim is left")
		}
		_, err := f.step("r2")
		f.says(f.code(err, life.KindNotYours), "run r1-2")
		f.paid(1)
		f.alive = func(int, int64) bool { return false }
		f.steps("r3")
		f.paid(2)
		f.unclaimed()
	})
}

// TestNoNextStep: what does not follow is not claimed, and what is given up is let go.
func TestNoNextStep(t *testing.T) {
	for name, set := range map[string]func(f *fixture){
		"a person is asked": func(f *fixture) { f.agent = f.answer("ask", "") },
		"a limit is near":   func(f *fixture) { f.limits.MaxSteps = 1 },
		"the cost is near":  func(f *fixture) { f.limits.CostUSD = 0.5 },
		"it is to pause":    func(f *fixture) { f.waits(time.Minute, f.pausedAt(30*time.Second)) },
		"it ends":           func(f *fixture) { f.steps("before") },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				set(f)
				res, err := f.engine("r1", 1).Step(f.Context(), step.Request{Thread: testThread, Next: func() (lease.Identity, bool) { return f.engine("r1-2", 1).Who, true }})
				f.ok(err)
				if res.Held != nil {
					f.Error("the next step is claimed")
				}
				f.unclaimed()
			})
		})
	}
	inBubble(t, func(f *fixture) {
		f.start()
		res, err := f.engine("r1", 1).Step(f.Context(), step.Request{Thread: testThread, Next: func() (lease.Identity, bool) { return f.engine("r1-2", 1).Who, true }})
		f.ok(err)
		ctx, cancel := context.WithCancelCause(f.Context())
		cancel(errors.New("SIGTERM"))
		res.Held.Release(ctx)
		f.unclaimed()
		(*lease.Lease)(nil).Release(ctx)
	})
}

// pausedAt has a person pause the thread while its agent works.
func (f *fixture) pausedAt(at time.Duration) func(time.Duration) {
	return func(after time.Duration) {
		if after == at {
			f.edit(func(e *gitcas.Entry) { e.Pause = &gitcas.Pause{Reason: "wait"} })
		}
	}
}

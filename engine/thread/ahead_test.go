package thread_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// claimAhead claims the thread for jobs that a run is to start.
func (f *fixture) claimAhead(run string) *lease.Lease {
	f.Helper()
	h, err := f.engine(run, 1).ClaimAhead(f.Context(), f.view(), testThread)
	f.ok(err)
	return h
}

// TestClaimAhead: the claim that a job makes for those that it starts.
func TestClaimAhead(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.timeout, f.limits.Tokens, f.limits.CostUSD = 45*time.Minute, 1000, 5
		f.start()
		h := f.claimAhead("starter")
		c, _ := f.view().FindClaim(testThread)
		if life := time.Duration(c.Until-c.Since) * time.Millisecond; life != 30*time.Minute+f.timeout+30*time.Minute+lease.SealingTime+20*time.Minute {
			f.Errorf("it lives for %s", life)
		}
		if !c.Ahead || c.Nonce != h.Nonce() || c.Tokens != 1000 || c.CostUSD != 5 {
			f.Errorf("the claim is %+v", c)
		}
		_, err := f.step("other")
		f.says(f.code(err, life.KindNotYours), "the jobs that run starter (attempt 1) started for it")
		if _, err := f.engine("second", 1).ClaimAhead(f.Context(), f.view(), testThread); life.KindOf(err) != life.KindNotYours {
			f.Errorf("a second claim ahead: %v", err)
		}
		if _, err = f.stepWith("thief", 1, step.Request{Thread: testThread, Nonce: "guessed"}); life.KindOf(err) != life.KindNotYours {
			f.Errorf("a step with another nonce: %v", err)
		}
		f.paid(0)

		// The job that is started knows it, and commits in one push.
		pushes := 0
		f.remote.setBefore(func(op string, _ wire.PushRequest) error {
			if op == "push" {
				pushes++
			}
			return nil
		})
		answer := f.agent
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			m.Add(900, 1, 4) // of any other claim it would be said
			time.Sleep(30 * time.Minute)
			return answer(ctx, t, m)
		}
		_, err = f.stepWith("started", 1, step.Request{Thread: testThread, Nonce: h.Nonce()})
		f.ok(err)
		f.paid(1)
		f.unclaimed()
		if pushes != 1 {
			f.Errorf("the step took %d pushes", pushes)
		}
	})
}

// TestClaimAheadOnMore: what the claim that was made ahead doesn't stand for.
func TestClaimAheadOnMore(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(f *fixture, h *lease.Lease)
		code      life.Kind
		paid      int
	}{
		"let go: as without one":   {func(f *fixture, h *lease.Lease) { h.Release(f.Context()) }, life.KindDone, 1},
		"taken by somebody else":   {func(f *fixture, _ *lease.Lease) { f.claimBy(f.other(0)) }, life.KindNotYours, 0},
		"suspended meanwhile":      {func(f *fixture, _ *lease.Lease) { f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait")) }, life.KindSuspended, 0},
		"paused meanwhile":         {func(f *fixture, _ *lease.Lease) { f.ok(f.engine("p", 1).Pause(f.Context(), testThread, "wait")) }, life.KindSuspended, 0},
		"of another head":          {func(f *fixture, h *lease.Lease) { f.moveClaim(h) }, life.KindDone, 1},
		"long over, and not taken": {func(*fixture, *lease.Lease) { time.Sleep(5 * time.Hour) }, life.KindDone, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.timeout = 45 * time.Minute
				f.start()
				h := f.claimAhead("starter")
				c.meanwhile(f, h)
				_, err := f.stepWith("started", 1, step.Request{Thread: testThread, Nonce: h.Nonce()})
				f.code(err, c.code)
				f.paid(c.paid)
				if name != "taken by somebody else" {
					f.unclaimed()
				}
				f.sound()
			})
		})
	}
}

// moveClaim makes a claim one of another head.
func (f *fixture) moveClaim(h *lease.Lease) {
	f.Helper()
	held, _ := f.view().FindClaim(testThread)
	c := held.Claim
	c.Head = "0000000000001"
	f.claimBy(c)
	if now, _ := f.view().FindClaim(testThread); now.Nonce != h.Nonce() {
		f.Fatalf("the claim is %+v", now)
	}
}

// TestAgentThatHandsOver: an agent whose work another job commits leaves time for that.
func TestAgentThatHandsOver(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.disk = &memoryDisk{}
		f.timeout = 5 * time.Hour // with all the rest more than a claim may live
		f.start()
		h := f.claimAhead("starter")
		time.Sleep(40 * time.Minute) // for a runner
		_, err := f.stepWith("started", 1, step.Request{Thread: testThread, Nonce: h.Nonce(), HandsOver: true})
		f.ok(err)
		if got, want := f.runs[0].Timeout, life.MaxClaim-40*time.Minute-lease.SealingTime-30*time.Minute; got != want {
			f.Errorf("the agent may run for %s, want %s", got, want)
		}
	})
}

// TestDeadAhead: the jobs of a claim that was made ahead die: nobody knows what their agent
// used, so all that it might have is charged.
func TestDeadAhead(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.timeout, f.limits.Tokens = 45*time.Minute, 1000
		f.start()
		f.claimAhead("starter")
		time.Sleep(132*time.Minute + 1)
		_, err := f.step("next")
		f.says(f.code(err, life.KindLimit), "tokens")
		f.paid(0)
		f.unclaimed()
		if e := f.entry(); e.Status != gitcas.StatusSuspended || len(e.Attempts) != 1 {
			f.Errorf("the entry is %+v", e)
		}
	})
}

// TestNoClaimAhead: where the next step runs no agent, nothing is claimed for it.
func TestNoClaimAhead(t *testing.T) {
	for name, prepare := range map[string]func(f *fixture){
		"over a limit": func(f *fixture) { f.limits.Tokens = 1; f.steps("r1") },
		"to pause":     func(f *fixture) { f.edit(func(e *gitcas.Entry) { e.Pause = &gitcas.Pause{Reason: "wait"} }) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				prepare(f)
				if h := f.claimAhead("starter"); h.Nonce() != "" {
					f.Errorf("the claim is %s", h.Nonce())
				}
				f.unclaimed()
			})
		})
	}
}

// TestNextOfOtherJobs: the claim for jobs that are to be started goes out with the commit of
// the step before.
func TestNextOfOtherJobs(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.timeout = 45 * time.Minute
		f.start()
		h := f.claimAhead("starter")
		f.agent = f.answer("done", "rejected")
		for n, run := range []string{"r1", "r2", "r3"} {
			var pushes int
			f.remote.setBefore(func(op string, _ wire.PushRequest) error {
				if op == "push" {
					pushes++
				}
				return nil
			})
			e := f.engine(run, 1)
			res, err := e.Step(f.Context(), step.Request{Thread: testThread, Nonce: h.Nonce(), Ahead: true, Next: func() (lease.Identity, bool) { return e.Who, true }})
			f.ok(err)
			c, ok := f.view().FindClaim(testThread)
			if !ok || !c.Ahead || c.Nonce == h.Nonce() || c.Nonce != res.Held.Nonce() || c.Head != f.entry().Head || pushes != 1 {
				f.Errorf("step %d: %d pushes, the claim is %+v", n, pushes, c)
			}
			h = res.Held
		}
		h.Release(f.Context())
		f.unclaimed()
		f.paid(3)
		f.sound()
	})
}

// TestClaimAheadUnsure: nobody knows whether the claim was taken: then it is not there.
func TestClaimAheadUnsure(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.remote.setBefore(func(op string, _ wire.PushRequest) error {
			if op == "push" {
				return &wire.RemoteError{Op: "push", Kind: wire.ErrDenied, Detail: "no"}
			}
			return nil
		})
		_, err := f.engine("starter", 1).ClaimAhead(context.Background(), f.view(), testThread)
		if !errors.Is(err, wire.ErrDenied) {
			f.Errorf("the error is %v", err)
		}
		f.unclaimed()
	})
}

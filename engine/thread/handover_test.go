package thread_test

import (
	"context"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// runFirstJob is the job of two that runs the agent: whatever it pushes is refused.
func (f *fixture) runFirstJob(nonce string) (thread.Result, error) {
	f.Helper()
	refs := f.mem.Refs()
	if f.disk == nil {
		f.disk = &memoryDisk{}
	}
	f.remote.setBefore(func(op string, _ wire.PushRequest) error {
		if op == "push" {
			return &wire.RemoteError{Op: op, Kind: wire.ErrDenied, Detail: "read only"}
		}
		return nil
	})
	res, err := f.stepWith("first", 1, step.Request{Thread: testThread, Nonce: nonce, HandsOver: true})
	f.remote.setBefore(nil)
	for name, id := range refs {
		if f.mem.Refs()[name].IsZero() {
			f.Errorf("the first job deleted %s, which was at %s", name, id)
		}
	}
	return res, err
}

// runSecondJob is the one that commits.
func (f *fixture) runSecondJob(nonce string) (thread.Result, error) {
	f.Helper()
	return f.secondAs(1, nonce)
}

func (f *fixture) secondAs(attempt int, nonce string) (thread.Result, error) {
	f.Helper()
	paid, left := len(f.runs), f.disk
	f.disk = &memoryDisk{}
	res, err := f.stepWith("second", attempt, step.Request{Thread: testThread, Nonce: nonce, TakesOver: left.Read})
	f.paid(paid)
	f.kept()
	return res, err
}

// TestHandedOver: a step of two jobs is one of the second, at the price that the first one says.
func TestHandedOver(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		bubble(t, atomic, func(f *fixture) {
			f.timeout = 45 * time.Minute
			f.start()
			h := f.claimAhead("starter")
			res, err := f.runFirstJob(h.Nonce())
			f.ok(err)
			if c, ok := f.view().FindClaim(testThread); res.Result != "done" || res.Head != f.entry().Head || !ok || c.Nonce != h.Nonce() {
				f.Errorf("%+v, the claim is %+v", res, c)
			}
			res, err = f.runSecondJob(h.Nonce())
			f.ok(err)
			f.unclaimed()
			s := f.chain().Steps[0]
			if s.Run.ID != "second" || s.Usage.InputTokens != 10 || s.Usage.CostUSD != 0.5 || f.totals().Tokens != 11 || res.Head != f.entry().Head {
				f.Errorf("%+v: %+v", res, s.Step)
			}
			f.paid(1)
			f.sound()
		})
	}
}

// TestFailedHandedOver: what a first job took whose agent failed is charged to the thread, and
// counts for its limits, as if it had been one job.
func TestFailedHandedOver(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.limits.Tokens, f.limits.CostUSD = 200, 10
		f.agent = f.fails
		for n := 1; n <= 2; n++ {
			_, err := f.runFirstJob("")
			f.code(err, life.KindFailed)
			f.kept("")
			_, err = f.secondAs(n, "")
			f.says(f.code(err, life.KindFailed), "gave up")
			if u := f.totals(); u.Tokens != int64(n)*110 || u.CostUSD != float64(n) || len(f.entry().Attempts) != n {
				t.Errorf("after %d: %+v, %q", n, u, f.entry().Attempts)
			}
		}
		paid := len(f.runs)
		_, err := f.runFirstJob("")
		f.ok(err)
		_, err = f.secondAs(3, "")
		f.code(err, life.KindLimit)
		f.paid(paid)
		f.sound()
	})
}

// TestSaidBetweenTwoJobs: what people say after the agent was asked makes its step an attempt, which
// keeps and charges it.
func TestSaidBetweenTwoJobs(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		_, err := f.runFirstJob("")
		f.ok(err)
		people := f.engine("p", 1)
		f.ok(people.Suspend(f.Context(), testThread, "wait"))
		f.ok(people.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "not so"}))
		_, err = f.runSecondJob("")
		f.says(f.code(err, life.KindFailed), "people have said something else to the thread since the agent began")
		if u := f.totals(); u.Tokens != 11 || len(f.chain().Steps) != 0 || len(f.entry().Attempts) != 1 {
			t.Errorf("%+v, %+v", u, f.entry())
		}
		f.sound()
	})
}

// TestFirstJobUnclaimed: a first job that nobody claimed for works all the same, and gives way to
// whoever claims the thread.
func TestFirstJobUnclaimed(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(f *fixture)
		code      life.Kind
	}{
		"left alone":            {func(*fixture) {}, life.KindDone},
		"claimed by others":     {func(f *fixture) { f.claimBy(f.other(0)) }, life.KindNotYours},
		"claimed by a dead one": {func(f *fixture) { f.claimBy(f.other(7 * time.Hour)) }, life.KindDone},
		"suspended":             {func(f *fixture) { f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait")) }, life.KindNotYours},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.timeout = 45 * time.Minute
				f.start()
				answer := f.agent
				f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
					before := f.remote.setBefore(nil)
					c.meanwhile(f)
					f.remote.setBefore(before)
					select {
					case <-time.After(5 * time.Minute):
						return answer(ctx, t, m)
					case <-ctx.Done():
						return task.Draft{}, context.Cause(ctx)
					}
				}
				_, err := f.runFirstJob("")
				f.code(err, c.code)
				f.kept("") // what there is of it
				if name == "left alone" {
					_, err := f.runSecondJob("")
					f.ok(err)
					f.unclaimed()
				}
			})
		})
	}
	inBubble(t, func(f *fixture) {
		f.start()
		f.claimBy(f.other(0))
		_, err := f.runFirstJob("")
		f.says(f.code(err, life.KindNotYours), "run other (attempt 1) on there is working on it")
		f.paid(0)
	})
}

// TestFirstJobOfLaggingBranch: the first job can't bring a work branch up. It works from what the
// thread recorded, and the second brings the branch up.
func TestFirstJobOfLaggingBranch(t *testing.T) {
	bubble(t, false, func(f *fixture) {
		branch, tip := f.worksAndLags("rejected")
		recorded := f.entry().Work.Commit
		answer := f.agent
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			f.files["of-two"] = "x"
			return answer(ctx, t, m)
		}
		_, err := f.runFirstJob("")
		f.ok(err)
		if f.mem.Refs()[branch] == tip {
			t.Fatal("the branch doesn't lag")
		}
		_, err = f.runSecondJob("")
		f.ok(err)
		if s := f.chain().Steps[2]; s.Work == nil || s.Work.Commit != f.mem.Refs()[branch].String() || s.Work.Commit == recorded {
			t.Errorf("%+v, the branch is at %s", s.Work, f.mem.Refs()[branch])
		}
		f.sound()
	})
}

// TestNothingForTheFirstJob: where no agent is to run, the first job does nothing, and the second
// what is due.
func TestNothingForTheFirstJob(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(f *fixture)
		code    life.Kind
	}{
		"a limit":       {func(f *fixture) { f.steps("r1"); f.limits.Tokens = 5 }, life.KindLimit},
		"to pause":      {func(f *fixture) { f.edit(func(e *gitcas.Entry) { e.Pause = &gitcas.Pause{Reason: "wait"} }) }, life.KindSuspended},
		"tried enough":  {func(f *fixture) { f.failSteps("r1", "r2", "r3") }, life.KindSuspended},
		"not linked":    {func(f *fixture) { f.failSteps("r1", "r2"); f.failUnlinked() }, life.KindSuspended},
		"branch reset":  {func(f *fixture) { f.resetBranch() }, life.KindSuspended},
		"somebody else": {func(f *fixture) { f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait")) }, life.KindSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.agent = f.answer("done", "rejected")
				f.start()
				c.prepare(f)
				paid, head := len(f.runs), f.entry().Head
				f.disk = &memoryDisk{}
				res, err := f.runFirstJob("")
				if err != nil && (name != "somebody else" || life.KindOf(err) != c.code) || res.Result != "" {
					t.Errorf("%+v: %v", res, err)
				}
				f.kept()
				_, err = f.runSecondJob("")
				f.code(err, c.code)
				f.paid(paid)
				if e := f.entry(); e.Head != head || e.Status != gitcas.StatusSuspended {
					t.Errorf("%+v", e)
				}
				f.unclaimed()
			})
		})
	}
}

// failSteps are attempts at the step that failed.
func (f *fixture) failSteps(runs ...string) {
	f.Helper()
	answer := f.agent
	f.agent = f.fails
	for _, run := range runs {
		_, err := f.step(run)
		f.code(err, life.KindFailed)
	}
	f.agent = answer
}

// failUnlinked is one more, which could not be linked.
func (f *fixture) failUnlinked() {
	f.Helper()
	f.protect()
	f.failSteps("unlinked")
	f.remote.setBefore(nil)
}

// resetBranch makes the work branch one that the thread's work is not on.
func (f *fixture) resetBranch() {
	f.Helper()
	answer := f.agent
	f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
		f.files["of-one"] = "x"
		return answer(ctx, t, m)
	}
	f.steps("r1")
	ref := "refs/heads/" + layout.WorkBranch(testThread)
	snap, err := commitFiles(map[string]string{"other": "x"}, nil, "by a person")
	f.ok(err)
	_, err = f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: ref, Old: f.mem.Refs()[ref], New: snap.Commit}}, Objects: snap.Objects})
	f.ok(err)
}

package thread_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deliver"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// end steps the thread to its end, where it waits to be delivered.
func (f *fixture) end() {
	f.Helper()
	f.start()
	f.steps("r1")
	res, err := f.stepWith("r2", 1, step.Request{Thread: testThread, Deliver: true})
	f.ok(err)
	if !res.Done || !res.Deliver || res.Status != "ended" {
		f.Fatalf("%+v", res)
	}
}

// deliver is a job that delivers the thread; its Do makes pull request 12 and
// comment 34, and is counted.
func (f *fixture) deliver(run string) (thread.Result, error) {
	return f.deliverWith(run, func(context.Context, deliver.Delivery) (life.Effects, error) {
		return life.Effects{Comment: 34, PR: 12}, nil
	})
}

func (f *fixture) deliverWith(run string, do func(context.Context, deliver.Delivery) (life.Effects, error)) (thread.Result, error) {
	return f.engine(run, 1).Deliver(f.Context(), deliver.Request{Thread: testThread, Do: func(ctx context.Context, d deliver.Delivery) (life.Effects, error) {
		f.delivered++
		return do(ctx, d)
	}})
}

// undelivered is a job that can't deliver the thread.
func (f *fixture) undelivered(run string) (thread.Result, string) {
	f.Helper()
	res, err := f.deliverWith(run, func(context.Context, deliver.Delivery) (life.Effects, error) {
		return life.Effects{Comment: 34}, errors.New("the forge is down")
	})
	if life.KindOf(err) != life.KindFailed {
		f.Errorf("%T: %v", err, err)
	}
	return res, f.code(err, life.KindFailed)
}

// history is the line of the thread, which is over.
func (f *fixture) history() gitcas.Ended {
	f.Helper()
	v := f.view()
	if e, alive := v.Entry(testThread); alive {
		f.Fatalf("it is there: %+v", e)
	}
	ended, ok, err := v.FindEnded(f.Context(), testThread)
	f.ok(err)
	if !ok {
		f.Fatal("it is not in the history")
	}
	return ended
}

func TestDeliver(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		bubble(t, atomic, func(f *fixture) {
			var points []string
			f.end()
			head := f.entry().Head
			f.hook = func(p string) { points = append(points, p) }
			res, err := f.engine("d1", 1).Deliver(f.Context(), deliver.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}, Do: func(_ context.Context, d deliver.Delivery) (life.Effects, error) {
				held, ok := f.view().FindClaim(testThread)
				if !ok || held.For != "deliver" || held.Run != "d1" || held.Head != head {
					f.Errorf("delivered under the claim %+v", held)
				}
				if d.Entry.Head != head || d.Def.Name != "two" || len(d.Chain.Steps) != 2 || d.Ended.Head != head || len(d.Ended.Steps) != 2 {
					f.Errorf("%+v", d)
				}
				return life.Effects{Comment: 34, PR: 12}, nil
			}})
			f.ok(err)
			if !res.Done || res.Status != "ended" || res.Deliver || res.Head != head || res.PR != 12 || res.Role != "b" || res.Result != "approved" || res.Step != 2 || res.Name != "two" {
				f.Errorf("%+v", res)
			}
			if line := f.history(); line.PR != 12 || line.Head != head || line.Reason != "ended" || len(line.Steps) != 2 {
				f.Errorf("%+v", line)
			}
			f.unclaimed()
			f.sound()
			if got := strings.Join(points, ", "); got != "claim, deliver-claimed, deliver-done, delivered" {
				f.Errorf("points: %s", got)
			}
			// Whoever comes later finds it done.
			_, err = f.deliver("d2")
			f.says(f.code(err, life.KindNotYours), "it has ended")
			again, err := f.engine("r2", 2).Deliver(f.Context(), deliver.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}})
			f.ok(err) // the run that ended it
			if !again.Again || again.Head != head || again.PR != 12 || !again.Done {
				f.Errorf("%+v", again)
			}
			// It goes on with the comment and pull request that it had.
			f.ok(f.deed("resume"))
			if e := f.entry(); e.Comment != 34 || e.PR != 12 || e.Deliver || e.Since != 0 {
				f.Errorf("%+v", e)
			}
			f.steps("r3")
		})
	}
}

// TestDeliverOnlyWhatEnded: everything else is said, and nothing is done.
func TestDeliverOnlyWhatEnded(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(f *fixture)
		code life.Kind
		says string
	}{
		"unknown": {func(f *fixture) {
			_, _ = f.engine("s", 1).Start(f.Context(), startRequest("01JD0000000000000000000002"))
		}, life.KindUsage, "no thread"},
		"active":    {func(f *fixture) { f.start() }, life.KindNotYours, "it has not ended"},
		"suspended": {func(f *fixture) { f.start(); f.ok(f.deed("suspend")) }, life.KindSuspended, "wait a bit"},
		"cancelled": {func(f *fixture) { f.end(); f.ok(f.deed("cancel")) }, life.KindNotYours, "it was cancelled"},
		"over":      {func(f *fixture) { f.start(); f.steps("r1", "r2") }, life.KindNotYours, "it has ended"},
		"claimed": {func(f *fixture) {
			f.end()
			c := f.other(0)
			c.For = life.ForDelivery
			f.claimBy(c)
		}, life.KindNotYours, "run other (attempt 1) on there is delivering it"},
		"resumed": {func(f *fixture) { f.end(); f.ok(f.deed("resume")) }, life.KindNotYours, "it has not ended"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				c.set(f)
				_, err := f.deliver("d1")
				f.says(f.code(err, c.code), c.says)
				if f.delivered != 0 {
					f.Error("it was delivered")
				}
			})
		})
	}
	inBubble(t, func(f *fixture) {
		f.end()
		_, err := f.engine("d1", 1).Deliver(f.Context(), deliver.Request{Thread: testThread, ExpectHead: node.Pin{Hash: "0000000000001"}})
		f.says(f.code(err, life.KindNotYours), "its head is")
		f.unclaimed()
	})
}

// TestDeliverKilled: a job that dies at any point of a delivery leaves a thread that
// the next job delivers, to the same end.
func TestDeliverKilled(t *testing.T) {
	for _, point := range []string{"claim", "deliver-claimed", "deliver-done", "delivered"} {
		for _, atomic := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, atomic %v", point, atomic), func(t *testing.T) {
				bubble(t, atomic, func(f *fixture) {
					f.end()
					f.killedAt(point, func() { _, _ = f.deliver("d1") })
					v := f.view()
					e := f.engine("s", 1)
					if point != "delivered" {
						if got := e.ListPending(f.all(), time.Minute); len(got) != 0 {
							f.Errorf("pending while the claim counts: %+v", got)
						}
					}
					time.Sleep(life.MaxClaim)
					_, alive := v.Entry(testThread)
					if got := e.ListPending(f.all(), time.Minute); (len(got) == 1 && got[0].Deliver) != alive {
						f.Errorf("pending: %+v", got)
					}
					if _, err := f.deliver("d2"); alive {
						f.ok(err)
					} else {
						f.code(err, life.KindNotYours)
					}
					if line := f.history(); line.PR != 12 {
						f.Errorf("%+v", line)
					}
					want := map[string]int{"claim": 1, "deliver-claimed": 1, "deliver-done": 2, "delivered": 1}[point]
					if f.delivered != want {
						f.Errorf("delivered %d times, want %d", f.delivered, want)
					}
					f.unclaimed()
					f.sound()
				})
			})
		}
	}
}

// errKilled is what the deferred calls of a job that was killed get: the dead wait for
// nothing.
var errKilled = &wire.RemoteError{Op: "request", Kind: wire.ErrDenied, Detail: "the job was killed"}

// killedAt runs a job whose process dies at a point: nothing of it is heard of after.
func (f *fixture) killedAt(point string, job func()) {
	f.hook = func(p string) {
		if p == point {
			f.remote.setBefore(func(string, wire.PushRequest) error { return errKilled })
			runtime.Goexit()
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		job()
	}()
	<-done
	f.hook = nil
	f.remote.setBefore(nil)
}

// all is the store with all claims.
func (f *fixture) all() *gitcas.View {
	f.Helper()
	v, err := f.store().Load(f.Context())
	f.ok(err)
	return v
}

// TestDeliverLostReply: whichever reply is lost, it is delivered once.
func TestDeliverLostReply(t *testing.T) {
	for nth := 1; ; nth++ {
		pushes := 0
		inBubble(t, func(f *fixture) {
			f.end()
			f.remote.after = func(op string, _ wire.PushRequest) error {
				if pushes++; pushes == nth {
					return unreachable()
				}
				return nil
			}
			res, err := f.deliver("d1")
			f.ok(err)
			if f.delivered != 1 || res.PR != 12 || f.history().PR != 12 {
				f.Errorf("reply %d: delivered %d times, %+v", nth, f.delivered, res)
			}
			f.unclaimed()
			f.sound()
		})
		if pushes < nth {
			if nth < 3 {
				t.Fatalf("only %d pushes", pushes)
			}
			return
		}
	}
}

// TestDeliverFails: what failed is noted, tried again, and not for ever; what was
// made beside the failure is kept.
func TestDeliverFails(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		bubble(t, atomic, func(f *fixture) {
			f.end()
			e := f.engine("s", 1)
			for n := 1; n <= life.MaxAttempts; n++ {
				time.Sleep(time.Hour)
				if got := e.ListPending(f.all(), time.Minute); len(got) != 1 {
					f.Fatalf("after %d: %+v", n-1, got)
				}
				res, text := f.undelivered(fmt.Sprintf("d%d", n))
				f.says(text, "the forge is down")
				f.unclaimed()
				if got := e.ListPending(f.all(), time.Minute); len(got) != 0 {
					f.Errorf("tried again at once: %+v", got)
				}
				entry := f.entry()
				if entry.Comment != 34 || !entry.Deliver || len(entry.Attempts) != n || (n == life.MaxAttempts) != (res.Suspended != nil) {
					f.Errorf("after %d: %+v, %+v", n, entry, res)
				}
			}
			attempts, err := attempt.ReadAll(f.Context(), f.store(), f.view(), testThread, f.entry())
			f.ok(err)
			for _, a := range attempts {
				if a.Phase != "deliver" || !strings.Contains(a.Error, "the forge is down") {
					f.Errorf("%+v", a)
				}
			}
			_, err = f.deliver("d4")
			f.says(f.code(err, life.KindSuspended), "3 deliveries failed", "the forge is down")
			time.Sleep(time.Hour)
			if got := e.ListPending(f.all(), time.Minute); len(got) != 0 {
				f.Errorf("pending: %+v", got)
			}
			f.ok(f.deed("retry"))
			_, err = f.deliver("d5")
			f.ok(err)
			if f.history().PR != 12 {
				f.Error("no pull request")
			}
			f.sound()
		})
	}
}

// TestDeliveriesThatDie count like those that fail, and never as attempts at a step.
func TestDeliveriesThatDie(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.end()
		for n := range life.MaxAttempts {
			f.killedAt("deliver-claimed", func() { _, _ = f.deliver(fmt.Sprintf("d%d", n)) })
			time.Sleep(life.MaxClaim)
		}
		_, err := f.deliver("d9")
		f.says(f.code(err, life.KindSuspended), "3 deliveries failed")
		if f.delivered != 0 || f.entry().Status != gitcas.StatusSuspended || len(f.entry().Attempts) != life.MaxAttempts {
			f.Errorf("%+v", f.entry())
		}
		f.ok(f.deed("poke"))
		if e := f.entry(); e.Deliver || len(e.Attempts) != 0 {
			f.Errorf("%+v", e)
		}
		f.steps("r3")
	})
	inBubble(t, func(f *fixture) {
		f.end()
		for n := range life.MaxAttempts - 1 {
			f.killedAt("deliver-claimed", func() { _, _ = f.deliver(fmt.Sprintf("d%d", n)) })
			time.Sleep(life.MaxClaim)
		}
		f.ok(f.deed("resume"))
		f.unclaimed()
		answer := f.agent
		f.agent = f.fails
		_, err := f.step("f")
		f.code(err, life.KindFailed)
		if n := len(f.entry().Attempts); n != 1 {
			f.Errorf("%d attempts at the step", n)
		}
		f.agent = answer
		f.steps("r3")
	})
}

// TestDeliveredDropsDeadTries: a delivery leaves nothing of one before it whose job died.
func TestDeliveredDropsDeadTries(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.end()
		f.killedAt("deliver-claimed", func() { _, _ = f.deliver("d1") })
		time.Sleep(life.MaxClaim)

		died := false
		_, err := f.deliverWith("d2", func(context.Context, deliver.Delivery) (life.Effects, error) {
			_, died = f.mem.Refs()[layout.AttemptRefs(testThread)+"d1.1"]
			return life.Effects{}, nil
		})
		f.ok(err)
		if _, left := f.mem.Refs()[layout.AttemptRefs(testThread)+"d1.1"]; left || !died {
			f.Errorf("the ref of the dead try: there before %v, after %v", died, left)
		}
	})
}

// TestDeliverLosesTheThread: who loses it while it delivers archives nothing.
func TestDeliverLosesTheThread(t *testing.T) {
	for name, meanwhile := range map[string]func(f *fixture){
		"cancelled":  func(f *fixture) { f.ok(f.deed("cancel")) },
		"resumed":    func(f *fixture) { f.ok(f.deed("resume")) },
		"taken over": func(f *fixture) { c := f.other(0); c.For = life.ForDelivery; f.claimBy(c) },
	} {
		for _, wait := range []time.Duration{0, 2 * lease.RenewEvery} {
			for _, atomic := range []bool{true, false} {
				if !atomic && wait == 0 && name == "taken over" {
					continue // its state is pushed before anybody looks at the claim: the other one finds it done
				}
				t.Run(fmt.Sprintf("%s, %s, atomic %v", name, wait, atomic), func(t *testing.T) {
					bubble(t, atomic, func(f *fixture) {
						f.end()
						_, err := f.deliverWith("d1", func(ctx context.Context, _ deliver.Delivery) (life.Effects, error) {
							meanwhile(f)
							select {
							case <-ctx.Done():
								return life.Effects{}, context.Cause(ctx)
							case <-time.After(wait):
								if wait > 0 {
									f.Error("nobody told it")
								}
								return life.Effects{PR: 12}, nil
							}
						})
						f.code(err, life.KindNotYours)
						want := map[string]string{"cancelled": "cancelled", "resumed": "active", "taken over": "ended"}[name]
						if got := f.status(); got != want {
							f.Errorf("it is %s", got)
						}
						f.sound()
					})
				})
			}
		}
	}
}

// TestDeliverInterrupted: the claim is let go, and the thread stays to be delivered.
func TestDeliverInterrupted(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.end()
		ctx, cancel := context.WithCancelCause(f.Context())
		_, err := f.engine("d1", 1).Deliver(ctx, deliver.Request{Thread: testThread, Do: func(ctx context.Context, _ deliver.Delivery) (life.Effects, error) {
			cancel(errors.New("SIGTERM"))
			return life.Effects{}, ctx.Err()
		}})
		f.says(f.code(err, life.KindFailed), "SIGTERM")
		f.unclaimed()
		_, err = f.deliver("d2")
		f.ok(err)
	})
}

// TestDeliverBringsTheBranchUp before anybody looks at it.
func TestDeliverBringsTheBranchUp(t *testing.T) {
	branch := "refs/heads/" + layout.WorkBranch(testThread)
	worked := func(f *fixture) wire.ID {
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			f.files["by-"+t.Role] = "x\n"
			return f.answer("done", "approved")(ctx, t, m)
		}
		f.end()
		tip := f.mem.Refs()[branch]
		if tip.IsZero() || tip.String() != f.entry().Work.Commit {
			f.Fatalf("the branch is at %s, recorded is %+v", tip, f.entry().Work)
		}
		return tip
	}
	move := func(f *fixture, from, to wire.ID, objs ...wire.PackObject) {
		_, err := f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: branch, Old: from, New: to}}, Objects: objs})
		f.ok(err)
	}
	person := func(f *fixture, on wire.ID, file, text string) (wire.ID, []wire.PackObject) {
		files := map[string]string{}
		if file != "" {
			files[file] = text
		}
		snap, err := commitFiles(files, []wire.ID{on}, "by hand")
		f.ok(err)
		return snap.Commit, snap.Objects
	}
	tips := func(f *fixture) (wire.ID, error) {
		var tip wire.ID
		_, err := f.deliverWith("d1", func(_ context.Context, d deliver.Delivery) (life.Effects, error) {
			if tip = d.Tip; tip != f.mem.Refs()[branch] {
				f.Errorf("told %s, the branch is at %s", tip, f.mem.Refs()[branch])
			}
			return life.Effects{PR: 1}, nil
		})
		return tip, err
	}
	t.Run("gone", func(t *testing.T) {
		inBubble(t, func(f *fixture) {
			tip := worked(f)
			_, err := f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: branch, Old: tip}}})
			f.ok(err)
			if got, err := tips(f); err != nil || got != tip {
				f.Errorf("%s, %v", got, err)
			}
		})
	})
	t.Run("moved on", func(t *testing.T) {
		inBubble(t, func(f *fixture) {
			tip := worked(f)
			ahead, objs := person(f, tip, "theirs", "y\n")
			move(f, tip, ahead, objs...)
			if got, err := tips(f); err != nil || got != ahead {
				f.Errorf("%s, %v", got, err)
			}
		})
	})
	t.Run("lags", func(t *testing.T) {
		bubble(t, false, func(f *fixture) {
			_, tip := f.worksAndLags("approved")
			if got, err := tips(f); err != nil || got != tip {
				f.Errorf("%s, %v", got, err)
			}
		})
	})
	for _, atomic := range []bool{true, false} {
		t.Run(fmt.Sprintf("set back to something else, atomic %v", atomic), func(t *testing.T) {
			bubble(t, atomic, func(f *fixture) {
				tip := worked(f)
				c, err := workCommit(f, tip)
				f.ok(err)
				other, objs := person(f, c, "by-b", "not x\n")
				_, err = f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: branch, Old: tip}, {Name: "refs/heads/keep", New: tip}}})
				f.ok(err)
				move(f, wire.ZeroID, other, objs...)
				_, err = tips(f)
				f.code(err, life.KindSuspended)
				if e := f.entry(); e.Status != gitcas.StatusSuspended || !e.Deliver || f.delivered != 0 {
					f.Errorf("%+v", e)
				}
				f.unclaimed()
				// Mended by hand, it is delivered.
				move(f, other, tip)
				f.ok(f.deed("resume"))
				_, err = tips(f)
				f.ok(err)
			})
		})
	}
}

// workCommit is the parent of a commit.
func workCommit(f *fixture, id wire.ID) (wire.ID, error) {
	w := &world{mem: f.mem}
	c, err := w.commitOf(id)
	if err == nil && len(c.Parents) == 0 {
		err = errors.New("it has no parent")
	}
	if err != nil {
		return wire.ZeroID, err
	}
	return c.Parents[0], nil
}

// TestSuspendAt only what nobody went on with.
func TestSuspendAt(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(f *fixture)
		done bool
		as   string
	}{
		"waits for its step":     {func(f *fixture) { f.start(); f.steps("r1") }, true, "suspended"},
		"waits for its delivery": {func(f *fixture) { f.end() }, true, "suspended"},
		"claimed":                {func(f *fixture) { f.start(); f.steps("r1"); f.claimBy(f.other(0)) }, false, "active"},
		"its job died":           {func(f *fixture) { f.start(); f.steps("r1"); f.claimBy(f.other(time.Hour)) }, true, "suspended"},
		"dead by a guess": {func(f *fixture) {
			f.start()
			f.steps("r1")
			f.claimBy(f.other(time.Hour))
			f.remote.torn = func(l *wire.Listing) { l.TimeGuessed = true }
		}, false, "active"},
		"suspended": {func(f *fixture) { f.start(); f.steps("r1"); f.ok(f.deed("suspend")) }, false, "suspended"},
		"over":      {func(f *fixture) { f.start(); f.steps("r1", "r2") }, false, "ended"},
	} {
		for _, lost := range []bool{false, true} {
			inBubble(t, func(f *fixture) {
				c.set(f)
				head := f.view().Threads()[testThread].Head
				f.remote.after = func(string, wire.PushRequest) error {
					f.remote.after = nil
					if lost {
						return unreachable()
					}
					return nil
				}
				e := f.engine("s", 1)
				if done, err := e.SuspendAt(f.Context(), testThread, "0000000000001", "no"); done || err != nil {
					f.Errorf("%s: at another head: %v, %v", name, done, err)
				}
				done, err := e.SuspendAt(f.Context(), testThread, head, "GitHub refused to start the next job")
				f.ok(err)
				if got := f.status(); done != c.done || got != c.as {
					f.Errorf("%s: %v, and it is %s", name, done, got)
				}
				if done && !strings.Contains(f.entry().Suspended.Reason, "GitHub refused") {
					f.Errorf("%s: %+v", name, f.entry().Suspended)
				}
				f.sound()
			})
		}
	}
}

// TestPending: who waits for a step or a delivery that nobody does, the oldest first.
func TestPending(t *testing.T) {
	inBubble(t, func(f *fixture) {
		names := map[gitcas.ThreadID]string{}
		n := 0
		thread := func(name string, steps ...string) gitcas.ThreadID {
			n++
			id := gitcas.ThreadID(fmt.Sprintf("01JD00000000000000000001%02d", n))
			names[id] = name
			_, err := f.engine("start", 1).Start(f.Context(), startRequest(id))
			f.ok(err)
			for _, run := range steps {
				_, err := f.stepWith(run, 1, step.Request{Thread: id, Deliver: true})
				f.ok(err)
			}
			time.Sleep(time.Second)
			return id
		}
		claim := func(id gitcas.ThreadID, ago time.Duration, purpose string) {
			at := time.Now().Add(-ago).UnixMilli()
			v, err := f.store().Load(f.Context(), id)
			f.ok(err)
			e, _ := v.Entry(id)
			upd, objs := view.ClaimUpdate(id, nil, &gitcas.Claim{Run: "other", Attempt: 1, Head: e.Head, Since: at, Renewed: at, For: purpose}, time.Now())
			_, err = f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{upd}, Objects: objs})
			f.ok(err)
		}
		thread("to be delivered", "r1", "r2")
		thread("new")
		thread("in the middle", "r1")
		failed := thread("failed")
		answer := f.agent
		f.agent = f.fails
		_, err := f.stepWith("f", 1, step.Request{Thread: failed})
		f.code(err, life.KindFailed)
		f.agent = answer
		f.ok(f.engine("p", 1).Suspend(f.Context(), thread("suspended"), "wait"))
		running, died, delivering := thread("running"), thread("died"), thread("delivering", "r1", "r2")
		time.Sleep(10 * time.Minute)
		claim(running, time.Second, "")
		claim(died, 2*life.RenewedLife, "")
		claim(delivering, time.Second, life.ForDelivery)
		thread("fresh")
		var got []string
		for _, p := range f.engine("s", 1).ListPending(f.all(), 5*time.Minute) {
			got = append(got, names[p.Thread])
			if p.Deliver != (names[p.Thread] == "to be delivered") || p.Since.IsZero() || p.Head == "" {
				f.Errorf("%+v", p)
			}
		}
		if want := "to be delivered, new, in the middle, died"; strings.Join(got, ", ") != want {
			f.Errorf("%q, want %q", got, want)
		}
	})
}

// TestEffects: what is known of comment and pull request goes into the entry with the
// commit, and takes nothing away from others.
func TestEffects(t *testing.T) {
	for name, c := range map[string]struct {
		before, meanwhile, ours, want life.Effects
	}{
		"nothing known":             {life.Effects{}, life.Effects{}, life.Effects{}, life.Effects{}},
		"new":                       {life.Effects{}, life.Effects{}, life.Effects{Comment: 1, PR: 2}, life.Effects{Comment: 1, PR: 2}},
		"0 takes nothing away":      {life.Effects{Comment: 1, PR: 2}, life.Effects{}, life.Effects{}, life.Effects{Comment: 1, PR: 2}},
		"others' stay":              {life.Effects{}, life.Effects{Comment: 3, PR: 4}, life.Effects{}, life.Effects{Comment: 3, PR: 4}},
		"one each":                  {life.Effects{}, life.Effects{Comment: 0, PR: 4}, life.Effects{Comment: 1, PR: 0}, life.Effects{Comment: 1, PR: 4}},
		"repeated, and others' new": {life.Effects{Comment: 1, PR: 2}, life.Effects{Comment: 3, PR: 4}, life.Effects{Comment: 1, PR: 2}, life.Effects{Comment: 3, PR: 4}},
		"made anew":                 {life.Effects{Comment: 1, PR: 2}, life.Effects{}, life.Effects{Comment: 5, PR: 2}, life.Effects{Comment: 5, PR: 2}},
	} {
		for _, end := range []string{"commit", "ask", "fail"} {
			t.Run(name+", "+end, func(t *testing.T) {
				inBubble(t, func(f *fixture) {
					f.start()
					e := f.engine("w", 1)
					f.ok(e.Record(f.Context(), testThread, c.before))
					answer := f.answer(map[string]string{"commit": "done", "ask": "ask"}[end], "approved")
					f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
						f.ok(e.Record(f.Context(), testThread, c.meanwhile))
						if end == "fail" {
							return f.fails(ctx, t, m)
						}
						return answer(ctx, t, m)
					}
					res, err := f.stepWith("r1", 1, step.Request{Thread: testThread, Effects: func() life.Effects { return c.ours }})
					if end == "fail" {
						f.code(err, life.KindFailed)
					} else {
						f.ok(err)
						if (life.Effects{Comment: res.Comment, PR: res.PR}) != c.want {
							f.Errorf("it says %+v", res)
						}
					}
					if now := f.entry(); (life.Effects{Comment: now.Comment, PR: now.PR}) != c.want {
						f.Errorf("comment %d, pull request %d, want %+v", now.Comment, now.PR, c.want)
					}
				})
			})
		}
	}
}

// TestAgain: a re-run of a job that has done its step is told what follows.
func TestAgain(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		heads := []node.Hash{f.entry().Head}
		first, err := f.stepWith("r1", 1, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: heads[0]}, Deliver: true})
		f.ok(err)
		again, err := f.stepWith("r1", 2, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: heads[0]}, Deliver: true})
		f.ok(err)
		if first.Again || !again.Again || again.Head != first.Head || again.NextRole != "b" || again.Result != "done" || again.Role != "a" || again.Status != "active" {
			f.Errorf("%+v, then %+v", first, again)
		}
		heads = append(heads, first.Head)
		_, err = f.stepWith("r2", 1, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: heads[1]}, Deliver: true})
		f.ok(err)
		again, err = f.stepWith("r2", 2, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: heads[1]}, Deliver: true})
		f.ok(err)
		if !again.Again || !again.Done || !again.Deliver || again.Status != "ended" {
			f.Errorf("%+v", again)
		}
		// A job that was sent to deliver learns that there is nothing to step.
		res, err := f.stepWith("r3", 1, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: again.Head}, Deliver: true})
		f.code(err, life.KindNotYours)
		if !res.Deliver || res.Again {
			f.Errorf("%+v", res)
		}
		f.paid(2)
	})
}

// TestKeyOfAnyStatus: whatever became of a thread, as long as it is there its key is
// taken; also for two who start at once, and when a reply is lost.
func TestKeyOfAnyStatus(t *testing.T) {
	const second = gitcas.ThreadID("01JD0000000000000000000002")
	with := func(id gitcas.ThreadID) thread.StartRequest {
		req := startRequest(id)
		req.Key = "solve/issue/7"
		return req
	}
	for status, set := range map[string]func(f *fixture){
		"active":    func(*fixture) {},
		"suspended": func(f *fixture) { f.ok(f.deed("suspend")) },
		"ended": func(f *fixture) {
			f.steps("r1")
			_, err := f.stepWith("r2", 1, step.Request{Thread: testThread, Deliver: true})
			f.ok(err)
		},
	} {
		inBubble(t, func(f *fixture) {
			_, err := f.engine("s1", 1).Start(f.Context(), with(testThread))
			f.ok(err)
			set(f)
			again, err := f.engine("s2", 1).Start(f.Context(), with(second))
			f.ok(err)
			if !again.Existed || again.Thread != testThread || again.Status != status || again.Deliver != (status == "ended") || (again.Suspended != nil) != (status == "suspended") {
				f.Errorf("%s: %+v", status, again)
			}
			if id, ok := thread.FindByKey(f.all(), "solve/issue/7"); !ok || id != testThread {
				f.Errorf("%s: found %s", status, id)
			}
		})
	}
	for _, lost := range []bool{false, true} {
		inBubble(t, func(f *fixture) {
			_, err := f.engine("s0", 1).Start(f.Context(), startRequest("01JD0000000000000000000003"))
			f.ok(err)
			f.remote.setBefore(func(op string, req wire.PushRequest) error {
				if op != "push" {
					return nil
				}
				f.remote.setBefore(nil)
				_, err := f.engine("s2", 1).Start(f.Context(), with(second)) // the faster one
				f.ok(err)
				if lost {
					return unreachable()
				}
				return nil
			})
			slow, err := f.engine("s1", 1).Start(f.Context(), with(testThread))
			f.ok(err)
			if !slow.Existed || slow.Thread != second || len(f.all().Threads()) != 2 {
				f.Errorf("%+v", slow)
			}
		})
	}
}

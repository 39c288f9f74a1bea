package thread_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestCommitReplyLost: a commit whose reply is lost is found again, and one that
// nobody knows about is not called a failure that left the thread alone.
func TestCommitReplyLost(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		for name, silent := range map[string]int{"once": 1, "for good": 1000} {
			t.Run(fmt.Sprint(name, ", atomic ", atomic), func(t *testing.T) {
				bubble(t, atomic, func(f *fixture) {
					f.start()
					answer := f.agent
					f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
						f.files["made"] = "it\n"
						return answer(ctx, t, m)
					}
					f.remote.after = func(_ string, req wire.PushRequest) error {
						if !touches(req, "refs/heads/uwf-state") {
							return nil
						}
						f.remote.setBefore(func(string, wire.PushRequest) error {
							if silent--; silent > 0 {
								return unreachable()
							}
							return nil
						})
						f.remote.after = nil
						return unreachable()
					}
					res, err := f.step("r1")
					f.remote.setBefore(nil)
					if len(f.chain().Steps) != 1 {
						f.Fatalf("the step is not there: %v", err)
					}
					if name == "once" {
						f.ok(err)
						if tip := f.mem.Refs()["refs/heads/uwf/"+string(testThread)]; res.Work == nil || tip.String() != res.Work.Commit {
							f.Errorf("the work branch is at %s: %+v", tip, res.Work)
						}
						f.unclaimed()
						return
					}
					text := f.code(err, life.KindFailed)
					f.says(text, "not known")
					if strings.Contains(text, "has not moved") {
						f.Error(text)
					}
				})
			})
		}
	}
}

// TestFinishedWorkIsKept: whatever the store does once an agent is done.
func TestFinishedWorkIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		code   life.Kind
		happen func(f *fixture)
	}{
		"cancelled": {life.KindNotYours, func(f *fixture) {
			_, err := f.engine("p", 1).Cancel(f.Context(), testThread, "no")
			f.ok(err)
		}},
		"suspended": {life.KindNotYours, func(f *fixture) { f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait")) }},
		"answered": {life.KindNotYours, func(f *fixture) {
			f.edit(func(e *gitcas.Entry) { e.Next = &gitcas.Next{Role: "a", Since: e.Next.Since + 1} })
		}},
		"taken over":  {life.KindNotYours, func(f *fixture) { f.claimBy(f.other(0)) }},
		"moved on":    {life.KindNotYours, func(f *fixture) { f.moves() }},
		"branch gone": {life.KindDamaged, func(f *fixture) { f.mem.SetRef("refs/heads/uwf-state", wire.ZeroID) }},
		"a foreign file": {life.KindDamaged, func(f *fixture) {
			f.pushes("refs/heads/uwf-state", map[string]string{"virus.exe": "x"}, f.mem.Refs()["refs/heads/uwf-state"])
		}},
		"branch protected": {life.KindFailed, func(f *fixture) {
			f.remote.setBefore(func(op string, req wire.PushRequest) error {
				if op == "push" && touches(req, "refs/heads/uwf-state") {
					return &wire.RemoteError{Op: "push", URL: "memory:", Kind: wire.ErrProtected}
				}
				return nil
			})
		}},
		"work branch rewritten": {life.KindSuspended, func(f *fixture) {
			f.pushes("refs/heads/uwf/"+string(testThread), map[string]string{"else": "x"})
		}},
		"work branch changed in the same file": {life.KindSuspended, func(f *fixture) {
			f.pushes("refs/heads/uwf/"+string(testThread), map[string]string{"made": "theirs\n"}, f.base())
		}},
		"work branch changed in very many files": {life.KindSuspended, func(f *fixture) {
			files := map[string]string{"made": "theirs\n"}
			for i := range 1000 {
				name := fmt.Sprint("a-file-with-a-rather-long-name-", i)
				files[name], f.files[name] = "theirs\n", "ours\n"
			}
			f.pushes("refs/heads/uwf/"+string(testThread), files, f.base())
		}},
		"work branch rewritten, state branch protected": {life.KindFailed, func(f *fixture) {
			f.pushes("refs/heads/uwf/"+string(testThread), map[string]string{"else": "x"})
			f.remote.setBefore(func(op string, req wire.PushRequest) error {
				if op == "push" && touches(req, "refs/heads/uwf-state") {
					return &wire.RemoteError{Op: "push", URL: "memory:", Kind: wire.ErrProtected}
				}
				return nil
			})
		}},
	} {
		for how, o := range map[string]wiretest.MemoryOptions{"": {Atomic: true}, ", not atomic": {}, ", 2 refs a push": {Atomic: true, MostRefs: 2}} {
			atomic := o.Atomic && o.MostRefs == 0
			t.Run(name+how, func(t *testing.T) {
				bubbleOn(t, o, func(f *fixture) {
					f.start()
					first := f.agent
					f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
						f.files["before"] = "it\n"
						return first(ctx, t, m)
					}
					f.steps("r0")
					head := f.entry().Head
					f.agent = func(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
						f.files["made"] = "ours\n"
						d := f.draftOf(t).output(map[string]any{"$status": "rejected", "note": "not good"}).done()
						c.happen(f)
						return d, nil
					}
					_, err := f.step("r1")
					f.remote.setBefore(nil)
					want := c.code
					if !atomic && (want == life.KindSuspended || name == "taken over") {
						// Nothing but the state branch can be looked at in the push that
						// moves it: the rest is for the next job.
						want = life.KindDone
					}
					f.code(err, want)
					tip := f.mem.Refs()[layout.AttemptRef(testThread, "r1", 1)]
					if tip.IsZero() {
						f.Fatalf("nothing was kept: %v", err)
					}
					if text := f.contents(tip); !strings.Contains(text, "ours\n") || !strings.Contains(text, "not good") {
						f.Errorf("the attempt holds\n%s", text)
					}
					if want != c.code {
						_, err := f.step("r2")
						if name != "taken over" {
							f.says(f.code(err, life.KindSuspended), "branch uwf/")
						}
						return
					}
					if c.code == life.KindSuspended {
						if e := f.entry(); e.Head != head || e.Status != gitcas.StatusSuspended || len(e.Attempts) != 1 {
							f.Errorf("%+v", e)
						}
					}
					for name, id := range f.mem.Refs() {
						if name == layout.ClaimRef(testThread) {
							if o, _ := f.mem.Get(id); strings.Contains(string(o.Data), `"r1"`) {
								f.Error("the claim is left")
							}
						}
					}
				})
			})
		}
	}
}

// base is the recorded work commit.
func (f *fixture) base() wire.ID { return f.mem.Refs()["refs/heads/uwf/"+string(testThread)] }

// pushes makes a ref point to a new commit, by force if need be.
func (f *fixture) pushes(ref string, files map[string]string, parents ...wire.ID) {
	f.Helper()
	snap, err := commitFiles(files, parents, "by hand")
	f.ok(err)
	for _, o := range snap.Objects {
		f.mem.AddObjects(o.Object)
	}
	f.mem.SetRef(ref, snap.Commit)
}

// contents are all blobs of a commit and its parents.
func (f *fixture) contents(commit wire.ID) string {
	f.Helper()
	w := &world{mem: f.mem}
	c, err := w.commitOf(commit)
	f.ok(err)
	var b strings.Builder
	f.blobs(&b, c.Tree)
	for _, p := range c.Parents {
		c, err := w.commitOf(p)
		f.ok(err)
		f.blobs(&b, c.Tree)
	}
	return b.String()
}

// TestFinish: a thread whose last step leads to the end, but that nobody ended, is
// ended without an agent; cancelled is not ended.
func TestFinish(t *testing.T) {
	for name, c := range map[string]struct {
		code life.Kind
		set  func(f *fixture)
	}{
		"ended": {life.KindDone, func(*fixture) {}},
		"reply lost": {life.KindDone, func(f *fixture) {
			f.remote.after = func(_ string, req wire.PushRequest) error {
				if touches(req, "refs/heads/uwf-state") {
					f.remote.after = nil
					return unreachable()
				}
				return nil
			}
		}},
		"cancelled meanwhile": {life.KindNotYours, func(f *fixture) {
			f.remote.setBefore(func(op string, req wire.PushRequest) error {
				if op == "push" && touches(req, "refs/heads/uwf-state") {
					f.remote.setBefore(nil)
					_, err := f.engine("p", 1).Cancel(f.Context(), testThread, "no")
					return err
				}
				return nil
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r1")
				_, err := f.stepWith("r2", 1, step.Request{Thread: testThread, Deliver: true})
				f.ok(err)
				f.edit(func(e *gitcas.Entry) { e.Status, e.Deliver = gitcas.StatusActive, false })
				c.set(f)
				res, err := f.step("r3")
				f.code(err, c.code)
				f.paid(2)
				if (c.code == life.KindDone) != (res.Done && res.Status == "ended") {
					f.Errorf("%+v", res)
				}
				f.unclaimed()
			})
		})
	}
}

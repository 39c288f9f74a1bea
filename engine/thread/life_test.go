package thread_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// writes makes agents leave a file for each run.
func (f *fixture) writes() {
	answer := f.agent
	f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
		f.files["by-"+t.Run.ID] = t.Role + "\n"
		return answer(ctx, t, m)
	}
}

// filesAt lists the files of a branch.
func (f *fixture) filesAt(branch string) string {
	f.Helper()
	tip, ok := f.mem.Refs()["refs/heads/"+branch]
	if !ok {
		return "no branch"
	}
	files, err := (&testFolder{f: f}).read(tip)
	f.ok(err)
	return strings.Join(slices.Sorted(maps.Keys(files)), " ")
}

// main is a commit of the repository's own.
func (f *fixture) main() wire.ID {
	f.pushes("refs/heads/main", map[string]string{"file": "x\n"})
	return f.mem.Refs()["refs/heads/main"]
}

func (f *fixture) startOn(base string) {
	f.Helper()
	req := startRequest(testThread)
	req.Base = base
	_, err := f.engine("start", 1).Start(f.Context(), req)
	f.ok(err)
}

// TestPoke: the head's role works again, told the same and the instruction; the old
// step stays, and its edits are taken back by a commit on top of the branch.
func TestPoke(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		t.Run(fmt.Sprint("atomic ", atomic), func(t *testing.T) {
			bubble(t, atomic, func(f *fixture) {
				f.agent = f.answer("done", "rejected")
				f.writes()
				base := f.main()
				f.startOn(base.String())
				f.steps("r1", "r2")
				old := f.chain()
				was := f.runs[1]
				branch := "uwf/" + string(testThread)
				before := f.mem.Refs()["refs/heads/"+branch]
				f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "look at the tests"))
				entry := f.entry()
				if entry.Head != old.Steps[0].Hash || entry.Next.Role != "b" || entry.Next.Poked != old.Steps[1].Hash {
					f.Fatalf("%+v, %+v", entry, entry.Next)
				}
				if got := f.filesAt(branch); strings.Contains(got, "by-r2") || !strings.Contains(got, "by-r1") {
					f.Errorf("the branch holds %s", got)
				}
				tip := f.mem.Refs()["refs/heads/"+branch]
				if w := (&world{mem: f.mem}); !w.reaches(tip, before) || tip == before || entry.Work.Commit != tip.String() {
					f.Errorf("the branch went from %s to %s; recorded is %s", before, tip, entry.Work.Commit)
				}
				f.sound()
				f.steps("r3")
				now := f.chain()
				if len(now.Steps) != 2 || now.Steps[1].Role != "b" || !slices.Contains(now.Steps[1].PreviousAttempts, old.Steps[1].Hash) {
					f.Fatalf("%+v", now.Steps)
				}
				f.get(old.Steps[1].Hash)
				task := f.runs[2]
				if !strings.HasPrefix(task.EdgePrompt, was.EdgePrompt) || task.Location != was.Location {
					f.Errorf("told %q in %q, at first %q in %q", task.EdgePrompt, task.Location, was.EdgePrompt, was.Location)
				}
				f.says(task.EdgePrompt, "look at the tests")
				if _, ok := task.Nodes[gitcas.Place{Thread: testThread}][old.Steps[1].Hash]; !ok {
					f.Error("the agent can't see what it did before")
				}
				if got := f.filesAt(branch); strings.Contains(got, "by-r2") || !strings.Contains(got, "by-r3") {
					f.Errorf("the branch holds %s", got)
				}
				f.sound()
				as, err := attempt.ReadLinkedTo(f.places(), testThread, now.Steps[1].Step)
				f.ok(err)
				if len(as) != 1 || as[0].Phase != "poked" || as[0].Run != "r2" || as[0].Role != "b" {
					f.Errorf("%+v", as)
				}
			})
		})
	}
}

// TestPokeFirst: also the first step, of a thread that began with nothing.
func TestPokeFirst(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.writes()
		f.start()
		start := f.entry().Head
		f.steps("r1")
		f.ok(f.engine("p", 1).Poke(f.Context(), testThread, ""))
		if e := f.entry(); e.Head != start || len(f.chain().Steps) != 0 {
			f.Errorf("%+v", e)
		}
		if got := f.filesAt("uwf/" + string(testThread)); got != "" {
			f.Errorf("the branch holds %s", got)
		}
		f.sound()
		f.steps("r2", "r3")
		f.sound()
	})
}

// TestPokeTwice takes one step back, not two.
func TestPokeTwice(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.agent = f.answer("done", "rejected")
		f.start()
		f.steps("r1", "r2")
		f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "once"))
		f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "and again"))
		if n := len(f.chain().Steps); n != 1 {
			f.Fatalf("%d steps are left", n)
		}
		f.steps("r3")
		f.says(f.runs[2].EdgePrompt, "once", "and again")
		// A step that was done again can be taken back again; all of them count.
		f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "once more"))
		f.steps("r4")
		f.says(f.runs[3].EdgePrompt, "and again", "once more")
		f.limits = moderator.Limits{MaxSteps: 4}
		_, err := f.step("r5")
		f.says(f.code(err, life.KindLimit), "4 steps of 4")
		f.sound()
	})
}

// TestPokeOfAsking: the role that asked does its step again instead of waiting; so
// does one that had been answered.
func TestPokeOfAsking(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.agent = f.answer("ask", "approved")
		f.start()
		f.steps("r1")
		f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "do not ask"))
		if e := f.entry(); e.Status != gitcas.StatusActive || e.Next.Role != "a" {
			f.Fatalf("%+v", e)
		}
		f.steps("r2") // asks again
		f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "blue"}))
		f.agent = f.answer("done", "approved")
		f.steps("r3")
		f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "green, rather"))
		f.steps("r4")
		f.says(f.runs[3].EdgePrompt, "blue", "green, rather")
		f.steps("r5")
		f.sound()
	})
}

// TestPokeKeepsPeople: what people pushed stays, before and after the step; where
// they changed what the step changed, nothing happens.
func TestPokeKeepsPeople(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		code life.Kind
	}{"elsewhere": {"readme", life.KindDone}, "in the same file": {"by-r2", life.KindNotYours}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.agent = f.answer("done", "rejected")
				f.writes()
				f.start()
				branch := "uwf/" + string(testThread)
				push := func(file string) {
					tip := f.mem.Refs()["refs/heads/"+branch]
					files, err := (&testFolder{f: f}).read(tip)
					f.ok(err)
					files[file] = "by hand\n"
					f.pushes("refs/heads/"+branch, files, tip)
				}
				f.steps("r1")
				push("early")
				f.steps("r2")
				push(c.file)
				before := f.mem.Refs()
				err := f.engine("p", 1).Poke(f.Context(), testThread, "again")
				text := f.code(err, c.code)
				if c.code != life.KindDone {
					f.says(text, "by-r2", "fork")
					if !maps.Equal(before, f.mem.Refs()) {
						f.Error("something was pushed")
					}
					return
				}
				if got := f.filesAt(branch); got != "by-r1 early readme" {
					f.Errorf("the branch holds %s", got)
				}
			})
		})
	}
}

// TestPokeUndoesOnlyItsStep: a step without edits recorded what it saw.
func TestPokeUndoesOnlyItsStep(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.agent = f.answer("done", "rejected")
		plain := f.agent
		f.writes()
		f.start()
		f.steps("r1")
		f.agent = plain
		f.steps("r2")
		tip := f.mem.Refs()["refs/heads/uwf/"+string(testThread)]
		f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "again"))
		if now := f.mem.Refs()["refs/heads/uwf/"+string(testThread)]; now != tip {
			f.Errorf("the branch went from %s to %s", tip, now)
		}
	})
}

// TestPokeKeepsAttempts: what the step after it cost already is still counted.
func TestPokeKeepsAttempts(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1")
		answer := f.agent
		f.agent = f.fails
		for _, run := range []string{"f1", "f2", "f3"} {
			_, err := f.step(run)
			f.code(err, life.KindFailed)
		}
		_, err := f.step("f4")
		f.code(err, life.KindSuspended)
		f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "better"))
		f.agent = answer
		as, err := attempt.ReadAll(f.Context(), f.store(), f.view(), testThread, f.entry())
		f.ok(err)
		if len(as) != 4 || as[0].Phase != "poked" || as[1].Run != "f1" || as[1].Error == "" || as[1].Usage == nil || as[1].Usage.InputTokens != 100 {
			f.Errorf("%+v", as)
		}
		f.steps("r2")
		if n := len(f.chain().Steps[0].PreviousAttempts); n != 4 {
			f.Errorf("%d previous attempts", n)
		}
		f.limits = moderator.Limits{Tokens: 11 + 3*110 + 11}
		_, err = f.step("r3")
		f.code(err, life.KindLimit)
		f.sound()
	})
}

// TestPause: a step that runs is left alone and committed; then the thread waits.
func TestPause(t *testing.T) {
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprint("it ends ", ends), func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				if ends {
					f.steps("r0")
				}
				answer := f.agent
				f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
					f.ok(f.engine("p", 1).Pause(f.Context(), testThread, "holiday"))
					if e := f.entry(); e.Status != gitcas.StatusActive || e.Pause == nil {
						f.Errorf("%+v", e)
					}
					time.Sleep(3 * lease.RenewEvery) // the claim is renewed meanwhile
					return answer(ctx, t, m)
				}
				res := f.steps("r1")
				f.agent = answer
				if ends {
					if f.status() != "ended" {
						f.Errorf("it is %s", f.status())
					}
					return
				}
				if res.Status != "suspended" || res.Suspended == nil || res.Suspended.Reason != "holiday" || res.Result != "done" {
					f.Errorf("%+v", res)
				}
				_, err := f.step("r2")
				f.says(f.code(err, life.KindSuspended), "holiday")
				f.paid(1)
				f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread}))
				f.steps("r3")
			})
		})
	}
}

// TestPauseOfAFailure: a paused thread whose step fails waits too.
func TestPauseOfAFailure(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			f.ok(f.engine("p", 1).Pause(f.Context(), testThread, "holiday"))
			return f.fails(ctx, t, m)
		}
		_, err := f.step("r1")
		f.code(err, life.KindFailed)
		if e := f.entry(); e.Status != gitcas.StatusSuspended || e.Pause != nil || len(e.Attempts) != 1 {
			f.Errorf("%+v", e)
		}
		f.ok(f.deed("retry"))
	})
}

// TestPauseTakenBack: before it takes effect, resuming takes it back, and the
// running step never knows.
func TestPauseTakenBack(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		answer := f.agent
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			p := f.engine("p", 1)
			f.ok(p.Pause(f.Context(), testThread, ""))
			f.says(f.code(p.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "blue"}), life.KindNotYours), "pauses after")
			f.ok(p.Resume(f.Context(), thread.ResumeRequest{Thread: testThread}))
			return answer(ctx, t, m)
		}
		if res := f.steps("r1"); res.Status != "active" {
			f.Errorf("%+v", res)
		}
	})
}

// TestPauseByTheNextJob: whoever asked for the pause may die before it takes effect.
func TestPauseByTheNextJob(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.edit(func(e *gitcas.Entry) { e.Pause = &gitcas.Pause{Reason: "holiday"} })
		res, err := f.step("r1")
		f.says(f.code(err, life.KindSuspended), "holiday")
		f.paid(0)
		f.unclaimed()
		if e := f.entry(); e.Status != gitcas.StatusSuspended || e.Suspended.Role != "a" || e.Pause != nil || res.Status != "suspended" {
			f.Errorf("%+v, %+v", e, res)
		}
	})
}

// TestRetry: attempts stay linked and no longer count.
func TestRetry(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		answer := f.agent
		f.agent = f.fails
		for _, run := range []string{"f1", "f2", "f3"} {
			_, err := f.step(run)
			f.code(err, life.KindFailed)
		}
		_, err := f.step("f4")
		f.says(f.code(err, life.KindSuspended), "retry")
		f.ok(f.deed("retry"))
		f.says(f.code(f.deed("retry"), life.KindNotYours), "no failed attempt")
		f.agent = answer
		f.steps("r1")
		if strings.Contains(f.runs[3].EdgePrompt, "answered") {
			f.Errorf("the role was told %q", f.runs[3].EdgePrompt)
		}
		if n := len(f.chain().Steps[0].PreviousAttempts); n != 3 {
			f.Errorf("%d previous attempts", n)
		}
	})
}

// TestFork: from any step of a thread that is alive or has ended. The chain is
// shared, the work goes on from the step's commit on a branch of its own.
func TestFork(t *testing.T) {
	for _, alive := range []bool{true, false} {
		for steps, next := range map[int]string{0: "a", 1: "b", 2: "a", -1: ""} {
			t.Run(fmt.Sprintf("alive %v, %d steps", alive, steps), func(t *testing.T) {
				inBubble(t, func(f *fixture) {
					f.agent = f.answer("done", "rejected")
					f.writes()
					f.startOn(f.main().String())
					f.steps("r1", "r2", "r3")
					old := f.chain()
					if !alive {
						f.agent = f.answer("done", "approved")
						f.steps("r4")
					} else if steps == -1 {
						next = "b"
					}
					uploaded := f.objects()
					out, err := f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: forked, From: testThread, Steps: steps, Key: "k", Limits: map[string]float64{"maxSteps": 9}})
					if next == "" {
						f.says(f.code(err, life.KindNotYours), "leads to the end", "fork "+string(testThread)+":3", "resume")
						return
					}
					f.ok(err)
					f.sound()
					if n := f.objects() - uploaded; n > 8 {
						f.Errorf("%d objects were uploaded", n)
					}
					if steps == -1 {
						steps = 3
					}
					v, err := gitcas.Open(f.mem, gitcas.Options{}).Load(f.Context(), forked)
					f.ok(err)
					entry, _ := v.Entry(forked)
					chain, err := v.ReadChain(f.Context(), forked)
					f.ok(err)
					if len(chain.Steps) != steps || out.Role != next || entry.Next.Role != next || out.ForkedFrom == nil || *out.ForkedFrom != (thread.ForkPoint{Step: entry.Head, Thread: testThread, Steps: steps}) || entry.Key != "k" || entry.Limits["maxSteps"] != 9 || entry.Head != out.Head {
						f.Fatalf("%+v\n%+v", out, entry)
					}
					for i, s := range chain.Steps {
						if s.Hash != old.Steps[i].Hash {
							f.Errorf("step %d is %s", i+1, s.Hash)
						}
					}
					files := map[int]string{0: "file", 1: "by-r1 file", 2: "by-r1 by-r2 file", 3: "by-r1 by-r2 by-r3 file"}[steps]
					if got := f.filesAt("uwf/" + string(forked)); got != files {
						f.Errorf("its branch holds %s", got)
					}
					tip := f.mem.Refs()["refs/heads/uwf-state"]
					c, err := (&world{mem: f.mem}).commitOf(tip)
					f.ok(err)
					from := fmt.Sprintf("%s:%d", testThread, steps)
					f.says(c.Message, "· forked from "+from+" · 0009", "Uwf-Forked-From: "+from)
					// It goes its own way, and ends by itself.
					f.agent = f.answer("done", "approved")
					for range 3 {
						if _, err := f.engine("z"+fmt.Sprint(len(f.runs)), 1).Step(f.Context(), f.at(forked)); err != nil {
							f.code(err, life.KindNotYours)
						}
					}
					f.sound()
				})
			})
		}
	}
}

// objects counts what the remote holds.
func (f *fixture) objects() int {
	seen := map[wire.ID]bool{}
	for _, tip := range f.mem.Refs() {
		for todo := []wire.ID{tip}; len(todo) > 0; {
			id := todo[0]
			todo = todo[1:]
			if o, ok := f.mem.Get(id); ok && !seen[id] {
				seen[id] = true
				todo = append(todo, reachedBy(o)...)
			}
		}
	}
	return len(seen)
}

func reachedBy(o wire.Object) []wire.ID {
	if c, err := gitobj.DecodeCommit(o.Data); err == nil {
		return append(c.Parents, c.Tree)
	}
	var out []wire.ID
	if o.Type == plumbing.TreeObject {
		if es, err := gitobj.DecodeTree(o.Data); err == nil {
			for _, e := range es {
				out = append(out, e.ID)
			}
		}
	}
	return out
}

// TestForkRefused: what can't be forked, and why.
func TestForkRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture, req *thread.ForkRequest)
		code   life.Kind
		says   string
	}{
		"too many steps":  {func(_ *fixture, r *thread.ForkRequest) { r.Steps = 3 }, life.KindUsage, "has 1 steps"},
		"less than none":  {func(_ *fixture, r *thread.ForkRequest) { r.Steps = -2 }, life.KindUsage, "0 to 1"},
		"a taken id":      {func(_ *fixture, r *thread.ForkRequest) { r.ID = testThread }, life.KindNotYours, "there already"},
		"no id":           {func(_ *fixture, r *thread.ForkRequest) { r.ID = "../x" }, life.KindUsage, "thread id"},
		"unknown thread":  {func(_ *fixture, r *thread.ForkRequest) { r.From = "01JD0000000000000000000008" }, life.KindUsage, "no thread"},
		"unknown limit":   {func(_ *fixture, r *thread.ForkRequest) { r.Limits = map[string]float64{"steps": 3} }, life.KindUsage, "maxSteps"},
		"negative limit":  {func(_ *fixture, r *thread.ForkRequest) { r.Limits = map[string]float64{"tokens": -3} }, life.KindUsage, "tokens"},
		"a secret in key": {func(f *fixture, r *thread.ForkRequest) { f.secrets("hunter2-hunter2"); r.Key = "hunter2-hunter2" }, life.KindUsage, "secret"},
		"the commit is gone": {func(f *fixture, _ *thread.ForkRequest) {
			f.mem.SetRef("refs/heads/uwf/"+string(testThread), wire.ZeroID)
			f.remote.gone = append(f.remote.gone, plumbing.NewHash(f.chain().Steps[0].Work.Commit))
		}, life.KindUsage, "is not on"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.writes()
				f.start()
				f.steps("r1")
				req := thread.ForkRequest{ID: forked, From: testThread, Steps: 1}
				c.change(f, &req)
				before := len(f.view().Threads())
				_, err := f.engine("p", 1).Fork(f.Context(), req)
				f.says(f.code(err, c.code), c.says)
				if len(f.view().Threads()) != before {
					f.Error("it was forked")
				}
			})
		})
	}
}

// TestForkWithAKey: one thread for a key, whoever asks.
func TestForkWithAKey(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1")
		e := f.engine("p", 1)
		first, err := e.Fork(f.Context(), thread.ForkRequest{ID: forked, From: testThread, Steps: 1, Key: "k"})
		f.ok(err)
		again, err := e.Fork(f.Context(), thread.ForkRequest{ID: "01JD0000000000000000000008", From: testThread, Steps: 0, Key: "k"})
		f.ok(err)
		if first.Existed || !again.Existed || again.Thread != forked || again.Head != first.Head || again.Name != "two" || again.Workflow != first.Workflow || again.Role != "b" {
			f.Errorf("%+v", again)
		}
	})
}

// TestForkOfAsking waits for the answer, and of a poked thread shares what is in the
// chain.
func TestForkOfAsking(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.agent = f.answer("ask", "approved")
		f.start()
		f.steps("r1")
		out, err := f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: forked, From: testThread, Steps: -1})
		f.ok(err)
		if out.Suspended == nil || out.Suspended.Role != "a" {
			f.Fatalf("%+v", out)
		}
		_, err = f.engine("q", 1).Step(f.Context(), f.at(forked))
		f.code(err, life.KindSuspended)
		f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: forked, Text: "blue"}))
		f.agent = f.answer("done", "approved")
		_, err = f.engine("r2", 1).Step(f.Context(), f.at(forked))
		f.ok(err)
		f.says(f.runs[1].EdgePrompt, "blue")
		f.ok(f.engine("p", 1).Poke(f.Context(), forked, "more"))
		_, err = f.engine("r3", 1).Step(f.Context(), f.at(forked))
		f.ok(err)
		_, err = f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: "01JD0000000000000000000008", From: forked, Steps: 2})
		f.ok(err)
		f.sound()
	})
}

// TestRemove: off the lists, with its refs; where somebody needs the work branch it
// stays.
func TestRemove(t *testing.T) {
	for name, c := range map[string]struct {
		change func(f *fixture)
		stays  string // empty: the branch goes
	}{
		"nobody needs it": {func(*fixture) {}, ""},
		"people's commit": {func(f *fixture) {
			ref := "refs/heads/uwf/" + string(testThread)
			f.pushes(ref, map[string]string{"x": "y"}, f.mem.Refs()[ref])
		}, "pushed to it"},
		"a fork on its own branch": {func(f *fixture) { f.ok(f.deed("fork")) }, ""},
		"a fork without its branch": {func(f *fixture) {
			_, err := f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: forked, From: testThread, Steps: 1})
			f.ok(err)
			f.mem.SetRef("refs/heads/uwf/"+string(forked), wire.ZeroID)
		}, "goes on from"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.writes()
				f.start()
				answer := f.agent
				f.agent = f.fails
				_, err := f.step("f1")
				f.code(err, life.KindFailed)
				f.agent = answer
				f.steps("r1", "r2")
				c.change(f)
				e := f.engine("p", 1)
				var notice string
				e.Observe = func(ev thread.Event) { notice += ev.Text }
				f.ok(e.Remove(f.Context(), testThread))
				_, branch := f.mem.Refs()["refs/heads/uwf/"+string(testThread)]
				if branch != (c.stays != "") {
					f.Errorf("the branch is there: %v", branch)
				}
				f.says(notice, c.stays)
				for name := range f.mem.Refs() {
					if strings.HasPrefix(name, "refs/uwf/attempts/"+string(testThread)) {
						f.Errorf("%s is left", name)
					}
				}
				f.ok(f.view().History(f.Context(), time.Time{}, func(e gitcas.Ended) error { f.Errorf("listed: %+v", e); return nil }))
				_, err = f.step("r9")
				f.says(f.code(err, life.KindNotYours), "removed")
				f.ok(e.Remove(f.Context(), testThread))
				f.sound()
			})
		})
	}
}

// TestRemoveBesideAnUnstarted: a thread that has not edited yet stands where its work began.
// It needs another's branch only where no other branch has that commit.
func TestRemoveBesideAnUnstarted(t *testing.T) {
	const main, release = "refs/heads/main", "refs/heads/release"
	moveOn := func(f *fixture, ref string, base wire.ID) { f.pushes(ref, map[string]string{"file": ref}, base) }
	for name, c := range map[string]struct {
		change func(f *fixture, base, tip wire.ID) (from wire.ID) // where the unstarted one begins
		stays  string
	}{
		"at the base":         {func(_ *fixture, base, _ wire.ID) wire.ID { return base }, ""},
		"main has moved on":   {func(f *fixture, base, _ wire.ID) wire.ID { moveOn(f, main, base); return base }, ""},
		"main was taken over": {func(f *fixture, _, tip wire.ID) wire.ID { f.mem.SetRef(main, tip); return tip }, ""},
		"another branch": {func(f *fixture, base, _ wire.ID) wire.ID {
			moveOn(f, release, base)
			f.pushes(main, map[string]string{"new": "history"})
			return base
		}, ""},
		"main was rewritten": {func(f *fixture, base, _ wire.ID) wire.ID {
			f.pushes(main, map[string]string{"new": "history"})
			return base
		}, "goes on from a commit of it"},
		"in the branch": {func(_ *fixture, _, tip wire.ID) wire.ID { return tip }, "goes on from a commit of it"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.writes()
				base := f.main()
				f.mem.SetHead(main)
				f.startOn(base.String())
				f.steps("r1", "r2")
				ref := "refs/heads/uwf/" + string(testThread)
				req := startRequest(forked)
				req.Base = c.change(f, base, f.mem.Refs()[ref]).String()
				_, err := f.engine("start", 2).Start(f.Context(), req)
				f.ok(err)
				e := f.engine("p", 1)
				var notice string
				e.Observe = func(ev thread.Event) { notice += ev.Text }
				f.ok(e.Remove(f.Context(), testThread))
				if _, there := f.mem.Refs()[ref]; there != (c.stays != "") {
					f.Errorf("the branch is there: %v; %s", there, notice)
				}
				f.says(notice, c.stays)
				f.sound()
			})
		})
	}
}

// TestResumeAfterTheEnd: a thread goes on by the `resume` edge, ends again, and can
// do so as often as people like.
func TestResumeAfterTheEnd(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		t.Run(fmt.Sprint("atomic ", atomic), func(t *testing.T) {
			bubble(t, atomic, func(f *fixture) {
				f.writes()
				req := startRequest(testThread)
				req.Key = "issue/7"
				_, err := f.engine("start", 1).Start(f.Context(), req)
				f.ok(err)
				f.steps("r1", "r2")
				for i, text := range []string{"now the docs", "", "and the tests"} {
					if i == 1 { // its branch was deleted after a merge
						f.mem.SetRef("refs/heads/uwf/"+string(testThread), wire.ZeroID)
					}
					f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: text, Limits: map[string]float64{"maxSteps": float64(40 + i)}}))
					e := f.entry()
					if e.Status != gitcas.StatusActive || e.Next.Role != "b" || e.Key != "issue/7" || e.Limits["maxSteps"] != float64(40+i) || len(f.chain().Steps) != 2+i {
						f.Fatalf("%+v", e)
					}
					f.sound()
					f.ok(f.view().History(f.Context(), time.Time{}, func(e gitcas.Ended) error { f.Errorf("listed: %+v", e); return nil }))
					f.says(f.code(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread}), life.KindNotYours), "does not wait")
					f.steps(fmt.Sprint("again", i))
					f.says(f.runs[2+i].EdgePrompt, "look again", text)
					if f.status() != "ended" {
						f.Fatalf("it is %s", f.status())
					}
					f.sound()
				}
				n := 0
				f.ok(f.view().History(f.Context(), time.Time{}, func(e gitcas.Ended) error { n++; return nil }))
				if n != 1 {
					f.Errorf("listed %d times", n)
				}
				ended, _, err := f.view().FindEnded(f.Context(), testThread)
				f.ok(err)
				if len(ended.Steps) != 5 {
					f.Errorf("%+v", ended)
				}
				if got := f.filesAt("uwf/" + string(testThread)); got != "by-again0 by-again1 by-again2 by-r1 by-r2" {
					f.Errorf("the branch holds %s", got)
				}
			})
		})
	}
}

// TestResumeAfterTheEndRefused: cancelled is cancelled, a key has one thread.
func TestResumeAfterTheEndRefused(t *testing.T) {
	inBubble(t, func(f *fixture) {
		req := startRequest(testThread)
		req.Key = "issue/7"
		_, err := f.engine("start", 1).Start(f.Context(), req)
		f.ok(err)
		f.steps("r1", "r2")
		req.ID = forked
		_, err = f.engine("start", 1).Start(f.Context(), req)
		f.ok(err)
		f.says(f.code(f.deed("resume"), life.KindNotYours), string(forked), "issue/7")
		_, err = f.engine("p", 1).Cancel(f.Context(), forked, "no")
		f.ok(err)
		f.ok(f.deed("resume"))
		f.ok(f.deed("cancel"))
		f.says(f.code(f.deed("resume"), life.KindNotYours), "cancelled", "fork")
		f.sound()
		// A step that leads to the end can be done again where the thread lives again.
	})
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1", "r2")
		f.ok(f.deed("resume"))
		f.ok(f.deed("poke"))
		f.steps("r3")
		if f.status() != "ended" || f.runs[2].Role != "b" {
			f.Errorf("%s, %+v", f.status(), f.runs[2])
		}
		f.sound()
	})
}

// TestPlan: the same prompt, role and agent as the step then has; nothing is pushed.
func TestPlan(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.limits = moderator.Limits{Tokens: 1000}
		f.start()
		workflow := f.chain().Start.Workflow
		f.steps("r1")
		before, pushes := f.mem.Refs(), f.remote.pushes.Load()
		p, err := f.engine("p", 1).PlanStep(f.Context(), f.at(testThread))
		f.ok(err)
		if !maps.Equal(before, f.mem.Refs()) || f.remote.pushes.Load() != pushes {
			f.Error("something was pushed")
		}
		f.steps("r2")
		if task := f.runs[1]; p.Prompt != task.Prompt || p.Role != "b" || p.Agent != task.Agent || p.Step != 2 || p.Name != "two" || p.Workflow != workflow || p.Done {
			f.Errorf("%+v", p)
		}
		if p.Limits.Tokens != 1000 || p.Limits.MaxSteps != 30 || p.Used.Tokens != 11 {
			f.Errorf("%+v, %+v", p.Limits, p.Used)
		}
		p, err = f.engine("p", 1).PlanStep(f.Context(), f.at(testThread))
		f.says(f.code(err, life.KindNotYours), "ended")
		if !p.Done {
			f.Errorf("%+v", p)
		}
	})
}

// TestPlanOfNothing: where no step would run, the plan's error is the step's.
func TestPlanOfNothing(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(f *fixture)
		code life.Kind
	}{
		"suspended": {func(f *fixture) { f.ok(f.deed("suspend")) }, life.KindSuspended},
		"pausing":   {func(f *fixture) { f.edit(func(e *gitcas.Entry) { e.Pause = &gitcas.Pause{Reason: "x"} }) }, life.KindSuspended},
		"claimed":   {func(f *fixture) { f.claimBy(f.other(0)) }, life.KindNotYours},
		"limit":     {func(f *fixture) { f.limits = moderator.Limits{MaxSteps: 1} }, life.KindLimit},
		"limit by a dead job": {func(f *fixture) {
			f.limits = moderator.Limits{MaxSteps: 2}
			f.claimBy(f.other(21 * time.Minute))
		}, life.KindLimit},
		"three dead jobs": {func(f *fixture) {
			c := f.other(21 * time.Minute)
			c.Died = []string{"x.1", "y.1"}
			f.claimBy(c)
		}, life.KindSuspended},
		"poked": {func(f *fixture) { f.ok(f.deed("poke")) }, life.KindDone},
		"ended": {func(f *fixture) { f.steps("r2") }, life.KindNotYours},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r1")
				c.set(f)
				before := f.mem.Refs()
				p, err := f.engine("p", 1).PlanStep(f.Context(), f.at(testThread))
				f.code(err, c.code)
				if (p.Suspended != nil) != (c.code == life.KindSuspended) || !maps.Equal(before, f.mem.Refs()) {
					f.Errorf("%+v", p)
				}
				runs := len(f.runs)
				_, err = f.step("r9")
				f.code(err, c.code)
				if (len(f.runs) > runs) != (c.code == life.KindDone) {
					f.Error("the plan was wrong")
				}
				if c.code == life.KindDone && f.runs[runs].Prompt != p.Prompt {
					f.Errorf("planned %q, told %q", p.Prompt, f.runs[runs].Prompt)
				}
			})
		})
	}
}

// TestLimitsOfAll: the lowest counts, each by itself; the defaults only where
// nobody says anything.
func TestLimitsOfAll(t *testing.T) {
	w := &workflow.Limits{MaxSteps: 50, Tokens: 70, Wall: time.Minute}
	for name, c := range map[string]struct {
		configured moderator.Limits
		w          *workflow.Limits
		own        map[string]float64
		want       moderator.Limits
	}{
		"nobody":       {want: moderator.Limits{MaxSteps: 30, MaxStepsPerRole: 10}},
		"workflow":     {w: w, want: moderator.Limits{MaxSteps: 50, MaxStepsPerRole: 10, Tokens: 70, Wall: time.Minute}},
		"own, higher":  {w: w, own: map[string]float64{"maxSteps": 60, "maxStepsPerRole": 40, "wall": 600}, want: moderator.Limits{MaxSteps: 50, MaxStepsPerRole: 40, Tokens: 70, Wall: time.Minute}},
		"own, lower":   {w: w, own: map[string]float64{"maxSteps": 4, "costUsd": 0.5, "wall": 6}, want: moderator.Limits{MaxSteps: 4, MaxStepsPerRole: 10, Tokens: 70, CostUSD: 0.5, Wall: 6 * time.Second}},
		"configured":   {moderator.Limits{MaxSteps: 40, Tokens: 60, CostUSD: 9}, w, nil, moderator.Limits{MaxSteps: 40, MaxStepsPerRole: 10, Tokens: 60, CostUSD: 9, Wall: time.Minute}},
		"nonsense":     {moderator.Limits{MaxSteps: -1, Tokens: -1}, nil, map[string]float64{"maxSteps": -4}, moderator.Limits{MaxSteps: 30, MaxStepsPerRole: 10}},
		"above all":    {moderator.Limits{MaxSteps: 200}, nil, nil, moderator.Limits{MaxSteps: 200, MaxStepsPerRole: 10}},
		"own only one": {own: map[string]float64{"maxSteps": 99}, want: moderator.Limits{MaxSteps: 99, MaxStepsPerRole: 10}},
	} {
		if got := life.EffectiveLimits(c.configured, &workflow.Definition{Limits: c.w}, c.own); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestRaisedLimits: resuming raises, never lowers.
func TestRaisedLimits(t *testing.T) {
	inBubble(t, func(f *fixture) {
		req := startRequest(testThread)
		req.Limits = map[string]float64{"maxSteps": 1}
		_, err := f.engine("start", 1).Start(f.Context(), req)
		f.ok(err)
		f.steps("r1")
		_, err = f.step("r2")
		f.code(err, life.KindLimit)
		resume := func(limits map[string]float64) error {
			return f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Limits: limits})
		}
		f.says(f.code(resume(map[string]float64{"maxSteps": 0.5}), life.KindUsage), "raise")
		f.says(f.code(resume(map[string]float64{"steps": 5}), life.KindUsage), "maxSteps")
		f.ok(resume(map[string]float64{"maxSteps": 1.5}))
		f.says(f.code(resume(map[string]float64{"maxSteps": 1}), life.KindUsage), "not lower it")
		f.ok(resume(map[string]float64{"maxSteps": 2})) // it does not wait any more
		f.unclaimed()
		f.claimBy(f.other(0))
		f.code(resume(map[string]float64{"maxSteps": 3}), life.KindNotYours)
		f.mem.SetRef(layout.ClaimRef(testThread), wire.ZeroID)
		if e := f.entry(); e.Limits["maxSteps"] != 2 || e.Status != gitcas.StatusActive {
			f.Errorf("%+v", e)
		}
		f.limits = moderator.Limits{Tokens: 500}
		e, notice := f.engine("p", 1), ""
		e.Observe = func(ev thread.Event) { notice += ev.Text }
		f.ok(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Limits: map[string]float64{"tokens": 1e6}}))
		f.says(notice, "limit tokens stays 500")
		f.steps("r2")
	})
}

// TestNodesOfTheDead: hashes that an entry names are read as hostile.
func TestNodesOfTheDead(t *testing.T) {
	for name, h := range map[string]func(f *fixture) node.Hash{
		"nowhere":    func(*fixture) node.Hash { return "0000000000000" },
		"no step":    func(f *fixture) node.Hash { return f.chain().StartHash },
		"another's":  func(f *fixture) node.Hash { return f.chain().Steps[0].Hash },
		"an output":  func(f *fixture) node.Hash { return f.chain().Steps[0].Output },
		"a workflow": func(f *fixture) node.Hash { return f.entry().Workflow },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r1")
				f.ok(f.deed("suspend"))
				f.ok(f.deed("resume"))
				bad := h(f)
				f.edit(func(e *gitcas.Entry) { e.Next.Poked = bad })
				runs := len(f.runs)
				_, err := f.step("r2")
				f.code(err, life.KindDamaged)
				if len(f.runs) != runs {
					f.Errorf("it ran: %v", err)
				}
				f.unclaimed()
			})
		})
	}
}

// TestDeedsCutShort: whoever does something may die at any push, before or after it
// arrives. Doing it again later leaves the thread as if it had been done once.
func TestDeedsCutShort(t *testing.T) {
	for deed, c := range map[string]struct {
		before func(f *fixture)
		status string
		steps  int
	}{
		"pause": {func(f *fixture) {}, "suspended", 1},
		"poke":  {func(f *fixture) {}, "active", 0},
		"retry": {func(f *fixture) {
			answer := f.agent
			f.agent = f.fails
			_, err := f.step("f")
			f.code(err, life.KindFailed)
			f.agent = answer
		}, "active", 1},
		"fork":   {func(f *fixture) {}, "active", 1},
		"resume": {func(f *fixture) { f.steps("r2") }, "active", 2},
		"remove": {func(f *fixture) { f.steps("r2") }, "removed", 2},
	} {
		for cut := range 6 {
			for _, arrives := range []bool{true, false} {
				for _, atomic := range []bool{true, false} {
					t.Run(fmt.Sprintf("%s, push %d, arrives %v, atomic %v", deed, cut, arrives, atomic), func(t *testing.T) {
						bubble(t, atomic, func(f *fixture) {
							f.writes()
							f.start()
							f.steps("r1")
							c.before(f)
							n := 0
							dead := func(op string, _ wire.PushRequest) error {
								if op == "push" {
									n++
								}
								if n > cut+1 || n == cut+1 && !arrives {
									return unreachable()
								}
								return nil
							}
							f.remote.setBefore(dead)
							f.remote.after = func(string, wire.PushRequest) error {
								if n == cut+1 {
									n++
									return unreachable()
								}
								return nil
							}
							_ = f.deed(deed)
							f.remote.after = nil
							f.remote.setBefore(nil)
							time.Sleep(life.MaxClaim)
							f.sound()
							if err := f.again(deed); err != nil {
								f.code(err, life.KindNotYours) // it was done
							}
							f.sound()
							if got := f.status(); got != c.status {
								f.Errorf("it is %s", got)
							}
							if c.status == "removed" {
								return
							}
							if got := len(f.chain().Steps); got != c.steps {
								f.Errorf("%d steps", got)
							}
							if e := f.entry(); atomic && deed != "retry" && len(e.Attempts) != 0 {
								f.Errorf("attempts are linked: %v", e.Attempts)
							}
							if deed != "pause" {
								f.steps("z1")
							}
						})
					})
				}
			}
		}
	}
}

// again is a deed by another process.
func (f *fixture) again(name string) error {
	e := f.engine("later", 1)
	switch name {
	case "pause":
		return e.Pause(f.Context(), testThread, "wait a bit")
	case "poke":
		return e.Poke(f.Context(), testThread, "not like that")
	case "retry":
		return e.Retry(f.Context(), testThread)
	case "fork":
		_, err := e.Fork(f.Context(), thread.ForkRequest{ID: forked, From: testThread, Steps: 0})
		return err
	case "remove":
		return e.Remove(f.Context(), testThread)
	}
	return e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "go on"})
}

// TestHooks: each durable point of a deed can be told to fault injection.
func TestHooks(t *testing.T) {
	for deed, want := range map[string]string{
		"fork": "fork", "pause": "pause asked, claim, pause claimed, pause", "poke": "claim, poke claimed, poke",
		"remove": "remove, remove branch", "resume": "resume", "retry": "claim, retry claimed, retry", "cancel": "cancel", "suspend": "suspend",
	} {
		t.Run(deed, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r1")
				switch deed {
				case "retry":
					f.edit(func(e *gitcas.Entry) { e.Attempts = []string{layout.AttemptRef(testThread, "x", 1)} })
				case "resume", "remove":
					f.steps("r2")
				}
				var points []string
				f.hook = func(p string) { points = append(points, p) }
				f.ok(f.deed(deed))
				if got := strings.Join(points, ", "); got != want {
					f.Errorf("reached %s, want %s", got, want)
				}
			})
		})
	}
}

// TestForkOfAnOldID: an id that a thread had is never another's.
func TestForkOfAnOldID(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1")
		// In the bubble it is the year 2000: such an id comes from then.
		const old gitcas.ThreadID = "00VHNCZB000000000000000009"
		_, err := f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: old, From: testThread, Steps: 1})
		f.ok(err)
		_, err = f.engine("p", 1).Cancel(f.Context(), old, "no")
		f.ok(err)
		_, err = f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: old, From: testThread, Steps: 1})
		f.says(f.code(err, life.KindNotYours), "cancelled")
	})
}

// TestForkThatWasRemoved: a fork whose reply was lost, and that was cancelled and
// removed since, was made, and doesn't come back. Its id's time is a stranger's.
func TestForkThatWasRemoved(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1")
		f.remote.after = func(string, wire.PushRequest) error {
			f.remote.after = nil
			other := f.engine("other", 1)
			_, err := other.Cancel(f.Context(), forked, "no")
			f.ok(err)
			f.ok(other.Remove(f.Context(), forked))
			return unreachable()
		}
		f.ok(f.deed("fork"))
		if _, there := f.view().Entry(forked); there {
			f.Error("it came back")
		}
		f.sound()
	})
}

// TestDeedsOnShortEntries: another tool may have written nothing but the head.
func TestDeedsOnShortEntries(t *testing.T) {
	for deed, code := range map[string]life.Kind{"poke": 0, "fork": 0, "pause": 0, "suspend": 0, "cancel": 0, "retry": 4, "resume": 4, "remove": 4} {
		t.Run(deed, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.writes()
				f.start()
				f.steps("r1")
				f.edit(func(e *gitcas.Entry) { *e = gitcas.Entry{Head: e.Head} })
				f.code(f.deed(deed), code)
				f.sound()
				switch deed {
				case "pause", "suspend":
					f.ok(f.deed("resume"))
				case "cancel":
					return
				}
				f.steps("r2")
				f.sound()
			})
		})
	}
}

// TestPokeWhilePoked: one who is at it keeps others out, and is told apart from a
// running step.
func TestPokeWhilePoked(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1")
		f.hook = func(point string) {
			if point != "poke claimed" {
				return
			}
			f.hook = nil
			other := f.engine("other", 1)
			f.says(f.code(other.Poke(f.Context(), testThread, "me too"), life.KindNotYours), "about to do something else", "poke")
			_, err := f.step("r2")
			f.code(err, life.KindNotYours)
		}
		f.ok(f.deed("poke"))
		if n := len(f.chain().Steps); n != 0 {
			f.Errorf("%d steps", n)
		}
		f.steps("r3")
	})
}

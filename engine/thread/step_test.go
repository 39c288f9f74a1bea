package thread_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

func TestStepToTheEnd(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		workflow := f.chain().Start.Workflow
		res := f.steps("r1", "r2")
		if !res.Done || res.Status != "ended" || res.Result != "approved" || res.Role != "b" || res.Step != 2 || res.NextRole != "" || res.Name != "two" || res.Workflow != workflow {
			f.Errorf("%+v", res)
		}
		f.unclaimed()
		res, err := f.step("r3")
		f.says(f.code(err, life.KindNotYours), "it has ended")
		if res.Status != "ended" || res.Step != 2 || res.Error == nil || res.Error.Message != err.Error() || res.Error.StepHash != "" {
			f.Errorf("%+v", res)
		}
	})
}

// TestExpectHead: node.Pin{Hash: a} job that was told a head steps that head or none.
func TestExpectHead(t *testing.T) {
	for name, c := range map[string]struct {
		before  []string // jobs that ran before; the head given is that before the last one
		run     string
		attempt int
		code    life.Kind
		paid    bool
		status  string
	}{
		"the head":                             {nil, "r1", 1, life.KindDone, true, "active"},
		"moved by another run":                 {[]string{"r1"}, "r2", 1, life.KindNotYours, false, "active"},
		"moved by this very job":               {[]string{"r1"}, "r1", 1, life.KindDone, false, "active"},
		"moved by this run before its re-run":  {[]string{"r1"}, "r1", 2, life.KindDone, false, "active"},
		"ended by this run":                    {[]string{"r1", "r2"}, "r2", 2, life.KindDone, false, "ended"},
		"ended by another run":                 {[]string{"r1", "r2"}, "r3", 1, life.KindNotYours, false, "ended"},
		"stepped by this run, then by another": {[]string{"r1", "r2"}, "r1", 2, life.KindNotYours, false, "ended"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				head := f.entry().Head
				var last thread.Result
				for _, run := range c.before {
					head = f.entry().Head
					last = f.steps(run)
				}
				runs := len(f.runs)
				res, err := f.stepWith(c.run, c.attempt, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}})
				f.code(err, c.code)
				if paid := len(f.runs) > runs; paid != c.paid {
					f.Errorf("an agent ran: %v", paid)
				}
				if res.Status != c.status || res.Head == "" || res.Head == head {
					f.Errorf("%+v", res)
				}
				if c.code == life.KindDone && !c.paid {
					// What the first attempt said, for the effects that are pending.
					if res.Role != last.Role || res.Result != last.Result || res.Step != last.Step || res.NextRole != last.NextRole ||
						res.Done != last.Done || res.Workflow != last.Workflow || res.Usage == nil || *res.Usage != *last.Usage {
						f.Errorf("%+v\nwant\n%+v", res, last)
					}
				}
			})
		})
	}
}

func TestStepWhereThereIsNothingToDo(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(f *fixture)
		code life.Kind
		says string
	}{
		"unknown thread": {func(f *fixture) {
			_, err := f.engine("start", 1).Start(f.Context(), startRequest("01JD0000000000000000000002"))
			f.ok(err)
		}, life.KindUsage, "no thread " + string(testThread)},
		"no store": {func(*fixture) {}, life.KindUsage, "no uwf store"},
		"cancelled": {func(f *fixture) {
			f.start()
			_, err := f.engine("p", 1).Cancel(f.Context(), testThread, "enough")
			f.ok(err)
		}, life.KindNotYours, "it was cancelled"},
		"suspended": {func(f *fixture) {
			f.start()
			f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "lunch"))
		}, life.KindSuspended, "lunch"},
		"ended, to be delivered": {func(f *fixture) {
			f.start()
			f.steps("r1")
			_, err := f.stepWith("r2", 1, step.Request{Thread: testThread, Deliver: true})
			f.ok(err)
			if e := f.entry(); e.Status != gitcas.StatusEnded || !e.Deliver {
				f.Errorf("%+v", e)
			}
		}, life.KindNotYours, "it has ended"},
		"no agent": {func(f *fixture) { f.start() }, life.KindUsage, "no such agent"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				c.set(f)
				runs := len(f.runs)
				req := f.at(testThread)
				if name == "no agent" {
					req.Agent = "none"
				}
				res, err := f.stepWith("r9", 1, req)
				f.says(f.code(err, c.code), c.says)
				if len(f.runs) != runs || res.Error == nil || res.Error.Message != err.Error() || res.Error.StepHash != "" {
					f.Errorf("%d agents ran; %+v", len(f.runs)-runs, res)
				}
				for name := range f.mem.Refs() {
					if strings.HasPrefix(name, "refs/uwf/claims/") {
						f.Errorf("%s is left", name)
					}
				}
			})
		})
	}
}

// TestSuspendEdge: a role asks, a person answers, and the role works with the
// answer, also when something else suspends the thread before it has.
func TestSuspendEdge(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = f.answer("ask", "")
		res, err := f.step("r1")
		f.ok(err)
		if res.Status != "suspended" || res.Result != "ask" || res.Suspended == nil || res.Suspended.Reason != "what now?" || res.Suspended.Role != "a" || res.NextRole != "" {
			f.Errorf("%+v", res)
		}
		_, err = f.step("r2")
		f.says(f.code(err, life.KindSuspended), "what now?", ": resume ")
		f.paid(1)
		e := f.engine("p", 1)
		f.ok(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "take the blue one"}))
		f.says(f.code(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "again"}), life.KindNotYours), "does not wait")
		f.agent = f.fails
		for i := range life.MaxAttempts {
			_, err = f.step(fmt.Sprint("f", i))
			f.code(err, life.KindFailed)
		}
		_, err = f.step("r3")
		f.code(err, life.KindSuspended)
		f.ok(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "the network is back"}))
		f.agent = f.answer("done", "approved")
		f.steps("r4")
		last := f.runs[len(f.runs)-1]
		f.says(last.EdgePrompt, "what now?", "take the blue one", "the network is back")
		f.says(last.Prompt, "take the blue one")
		f.steps("r5")
	})
}

func TestResumeOfABareEntry(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.edit(func(e *gitcas.Entry) { e.Status, e.Next, e.Suspended = gitcas.StatusSuspended, nil, nil })
		f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: ""}))
		f.steps("r1")
	})
}

// TestLongTexts: what agents and people write at length does not get a thread
// stuck.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("häää ", 20_000)
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = func(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
			return f.draftOf(t).output(map[string]any{"$status": "ask", "note": long}).done(), nil
		}
		res := f.steps("r1")
		if r := res.Suspended.Reason; len(r) > life.MaxReason || !strings.HasPrefix(r, "häää") || !strings.HasSuffix(r, "…") {
			f.Errorf("the reason has %d bytes", len(r))
		}
		e := f.engine("p", 1)
		f.says(f.code(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: strings.Repeat(long, 3)}), life.KindUsage), "at most")
		f.ok(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: long}))
		f.ok(e.Suspend(f.Context(), testThread, long))
		// No word is dropped, as somebody may rely on it: what is too much is refused.
		f.says(f.code(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: long}), life.KindNotYours), "1 things with 160000 bytes", ": fork ")
		f.ok(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "go on"}))
		_, err := e.Cancel(f.Context(), testThread, strings.Repeat("x", 200<<10))
		f.ok(err)
		req := startRequest("01JD0000000000000000000002")
		req.Prompt = strings.Repeat("x", 1<<20+1)
		_, err = e.Start(f.Context(), req)
		f.says(f.code(err, life.KindUsage), "at most")
	})
}

// TestManyPauses: a thread that is paused and let go on again and again does not lock itself up.
func TestManyPauses(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		e := f.engine("p", 1)
		for range record.MaxWords + 2 {
			f.ok(e.Pause(f.Context(), testThread, ""))
			f.ok(e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread}))
		}
		f.steps("r1")
	})
}

func TestThreeAttempts(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		head := f.entry().Head
		f.agent = f.fails
		// One dies and leaves its claim; two fail.
		f.claimBy(f.other(21 * time.Minute))
		for i := range 2 {
			_, err := f.step(fmt.Sprint("f", i))
			f.says(f.code(err, life.KindFailed), "gave up", "git show refs/uwf/attempts/", []string{"try again: step", "failed 3 times, and waits for your word: retry"}[i])
		}
		f.paid(2)
		want := []string{layout.AttemptRef(testThread, "other", 1), layout.AttemptRef(testThread, "f0", 1), layout.AttemptRef(testThread, "f1", 1)}
		if e := f.entry(); e.Head != head || !slices.Equal(e.Attempts, want) || e.Status != gitcas.StatusActive {
			f.Errorf("%+v", e)
		}
		res, err := f.step("r1")
		f.says(f.code(err, life.KindSuspended), "3 attempts")
		f.paid(2)
		if res.Status != "suspended" || f.entry().Head != head {
			f.Errorf("%+v", res)
		}
		f.unclaimed()

		f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: ""}))
		_, err = f.step("f2")
		f.code(err, life.KindFailed)
		f.agent = f.answer("done", "approved")
		f.steps("r2")
		step := f.chain().Steps[0]
		if len(step.PreviousAttempts) != 4 || len(f.entry().Attempts) != 0 {
			f.Errorf("%d previous attempts are linked; the entry is %+v", len(step.PreviousAttempts), f.entry())
		}
		for i, run := range []string{"other", "f0", "f1", "f2"} {
			s, err := record.ParseStep(f.get(step.PreviousAttempts[i]))
			f.ok(err)
			out, _ := f.get(s.Output).Payload.(map[string]any)
			if s.Run.ID != run || out["$status"] != "error" || s.Start != step.Start || s.Role != "a" {
				f.Errorf("attempt %d: %+v %v", i, s, out)
			}
		}
		// And the agent was told.
		if got := f.runs[len(f.runs)-1]; len(got.PreviousAttempts) != 4 || got.Nodes[gitcas.Place{Thread: testThread}][got.PreviousAttempts[0]].Type == "" {
			f.Errorf("the agent was told of %v", got.PreviousAttempts)
		}
	})
}

func TestLocation(t *testing.T) {
	for where, want := range map[string]string{"": "/folder", "sub/folder": "/folder/sub/folder", "../../etc": "", "/etc": ""} {
		inBubble(t, func(f *fixture) {
			f.start()
			f.agent = func(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
				return f.draftOf(t).output(map[string]any{"$status": "done", "where": where}).done(), nil
			}
			f.steps("r1")
			f.agent = f.answer("", "approved")
			_, err := f.step("r2")
			if want == "" {
				f.says(f.code(err, life.KindFailed), "out of the workspace")
				f.paid(1)
				return
			}
			f.ok(err)
			if got := f.runs[1].Workspace; got != want {
				f.Errorf("location %q: works in %s", where, got)
			}
		})
	}
}

// TestCwd: a thread that was started for a folder of the work tree works there, but where
// an edge names another one.
func TestCwd(t *testing.T) {
	inBubble(t, func(f *fixture) {
		req := startRequest(testThread)
		req.Cwd = "sub/folder"
		_, err := f.engine("start", 1).Start(f.Context(), req)
		f.ok(err)
		plan, err := f.engine("p", 1).PlanStep(f.Context(), f.at(testThread))
		f.ok(err)
		f.agent = func(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
			return f.draftOf(t).output(map[string]any{"$status": "done", "where": "other"}).done(), nil
		}
		f.steps("r1")
		f.agent = f.answer("", "approved")
		f.steps("r2")
		if got := f.runs[0]; got.Workspace != "/folder/sub/folder" || got.Cwd != "sub/folder" || got.Location != "sub/folder" || plan.Location != got.Location {
			f.Errorf("the first works in %s, cwd %s, location %s; the plan said %s", got.Workspace, got.Cwd, got.Location, plan.Location)
		}
		if got := f.runs[1]; got.Workspace != "/folder/other" || got.Cwd != "sub/folder" {
			f.Errorf("the second works in %s, cwd %s", got.Workspace, got.Cwd)
		}
	})
}

// TestCwdElsewhere: what is no folder of the work tree is no place to work in, as the path
// that a thread of the predecessor has of the machine that it was started on.
func TestCwdElsewhere(t *testing.T) {
	for _, cwd := range []string{"/home/somebody/repo", "..", "../other", "a/../..", "a//b", "./a", `C:\repo`, "C:", `a\b`, "a/"} {
		inBubble(t, func(f *fixture) {
			req := startRequest(testThread)
			req.Cwd = cwd
			_, err := f.engine("start", 1).Start(f.Context(), req)
			f.says(f.code(err, life.KindUsage), "is no path of a folder in the work tree")
		})
	}
}

// TestStepAfterGarbage: an attempt that an agent filled with garbage keeps nobody
// from working on.
func TestStepAfterGarbage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = func(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
			d := f.draftOf(t)
			d.put(node.MetaSchema, map[string]any{"$ref": "#"})
			d.d.Nodes["0000000000001"] = node.Node{Type: node.String, Payload: "not what it is called"}
			d.d.Nodes["0000000000002"] = node.Node{Type: "0000000000003", Payload: map[string]any{}}
			d.d.Nodes["0000000000004"] = node.Node{Type: t.OutputSchema, Payload: nil}
			return d.d, &task.AgentError{Agent: "test", Reason: "crashed", Err: errors.New("exit code 1")}
		}
		_, err := f.step("r1")
		f.code(err, life.KindFailed)
		f.attempt("r1", 1)
		f.agent = f.answer("done", "approved")
		f.steps("r2", "r3")
	})
}

// TestBareEntry: threads.yaml may hold no more of a thread than its head.
func TestBareEntry(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.edit(func(e *gitcas.Entry) { *e = gitcas.Entry{Head: e.Head, Status: gitcas.StatusActive} })
		answer := f.agent
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			f.files[t.Role] = "it\n"
			return answer(ctx, t, m)
		}
		res := f.steps("r1", "r2")
		if tip := f.base(); tip.IsZero() || res.Work == nil || res.Work.Commit != tip.String() || !res.Done {
			f.Errorf("%+v, the work branch is at %s", res, tip)
		}
	})
}

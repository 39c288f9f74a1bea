package thread_test

import (
	"fmt"
	"testing"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// protect lets nobody push the state branch.
func (f *fixture) protect() {
	f.remote.setBefore(func(op string, req wire.PushRequest) error {
		if op == "push" && touches(req, "refs/heads/uwf-state") {
			return &wire.RemoteError{Op: op, URL: "memory:", Ref: "refs/heads/uwf-state", Kind: wire.ErrProtected, Detail: "protected branch hook declined"}
		}
		return nil
	})
}

// TestProtectedMidway: a thread that nobody can change any more costs one try, and not one at
// each schedule; the attempt that could not be linked is linked, and counted, when it can be.
func TestProtectedMidway(t *testing.T) {
	for name, c := range map[string]struct {
		agent  func(f *fixture)
		before func(f *fixture) // the step that links it
		code   life.Kind
		tries  int // that count after that
		paid   int // by then
	}{
		"it worked":  {nil, nil, life.KindDone, 0, 2},
		"it failed":  {func(f *fixture) { f.agent = f.fails }, nil, life.KindFailed, 2, 2},
		"once more":  {nil, func(f *fixture) { f.agent = f.fails }, life.KindFailed, 2, 2},
		"at a limit": {nil, func(f *fixture) { f.limits.Tokens = 5 }, life.KindLimit, 1, 1},
		"taken back": {func(f *fixture) { f.steps("r0"); f.agent = f.fails }, func(f *fixture) {
			f.agent = f.answer("done", "rejected")
			f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "no"))
		}, life.KindDone, 0, 3},
	} {
		for _, atomic := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", atomic ", atomic), func(t *testing.T) {
				bubble(t, atomic, func(f *fixture) {
					f.agent = f.answer("done", "rejected")
					f.start()
					if c.agent != nil {
						c.agent(f)
					}
					f.protect()
					_, err := f.step("r1")
					f.code(err, life.KindFailed)
					paid := len(f.runs)
					for _, run := range []string{"r2", "r3"} {
						_, err := f.step(run)
						f.says(f.code(err, life.KindFailed), "protected branch hook declined", "refs/uwf/attempts/"+string(testThread)+"/r1.1", "no agent runs until", "push refs/heads/uwf-state")
						f.paid(paid)
						f.unclaimed()
					}
					if len(f.entry().Attempts) > 0 {
						t.Fatalf("%+v", f.entry())
					}
					f.remote.setBefore(nil)
					if c.before != nil {
						c.before(f)
					}
					_, err = f.step("r4")
					f.code(err, c.code)
					f.paid(c.paid)
					if got := life.CountAttempts(f.entry(), testThread, nil); got != c.tries {
						t.Errorf("%d tries count, want %d", got, c.tries)
					}
					if name == "it worked" {
						if s := f.chain().Steps[0]; len(s.PreviousAttempts) != 1 || f.totals().Tokens != 22 {
							t.Errorf("%+v, %+v", s.Step, f.totals())
						}
						f.steps("r5")
						if s := f.chain().Steps[1]; len(s.PreviousAttempts) != 0 || f.totals().Tokens != 33 {
							t.Errorf("counted twice: %+v, %+v", s.Step, f.totals())
						}
					}
				})
			})
		}
	}
}

// TestNotToBeLinked: what was kept by a job that no longer had the thread is no failure of it.
func TestNotToBeLinked(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.hook = func(point string) {
			if point == "agent" {
				f.hook = nil
				f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait"))
			}
		}
		_, err := f.step("r1")
		f.code(err, life.KindNotYours)
		f.attempt("r1", 1)
		f.ok(f.engine("p", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread}))
		f.steps("r2")
		if s := f.chain().Steps[0]; len(s.PreviousAttempts) > 0 {
			t.Errorf("%+v", s.Step)
		}
	})
}

// TestUnlinkedAreTheThreads: nothing but what a step kept is taken for an attempt.
func TestUnlinkedAreTheThreads(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		v := f.view()
		tip := v.Tip()
		for _, name := range []string{"r9.1", "x", "../x"} {
			_, err := f.mem.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: layout.AttemptRefs(testThread) + name, New: tip}}})
			_ = err // whatever of it can be made
		}
		f.steps("r1")
		if s := f.chain().Steps[0]; len(s.PreviousAttempts) > 0 {
			t.Errorf("%+v", s.Step)
		}
	})
}

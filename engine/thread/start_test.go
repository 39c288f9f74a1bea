package thread_test

import (
	"testing"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

const otherWorkflow = `
name: other
description: d
roles:
  a: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {$status: {enum: [done]}}, required: [$status]}}
graph:
  $START: {_: {role: a, prompt: p}}
  a: {done: {role: $END, prompt: p}}
`

func TestStartWithAKey(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.engine("start", 1)
		start := func(id gitcas.ThreadID, key string) (thread.Started, error) {
			req := startRequest(id)
			req.Key = key
			return e.Start(f.Context(), req)
		}
		first, err := start(testThread, "issue/7")
		f.ok(err)
		again, err := start("01JD0000000000000000000002", "issue/7")
		f.ok(err)
		if first.Existed || !again.Existed || again.Thread != testThread || again.Head != first.Head {
			f.Errorf("%+v", again)
		}
		// What is told of it is its own, not that of the workflow that was asked for.
		d, err := workflow.Parse("x.yaml", []byte(otherWorkflow), workflow.Options{})
		f.ok(err)
		req := f.requestOf(d)
		req.ID, req.Key = "01JD0000000000000000000002", "issue/7"
		again, err = e.Start(f.Context(), req)
		f.ok(err)
		if !again.Existed || again.Workflow != first.Workflow || again.Name != first.Name {
			f.Errorf("%+v", again)
		}
		other, err := start("01JD0000000000000000000003", "issue/8")
		f.ok(err)
		if other.Existed || len(f.view().Threads()) != 2 {
			f.Errorf("%+v", other)
		}
		f.steps("r1")
		if again, err = start("01JD0000000000000000000002", "issue/7"); err != nil || again.Role != "b" {
			f.Errorf("%+v, %v", again, err)
		}
		f.steps("r2")
		// It has ended: the key is free.
		if again, err = start("01JD0000000000000000000002", "issue/7"); err != nil || again.Existed {
			f.Errorf("%+v, %v", again, err)
		}
	})
}

// TestStartTwice: a thread is started once, whatever becomes of the reply, and
// none is written over or comes back.
func TestStartTwice(t *testing.T) {
	inBubble(t, func(f *fixture) {
		e := f.engine("start", 1)
		lost := 1
		f.remote.after = func(_ string, req wire.PushRequest) error {
			if lost--; lost == 0 {
				return unreachable()
			}
			return nil
		}
		lost = 2 // the first push makes the branch
		started, err := e.Start(f.Context(), startRequest(testThread))
		f.ok(err)
		f.steps("r1")
		head := f.entry().Head
		other := startRequest(testThread)
		other.Prompt = "something else"
		_, err = e.Start(f.Context(), other)
		f.says(f.code(err, life.KindNotYours), "is there already")
		if f.entry().Head != head || started.Existed {
			f.Errorf("%+v", f.entry())
		}
		_, err = e.Cancel(f.Context(), testThread, "no")
		f.ok(err)
	})
	inBubble(t, func(f *fixture) {
		e := f.engine("start", 1)
		first := true
		f.remote.after = func(_ string, req wire.PushRequest) error {
			v, err := gitcas.Open(f.mem, gitcas.Options{}).Load(f.Context(), testThread)
			if _, there := v.Entry(testThread); err != nil || !there || !first {
				return err
			}
			first = false
			if _, err := f.engine("p", 1).Cancel(f.Context(), testThread, "no"); err != nil {
				return err
			}
			return unreachable()
		}
		_, err := e.Start(f.Context(), startRequest(testThread))
		f.ok(err) // it was started, and cancelled since
		if v := f.view(); len(v.Threads()) != 0 {
			f.Error("the cancelled thread came back")
		}
	})
}

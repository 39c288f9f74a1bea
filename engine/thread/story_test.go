package thread_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
)

// index is the page about a thread.
func (f *fixture) index(id gitcas.ThreadID) string {
	f.Helper()
	c, _, _ := f.tip()
	page, ok := f.file(c.Tree, layout.IndexPath(id))
	if !ok {
		f.Fatalf("thread %s has no page", id)
	}
	return page
}

// TestIndexPage: whatever changes how a thread stands, its page tells it.
func TestIndexPage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		req := startRequest(testThread)
		req.Title, req.Prompt = "Fix *slugs* | <b>", "# Fix slugs\n\n```\n<script>"
		req.Trigger = map[string]any{"url": "https://forge.example/o/r/issues/7"}
		_, err := f.as(alice).Start(f.Context(), req)
		f.ok(err)
		var b strings.Builder
		note := func(what string) { fmt.Fprintf(&b, "-- %s --\n%s", what, f.index(testThread)) }
		note("started")
		c, _, _ := f.tip()
		asked, _ := f.file(c.Tree, layout.TaskPath(testThread))
		fmt.Fprintf(&b, "-- task --\n%s", asked)

		f.agent = f.answer("ask", "")
		f.steps("r1")
		note("asked")
		f.ok(f.as(bob).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "the *second*"}))
		note("answered")
		works := f.answer("done", "approved")
		f.agent = f.fails
		_, err = f.step("f")
		f.code(err, life.KindFailed)
		note("failed")
		f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			f.ok(f.as(carol).Pause(ctx, testThread, "wait | for me"))
			return works(ctx, t, m)
		}
		f.steps("r2")
		note("paused")
		f.agent = works
		f.ok(f.deed("poke"))
		note("poked")
		f.ok(f.deed("fork"))
		fmt.Fprintf(&b, "-- fork --\n%s", f.index(forked))
		c, _, _ = f.tip()
		asked, _ = f.file(c.Tree, layout.TaskPath(forked))
		fmt.Fprintf(&b, "-- task of the fork --\n%s", asked)
		f.steps("r3")
		note("done again")
		_, err = f.stepWith("r4", 1, step.Request{Thread: testThread, Deliver: true})
		f.ok(err)
		note("ended")
		f.ok(f.engine("look", 1).Record(f.Context(), testThread, life.Effects{PR: 12}))
		note("with a pull request")
		compareGolden(t, "index.txt", b.String())
	})
}

// A page that can't be made is left as it was: what a person wants done is done.
func TestIndexOfDamagedThread(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.steps("r1")
		before := f.index(testThread)
		step := f.chain().Steps[0]
		f.exchange(gitcas.Place{Thread: testThread, Of: step.Hash}.Path(step.Output), f.get(step.Output).Type, func(text string) any {
			return map[string]any{"$status": "done", "note": text}
		})
		f.ok(f.deed("suspend"))
		if got := f.index(testThread); got != before || f.entry().Status != gitcas.StatusSuspended {
			t.Errorf("the thread is %s, and its page says\n%s", f.entry().Status, got)
		}
	})
}

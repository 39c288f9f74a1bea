package thread_test

import (
	"context"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// patchOf is the patch of the thread's last step; nil: it has none.
func (f *fixture) patchOf() *record.Patch {
	f.Helper()
	steps := f.chain().Steps
	last := steps[len(steps)-1]
	if last.Patch == nil {
		return nil
	}
	n, err := f.view().In(f.Context(), gitcas.Place{Thread: testThread, Of: last.Hash, Detail: true}).Get(*last.Patch)
	f.ok(err)
	p, err := record.ParsePatch(n)
	f.ok(err)
	return &p
}

// changes is an agent that changes files before it answers; an empty text takes one away.
func (f *fixture) changes(files map[string]string) func(context.Context, task.Task, *task.Meter) (task.Draft, error) {
	return func(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
		for name, text := range files {
			if f.files[name] = text; text == "" {
				delete(f.files, name)
			}
		}
		return f.draftOf(t).output(map[string]any{"$status": map[string]string{"a": "done", "b": "rejected"}[t.Role], "note": "n"}).body("## Diff\n\nnothing").done(), nil
	}
}

// TestPatchOnRecord: what a step changed outlives its branch, without secrets, in its
// details and on its page.
func TestPatchOnRecord(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = f.changes(map[string]string{"a.txt": "one\ntwo\nthree\n", "gone": "x\n"})
		f.steps("r1")
		p := f.patchOf()
		if p == nil || p.Base != "" || len(p.Files) != 2 || !strings.Contains(p.Diff, "+++ b/a.txt\n@@ -0,0 +1,3 @@\n+one\n") {
			t.Fatalf("%+v", p)
		}
		first := f.base().String()

		// People may have put in what nobody may read in the record.
		f.secrets("hunter2hunter2")
		f.pushes("refs/heads/uwf/"+string(testThread), map[string]string{"a.txt": "one\ntwo\nkey = hunter2hunter2\n", "gone": "x\n"}, f.base())
		base := f.base().String()
		f.agent = f.changes(map[string]string{"a.txt": "one\n2\nkey = \n", "gone": "", "new*": "n\n"})
		f.steps("r2")
		p = f.patchOf()
		if p == nil || p.Base != base || base == first || len(p.Files) != 3 || strings.Contains(p.Diff, "hunter2") {
			t.Fatalf("%+v", p)
		}
		f.nowhere("hunter2hunter2 in the record")
		page := f.page(2, "b")
		for _, want := range []string{"## Changed\n\n- modified a.txt: +2 −2\n- deleted gone: +0 −1\n- added new\\*: +1 −0\n\n    diff --git a/a.txt b/a.txt\n", "\n    -two\n", "\n    +2\n", "\n    +n\n\n## Output\n"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page doesn't say %q:\n%s", want, page)
			}
		}
		if strings.Contains(page, "hunter2") {
			t.Errorf("the page says\n%s", page)
		}
		f.sound()
	})
}

// A step that changes no file has no patch; one whose old files can't be read has one
// without a diff, and is done.
func TestPatchOfUnreadable(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = f.changes(nil)
		f.steps("r1")
		if p := f.patchOf(); p != nil {
			t.Errorf("nothing was changed: %+v", p)
		}
	})
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = f.changes(map[string]string{"a.txt": "one\n"})
		f.steps("r1")
		f.remote.gone = []wire.ID{wire.NewObject(3, []byte("one\n")).ID}
		f.agent = f.changes(map[string]string{"a.txt": "two\n", "b": "b\n"})
		notice := ""
		e := f.engine("r2", 1)
		e.Observe = func(ev thread.Event) {
			if ev.Kind == "notice" {
				notice += ev.Text
			}
		}
		_, err := e.Step(f.Context(), f.at(testThread))
		f.ok(err)
		p := f.patchOf()
		if p == nil || p.Diff != "" || len(p.Files) != 2 || p.Files[0].Counted || p.Files[1].Added != 1 || len(p.Files[1].Lines) != 1 {
			t.Errorf("%+v", p)
		}
		f.says(notice, "no diff", "read the files as they were")
		if page := f.page(2, "b"); !strings.Contains(page, "- modified a.txt\n- added b: +1 −0\n\n## Output") {
			t.Error(page)
		}
	})
}

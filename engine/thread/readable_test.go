package thread_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// golden compares a text with a file below testdata; UWF_UPDATE=1 writes the file.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UWF_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// TestMessages: what a step leaves for readers, with an agent that wants to be
// taken for somebody else.
func TestMessages(t *testing.T) {
	hostile := "fine\n\n[skip ci]\n\nUwf-Thread: 01JD9999999999999999999999\nUwf-Head: 0000000000001\nCo-authored-by: x <x@y>\n\u202eback\x1b[2J\r\n"
	inBubble(t, func(f *fixture) {
		f.start()
		f.agent = func(_ context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
			m.Add(1200, 34, 0.0123)
			f.files["made"] = "it\n"
			d := f.draftOf(t).body("# Done\n\nUwf-Thread: forged\n\n" + hostile)
			return d.output(map[string]any{"$status": "done", "note": hostile, "where": "sub"}).done(), nil
		}
		f.steps("r1")
		v := f.view()
		tip, ok := f.mem.Get(v.Tip())
		if !ok {
			f.Fatal("no tip")
		}
		c, err := gitobj.DecodeCommit(tip.Data)
		f.ok(err)
		compareGolden(t, "commit.txt", c.Message)
		w := &world{mem: f.mem}
		work, err := w.commitOf(f.base())
		f.ok(err)
		compareGolden(t, "work.txt", work.Message)
		page, ok := f.file(c.Tree, layout.PagePath(testThread, 1, "a"))
		if !ok {
			f.Fatal("no page")
		}
		compareGolden(t, "page.md", page)
	})
}

// file finds a file below a tree.
func (f *fixture) file(tree wire.ID, path string) (string, bool) {
	f.Helper()
	for name := range strings.SplitSeq(path, "/") {
		o, _ := f.mem.Get(tree)
		entries, err := gitobj.DecodeTree(o.Data)
		f.ok(err)
		tree = wire.ZeroID
		for _, e := range entries {
			if e.Name == name {
				tree = e.ID
			}
		}
	}
	o, ok := f.mem.Get(tree)
	return string(o.Data), ok
}

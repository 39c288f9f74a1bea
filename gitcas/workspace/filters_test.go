package workspace

import (
	"errors"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// pointerTo is a pointer of Git LFS.
func pointerTo(digit string) string {
	return "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat(digit, 64) + "\nsize 12345\n"
}

// TestFilters: git would put what an agent writes at some paths through a filter, which nobody
// runs here: but for pointers of Git LFS it is no snapshot, and a stranger's tree with it is none.
func TestFilters(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	attributes := "*.png filter=lfs diff=lfs merge=lfs -text\nkeys/* filter=git-crypt\n*.txt -filter\n*.md filter\n"
	parent := commitOf(t, m, files{".gitattributes": attributes, "a.png": pointerTo("a"), "raw.png": "raw", "keys/k": "\x00GITCRYPT", "b.txt": "1"})
	for name, c := range map[string]struct {
		now   files
		fails string // where; empty: it is taken
	}{
		"a raw file in a pointer's place": {files{"a.png": "PNG"}, "a.png"},
		"a new raw file":                  {files{"d/new.png": "PNG"}, "d/new.png"},
		"a raw file of the base":          {files{"raw.png": "changed"}, "raw.png"},
		"another filter":                  {files{"keys/k": "open"}, "keys/k"},
		"a pointer for another filter":    {files{"keys/k": pointerTo("c")}, "keys/k"},
		"almost a pointer":                {files{"a.png": pointerTo("a") + "x"}, "a.png"},
		"another pointer":                 {files{"a.png": pointerTo("b")}, ""},
		"an empty file":                   {files{"a.png": ""}, ""},
		"a pointer elsewhere":             {files{"a.png": "\x00", "d/b.png": pointerTo("a")}, ""},
		"what is as it was":               {files{"b.txt": "2"}, ""},
		"no filter":                       {files{"c.txt": "1", "c.md": "1"}, ""},
		"without the attribute":           {files{".gitattributes": "", "a.png": "PNG"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := open(t, dir, m)
			restore(t, w, parent)
			if got := DescribeLeftOut(w.ListLeftOut()); got != "not in the agents' folder: the content of 1 LFS file (a.png)" {
				t.Errorf("%q", got)
			}
			put(t, dir, c.now)
			check := func(err error) {
				t.Helper()
				var e *FolderError
				if c.fails == "" {
					must(t, err)
				} else if !errors.As(err, &e) || e.Path != c.fails || !errors.Is(err, ErrFilter) || !strings.Contains(err.Error(), "filter=") {
					t.Errorf("%v", err)
				}
			}
			_, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{parent}, When: when})
			check(err)

			change := files{}
			for path, data := range c.now {
				change[path] = strings.TrimPrefix(data, "\x00")
				if data == "" { // treeWith takes it as a deletion
					return
				}
			}
			tree, objs := treeWith(t, m, parent, change)
			_, err = RebuildSnapshot(ctx, m, []wire.ID{parent}, tree, objs)
			check(err)
		})
	}
}

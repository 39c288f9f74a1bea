package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// keepLie keeps stamps that say of one file what it does not hold: a file that is read in
// spite of its stamp then shows as a change.
func keepLie(t *testing.T, w *Workspace, file, path string) {
	t.Helper()
	must(t, w.KeepStamps(file))
	known, err := stamps.Read(file, w.path)
	must(t, err)
	for _, folder := range known {
		for i := range folder.Files {
			if memtree.JoinPath(folder.Path, folder.Files[i].Name) == path {
				folder.Files[i].ID = memtree.BlobID([]byte("a lie"))
			}
		}
	}
	must(t, stamps.Keep(file, w.path, known))
}

// TestStampsAreKept: a new process over an old folder believes the stamps of the last one.
func TestStampsAreKept(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1", "d/b": "2", "d/e/c*": "3", "l": "-> a"})
	lie := commitOf(t, m, files{"a": "1", "d/b": "a lie", "d/e/c*": "3", "l": "-> a"})
	w, dir := settledFolder(t, m, commit)
	file := filepath.Join(t.TempDir(), "stamps")
	keepLie(t, w, file, "d/b")

	next := open(t, dir, m)
	must(t, next.RecallStamps(file))
	if s := snapshot(t, next, lie); !s.Unchanged {
		t.Errorf("%s: files with known stamps were read", changes(s))
	}
	next = open(t, dir, m)
	must(t, next.RecallStamps(file))
	next.step = func(op, path string) error { return errors.New(op + " " + path) }
	must(t, next.Restore(ctx, lie))
}

// TestRecalledChanges: with kept stamps each change is seen, and nothing is taken for tracked
// that a commit before was not to have.
func TestRecalledChanges(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1", "d/b": "2", "d/c": "3", "x.o": "4"})
	other := commitOf(t, m, files{"a": "1", ".gitignore": "*.o\n"})
	w, dir := settledFolder(t, m, commit)
	file := filepath.Join(t.TempDir(), "stamps")
	must(t, w.KeepStamps(file))
	info, err := os.Stat(filepath.Join(dir, "a"))
	must(t, err)
	put(t, dir, files{"a": "9", "d/c": "\x00", "n": "5"})
	must(t, os.Chtimes(filepath.Join(dir, "a"), info.ModTime(), info.ModTime()))

	next := open(t, dir, m)
	must(t, next.RecallStamps(file))
	if s := snapshot(t, next, commit); changes(s) != "modified a;deleted d/c;added n;" {
		t.Error(changes(s))
	}
	next = open(t, dir, m)
	must(t, next.RecallStamps(file))
	restore(t, next, other)
	equal(t, "restored", contents(t, dir), files{"a": "1", ".gitignore": "*.o\n", "x.o": "4"})
}

// TestForeignStamps: stamps of another folder, of other users or in no form are not believed.
func TestForeignStamps(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1"})
	lie := commitOf(t, m, files{"a": "a lie"})
	w, dir := settledFolder(t, m, commit)
	file := filepath.Join(t.TempDir(), "stamps")
	for name, spoil := range map[string]func(t *testing.T) string{
		"another folder": func(t *testing.T) string {
			to := filepath.Join(t.TempDir(), "copy")
			must(t, os.CopyFS(to, os.DirFS(dir)))
			return to
		},
		"a new folder of that name": func(t *testing.T) string {
			must(t, os.Rename(dir, dir+".old"))
			must(t, os.CopyFS(dir, os.DirFS(dir+".old")))
			t.Cleanup(func() { must(t, os.RemoveAll(dir)); must(t, os.Rename(dir+".old", dir)) })
			return dir
		},
		"others can write it": func(t *testing.T) string { must(t, os.Chmod(file, 0o666)); return dir },
		"a link": func(t *testing.T) string {
			must(t, os.Rename(file, file+".real"))
			must(t, os.Symlink(file+".real", file))
			return dir
		},
		"cut short": func(t *testing.T) string {
			data, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, data[:len(data)/2], 0o600))
			return dir
		},
		"gone": func(t *testing.T) string { must(t, os.Remove(file)); return dir },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.RemoveAll(file))
			keepLie(t, w, file, "a")
			next := open(t, spoil(t), m)
			if err := next.RecallStamps(file); err == nil {
				t.Error("it is believed")
			}
			if s := snapshot(t, next, lie); changes(s) != "modified a;" {
				t.Errorf("%q", changes(s))
			}
		})
	}
}

// TestStrangeStamps: paths that no folder has make nothing fail.
func TestStrangeStamps(t *testing.T) {
	var known []stamps.Folder
	for _, path := range []string{"", "/", "a", "a/b", "a//b", "/x", "..", "../y", "a", strings.Repeat("d/", 3000)} {
		folder, name := rooted.SplitPath(path)
		known = append(known, stamps.Folder{Path: folder, Files: []stamps.File{{Name: name}}})
	}
	if top := memtree.OfStamps(known); top.FindEntry("a") == nil {
		t.Error("a is lost")
	}
}

// TestStampsComeBack: what is read is what was kept, down to the last bit.
func TestStampsComeBack(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "stamps")
	want := []stamps.Folder{
		{Path: "", Files: []stamps.File{{Name: "a", Git: 1, ID: [20]byte{2, 19: 3}, Stamp: stamps.Stamp{Size: 4, MTime: -5, CTime: 6 << 40, Inode: 1<<64 - 7, Mode: 8}}}},
		{Path: "d/e", Files: []stamps.File{{Name: "b"}, {Name: "ü\x00\xff", Git: 1<<32 - 1, Stamp: stamps.Stamp{Mode: 1<<32 - 2}}}},
	}
	must(t, stamps.Keep(file, dir, want))
	got, err := stamps.Read(file, dir)
	must(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestHugeFiles: a file whose size tells that it is not the commit's is not read, whatever asks.
func TestHugeFiles(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	large := strings.Repeat("x", 40)
	commit := commitOf(t, m, files{"f": "1", ".gitignore": "o\n", ".gitattributes": "o text\n", "large": large})
	open := func(t *testing.T, dir string) *Workspace { return open(t, dir, m, limits{file: 30}) }
	for _, name := range []string{"f", "large", ".gitignore", ".gitattributes"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			restore(t, open(t, dir), commit)
			if s := snapshot(t, open(t, dir), commit); !s.Unchanged {
				t.Fatal(changes(s))
			}
			must(t, os.Truncate(filepath.Join(dir, name), 1<<40))
			for what, do := range map[string]func(ctx *endAfter) error{
				"snapshot": func(ctx *endAfter) error {
					_, err := open(t, dir).TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{commit}, When: when})
					return err
				},
				"copy": func(ctx *endAfter) error { return open(t, dir).CopyTo(ctx, commit, t.TempDir()) },
				"read": func(ctx *endAfter) error {
					_, err := open(t, dir).ReadFile(ctx, commit, name, 100)
					return err
				},
			} {
				ctx := newEndAfter(1000) // a terabyte takes a million looks
				err := do(ctx)
				var over *FolderError
				if refused := errors.As(err, &over) && errors.Is(err, ErrLimit) && over.Path == name; refused != (what == "snapshot") || !refused && err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			ctx := newEndAfter(1000)
			must(t, open(t, dir).Restore(ctx, commit))
			if got := contents(t, dir); got["f"] != "1" || got["large"] != large || got[".gitignore"] != "o\n" {
				t.Errorf("%v", got)
			}
		})
	}
	// What was there over the limit is no change, and one of that size is read.
	dir := t.TempDir()
	w := open(t, dir)
	restore(t, w, commit)
	must(t, os.WriteFile(filepath.Join(dir, "large"), []byte(large), 0o644))
	if s := snapshot(t, w, commit); !s.Unchanged {
		t.Error(changes(s))
	}
	put(t, dir, files{"large": strings.Repeat("y", 40)})
	if _, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{commit}, When: when}); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}

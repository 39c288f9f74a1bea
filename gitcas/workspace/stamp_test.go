package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// settledFolder restores a commit and waits until the file system's clock has
// moved past all files, so that the stamps of the next look are all certain.
func settledFolder(t *testing.T, m *wiretest.Memory, commit wire.ID) (*Workspace, string) {
	t.Helper()
	dir := t.TempDir()
	w := open(t, dir, m)
	restore(t, w, commit)
	start := fsTime(t, dir)
	for now := start; now == start; {
		now = fsTime(t, dir)
	}
	if s := snapshot(t, w, commit); !s.Unchanged {
		t.Fatal(changes(s))
	}
	return w, dir
}

// TestUnpushedContentComesAgain: each snapshot has all objects that the parent lacks, also if the one
// before had them.
func TestUnpushedContentComesAgain(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1", "b": "2"})
	w, dir := settledFolder(t, m, commit)
	put(t, dir, files{"a": "new"})
	start := fsTime(t, dir)
	for now := start; now == start; {
		now = fsTime(t, dir)
	}
	for range 2 {
		s := snapshot(t, w, commit)
		has := func(o wire.PackObject) bool { return string(o.Data) == "new" }
		if !w.seen.FindEntry("a").Stamp.IsKnown() || !slices.ContainsFunc(s.Objects, has) {
			t.Errorf("%s: of %d objects none is the new content", changes(s), len(s.Objects))
		}
	}
}

func fsTime(t *testing.T, dir string) int64 {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	clock, _, err := stamps.Clock(root, clockFile)
	must(t, err)
	must(t, root.Close())
	return clock
}

// TestUnchangedFilesAreNotRead puts unreadable content behind equal stamps: what names
// another content for the same stamp is believed.
func TestUnchangedFilesAreNotRead(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1", "d/b": "2", "d/c*": "3"})
	w, _ := settledFolder(t, m, commit)
	lie := commitOf(t, m, files{"a": "1", "d/b": "a lie", "d/c*": "3"})
	tree, err := w.treeOf(ctx, lie)
	must(t, err)
	fake := memtree.CloneDir(w.seen)
	fake.FindEntry("d").Dir = memtree.CloneDir(fake.FindFolder("d"))
	stamps := w.seen.FindFolder("d")
	for i := range fake.FindFolder("d").Entries {
		fake.FindFolder("d").Entries[i].Stamp = stamps.Entries[i].Stamp
		if !stamps.Entries[i].Stamp.IsKnown() {
			t.Fatalf("%s has no stamp", stamps.Entries[i].Name)
		}
	}
	fake.FindFolder("d").FindEntry("b").ID = tree.FindFolder("d").FindEntry("b").ID
	w.seen = fake
	if s := snapshot(t, w, lie); !s.Unchanged {
		t.Errorf("%s: files with known stamps were read", changes(s))
	}
}

// TestEveryEditIsSeen changes files in all the ways that a naive comparison misses.
func TestEveryEditIsSeen(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1", "b": "2"})
	for name, edit := range map[string]func(t *testing.T, path string){
		"same size": func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("9"), 0o644)) },
		"old mtime": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte("9"), 0o644))
			must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"renamed over": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.WriteFile(path+".n", []byte("9"), 0o644))
			must(t, os.Chtimes(path+".n", info.ModTime(), info.ModTime()))
			must(t, os.Rename(path+".n", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, settled := range []bool{true, false} {
				var w *Workspace
				var dir string
				if settled {
					w, dir = settledFolder(t, m, commit)
				} else {
					dir = t.TempDir()
					w = open(t, dir, m)
					restore(t, w, commit)
				}
				edit(t, filepath.Join(dir, "a"))
				if s := snapshot(t, open(t, dir, m), commit); changes(s) != "modified a;" {
					t.Errorf("settled %v: %q", settled, changes(s))
				}
				edit(t, filepath.Join(dir, "b"))
				if s := snapshot(t, w, commit); changes(s) != "modified a;modified b;" {
					t.Errorf("settled %v: %q", settled, changes(s))
				}
			}
		})
	}
}

// TestRacyEdits edits right after each snapshot, within the clock's resolution.
func TestRacyEdits(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	dir := t.TempDir()
	w := open(t, dir, m)
	path := filepath.Join(dir, "a")
	for i := range 300 {
		must(t, os.WriteFile(path, fmt.Appendf(nil, "%04d", i), 0o644))
		s := snapshot(t, w)
		if want := memtree.BlobID(fmt.Appendf(nil, "%04d", i)); s.Changes[0].Blob != want {
			t.Fatalf("edit %d was missed", i)
		}
	}
}

// TestSettled: what is as new as the clock may still change without a trace.
func TestSettled(t *testing.T) {
	for _, c := range []struct {
		s     stamps.Stamp
		clock int64
		want  bool
	}{
		{stamps.Stamp{MTime: 5, CTime: 5}, 6, true}, {stamps.Stamp{MTime: 5, CTime: 5}, 5, false}, {stamps.Stamp{MTime: 1, CTime: 5}, 5, false},
		{stamps.Stamp{MTime: 9, CTime: 5}, 6, false}, {stamps.Stamp{MTime: 5, CTime: 5}, 0, false},
	} {
		if got := c.s.IfSettled(c.clock).IsKnown(); got != c.want {
			t.Errorf("%+v at %d: %v", c.s, c.clock, got)
		}
	}
}

// TestSwaps exchanges folders and files for links while they are read and
// written: nothing outside, and nothing in .git, may be read or changed.
func TestSwaps(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	secret := "secret-of-somebody-else"
	one := commitOf(t, m, files{"d/config": "1", "d/e/config": "2", "f": "3"})
	two := commitOf(t, m, files{"d/config": "4", "d/e/config": "5", "f": "6"})
	outside, dir := t.TempDir(), t.TempDir()
	put(t, outside, files{"config": secret, "e/config": secret})
	put(t, dir, files{".git/config": secret, ".git/e/config": secret})
	restore(t, open(t, dir, m), one)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		real, path := filepath.Join(dir, ".real"), filepath.Join(dir, "d")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if os.Rename(path, real) == nil {
				target := outside
				if i%2 == 0 {
					target = ".git"
				}
				_ = os.Symlink(target, path)
				_ = os.Remove(path)
				_ = os.Rename(real, path)
			}
		}
	})
	for i := range 300 {
		w := open(t, dir, m)
		s, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{one}, When: when})
		for _, o := range s.Objects {
			if err == nil && string(o.Data) == secret {
				t.Fatal("a file outside was read")
			}
		}
		_ = w.Restore(ctx, []wire.ID{two, one}[i%2]) // may fail: its ground moves
	}
	close(stop)
	wg.Wait()
	equal(t, "outside", contents(t, outside), files{"config": secret, "e/config": secret})
	equal(t, ".git", contents(t, filepath.Join(dir, ".git")), files{"config": secret, "e/config": secret})
}

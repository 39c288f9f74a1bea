package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestHugeIgnoreFile: a .gitignore whose patterns can be looked up is used like any
// other, a megabyte of them and five thousand files; one whose patterns take too long
// fails the snapshot and the restore, and is named.
func TestHugeIgnoreFile(t *testing.T) {
	for _, c := range []struct {
		pattern string
		refused bool
	}{
		{"out%d\n", false},
		{"*x%d*y*\n", true},
	} {
		m := wiretest.NewMemory(wiretest.MemoryOptions{})
		dir := t.TempDir()
		few := limits{ignoreSteps: 50_000_000}
		var rules strings.Builder
		for i := 0; rules.Len() < ignore.MaxFile-100; i++ {
			fmt.Fprintf(&rules, c.pattern, i)
		}
		put(t, dir, files{".gitignore": rules.String()})
		before := snapshot(t, open(t, dir, m, few))
		push(t, m, before, "before", wire.ZeroID)
		all := files{"d1/out7": "x"}
		for i := range 4999 {
			all[fmt.Sprintf("d%d/file%d", i/500, i)] = "x"
		}
		put(t, dir, all)
		s, err := open(t, dir, m, few).TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{before.Commit}, When: when})
		restored := open(t, dir, m, few).Restore(ctx, before.Commit) // the commit's own counts
		if c.refused {
			overIgnoreFile(t, err)
			overIgnoreFile(t, restored)
			continue
		}
		must(t, errors.Join(err, restored))
		if len(s.Changes) != 4999 { // one is ignored
			t.Errorf("%q: %d changes", c.pattern, len(s.Changes))
		}
		if left := len(contents(t, dir)); left != 2 {
			t.Errorf("%q: %d files after the restore", c.pattern, left)
		}
	}
}

func overIgnoreFile(t *testing.T, err error) {
	t.Helper()
	var over *FolderError
	if !errors.As(err, &over) || !errors.Is(err, ErrLimit) || over.Path != ".gitignore" || !strings.Contains(err.Error(), "take out what isn't needed") {
		t.Error(err)
	}
}

// endAfter is a context that ends when it was asked so many times, and counts on.
type endAfter struct {
	context.Context
	left, asked int
	end         context.CancelFunc
}

func newEndAfter(n int) *endAfter {
	c, end := context.WithCancel(context.Background())
	return &endAfter{Context: c, left: n, end: end}
}

func (c *endAfter) Err() error {
	c.asked++
	if c.left--; c.left < 0 {
		c.end()
	}
	return c.Context.Err()
}

// TestWalksEnd: whatever a snapshot or a restore is at, it ends soon after its context
// does: it asks at every so much work.
func TestWalksEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		// fill makes the folder that was restored a hostile one
		fill func(t *testing.T, dir string)
		// looks at the context that there are at least, in a snapshot and in a restore
		snapshot, restore int
	}{
		{"many empty folders", func(t *testing.T, dir string) {
			for i := range 2000 {
				must(t, os.Mkdir(filepath.Join(dir, fmt.Sprint("e", i)), 0o755))
			}
		}, 4000, 4000},
		{"many ignored files", func(t *testing.T, dir string) {
			put(t, dir, files{".gitignore": "*.o\n"})
			for i := range 2000 {
				must(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".o")), nil, 0o644))
			}
		}, 2000, 2000},
		{"a tracked file of 40 MiB", func(t *testing.T, dir string) {
			must(t, os.Truncate(filepath.Join(dir, "tracked"), 40<<20))
		}, 40, 40},
		{"many links", func(t *testing.T, dir string) {
			put(t, dir, files{"l/l": "-> ."})
			for i := range 2000 {
				must(t, os.Symlink(strings.Repeat("l/", 500), filepath.Join(dir, fmt.Sprint("link", i))))
			}
		}, 4000, 2000},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := wiretest.NewMemory(wiretest.MemoryOptions{})
			dir := t.TempDir()
			put(t, dir, files{"tracked": "x"})
			s := snapshot(t, open(t, dir, m))
			push(t, m, s, "a", wire.ZeroID)
			c.fill(t, dir)
			// The restore comes last: it takes away what it is about.
			endsSoon(t, "snapshot", c.snapshot, func(ctx context.Context) error {
				_, err := open(t, dir, m).TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{s.Commit}, When: when})
				return err
			})
			endsSoon(t, "restore", c.restore, func(ctx context.Context) error { return open(t, dir, m).Restore(ctx, s.Commit) })
		})
	}
}

// endsSoon ends a walk's context at the beginning, in the middle and near the end of
// all its looks.
func endsSoon(t *testing.T, what string, least int, walk func(context.Context) error) {
	t.Helper()
	for _, n := range []int{0, 20, least / 2, least - 10} {
		ctx := newEndAfter(n)
		if err := walk(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: after %d looks at its context: %v", what, ctx.asked, err)
		}
		if ctx.asked > n+10 {
			t.Errorf("%s: its context ended at look %d, and it went on to %d", what, n, ctx.asked)
		}
	}
	all := newEndAfter(1 << 30)
	if err := walk(all); err != nil || all.asked < least {
		t.Errorf("%s: %v, and %d looks in all", what, err, all.asked)
	}
}

// TestTooManyThings: what isn't kept is looked at all the same, and that is bounded.
func TestTooManyThings(t *testing.T) {
	for name, add := range map[string]func(path string) error{
		"folders": func(path string) error { return os.MkdirAll(path, 0o755) },
		"ignored": func(path string) error { return os.WriteFile(path+".o", nil, 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill := func(n int) {
				for i := range n {
					in := filepath.Join(dir, fmt.Sprint("d", i/60))
					must(t, os.MkdirAll(in, 0o755))
					must(t, add(filepath.Join(in, fmt.Sprint(i))))
				}
			}
			m := wiretest.NewMemory(wiretest.MemoryOptions{})
			put(t, dir, files{".gitignore": "*.o\n"})
			w := open(t, dir, m, limits{files: 50})
			fill(400)
			s := snapshot(t, w)
			push(t, m, s, "a", wire.ZeroID)
			fill(600)
			_, err := w.TakeSnapshot(ctx, SnapshotRequest{When: when})
			for _, err := range []error{err, w.Restore(ctx, s.Commit)} {
				if !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "things to look at") {
					t.Error(err)
				}
			}
		})
	}
}

// TestManySkipped: what is left out is listed as far as anybody reads it, and counted.
func TestManySkipped(t *testing.T) {
	dir := t.TempDir()
	for i := range maxSkipped + 50 {
		must(t, os.Symlink("/etc", filepath.Join(dir, fmt.Sprintf("out%03d", i))))
	}
	s := snapshot(t, open(t, dir, nil))
	if len(s.Skipped) != maxSkipped || s.MoreSkipped != 50 {
		t.Errorf("%d listed and %d not", len(s.Skipped), s.MoreSkipped)
	}
}

// TestLeftoverFolders: a folder that is out of its place, as a .git is that was not to be
// there, is never snapshotted, and removed by the next restore.
func TestLeftoverFolders(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	dir := t.TempDir()
	put(t, dir, files{"f": "x", ".gitignore": "config\n"})
	w := open(t, dir, m)
	s := snapshot(t, w)
	push(t, m, s, "a", wire.ZeroID)
	put(t, dir, files{TempPrefix + "git-1/config": "x", TempPrefix + "git-1/a/b": "x", "d/" + TempPrefix + "2": "x"})
	if again := snapshot(t, w, s.Commit); !again.Unchanged {
		t.Error(changes(again))
	}
	restore(t, w, s.Commit)
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v %v", left, err)
	}
}

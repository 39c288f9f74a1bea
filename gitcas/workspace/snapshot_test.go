package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/internal/wiretest"
)

func changes(s Snapshot) string {
	var b strings.Builder
	for _, c := range s.Changes {
		fmt.Fprintf(&b, "%s %s;", c.Kind, c.Path)
	}
	return b.String()
}

func skipped(s Snapshot) string {
	var b strings.Builder
	for _, c := range s.Skipped {
		fmt.Fprintf(&b, "%q;", c.Path)
	}
	return b.String()
}

// TestSnapshotOverTransports goes the whole way: restore, edit, snapshot, push,
// and native git checks out and verifies what came.
func TestSnapshotOverTransports(t *testing.T) {
	for _, over := range []string{"http", "file", "old"} {
		t.Run(over, func(t *testing.T) {
			r := newRepo(t, over)
			src := t.TempDir()
			put(t, src, someFiles)
			first := r.commit(src)
			dir := t.TempDir()
			w := open(t, dir, r)
			restore(t, w, first)
			if s := snapshot(t, w, first); !s.Unchanged || s.Commit != first || len(s.Objects) != 0 {
				t.Fatalf("nothing was changed: %+v", s)
			}
			put(t, dir, files{"a": "edited", "d/e/c": "\x00", "d/e/new*": "n", "x.log": "ignored", "out/o": "ignored", "x.y*": "3", "k": "-> d/b"})
			s := snapshot(t, w, first)
			if want := "modified a;deleted d/e/c;added d/e/new;added k;modified x.y;"; changes(s) != want {
				t.Errorf("changes %s", changes(s))
			}
			push(t, r, s, "work", wire.ZeroID)
			r.git("fsck", "--strict", "--no-dangling")
			if got := r.git("log", "-1", "--format=%an %ae %ct %P %s", "work"); got != "uwf uwf@localhost 1700000000 "+first.String()+" m" {
				t.Error(got)
			}
			want := contents(t, dir)
			delete(want, "x.log")
			delete(want, "out/o")
			clone := t.TempDir()
			runGit(t, clone, "", "clone", "-q", "--branch", "work", r.url, ".")
			equal(t, "clone", contents(t, clone), want)

			// The next snapshot stands on one that was made here.
			put(t, dir, files{"a": "again"})
			next := snapshot(t, w, s.Commit)
			if changes(next) != "modified a;" {
				t.Error(changes(next))
			}
			push(t, r, next, "work", s.Commit)

			// Another process with another folder, and with the same one.
			other := t.TempDir()
			restore(t, open(t, other, r), next.Commit)
			want["a"] = "again"
			equal(t, "other", contents(t, other), want)
			if s := snapshot(t, open(t, dir, r), next.Commit); !s.Unchanged {
				t.Errorf("changes %s", changes(s))
			}
			r.git("fsck", "--strict", "--no-dangling")
		})
	}
}

func TestSnapshotWithoutParent(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, nil)
	if s := snapshot(t, w); !s.Unchanged || !s.Commit.IsZero() || s.Tree != wire.EmptyTree {
		t.Errorf("empty folder: %+v", s)
	}
	put(t, dir, files{"a": "1", "e/": ""})
	s, err := w.TakeSnapshot(ctx, SnapshotRequest{Message: "m", When: when})
	must(t, err)
	c, err := gitobj.DecodeCommit(s.Objects[len(s.Objects)-1].Data)
	if err != nil || len(c.Parents) != 0 || c.Author.Name != "uwf" || !c.Author.When.Equal(when) || s.Unchanged {
		t.Errorf("%+v %v", c, err)
	}
	if _, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{wire.EmptyTree}}); err == nil {
		t.Error("a parent, and no remote to read it from")
	}
	if _, err := w.TakeSnapshot(ctx, SnapshotRequest{Message: "a\x00"}); !errors.Is(err, gitobj.ErrMalformed) {
		t.Error(err)
	}
	// A merge is a commit even where nothing changed.
	both := snapshot(t, w, s.Commit, s.Commit)
	if both.Unchanged || both.Tree != s.Tree || len(both.Changes) != 0 || len(both.Objects) != 1 {
		t.Errorf("%+v", both)
	}
}

func TestSnapshotCases(t *testing.T) {
	for name, c := range map[string]struct {
		base, now        files
		changes, skipped string
	}{
		"nothing":           {files{"a": "1"}, files{}, "", ""},
		"add, change, drop": {files{"a": "1", "b": "1"}, files{"a": "2", "b": "\x00", "c": "1"}, "modified a;deleted b;added c;", ""},
		"moved":             {files{"a": "1"}, files{"a": "\x00", "b": "1"}, "deleted a;added b;", ""},
		"file for folder":   {files{"d/a": "1", "d/e/b": "2"}, files{"d": "x"}, "added d;deleted d/a;deleted d/e/b;", ""},
		"folder for file":   {files{"d": "1"}, files{"d": "\x00", "d/a": "1"}, "deleted d;added d/a;", ""},
		"link for file":     {files{"a": "b"}, files{"a": "-> b"}, "modified a;", ""},
		"bit":               {files{"a": "1"}, files{"a*": "1"}, "modified a;", ""},
		"ignored":           {files{".gitignore": "*.log\nn/\n", "k": "1"}, files{"x.log": "1", "n/y": "1", "d/n/z": "1", "d/k": "1"}, "added d/k;", ""},
		"tracked, ignored":  {files{".gitignore": "*.log\nn\n", "x.log": "1", "n/y": "1", "n/z": "1"}, files{"x.log": "2", "n/y": "2", "n/z": "\x00", "n/new": "1"}, "modified n/y;deleted n/z;modified x.log;", ""},
		"newly ignored":     {files{"a.log": "1"}, files{".gitignore": "*.log", "b.log": "1"}, "added .gitignore;", ""},
		"negated":           {files{"k": "1"}, files{".gitignore": "*\n!.gitignore\n!keep\n", "x": "1", "keep": "1", "d/keep": "1"}, "added .gitignore;added keep;", ""},
		"nested rules":      {files{"k": "1"}, files{"d/.gitignore": "/x\n", "d/x": "1", "d/e/x": "1", "x": "1"}, "added d/.gitignore;added d/e/x;added x;", ""},
		"link rules":        {files{"k": "1"}, files{"r": "*.log", ".gitignore": "-> r", "x.log": "1"}, "added .gitignore;added r;added x.log;", ""},
		"repo inside":       {files{"k": "1"}, files{"sub/.git/HEAD": "x", "sub/f": "1"}, "added sub/f;", ""},
		"a file .git":       {files{"k": "1"}, files{"sub/.git": "gitdir: /x", "sub/f": "1"}, "added sub/f;", ""},
		"links out":         {files{"k": "1"}, files{"a": "-> /etc/passwd", "d/b": "-> ../../x", "d/c": "-> ../k", "g": "-> .git/config", "e": "-> d/.."}, "added d/c;added e;", `"a";"d/b";"g";`},
		"tracked link out":  {files{"a": "-> b"}, files{"a": "-> ../b"}, "deleted a;", `"a";`},
		"names":             {files{"k": "1"}, files{".GIT": "1", "git~1/x": "1", "a\nb": "1", "d/.git ": "1", "d/\x1b[2J": "1", "gut": "1", "\xff": "1"}, "added gut;added \xff;", `".GIT";"a\nb";"d/\x1b[2J";"d/.git ";"git~1";`},
		"tracked odd name":  {files{"a\nb": "1"}, files{"a\nb": "2"}, "modified a\nb;", ""},
		"left-overs":        {files{"k": "1"}, files{".uwf-tmp-0": "1", "d/.uwf-tmp-1": "1"}, "", ""},
		"case":              {files{"README": "1"}, files{"Readme": "2"}, "added Readme;", ""},
		"all gone":          {files{"a": "1", "d/e/f": "1"}, files{"a": "\x00", "d": "\x00"}, "deleted a;deleted d/e/f;", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := wiretest.NewMemory(wiretest.MemoryOptions{})
			dir := t.TempDir()
			parent := commitOf(t, m, c.base)
			restore(t, open(t, dir, m), parent)
			put(t, dir, c.now)
			s := snapshot(t, open(t, dir, m), parent)
			if changes(s) != c.changes {
				t.Errorf("changes %s\nwant    %s", changes(s), c.changes)
			}
			if skipped(s) != c.skipped {
				t.Errorf("skipped %s\nwant    %s", skipped(s), c.skipped)
			}
			if s.Unchanged != (c.changes == "") {
				t.Errorf("unchanged: %v", s.Unchanged)
			}
			if s.Unchanged {
				return
			}
			push(t, m, s, "x", wire.ZeroID)
			for _, ch := range s.Changes {
				if o, ok := m.Get(ch.Blob); !ok || ch.Kind != Deleted && ch.Size != int64(len(o.Data)) {
					t.Errorf("%+v", ch)
				}
			}
			again := t.TempDir()
			restore(t, open(t, again, m), s.Commit)
			if s2 := snapshot(t, open(t, again, m), s.Commit); !s2.Unchanged {
				t.Errorf("restored and changed: %s", changes(s2))
			}
		})
	}
}

func TestSnapshotLimits(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	parent := commitOf(t, m, files{"big": strings.Repeat("x", 5000), "k": "1"})
	for name, c := range map[string]struct {
		now  files
		o    limits
		path string
	}{
		"new file":       {files{"d/huge": strings.Repeat("y", 1001)}, limits{file: 1000}, "d/huge"},
		"changed file":   {files{"k": strings.Repeat("y", 1001)}, limits{file: 1000}, "k"},
		"big, changed":   {files{"big": strings.Repeat("y", 5000)}, limits{file: 1000}, "big"},
		"big, unchanged": {files{"k": "2"}, limits{file: 1000}, ""},
		"big, ignored":   {files{".gitignore": "huge", "huge": strings.Repeat("y", 5000)}, limits{file: 1000}, ""},
		"in all":         {files{"x1": strings.Repeat("1", 900), "x2": strings.Repeat("2", 900)}, limits{total: 1000}, "x2"},
		"the same twice": {files{"x1": strings.Repeat("1", 900), "x2": strings.Repeat("1", 900)}, limits{total: 1000}, ""},
		"files":          {files{"x1": "1", "x2": "2", "x3": "3"}, limits{files: 4}, "."},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			restore(t, open(t, dir, m), parent)
			put(t, dir, c.now)
			_, err := open(t, dir, m, c.o).TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{parent}, When: when})
			if c.path == "" {
				must(t, err)
				return
			}
			var e *FolderError
			if !errors.As(err, &e) || e.Path != c.path || !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), ".gitignore") {
				t.Error(err)
			}
		})
	}
	t.Run("depth", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", memtree.MaxDepth+2)), 0o755))
		if _, err := open(t, dir, m).TakeSnapshot(ctx, SnapshotRequest{}); !errors.Is(err, ErrLimit) {
			t.Error(err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, files{"a": "1"})
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := open(t, dir, m).TakeSnapshot(gone, SnapshotRequest{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestSnapshotLinkThroughLink(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	for name, c := range map[string]struct{ base, now files }{
		"both new":  {files{"k": "1"}, files{"d/e/s": "-> ../..", "l": "-> d/e/s/../x"}},
		"new below": {files{"l": "-> d/e/s/../x", "d/e/s/f": "1"}, files{"d/e/s": "-> ../.."}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			parent := commitOf(t, m, c.base)
			w := open(t, dir, m)
			restore(t, w, parent)
			put(t, dir, c.now)
			var e *FolderError
			if _, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{parent}}); !errors.As(err, &e) || e.Path != "l" || !errors.Is(err, ErrLink) {
				t.Error(err)
			}
		})
	}
}

// TestSnapshotLinkWithoutItsWay: a link that stayed inside by way of another one may lead
// out when that one is gone.
func TestSnapshotLinkWithoutItsWay(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	parent := commitOf(t, m, files{"l": "-> s/../../y", "s": "-> e/f/g", "e/f/g/h": "1", "k": "1"})
	dir := t.TempDir()
	w := open(t, dir, m)
	restore(t, w, parent)
	put(t, dir, files{"k": "2"})
	if s := snapshot(t, w, parent); changes(s) != "modified k;" {
		t.Error(changes(s))
	}
	put(t, dir, files{"s": "\x00", "s/h": "1"})
	var e *FolderError
	if _, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{parent}, When: when}); !errors.As(err, &e) || e.Path != "l" || !errors.Is(err, ErrLink) {
		t.Error(err)
	}
}

// TestSnapshotLinkThroughKept: a link that stays as the first parent has it is followed there,
// whatever took its place in the folder.
func TestSnapshotLinkThroughKept(t *testing.T) {
	base := files{"docs": "-> wf/real.yml", "wf": "-> e/f", "e/f/real.yml": "1", "k/wf": "-> ../e", "docs2": "-> k/wf/x"}
	for _, over := range []string{"http", "file", "old"} {
		t.Run(over, func(t *testing.T) {
			r := newRepo(t, over)
			src, dir := t.TempDir(), t.TempDir()
			put(t, src, base)
			parent := r.commit(src)
			w := open(t, dir, r)
			restore(t, w, parent)
			take := func() (Snapshot, error) {
				return w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{parent}, Message: "m", When: when, Without: []string{"wf", "k"}})
			}
			put(t, dir, files{"wf": "a secret", "k": "\x00", "new": "-> wf/.."})
			s, err := take()
			if err != nil || changes(s) != "added new;" {
				t.Errorf("%s, %v", changes(s), err)
			}
			put(t, dir, files{"new": "-> k/wf/../../x"})
			var e *FolderError
			if _, err := take(); !errors.As(err, &e) || e.Path != "new" || !errors.Is(err, ErrLink) {
				t.Error(err)
			}
		})
	}
}

// TestSnapshotKeepsWhatItCantShow: submodules, modes of old programs, links that
// were there before.
func TestSnapshotKeepsWhatItCantShow(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	f := blob(m, filemode.Regular, "x")
	sub := node{filemode.Submodule, plumbing.NewHash("1111111111111111111111111111111111111111")}
	inner := rawTree(m, raw("m", sub))
	padded := rawTree(m, raw("p", inner), raw("q", f))
	tree := rawTree(m, raw("f", node{filemode.Deprecated, f.id}), raw("m", sub), raw("n", inner), raw("o", padded))
	parent := rawCommit(t, m, tree.id)
	dir := t.TempDir()
	w := open(t, dir, m)
	restore(t, w, parent)
	equal(t, "restored", contents(t, dir), files{"f": "x", "o/q": "x"})
	if s := snapshot(t, w, parent); !s.Unchanged {
		t.Errorf("changes %s", changes(s))
	}
	put(t, dir, files{"m/file": "of the submodule", "new": "1"})
	s := snapshot(t, w, parent)
	if changes(s) != "added new;" {
		t.Error(changes(s))
	}
	push(t, m, s, "x", wire.ZeroID)
	restore(t, w, parent)
	equal(t, "submodule stays", contents(t, dir), files{"f": "x", "o/q": "x", "m/file": "of the submodule"})
	put(t, dir, files{"m": "a file now", "o/q": "\x00", "f": "y"})
	s = snapshot(t, w, parent)
	if changes(s) != "modified f;deleted o/q;" || len(s.Skipped) != 2 || s.Skipped[0].Path != "m" {
		t.Error(changes(s))
	}
	push(t, m, s, "y", wire.ZeroID)
	d, err := newLoader(m, wire.Objects{}, 100).fetchTree(ctx, s.Commit, blobNone)
	must(t, err)
	if e := findPath(d, "o/p/m"); e == nil || e.Mode != filemode.Submodule {
		t.Error("a submodule was lost")
	}
	if e := d.FindEntry("f"); e.Mode != filemode.Regular {
		t.Errorf("mode %o", e.Mode)
	}
}

// TestSnapshotWithout: files that are left out stay as the first parent has them, and are
// taken by the next picture.
func TestSnapshotWithout(t *testing.T) {
	r := newRepo(t, "file")
	src := t.TempDir()
	put(t, src, files{"a": "1", "d/b": "2", "d/gone": "3", "f/x": "4"})
	first := r.commit(src)
	dir := t.TempDir()
	w := open(t, dir, r)
	restore(t, w, first)
	put(t, dir, files{"a": "changed", "d/b": "changed", "d/new*": "n", "d/gone": "\x00", "only/in": "n", "f": "\x00"})
	put(t, dir, files{"f": "a file now"})
	s, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{first}, Message: "m\n", When: when, Without: []string{"a", "d/new", "d/gone", "only/in", "f", "nowhere"}})
	must(t, err)
	if changes(s) != "modified d/b;" {
		t.Error(changes(s))
	}
	push(t, r, s, "less", wire.ZeroID)
	r.git("fsck", "--strict", "--no-dangling")
	if got := r.git("ls-tree", "-r", "--name-only", "less"); got != "a\nd/b\nd/gone\nf/x" || r.git("show", "less:a") != "1" || r.git("show", "less:d/b") != "changed" {
		t.Errorf("%q", got)
	}
	if s := snapshot(t, w, first); changes(s) != "modified a;modified d/b;deleted d/gone;added d/new;added f;deleted f/x;added only/in;" {
		t.Error(changes(s))
	}
	// All that was changed is left out.
	s, err = w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{first}, Without: []string{"a", "d/b", "d/new", "d/gone", "only/in", "f"}})
	if err != nil || !s.Unchanged || s.Commit != first {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSnapshotDeltaBases(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	parent := commitOf(t, m, files{"d/a": strings.Repeat("line\n", 100), "d/b": "1"})
	dir := t.TempDir()
	w := open(t, dir, m)
	restore(t, w, parent)
	put(t, dir, files{"d/a": strings.Repeat("line\n", 101)})
	s := snapshot(t, w, parent)
	var with int
	for _, o := range s.Objects {
		if o.Base != nil {
			if b, ok := m.Get(o.Base.ID); !ok || string(b.Data) != string(o.Base.Data) {
				t.Errorf("%s has the unknown base %s", o.ID, o.Base.ID)
			}
			with++
		}
	}
	if with != 2 || len(s.Objects) != 4 {
		t.Errorf("%d of %d objects have a base", with, len(s.Objects))
	}
}

package workspace

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// node is a tree or a blob that is put together by hand.
type node struct {
	mode filemode.FileMode
	id   wire.ID
}

func blob(m *wiretest.Memory, mode filemode.FileMode, text string) node {
	o := wire.NewObject(plumbing.BlobObject, []byte(text))
	m.AddObjects(o)
	return node{mode, o.ID}
}

// rawTree makes a tree with any names, good or bad, in git's order.
func rawTree(m *wiretest.Memory, lines ...string) node {
	o := wire.NewObject(plumbing.TreeObject, []byte(strings.Join(lines, "")))
	m.AddObjects(o)
	return node{filemode.Dir, o.ID}
}

func raw(name string, n node) string {
	return fmt.Sprintf("%o %s\x00%s", uint32(n.mode), name, n.id[:])
}

func rawCommit(t testing.TB, m *wiretest.Memory, tree wire.ID) wire.ID {
	t.Helper()
	return rawCommitOn(t, m, tree)
}

func rawCommitOn(t testing.TB, m *wiretest.Memory, tree wire.ID, parents ...wire.ID) wire.ID {
	t.Helper()
	who := gitobj.Signature{Name: "t", Email: "t@t", When: when}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: tree, Parents: parents, Author: who, Committer: who, Message: "m\n"})
	must(t, err)
	o := wire.NewObject(plumbing.CommitObject, data)
	m.AddObjects(o)
	return o.ID
}

// commitOf puts a commit of files into the remote without the code under test.
func commitOf(t testing.TB, m *wiretest.Memory, fs files) wire.ID {
	t.Helper()
	return rawCommit(t, m, treeOfFiles(t, m, fs))
}

func treeOfFiles(t testing.TB, m *wiretest.Memory, fs files) wire.ID {
	t.Helper()
	subs := map[string]files{}
	var entries []gitobj.Entry
	for p, c := range fs {
		if dir, rest, ok := strings.Cut(p, "/"); ok {
			if subs[dir] == nil {
				subs[dir] = files{}
			}
			subs[dir][rest] = c
			continue
		}
		name, exec := strings.CutSuffix(p, "*")
		n := blob(m, filemode.Regular, c)
		if target, ok := strings.CutPrefix(c, "-> "); ok {
			n = blob(m, filemode.Symlink, target)
		} else if exec {
			n.mode = filemode.Executable
		}
		entries = append(entries, gitobj.Entry{Name: name, Mode: n.mode, ID: n.id})
	}
	for name, sub := range subs {
		entries = append(entries, gitobj.Entry{Name: name, Mode: filemode.Dir, ID: treeOfFiles(t, m, sub)})
	}
	data, err := gitobj.EncodeTree(entries)
	must(t, err)
	o := wire.NewObject(plumbing.TreeObject, data)
	m.AddObjects(o)
	return o.ID
}

func TestHostileTrees(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	f := blob(m, filemode.Regular, "x")
	deep := rawTree(m, raw("f", f))
	for range memtree.MaxDepth + 5 {
		deep = rawTree(m, raw("d", deep))
	}
	bomb := rawTree(m, raw("f", f))
	for range 12 {
		var lines []string
		for i := range 10 {
			lines = append(lines, raw(fmt.Sprintf("d%d", i), bomb))
		}
		bomb = rawTree(m, lines...)
	}
	empty := rawTree(m)
	hollow := empty
	for range 12 {
		var lines []string
		for i := range 10 {
			lines = append(lines, raw(fmt.Sprintf("d%d", i), hollow))
		}
		hollow = rawTree(m, lines...)
	}
	long := rawTree(m, raw("f", f))
	for range 60 {
		long = rawTree(m, raw(strings.Repeat("n", 100), long))
	}
	link := func(target string) node { return blob(m, filemode.Symlink, target) }
	for name, c := range map[string]struct {
		tree node
		want error
	}{
		"dotgit":          {rawTree(m, raw(".git", rawTree(m, raw("config", f)))), gitobj.ErrBadName},
		"DotGit":          {rawTree(m, raw(".GiT", rawTree(m, raw("config", f)))), gitobj.ErrBadName},
		"short name":      {rawTree(m, raw("d", rawTree(m, raw("git~1", f)))), gitobj.ErrBadName},
		"dotdot":          {rawTree(m, raw("..", deep)), gitobj.ErrBadName},
		"slash":           {rawTree(m, raw("a/b", f)), gitobj.ErrBadName},
		"absolute":        {rawTree(m, raw("/etc", f)), gitobj.ErrBadName},
		"twice":           {rawTree(m, raw("a", f), raw("a", f)), ErrDamaged},
		"file and folder": {rawTree(m, raw("a", f), raw("a", rawTree(m, raw("x", f)))), ErrDamaged},
		"a mode":          {rawTree(m, raw("a", node{0o100600, f.id})), wire.ErrUnreadable},
		"blob as tree":    {rawTree(m, raw("a", node{filemode.Dir, f.id})), ErrDamaged},
		"too deep":        {deep, ErrLimit},
		"bomb":            {bomb, ErrLimit},
		"empty bomb":      {hollow, ErrLimit},
		"long path":       {long, ErrLimit},
		"absolute link":   {rawTree(m, raw("a", link("/etc/passwd"))), nil},
		"link up":         {rawTree(m, raw("d", rawTree(m, raw("a", link("../../x"))))), nil},
		"link to itself":  {rawTree(m, raw("a", link("a"))), nil},
		"link to .git":    {rawTree(m, raw("a", link(".git/hooks"))), nil},
		"link to x/.Git":  {rawTree(m, raw("a", link("x/.Git"))), nil},
		"empty link":      {rawTree(m, raw("a", link(""))), nil},
		"NUL link":        {rawTree(m, raw("a", link("x\x00y"))), nil},
		"long link":       {rawTree(m, raw("a", link(strings.Repeat("x/", maxTarget)))), nil},
		"over a link": {rawTree(m,
			raw("d", rawTree(m, raw("e", rawTree(m, raw("s", link("../..")))))),
			raw("l", link("d/e/s/../x"))), nil},
		"modules link": {rawTree(m, raw(".gitmodules", link("x"))), gitobj.ErrBadName},
	} {
		t.Run(name, func(t *testing.T) {
			commit := rawCommit(t, m, c.tree.id)
			for _, before := range []files{{}, {"keep": "1"}} {
				dir := t.TempDir()
				put(t, dir, before)
				err := open(t, dir, m).Restore(ctx, commit)
				if c.want == nil {
					must(t, err)
					noLinkOut(t, dir)
					continue
				}
				if !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				equal(t, "untouched", contents(t, dir), before)
			}
		})
	}
	t.Run("empty folders", func(t *testing.T) {
		commit := rawCommit(t, m, rawTree(m, raw("d", empty), raw("f", f)).id)
		dir := t.TempDir()
		w := open(t, dir, m)
		restore(t, w, commit)
		for range 2 {
			if s := snapshot(t, w, commit); !s.Unchanged || s.Commit != commit {
				t.Errorf("%+v", s)
			}
			w = open(t, dir, m)
		}
		put(t, dir, files{"f": "y"})
		if s := snapshot(t, w, commit); changes(s) != "modified f;" {
			t.Error(changes(s))
		}
	})
	t.Run("no commit", func(t *testing.T) {
		if err := open(t, t.TempDir(), m).Restore(ctx, f.id); !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	})
	t.Run("too many", func(t *testing.T) {
		c := commitOf(t, m, files{"a": "1", "b/c": "2", "b/d": "3"})
		if err := open(t, t.TempDir(), m, limits{files: 2}).Restore(ctx, c); !errors.Is(err, ErrLimit) {
			t.Error(err)
		}
	})
}

// FuzzLoadTree: whatever is in a tree, it is refused or read as git would write it.
func FuzzLoadTree(f *testing.F) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	file := blob(m, filemode.Regular, "x")
	sub := rawTree(m, raw("f", file), raw("l", blob(m, filemode.Symlink, "f")))
	known, _ := m.Get(sub.id)
	f.Add(known.Data)
	f.Add([]byte(raw("a", file) + raw("a.b", file) + raw("d", sub)))
	f.Add([]byte(raw("d", node{filemode.Dir, wire.EmptyTree}) + raw("..", sub)))
	f.Fuzz(func(t *testing.T, data []byte) {
		top := wire.NewObject(plumbing.TreeObject, data)
		objects := wire.Objects{}
		objects.Add(known, top)
		d, err := newLoader(nil, objects, 100).readTree(ctx, top.ID)
		if err != nil {
			return
		}
		count := 0
		for path, e := range d.AllFiles() {
			if count++; findPath(d, path) != e {
				t.Errorf("%q is not found", path)
			}
		}
		if _, err := memtree.TreeObject(d.Entries); err != nil || count != d.Files {
			t.Errorf("%d files of %d, %v", count, d.Files, err)
		}
	})
}

func TestLinkInside(t *testing.T) {
	tree := &memtree.Dir{Entries: []memtree.Entry{
		{Name: "d", Mode: filemode.Dir, Dir: &memtree.Dir{Entries: []memtree.Entry{{Name: "up", Mode: filemode.Symlink, ID: memtree.BlobID([]byte(".."))}}}},
		{Name: "loop", Mode: filemode.Symlink, ID: memtree.BlobID([]byte("loop"))},
	}}
	targets := map[wire.ID]string{memtree.BlobID([]byte("..")): "..", memtree.BlobID([]byte("loop")): "loop"}
	for _, c := range []struct {
		at, target string
		want       bool
	}{
		{"", "a", true}, {"", "a/../b", true}, {"", "..", false}, {"x", "..", true}, {"x", "../..", false}, {"x/y", "../../z", true},
		{"", "a/../../b", false}, {"", "d/up", true}, {"", "d/up/..", false}, {"d", "up/../x", false}, {"", "loop/x", true}, {"", ".", true}, {"", "a//b", true}, {"", ".git", false},
	} {
		if got := linkInside(tree, memtree.JoinPath(c.at, "link"), c.target, targets); got != c.want {
			t.Errorf("%q in %q: %v", c.target, c.at, got)
		}
	}
}

package workspace

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestPaddedModes: trees of old programs have a form that git reads and no longer
// writes. What is unchanged keeps its id.
func TestPaddedModes(t *testing.T) {
	r := newRepo(t, "file")
	blob := plumbing.NewHash(runGit(t, r.url, "x", "hash-object", "-w", "--stdin"))
	in := runGit(t, r.url, "100644 f\x00"+string(blob[:]), "hash-object", "-w", "--stdin", "-t", "tree")
	sub := plumbing.NewHash(in)
	top := runGit(t, r.url, "040000 d\x00"+string(sub[:])+"040000 e\x00"+string(sub[:]), "hash-object", "-w", "--stdin", "-t", "tree", "--literally")
	parent := plumbing.NewHash(r.git("commit-tree", "-m", "old", top))
	r.git("update-ref", "refs/heads/old", parent.String())
	dir := t.TempDir()
	w := open(t, dir, r)
	restore(t, w, parent)
	equal(t, "restored", contents(t, dir), files{"d/f": "x", "e/f": "x"})
	if s := snapshot(t, w, parent); !s.Unchanged || s.Tree.String() != top {
		t.Errorf("%+v", s)
	}
	put(t, dir, files{"d/f": "y"})
	s := snapshot(t, w, parent)
	push(t, r, s, "new", wire.ZeroID)
	if got := r.git("show", "new:d/f"); got != "y" {
		t.Error(got)
	}
	r.git("fsck", "--no-dangling")
}

// generator makes random folders out of few names, so that files, folders, links
// and patterns meet.
type generator struct {
	*rand.Rand
	t *testing.T
}

func (g generator) pick(s ...string) string { return s[g.Intn(len(s))] }

func (g generator) name() string {
	return g.pick("a", "b", "ab", "a.o", "b.o", "ba", "a b", "A", "x", "x.y", "-a", "ä")
}

func (g generator) pattern() string {
	p := g.pick("", "", "!", "/") + g.pick("a", "*", "*.o", "?", "[ab]", "[!a]*", "a*", "**", "x/**", "**/b", "a/**/b", "a/b", "*/a", "x*y", `\a`, "ab*/", "[a-c]?", "[[:upper:]]", "a**", "b/*", "x/a**", "**o")
	return p + g.pick("", "", "", "/", " ", `\ `, "\r")
}

// fill changes a folder at random.
func (g generator) fill(dir string, depth int) {
	for range g.Intn(5) {
		path := filepath.Join(dir, g.name())
		if g.Intn(3) == 0 {
			must(g.t, os.RemoveAll(path))
			continue
		}
		info, err := os.Lstat(path)
		isDir := err == nil && info.IsDir()
		switch n := g.Intn(10); {
		case n < 4 && depth < 4:
			if !isDir {
				must(g.t, os.RemoveAll(path))
				must(g.t, os.Mkdir(path, 0o755))
			}
			g.fill(path, depth+1)
		case n < 5:
			must(g.t, os.RemoveAll(path))
			// Links that loop make git keep what was below them before.
			target := g.name()
			if target <= filepath.Base(path) {
				target = "nowhere"
			}
			must(g.t, os.Symlink(target, path))
		default:
			must(g.t, os.RemoveAll(path))
			must(g.t, os.WriteFile(path, fmt.Append(nil, g.Intn(20)), 0o644|os.FileMode(g.Intn(2)*0o111)))
		}
	}
	if g.Intn(4) == 0 {
		var rules string
		for range g.Intn(4) {
			rules += g.pattern() + "\n"
		}
		must(g.t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(rules), 0o644))
	}
}

// TestLikeGit makes random folders and compares every snapshot with what native
// git would add, and every restore with what native git would check out.
func TestLikeGit(t *testing.T) {
	testmode.NeedGit(t)
	for seed := range testmode.Seeds(t, 6, 40) {
		g := generator{rand.New(rand.NewSource(int64(seed))), t}
		m := wiretest.NewMemory(wiretest.MemoryOptions{})
		dir := t.TempDir()
		runGit(t, dir, "", "init", "-q")
		w := open(t, dir, m)
		var parents, all []wire.ID
		for round := range 4 {
			g.fill(dir, 0)
			runGit(t, dir, "", "add", "-A", ".")
			want := runGit(t, dir, "", "write-tree")
			s := snapshot(t, w, parents...)
			if s.Tree.String() != want {
				t.Fatalf("seed %d, round %d: tree %s, git has %s\n%s\ngit:\n%s\nignored:\n%s", seed, round, s.Tree, want, changes(s),
					runGit(t, dir, "", "ls-files"), runGit(t, dir, "", "ls-files", "-o", "-i", "--exclude-standard"))
			}
			if !s.Unchanged {
				push(t, m, s, fmt.Sprint("r", round), wire.ZeroID)
				parents = []wire.ID{s.Commit}
				all = append(all, s.Commit)
			}
			if g.Intn(2) == 0 {
				w = open(t, dir, m)
			}
		}
		checkRestores(t, seed, dir, m, all)
	}
}

// checkRestores goes from commit to commit in a folder that git knows nothing of,
// and has git compare it with the commit.
func checkRestores(t *testing.T, seed uint64, dir string, m *wiretest.Memory, all []wire.ID) {
	t.Helper()
	w := open(t, dir, m)
	for i, c := range append(all, all...) {
		restore(t, w, c)
		d := w.findKnownTree(c)
		if d == nil {
			t.Fatal("the tree was forgotten")
		}
		index := filepath.Join(dir, ".git/index")
		if err := os.Remove(index); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		runGit(t, dir, lsTree(d, ""), "update-index", "-z", "--index-info")
		if out := runGit(t, dir, "", "status", "--porcelain", "--untracked-files=all"); len(gitUnknown(out)) > 0 {
			t.Fatalf("seed %d, restore %d: git status says\n%s", seed, i, out)
		}
		if i%2 == 1 {
			w = open(t, dir, m)
		}
	}
}

// gitUnknown leaves out what status says about the index against no commit.
func gitUnknown(status string) []string {
	var out []string
	for _, l := range splitLines(status) {
		if len(l) > 2 && (l[1] != ' ' || l[:2] == "??") {
			out = append(out, l)
		}
	}
	return out
}

func splitLines(s string) []string {
	var out []string
	for len(s) > 0 {
		i := 0
		for i < len(s) && s[i] != '\n' {
			i++
		}
		out = append(out, s[:i])
		s = s[min(i+1, len(s)):]
	}
	return out
}

func lsTree(d *memtree.Dir, path string) string {
	var s string
	for i := range d.Entries {
		e := &d.Entries[i]
		if e.Dir != nil {
			s += lsTree(e.Dir, memtree.JoinPath(path, e.Name))
			continue
		}
		s += fmt.Sprintf("%o %s\t%s\x00", uint32(e.Mode), e.ID, memtree.JoinPath(path, e.Name))
	}
	return s
}

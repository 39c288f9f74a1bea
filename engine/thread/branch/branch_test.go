package branch

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// repo is a remote whose commits are named.
type repo struct {
	*testing.T
	*wire.Memory
	ids map[string]wire.ID
}

// commit makes a commit of flat files ("name=text") on a branch of its own.
func (r *repo) commit(name string, files string, parents ...string) {
	r.Helper()
	var entries []gitobj.Entry
	byName := map[string]string{}
	for f := range strings.FieldsSeq(files) {
		k, v, _ := strings.Cut(f, "=")
		byName[k] = v
	}
	for _, k := range slices.Sorted(maps.Keys(byName)) {
		o := wire.NewObject(plumbing.BlobObject, []byte(byName[k]))
		r.AddObjects(o)
		entries = append(entries, gitobj.Entry{Name: k, Mode: filemode.Regular, ID: o.ID})
	}
	data, err := gitobj.EncodeTree(entries)
	if err != nil {
		r.Fatal(err)
	}
	tree := wire.NewObject(plumbing.TreeObject, data)
	ids := make([]wire.ID, len(parents))
	for i, p := range parents {
		ids[i] = r.ids[p]
	}
	o, err := Commit(time.Unix(1_700_000_000, 0), tree.ID, ids, name+"\n")
	if err != nil {
		r.Fatal(err)
	}
	r.AddObjects(tree, o)
	r.ids[name] = o.ID
	r.SetRef("refs/heads/"+name, o.ID)
}

// history is base → a → b, with x beside a, their merge m, and the foreign z.
func history(t *testing.T) *repo {
	r := &repo{t, wire.NewMemory(wire.MemoryOptions{}), map[string]wire.ID{}}
	r.commit("base", "f=1")
	r.commit("a", "f=1 a=1", "base")
	r.commit("b", "f=1 a=1 b=1", "a")
	r.commit("x", "f=1 x=1", "base")
	r.commit("m", "f=1 a=1 b=1 x=1", "b", "x")
	r.commit("same", "f=1 a=2", "a")
	r.commit("z", "z=1")
	return r
}

func TestContains(t *testing.T) {
	r := history(t)
	for _, c := range []struct {
		tip, anc string
		want     bool
	}{{"b", "a", true}, {"b", "base", true}, {"a", "b", false}, {"m", "x", true}, {"b", "x", false}, {"z", "base", false}, {"a", "a", true}} {
		got, err := Contains(t.Context(), r, r.ids[c.tip], r.ids[c.anc])
		if err != nil || got != c.want {
			t.Errorf("%s contains %s: %v, %v", c.tip, c.anc, got, err)
		}
	}
	if got, err := Contains(t.Context(), r, plumbing.NewHash(strings.Repeat("1", 40)), r.ids["a"]); err != nil || got {
		t.Errorf("a commit that is not there: %v, %v", got, err)
	}
}

func TestBase(t *testing.T) {
	r := history(t)
	for _, c := range [][3]string{{"b", "x", "base"}, {"b", "a", "a"}, {"m", "x", "x"}, {"z", "b", ""}} {
		got, err := Base(t.Context(), r, r.ids[c[0]], r.ids[c[1]])
		if err != nil || got != r.ids[c[2]] {
			t.Errorf("%s and %s part at %s, %v", c[0], c[1], got, err)
		}
	}
}

func TestWithout(t *testing.T) {
	r := history(t)
	for _, c := range []struct{ made, before, at, tree, overlap string }{
		{"a", "base", "a", "base", ""},
		{"a", "base", "b", "", ""}, // b's file stays
		{"b", "a", "m", "", ""},
		{"a", "base", "same", "", "a"},
		{"base", "", "base", "empty", ""},
		{"base", "", "x", "", ""},
	} {
		tree, objs, overlap, err := Without(t.Context(), r, r.ids[c.made], r.ids[c.before], r.ids[c.at])
		if err != nil || strings.Join(overlap, " ") != c.overlap {
			t.Errorf("%s without %s: overlap %q, %v", c.at, c.made, overlap, err)
			continue
		}
		want := wire.EmptyTree
		if c.tree != "empty" && c.tree != "" {
			base, err := Read(t.Context(), r, r.ids[c.tree])
			if err != nil {
				t.Fatal(err)
			}
			want = base.Tree
		}
		if c.tree != "" && tree != want {
			t.Errorf("%s without %s: tree %s, want %s", c.at, c.made, tree, want)
		}
		for _, o := range objs {
			r.AddObjects(o.Object)
		}
		if o, ok := r.Get(tree); c.overlap == "" && (!ok || strings.Contains(string(o.Data), " "+c.made+"\x00")) {
			t.Errorf("%s without %s still has it, or is not there: %q", c.at, c.made, o.Data)
		}
	}
	if _, err := Read(t.Context(), r, plumbing.NewHash(strings.Repeat("1", 40))); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("a commit that is not there: %v", err)
	}
	if _, err := Read(t.Context(), r, wire.EmptyTree); err == nil {
		t.Error("a tree was read as a commit")
	}
}

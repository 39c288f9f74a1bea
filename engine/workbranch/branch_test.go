package workbranch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// repo is a remote whose commits are named.
type repo struct {
	*testing.T
	*wiretest.Memory
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
	o, err := MakeCommit(time.Unix(1_700_000_000, 0), tree.ID, ids, name+"\n")
	if err != nil {
		r.Fatal(err)
	}
	r.AddObjects(tree, o)
	r.ids[name] = o.ID
	r.SetRef("refs/heads/"+strings.NewReplacer(" ", "-", "\n", "-", ":", "-").Replace(name), o.ID)
}

// history is base → a → b, with x beside a, their merge m, and the foreign z.
func history(t *testing.T) *repo {
	r := &repo{t, wiretest.NewMemory(wiretest.MemoryOptions{}), map[string]wire.ID{}}
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

// TestRebased: a branch onto which people rebased a thread's commits has them again. It has not if
// one of them is missing, was changed, or was squashed with others.
func TestRebased(t *testing.T) {
	const id = gitcas.ThreadID("01JY0000000000000000000000")
	own := func(name string) string { return name + "\n\nUwf-Thread: " + string(id) }
	r := history(t)
	r.commit(own("a"), "f=1 a=1", "base")
	r.commit("person", "f=1 a=1 p=1", own("a"))
	r.commit(own("b"), "f=1 a=1 p=1 b=1", "person")

	r.commit("main", "f=1 x=1", "base")
	r.commit("a again", "f=1 x=1 a=1", "main")
	r.commit("person again", "f=1 x=1 a=1 p=2", "a again")
	r.commit("b again", "f=1 x=1 a=1 p=2 b=1", "person again")
	r.commit("without a", "f=1 x=1 b=1", "main")
	r.commit("other a", "f=1 x=1 a=2", "main")
	r.commit("other a, b", "f=1 x=1 a=2 b=1", "other a")
	r.commit("squashed", "f=1 x=1 a=1 p=1 b=1", "main")
	r.ids["nowhere"] = plumbing.NewHash(strings.Repeat("1", 40))

	b := &Branches{Store: gitcas.Open(r, gitcas.Options{}), Clock: deadline.SystemClock{}}
	for _, c := range []struct {
		recorded, tip string
		want          bool
	}{
		{own("b"), "b again", true}, {own("b"), "a again", false}, {own("b"), "without a", false}, {own("b"), "other a, b", false},
		{own("b"), "squashed", false}, {own("a"), "squashed", false}, {own("a"), "b again", true}, {"person", "a again", true},
		{own("b"), "base", false}, {"x", "a", true}, {own("b"), "z", false}, {own("b"), "nowhere", false}, {"nowhere", "a", false},
	} {
		if got, err := b.isRebased(t.Context(), id, r.ids[c.recorded], r.ids[c.tip]); err != nil || got != c.want {
			t.Errorf("%q is on %q again: %v, %v", c.recorded, c.tip, got, err)
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
		tree, objs, overlap, err := RevertEdits(t.Context(), r, r.ids[c.made], r.ids[c.before], r.ids[c.at])
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
}

// sends is a remote that answers every fetch in one way.
type sends struct {
	wire.Remote
	objs wire.Objects
	err  error
}

func (s sends) Fetch(context.Context, wire.FetchRequest) (wire.Objects, error) { return s.objs, s.err }

func TestRefuses(t *testing.T) {
	r := history(t)
	broken := wire.NewObject(plumbing.CommitObject, []byte("tree x"))
	cut := sends{r, nil, errors.New("cut")}
	odd := sends{r, wire.Objects{broken.ID: broken, wire.EmptyTree: wire.NewObject(plumbing.TreeObject, nil)}, nil}
	for name, tt := range map[string]struct {
		do   func() error
		want string
	}{
		"read, no fetch":          {func() error { _, err := Read(t.Context(), cut, broken.ID); return err }, "read commit " + broken.ID.String() + ": cut"},
		"read, not sent":          {func() error { _, err := Read(t.Context(), odd, r.ids["a"]); return err }, "the remote sends no commit of that id"},
		"read, a tree":            {func() error { _, err := Read(t.Context(), odd, wire.EmptyTree); return err }, "the remote sends no commit of that id"},
		"read, broken":            {func() error { _, err := Read(t.Context(), odd, broken.ID); return err }, "does not begin with its tree"},
		"contains, no fetch":      {func() error { _, err := Contains(t.Context(), cut, broken.ID, r.ids["a"]); return err }, "cut"},
		"contains, broken":        {func() error { _, err := Contains(t.Context(), odd, broken.ID, r.ids["a"]); return err }, "does not begin with its tree"},
		"base, no fetch":          {func() error { _, err := Base(t.Context(), cut, broken.ID, r.ids["a"]); return err }, "cut"},
		"base, the first broken":  {func() error { _, err := Base(t.Context(), odd, broken.ID, r.ids["a"]); return err }, "does not begin with its tree"},
		"base, the second broken": {func() error { _, err := Base(t.Context(), odd, r.ids["a"], broken.ID); return err }, "does not begin with its tree"},
		"commit without a tree":   {func() error { _, err := MakeCommit(time.Unix(0, 0), wire.ZeroID, nil, "m"); return err }, "commit: no tree"},
		"without, no fetch": {func() error {
			_, _, _, err := RevertEdits(t.Context(), cut, r.ids["a"], r.ids["base"], r.ids["b"])
			return err
		}, "cut"},
	} {
		if err := tt.do(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

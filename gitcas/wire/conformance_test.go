package wire_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestConformance runs every rule on every kind of remote; without
// UWF_TEST=processes, on each kind with a git behind it the rules that are not the
// same for all of them.
func TestConformance(t *testing.T) {
	cases := []struct {
		name string
		run  func(*testing.T, *bed)
	}{
		{"empty", testEmpty},
		{"create, move, delete", testLifeOfARef},
		{"stale values lose", testStale},
		{"delete and create in one push", testDeleteCreate},
		{"a deletion never takes another's ref", testDeleteUnknown},
		{"atomic push happens whole or not at all", testAllOrNothing},
		{"a push without atomicity says what was taken", testPartial},
		{"create if absent has one winner", testOneWinner},
		{"many refs in one push", testManyRefs},
		{"thin deltas", testThin},
		{"a delta against a missing base is refused", testMissingBase},
		{"an incomplete new value is refused", testIncomplete},
		{"wants that are not there", testMissingWant},
		{"list keeps to the prefixes", testPrefixes},
		{"depth, haves and filters", testFilters},
		{"names that git can't hold beside each other", testNameConflict},
		{"requests that make no sense", testInvalid},
		{"a cancelled context", testCancelled},
		{"atomic is offered", testAtomicOffered},
		{"concurrent use", testConcurrent},
		{"large objects", testLarge},
	}
	// What ssh does differently is the way there: these need not run over it.
	noSSH := []string{"requests that make no sense", "concurrent use", "large objects", "names that git can't hold beside each other", "an incomplete new value is refused"}
	smoke := map[string][]string{
		"file": {"create, move, delete", "depth, haves and filters", "concurrent use"}, "ssh": {"create, move, delete"}, "ssh v0": {"create, move, delete"},
	}
	for name, mk := range beds() {
		t.Run(name, func(t *testing.T) {
			for _, c := range cases {
				if strings.HasPrefix(name, "ssh") && slices.Contains(noSSH, c.name) {
					continue
				}
				if !testmode.HasProcesses() {
					// Filters are git's own, however it is reached, and take most processes.
					if only := smoke[name]; only != nil && !slices.Contains(only, c.name) || name == "http" && c.name == "depth, haves and filters" {
						continue
					}
				}
				t.Run(c.name, func(t *testing.T) { c.run(t, mk(t)) })
			}
		})
	}
}

// history pushes a branch of n commits, each changing one file of a folder.
func history(t *testing.T, r wire.Remote, branch string, n int) (commits, roots, subs []wire.Object) {
	t.Helper()
	keep := blob("unchanged\n")
	var objs []wire.Object
	objs = append(objs, keep)
	for i := range n {
		f := blob(fmt.Sprintf("version %d of %s\n", i, branch))
		sub := tree(file("f", f), file("keep", keep))
		root := tree(file("top", f), dir("sub", sub), file("keep", keep))
		var parents []wire.Object
		if i > 0 {
			parents = commits[i-1:]
		}
		c := commit(fmt.Sprintf("commit %d", i), root, parents...)
		commits, roots, subs = append(commits, c), append(roots, root), append(subs, sub)
		objs = append(objs, f, sub, root, c)
	}
	push(t, r, []wire.RefUpdate{{Name: branch, New: commits[n-1].ID}}, plain(objs...)...)
	return commits, roots, subs
}

func testEmpty(t *testing.T, b *bed) {
	before := time.Now()
	l := list(t, b.remote, "HEAD", "refs/")
	if len(l.Refs) != 0 || l.Head != "" {
		t.Errorf("an empty remote lists %v, HEAD %q", l.Refs, l.Head)
	}
	wantNow(t, before, l.Time)
}

func testLifeOfARef(t *testing.T, b *bed) {
	const ref = "refs/heads/main"
	cs, _, _ := history(t, b.remote, ref, 2)
	l := list(t, b.remote, ref, "HEAD")
	if l.Refs[ref] != cs[1].ID || l.Head != ref {
		t.Fatalf("listed %v, HEAD %q", l.Refs, l.Head)
	}
	tr := tree()
	next := commit("empty tree", tr, cs[1])
	push(t, b.remote, []wire.RefUpdate{{Name: ref, Old: cs[1].ID, New: next.ID}}, plain(tr, next)...)
	push(t, b.remote, []wire.RefUpdate{{Name: "refs/uwf/claims/x", New: cs[0].ID}})
	push(t, b.remote, []wire.RefUpdate{{Name: "refs/uwf/claims/x", Old: cs[0].ID}})
	got := list(t, b.redial(), "refs/").Refs
	if want := map[string]wire.ID{ref: next.ID}; !maps.Equal(got, want) {
		t.Errorf("refs %v, want %v", got, want)
	}
}

func testStale(t *testing.T, b *bed) {
	const ref = "refs/heads/state"
	cs, _, _ := history(t, b.remote, ref, 3)
	tip := cs[2].ID
	for name, u := range map[string]wire.RefUpdate{
		"create what exists":       {Name: ref, New: cs[0].ID},
		"move from another":        {Name: ref, Old: cs[1].ID, New: cs[0].ID},
		"delete another":           {Name: ref, Old: cs[1].ID},
		"move what doesn't exist":  {Name: "refs/heads/none", Old: cs[1].ID, New: cs[0].ID},
		"delete what doesn't":      {Name: "refs/heads/none", Old: cs[1].ID},
		"delete an unknown one":    {Name: ref, Old: blob("unknown").ID},
		"move from an unknown one": {Name: ref, Old: blob("unknown").ID, New: cs[0].ID},
	} {
		for _, atomic := range []bool{true, false} {
			_, err := b.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{u}, Atomic: atomic})
			wantKind(t, err, wire.ErrLostRace, fmt.Sprintf("%s (atomic %v)", name, atomic))
		}
	}
	if got := list(t, b.remote, "refs/").Refs; !maps.Equal(got, map[string]wire.ID{ref: tip}) {
		t.Errorf("refs are now %v", got)
	}
}

// testDeleteUnknown: git itself ignores the expected value of a deletion when it
// doesn't have that object.
func testDeleteUnknown(t *testing.T, b *bed) {
	cs, _, _ := history(t, b.remote, "refs/heads/state", 2)
	const claim = "refs/uwf/claims/t"
	lost := commit("a claim whose push got lost", tree())
	push(t, b.remote, []wire.RefUpdate{{Name: claim, New: cs[1].ID}}) // another's
	_, err := b.remote.Push(t.Context(), wire.PushRequest{Atomic: true, Updates: []wire.RefUpdate{
		{Name: claim, Old: lost.ID},
		{Name: "refs/heads/state", Old: cs[1].ID, New: cs[0].ID},
	}})
	wantKind(t, err, wire.ErrLostRace, "atomic")
	_, err = b.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{
		{Name: claim, Old: lost.ID},
		{Name: "refs/uwf/other", Old: lost.ID, New: cs[0].ID},
		{Name: "refs/heads/state", Old: cs[1].ID, New: cs[0].ID},
	}})
	var part *wire.PartialError
	if !errors.As(err, &part) || !slices.Equal(part.Applied, []string{"refs/heads/state"}) || len(part.Refused) != 2 {
		t.Errorf("not atomic: %v", err)
	}
	want := map[string]wire.ID{claim: cs[1].ID, "refs/heads/state": cs[0].ID}
	if got := list(t, b.remote, "refs/").Refs; !maps.Equal(got, want) {
		t.Errorf("refs %v, want %v", got, want)
	}
}

func testDeleteCreate(t *testing.T, b *bed) {
	cs, _, _ := history(t, b.remote, "refs/heads/state", 1)
	push(t, b.remote, []wire.RefUpdate{{Name: "refs/uwf/claims/a", New: cs[0].ID}})
	tr := tree()
	c := commit("new", tr, cs[0])
	push(t, b.remote, []wire.RefUpdate{
		{Name: "refs/uwf/claims/a", Old: cs[0].ID},
		{Name: "refs/uwf/attempts/a", New: c.ID},
		{Name: "refs/heads/state", Old: cs[0].ID, New: c.ID},
	}, plain(tr, c)...)
	want := map[string]wire.ID{"refs/uwf/attempts/a": c.ID, "refs/heads/state": c.ID}
	if got := list(t, b.remote, "refs/").Refs; !maps.Equal(got, want) {
		t.Errorf("refs %v, want %v", got, want)
	}
}

func testAllOrNothing(t *testing.T, b *bed) {
	cs, _, _ := history(t, b.remote, "refs/heads/state", 2)
	_, err := b.remote.Push(t.Context(), wire.PushRequest{Atomic: true, Updates: []wire.RefUpdate{
		{Name: "refs/uwf/new", New: cs[0].ID},
		{Name: "refs/heads/state", Old: cs[0].ID, New: cs[0].ID},
	}})
	wantKind(t, err, wire.ErrLostRace, "one stale update of two")
	if got := list(t, b.remote, "refs/").Refs; !maps.Equal(got, map[string]wire.ID{"refs/heads/state": cs[1].ID}) {
		t.Errorf("refs are now %v", got)
	}
}

func testPartial(t *testing.T, b *bed) {
	cs, _, _ := history(t, b.remote, "refs/heads/state", 2)
	_, err := b.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{
		{Name: "refs/uwf/new", New: cs[0].ID},
		{Name: "refs/heads/state", Old: cs[0].ID, New: cs[0].ID},
	}})
	var part *wire.PartialError
	if !errors.As(err, &part) {
		t.Fatalf("the error is %v", err)
	}
	if !slices.Equal(part.Applied, []string{"refs/uwf/new"}) || len(part.Refused) != 1 || !errors.Is(err, wire.ErrLostRace) {
		t.Errorf("taken %v, refused %v", part.Applied, part.Refused)
	}
	want := map[string]wire.ID{"refs/heads/state": cs[1].ID, "refs/uwf/new": cs[0].ID}
	if got := list(t, b.remote, "refs/").Refs; !maps.Equal(got, want) {
		t.Errorf("refs are now %v", got)
	}
}

func testOneWinner(t *testing.T, b *bed) {
	const jobs = 6
	cs, _, _ := history(t, b.remote, "refs/heads/state", 1)
	objs := make([]wire.Object, jobs)
	errs := make([]error, jobs)
	var wg sync.WaitGroup
	for i := range jobs {
		tr := tree()
		objs[i] = commit(fmt.Sprintf("claim %d", i), tr, cs[0])
		wg.Go(func() {
			_, errs[i] = b.redial().Push(t.Context(), wire.PushRequest{
				Atomic:  true,
				Updates: []wire.RefUpdate{{Name: "refs/uwf/claims/t", New: objs[i].ID}},
				Objects: plain(tr, objs[i]),
			})
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		if err == nil {
			if winner >= 0 {
				t.Fatalf("%d and %d both won", winner, i)
			}
			winner = i
			continue
		}
		wantKind(t, err, wire.ErrLostRace, "loser")
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	if got := list(t, b.remote, "refs/uwf/").Refs["refs/uwf/claims/t"]; got != objs[winner].ID {
		t.Errorf("the ref holds %s, the winner is %s", got, objs[winner].ID)
	}
}

func testManyRefs(t *testing.T, b *bed) {
	cs, _, _ := history(t, b.remote, "refs/heads/state", 1)
	var us []wire.RefUpdate
	for i := range 300 {
		us = append(us, wire.RefUpdate{Name: fmt.Sprintf("refs/uwf/many/%03d", i), New: cs[0].ID})
	}
	push(t, b.remote, us)
	if got := list(t, b.remote, "refs/uwf/many/").Refs; len(got) != len(us) {
		t.Errorf("%d refs listed of %d", len(got), len(us))
	}
	if got := list(t, b.remote, "refs/uwf/many/00", "refs/uwf/many/299").Refs; len(got) != 11 {
		t.Errorf("%d refs listed of 11", len(got))
	}
}

// wide is a tree and a text of which a small edit makes a small delta.
func wide(edit string) (text, root wire.Object) {
	var b strings.Builder
	var es []entry
	for i := range 400 {
		fmt.Fprintf(&b, "entry-%04d: %x\n", i, i*2654435761)
		es = append(es, file(fmt.Sprintf("%04d.json", i), blob("shared\n")))
	}
	b.WriteString(edit)
	text = blob(b.String())
	return text, tree(append(es, file("threads.yaml", text))...)
}

func testThin(t *testing.T, b *bed) {
	const ref = "refs/heads/state"
	text, root := wide("first")
	c := commit("first", root)
	push(t, b.remote, []wire.RefUpdate{{Name: ref, New: c.ID}}, plain(blob("shared\n"), text, root, c)...)
	text2, root2 := wide("second")
	c2 := commit("second", root2, c)
	push(t, b.remote, []wire.RefUpdate{{Name: ref, Old: c.ID, New: c2.ID}},
		wire.PackObject{Object: text2, Base: &text},
		wire.PackObject{Object: root2, Base: &root},
		wire.PackObject{Object: c2},
		wire.PackObject{Object: c2}, // once more does no harm
	)
	got := fetch(t, b.redial(), wire.FetchRequest{Wants: []wire.ID{c2.ID}, Depth: 1})
	for _, o := range []wire.Object{text2, root2, c2} {
		if string(got[o.ID].Data) != string(o.Data) {
			t.Errorf("%s %s came back different", o.Type, o.ID)
		}
	}
	if b.dir == "" {
		return
	}
	gitIn(t, b.dir, "fsck", "--strict")
	gitIn(t, b.dir, "repack", "-adfq") // now the server has deltas to send
	got = fetch(t, b.redial(), wire.FetchRequest{Wants: []wire.ID{c2.ID}})
	if string(got[text.ID].Data) != string(text.Data) || string(got[text2.ID].Data) != string(text2.Data) {
		t.Error("texts came back different out of deltas")
	}
}

func testMissingBase(t *testing.T, b *bed) {
	text, root := wide("first")
	text2, root2 := wide("second")
	c := commit("second", root2)
	_, err := b.remote.Push(t.Context(), wire.PushRequest{
		Atomic:  true,
		Updates: []wire.RefUpdate{{Name: "refs/heads/state", New: c.ID}},
		Objects: []wire.PackObject{
			{Object: blob("shared\n")}, {Object: c},
			{Object: text2, Base: &text}, {Object: root2, Base: &root},
		},
	})
	wantKind(t, err, wire.ErrNotFound, "missing base")
	if got := list(t, b.remote, "refs/").Refs; len(got) != 0 {
		t.Errorf("refs are now %v", got)
	}
}

func testIncomplete(t *testing.T, b *bed) {
	f := blob("never sent\n")
	root := tree(file("f", f))
	c := commit("incomplete", root)
	for name, objs := range map[string][]wire.Object{"no blob": {root, c}, "no tree": {c}, "nothing": {}} {
		_, err := b.remote.Push(t.Context(), wire.PushRequest{
			Atomic:  true,
			Updates: []wire.RefUpdate{{Name: "refs/heads/state", New: c.ID}},
			Objects: plain(objs...),
		})
		wantKind(t, err, wire.ErrNotFound, name)
	}
	if got := list(t, b.remote, "refs/").Refs; len(got) != 0 {
		t.Errorf("refs are now %v", got)
	}
	push(t, b.remote, []wire.RefUpdate{{Name: "refs/heads/state", New: c.ID}}, plain(f, root, c)...)
}

func testMissingWant(t *testing.T, b *bed) {
	cs, _, _ := history(t, b.remote, "refs/heads/state", 1)
	for _, f := range []string{"", "tree:2"} {
		_, err := b.remote.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{cs[0].ID, blob("nowhere").ID}, Depth: 1, Filter: f})
		wantKind(t, err, wire.ErrNotFound, "missing want, filter "+f)
	}
}

func testPrefixes(t *testing.T, b *bed) {
	cs, _, _ := history(t, b.remote, "refs/heads/main", 1)
	push(t, b.remote, []wire.RefUpdate{
		{Name: "refs/uwf/claims/a", New: cs[0].ID}, {Name: "refs/uwf/claims/ab", New: cs[0].ID},
		{Name: "refs/uwf/store", New: cs[0].ID}, {Name: "refs/tags/v1", New: cs[0].ID},
	})
	for _, c := range []struct {
		prefixes []string
		want     []string
		head     string
	}{
		{[]string{"refs/uwf/claims/"}, []string{"refs/uwf/claims/a", "refs/uwf/claims/ab"}, ""},
		{[]string{"refs/uwf/store"}, []string{"refs/uwf/store"}, ""},
		{[]string{"refs/uwf/store", "refs/heads/main", "refs/heads/none"}, []string{"refs/heads/main", "refs/uwf/store"}, ""},
		{[]string{"HEAD"}, nil, "refs/heads/main"},
		{[]string{"HEAD", "refs/tags/"}, []string{"refs/tags/v1"}, "refs/heads/main"},
		{[]string{"refs/none"}, nil, ""},
	} {
		l := list(t, b.remote, c.prefixes...)
		if got := slices.Sorted(maps.Keys(l.Refs)); !slices.Equal(got, c.want) || l.Head != c.head {
			t.Errorf("%v: listed %v, HEAD %q", c.prefixes, got, l.Head)
		}
	}
}

// testFilters compares what comes with what the same objects in memory give:
// the rules of the one in memory are thereby git's own.
func testFilters(t *testing.T, b *bed) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, NoFilter: strings.HasSuffix(t.Name(), "ssh_v0/depth,_haves_and_filters")})
	for _, r := range []wire.Remote{b.remote, m} {
		history(t, r, "refs/heads/a", 4)
	}
	cs, roots, subs := history(t, wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), "refs/heads/a", 4)
	deep := deepTree(t, b.remote, m)
	top := blob("version 3 of refs/heads/a\n")
	wants := [][]wire.Object{
		{cs[3]}, {cs[1]}, {roots[3]}, {subs[0]}, {top}, {cs[3], subs[0]}, {cs[3], top}, {cs[3], cs[0], roots[1]},
		{deep[0]}, {deep[1]}, {deep[2]}, {deep[1], deep[2]}, {deep[2], deep[1]}, {deep[0], deep[2]},
		{blob("deep\n"), deep[1]}, {deep[1], blob("deep\n")}, {roots[3], top}, {tree()},
	}
	filters, depths := []string{"", "blob:none", "tree:2"}, []int{1}
	if strings.Contains(t.Name(), "/file/") && testmode.HasProcesses() { // one with git behind it gets them all
		filters, depths = append(filters, "tree:0", "tree:1", "tree:3"), []int{0, 1, 2}
	}
	for _, want := range wants {
		for _, filter := range filters {
			for _, depth := range depths {
				req := wire.FetchRequest{Filter: filter, Depth: depth}
				for _, o := range want {
					req.Wants = append(req.Wants, o.ID)
				}
				sameObjects(t, b.remote, m, req)
			}
		}
	}
	got := fetch(t, b.remote, wire.FetchRequest{Wants: []wire.ID{cs[3].ID}, Haves: []wire.ID{cs[1].ID}})
	for _, o := range []wire.Object{cs[3], cs[2], roots[3], roots[2], subs[3], subs[2], top} {
		if _, ok := got[o.ID]; !ok {
			t.Errorf("with haves, %s %s is missing", o.Type, o.ID)
		}
	}
	if _, ok := got[cs[0].ID]; ok {
		t.Error("with haves, the whole history came")
	}
}

// deepTree pushes a commit with trees in trees and returns the commit, its
// root, and the second tree, whose content the root holds higher up too.
func deepTree(t *testing.T, remotes ...wire.Remote) [3]wire.Object {
	t.Helper()
	f := blob("deep\n")
	d3 := tree(file("f", f))
	d2 := tree(dir("d3", d3))
	d1 := tree(dir("d2", d2))
	root := tree(dir("d1", d1), dir("again", d2), file("f", f))
	c := commit("deep", root)
	for _, r := range remotes {
		push(t, r, []wire.RefUpdate{{Name: "refs/heads/deep", New: c.ID}}, plain(f, d3, d2, d1, root, c)...)
	}
	return [3]wire.Object{c, root, d1}
}

func sameObjects(t *testing.T, a, b wire.Remote, req wire.FetchRequest) {
	t.Helper()
	x, err := a.Fetch(t.Context(), req)
	if err != nil {
		t.Errorf("%+v: %v", req, err)
		return
	}
	y := fetch(t, b, req)
	for id, o := range x {
		// In version 0 what no ref points to comes with the history of a ref.
		if _, ok := y[id]; !ok && !strings.Contains(t.Name(), "/ssh_v0/") {
			t.Errorf("%+v: %s %s comes from the one under test only", req, o.Type, id)
		}
	}
	for id, o := range y {
		if _, ok := x[id]; !ok {
			t.Errorf("%+v: %s %s comes from memory only", req, o.Type, id)
		}
	}
}

func testNameConflict(t *testing.T, b *bed) {
	cs, _, _ := history(t, b.remote, "refs/heads/uwf", 1)
	for _, name := range []string{"refs/heads/uwf/x", "refs/heads"} {
		_, err := b.remote.Push(t.Context(), wire.PushRequest{Atomic: true, Updates: []wire.RefUpdate{{Name: name, New: cs[0].ID}}})
		wantKind(t, err, wire.ErrInvalid, name)
	}
}

func testInvalid(t *testing.T, b *bed) {
	id := blob("x").ID
	for _, us := range [][]wire.RefUpdate{
		nil,
		{{Name: "refs/heads/a"}},
		{{Name: "heads/a", New: id}},
		{{Name: "refs/heads/a b", New: id}},
		{{Name: "refs/heads/a\nb", New: id}},
		{{Name: "refs/heads/a..b", New: id}},
		{{Name: "refs/heads/a.lock", New: id}},
		{{Name: "refs/heads/", New: id}},
		{{Name: "refs/heads/a", New: id}, {Name: "refs/heads/a", New: id}},
	} {
		_, err := b.remote.Push(t.Context(), wire.PushRequest{Updates: us})
		wantKind(t, err, wire.ErrInvalid, fmt.Sprint(us))
	}
	for _, req := range []wire.FetchRequest{
		{}, {Wants: []wire.ID{{}}}, {Wants: []wire.ID{id}, Depth: -1}, {Wants: []wire.ID{id}, Filter: "sparse:oid=x"},
		{Wants: []wire.ID{id}, Filter: "tree:x"}, {Wants: []wire.ID{id}, Filter: "blob:none\n"},
	} {
		_, err := b.remote.Fetch(t.Context(), req)
		wantKind(t, err, wire.ErrInvalid, fmt.Sprintf("%+v", req))
	}
	for _, p := range []string{"heads", "", "refs/heads/a b", "refs/\n"} {
		_, err := b.remote.List(t.Context(), p)
		wantKind(t, err, wire.ErrInvalid, p)
	}
}

func testCancelled(t *testing.T, b *bed) {
	ctx := cancelled(t)
	id := blob("x").ID
	_, err := b.remote.List(ctx, "refs/")
	wantKind(t, err, wire.ErrUnreachable, "list")
	_, err = b.remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{id}})
	wantKind(t, err, wire.ErrUnreachable, "fetch")
	_, err = b.remote.Push(ctx, wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/a", Old: id}}})
	wantKind(t, err, wire.ErrUnreachable, "push")
	if _, err = b.redial().Atomic(ctx); err == nil || !errors.Is(err, ctx.Err()) {
		t.Errorf("atomic: %v", err)
	}
}

func testAtomicOffered(t *testing.T, b *bed) {
	if ok, err := b.remote.Atomic(t.Context()); err != nil || !ok {
		t.Errorf("atomic: %v, %v", ok, err)
	}
}

// testConcurrent uses one remote from many goroutines.
func testConcurrent(t *testing.T, b *bed) {
	cs, _, _ := history(t, b.remote, "refs/heads/state", 2)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			name := fmt.Sprintf("refs/uwf/c/%d", i)
			if _, err := b.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: name, New: cs[0].ID}}}); err != nil {
				t.Error(err)
			}
			if l, err := b.remote.List(t.Context(), name); err != nil || l.Refs[name] != cs[0].ID {
				t.Errorf("%v, %v", l.Refs, err)
			}
			if _, err := b.remote.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{cs[1].ID}, Depth: 1}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// testLarge moves objects larger than any buffer on the way, and many.
func testLarge(t *testing.T, b *bed) {
	rnd := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, 3<<20)
	if _, err := rnd.Read(noise); err != nil {
		t.Fatal(err)
	}
	big := blob(string(noise))
	objs := []wire.Object{big}
	es := []entry{file("big", big)}
	for i := range 300 {
		f := blob(fmt.Sprintf("small %d\n", i))
		objs, es = append(objs, f), append(es, file(fmt.Sprintf("%d", i), f))
	}
	root := tree(es...)
	c := commit("large", root)
	objs = append(objs, root, c)
	push(t, b.remote, []wire.RefUpdate{{Name: "refs/heads/large", New: c.ID}}, plain(objs...)...)
	got := fetch(t, b.remote, wire.FetchRequest{Wants: []wire.ID{c.ID}, Depth: 1})
	if len(got) != len(objs) || string(got[big.ID].Data) != string(noise) {
		t.Errorf("%d objects of %d came back", len(got), len(objs))
	}
	if _, err := b.remote.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{c.ID}, Depth: 1, MaxBytes: 2 << 20}); !errors.Is(err, wire.ErrUnreadable) {
		t.Errorf("an answer over MaxBytes: %v", err)
	}
	if got := fetch(t, b.remote, wire.FetchRequest{Wants: []wire.ID{c.ID}, Depth: 1, MaxBytes: 4 << 20}); len(got) != len(objs) {
		t.Errorf("%d objects of %d came back under MaxBytes", len(got), len(objs))
	}
}

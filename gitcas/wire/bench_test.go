package wire_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitservertest"
)

// store pushes a branch that looks like a state branch with so many threads,
// and returns the commit, its root and its threads tree.
func store(b *testing.B, r wire.Remote, threads int) (tip, root, index, all wire.Object) {
	b.Helper()
	var objs []wire.Object
	var es []entry
	text := ""
	for i := range threads {
		n := blob(fmt.Sprintf("{\"type\": \"x\", \"payload\": %d}\n", i))
		sub := tree(file("0123456789ABC.json", n))
		objs = append(objs, n, sub)
		id := fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ%07d", i)
		es = append(es, dir(id, sub))
		text += id + ": 0123456789ABC\n"
	}
	all, index = tree(es...), blob(text)
	root = tree(dir("threads", all), file("threads.yaml", index))
	tip = commit("store", root)
	objs = append(objs, all, index, root, tip)
	if _, err := r.Push(b.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/uwf-state", New: tip.ID}}, Objects: plain(objs...)}); err != nil {
		b.Fatal(err)
	}
	return tip, root, index, all
}

// BenchmarkJob is what one job asks of a remote: list, fetch twice, claim, list,
// commit and release, on loopback HTTP.
func BenchmarkJob(b *testing.B) {
	for _, tc := range []struct{ threads, refs int }{{10, 0}, {1000, 0}, {10, 50_000}} {
		b.Run(fmt.Sprintf("threads=%d,refs=%d", tc.threads, tc.refs), func(b *testing.B) {
			if err := gitserver.Available(""); err != nil {
				b.Skip(err)
			}
			s, err := gitservertest.Serve(b.TempDir(), gitserver.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			url, err := s.Init("r.git")
			if err != nil {
				b.Fatal(err)
			}
			r, err := wire.Dial(url, wire.DialOptions{})
			if err != nil {
				b.Fatal(err)
			}
			tip, root, index, all := store(b, r, tc.threads)
			packRefs(b, s.Dir("r.git"), tip.ID, tc.refs)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				tip, root, index = job(b, url, i, tip, root, index, all)
			}
		})
	}
}

// packRefs gives the repository so many refs more.
func packRefs(b *testing.B, dir string, id wire.ID, n int) {
	b.Helper()
	if n == 0 {
		return
	}
	text := []byte("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range n {
		text = fmt.Appendf(text, "%s refs/pull/%06d/head\n", id, i)
	}
	if err := os.WriteFile(filepath.Join(dir, "packed-refs"), text, 0o600); err != nil {
		b.Fatal(err)
	}
}

func job(b *testing.B, url string, i int, tip, root, index, all wire.Object) (wire.Object, wire.Object, wire.Object) {
	b.Helper()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	r, err := wire.Dial(url, wire.DialOptions{})
	must(err)
	defer func() { _ = r.(interface{ Close() error }).Close() }()
	prefixes := []string{"refs/heads/uwf-state", "refs/uwf/store", "refs/uwf/claims/x"}
	_, err = r.List(b.Context(), prefixes...)
	must(err)
	_, err = r.Fetch(b.Context(), wire.FetchRequest{Wants: []wire.ID{tip.ID}, Depth: 1, Filter: "tree:2"})
	must(err)
	_, err = r.Fetch(b.Context(), wire.FetchRequest{Wants: []wire.ID{index.ID}, Depth: 1, Filter: "tree:2"})
	must(err)
	claim := commit(fmt.Sprintf("claim %d", i), tree())
	_, err = r.Push(b.Context(), wire.PushRequest{
		Atomic: true, Updates: []wire.RefUpdate{{Name: "refs/uwf/claims/x", New: claim.ID}}, Objects: plain(tree(), claim),
	})
	must(err)
	_, err = r.List(b.Context(), prefixes...)
	must(err)
	index2 := blob(string(index.Data) + fmt.Sprintf("step %d\n", i))
	root2 := tree(dir("threads", all), file("threads.yaml", index2))
	tip2 := commit(fmt.Sprintf("step %d", i), root2, tip)
	_, err = r.Push(b.Context(), wire.PushRequest{
		Atomic: true,
		Updates: []wire.RefUpdate{
			{Name: "refs/heads/uwf-state", Old: tip.ID, New: tip2.ID},
			{Name: "refs/uwf/claims/x", Old: claim.ID},
		},
		Objects: []wire.PackObject{{Object: index2, Base: &index}, {Object: root2, Base: &root}, {Object: tip2}},
	})
	must(err)
	return tip2, root2, index2
}

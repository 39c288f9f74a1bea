package wire_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

func TestMemoryOptions(t *testing.T) {
	then := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	m := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: func() time.Time { return then }, Refuse: func(u wire.RefUpdate) error {
		switch u.Name {
		case "refs/heads/protected":
			return errors.New("closed")
		case "refs/heads/denied":
			return &wire.RemoteError{Kind: wire.ErrDenied, Detail: "not yours"}
		}
		return nil
	}})
	req := creation()
	at, err := m.Push(t.Context(), req)
	if err != nil || !at.Equal(then) {
		t.Fatalf("push: %v, %v", at, err)
	}
	if l, err := m.List(t.Context(), "refs/"); err != nil || !l.Time.Equal(then) {
		t.Errorf("list: %v, %v", l.Time, err)
	}
	for name, kind := range map[string]error{"refs/heads/protected": wire.ErrProtected, "refs/heads/denied": wire.ErrDenied} {
		u := []wire.RefUpdate{{Name: name, New: req.Updates[0].New}}
		_, err := m.Push(t.Context(), wire.PushRequest{Updates: u, Atomic: true})
		wantKind(t, err, kind, name)
	}
	m.SetHead("refs/heads/a")
	if l := list(t, m, "HEAD"); l.Head != "refs/heads/a" || len(l.Refs) != 0 {
		t.Errorf("HEAD %q, refs %v", l.Head, l.Refs)
	}
	_, err = m.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/a", Old: req.Updates[0].New}}})
	wantKind(t, err, wire.ErrProtected, "deleting the current branch")
}

// TestMemoryKeepsNothingOfARefusedPush: like the quarantine of a server.
func TestMemoryKeepsNothingOfARefusedPush(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	req := creation()
	req.Updates[0].Old = blob("x").ID
	_, err := m.Push(t.Context(), req)
	wantKind(t, err, wire.ErrLostRace, "stale")
	if _, ok := m.Get(req.Updates[0].New); ok {
		t.Error("the refused commit stayed")
	}
	bad := creation()
	bad.Objects[1].ID = blob("other").ID
	_, err = m.Push(t.Context(), bad)
	wantKind(t, err, wire.ErrInvalid, "an object under another's id")
	push(t, m, creation().Updates, creation().Objects...)
}

// TestMemoryChecksTypes: what a tree calls a blob must be one.
func TestMemoryChecksTypes(t *testing.T) {
	sub := tree(file("f", blob("x")))
	for name, root := range map[string]wire.Object{
		"a tree as a file":  tree(file("f", sub)),
		"a file as a tree":  tree(dir("d", blob("x"))),
		"an unknown mode":   tree(entry{"777", "f", blob("x").ID}),
		"a truncated entry": wire.NewObject(plumbing.TreeObject, []byte("100644 f\x00short")),
	} {
		c := commit(name, root)
		m := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
		_, err := m.Push(t.Context(), wire.PushRequest{
			Updates: []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}}, Objects: plain(blob("x"), sub, root, c),
		})
		wantKind(t, err, wire.ErrNotFound, name)
	}
	m := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	_, err := m.Push(t.Context(), wire.PushRequest{
		Updates: []wire.RefUpdate{{Name: "refs/heads/a", New: sub.ID}}, Objects: plain(blob("x"), sub),
	})
	wantKind(t, err, wire.ErrInvalid, "a branch that is a tree")
	link := tree(entry{"160000", "module", blob("elsewhere").ID})
	c := commit("a submodule's commit lives elsewhere", link)
	push(t, m, []wire.RefUpdate{{Name: "refs/heads/a", New: c.ID}}, plain(link, c)...)
}

// BenchmarkMemoryPush: a step on a store with many threads costs what the step
// costs; the simulation makes millions of them.
func BenchmarkMemoryPush(b *testing.B) {
	for _, threads := range []int{10, 1000} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			m := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
			tip, _, index, all := store(b, m, threads)
			root := tree(dir("threads", all), file("threads.yaml", index))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				next := commit(fmt.Sprintf("step %d", i), root, tip)
				_, err := m.Push(b.Context(), wire.PushRequest{
					Atomic: true, Updates: []wire.RefUpdate{{Name: "refs/heads/uwf-state", Old: tip.ID, New: next.ID}}, Objects: plain(next),
				})
				if err != nil {
					b.Fatal(err)
				}
				_, err = m.Fetch(b.Context(), wire.FetchRequest{Wants: []wire.ID{next.ID}, Depth: 1, Filter: "tree:2"})
				if err != nil {
					b.Fatal(err)
				}
				tip = next
			}
		})
	}
}

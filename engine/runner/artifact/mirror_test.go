package artifact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// commitOf is a commit of files in folders, and all its objects.
func commitOf(t testing.TB, files map[string]string, parents ...wire.ID) (wire.ID, []wire.PackObject) {
	t.Helper()
	var objs []wire.PackObject
	add := func(typ plumbing.ObjectType, data []byte) wire.ID {
		o := wire.NewObject(typ, data)
		objs = append(objs, wire.PackObject{Object: o})
		return o.ID
	}
	var tree func(files map[string]string) wire.ID
	tree = func(files map[string]string) wire.ID {
		var entries []gitobj.Entry
		subs := map[string]map[string]string{}
		for name, data := range files {
			if dir, rest, ok := strings.Cut(name, "/"); ok {
				if subs[dir] == nil {
					subs[dir] = map[string]string{}
				}
				subs[dir][rest] = data
				continue
			}
			entries = append(entries, gitobj.Entry{Name: name, Mode: filemode.Regular, ID: add(plumbing.BlobObject, []byte(data))})
		}
		for dir, sub := range subs {
			entries = append(entries, gitobj.Entry{Name: dir, Mode: filemode.Dir, ID: tree(sub)})
		}
		raw, err := gitobj.EncodeTree(entries)
		must(t, err)
		return add(plumbing.TreeObject, raw)
	}
	root := tree(files)
	who := gitobj.Signature{Name: "x", Email: "x@x", When: time.Unix(1, 0)}
	raw, err := gitobj.EncodeCommit(gitobj.Commit{Tree: root, Parents: parents, Author: who, Committer: who, Message: "m\n"})
	must(t, err)
	return add(plumbing.CommitObject, raw), objs
}

// TestMirrorFetch compares a mirror with a remote that was pushed the same to: it
// gives at least what that one gives.
func TestMirrorFetch(t *testing.T) {
	for seed := range testmode.Seeds(t, 10, 40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		direct, under := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
		mirror := Mirror(under)
		files := map[string]string{}
		var commits []wire.ID
		for n := range 8 {
			for range 3 {
				files[fmt.Sprintf("%s%d", []string{"", "a/", "a/b/", "c/d/"}[rnd.IntN(4)], rnd.IntN(5))] = fmt.Sprint(rnd.IntN(6))
			}
			var old wire.ID
			var parents []wire.ID
			if n > 0 {
				old = commits[n-1]
				parents = []wire.ID{old}
			}
			id, objs := commitOf(t, files, parents...)
			req := wire.PushRequest{Atomic: true, Updates: []wire.RefUpdate{{Name: "refs/heads/x", Old: old, New: id}}, Objects: objs}
			_, err := direct.Push(t.Context(), req)
			must(t, err)
			if n < 4 {
				_, err = under.Push(t.Context(), req)
			} else {
				// As uwf pushes: what the remote has is left out.
				req.Objects = slices.DeleteFunc(objs, func(o wire.PackObject) bool { _, there := under.Get(o.ID); return there })
				_, err = mirror.Push(t.Context(), req)
			}
			must(t, err)
			commits = append(commits, id)
		}
		for range 40 {
			compare(t, rnd, direct, mirror, commits)
		}
		if l, err := under.List(t.Context(), "refs/"); err != nil || l.Refs["refs/heads/x"] != commits[3] {
			t.Fatal("the remote was changed", err)
		}
	}
}

func compare(t *testing.T, rnd *rand.Rand, direct *wiretest.Memory, mirror wire.Remote, commits []wire.ID) {
	t.Helper()
	req := wire.FetchRequest{Depth: rnd.IntN(4), Filter: []string{"", "blob:none", "tree:0", "tree:1", "tree:2", "tree:3"}[rnd.IntN(6)]}
	for range 1 + rnd.IntN(2) {
		id := commits[rnd.IntN(len(commits))]
		if rnd.IntN(3) == 0 {
			o, _ := direct.Get(id)
			c, err := gitobj.DecodeCommit(o.Data)
			must(t, err)
			id = c.Tree
		}
		req.Wants = append(req.Wants, id)
	}
	if rnd.IntN(3) == 0 {
		req.Haves = []wire.ID{commits[rnd.IntN(len(commits))]}
	}
	want, err := direct.Fetch(t.Context(), req)
	must(t, err)
	got, err := mirror.Fetch(t.Context(), req)
	must(t, err)
	for id, o := range want {
		if g, ok := got[id]; !ok || g.Type != o.Type || string(g.Data) != string(o.Data) {
			t.Fatalf("%+v lacks %s %s", req, o.Type, id)
		}
	}
}

// TestMirrorPush: refs follow the rules of a server, and never reach it.
func TestMirrorPush(t *testing.T) {
	under := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	one, objs := commitOf(t, map[string]string{"a": "1"})
	ctx := context.Background()
	push := func(r wire.Remote, atomic bool, o []wire.PackObject, u ...wire.RefUpdate) error {
		_, err := r.Push(ctx, wire.PushRequest{Updates: u, Objects: o, Atomic: atomic})
		return err
	}
	must(t, push(under, true, objs, wire.RefUpdate{Name: "refs/heads/x", New: one}, wire.RefUpdate{Name: "refs/heads/y", New: one}))
	m := Mirror(under)
	two, more := commitOf(t, map[string]string{"a": "2"}, one)
	x := wire.RefUpdate{Name: "refs/heads/x", Old: one, New: two}
	stale := wire.RefUpdate{Name: "refs/heads/y", Old: two, New: one}
	if err := push(m, true, more, x, stale); !errors.Is(err, wire.ErrLostRace) {
		t.Errorf("%v", err)
	}
	refs := func() map[string]wire.ID {
		l, err := m.List(ctx, "refs/")
		must(t, err)
		return l.Refs
	}
	if refs()["refs/heads/x"] != one {
		t.Error("an atomic push happened in part")
	}
	if err := push(m, false, more, x, stale); !errors.Is(err, wire.ErrLostRace) || refs()["refs/heads/x"] != one {
		t.Errorf("%v", err)
	}
	must(t, push(m, true, more, x))
	must(t, push(m, true, nil, wire.RefUpdate{Name: "refs/heads/y", Old: one}, wire.RefUpdate{Name: "refs/uwf/new", New: two}))
	if want := map[string]wire.ID{"refs/heads/x": two, "refs/uwf/new": two}; !maps.Equal(refs(), want) {
		t.Errorf("%v", refs())
	}
	if err := push(m, true, nil, wire.RefUpdate{Name: "refs/uwf/new", New: one}); !errors.Is(err, wire.ErrLostRace) {
		t.Errorf("made twice: %v", err)
	}
	if !maps.Equal(under.Refs(), map[string]wire.ID{"refs/heads/x": one, "refs/heads/y": one}) {
		t.Errorf("the remote has %v", under.Refs())
	}
	// What others do there is seen, but for what was pushed here.
	must(t, push(under, true, nil, wire.RefUpdate{Name: "refs/heads/z", New: one}))
	if refs()["refs/heads/z"] != one || refs()["refs/heads/x"] != two {
		t.Errorf("%v", refs())
	}
	// A claim of another job there counts more than one here.
	claim := layout.ClaimRef(testThread)
	must(t, push(m, true, nil, wire.RefUpdate{Name: claim, New: two}))
	if refs()[claim] != two {
		t.Error("the claim is not there")
	}
	must(t, push(under, true, nil, wire.RefUpdate{Name: claim, New: one}))
	if err := push(m, true, nil, wire.RefUpdate{Name: claim, Old: two, New: two}); !errors.Is(err, wire.ErrLostRace) {
		t.Errorf("renewed over another's: %v", err)
	}
	if refs()[claim] != one {
		t.Error("another's claim is not seen")
	}
	if l, err := m.List(ctx, "refs/heads/x"); err != nil || len(l.Refs) != 1 {
		t.Errorf("%v %v", l.Refs, err)
	}
	ended, stop := context.WithCancel(ctx)
	stop()
	if _, err := m.List(ended, "refs/"); err == nil {
		t.Error("a listing without an end")
	}
}

// TestOldServer: one that gives nothing by its id.
func TestOldServer(t *testing.T) {
	under := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, NoFilter: true})
	one, objs := commitOf(t, map[string]string{"a/b": "1", "c": "2"})
	ctx := context.Background()
	_, err := under.Push(ctx, wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/x", New: one}}, Objects: objs})
	must(t, err)
	m := Mirror(onlyCommits{under})
	two, more := commitOf(t, map[string]string{"a/b": "1", "c": "3"}, one)
	more = slices.DeleteFunc(more, func(o wire.PackObject) bool { _, there := under.Get(o.ID); return there })
	_, err = m.Push(ctx, wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/x", Old: one, New: two}}, Objects: more})
	must(t, err)
	got, err := m.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{two}, Depth: 1})
	must(t, err)
	texts := map[string]bool{}
	for _, o := range got {
		if o.Type == plumbing.BlobObject {
			texts[string(o.Data)] = true
		}
	}
	if !texts["1"] || !texts["3"] {
		t.Errorf("%v", texts)
	}
}

type onlyCommits struct{ *wiretest.Memory }

func (o onlyCommits) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	for _, id := range req.Wants {
		if x, ok := o.Get(id); ok && x.Type != plumbing.CommitObject {
			return nil, &wire.Error{Op: "fetch", Kind: wire.ErrNotFound}
		}
	}
	return o.Memory.Fetch(ctx, req)
}

// largeRepo is a repository of many files.
func largeRepo(files int) map[string]string {
	out := map[string]string{}
	for i := range files {
		out[fmt.Sprintf("p%02d/q%02d/f%d.go", i/100%100, i%100/10, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i), 40)
	}
	return out
}

// TestMirrorCost: over HTTP, a step on a mirror asks for no more than one without.
func TestMirrorCost(t *testing.T) {
	measure := func(wrap func(wire.Remote) wire.Remote) (requests, bytes int64) {
		f := newServer(t, largeRepo(1000))
		f.start()
		j := f.job("one", wrap(f.dial()), works(t, "x", map[string]string{"p01/q0/new": "x"}))
		f.requests.Store(0)
		f.sent.Store(0)
		_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
		must(t, err)
		return f.requests.Load(), f.sent.Load()
	}
	requests, bytes := measure(func(r wire.Remote) wire.Remote { return r })
	mirrored, mirroredBytes := measure(Mirror)
	t.Logf("directly %d requests, %d bytes; on a mirror %d, %d", requests, bytes, mirrored, mirroredBytes)
	if mirrored > requests+2 || mirroredBytes > bytes+bytes/10+8192 {
		t.Errorf("directly %d requests, %d bytes; on a mirror %d, %d", requests, bytes, mirrored, mirroredBytes)
	}
}

// BenchmarkMirror is a whole first job without its agent, on a repository of 10,000
// files: a step on a mirror, and the artifact.
func BenchmarkMirror(b *testing.B) {
	f := newServer(b, largeRepo(10_000))
	head := f.start()
	for b.Loop() {
		if _, err := f.firstJob(head, works(b, "x", map[string]string{"p01/q0/new": "x"})); err != nil {
			b.Fatal(err)
		}
	}
}

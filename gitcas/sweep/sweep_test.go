package sweep_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/sweep"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/wiretest"
)

var now = time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)

const aDay = 24 * time.Hour

func id(n int) gitcas.ThreadID { return gitcas.ThreadID(fmt.Sprintf("01KN%022d", n)) }

type fixture struct {
	*testing.T
	remote wire.Remote
	store  *gitcas.Store
	flow   gitcas.PlacedNode
}

func newFixture(t *testing.T, remote wire.Remote) *fixture {
	t.Helper()
	f := &fixture{T: t, remote: remote}
	f.store = gitcas.Open(remote, gitcas.Options{Now: func() time.Time { return now }, Rand: bytes.NewReader(make([]byte, 1<<10))})
	n, h, err := node.New(node.String, "flow", now)
	f.ok(err)
	f.flow = gitcas.PlacedNode{Hash: h, Node: n}
	_, err = f.store.Init(t.Context())
	f.ok(err)
	return f
}

func memory(t *testing.T) *fixture {
	return newFixture(t, wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: func() time.Time { return now }}))
}

func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) load(ids ...gitcas.ThreadID) *gitcas.View {
	f.Helper()
	v, err := f.store.Load(f.Context(), ids...)
	f.ok(err)
	return v
}

func (f *fixture) push(c *gitcas.Change, ids ...gitcas.ThreadID) {
	f.Helper()
	_, err := f.store.Push(f.Context(), f.load(ids...), c)
	f.ok(err)
}

func (f *fixture) start(t gitcas.ThreadID) node.Hash {
	f.Helper()
	n, h, err := record.Start{Workflow: f.flow.Hash, Prompt: string(t), Cwd: "."}.Node(now)
	f.ok(err)
	f.push(&gitcas.Change{
		Subject: "start", Nodes: []gitcas.PlacedNode{f.flow, {Hash: n.Type, Node: record.Schemas()[n.Type]}, {Hash: h, Node: n, Place: gitcas.Place{Thread: t}}},
		Threads: map[gitcas.ThreadID]*gitcas.Entry{t: {Head: h, Workflow: f.flow.Hash}},
	})
	return h
}

func (f *fixture) end(t gitcas.ThreadID, ago time.Duration) {
	f.Helper()
	e, _ := f.load(t).Entry(t)
	f.push(&gitcas.Change{Subject: "cancelled", Archive: []gitcas.Ended{{Thread: t, Workflow: e.Workflow, Head: e.Head, Reason: "cancelled", CompletedAt: now.Add(-ago).UnixMilli()}}}, t)
}

func (f *fixture) attempt(t gitcas.ThreadID, run string, ago time.Duration, link bool) string {
	f.Helper()
	u, objs, err := gitcas.BuildAttempt(gitcas.Attempt{Thread: t, Run: run, Attempt: 1, Error: "x", At: now.Add(-ago)})
	f.ok(err)
	c := &gitcas.Change{Refs: []wire.RefUpdate{u}, Objects: objs}
	if link {
		e, _ := f.load(t).Entry(t)
		e.Attempts = append(e.Attempts, u.Name)
		c.Subject, c.Threads = "failed", map[gitcas.ThreadID]*gitcas.Entry{t: &e}
	}
	f.push(c, t)
	return u.Name
}

func (f *fixture) claim(t gitcas.ThreadID, head node.Hash, ago time.Duration) string {
	f.Helper()
	at := now.Add(-ago)
	var old *gitcas.Held
	if h, ok := f.load(t).FindClaim(t); ok {
		old = &h
	}
	u, objs := view.ClaimUpdate(t, old, &gitcas.Claim{Run: "r", Attempt: 1, Head: head, Renewed: at.UnixMilli()}, at)
	f.push(&gitcas.Change{Refs: []wire.RefUpdate{u}, Objects: objs})
	return u.Name
}

func (f *fixture) ref(name string, to wire.ID) string {
	f.Helper()
	_, err := f.remote.Push(f.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: name, New: to}}})
	f.ok(err)
	return name
}

func (f *fixture) refs() map[string]wire.ID {
	f.Helper()
	l, err := f.remote.List(f.Context(), "refs/")
	f.ok(err)
	return l.Refs
}

func options(d time.Duration) sweep.Options {
	return sweep.Options{OlderThan: d, Alive: func(c gitcas.Claim, now time.Time) bool { return now.Sub(time.UnixMilli(c.Renewed)) < 3*time.Minute }}
}

func (f *fixture) plan(d time.Duration) sweep.Result {
	f.Helper()
	res, err := sweep.Plan(f.Context(), f.store, options(d), id(77))
	f.ok(err)
	return res
}

// grown makes refs of every kind; the map says which may go after a week.
func grown(f *fixture) map[string]bool {
	head := f.start(id(1))
	f.start(id(2))
	f.start(id(3))
	f.start(id(4))
	f.start(id(5))
	want := map[string]bool{
		f.attempt(id(1), "linked", 30*aDay, true):     false,
		f.attempt(id(1), "claimed", 30*aDay, false):   false,
		f.claim(id(1), head, time.Minute):             false,
		f.attempt(id(2), "ended", 30*aDay, false):     true,
		f.claim(id(2), head, time.Hour):               true,
		f.attempt(id(3), "recently", 30*aDay, false):  false,
		f.claim(id(4), "AAAAAAAAAAAAA", time.Hour):    true,
		f.attempt(id(5), "loose", 30*aDay, false):     true,
		f.attempt(id(5), "young", aDay, false):        false,
		f.attempt(id(88), "nobody's", 30*aDay, false): true,
		f.claim(id(88), head, time.Hour):              true,
		f.claim(id(89), head, time.Minute):            false,
	}
	want[f.claim(id(6), head, time.Hour)] = true
	f.start(id(6))
	f.end(id(2), 20*aDay)
	f.end(id(3), aDay)
	want[f.ref("refs/uwf/other/thing", f.load().Tip())] = false
	want[f.ref("refs/uwf/doctor/0123/1", f.load().Tip())] = true
	return want
}

// TestEveryFolderIsJudged: refs of each kind can be told from those that nobody knows.
func TestEveryFolderIsJudged(t *testing.T) {
	f := memory(t)
	for folder := range layout.RefFolders() {
		f.ref(folder+"x/1", f.load().Tip())
	}
	unknown := f.ref("refs/uwf/other/thing", f.load().Tip())
	for _, r := range f.plan(0).Refs {
		if known := !strings.Contains(r.Why, "not a kind of ref"); known == (r.Name == unknown) {
			t.Errorf("%s: %s", r.Name, r.Why)
		}
	}
}

func TestPlan(t *testing.T) {
	f := memory(t)
	want := grown(f)
	before := f.refs()
	res := f.plan(7 * aDay)
	if len(res.Refs) != len(want) {
		t.Errorf("%d refs, want %d", len(res.Refs), len(want))
	}
	for _, r := range res.Refs {
		goes, known := want[r.Name]
		if !known || r.Delete != goes || r.Why == "" {
			t.Errorf("%s: delete %v (%s), want %v", r.Name, r.Delete, r.Why, goes)
		}
	}
	for id, state := range map[gitcas.ThreadID]sweep.State{id(1): sweep.Living, id(2): sweep.Over, id(77): sweep.Unknown} {
		if res.Threads[id].State != state {
			t.Errorf("thread %s: %+v", id, res.Threads[id])
		}
	}
	if len(f.refs()) != len(before) {
		t.Error("planning changed refs")
	}
	done, err := sweep.Delete(t.Context(), f.remote, res.Refs, res.MostRefs)
	f.ok(err)
	after := f.refs()
	for _, r := range done {
		if _, there := after[r.Name]; there == want[r.Name] {
			t.Errorf("%s: there %v", r.Name, there)
		}
	}
	r, err := f.store.Fsck(t.Context(), true)
	if err != nil || !r.OK() {
		t.Errorf("fsck %+v, %v", r.Problems, err)
	}
	for _, r := range f.plan(7 * aDay).Refs {
		if r.Delete {
			t.Errorf("the second time: %s", r.Name)
		}
	}
	// Everything that nobody needs.
	n := 0
	for _, r := range f.plan(0).Refs {
		if r.Delete {
			n++
		}
	}
	if n != 2 { // recently, young
		t.Errorf("%d more are deleted without an age", n)
	}
}

// TestRace: what a job does between judging and deleting counts.
func TestRace(t *testing.T) {
	f := memory(t)
	f.start(id(1))
	f.end(id(1), 30*aDay)
	moved := f.claim(id(1), "AAAAAAAAAAAAA", time.Hour)
	gone := f.attempt(id(1), "gone", 30*aDay, false)
	stays := f.attempt(id(1), "plain", 30*aDay, false)
	res := f.plan(0)
	f.claim(id(1), "AAAAAAAAAAAAA", time.Minute) // renewed
	refs := f.refs()
	_, err := f.remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: gone, Old: refs[gone]}}})
	f.ok(err)
	done, err := sweep.Delete(t.Context(), f.remote, res.Refs, res.MostRefs)
	f.ok(err)
	for _, r := range done {
		if r.Delete != (r.Name == stays) {
			t.Errorf("%+v", r)
		}
	}
	if _, there := f.refs()[moved]; !there {
		t.Error("the renewed claim was deleted")
	}
}

// bounded is a remote that takes few refs a push.
type bounded struct {
	wire.Remote
	most    int
	says    bool
	refused int
}

func (b *bounded) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if len(req.Updates) <= b.most {
		return b.Remote.Push(ctx, req)
	}
	b.refused++
	e := &wire.RemoteError{Op: "push", Kind: wire.ErrTooManyRefs}
	if b.says {
		e.MostRefs = b.most
	}
	return time.Time{}, e
}

// TestFewRefs: a remote that takes few refs a push gets the deletions in smaller chunks, and
// is refused at most until it has said how many it takes.
func TestFewRefs(t *testing.T) {
	for _, tc := range []struct {
		says          bool
		most, refused int
	}{{true, 100, 1}, {false, 100, 2}, {true, 2, 0}, {true, 0, 0}} {
		f := memory(t)
		want := grown(f)
		remote := &bounded{Remote: f.remote, most: 2, says: tc.says}
		done, err := sweep.Delete(t.Context(), remote, f.plan(7*aDay).Refs, tc.most)
		f.ok(err)
		after := f.refs()
		for _, r := range done {
			if _, there := after[r.Name]; there == want[r.Name] || r.Delete != want[r.Name] {
				t.Errorf("%+v: %+v, there %v", tc, r, there)
			}
		}
		if remote.refused != tc.refused {
			t.Errorf("%+v: %d pushes were refused", tc, remote.refused)
		}
	}
}

// TestRefused: a remote that keeps one ref.
func TestRefused(t *testing.T) {
	var bad string
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: func() time.Time { return now }, Refuse: func(u wire.RefUpdate) error {
		if u.Name == bad && u.New.IsZero() {
			return fmt.Errorf("no way")
		}
		return nil
	}})
	f := newFixture(t, mem)
	want := grown(f)
	for name, del := range want {
		if del {
			bad = name
		}
	}
	done, err := sweep.Delete(t.Context(), mem, f.plan(7*aDay).Refs, 100)
	f.ok(err)
	for _, r := range done {
		if r.Name == bad && (r.Delete || !strings.Contains(r.Why, "no way")) {
			t.Errorf("%+v", r)
		} else if r.Name != bad && r.Delete != want[r.Name] {
			t.Errorf("%+v", r)
		}
	}
}

func TestServer(t *testing.T) {
	if err := gitserver.Available(""); err != nil {
		t.Skip(err)
	}
	root := t.TempDir()
	s, err := gitservertest.Serve(root, gitserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	url, err := s.Init("s.git")
	if err != nil {
		t.Fatal(err)
	}
	remote, err := wire.Dial(url, wire.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, remote)
	f.start(id(1))
	f.end(id(1), 30*aDay)
	f.attempt(id(1), "a", 30*aDay, false)
	gone := f.attempt(id(1), "b", 30*aDay, false)
	f.claim(id(1), "AAAAAAAAAAAAA", time.Hour)
	o := options(0)
	o.Alive = func(gitcas.Claim, time.Time) bool { return false }
	res, err := sweep.Plan(context.Background(), f.store, o)
	f.ok(err)
	_, err = remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: gone, Old: f.refs()[gone]}}})
	f.ok(err)
	done, err := sweep.Delete(t.Context(), remote, res.Refs, res.MostRefs)
	f.ok(err)
	for _, r := range done {
		if r.Delete == (r.Name == gone) {
			t.Errorf("%+v", r)
		}
	}
	if n := len(f.refs()); n != 2 {
		t.Errorf("%d refs are left: %v", n, f.refs())
	}
}

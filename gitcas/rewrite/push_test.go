package rewrite_test

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// attempt pushes an attempt on top of people's commit, and links it.
func (f *fixture) attempt(t gitcas.ThreadID, run, text string, base wire.ID) string {
	f.Helper()
	v := f.load(t)
	file := wire.NewObject(3, []byte("work of "+text))
	people := wire.NewObject(3, []byte(secret)) // as in their commit
	data := append([]byte("100644 a.txt\x00"), file.ID[:]...)
	if base != f.load().Tip() {
		data = append(append(data, "100644 secret.txt\x00"...), people.ID[:]...)
	}
	tree := wire.NewObject(2, data)
	ref := layout.AttemptRef(t, run, 1)
	a := gitcas.Attempt{
		Thread: t, Run: run, Attempt: 1, Error: "failed: " + text, At: f.now(), WorkTree: tree.ID, Parents: []wire.ID{base},
		Nodes: f.failed(v, t, text),
	}
	old, there := v.Ref(ref)
	if there {
		a.Parents = append(a.Parents, old)
	}
	u, objs, err := gitcas.BuildAttempt(a)
	f.ok(err)
	u.Old = old
	objs = append(objs, wire.PackObject{Object: file}, wire.PackObject{Object: tree}, wire.PackObject{Object: people})
	e, _ := v.Entry(t)
	if !there {
		e.Attempts = append(e.Attempts, ref)
	}
	f.push(v, &gitcas.Change{Subject: "failed", Threads: map[gitcas.ThreadID]*gitcas.Entry{t: &e}, Refs: []wire.RefUpdate{u}, Objects: objs})
	return ref
}

// failed are the nodes of a step that failed.
func (f *fixture) failed(v *gitcas.View, t gitcas.ThreadID, text string) []gitcas.PlacedNode {
	f.Helper()
	return f.failedWith(v, t, f.placed(gitcas.Place{}, node.String, "what it said of "+text))
}

func (f *fixture) failedWith(v *gitcas.View, t gitcas.ThreadID, detail gitcas.PlacedNode) []gitcas.PlacedNode {
	f.Helper()
	c, err := v.ReadChain(f.Context(), t)
	f.ok(err)
	detail.Place = gitcas.Place{Thread: t}
	out := f.placed(detail.Place, record.ErrorOutputSchema, map[string]any{"$status": "error", "error": "it failed"})
	s := record.Step{Start: c.StartHash, Role: "developer", Output: out.Hash, Detail: detail.Hash, Agent: "mock", Cwd: ".", Usage: &record.Usage{Turns: 1}}
	if n := len(c.Steps); n > 0 {
		s.Prev = &c.Steps[n-1].Hash
	}
	_, nodes := f.complete(v, t, s, []gitcas.PlacedNode{out, detail})
	return nodes
}

func (f *fixture) refs() map[string]wire.ID {
	f.Helper()
	l, err := f.remote.List(f.Context(), "refs/")
	f.ok(err)
	return l.Refs
}

// TestAttempts: they are rewritten; the commits that they were based on are not.
func TestAttempts(t *testing.T) {
	f := memory(t)
	base := f.files("refs/heads/uwf/work", "people's", map[string]string{"secret.txt": secret, "b.txt": "b"})
	f.start(id(1), "p")
	f.start(id(2), "q")
	bad := f.attempt(id(1), "r1", secret, base)
	f.attempt(id(1), "r1", "a second time", base) // on top of the first
	clean := f.attempt(id(2), "r2", "nothing", base)
	claim := layout.AttemptRef(id(2), "dead", 1)
	u, objs := view.ClaimUpdate(id(2), nil, &gitcas.Claim{Run: "r", Host: "host-" + secret, Attempt: 1}, f.now())
	u.Name = claim
	f.push(f.load(), &gitcas.Change{Refs: []wire.RefUpdate{u}, Objects: objs})

	before := f.refs()
	plan := f.purge(f.options(finder(t, secret)))
	after := f.refs()
	if len(plan.Attempts) != 2 || after[bad] == before[bad] || after[clean] != before[clean] || after[claim] == before[claim] {
		t.Errorf("attempts %+v", plan.Attempts)
	}
	if !strings.Contains(strings.Join(texts(plan.Found), "\n"), bad) {
		t.Errorf("found %v", plan.Found)
	}
	a, err := f.store.ReadAttempt(t.Context(), f.load(id(1)), bad)
	f.ok(err)
	if a.Parents[0] != base || a.Error != "failed: a second time" || len(a.Parents) != 2 {
		t.Errorf("attempt %+v", a)
	}
	c, err := f.store.ReadAttempt(t.Context(), f.load(id(2)), claim)
	if err != nil || c.Claim == nil || c.Claim.Host != "host-[purged]" {
		t.Errorf("claim %+v, %v", c, err)
	}
	if after["refs/heads/uwf/work"] != base {
		t.Error("people's branch moved")
	}
	f.nowhereBut(secret, base)
	kept, err := f.remote.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{a.WorkTree}, Depth: 1})
	if _, there := kept[wire.NewObject(3, []byte(secret)).ID]; err != nil || !there {
		t.Errorf("people's file was changed in the attempt: %v", err)
	}
	hits, err := rewrite.Search(t.Context(), f.remote, wire.FetchRequest{Wants: []wire.ID{base}}, finder(t, secret))
	if err != nil || len(hits) != 1 || hits[0].Path != "secret.txt" || hits[0].Commit != base {
		t.Errorf("hits %+v, %v", hits, err)
	}
}

func texts(places []rewrite.Place) []string {
	var out []string
	for _, p := range places {
		out = append(out, p.String())
	}
	return out
}

// nowhereBut is nowhere without what a commit of people's reaches.
func (f *fixture) nowhereBut(text string, commit wire.ID) {
	f.Helper()
	theirs, err := f.remote.Fetch(f.Context(), wire.FetchRequest{Wants: []wire.ID{commit}})
	f.ok(err)
	f.everything(func(ref string, o wire.Object) {
		if _, skip := theirs[o.ID]; !skip && strings.Contains(string(o.Data), text) {
			f.Errorf("%s: %s %s holds it", ref, o.Type, o.ID)
		}
	})
}

// TestRace: others commit between the plan and the push.
func TestRace(t *testing.T) {
	f := memory(t)
	grown(f)
	o := f.options(finder(t, secret))
	n := 0
	o.Before = func(context.Context, *rewrite.Plan) ([]wire.RefUpdate, error) {
		if n++; n < 3 {
			f.step(id(1), note("meanwhile"), "and the secret again: "+secret, "d")
			f.attempt(id(1), "r9", secret, f.load().Tip())
		}
		return nil, nil
	}
	r := rewrite.New(f.remote, o)
	plan, err := r.MakePlan(t.Context())
	f.ok(err)
	done, err := r.Execute(t.Context())
	f.ok(err)
	if done.Commits != plan.Commits+4 || n != 3 || len(done.Attempts) != 1 {
		t.Errorf("planned %+v, done %+v", plan, done)
	}
	f.sound()
	f.nowhere(secret)
	c, err := f.load(id(1)).ReadChain(t.Context(), id(1))
	if err != nil || len(c.Steps) != 3 {
		t.Errorf("%d steps, %v", len(c.Steps), err)
	}
}

// TestAlwaysLate: where others are faster every time, the rewrite ends with that, and
// nothing of it is on the remote.
func TestAlwaysLate(t *testing.T) {
	f := memory(t)
	f.start(id(1), "it is "+secret)
	o := f.options(finder(t, secret))
	tries := 0
	o.Before = func(context.Context, *rewrite.Plan) ([]wire.RefUpdate, error) {
		tries++
		f.step(id(1), note("meanwhile"), "b", "d")
		return nil, nil
	}
	r := rewrite.New(f.remote, o)
	plan, err := r.MakePlan(t.Context())
	f.ok(err)
	if _, err = r.Execute(t.Context()); !errors.Is(err, wire.ErrLostRace) || tries != 11 {
		t.Errorf("%v after %d tries", err, tries)
	}
	f.sound()
	if mem, _ := f.remote.(*wiretest.Memory); mem == nil || !f.somewhere(secret) {
		t.Error("the history was rewritten")
	} else if _, there := mem.Get(plan.New); there {
		t.Error("what was refused is on the remote")
	}
}

// TestBeforeTogether: what Before asks for is pushed with the new history or not at all.
func TestBeforeTogether(t *testing.T) {
	f := memory(t)
	f.start(id(1), "it is "+secret)
	u, objs := view.ClaimUpdate(id(1), nil, &gitcas.Claim{Run: "r", Host: "h", Attempt: 1}, f.now())
	f.push(f.load(), &gitcas.Change{Refs: []wire.RefUpdate{u}, Objects: objs})
	before := f.refs()
	o := f.options(finder(t, secret))
	for _, held := range []wire.ID{f.load().Tip(), before[u.Name]} {
		o.Before = func(context.Context, *rewrite.Plan) ([]wire.RefUpdate, error) {
			return []wire.RefUpdate{{Name: u.Name, Old: held}}, nil
		}
		r := rewrite.New(f.remote, o)
		_, err := r.MakePlan(t.Context())
		f.ok(err)
		_, err = r.Execute(t.Context())
		switch now := f.refs(); {
		case held != before[u.Name]:
			if !errors.Is(err, wire.ErrLostRace) || !maps.Equal(before, now) {
				t.Errorf("the claim is another one: %v, refs %v, were %v", err, now, before)
			}
		case err != nil || !now[u.Name].IsZero() || f.somewhere(secret):
			t.Errorf("%v, refs %v", err, now)
		}
	}
}

// faulty is a remote that fails at the nth push.
type faulty struct {
	wire.Remote
	n     int
	after bool // the push is taken, and its reply lost
	times int
}

var errFault = &wire.RemoteError{Op: "push", Kind: wire.ErrUnreachable, Detail: "injected"}

func (r *faulty) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if r.n--; r.n >= 0 || r.times == 0 {
		return r.Remote.Push(ctx, req)
	}
	r.times--
	if r.after {
		if at, err := r.Remote.Push(ctx, req); err != nil {
			return at, err
		}
	}
	return time.Time{}, errFault
}

// TestFaults: whatever push fails, however, the store is as it was or as it should
// be, and doing it again ends it.
func TestFaults(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		for n := range 6 {
			for _, mode := range []string{"before", "after", "dead"} {
				fault(t, atomic, n, mode)
			}
		}
	}
}

func fault(t *testing.T, atomic bool, n int, mode string) {
	f := newFixture(t, wiretest.NewMemory(wiretest.MemoryOptions{Atomic: atomic}))
	f.start(id(1), "p")
	f.step(id(1), note("it is "+secret), "b", "d")
	f.start(id(2), "q")
	f.attempt(id(2), "r", secret, f.files("refs/heads/uwf/work", "people's", map[string]string{"b.txt": "b", "secret.txt": secret}))
	before := f.refs()
	remote := &faulty{Remote: f.remote, n: n, after: mode == "after", times: 1}
	if mode == "dead" {
		remote.times = 1000 // as if the process had been killed
	}
	r := rewrite.New(remote, f.options(finder(t, secret)))
	_, err := r.MakePlan(t.Context())
	f.ok(err)
	if now := f.refs(); !maps.Equal(before, now) {
		t.Fatal("planning changed refs")
	}
	_, err = r.Execute(t.Context())
	now := f.refs()
	if err != nil && atomic && !maps.Equal(before, now) {
		t.Fatalf("atomic %v, push %d %s: failed (%v) and changed refs", atomic, n, mode, err)
	}
	f.sound()
	base := f.refs()["refs/heads/uwf/work"]
	if err == nil {
		f.nowhereBut(secret, base)
	}
	f.purge(f.options(finder(t, secret)))
	f.sound()
	f.nowhereBut(secret, base)
	f.step(id(1), note("goes on"), "b", "d")
}

// bounded is a remote that takes one ref a push.
type bounded struct {
	wire.Remote
	refused int
}

func (b *bounded) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if len(req.Updates) == 1 {
		return b.Remote.Push(ctx, req)
	}
	b.refused++
	return time.Time{}, &wire.RemoteError{Op: "push", Kind: wire.ErrTooManyRefs}
}

// TestFewRefs: where the remote takes fewer refs a push, they go as without atomic pushes.
func TestFewRefs(t *testing.T) {
	f := memory(t)
	f.start(id(1), "it is "+secret)
	f.attempt(id(1), "r", secret, f.load().Tip())
	remote := &bounded{Remote: f.remote}
	r := rewrite.New(remote, f.options(finder(t, secret)))
	_, err := r.MakePlan(t.Context())
	f.ok(err)
	_, err = r.Execute(t.Context())
	f.ok(err)
	if remote.refused != 1 {
		t.Errorf("%d pushes were refused", remote.refused)
	}
	f.sound()
	f.nowhere(secret)
}

// TestMark: where the remote has no atomic pushes, the ref that marks the store is taken
// away before the new history comes. It is there again when that is done, and also when
// a purge before died between the two.
func TestMark(t *testing.T) {
	for name, c := range map[string]struct {
		lost   bool // it isn't there when the purge begins
		secret string
	}{
		"with the history":        {false, secret},
		"lost before":             {true, secret},
		"lost, the history stays": {true, "of the attempt alone"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := wiretest.NewMemory(wiretest.MemoryOptions{})
			f := newFixture(t, mem)
			f.start(id(1), "it is "+secret)
			f.attempt(id(1), "r", "of the attempt alone", f.load().Tip())
			if c.lost {
				mem.SetRef(layout.StoreRef, wire.ZeroID)
			}
			f.purge(f.options(finder(t, c.secret)))
			refs := f.refs()
			if mark := refs[layout.StoreRef]; mark.IsZero() || mark != refs[f.store.Branch()] {
				t.Errorf("the mark is at %s, the branch at %s", mark, refs[f.store.Branch()])
			}
			f.nowhere(c.secret)
		})
	}
}

// TestSetBack: a branch that no longer extends what was read.
func TestSetBack(t *testing.T) {
	f := memory(t)
	f.start(id(1), "p")
	tip := f.load().Tip()
	f.step(id(1), note(secret), "b", "d")
	o := f.options(finder(t, secret))
	o.Before = func(context.Context, *rewrite.Plan) ([]wire.RefUpdate, error) {
		mem, _ := f.remote.(*wiretest.Memory)
		mem.SetRef(f.store.Branch(), tip)
		return nil, nil
	}
	r := rewrite.New(f.remote, o)
	_, err := r.MakePlan(t.Context())
	f.ok(err)
	if _, err := r.Execute(t.Context()); !errors.Is(err, rewrite.ErrMoved) {
		t.Errorf("error %v", err)
	}
	o.Before = func(context.Context, *rewrite.Plan) ([]wire.RefUpdate, error) { return nil, context.Canceled }
	r = rewrite.New(f.remote, o)
	_, err = r.MakePlan(t.Context())
	f.ok(err)
}

// TestServers does it on real git.
func TestServers(t *testing.T) {
	if err := gitserver.Available(""); err != nil {
		t.Skip(err)
	}
	root := t.TempDir()
	s, err := gitservertest.Serve(root, gitserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	made := memory(t)
	grown(made)
	made.attempt(id(1), "r", secret, made.load().Tip())
	remotes := map[string]string{"http": s.URL + "/http.git"}
	if testmode.HasProcesses() {
		remotes["file"] = "file://" + filepath.Join(root, "file.git")
	}
	for name, url := range remotes {
		dir := filepath.Join(root, name+".git")
		if err := gitservertest.MakeBare(dir, "main"); err != nil {
			t.Fatal(err)
		}
		remote, err := wire.Dial(url, wire.DialOptions{})
		if err != nil {
			t.Fatal(err)
		}
		made.copyTo(remote)
		f := &fixture{TB: t, remote: remote, at: made.at, schema: made.schema, flow: made.flow}
		f.store = gitcas.Open(remote, gitcas.Options{Now: f.now})
		r := rewrite.New(remote, f.options(finder(t, secret)))
		_, err = r.MakePlan(t.Context())
		f.ok(err)
		_, err = r.Execute(t.Context())
		f.ok(err)
		f.nowhere(secret)
		f.step(id(2), note("goes on"), "b", "d")
		f.sound()
		if out, err := exec.Command("git", "-C", dir, "fsck", "--strict").CombinedOutput(); err != nil {
			t.Errorf("git fsck: %v: %s", err, out)
		}
	}
}

// copyTo pushes everything to another remote.
func (f *fixture) copyTo(remote wire.Remote) {
	f.Helper()
	var req wire.PushRequest
	var wants []wire.ID
	for name, id := range f.refs() {
		req.Updates = append(req.Updates, wire.RefUpdate{Name: name, New: id})
		wants = append(wants, id)
	}
	objs, err := f.remote.Fetch(f.Context(), wire.FetchRequest{Wants: wants})
	f.ok(err)
	for _, o := range objs {
		req.Objects = append(req.Objects, wire.PackObject{Object: o})
	}
	_, err = remote.Push(f.Context(), req)
	f.ok(err)
}

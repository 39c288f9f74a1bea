package gitcas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// slow is a remote that leaves one push of the state branch without an answer: it takes it,
// or it takes it only after it was looked for.
type slow struct {
	wire.Remote
	kind   error // of what is answered instead; nil: nothing is
	lost   bool  // it never takes it
	late   bool
	ref    string
	taken  func() // called once it has taken it
	held   *wire.PushRequest
	pushes int
}

func (s *slow) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	moves := slices.ContainsFunc(req.Updates, func(u wire.RefUpdate) bool { return u.Name == s.ref })
	if moves {
		s.pushes++
	}
	if !moves || s.pushes > 1 {
		return s.Remote.Push(ctx, req)
	}
	if s.held = &req; s.lost {
		s.held = nil
	}
	if !s.late {
		s.arrive(ctx)
	}
	return time.Time{}, &wire.RemoteError{Op: "push", URL: s.URL(), Kind: cmp.Or(s.kind, wire.ErrUnreachable), Detail: "no answer"}
}

func (s *slow) arrive(ctx context.Context) {
	if req := s.held; req != nil {
		s.held = nil
		if _, err := s.Remote.Push(ctx, *req); err == nil {
			s.taken()
		}
	}
}

// List answers first: what arrives late is not in it.
func (s *slow) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	l, err := s.Remote.List(ctx, prefixes...)
	s.arrive(ctx)
	return l, err
}

// testUnanswered: whatever others do after a push that was not answered, it is known to be
// in the store, and is made once.
func testUnanswered(t *testing.T, s *Store) {
	deeds := map[string]func(t *testing.T, s *Store, id ThreadID){
		"nothing":     func(*testing.T, *Store, ThreadID) {},
		"1 commit":    func(t *testing.T, s *Store, _ ThreadID) { commitsOfOthers(t, s, 1) },
		"100 commits": func(t *testing.T, s *Store, _ ThreadID) { commitsOfOthers(t, s, 100) },
		"archive":     archiveByOther,
		"resume": func(t *testing.T, s *Store, id ThreadID) {
			archiveByOther(t, s, id)
			mustPush(t, s, mustLoad(t, s), reopenChange(t, s, mustLoad(t, s), id))
		},
	}
	n := 0
	for _, late := range []bool{false, true} {
		for name, deed := range deeds {
			n++
			id := threadID(n)
			threadWithSteps(t, s, id, 1)
			r := &slow{Remote: s.source.Remote, ref: s.source.Branch, late: late, taken: func() { deed(t, s, id) }}
			landed := 0
			mine := Open(r, testOptions())
			_, err := mine.Update(t.Context(), mustLoad(t, mine, id), func(v *View) (*Change, error) {
				if len(mustChain(t, v, id).Steps) > 1 {
					t.Errorf("late %t, %s: it is asked for again although it was taken", late, name)
				}
				c := stepChange(t, v, id, "developer", fmt.Sprint("try ", r.pushes))
				c.Landed = func(v *View) { landed++ }
				return c, nil
			}, id)
			if err != nil || landed != 1 {
				t.Errorf("late %t, %s: it landed %d times, %v", late, name, landed, err)
			}
			want := 2
			if name == "archive" || name == "resume" {
				want++ // that it ended is a step of the other's
			}
			if steps := len(mustWhole(t, s, id).Steps); steps != want {
				t.Errorf("late %t, %s: the thread has %d steps, want %d", late, name, steps, want)
			}
		}
	}
	mustSound(t, s)
	testUnansweredRef(t, s)
	testUnansweredRewritten(t, s)
}

// testUnansweredRef: refs alone are proved by their values.
func testUnansweredRef(t *testing.T, s *Store) {
	id := threadID(90)
	threadWithSteps(t, s, id, 1)
	for _, late := range []bool{false, true} {
		r := &slow{Remote: s.source.Remote, ref: layout.ClaimRef(id), late: late, taken: func() {}}
		mine := Open(r, testOptions())
		v := mustLoad(t, mine, id)
		claim, objs := view.ClaimUpdate(id, nil, &Claim{Run: fmt.Sprint("run-", late), Attempt: 1, Head: mustEntry(t, v, id).Head}, v.Time())
		landed := 0
		v, err := mine.Update(t.Context(), v, func(v *View) (*Change, error) {
			if _, claimed := v.FindClaim(id); claimed {
				t.Errorf("late %t: it is asked for again although it was taken", late)
			}
			return &Change{Refs: []wire.RefUpdate{claim}, Objects: objs, Landed: func(*View) { landed++ }}, nil
		}, id)
		if err != nil || landed != 1 {
			t.Fatalf("late %t: the claim landed %d times, %v", late, landed, err)
		}
		if held, ok := v.FindClaim(id); !ok || held.ID != claim.New {
			t.Fatalf("late %t: the claim is %v", late, held)
		}
		r.pushes = 0
		if err := mine.PushRef(t.Context(), wire.RefUpdate{Name: layout.ClaimRef(id), Old: claim.New}, nil); err != nil {
			t.Fatalf("late %t: the claim is not let go: %v", late, err)
		}
		if _, claimed := mustLoad(t, s, id).FindClaim(id); claimed {
			t.Fatalf("late %t: the claim is still there", late)
		}
	}
}

// testUnansweredRewritten: where the history was rewritten meanwhile, nobody can tell.
func testUnansweredRewritten(t *testing.T, s *Store) {
	id := threadID(91)
	threadWithSteps(t, s, id, 1)
	r := &slow{Remote: s.source.Remote, ref: s.source.Branch, taken: func() { rewriteByOther(t, s) }}
	mine := Open(r, testOptions())
	_, err := mine.Update(t.Context(), mustLoad(t, mine, id), func(v *View) (*Change, error) {
		return stepChange(t, v, id, "developer", "once"), nil
	}, id)
	if !errors.Is(err, ErrUnsure) || r.pushes != 1 {
		t.Errorf("%d pushes, %v", r.pushes, err)
	}
}

func mustChain(t *testing.T, v *View, id ThreadID) Chain {
	t.Helper()
	c, err := v.ReadChain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mustWhole is the chain of a thread that is alive, or has ended.
func mustWhole(t *testing.T, s *Store, id ThreadID) Chain {
	t.Helper()
	v := mustLoad(t, s, id)
	if _, alive := v.Entry(id); !alive {
		var err error
		if v, err = v.LoadEnded(t.Context(), findLine(t, s, v, id)); err != nil {
			t.Fatal(err)
		}
	}
	return mustChain(t, v, id)
}

func archiveByOther(t *testing.T, s *Store, id ThreadID) {
	mustPush(t, s, mustLoad(t, s, id), endChange(t, mustLoad(t, s, id), id, "end"))
}

// commitsOfOthers makes commits that change nothing, in one push.
func commitsOfOthers(t *testing.T, s *Store, n int) {
	t.Helper()
	v := mustLoad(t, s)
	tip, tree := v.Tip(), v.Root.Object.ID
	var objs []wire.PackObject
	for i := range n {
		o, err := s.commitObject(tree, []wire.ID{tip}, fmt.Sprintf("of others: %d\n", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		objs, tip = append(objs, wire.PackObject{Object: o}), o.ID
	}
	moveBranch(t, s, v, tip, objs)
}

// rewriteByOther makes the branch a single commit without a past.
func rewriteByOther(t *testing.T, s *Store) {
	t.Helper()
	v := mustLoad(t, s)
	o, err := s.commitObject(v.Root.Object.ID, nil, "all that there is\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	moveBranch(t, s, v, o.ID, []wire.PackObject{{Object: o}})
}

func moveBranch(t *testing.T, s *Store, v *View, tip wire.ID, objs []wire.PackObject) {
	t.Helper()
	for _, u := range []wire.RefUpdate{{Name: s.source.Branch, Old: v.Tip(), New: tip}, {Name: layout.StoreRef, Old: v.Refs()[layout.StoreRef], New: tip}} {
		if _, err := s.source.Remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{u}, Objects: objs}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUnansweredTooFarBack: a history that is longer than what is looked through tells
// nothing.
func TestUnansweredTooFarBack(t *testing.T) {
	for _, noFilter := range []bool{false, true} {
		s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, NoFilter: noFilter}), testOptions())
		id := threadID(1)
		threadWithSteps(t, s, id, 1)
		r := &slow{Remote: s.source.Remote, ref: s.source.Branch, taken: func() { commitsOfOthers(t, s, lookBack+1) }}
		mine := Open(r, testOptions())
		_, err := mine.Update(t.Context(), mustLoad(t, mine, id), func(v *View) (*Change, error) {
			return stepChange(t, v, id, "developer", "once"), nil
		}, id)
		if !errors.Is(err, ErrUnsure) || r.pushes != 1 {
			t.Errorf("without filters %t: %d pushes, %v", noFilter, r.pushes, err)
		}
	}
}

// turned is a remote that lets nobody read any more after some listings since a push.
type turned struct {
	*slow
	lists, at int
}

func (r *turned) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if r.pushes > 0 {
		r.lists++
	}
	if r.lists == r.at {
		return wire.Listing{}, &wire.RemoteError{Op: "list refs", Kind: wire.ErrDenied}
	}
	return r.slow.List(ctx, prefixes...)
}

// TestUnansweredAndThenUnread: wherever the reads end that look for a push which was taken,
// its caller hears that it may have been.
func TestUnansweredAndThenUnread(t *testing.T) {
	for at := 1; ; at++ {
		s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), testOptions())
		id := threadID(1)
		threadWithSteps(t, s, id, 1)
		r := &turned{slow: &slow{Remote: s.source.Remote, ref: layout.ClaimRef(id), taken: func() {}}, at: at}
		mine := Open(r, testOptions())
		v := mustLoad(t, mine, id)
		claim, objs := view.ClaimUpdate(id, nil, &Claim{Run: "run", Attempt: 1, Head: mustEntry(t, v, id).Head}, v.Time())
		_, err := mine.Update(t.Context(), v, func(*View) (*Change, error) {
			return &Change{Refs: []wire.RefUpdate{claim}, Objects: objs}, nil
		}, id)
		switch {
		case err == nil && at > 3 && r.lists < at:
			return
		case !errors.Is(err, ErrUnsure):
			t.Fatalf("the reads end at listing %d: %v", at, err)
		}
	}
}

// TestUnreadableAnswer: a page in place of an answer does not tell whether the push was
// taken. It is looked for once, and not made again.
func TestUnreadableAnswer(t *testing.T) {
	for name, lost := range map[string]bool{"taken": false, "not taken": true} {
		t.Run(name, func(t *testing.T) {
			s := Open(wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true}), testOptions())
			id := threadID(1)
			threadWithSteps(t, s, id, 1)
			r := &slow{Remote: s.source.Remote, kind: wire.ErrUnreadable, lost: lost, ref: s.source.Branch, taken: func() {}}
			mine := Open(r, testOptions())
			_, err := mine.Update(t.Context(), mustLoad(t, mine, id), func(v *View) (*Change, error) {
				return stepChange(t, v, id, "developer", "once"), nil
			}, id)
			if unsure := errors.Is(err, ErrUnsure) && errors.Is(err, wire.ErrUnreadable); unsure != lost || r.pushes != 1 {
				t.Fatalf("%d pushes, %v", r.pushes, err)
			}
			if !lost && err != nil {
				t.Error(err)
			}
		})
	}
}

// TestUnansweredOnePartOfMany: on a remote without atomic pushes, or with room for few refs in
// one, what goes after the state branch is sent before an unanswered push of that is done.
func TestUnansweredOnePartOfMany(t *testing.T) {
	for _, o := range []wiretest.MemoryOptions{{}, {Atomic: true, MostRefs: 2}} {
		t.Run(fmt.Sprint(o.MostRefs), func(t *testing.T) { testUnansweredPart(t, wiretest.NewMemory(o), o.MostRefs) })
	}
}

func testUnansweredPart(t *testing.T, mem wire.Remote, known int) {
	s := Open(mem, testOptions())
	id := threadID(1)
	threadWithSteps(t, s, id, 1)
	sig := gitobj.Signature{Name: "t", Email: "t@example.com", When: time.Unix(0, 0)}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: wire.EmptyTree, Author: sig, Committer: sig, Message: "work\n"})
	if err != nil {
		t.Fatal(err)
	}
	work := wire.NewObject(plumbing.CommitObject, data)
	r := &slow{Remote: s.source.Remote, ref: s.source.Branch, taken: func() { commitsOfOthers(t, s, 2) }}
	mine := Open(r, testOptions())
	mine.learnt.Store(int64(known))
	v := mustLoad(t, mine, id)
	claim, objs := view.ClaimUpdate(id, nil, &Claim{Run: "run-1", Attempt: 1, Head: mustEntry(t, v, id).Head}, v.Time())
	v = mustPush(t, mine, v, &Change{Refs: []wire.RefUpdate{claim}, Objects: objs})
	v, err = mine.Update(t.Context(), v, func(v *View) (*Change, error) {
		c := stepChange(t, v, id, "developer", "once")
		held, _ := v.FindClaim(id)
		release, _ := view.ClaimUpdate(id, &held, nil, v.Time())
		c.Refs = []wire.RefUpdate{release, {Name: layout.Heads + layout.WorkBranch(id), New: work.ID}}
		c.Objects = []wire.PackObject{{Object: work}}
		return c, nil
	}, id)
	if delete(v.Lagging, layout.StoreRef); err != nil || r.pushes != 1 || len(v.Lagging) > 0 {
		t.Fatalf("%d pushes, lagging %v, %v", r.pushes, v.Lagging, err)
	}
	if tip, _ := v.Ref(layout.Heads + layout.WorkBranch(id)); tip != work.ID {
		t.Errorf("the work branch is at %s", tip)
	}
	if _, claimed := v.FindClaim(id); claimed {
		t.Error("the claim is still there")
	}
}

// TestOutageOfEachPart: where a change goes out in parts, each may meet an outage of its own.
func TestOutageOfEachPart(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	o := testOptions()
	o.Now, o.Jitter = func() time.Time { return at }, func() float64 { return 0 }
	o.Sleep = func(_ context.Context, d time.Duration) error { at = at.Add(d); return nil }
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Now: o.Now})
	id := threadID(1)
	threadWithSteps(t, Open(mem, testOptions()), id, 1)
	back := map[string]time.Time{}
	s := Open(&wrapped{Remote: mem, push: func(req wire.PushRequest, push func() (time.Time, error)) (time.Time, error) {
		name := req.Updates[0].Name
		if back[name].IsZero() {
			back[name] = at.Add(7 * time.Minute)
		}
		if at.Before(back[name]) {
			return time.Time{}, &wire.RemoteError{Op: "push", Kind: wire.ErrUnreachable}
		}
		return push()
	}}, o)
	v := mustLoad(t, s, id)
	_, err := s.Update(t.Context(), v, func(v *View) (*Change, error) {
		c := stepChange(t, v, id, "developer", "once")
		ref := layout.AttemptRef(id, "r", 1)
		if _, there := v.Ref(ref); !there {
			upd, objs, err := BuildAttempt(Attempt{Thread: id, Run: "r", Attempt: 1, Error: "kept"})
			if err != nil {
				return nil, err
			}
			c.Refs, c.Objects = []wire.RefUpdate{upd}, objs
		}
		return c, nil
	}, id)
	if err != nil || len(mustWhole(t, s, id).Steps) != 2 {
		t.Error(err)
	}
}

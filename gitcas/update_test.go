package gitcas

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/outage"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestConcurrent: many writers on one remote, each with its own threads, names
// and endings: nothing is lost.
func TestConcurrent(t *testing.T) {
	t.Run("memory", func(t *testing.T) {
		mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
		concurrent(t, func() wire.Remote { return mem }, 8, 20)
	})
	t.Run("memory without atomic", func(t *testing.T) {
		mem := wiretest.NewMemory(wiretest.MemoryOptions{})
		concurrent(t, func() wire.Remote { return mem }, 8, 10)
	})
	t.Run("file", func(t *testing.T) {
		writers, commits := 2, 1
		if testmode.HasProcesses() {
			writers, commits = 3, 4
		}
		url := "file://" + bareRepo(t)
		concurrent(t, func() wire.Remote { return dial(t, url) }, writers, commits)
	})
}

func concurrent(t *testing.T, remote func() wire.Remote, writers, commits int) {
	o := Options{RetryFor: time.Hour}
	mustInit(t, Open(remote(), o))
	var wg sync.WaitGroup
	for w := range writers {
		s := Open(remote(), o)
		wg.Go(func() {
			if err := writeMany(t, s, w, commits); err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
		})
	}
	wg.Wait()
	s := Open(remote(), o)
	r := mustSound(t, s)
	v := mustLoad(t, s)
	for w := range writers {
		id := threadID(w)
		v, err := s.Reload(t.Context(), v, id)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := v.ReadChain(t.Context(), id); err != nil || len(c.Steps) != commits {
			t.Errorf("writer %d: %d of %d steps, %v", w, len(c.Steps), commits, err)
		}
	}
	if len(v.Registry()) != writers || r.Ended != writers {
		t.Errorf("%d names, %d ended threads; want %d of each", len(v.Registry()), r.Ended, writers)
	}
}

func writeMany(t *testing.T, s *Store, w, commits int) error {
	ctx, id, short := t.Context(), threadID(w), threadID(100+w)
	v, err := s.Load(ctx)
	if err != nil {
		return err
	}
	once := func(c *Change) func(*View) (*Change, error) {
		return func(*View) (*Change, error) { return c, nil }
	}
	for _, c := range []*Change{
		startChange(t, id, fmt.Sprint(w)), startChange(t, short, fmt.Sprint(w)),
		{Subject: "put", Nodes: []PlacedNode{workflowNode(t)}, Registry: map[string]*RegistryEntry{fmt.Sprint("w", w): {Hash: workflowNode(t).Hash}}},
	} {
		if v, err = s.Update(ctx, v, once(c), id, short); err != nil {
			return err
		}
	}
	for i := range commits {
		v, err = s.Update(ctx, v, func(v *View) (*Change, error) {
			return stepChange(t, v, id, "developer", fmt.Sprintf("writer %d step %d", w, i)), nil
		}, id, short)
		if err != nil {
			return err
		}
	}
	_, err = s.Update(ctx, v, func(v *View) (*Change, error) { return endChange(t, v, short, "end"), nil }, id, short)
	return err
}

// flaky is a remote whose answers, or requests, get lost.
type flaky struct {
	wire.Remote
	mu  sync.Mutex
	rnd *rand.Rand
	p   float64
}

func (f *flaky) roll() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rnd.Float64()
}

func (f *flaky) lost(op string) error {
	return &wire.RemoteError{Op: op, URL: f.URL(), Kind: wire.ErrUnreachable, Detail: "injected"}
}

func (f *flaky) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if f.roll() < f.p/4 {
		return wire.Listing{}, f.lost("list refs")
	}
	return f.Remote.List(ctx, prefixes...)
}

func (f *flaky) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if f.roll() < f.p/4 {
		return nil, f.lost("fetch")
	}
	return f.Remote.Fetch(ctx, req)
}

func (f *flaky) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if f.roll() < f.p {
		return time.Time{}, f.lost("push")
	}
	at, err := f.Remote.Push(ctx, req)
	if err == nil && f.roll() < f.p {
		return time.Time{}, f.lost("push") // it happened, and nobody knows
	}
	return at, err
}

// TestLostReplies: with requests and answers that get lost at random, every step
// is in its chain exactly once.
func TestLostReplies(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		for seed := range testmode.Seeds(t, 4, 20) {
			lostReplies(t, seed, atomic)
		}
	}
}

func lostReplies(t *testing.T, seed uint64, atomic bool) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: atomic})
	calm := Open(mem, testOptions())
	const writers, steps = 3, 6
	for w := range writers {
		threadWithSteps(t, calm, threadID(w), 0)
	}
	var wg sync.WaitGroup
	for w := range writers {
		s := Open(&flaky{Remote: mem, rnd: rand.New(rand.NewPCG(seed, uint64(w))), p: 0.2}, testOptions())
		wg.Go(func() { stepThroughFaults(t, s, threadID(w), steps) })
	}
	wg.Wait()
	for w := range writers {
		c, err := mustLoad(t, calm, threadID(w)).ReadChain(t.Context(), threadID(w))
		if err != nil || len(c.Steps) != steps {
			t.Fatalf("seed %d, atomic %t: thread %d has %d steps, %v", seed, atomic, w, len(c.Steps), err)
		}
	}
	mustSound(t, calm)
}

// stepThroughFaults adds steps. build does not look for its own: Update does.
func stepThroughFaults(t *testing.T, s *Store, id ThreadID, steps int) {
	for i := range steps {
		landed := 0
		build := func(v *View) (*Change, error) {
			c := stepChange(t, v, id, "developer", fmt.Sprintf("%s %d", id, i+1))
			c.Landed = func(*View) { landed++ }
			return c, nil
		}
		v, err := s.Load(t.Context(), id)
		if err == nil {
			_, err = s.Update(t.Context(), v, build, id)
		}
		if err != nil || landed != 1 {
			t.Errorf("step %d of %s: %v, and it landed %d times", i+1, id, err, landed)
			return
		}
	}
}

// TestUpdateGivesUp: a remote that never answers a push, or is always faster, ends
// an Update in bounded time; other errors end it at once.
func TestUpdateGivesUp(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		tries int
		ends  time.Duration // of the job; 0: it has no end
		takes time.Duration // each push that loses the race
	}{
		"silent":             {wire.ErrUnreachable, 14, 0, 0},        // 2, 4 … 60 s between them, for ten minutes
		"always":             {wire.ErrLostRace, 14, 0, time.Minute}, // a minute later each time, for RetryFor
		"a job that ends":    {wire.ErrLostRace, 8, 7 * time.Minute, time.Minute},
		"a job at its end":   {wire.ErrLostRace, leastTries + 1, time.Second, time.Minute},
		"a job that is over": {wire.ErrLostRace, 22, time.Nanosecond, time.Second},
		"protected":          {wire.ErrProtected, 1, 0, 0},
		"denied":             {wire.ErrDenied, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
			threadWithSteps(t, Open(mem, testOptions()), threadID(1), 0)
			pushes := 0
			o := testOptions()
			at := time.Unix(1_800_000_000, 0)
			o.Now, o.Jitter = func() time.Time { return at }, func() float64 { return 0 }
			o.Sleep = func(_ context.Context, d time.Duration) error { at = at.Add(d); return nil }
			o.RetryFor = 12 * time.Minute
			if tc.ends > 0 {
				o.Until = at.Add(tc.ends)
			}
			s := Open(&wrapped{Remote: mem, push: func(wire.PushRequest, func() (time.Time, error)) (time.Time, error) {
				pushes++
				at = at.Add(tc.takes)
				return time.Time{}, &wire.RemoteError{Op: "push", Kind: tc.err}
			}}, o)
			v := mustLoad(t, s, threadID(1))
			_, err := s.Update(t.Context(), v, func(v *View) (*Change, error) { return stepChange(t, v, threadID(1), "a", "b"), nil }, threadID(1))
			if !errors.Is(err, tc.err) || pushes != tc.tries || errors.Is(err, ErrUnsure) != errors.Is(err, wire.ErrUnreachable) {
				t.Fatalf("%d pushes, %v", pushes, err)
			}
		})
	}
	t.Run("build's error", func(t *testing.T) {
		s := Open(wiretest.NewMemory(wiretest.MemoryOptions{}), testOptions())
		want := errors.New("not mine")
		_, err := s.Update(t.Context(), mustInit(t, s), func(*View) (*Change, error) { return nil, want })
		wantErr(t, err, want)
	})
	t.Run("cancelled", func(t *testing.T) {
		mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
		ctx, cancel := context.WithCancel(t.Context())
		s := Open(&wrapped{Remote: mem, push: func(_ wire.PushRequest, push func() (time.Time, error)) (time.Time, error) {
			if ctx.Err() == nil && len(mem.Refs()) > 0 {
				cancel()
				return time.Time{}, &wire.RemoteError{Op: "push", Kind: wire.ErrLostRace}
			}
			return push()
		}}, testOptions())
		v := mustInit(t, s)
		_, err := s.Update(ctx, v, func(*View) (*Change, error) { return startChange(t, threadID(1), "x"), nil })
		if err == nil || ctx.Err() == nil {
			t.Fatalf("error %v", err)
		}
	})
}

// TestLostRacesAreTold: an Update that keeps losing races says so within ten seconds of the clock, and
// then now and then; a short one is silent.
func TestLostRacesAreTold(t *testing.T) {
	for races, words := range map[int]int{2: 0, 20: 2} {
		mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
		threadWithSteps(t, Open(mem, testOptions()), threadID(1), 0)
		o := testOptions()
		began := time.Unix(1_800_000_000, 0)
		at, lost := began, 0
		o.Now, o.Jitter = func() time.Time { return at }, func() float64 { return 1 }
		o.Sleep = func(_ context.Context, d time.Duration) error { at = at.Add(d); return nil }
		var told []string
		o.Waiting = func(w outage.Wait) {
			told = append(told, w.String())
			if len(told) == 1 && at.Sub(began) > 10*time.Second {
				t.Errorf("the first word comes after %s", at.Sub(began))
			}
		}
		s := Open(&wrapped{Remote: mem, push: func(_ wire.PushRequest, push func() (time.Time, error)) (time.Time, error) {
			if lost++; lost > races {
				return push()
			}
			at = at.Add(time.Second)
			return time.Time{}, &wire.RemoteError{Op: "push", Kind: wire.ErrLostRace}
		}}, o)
		v := mustLoad(t, s, threadID(1))
		_, err := s.Update(t.Context(), v, func(v *View) (*Change, error) { return stepChange(t, v, threadID(1), "a", "b"), nil }, threadID(1))
		if err != nil || (len(told) > 0) != (words > 0) || len(told) < words || words > 0 && !strings.Contains(told[0], "waiting for the state branch, try ") {
			t.Errorf("%d races: %v, told %q", races, err, told)
		}
		if words > 0 && !strings.Contains(told[len(told)-1], "trying again in 16s") {
			t.Errorf("the server takes a second for each try, and is asked again: %q", told)
		}
	}
}

// TestWaits: full jitter between zero and a bound that grows from 20 ms to 5 s, and where a try
// takes long, from that to sixteen times as much, or a minute.
func TestWaits(t *testing.T) {
	o := testOptions()
	o.Jitter = func() float64 { return 1 }
	s := Open(nil, o)
	for took, waits := range map[time.Duration]map[int]time.Duration{
		time.Millisecond: {0: 20 * time.Millisecond, 1: 40 * time.Millisecond, 7: 2560 * time.Millisecond, 8: 5 * time.Second, 1 << 20: 5 * time.Second},
		3 * time.Second:  {0: 3 * time.Second, 1: 6 * time.Second, 4: 48 * time.Second, 5: 48 * time.Second, 1 << 20: 48 * time.Second},
		20 * time.Second: {0: 20 * time.Second, 2: time.Minute, 1 << 20: time.Minute},
		time.Hour:        {0: time.Minute},
	} {
		for try, want := range waits {
			if got := s.waitAfterRace(try, took); got != want {
				t.Errorf("before try %d, of which one takes %s: %s, want %s", try, took, got, want)
			}
		}
	}
	s.o.Jitter = func() float64 { return 0 }
	if got := s.waitAfterRace(9, time.Minute); got != 0 {
		t.Errorf("the least wait is %s", got)
	}
}

// TestTornListing: a listing that shows one ref before a push and the other after
// it is no damage, one that stays so is.
func TestTornListing(t *testing.T) {
	for name, torn := range map[string]string{"branch behind": "refs/heads/uwf-state", "mark behind": layout.StoreRef} {
		for _, times := range []int{1, listings - 1, listings} {
			mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
			old := threadWithSteps(t, Open(mem, testOptions()), threadID(1), 1)
			mustPush(t, Open(mem, testOptions()), old, stepChange(t, old, threadID(1), "a", "b"))
			left := times
			s := Open(&wrapped{Remote: mem, list: func(l *wire.Listing, err error) error {
				if left > 0 {
					left--
					l.Refs[torn] = old.Tip()
				}
				return err
			}}, testOptions())
			v, err := s.Load(t.Context(), threadID(1))
			switch {
			case torn == layout.StoreRef && (err != nil || v.Tip() == old.Tip()):
				t.Errorf("%s, %d times: %v", name, times, err)
			case torn != layout.StoreRef && times < listings && (err != nil || v.Tip() == old.Tip()):
				t.Errorf("%s, %d times: %v", name, times, err)
			case torn != layout.StoreRef && times == listings && !errors.Is(err, ErrRewritten):
				t.Errorf("%s, %d times: %v", name, times, err)
			}
		}
	}
}

// TestTornListingInterrupted: who is told to stop while it waits for the refs to fit
// together stops.
func TestTornListingInterrupted(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	old := threadWithSteps(t, Open(mem, testOptions()), threadID(1), 1)
	mustPush(t, Open(mem, testOptions()), old, stepChange(t, old, threadID(1), "a", "b"))
	o, stop := testOptions(), errors.New("stop")
	o.Sleep = func(context.Context, time.Duration) error { return stop }
	s := Open(&wrapped{Remote: mem, list: func(l *wire.Listing, err error) error {
		l.Refs["refs/heads/uwf-state"] = old.Tip()
		return err
	}}, o)
	_, err := s.Load(t.Context(), threadID(1))
	wantErr(t, err, stop)
}

// TestNonAtomicOrder: attempts first, then the state branch, the work branch, the
// claim; what fails after the state branch is reported, not returned.
func TestNonAtomicOrder(t *testing.T) {
	id := threadID(1)
	for _, failing := range []string{"", "refs/uwf/attempts/", "refs/heads/uwf-state", layout.StoreRef, "refs/heads/uwf/", "refs/uwf/claims/"} {
		mem := wiretest.NewMemory(wiretest.MemoryOptions{})
		var order []string
		s := Open(&wrapped{Remote: mem, push: func(req wire.PushRequest, push func() (time.Time, error)) (time.Time, error) {
			if len(req.Updates) != 1 {
				t.Fatalf("%d updates in one push", len(req.Updates))
			}
			name := req.Updates[0].Name
			order = append(order, name)
			if failing != "" && strings.HasPrefix(name, failing) {
				return time.Time{}, &wire.RemoteError{Op: "push", Ref: name, Kind: wire.ErrLostRace}
			}
			return push()
		}}, testOptions())
		calm := Open(mem, testOptions())
		v := threadWithSteps(t, calm, id, 1)
		claim, objs := view.ClaimUpdate(id, nil, &Claim{Run: "r", Head: mustEntry(t, v, id).Head}, v.Time())
		mustPush(t, calm, v, &Change{Refs: []wire.RefUpdate{claim}, Objects: objs})
		v = mustLoad(t, s, id)
		c := fullChange(t, v, id)
		order = nil
		v, err := s.Push(t.Context(), v, c)
		want := []string{"refs/uwf/attempts/", "refs/heads/uwf-state", layout.StoreRef, "refs/heads/uwf/", "refs/uwf/claims/"}
		early := failing == want[0] || failing == want[1]
		if early {
			wantErr(t, err, ErrLostRace)
			continue
		}
		if err != nil || len(order) != len(want) {
			t.Fatalf("failing %q: %d pushes, %v", failing, len(order), err)
		}
		for i := range want {
			if !strings.HasPrefix(order[i], want[i]) {
				t.Errorf("push %d is of %s, want %s", i, order[i], want[i])
			}
		}
		if n := len(v.Lagging); (failing == "") != (n == 0) || n > 1 {
			t.Errorf("failing %q: lagging %v", failing, v.Lagging)
		}
		if got := mustLoad(t, calm, id); got.Tip() != v.Tip() {
			t.Errorf("failing %q: the step is not on the branch", failing)
		}
	}
}

// fullChange is a step with a work branch, an attempt and the claim's deletion.
func fullChange(t *testing.T, v *View, id ThreadID) *Change {
	t.Helper()
	c := stepChange(t, v, id, "developer", "everything")
	blob := wire.NewObject(plumbing.BlobObject, []byte("x"))
	tree := oneFile("f", blob.ID)
	sig := gitobj.Signature{Name: "a", Email: "b", When: time.Unix(1, 0)}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: tree.Object.ID, Author: sig, Committer: sig, Message: "work\n"})
	if err != nil {
		t.Fatal(err)
	}
	commit := wire.NewObject(plumbing.CommitObject, data)
	for _, o := range []wire.Object{blob, tree.Object, commit} {
		c.Objects = append(c.Objects, wire.PackObject{Object: o})
	}
	held, _ := v.FindClaim(id)
	release, _ := view.ClaimUpdate(id, &held, nil, v.Time())
	attempt, objs, err := BuildAttempt(Attempt{Thread: id, Run: "r", Attempt: 1, Parents: []wire.ID{commit.ID}, At: v.Time()})
	if err != nil {
		t.Fatal(err)
	}
	c.Objects = append(c.Objects, objs...)
	c.Refs = []wire.RefUpdate{release, {Name: "refs/heads/" + layout.WorkBranch(id), New: commit.ID}, attempt}
	return c
}

// TestReloadIsCheap: what is unchanged is not fetched again, and a job that reads
// again and again does not grow.
func TestReloadIsCheap(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	mine, other := threadID(1), threadID(2)
	threadWithSteps(t, Open(mem, testOptions()), mine, 3)
	threadWithSteps(t, Open(mem, testOptions()), other, 1)
	fetches, wants := 0, 0
	s := Open(&wrapped{Remote: mem, fetch: func(req wire.FetchRequest) error {
		fetches++
		wants += len(req.Wants)
		return nil
	}}, testOptions())
	v := mustLoad(t, s, mine)
	if fetches > 3 {
		t.Errorf("a load takes %d fetches", fetches)
	}
	if _, err := v.ReadChain(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	fetches = 0
	v, err := s.Reload(t.Context(), v, mine)
	if err != nil || fetches != 0 {
		t.Errorf("a reload without news takes %d fetches, %v", fetches, err)
	}
	var old []wire.ID
	for range 30 {
		old = append(old, v.Tip(), v.Root.Object.ID, v.Root.IDOf(layout.ThreadsName))
		by := Open(mem, testOptions())
		o := mustLoad(t, by, other)
		mustPush(t, by, o, stepChange(t, o, other, "a", "b"))
		fetches, wants = 0, 0
		if v, err = s.Reload(t.Context(), v, mine); err != nil {
			t.Fatal(err)
		}
		if fetches != 1 || wants != 1 {
			t.Errorf("another thread's step costs %d fetches of %d objects", fetches, wants)
		}
		if _, err := v.ReadChain(t.Context(), mine); err != nil || fetches != 1 {
			t.Fatalf("%d fetches, %v", fetches, err)
		}
	}
	for _, id := range old {
		if v.Reader.Has(id) {
			t.Errorf("the view still holds %s of an earlier tip", id)
		}
	}

	v = mustPush(t, s, v, stepChange(t, v, mine, "a", "b"))
	fetches = 0
	mem.SetHead(s.Branch())
	fresh, err := s.Load(t.Context(), mine)
	if s.Head() != s.Branch() {
		t.Errorf("the default branch is %q", s.Head())
	}
	if err != nil || fetches != 0 || fresh.Tip() != v.Tip() {
		t.Errorf("a load after a push of the same store takes %d fetches, %v", fetches, err)
	}
}

// TestOptions: branches and authors that git or the work branches don't allow.
func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Branch: "uwf"}, {Branch: "uwf/state"}, {Branch: "a..b"}, {Branch: "-x"}, {Branch: "a/"}, {Branch: "a b"}, {Branch: "x.lock"}, {Branch: "refs/heads/a~1"},
		{Author: gitobj.Author{Name: "a<b", Email: "c"}}, {Author: gitobj.Author{Name: "a\nb", Email: "c"}},
	} {
		s := Open(wiretest.NewMemory(wiretest.MemoryOptions{}), o)
		_, err := s.Init(t.Context())
		wantErr(t, err, ErrInvalid)
		_, err = s.Load(t.Context())
		wantErr(t, err, ErrInvalid)
	}
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	o := testOptions()
	o.Branch = "team/state"
	mustInit(t, Open(mem, o))
	if _, ok := mem.Refs()["refs/heads/team/state"]; !ok {
		t.Errorf("refs %v", mem.Refs())
	}
	_, err := Open(mem, testOptions()).Load(t.Context(), "no id")
	wantErr(t, err, ErrInvalid)
}

// TestLocalTip: a local branch of the same name.
func TestLocalTip(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	var local wire.ID
	o := testOptions()
	o.LocalTip = func(context.Context) (wire.ID, bool, error) { return local, !local.IsZero(), nil }
	s := Open(mem, o)
	local = wire.EmptyTree
	_, err := s.Init(t.Context())
	wantErr(t, err, ErrLocalDiffers) // it is here and not there
	local = wire.ZeroID
	v := mustInit(t, s)
	local = v.Tip()
	mustLoad(t, s)
	local = wire.EmptyTree
	_, err = s.Load(t.Context())
	wantErr(t, err, ErrLocalDiffers)
	broken := errors.New("no permission")
	s.o.LocalTip = func(context.Context) (wire.ID, bool, error) { return wire.ZeroID, false, broken }
	_, err = s.Load(t.Context())
	wantErr(t, err, broken)
}

// TestManyShared: with a large cas/ only what the thread needs is fetched.
func TestManyShared(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	v := mustInit(t, s)
	var nodes []PlacedNode
	for i := range 3 * maxSmallCas {
		nodes = append(nodes, placed(t, Place{}, node.String, fmt.Sprint("shared ", i)))
	}
	mustPush(t, s, v, &Change{Subject: "many", Nodes: nodes})
	threadWithSteps(t, s, threadID(1), 2)
	var fetched int
	s = Open(&wrapped{Remote: mem, fetch: func(req wire.FetchRequest) error { fetched += len(req.Wants); return nil }}, testOptions())
	v = mustLoad(t, s, threadID(1))
	before := fetched
	c, err := v.ReadChain(t.Context(), threadID(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Get(t.Context(), c.Start.Workflow); err != nil {
		t.Fatal(err)
	}
	if _, err := v.In(t.Context(), Place{Thread: threadID(1), Of: c.Steps[1].Hash}).Get(c.Steps[1].Output); err != nil {
		t.Fatal(err)
	}
	if fetched != before || before > 20 {
		t.Errorf("%d objects were fetched to load, %d more to read", before, fetched-before)
	}
	if n, err := v.Get(t.Context(), nodes[100].Hash); err != nil || n.Payload != "shared 100" {
		t.Errorf("a shared node that was not fetched: %v", err)
	}
	mustSound(t, s)
}

// TestOwnWorkBranch: an entry's work branch that is not the thread's own is listed
// too.
func TestOwnWorkBranch(t *testing.T) {
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
	s := Open(mem, testOptions())
	id := threadID(1)
	v := threadWithSteps(t, s, id, 0)
	e := mustEntry(t, v, id)
	e.Work = Work{Branch: "feature/x"}
	mustPush(t, s, v, &Change{Subject: "pr", Threads: map[ThreadID]*Entry{id: &e}})
	mem.SetRef("refs/heads/feature/x", v.Tip())
	mem.SetRef("refs/heads/feature/xy", v.Tip())
	v = mustLoad(t, s, id)
	for range 2 {
		if at, ok := v.Ref("refs/heads/feature/x"); !ok || at.IsZero() {
			t.Fatalf("refs %v", v.Refs())
		}
		if _, ok := v.Ref("refs/heads/feature/xy"); ok {
			t.Fatalf("refs %v", v.Refs())
		}
		var err error
		if v, err = s.Reload(t.Context(), v, id); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVanishingClaim: a claim that is deleted between the listing and the fetch is
// no error.
func TestVanishingClaim(t *testing.T) {
	for _, times := range []int{1, listings - 1, listings} {
		mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true})
		threadWithSteps(t, Open(mem, testOptions()), threadID(1), 1)
		left := times
		s := Open(&wrapped{Remote: mem, list: func(l *wire.Listing, err error) error {
			if left > 0 {
				left--
				l.Refs[layout.ClaimRef(threadID(1))] = plumbing.NewHash(strings.Repeat("1", 40))
			}
			return err
		}}, testOptions())
		v, err := s.Load(t.Context(), threadID(1))
		if times == listings {
			wantErr(t, err, wire.ErrNotFound)
			continue
		}
		if err != nil || len(v.Claims()) != 0 {
			t.Errorf("%d times: %v", times, err)
		}
	}
}

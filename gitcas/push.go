package gitcas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/commitmsg"
	"github.com/united-workforce/uwf/internal/lists"
)

// Push tries a change once, on top of v, and returns the store as it is after it.
// A branch or ref that moved is ErrLostRace; wire.ErrUnreachable leaves open
// whether it happened: Update finds out.
//
// On a remote that doesn't take so many refs at once, the refs are updated in parts, each with
// as many as it takes: attempts, the state branch with refs/uwf/store, work branches, claims.
// Without atomic pushes that is one by one. What comes after the state branch can fail without
// failing the push: the view's Lagging says so. How many it takes is learnt when it refuses
// more, and noted in VERSION by the next commit.
func (s *Store) Push(ctx context.Context, v *View, c *Change) (*View, error) {
	_, next, err := pusher{s}.tryPush(ctx, v, c)
	for errors.Is(err, errFewerRefs) {
		_, next, err = pusher{s}.tryPush(ctx, v, c)
	}
	return next, err
}

// errFewerRefs: a push was refused because it had too many refs, and the Store has learnt
// with how many to try again. Each is fewer than before.
var errFewerRefs = errors.New("with fewer refs the remote may take it")

// sending is a change as it was sent.
type sending struct {
	change    *Change
	base, tip wire.ID // of the state branch; equal: no commit
	updates   []wire.RefUpdate
	// answered: the remote took a part before the state branch's.
	answered bool
	// rest are those that go after the state branch where the change goes in parts, and
	// pending the objects for them.
	rest    []wire.RefUpdate
	pending *pending
}

// pusher pushes the parts of a change.
type pusher struct{ *Store }

// tryPush makes one push of a change.
func (s pusher) tryPush(ctx context.Context, v *View, c *Change) (*sending, *View, error) {
	switch {
	case s.err != nil:
		return nil, nil, s.err
	case v.Pinned:
		return nil, nil, fmt.Errorf("%w: a push on the view of an ended thread", ErrInvalid)
	}
	b := newBuilder(ctx, s.Store, v, c)
	if err := b.buildCommits(); err != nil {
		return nil, nil, err
	}
	updates := slices.Clone(c.Refs)
	if b.cur.Commit != v.Commit {
		mark, _ := v.Ref(layout.StoreRef)
		updates = append(updates, wire.RefUpdate{Name: s.source.Branch, Old: v.Commit, New: b.cur.Commit},
			wire.RefUpdate{Name: layout.StoreRef, Old: mark, New: b.cur.Commit})
	}
	updates = slices.DeleteFunc(updates, func(u wire.RefUpdate) bool { return u.Old == u.New })
	if len(updates) == 0 {
		return nil, v, nil
	}
	objs := append(slices.Clone(c.Objects), b.objs...)
	p := &sending{change: c, base: v.Commit, tip: b.cur.Commit, updates: updates}
	at, lagging, err := s.sendUpdates(ctx, s.refsAtOnce(v.Version), p, objs)
	if err != nil {
		return p, nil, err
	}
	landed := slices.DeleteFunc(slices.Clone(updates), func(u wire.RefUpdate) bool { return lagging[u.Name] != nil })
	next, err := v.After(b.cur, at, landed, c.Objects, b.stale)
	if err == nil {
		next.Lagging = lagging
		s.latest.Store(next)
	}
	return p, next, err
}

// sendUpdates pushes updates in one go where they are no more than most, else in parts: up to that
// with the state branch, which is tried once, then the rest.
func (s pusher) sendUpdates(ctx context.Context, most int, p *sending, objs []wire.PackObject) (time.Time, map[string]error, error) {
	if len(p.updates) <= most {
		at, err := s.pushOnce(ctx, p.updates, objs)
		return at, nil, err
	}
	slices.SortStableFunc(p.updates, func(x, y wire.RefUpdate) int { return s.rankUpdate(x) - s.rankUpdate(y) })
	p.pending = newPending(objs)
	var at time.Time
	for rest := p.updates; len(rest) > 0; {
		var part []wire.RefUpdate
		part, rest = s.firstPart(rest, most)
		objs := p.pending.takeReached(part)
		if !slices.ContainsFunc(part, func(u wire.RefUpdate) bool { return u.Name == s.source.Branch }) {
			if err := s.pushRefs(ctx, part, objs); err != nil {
				return at, nil, err
			}
			p.answered = true
			continue
		}
		p.rest = rest
		at, err := s.pushOnce(ctx, part, objs)
		if err != nil {
			return at, nil, err
		}
		return at, s.sendRest(ctx, most, p), nil
	}
	return at, nil, nil
}

// firstPart divides updates, which are in order, into those of the next push and the others.
// The state branch and the ref that marks it go together where two refs may.
func (s pusher) firstPart(updates []wire.RefUpdate, most int) (part, rest []wire.RefUpdate) {
	n := min(most, len(updates))
	if n > 1 && n < len(updates) && updates[n-1].Name == s.source.Branch && updates[n].Name == layout.StoreRef {
		n--
	}
	return updates[:n], updates[n:]
}

// PushesOfStep is in how many pushes a step that changed files goes where each may update so
// many refs.
func PushesOfStep(most int) (n int) {
	if most >= StepRefs {
		return 1
	}
	s := &Store{source: view.Source{Branch: layout.Heads + DefaultBranch}}
	rest := []wire.RefUpdate{{Name: layout.Attempts}, {Name: s.source.Branch}, {Name: layout.StoreRef}, {Name: layout.Heads + layout.WorkBranches}, {Name: layout.Claims}}
	for ; len(rest) > 0; n++ {
		_, rest = pusher{s}.firstPart(rest, max(most, 1))
	}
	return n
}

// pushOnce makes one push of updates that belong together.
func (s pusher) pushOnce(ctx context.Context, updates []wire.RefUpdate, objs []wire.PackObject) (time.Time, error) {
	at, err := s.source.Remote.Push(ctx, wire.PushRequest{Updates: updates, Objects: objs, Atomic: len(updates) > 1})
	return at, s.learnRefLimit(err, len(updates))
}

// learnRefLimit takes note where a push of so many refs was refused because they are too many.
func (s *Store) learnRefLimit(err error, tried int) error {
	most, ok := wire.RefLimitAfter(err, tried)
	if !ok {
		return err
	}
	for old := s.learnt.Load(); old == 0 || old > int64(most); old = s.learnt.Load() {
		if s.learnt.CompareAndSwap(old, int64(most)) {
			break
		}
	}
	return fmt.Errorf("%w: %w", errFewerRefs, err)
}

// sendRest pushes what goes after the state branch. What fails is brought up by a later
// job: the state branch has the change.
func (s pusher) sendRest(ctx context.Context, most int, p *sending) (lagging map[string]error) {
	lagging = map[string]error{}
	for rest := p.rest; len(rest) > 0; {
		var part []wire.RefUpdate
		part, rest = s.firstPart(rest, most)
		objs := p.pending.takeReached(part)
		err := s.pushRefs(ctx, part, objs)
		refused := errors.Is(err, ErrLostRace) || errors.Is(err, wire.ErrProtected)
		for _, u := range part {
			if refused && len(part) > 1 { // by one of them, perhaps
				err = s.PushRef(ctx, u, objs)
			}
			if err != nil {
				lagging[u.Name] = err
			}
		}
	}
	return lagging
}

// rankUpdate is the order of updates where they can't be made at once: what an agent
// produced is on a ref before anything else can fail, and the claim stays until
// all is done.
func (s pusher) rankUpdate(u wire.RefUpdate) int {
	switch name := u.Name; {
	case strings.HasPrefix(name, layout.Attempts) && !u.New.IsZero():
		return 0
	case name == s.source.Branch:
		return 1
	case name == layout.StoreRef:
		return 2
	case strings.HasPrefix(name, layout.Heads):
		return 3
	}
	return 4
}

// pending are objects that were not sent yet.
type pending struct {
	order []wire.PackObject
	byID  map[wire.ID]int
	sent  map[wire.ID]bool
}

func newPending(objs []wire.PackObject) *pending {
	p := &pending{order: objs, byID: make(map[wire.ID]int, len(objs)), sent: map[wire.ID]bool{}}
	for i, o := range objs {
		p.byID[o.ID] = i
	}
	return p
}

// takeReached returns the unsent objects that updates reach.
func (p *pending) takeReached(updates []wire.RefUpdate) []wire.PackObject {
	var picked []int
	todo := lists.Map(updates, func(u wire.RefUpdate) wire.ID { return u.New })
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		i, ok := p.byID[id]
		if !ok || p.sent[id] {
			continue
		}
		p.sent[id] = true
		picked = append(picked, i)
		todo = append(todo, objectRefs(p.order[i].Object)...)
	}
	slices.Sort(picked)
	return lists.Map(picked, func(i int) wire.PackObject { return p.order[i] })
}

// objectRefs are the objects that one refers to. Objects come from this program: one
// that can't be read refers to nothing here, and the remote will refuse it.
func objectRefs(o wire.Object) []wire.ID {
	var out []wire.ID
	switch o.Type {
	case plumbing.CommitObject:
		if c, err := gitobj.DecodeCommit(o.Data); err == nil {
			out = append(append(out, c.Tree), c.Parents...)
		}
	case plumbing.TreeObject:
		if entries, err := gitobj.DecodeTree(o.Data); err == nil {
			for _, e := range entries {
				out = append(out, e.ID)
			}
		}
	}
	return out
}

// Init makes the store where there is none, and reads the one that is there.
func (s *Store) Init(ctx context.Context) (*View, error) {
	o := s.o.outagePolicy().Begin()
	var failures wire.Refusals
	for try := 0; ; try++ {
		v, err := s.Load(ctx)
		if !errors.Is(err, ErrNoStore) {
			return v, err
		}
		err = pusher{s}.createBranch(ctx)
		if after, away := wire.IsOutage(err); away {
			if refusal := failures.NoteFailure(err); refusal != nil {
				err = refusal
			} else {
				err = o.WaitToRetry(ctx, err, after)
			}
		} else if errors.Is(err, errFewerRefs) || errors.Is(err, ErrLostRace) && try < listings {
			err = nil
		}
		if err != nil {
			return nil, fmt.Errorf("make the store: %w", err)
		}
	}
}

// createBranch pushes the first commit.
func (s pusher) createBranch(ctx context.Context) error {
	atomic, err := s.source.Remote.Atomic(ctx)
	if err != nil {
		return err
	}
	id := make([]byte, 16)
	if _, err := s.o.Rand.Read(id); err != nil {
		return fmt.Errorf("draw a store id: %w", err)
	}
	is := statefile.Version{Store: fmt.Sprintf("%x", id), Atomic: atomic, Refs: int(s.learnt.Load())}
	version, err := statefile.EncodeVersion(is)
	if err != nil {
		return err
	}
	root := &tree.Edit{}
	var objs []wire.PackObject
	for _, f := range []struct {
		name string
		data []byte
	}{
		{layout.ReadmeName, []byte(readmeText)}, {layout.VersionName, version},
		{layout.ThreadsName, statefile.NewThreads().Encode()}, {layout.RegistryName, statefile.NewRegistry().Encode()},
	} {
		o := wire.NewObject(plumbing.BlobObject, f.data)
		root.SetFile(f.name, o.ID)
		objs = append(objs, wire.PackObject{Object: o})
	}
	d, err := root.Write(ctx, nil, "", layout.RootFolder, nil, nil, func(d, _, _ *tree.Dir) { objs = append(objs, wire.PackObject{Object: d.Object}) })
	if err != nil {
		return err
	}
	msg, err := commitmsg.Message{Subject: "a store for uwf", SkipCI: true}.Format()
	if err != nil {
		return err
	}
	commit, err := s.commitObject(d.Object.ID, nil, msg, nil)
	if err != nil {
		return err
	}
	// A server that hides refs/uwf takes the branch alone, also in an atomic push.
	if err := s.tryBranchOnce(ctx, is, s.o.Branch, wire.ZeroID, commit, objs...); err != nil {
		return err
	}
	objs = append(objs, wire.PackObject{Object: commit})
	first := &sending{tip: commit.ID, updates: []wire.RefUpdate{{Name: s.source.Branch, New: commit.ID}, {Name: layout.StoreRef, New: commit.ID}}}
	_, _, err = s.sendUpdates(ctx, s.refsAtOnce(is), first, objs)
	return err
}

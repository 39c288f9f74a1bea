package gitcas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/outage"
)

// Bounds of the waits between two tries of Update that lost a race: full jitter below a
// bound that doubles from the one to the other. It begins at what a try took, and ends at
// mostTries times that: where many write to a slow server, each try makes all others slower,
// and they must be few enough at a time for one to come through.
const (
	firstWait = 20 * time.Millisecond
	mostWait  = 5 * time.Second
	mostTries = 16
)

// leastTries are made whatever the clock says: one slow answer must not end an
// Update that lost a single race.
const leastTries = 4

// leastRace is how long races are waited for where the job's time is over: a finished step is
// worth it, and a tenth of that time is left for what comes then.
const leastRace = 20 * time.Second

// lookBack is how many commits of the state branch are looked through for a push that
// nobody answered.
const lookBack = 1000

// Update pushes what build makes of a view, and when another job was first, or
// nobody knows whether the push was taken, reads the store again and asks build
// once more. A nil change means that nothing is left to do: the view is returned
// as it is. An error of build ends the Update and is returned.
//
// build need not look for its own change in the view: a push that got no answer is looked
// for in the branch's history (refs alone by their values) before build is asked again,
// and wherever it is found, the Update is done: Change.Landed tells build's caller which
// of its changes that was. Where it can't be told, the error matches ErrUnsure.
//
// An outage of the remote is waited for, see Options.Until. ids are the threads that build
// looks at.
func (s *Store) Update(ctx context.Context, v *View, build func(*View) (*Change, error), ids ...ThreadID) (*View, error) {
	u := &updating{s: s, ids: ids, tryBegan: s.o.Now()}
	for {
		c, err := build(v)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return v, nil
		}
		u.beginTry()

		sent, next, err := pusher{s}.tryPush(ctx, v, c)
		if err == nil {
			c.callLanded(next)
			return next, nil
		}

		failed := err
		if err := u.waitForRetry(ctx, sent, err); err != nil {
			return nil, u.markUnsure(err)
		}
		if v, err = s.Reload(ctx, v, ids...); err != nil {
			return nil, u.markUnsure(fmt.Errorf("update the state branch: %w", err))
		}

		switch landed, next, err := u.findLanded(ctx, v); {
		case err != nil:
			return nil, err
		case landed != nil:
			landed.change.callLanded(next)
			return next, nil
		case u.last != nil:
			return nil, u.markUnsure(u.last)
		}
		if err := u.findRefusal(ctx, v, sent, failed); err != nil {
			return nil, err
		}
	}
}

// updating is one Update.
type updating struct {
	s   *Store
	ids []ThreadID
	// unanswered are the pushes of which nobody knows whether they were taken: they may
	// still arrive, whatever the store showed since.
	unanswered []*sending
	outage     *outage.Outage
	// races is how many were lost since the remote was last away, the first of them at
	// lostSince.
	races     int
	lostSince time.Time
	toldAt    time.Time // when somebody was told of them; zero: nobody was
	// unmovedSince is when the first push failed of those that left all refs unmoved; zero: a ref has
	// moved since.
	unmovedSince time.Time
	tryBegan     time.Time // when the store was read for the last try
	// last is why nothing more is pushed, unless what was is found; nil: it may be.
	last error
}

// leastUnmoved is how long a server may show old values of refs that were moved.
const leastUnmoved = 5 * time.Second

// findRefusal returns an error if the server refuses the push without saying so: for
// [leastUnmoved] no push has come through, and nobody has moved a ref.
func (u *updating) findRefusal(ctx context.Context, v *View, sent *sending, failed error) error {
	refusal := wire.RefusalIn(failed)

	switch now := u.s.o.Now(); {
	case refusal == nil || v.Commit != sent.base:
		u.unmovedSince = time.Time{}
		return nil
	case u.unmovedSince.IsZero():
		u.unmovedSince = u.tryBegan
		return nil
	case now.Sub(u.unmovedSince) < leastUnmoved:
		return nil
	}

	l, err := u.s.source.Remote.List(ctx, lists.Map(sent.updates, func(c wire.RefUpdate) string { return c.Name })...)
	if err == nil && !slices.ContainsFunc(sent.updates, func(c wire.RefUpdate) bool { return l.Refs[c.Name] != c.Old }) {
		return fmt.Errorf("update the state branch: %w", refusal)
	}

	u.unmovedSince = time.Time{}
	return nil
}

// beginTry notes when an outage would have begun.
func (u *updating) beginTry() {
	if u.outage == nil {
		u.outage = u.s.o.outagePolicy().Begin()
	}
}

// waitForRetry waits before the next try, or returns why there is none.
func (u *updating) waitForRetry(ctx context.Context, sent *sending, err error) error {
	if sent == nil { // it failed before anything was pushed
		return err
	}
	unreadable := errors.Is(err, wire.ErrUnreadable)
	if unreadable || errors.Is(err, wire.ErrUnreachable) || errors.Is(err, wire.ErrUnconfirmed) {
		u.unanswered = append(u.unanswered, sent)
	}
	after, away := wire.IsOutage(err)
	switch {
	case unreadable && ctx.Err() == nil:
		u.last = err // something answered: it is looked for once
		return nil
	case away:
		if sent.answered { // so it has not been away since the try began
			u.outage = u.s.o.outagePolicy().Begin()
		}
		u.races = 0
		if err := u.outage.WaitToRetry(ctx, err, after); err != nil {
			return fmt.Errorf("update the state branch: %w", err)
		}
		return nil
	case errors.Is(err, errFewerRefs):
		u.outage = nil // it answered
		return nil
	case !errors.Is(err, ErrLostRace) || ctx.Err() != nil:
		return err
	}
	u.outage = nil
	now := u.s.o.Now()
	if u.races++; u.races == 1 {
		u.lostSince = now
	}
	if u.races > leastTries && now.After(u.raceDeadline()) {
		return fmt.Errorf("update the state branch: others were faster for %s: %w", now.Sub(u.lostSince).Round(time.Second), err)
	}
	wait := u.s.waitAfterRace(u.races-1, now.Sub(u.tryBegan))
	u.tellRaces(wait)
	if werr := u.s.o.Sleep(ctx, wait); werr != nil {
		return fmt.Errorf("update the state branch: %w: %w", werr, err)
	}
	u.tryBegan = u.s.o.Now()
	return nil
}

// raceDeadline is when an Update that keeps losing races gives up.
func (u *updating) raceDeadline() time.Time {
	most := u.s.o.RetryFor
	if end := u.s.o.Until; !end.IsZero() {
		most = min(most, max(leastRace, end.Sub(u.lostSince)))
	}
	return u.lostSince.Add(most)
}

// Bounds of the silence of an Update that keeps losing races.
const (
	firstWord = 5 * time.Second
	nextWord  = 30 * time.Second
)

// tellRaces says now and then that others keep being faster: nothing else shows that a job waits.
func (u *updating) tellRaces(wait time.Duration) {
	after := u.s.o.Now().Add(wait)
	if u.s.o.Waiting == nil || after.Sub(u.lostSince) < firstWord || !u.toldAt.IsZero() && after.Sub(u.toldAt) < nextWord {
		return
	}
	u.toldAt = u.s.o.Now()
	err := fmt.Errorf("waiting for the state branch, try %d: %w", u.races, ErrLostRace)
	u.s.o.Waiting(outage.Wait{Err: err, For: wait, Until: u.raceDeadline()})
}

// waitAfterRace is the time before a try: anything from zero to a bound that grows, so
// that jobs which collided spread out. took is what the last try took.
func (s *Store) waitAfterRace(races int, took time.Duration) time.Duration {
	most := min(max(mostWait, mostTries*took), outage.MostWait)
	bound := min(max(firstWait, took)<<min(races, 8), most)
	return time.Duration(s.o.Jitter() * float64(bound))
}

// markUnsure makes the error that ends an Update say so where a push of it may have been
// taken.
func (u *updating) markUnsure(err error) error {
	if len(u.unanswered) == 0 || errors.Is(err, ErrUnsure) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnsure, err)
}

// findLanded looks in a view for the pushes that nobody answered. It returns the one that
// was taken, nil where none was, and the store with it.
func (u *updating) findLanded(ctx context.Context, v *View) (*sending, *View, error) {
	if len(u.unanswered) == 0 {
		return nil, nil, nil
	}
	for _, p := range u.unanswered {
		if p.tip != p.base {
			continue
		}
		switch taken, err := wire.CheckPushLanded(ctx, u.s.source.Remote, p.updates); {
		case err != nil:
			return nil, nil, u.markUnsure(err)
		case taken:
			if v, err = u.s.Reload(ctx, v, u.ids...); err != nil {
				return nil, nil, u.markUnsure(err)
			}
			return p, v, nil
		}
	}
	p, err := u.findCommit(ctx, v)
	if p == nil || err != nil || len(p.rest) == 0 {
		return p, v, err
	}
	lagging := pusher{u.s}.sendRest(ctx, u.s.refsAtOnce(v.Version), p)
	if v, err = u.s.Reload(ctx, v, u.ids...); err != nil {
		return nil, nil, u.markUnsure(fmt.Errorf("what was pushed is on the state branch: %w", err))
	}
	v.Lagging = lagging
	return p, v, nil
}

// findCommit looks for the commits of the unanswered pushes in the history of a view's tip,
// back to where the first of them was made.
func (u *updating) findCommit(ctx context.Context, v *View) (*sending, error) {
	byTip := map[wire.ID]*sending{}
	var base wire.ID
	for _, p := range u.unanswered {
		if p.tip == p.base {
			continue
		}
		if byTip[p.tip] = p; base.IsZero() {
			base = p.base
		}
	}
	if len(byTip) == 0 || v.Commit == base {
		return nil, nil
	}
	var found *sending
	known := false
	err := u.s.walkBack(ctx, v.Commit, base, lookBack, func(id wire.ID) bool {
		found = byTip[id]
		known = known || id == base
		return found == nil
	})
	switch {
	case err != nil:
		return nil, u.markUnsure(fmt.Errorf("look for a push that was not answered: %w", err))
	case found == nil && !known:
		return nil, u.markUnsure(fmt.Errorf("the history of %s was rewritten meanwhile, or is longer than what is looked through", u.s.o.Branch))
	}
	return found, nil
}

// walkBack gives the commits from tip back to ancestor, and no further, to visit, until it
// returns false. It fetches commits alone, and of these only what lies between the two,
// at most depth (0: all) on a line. An ancestor that is not visited is not among them.
func (s *Store) walkBack(ctx context.Context, tip, ancestor wire.ID, depth int, visit func(wire.ID) bool) error {
	objs, err := s.source.Remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{tip}, Haves: []wire.ID{ancestor}, Filter: tree.OnlyWanted, Depth: depth})
	if err != nil {
		return fmt.Errorf("read the history of %s: %w", s.o.Branch, err)
	}
	seen := map[wire.ID]bool{}
	for todo := []wire.ID{tip}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[id] {
			continue
		}
		seen[id] = true
		if !visit(id) {
			return nil
		}
		o, ok := objs[id]
		if id == ancestor || !ok || o.Type != plumbing.CommitObject {
			continue
		}
		c, err := gitobj.DecodeCommit(o.Data)
		if err != nil {
			return tree.DamagedBy("commit "+id.String(), err)
		}
		todo = append(todo, c.Parents...)
	}
	return nil
}

// PushRef moves a ref that is no part of a change of the state branch, or deletes it. An
// outage is waited for; a push that got no answer is proved by the ref's value. A ref that
// somebody else moved is ErrLostRace.
func (s *Store) PushRef(ctx context.Context, u wire.RefUpdate, objs []wire.PackObject) error {
	if s.err != nil {
		return s.err
	}
	return s.pushRefs(ctx, []wire.RefUpdate{u}, objs)
}

// pushRefs moves refs at once, as PushRef moves one.
func (s *Store) pushRefs(ctx context.Context, updates []wire.RefUpdate, objs []wire.PackObject) error {
	_, err := wire.PushRefs(ctx, s.source.Remote, s.o.outagePolicy(), wire.PushRequest{Updates: updates, Objects: objs, Atomic: len(updates) > 1})
	return s.learnRefLimit(err, len(updates))
}

package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// ErrLost is the cause with which a running agent is stopped when its claim
// is gone: taken over, or the thread was suspended or cancelled.
var ErrLost = errors.New("the claim was lost")

// Lease is a claim that is to be won, or was.
type Lease struct {
	k     *Keeper
	id    gitcas.ThreadID
	who   Identity // the job that holds it
	nonce string   // tells the claim from all others; empty: there is none
	terms Terms

	// Entry is the thread's, as it was when the claim was won.
	Entry gitcas.Entry
	// Budget is what the agent may use: the claim is charged the tenths of it that were
	// begun.
	Budget task.Budget
	// HandsOver: another job commits what this one does, under the same claim, which that lets
	// go.
	HandsOver bool
	// Latest is the store as it was looked at last. It belongs to Watch while that runs.
	Latest *gitcas.View

	mu   sync.Mutex
	held gitcas.Held
	// skew is the server's clock minus ours at its last answer.
	skew time.Duration
	gone bool // deleted, or known to be somebody else's
}

// Nonce tells the claim from all others; empty where there is none.
func (l *Lease) Nonce() string {
	if l == nil {
		return ""
	}
	return l.nonce
}

// Owns reports whether a claim is this one.
func (l *Lease) Owns(c gitcas.Claim) bool { return l.nonce != "" && c.Nonce == l.nonce }

// ServerTime is the time by the server's clock.
func (l *Lease) ServerTime() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.k.Clock.Now().Add(l.skew)
}

// Current is the claim as it was seen last, and whether it is still this job's.
func (l *Lease) Current() (gitcas.Held, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held, !l.gone
}

// NoteClaim takes note of a claim that a push of this job left, or, with gone, deleted.
func (l *Lease) NoteClaim(held gitcas.Held, gone bool) {
	l.mu.Lock()
	l.held, l.gone = held, gone
	l.mu.Unlock()
}

// awaitClaimable looks whether the thread can be claimed: the claim that is there does not count. A
// claim is judged against the head at the tip of the same listing; but a
// listing may have caught a push halfway, with the claim of a head that is not yet there. So
// one that only counts for nothing because of its head is looked at once more.
func (l *Lease) awaitClaimable(ctx context.Context, v *gitcas.View) (*gitcas.View, error) {
	var seen, stood wire.ID
	for range listings {
		entry, ok := v.Entry(l.id)
		if !ok || entry.Head != l.Entry.Head {
			return nil, life.Refuse(l.terms.claimedDeed(), l.id, "it moved on while we were claiming it")
		}
		old, claimed := v.FindClaim(l.id)
		switch {
		case !claimed || l.terms.Take != nil || l.Owns(old.Claim):
			return v, nil
		case !l.k.IsAlive(v, old.Claim):
			if _, known := l.k.checkAlive(old.Claim); known || !v.TimeGuessed() || old.ID == stood {
				return v, nil
			}
			stood = old.ID
			if err := l.awaitStandstill(ctx, old); err != nil {
				return nil, err
			}
		case old.ID == seen && old.Head != entry.Head:
			return v, nil
		case old.Head == entry.Head:
			return nil, life.RefuseClaimed(l.terms.claimedDeed(), l.id, old.Claim)
		}
		seen = old.ID
		var err error
		if v, err = l.k.Store.Reload(ctx, v, l.id); err != nil {
			return nil, err
		}
	}
	return nil, life.Refuse(l.terms.claimedDeed(), l.id, othersClaim)
}

// awaitStandstill waits for as long as a claim must stand unchanged that is dead by a clock which
// may be wrong.
func (l *Lease) awaitStandstill(ctx context.Context, old gitcas.Held) error {
	l.k.Notice(l.id, fmt.Sprintf(
		"run %s (attempt %d) on %s seems to have died; its store tells no time, so the thread is taken over in %.0f minutes if nothing is heard of it",
		text.OneLine(old.Run), old.Attempt, text.OneLine(old.Host), Standstill.Minutes()))
	passed, cancel := l.k.Clock.After(Standstill)
	defer cancel()
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listings bounds how often a claim is looked at that is another one each time.
const (
	listings    = 5
	othersClaim = "others claim it again and again"
)

// releaseUnknown looks for the claim, whose reply was lost, and deletes it.
func (l *Lease) releaseUnknown(ctx context.Context) {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.ReleaseGrace)
	defer cancel()
	if v, err := l.k.Store.Load(ctx, l.id); err == nil {
		l.Adopt(v)
		l.Release(ctx)
	}
}

// A claim is read as hostile: what it says of others that died goes into the
// thread's entry, which must stay writable and small.
var diedPattern = lazyregexp.New(`^[0-9A-Za-z_-]{1,100}\.[0-9]{1,9}$`)

const maxDied = 100

// buildClaim puts the claim on the thread, as v allows it, in place of one that does not count;
// nil where it is there: of a push that was not answered, another job may have moved one
// ref on since, so that the Store can't tell.
func (l *Lease) buildClaim(ctx context.Context, v *gitcas.View) (*gitcas.Change, error) {
	v, err := l.awaitClaimable(ctx, v)
	if err != nil {
		return nil, err
	}
	old, claimed := v.FindClaim(l.id)
	if claimed && l.Owns(old.Claim) {
		return nil, nil
	}
	if l.terms.Take != nil {
		*l.terms.Take = old
	}
	c := l.newClaim(v, l.Entry.Head)
	change := &gitcas.Change{}
	var prev *gitcas.Held
	if claimed {
		prev = &old
		if old.Head == c.Head {
			change.Refs, c.Died = RecordDeadClaim(v, l.id, old, l.terms.Purpose)
		}
	}
	upd, objs := view.ClaimUpdate(l.id, prev, &c, v.Time())
	change.Refs = append(change.Refs, upd)
	change.Objects = objs
	return change, nil
}

// newClaim is the claim that says so, on a head of the thread.
func (l *Lease) newClaim(v *gitcas.View, head node.Hash) gitcas.Claim {
	w, t := l.who, l.terms
	c := gitcas.Claim{
		Nonce: l.nonce, Run: w.Run, Attempt: w.Attempt, Job: w.Job, Host: w.Host, Boot: w.Boot, PIDNS: w.PIDNS, PID: w.PID, Started: w.Started,
		Head: head, For: string(t.Purpose), Since: v.Time().UnixMilli(), Until: t.endsAt(v.Time()).UnixMilli(),
	}
	c.Renewed, c.ReserveTokens, c.ReserveUSD = c.Since, t.Budget.Tokens, t.Budget.CostUSD
	c.Tokens, c.CostUSD = t.Budget.Charge(0, 0)
	if t.Ahead { // nobody will say what is used
		c.Ahead = true
		c.Tokens, c.CostUSD = t.Budget.Tokens, t.Budget.CostUSD
	}
	return c
}

// RecordDeadClaim makes an attempt of a claim whose job died on the thread's present head:
// the claim's commit is kept as the attempt's ref, for the record. died names all
// jobs that died on this head, oldest first: while they stepped, or where the new
// claim is for that, while they delivered.
func RecordDeadClaim(v *gitcas.View, id gitcas.ThreadID, old gitcas.Held, purpose life.Deed) (keep []wire.RefUpdate, died []string) {
	if (old.For == life.ForDelivery) != (purpose == life.Deliver) {
		return nil, nil
	}
	died = slices.DeleteFunc(slices.Clone(old.Died), func(name string) bool { return !diedPattern.MatchString(name) })
	died = died[:min(len(died), maxDied)]
	if old.For != "" && old.For != life.ForDelivery {
		return nil, died // a person's: neither was tried
	}
	ref := layout.AttemptRef(id, old.Run, max(old.Attempt, 0))
	if _, there := v.Ref(ref); !there {
		keep = append(keep, wire.RefUpdate{Name: ref, New: old.ID})
	}
	return keep, append(died, strings.TrimPrefix(ref, layout.AttemptRefs(id)))
}

// DropClaim is the update that deletes a thread's claim.
func DropClaim(id gitcas.ThreadID, held gitcas.Held) wire.RefUpdate {
	return wire.RefUpdate{Name: layout.ClaimRef(id), Old: held.ID}
}

// Recheck lists the refs once more after the claim was won: only a thread that
// is still as it was loaded may be worked on.
func (l *Lease) Recheck(ctx context.Context, v *gitcas.View) (*gitcas.View, error) {
	fresh, err := l.k.Store.Reload(ctx, v, l.id)
	if err != nil {
		l.Adopt(v)
		l.Release(ctx)
		return nil, fmt.Errorf("read thread %s again after claiming it: %w", l.id, err)
	}
	l.Adopt(fresh)
	if _, ok := l.Current(); !ok {
		return nil, life.Refuse(l.terms.claimedDeed(), l.id, "another run took it over")
	}
	entry, ok := fresh.Entry(l.id)
	if !ok || !reflect.DeepEqual(life.WithoutEffects(entry), life.WithoutEffects(l.Entry)) {
		l.Release(ctx)
		return nil, life.Refuse(l.terms.claimedDeed(), l.id, "it changed while we were claiming it")
	}
	l.Latest = fresh
	return fresh, nil
}

// Adopt takes the claim as v shows it.
func (l *Lease) Adopt(v *gitcas.View) {
	held, ok := v.FindClaim(l.id)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skew = v.Time().Sub(l.k.Clock.Now())
	if l.HandsOver && l.nonce == "" {
		entry, _ := v.Entry(l.id)
		l.gone = ok && l.k.Counts(v, held.Claim, entry)
		return
	}
	if !ok || !l.Owns(held.Claim) {
		l.gone = true
		return
	}
	l.held, l.gone = held, false
}

// Watch keeps the claim alive until ctx ends, but for one that was made ahead, and looks
// whether it and the thread are still there: when they are lost it calls stop and returns.
// The bell is the meter's.
func (l *Lease) Watch(ctx context.Context, m *task.Meter, bell <-chan struct{}, stop func(error)) {
	began := l.k.Clock.Now()
	renewed, unrenewed := began, time.Duration(0)
	for begun := l.Budget.TenthsBegun(0, 0); ; {
		every := WatchEvery
		if l.k.Clock.Now().Sub(began) >= watchClosely {
			every = 2 * WatchEvery
		}
		if !l.waitFor(ctx, every, bell, func() bool { return l.countTenths(m) > begun }) {
			return
		}
		unrenewed += every
		var err error
		if now, n := l.k.Clock.Now(), l.countTenths(m); !l.held.Ahead && (n > begun || max(unrenewed, now.Sub(renewed)) >= RenewEvery) {
			if err = l.renewClaim(ctx, m); err == nil {
				renewed, unrenewed, begun = now, 0, n
				l.k.Reached("renew")
			}
		} else {
			_, err = l.readClaim(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrLost):
			stop(err)
			return
		}
		// Unreachable: the next look tries again. The commit checks the claim
		// anyway, so working on costs at most this run's tokens.
	}
}

// waitFor waits for a time, or until something is due, which is asked when the bell rings.
// It reports whether ctx lasts.
func (l *Lease) waitFor(ctx context.Context, d time.Duration, bell <-chan struct{}, due func() bool) bool {
	tick, cancel := l.k.Clock.After(d)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return ctx.Err() == nil
		case <-bell:
			if due() {
				return ctx.Err() == nil
			}
		}
	}
}

func (l *Lease) countTenths(m *task.Meter) int {
	return l.Budget.TenthsBegun(m.Tokens(), m.Usage().CostUSD)
}

// readClaim reads the refs, and the thread's entry where the branch moved: the claim is lost
// where it or the thread are not as they were. A suspend or cancel that did not see the
// claim leaves it in place, so the claim alone does not tell.
func (l *Lease) readClaim(ctx context.Context) (gitcas.Held, error) {
	v, err := l.k.Store.Reload(ctx, l.Latest, l.id)
	if err != nil {
		return gitcas.Held{}, err
	}
	return l.CheckView(v)
}

// CheckView takes a view that was just read for the latest, and checks that claim and thread
// are as they were: otherwise the error is ErrLost.
func (l *Lease) CheckView(v *gitcas.View) (gitcas.Held, error) {
	l.Latest = v
	l.Adopt(v)
	held, ok := l.Current()
	entry, alive := v.Entry(l.id)
	if !ok || !alive || !life.SameThread(entry, l.Entry) {
		return held, ErrLost
	}
	return held, nil
}

// renewClaim looks at claim and thread, and renews the claim where both are as they were.
func (l *Lease) renewClaim(ctx context.Context, m *task.Meter) error {
	if _, err := l.readClaim(ctx); err != nil {
		return err
	}
	v, err := l.k.Store.Update(ctx, l.Latest, func(v *gitcas.View) (*gitcas.Change, error) {
		held, err := l.CheckView(v)
		if err != nil {
			return nil, err
		}
		c := held.Claim
		u := m.Usage()
		c.Renewed, c.Unpriced = l.ServerTime().UnixMilli(), u.Unpriced
		c.Tokens, c.CostUSD = l.Budget.Charge(m.Tokens(), u.CostUSD)
		upd, objs := view.ClaimUpdate(l.id, &held, &c, l.ServerTime())
		return &gitcas.Change{
			Refs: []wire.RefUpdate{upd}, Objects: objs,
			Landed: func(*gitcas.View) { l.NoteClaim(gitcas.Held{ID: upd.New, Claim: c}, false) },
		}, nil
	}, l.id)
	if err == nil {
		l.Latest = v
	}
	return err
}

// Release deletes the claim, if it is still this job's. It tries a few times and
// then gives up: a claim that stays is dead when its time is over, and to this engine
// at once. Nil is none.
func (l *Lease) Release(ctx context.Context) {
	if l == nil || l.HandsOver {
		return
	}
	l.k.Released.Store(l.nonce, true)
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.ReleaseGrace)
	defer cancel()
	for range listings {
		held, ok := l.Current()
		if !ok {
			return
		}
		err := l.k.Store.PushRef(ctx, DropClaim(l.id, held), nil)
		if err == nil {
			l.NoteClaim(held, true)
			return
		}
		if !errors.Is(err, wire.ErrLostRace) {
			return
		}
		v, err := l.k.Store.Load(ctx, l.id) // a renewal that was cut off may have landed
		if err != nil {
			return
		}
		l.Adopt(v)
	}
}

// Leave ends the use of a claim for work that is kept on this machine, and leaves the claim on
// the thread: nobody else pays for that work meanwhile. Its job is seen to be over by its
// process, or by its run. If nobody could see that, the claim stays for Release.
func (l *Lease) Leave() {
	held, _ := l.Current()
	if _, known := l.k.checkAlive(held.Claim); known {
		l.k.Released.Store(held.Nonce, true)
		l.NoteClaim(held, true)
	}
}

// AgentTime is how long the agent may run whose timeout is t (0: none), so that what it
// did is sealed and committed while the claim lives.
func (l *Lease) AgentTime(t time.Duration) time.Duration {
	held, _ := l.Current()
	left := time.UnixMilli(held.Until).Add(-SealingTime).Sub(l.ServerTime())
	if l.HandsOver {
		left -= queueTime
	}
	left = max(left, time.Second)
	if t == 0 {
		return left
	}
	return min(t, left)
}

// ResumeClaim goes on with the claim that went out with the commit of the step before, if it is
// still on the thread as v shows it, which was read after that.
func (l *Lease) ResumeClaim(v *gitcas.View, entry gitcas.Entry, budget task.Budget) bool {
	l.Adopt(v)
	held, ok := l.Current()
	if !ok || held.Head != entry.Head {
		return false
	}
	l.Entry, l.Latest, l.Budget = entry, v, budget
	return true
}

// ExchangeClaim is the update of a thread's claim that goes out with a step's commit: away,
// or, where next is not nil, to that of the next step on the new head.
func ExchangeClaim(next *Lease, v *gitcas.View, id gitcas.ThreadID, held gitcas.Held, head node.Hash) (wire.RefUpdate, []wire.PackObject, gitcas.Held) {
	if next == nil {
		return DropClaim(id, held), nil, gitcas.Held{}
	}
	c := next.newClaim(v, head)
	upd, objs := view.ClaimUpdate(id, &held, &c, v.Time())
	return upd, objs, gitcas.Held{ID: upd.New, Claim: c}
}

// What is done about claims, and when.
const (
	// RenewEvery is how long an agent runs between two renewals of its claim.
	RenewEvery = 4 * time.Minute
	// WatchEvery is how often a job looks whether its claim and thread are still there;
	// half as often from the time on that is watchClosely.
	WatchEvery   = 15 * time.Second
	watchClosely = 10 * time.Minute

	// ClaimSpare is what a claim lives longer than its job should need it.
	ClaimSpare = 20 * time.Minute
	// SealingTime is what is left of a claim when its agent is stopped.
	SealingTime = deadline.SealTimeout + 2*time.Minute
	// queueTime is how long each of two jobs that share a claim may wait for its runner.
	queueTime = 30 * time.Minute
	// DeliveryTime is how long a delivery should take.
	DeliveryTime = 20 * time.Minute
	// DeedTime is how long what a person does should take.
	DeedTime = time.Minute
	// Standstill is how long a claim must not have moved that is dead by a guessed clock.
	Standstill = 5 * time.Minute
)

// Terms are what a thread is claimed for.
type Terms struct {
	Purpose life.Deed     // what the claim is for; empty: a step
	Work    time.Duration // how long its agent, or whoever else works, may take; 0: as long as a claim may live
	Budget  task.Budget   // what its agent may use
	Ahead   bool          // it is for jobs that are yet to be started
	// Take, where it is not nil, takes whatever claim there is, on a person's word, which is
	// put here.
	Take *gitcas.Held
}

// endsAt is when a claim on these terms is over that is made at a time.
func (t Terms) endsAt(since time.Time) time.Time {
	lasts := t.Work + SealingTime + ClaimSpare
	if t.Ahead {
		lasts += 2 * queueTime
	}
	if t.Work == 0 || lasts > life.MaxClaim {
		lasts = life.MaxClaim
	}
	return since.Add(lasts)
}

// TookOver reports whether a claim was taken from somebody else.
func (t Terms) TookOver() bool { return t.Take != nil && !t.Take.ID.IsZero() }

// claimedDeed is what the claim is for.
func (t Terms) claimedDeed() life.Deed { return cmp.Or(t.Purpose, life.Step) }

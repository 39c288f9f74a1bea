package thread

import (
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
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// errClaimLost is the cause with which a running agent is stopped when its claim
// is gone: taken over, or the thread was suspended or cancelled.
var errClaimLost = errors.New("the claim was lost")

// hold is a claim that is to be won, or was.
type hold struct {
	e     *Engine
	id    gitcas.ThreadID
	who   Identity     // the job that holds it
	nonce string       // tells the claim from all others; empty: there is none
	entry gitcas.Entry // the thread's, as it was when the claim was won
	// budget is what the agent may use: the claim is charged the tenths of it that were
	// begun.
	budget    task.Budget
	handsOver bool // another job commits what this one does, under the same claim

	// latest is the store as it was looked at last. It belongs to watch while that
	// runs.
	latest *gitcas.View

	mu   sync.Mutex
	held gitcas.Held
	// skew is the server's clock minus ours at its last answer.
	skew time.Duration
	gone bool // deleted, or known to be somebody else's
}

// own reports whether a claim is this one.
func (h *hold) own(c gitcas.Claim) bool { return h.nonce != "" && c.Nonce == h.nonce }

func (h *hold) serverNow() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.e.Clock.Now().Add(h.skew)
}

func (h *hold) current() (gitcas.Held, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held, !h.gone
}

func (h *hold) set(held gitcas.Held, gone bool) {
	h.mu.Lock()
	h.held, h.gone = held, gone
	h.mu.Unlock()
}

// newHold is a claim that is to be won on those terms.
func (e *Engine) newHold(id gitcas.ThreadID, who Identity, t terms) (*hold, error) {
	h := &hold{e: e, id: id, who: who, nonce: e.Nonce(), budget: t.budget}
	if h.nonce == "" {
		return nil, fmt.Errorf("claim thread %s: there are no random numbers to tell the claim from others by", id)
	}
	return h, nil
}

// claim takes the thread, as it stands in v, for this job. The returned view is
// a fresh one, read after the claim was won; the entry in it equals v's.
func (e *Engine) claim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t terms) (*gitcas.View, *hold, error) {
	won, h, err := e.winClaim(ctx, v, id, t)
	if err != nil {
		return nil, nil, err
	}
	return h.recheck(ctx, won)
}

// winClaim is claim without the second look.
func (e *Engine) winClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t terms) (*gitcas.View, *hold, error) {
	loaded, _ := v.Entry(id)
	h, err := e.newHold(id, e.Who, t)
	if err != nil {
		return nil, nil, err
	}
	h.entry = loaded
	won, err := e.Store.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) { return h.change(ctx, v, t) }, id)
	switch {
	case err == nil:
		e.reached("claim")
		h.adopt(won)
		return won, h, nil
	case errors.Is(err, gitcas.ErrUnsure):
		h.dropUnknown(ctx)
	default:
		e.dropClaim(ctx, v, id)
	}
	if errors.Is(err, wire.ErrLostRace) {
		return nil, nil, &life.NotYoursError{Thread: id, Reason: "others claim it again and again"}
	}
	return nil, nil, fmt.Errorf("claim thread %s: %w", id, err)
}

// judge looks whether the thread can be claimed: the claim that is there does not count. A
// claim is judged against the head at the tip of the same listing; but a
// listing may have caught a push halfway, with the claim of a head that is not yet there. So
// one that only counts for nothing because of its head is looked at once more.
func (h *hold) judge(ctx context.Context, v *gitcas.View, t terms) (*gitcas.View, error) {
	var seen, stood wire.ID
	for range listings {
		entry, ok := v.Entry(h.id)
		if !ok || entry.Head != h.entry.Head {
			return nil, &life.NotYoursError{Thread: h.id, Reason: "it moved on while we were claiming it"}
		}
		old, claimed := v.Claim(h.id)
		switch {
		case !claimed || t.take != nil || h.own(old.Claim):
			return v, nil
		case !h.e.alive(v, old.Claim):
			if _, known := h.e.known(old.Claim); known || !v.TimeGuessed() || old.ID == stood {
				return v, nil
			}
			stood = old.ID
			if err := h.standBy(ctx, old); err != nil {
				return nil, err
			}
		case old.ID == seen && old.Head != entry.Head:
			return v, nil
		case old.Head == entry.Head:
			return nil, &life.NotYoursError{Thread: h.id, Reason: (&life.ClaimedError{Claim: old.Claim}).Error(), Cause: &life.ClaimedError{Claim: old.Claim}}
		}
		seen = old.ID
		var err error
		if v, err = h.e.Store.Reload(ctx, v, h.id); err != nil {
			return nil, err
		}
	}
	return nil, &life.NotYoursError{Thread: h.id, Reason: "others claim it again and again"}
}

// standBy waits for as long as a claim must stand unchanged that is dead by a clock which
// may be wrong.
func (h *hold) standBy(ctx context.Context, old gitcas.Held) error {
	h.e.observe(Event{Kind: "notice", Thread: h.id, Text: fmt.Sprintf(
		"run %s (attempt %d) on %s seems to have died; its store tells no time, so the thread is taken over in %.0f minutes if nothing is heard of it",
		text.OneLine(old.Run), old.Attempt, text.OneLine(old.Host), standstill.Minutes())})
	passed, cancel := h.e.Clock.After(standstill)
	defer cancel()
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listings bounds how often a claim is looked at that is another one each time.
const listings = 5

// dropClaim deletes a claim of this job that v shows: one whose process ended before it
// could. A step that had begun under it on the thread's head counts as an attempt, and what
// it used; where that can't be written down the claim stays, for who claims the thread next.
func (e *Engine) dropClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) {
	held, claimed := v.Claim(id)
	if !claimed || !e.leftBehind(v, held.Claim) {
		return
	}
	if held.For == "" {
		ctx, cancel := deadline.Outlive(ctx, 0, deadline.ReleaseGrace)
		defer cancel()
		var err error
		if v, err = e.FreeClaim(ctx, v, id); err != nil {
			return
		}
		if held, claimed = v.Claim(id); !claimed || !e.leftBehind(v, held.Claim) {
			return
		}
	}
	h := &hold{e: e, id: id, nonce: held.Nonce, held: held}
	h.release(ctx)
}

// dropUnknown looks for the claim, whose reply was lost, and deletes it.
func (h *hold) dropUnknown(ctx context.Context) {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.ReleaseGrace)
	defer cancel()
	if v, err := h.e.Store.Load(ctx, h.id); err == nil {
		h.adopt(v)
		h.release(ctx)
	}
}

// A claim is read as hostile: what it says of others that died goes into the
// thread's entry, which must stay writable and small.
var diedPattern = lazyregexp.New(`^[0-9A-Za-z_-]{1,100}\.[0-9]{1,9}$`)

const maxDied = 100

// change puts the claim on the thread, as v allows it, in place of one that does not count;
// nil where it is there: of a push that was not answered, another job may have moved one
// ref on since, so that the Store can't tell.
func (h *hold) change(ctx context.Context, v *gitcas.View, t terms) (*gitcas.Change, error) {
	v, err := h.judge(ctx, v, t)
	if err != nil {
		return nil, err
	}
	old, claimed := v.Claim(h.id)
	if claimed && h.own(old.Claim) {
		return nil, nil
	}
	if t.take != nil {
		*t.take = old
	}
	c := h.newClaim(v, h.entry.Head, t)
	change := &gitcas.Change{}
	var prev *gitcas.Held
	if claimed {
		prev = &old
		if old.Head == c.Head {
			change.Refs, c.Died = h.e.bury(v, h.id, old, c.For)
		}
	}
	upd, objs := gitcas.ClaimUpdate(h.id, prev, &c, v.Time())
	change.Refs = append(change.Refs, upd)
	change.Objects = objs
	return change, nil
}

// newClaim is the claim that says so, on a head of the thread.
func (h *hold) newClaim(v *gitcas.View, head node.Hash, t terms) gitcas.Claim {
	w := h.who
	c := gitcas.Claim{
		Nonce: h.nonce, Run: w.Run, Attempt: w.Attempt, Job: w.Job, Host: w.Host, Boot: w.Boot, PIDNS: w.PIDNS, PID: w.PID, Started: w.Started,
		Head: head, For: t.purpose, Since: v.Time().UnixMilli(), Until: t.until(v.Time()).UnixMilli(),
	}
	c.Renewed = c.Since
	c.Tokens, c.CostUSD = t.budget.Charge(0, 0)
	if t.ahead { // nobody will say what is used
		c.Ahead = true
		c.Tokens, c.CostUSD = t.budget.Tokens, t.budget.CostUSD
	}
	return c
}

// bury makes an attempt of a claim whose job died on the thread's present head:
// the claim's commit is kept as the attempt's ref, for the record. died names all
// jobs that died on this head, oldest first: while they stepped, or where the new
// claim is for that, while they delivered.
func (*Engine) bury(v *gitcas.View, id gitcas.ThreadID, old gitcas.Held, purpose string) (keep []wire.RefUpdate, died []string) {
	if (old.For == life.ForDelivery) != (purpose == life.ForDelivery) {
		return nil, nil
	}
	died = slices.DeleteFunc(slices.Clone(old.Died), func(name string) bool { return !diedPattern.MatchString(name) })
	died = died[:min(len(died), maxDied)]
	if old.For != "" && old.For != life.ForDelivery {
		return nil, died // a person's: neither was tried
	}
	ref := gitcas.AttemptRef(id, old.Run, max(old.Attempt, 0))
	if _, there := v.Ref(ref); !there {
		keep = append(keep, wire.RefUpdate{Name: ref, New: old.ID})
	}
	return keep, append(died, strings.TrimPrefix(ref, gitcas.AttemptRefPrefix(id)))
}

// recheck lists the refs once more after the claim was won: only a thread that
// is still as it was loaded may be worked on.
func (h *hold) recheck(ctx context.Context, v *gitcas.View) (*gitcas.View, *hold, error) {
	fresh, err := h.e.Store.Reload(ctx, v, h.id)
	if err != nil {
		h.adopt(v)
		h.release(ctx)
		return nil, nil, fmt.Errorf("read thread %s again after claiming it: %w", h.id, err)
	}
	h.adopt(fresh)
	if _, ok := h.current(); !ok {
		return nil, nil, &life.NotYoursError{Thread: h.id, Reason: "another run took it over"}
	}
	entry, ok := fresh.Entry(h.id)
	if !ok || !reflect.DeepEqual(life.WithoutEffects(entry), life.WithoutEffects(h.entry)) {
		h.release(ctx)
		return nil, nil, &life.NotYoursError{Thread: h.id, Reason: "it changed while we were claiming it"}
	}
	h.latest = fresh
	return fresh, h, nil
}

// adopt takes the claim as v shows it.
func (h *hold) adopt(v *gitcas.View) {
	held, ok := v.Claim(h.id)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.skew = v.Time().Sub(h.e.Clock.Now())
	if !ok || !h.own(held.Claim) {
		h.gone = true
		return
	}
	h.held, h.gone = held, false
}

// watch keeps the claim alive until ctx ends, but for one that was made ahead, and looks
// whether it and the thread are still there: when they are lost it calls stop and returns.
// The bell is the meter's.
func (h *hold) watch(ctx context.Context, m *task.Meter, bell <-chan struct{}, stop func(error)) {
	began := h.e.Clock.Now()
	renewed, unrenewed := began, time.Duration(0)
	for begun := h.budget.TenthsBegun(0, 0); ; {
		every := WatchEvery
		if h.e.Clock.Now().Sub(began) >= watchClosely {
			every = 2 * WatchEvery
		}
		if !h.sleep(ctx, every, bell, func() bool { return h.begun(m) > begun }) {
			return
		}
		unrenewed += every
		var err error
		if now, n := h.e.Clock.Now(), h.begun(m); !h.held.Ahead && (n > begun || max(unrenewed, now.Sub(renewed)) >= RenewEvery) {
			if err = h.renew(ctx, m); err == nil {
				renewed, unrenewed, begun = now, 0, n
				h.e.reached("renew")
			}
		} else {
			_, err = h.look(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errClaimLost):
			stop(err)
			return
		}
		// Unreachable: the next look tries again. The commit checks the claim
		// anyway, so working on costs at most this run's tokens.
	}
}

// sleep waits for a time, or until something is due, which is asked when the bell rings.
// It reports whether ctx lasts.
func (h *hold) sleep(ctx context.Context, d time.Duration, bell <-chan struct{}, due func() bool) bool {
	tick, cancel := h.e.Clock.After(d)
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

func (h *hold) begun(m *task.Meter) int { return h.budget.TenthsBegun(m.Tokens(), m.Usage().CostUSD) }

// look reads the refs, and the thread's entry where the branch moved: the claim is lost
// where it or the thread are not as they were. A suspend or cancel that did not see the
// claim leaves it in place, so the claim alone does not tell.
func (h *hold) look(ctx context.Context) (gitcas.Held, error) {
	v, err := h.e.Store.Reload(ctx, h.latest, h.id)
	if err != nil {
		return gitcas.Held{}, err
	}
	return h.see(v)
}

// see is look at a view that was just read.
func (h *hold) see(v *gitcas.View) (gitcas.Held, error) {
	h.latest = v
	h.adopt(v)
	held, ok := h.current()
	entry, alive := v.Entry(h.id)
	if !ok || !alive || !life.SameThread(entry, h.entry) {
		return held, errClaimLost
	}
	return held, nil
}

// renew looks at claim and thread, and renews the claim where both are as they were.
func (h *hold) renew(ctx context.Context, m *task.Meter) error {
	if _, err := h.look(ctx); err != nil {
		return err
	}
	v, err := h.e.Store.Update(ctx, h.latest, func(v *gitcas.View) (*gitcas.Change, error) {
		held, err := h.see(v)
		if err != nil {
			return nil, err
		}
		c := held.Claim
		u := m.Usage()
		c.Renewed, c.Unpriced = h.serverNow().UnixMilli(), u.Unpriced
		c.Tokens, c.CostUSD = h.budget.Charge(m.Tokens(), u.CostUSD)
		upd, objs := gitcas.ClaimUpdate(h.id, &held, &c, h.serverNow())
		return &gitcas.Change{
			Refs: []wire.RefUpdate{upd}, Objects: objs,
			Landed: func(*gitcas.View) { h.set(gitcas.Held{ID: upd.New, Claim: c}, false) },
		}, nil
	}, h.id)
	if err == nil {
		h.latest = v
	}
	return err
}

// release deletes the claim, if it is still this job's. It tries a few times and
// then gives up: a claim that stays is dead when its time is over, and to this engine
// at once.
func (h *hold) release(ctx context.Context) {
	h.e.letGo.Store(h.nonce, true)
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.ReleaseGrace)
	defer cancel()
	for range listings {
		held, ok := h.current()
		if !ok {
			return
		}
		upd, _ := gitcas.ClaimUpdate(h.id, &held, nil, h.serverNow())
		err := h.e.Store.PushRef(ctx, upd, nil)
		if err == nil {
			h.set(held, true)
			return
		}
		if !errors.Is(err, wire.ErrLostRace) {
			return
		}
		v, err := h.e.Store.Load(ctx, h.id) // a renewal that was cut off may have landed
		if err != nil {
			return
		}
		h.adopt(v)
	}
}

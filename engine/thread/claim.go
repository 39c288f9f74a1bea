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

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// claimTries bounds how often a claim push is repeated when its answer is lost.
const claimTries = 5

// errClaimLost is the cause with which a running agent is stopped when its claim
// is gone: taken over, or the thread was suspended or cancelled.
var errClaimLost = errors.New("the claim was lost")

// own reports whether a claim is this job's.
func (e *Engine) own(c gitcas.Claim) bool {
	return c.Run == e.Who.Run && c.Attempt == e.Who.Attempt
}

// counts reports whether somebody else's claim keeps this job out: it is on the
// thread's present head and alive.
func (e *Engine) counts(c gitcas.Claim, entry gitcas.Entry, now time.Time) bool {
	return c.Head == entry.Head && e.alive(c, now)
}

func (e *Engine) alive(c gitcas.Claim, now time.Time) bool {
	if c.Run == e.Who.Run && c.Attempt < e.Who.Attempt {
		return false // a re-run of the same job: the first attempt's time is over
	}
	if e.Who.Alive != nil && c.Host == e.Who.Host && c.Boot != "" && c.Boot == e.Who.Boot && !e.Who.Alive(c.PID) {
		return false
	}
	return ClaimAlive(c, now)
}

// hold is a won claim.
type hold struct {
	e     *Engine
	id    gitcas.ThreadID
	entry gitcas.Entry // the thread's, as it was when the claim was won

	// latest is the store as the last renewal saw it. It belongs to the renewal
	// while that runs.
	latest *gitcas.View

	mu   sync.Mutex
	held gitcas.Held
	// skew is the server's clock minus ours at its last answer.
	skew time.Duration
	gone bool // deleted, or known to be somebody else's
}

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

// claimedError says inside a NotYoursError that somebody else is at work.
type claimedError struct{ gitcas.Claim }

func (e *claimedError) Error() string {
	switch e.For {
	case "":
	case forDelivery:
		return fmt.Sprintf("run %s (attempt %d) on %s is delivering it, last heard of at %s",
			oneLine(e.Run), e.Attempt, oneLine(e.Host), text.Time(time.UnixMilli(e.Renewed)))
	default:
		return fmt.Sprintf("somebody on %s is about to do something else with it (%s)", oneLine(e.Host), oneLine(e.For))
	}
	return fmt.Sprintf("run %s (attempt %d) on %s is working on it, last heard of at %s",
		oneLine(e.Run), e.Attempt, oneLine(e.Host), text.Time(time.UnixMilli(e.Renewed)))
}

// claim takes the thread, as it stands in v, for this job. The returned view is
// a fresh one, read after the claim was won; the entry in it equals v's. purpose is
// empty for a step.
func (e *Engine) claim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, purpose string) (*gitcas.View, *hold, error) {
	loaded, _ := v.Entry(id)
	unsure := false // whether a claim of ours may be there that we know nothing of
	for try := 0; ; try++ {
		won, err := e.claimOnce(ctx, v, id, loaded, purpose)
		if err == nil {
			return e.recheck(ctx, won, id, loaded)
		}
		unsure = unsure || errors.Is(err, wire.ErrUnreachable)
		if retryable(err) && try < claimTries {
			var next *gitcas.View
			if next, err = e.Store.Reload(ctx, v, id); err == nil {
				v = next
				continue
			}
		}
		if unsure {
			e.dropUnknown(ctx, id)
		} else {
			e.dropClaim(ctx, v, id)
		}
		if errors.Is(err, wire.ErrLostRace) {
			return nil, nil, &NotYoursError{Thread: id, Reason: "others claim it again and again"}
		}
		return nil, nil, fmt.Errorf("claim thread %s: %w", id, err)
	}
}

// claimOnce judges the claim that v shows, and pushes our own. It returns the view
// in which the thread is ours.
func (e *Engine) claimOnce(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, loaded gitcas.Entry, purpose string) (*gitcas.View, error) {
	entry, ok := v.Entry(id)
	if !ok || entry.Head != loaded.Head {
		return nil, &NotYoursError{Thread: id, Reason: "it moved on while we were claiming it"}
	}
	old, claimed := v.Claim(id)
	if claimed && e.own(old.Claim) && old.Head == entry.Head {
		return v, nil // a lost reply
	}
	if claimed && e.counts(old.Claim, entry, v.Time()) {
		return nil, &NotYoursError{Thread: id, Reason: (&claimedError{old.Claim}).Error(), cause: &claimedError{old.Claim}}
	}
	next, err := e.pushClaim(ctx, v, id, gitcas.Claim{Head: entry.Head, For: purpose}, old, claimed)
	if err == nil {
		e.reached("claim")
	}
	return next, err
}

// dropClaim deletes a claim of this job that v shows: one whose process ended
// before it could.
func (e *Engine) dropClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) {
	h := &hold{e: e, id: id}
	h.adopt(v)
	h.release(ctx)
}

// dropUnknown looks for a claim of this job whose reply was lost, and deletes it.
func (e *Engine) dropUnknown(ctx context.Context, id gitcas.ThreadID) {
	ctx, cancel := outlive(ctx, 0, releaseGrace)
	defer cancel()
	if v, err := e.Store.Load(ctx, id); err == nil {
		e.dropClaim(ctx, v, id)
	}
}

// A claim is read as hostile: what it says of others that died goes into the
// thread's entry, which must stay writable and small.
var diedPattern = lazyregexp.New(`^[0-9A-Za-z_-]{1,100}\.[0-9]{1,9}$`)

const maxDied = 100

// retryable: the push lost a race, or nobody knows whether it happened.
func retryable(err error) bool {
	return errors.Is(err, wire.ErrLostRace) || errors.Is(err, wire.ErrUnreachable)
}

// pushClaim pushes a claim, which says on what head and what for.
func (e *Engine) pushClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, c gitcas.Claim, old gitcas.Held, claimed bool) (*gitcas.View, error) {
	c.Run, c.Attempt, c.Host, c.Boot, c.PID = e.Who.Run, e.Who.Attempt, e.Who.Host, e.Who.Boot, e.Who.PID
	c.Since = v.Time().UnixMilli()
	c.Renewed = c.Since
	var change gitcas.Change
	var prev *gitcas.Held
	if claimed {
		prev = &old
		if old.Head == c.Head {
			change.Refs, c.Died = e.bury(v, id, old, c.For)
		}
	}
	upd, objs := gitcas.ClaimUpdate(id, prev, &c, v.Time())
	change.Refs = append(change.Refs, upd)
	change.Objects = objs
	return e.Store.Push(ctx, v, &change)
}

// bury makes an attempt of a claim whose job died on the thread's present head:
// the claim's commit is kept as the attempt's ref, for the record. died names all
// jobs that died on this head, oldest first: while they stepped, or where the new
// claim is for that, while they delivered.
func (*Engine) bury(v *gitcas.View, id gitcas.ThreadID, old gitcas.Held, purpose string) (keep []wire.RefUpdate, died []string) {
	if (old.For == forDelivery) != (purpose == forDelivery) {
		return nil, nil
	}
	died = slices.DeleteFunc(slices.Clone(old.Died), func(name string) bool { return !diedPattern.MatchString(name) })
	died = died[:min(len(died), maxDied)]
	if old.For != "" && old.For != forDelivery {
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
func (e *Engine) recheck(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, loaded gitcas.Entry) (*gitcas.View, *hold, error) {
	h := &hold{e: e, id: id, entry: loaded}
	fresh, err := e.Store.Reload(ctx, v, id)
	if err != nil {
		h.adopt(v)
		h.release(ctx)
		return nil, nil, fmt.Errorf("read thread %s again after claiming it: %w", id, err)
	}
	h.adopt(fresh)
	if _, ok := h.current(); !ok {
		return nil, nil, &NotYoursError{Thread: id, Reason: "another run took it over"}
	}
	entry, ok := fresh.Entry(id)
	if !ok || !reflect.DeepEqual(withoutEffects(entry), withoutEffects(loaded)) {
		h.release(ctx)
		return nil, nil, &NotYoursError{Thread: id, Reason: "it changed while we were claiming it"}
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
	if !ok || !h.e.own(held.Claim) {
		h.gone = true
		return
	}
	h.held, h.gone = held, false
}

// renew keeps the claim alive until ctx ends. When the claim or the thread turns
// out to be lost it calls stop and returns.
func (h *hold) renew(ctx context.Context, m *Meter, stop func(error)) {
	for {
		tick, cancel := h.e.Clock.After(RenewEvery)
		select {
		case <-ctx.Done():
			cancel()
			return
		case <-tick:
		}
		err := h.renewOnce(ctx, m)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errClaimLost):
			stop(err)
			return
		case err == nil:
			h.e.reached("renew")
		}
		// Unreachable: the next tick tries again. The commit checks the claim
		// anyway, so working on costs at most this run's tokens.
	}
}

// renewOnce looks at claim and thread, and renews the claim where both are as they
// were. A suspend or cancel that did not see the claim leaves it in place, so the
// claim alone does not tell.
func (h *hold) renewOnce(ctx context.Context, m *Meter) error {
	var err error
	for range claimTries {
		var v *gitcas.View
		if v, err = h.e.Store.Reload(ctx, h.latest, h.id); err != nil {
			return err
		}
		h.latest = v
		h.adopt(v)
		held, ok := h.current()
		entry, alive := v.Entry(h.id)
		if !ok || !alive || !sameThread(entry, h.entry) {
			return errClaimLost
		}
		c := held.Claim
		u := m.Usage()
		c.Renewed, c.Tokens, c.CostUSD, c.Unpriced = h.serverNow().UnixMilli(), m.Tokens(), u.CostUSD, u.Unpriced
		upd, objs := gitcas.ClaimUpdate(h.id, &held, &c, h.serverNow())
		if v, err = h.e.Store.Push(ctx, v, &gitcas.Change{Refs: []wire.RefUpdate{upd}, Objects: objs}); err == nil {
			h.latest = v
			h.set(gitcas.Held{ID: upd.New, Claim: c}, false)
			return nil
		}
		if !retryable(err) {
			return err
		}
	}
	return err
}

// release deletes the claim, if it is still this job's. It tries a few times and
// then gives up: a claim that stays is dead three minutes later.
func (h *hold) release(ctx context.Context) {
	ctx, cancel := outlive(ctx, 0, releaseGrace)
	defer cancel()
	for range claimTries {
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

// ClaimedByJob reports whether a claim is a job's, for a step or a delivery, and not that
// of a command by which a person changes the thread.
func ClaimedByJob(c gitcas.Claim) bool { return c.For == "" || c.For == forDelivery }

// ClaimAlive reports whether a claim's job is to be taken for running, as far as
// its last renewal says. One from the future says nothing: were it believed, a
// wrong clock could keep everybody out for good.
func ClaimAlive(c gitcas.Claim, now time.Time) bool {
	return now.Sub(time.UnixMilli(c.Renewed)).Abs() < ClaimLife
}

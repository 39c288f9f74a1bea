// Package lease claims threads: one job works on a thread at a time, as long as its claim is
// on the store and alive. Times are in the server's clock.
package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Identity names the job that works: it is written into its claims and steps.
type Identity struct {
	Run     string // CI run id, or a random id on a laptop: [0-9A-Za-z-]+
	Attempt int    // from 1; a re-run of the same job raises it
	// CIRun is the CI run that Run belongs to, and begins with; empty: Run is all.
	CIRun string
	// Job is the job's name in its CI run: the jobs of a matrix share it, and so do all
	// attempts. Over are the names of those of this run and attempt that are over.
	Job  string
	Over []string
	// Killed are those of Over that came to no end of their own. Ahead is the nonce of the
	// claim that was made ahead for this run's jobs; empty: none.
	Killed []string
	Ahead  string
	Host   string
	Boot   string // the machine's boot id; empty where unknown
	// PIDNS is the pid namespace, PID the process in it, Started when that began: in ticks
	// since the boot. Empty and 0: not known.
	PIDNS   string
	PID     int
	Started int64
	// Alive reports whether a process of this pid namespace is still there that began at
	// a time. Nil: not known.
	Alive func(pid int, started int64) bool
}

// RecordRun is the job, as records have it.
func (who Identity) RecordRun() record.Run { return record.Run{ID: who.Run, Attempt: who.Attempt} }

// Keeper claims threads for a job. All fields are required.
type Keeper struct {
	Store *gitcas.Store
	Clock deadline.Clock
	Who   Identity
	// NewNonce returns a random word that tells one claim from all others; empty: none can
	// be had.
	NewNonce func() string
	// Released holds the nonces of the claims that this process let go, deleted or not.
	Released *sync.Map
	// Notice is told what a person should know, Reached the name of each durable point.
	Notice  func(id gitcas.ThreadID, text string)
	Reached func(point string)
}

// NewLease is a claim on a thread, which is to be won on those terms by the job that is named.
func (k *Keeper) NewLease(id gitcas.ThreadID, who Identity, t Terms) (*Lease, error) {
	l := &Lease{k: k, id: id, who: who, nonce: k.NewNonce(), terms: t, Budget: t.Budget}
	if l.nonce == "" {
		return nil, fmt.Errorf("claim thread %s: there are no random numbers to tell the claim from others by", id)
	}
	return l, nil
}

// Win puts a claim on a thread, as it stands in v. It is not to be worked under before
// Recheck, or before who works under it has read the thread anew.
func (k *Keeper) Win(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t Terms) (*gitcas.View, *Lease, error) {
	l, err := k.NewLease(id, k.Who, t)
	if err != nil {
		return nil, nil, err
	}
	l.Entry, _ = v.Entry(id)
	won, err := k.Store.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) { return l.buildClaim(ctx, v) }, id)
	switch {
	case err == nil:
		k.Reached("claim")
		l.Adopt(won)
		return won, l, nil
	case errors.Is(err, gitcas.ErrUnsure):
		l.releaseUnknown(ctx)
	}
	switch {
	case life.KindOf(err) == life.KindNotYours:
		return nil, nil, err
	case errors.Is(err, wire.ErrLostRace):
		return nil, nil, life.Refuse(t.claimedDeed(), id, othersClaim)
	}
	return nil, nil, fmt.Errorf("claim thread %s: %w", id, err)
}

// NewUnclaimedLease is a lease without a claim: for the server's clock, and to look at a thread.
func (k *Keeper) NewUnclaimedLease(v *gitcas.View, id gitcas.ThreadID, entry gitcas.Entry) *Lease {
	l := &Lease{k: k, id: id, Entry: entry}
	l.Adopt(v)
	return l
}

// Continue goes on with the claim of a nonce that was made ahead for the thread's next step, if it is on
// the thread; nil: it is not.
func (k *Keeper) Continue(v *gitcas.View, id gitcas.ThreadID, nonce string, budget task.Budget) *Lease {
	entry, _ := v.Entry(id)
	held, claimed := v.FindClaim(id)
	if !claimed || nonce == "" || held.Nonce != nonce || !held.Ahead || held.Head != entry.Head {
		return nil
	}
	l := &Lease{k: k, id: id, who: k.Who, nonce: nonce, Entry: entry, Budget: budget, Latest: v}
	l.Adopt(v)
	return l
}

// Pretend is a claim that is put nowhere, for a job that can push nothing and was not claimed
// for: it gives way to any claim that counts.
func (k *Keeper) Pretend(v *gitcas.View, id gitcas.ThreadID, t Terms) (*Lease, error) {
	entry, _ := v.Entry(id)
	if held, claimed := v.FindClaim(id); claimed && k.Counts(v, held.Claim, entry) {
		return nil, life.RefuseClaimed(t.claimedDeed(), id, held.Claim)
	}
	t.Ahead = true
	l := &Lease{k: k, id: id, who: k.Who, terms: t, Entry: entry, Budget: t.Budget, Latest: v, HandsOver: true}
	l.held.Claim = l.newClaim(v, entry.Head)
	l.Adopt(v)
	return l, nil
}

// Release deletes a claim that is on a thread.
func (k *Keeper) Release(ctx context.Context, id gitcas.ThreadID, held gitcas.Held) {
	(&Lease{k: k, id: id, nonce: held.Nonce, held: held}).Release(ctx)
}

// Counts reports whether a claim that v shows keeps others out: it is on the thread's
// present head and alive.
func (k *Keeper) Counts(v *gitcas.View, c gitcas.Claim, entry gitcas.Entry) bool {
	return c.Head == entry.Head && k.IsAlive(v, c)
}

// IsAlive reports whether the job of a claim that v shows is to be taken for running. What
// this machine, or this run, knows for certain goes before what the claim says of itself.
func (k *Keeper) IsAlive(v *gitcas.View, c gitcas.Claim) bool {
	return k.IsAliveAt(c, v.Time(), v.TimeGuessed())
}

// IsAliveAt is IsAlive at a time of the server, which may be a guess.
func (k *Keeper) IsAliveAt(c gitcas.Claim, now time.Time, guessed bool) bool {
	if alive, known := k.checkAlive(c); known {
		return alive
	}
	return life.AliveAt(c, now, guessed)
}

// IsSurelyDead reports whether a claim's job is dead by more than a guessed clock: then it need
// not stand for a while before it is taken away.
func (k *Keeper) IsSurelyDead(v *gitcas.View, c gitcas.Claim) bool {
	if alive, known := k.checkAlive(c); known {
		return !alive
	}
	return !v.TimeGuessed() && !k.IsAlive(v, c)
}

// checkAlive reports whether a claim's job is running, where that is known without a clock.
func (k *Keeper) checkAlive(c gitcas.Claim) (alive, known bool) {
	if k.IsOver(c) {
		return false, true
	}
	if w := k.Who; w.Alive != nil && !c.Ahead && c.Host == w.Host && c.Boot != "" && c.Boot == w.Boot && c.PIDNS != "" && c.PIDNS == w.PIDNS && c.Started > 0 {
		return w.Alive(c.PID, c.Started), true
	}
	return false, false
}

// IsOver reports whether a claim is one that this engine has let go, of an earlier
// attempt of this job, or of a job of this run that is known to be over. One that was made
// ahead is over with the jobs that it was made for, or where its maker was killed, that may
// never have started them.
func (k *Keeper) IsOver(c gitcas.Claim) bool {
	if _, over := k.Released.Load(c.Nonce); over && c.Nonce != "" {
		return true
	}
	if c.Ahead && c.Nonce != "" && c.Nonce == k.Who.Ahead {
		return len(k.Who.Over) > 0
	}
	if !k.isSameRun(c) {
		return false
	}
	if c.Ahead {
		return c.Attempt == k.Who.Attempt && slices.Contains(k.Who.Killed, c.Job)
	}
	return c.Job == k.Who.Job && c.Attempt < k.Who.Attempt || c.Attempt == k.Who.Attempt && slices.Contains(k.Who.Over, c.Job)
}

// isSameRun reports whether a claim's job belongs to this job's CI run.
func (k *Keeper) isSameRun(c gitcas.Claim) bool {
	run := cmp.Or(k.Who.CIRun, k.Who.Run)
	return c.Run == run || k.Who.CIRun != "" && strings.HasPrefix(c.Run, run+"-")
}

// IsLeftBehind reports whether a claim is one of this job whose process ended before it
// could let it go.
func (k *Keeper) IsLeftBehind(v *gitcas.View, c gitcas.Claim) bool {
	return k.isSameRun(c) && c.Job == k.Who.Job && !k.IsAlive(v, c)
}

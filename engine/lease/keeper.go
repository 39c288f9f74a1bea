// Package lease claims threads: one job works on a thread at a time, as long as its claim is
// on the store and alive. Times are in the server's clock.
package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
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

// New is a claim on a thread, which is to be won on those terms by the job that is named.
func (k *Keeper) New(id gitcas.ThreadID, who Identity, t Terms) (*Lease, error) {
	l := &Lease{k: k, id: id, who: who, nonce: k.NewNonce(), terms: t, Budget: t.Budget}
	if l.nonce == "" {
		return nil, fmt.Errorf("claim thread %s: there are no random numbers to tell the claim from others by", id)
	}
	return l, nil
}

// Win puts a claim on a thread, as it stands in v. It is not to be worked under before
// Recheck, or before who works under it has read the thread anew.
func (k *Keeper) Win(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t Terms) (*gitcas.View, *Lease, error) {
	l, err := k.New(id, k.Who, t)
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
		return nil, nil, life.Refuse(t.deed(), id, othersClaim)
	}
	return nil, nil, fmt.Errorf("claim thread %s: %w", id, err)
}

// Observe is a lease without a claim: for the server's clock, and to look at a thread.
func (k *Keeper) Observe(v *gitcas.View, id gitcas.ThreadID, entry gitcas.Entry) *Lease {
	l := &Lease{k: k, id: id, Entry: entry}
	l.Adopt(v)
	return l
}

// Continue goes on with the claim of a nonce that was made ahead for the thread's next step, if it is on
// the thread; nil: it is not.
func (k *Keeper) Continue(v *gitcas.View, id gitcas.ThreadID, nonce string, budget task.Budget) *Lease {
	entry, _ := v.Entry(id)
	held, claimed := v.Claim(id)
	if !claimed || nonce == "" || held.Nonce != nonce || !held.Ahead || held.Head != entry.Head {
		return nil
	}
	l := &Lease{k: k, id: id, who: k.Who, nonce: nonce, Entry: entry, Budget: budget, Latest: v}
	l.Adopt(v)
	return l
}

// Release deletes a claim that is on a thread.
func (k *Keeper) Release(ctx context.Context, id gitcas.ThreadID, held gitcas.Held) {
	(&Lease{k: k, id: id, nonce: held.Nonce, held: held}).Release(ctx)
}

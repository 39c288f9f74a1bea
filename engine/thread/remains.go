package thread

import (
	"context"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
)

// Remains are what the jobs of a CI run left of their work on a thread's present head.
type Remains struct {
	Step  bool // the head itself: one of them committed it
	Claim bool
	// Died: an attempt of a job that ended without a word, or in the middle of its work.
	Died bool
	// Told: an attempt that failed, in a job that lived to say so.
	Told bool
}

// FindRemains looks for what some jobs left on the head of a thread that a view was loaded
// for. ours says which jobs are meant, by the run and attempt that they write down.
func (e *Engine) FindRemains(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, ours func(run string, attempt int) bool) (Remains, error) {
	var found Remains
	entry, _ := v.Entry(id)
	if held, claimed := v.Claim(id); claimed && held.Head == entry.Head {
		found.Claim = e.Leases().IsOver(held.Claim) || !held.Ahead && ours(held.Run, held.Attempt)
	}
	chain, err := v.Chain(ctx, id)
	if err != nil {
		return found, err
	}
	if n := len(chain.Steps); n > 0 && chain.Steps[n-1].Run != nil {
		run := chain.Steps[n-1].Run
		found.Step = ours(run.ID, run.Attempt)
	}
	for _, ref := range entry.Attempts {
		name := strings.TrimPrefix(ref, layout.AttemptRefs(id))
		dot := max(strings.LastIndexByte(name, '.'), 0)
		n, err := strconv.Atoi(strings.TrimPrefix(name[dot:], "."))
		if err != nil || !ours(name[:dot], n) {
			continue
		}
		died, err := attempt.HasDied(ctx, e.Store, v, ref)
		if err != nil {
			return found, err
		}
		found.Died, found.Told = found.Died || died, found.Told || !died
	}
	return found, nil
}

// ReleaseAhead deletes the claim that was made ahead for this run, whose jobs never began.
func (e *Engine) ReleaseAhead(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) {
	if held, claimed := v.Claim(id); claimed && held.Nonce != "" && held.Nonce == e.Who.Ahead {
		e.Leases().Release(ctx, id, held)
	}
}

// FreeClaim takes away a claim on a thread's head whose job is known to be dead, and links
// it as an attempt: the next job need not wait until everybody takes it for dead. It
// returns the store after that, and does nothing where the claim counts.
func (e *Engine) FreeClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*gitcas.View, error) {
	return e.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		held, claimed := v.Claim(id)
		if !alive || !claimed || held.Head != entry.Head || e.Leases().Counts(v, held.Claim, entry) {
			return nil, nil
		}
		keep, died := lease.RecordDeadClaim(v, id, held, life.Deed(held.For))
		life.LinkAttempts(&entry, id, died)
		c := &gitcas.Change{Refs: append(keep, lease.Drop(id, held))}
		return story.SetEntry(c, id, entry, "its job died", life.DescribeDeath(held.Claim), nil), nil
	}, id)
}

package thread

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
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
	if held, claimed := v.FindClaim(id); claimed && held.Head == entry.Head {
		found.Claim = e.Leases().IsOver(held.Claim) || !held.Ahead && ours(held.Run, held.Attempt)
	}
	chain, err := v.ReadChain(ctx, id)
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
	if held, claimed := v.FindClaim(id); claimed && held.Nonce != "" && held.Nonce == e.Who.Ahead {
		e.Leases().Release(ctx, id, held)
	}
}

// FreeClaim takes away a claim on a thread's head whose job is known to be dead, and links
// it as an attempt: the next job need not wait until everybody takes it for dead. It
// returns the store after that, and does nothing where the claim counts.
func (e *Engine) FreeClaim(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*gitcas.View, error) {
	return e.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		held, claimed := v.FindClaim(id)
		if !alive || !claimed || held.Head != entry.Head || e.Leases().Counts(v, held.Claim, entry) {
			return nil, nil
		}
		keep, died := lease.RecordDeadClaim(v, id, held, life.Deed(held.For))
		life.LinkAttempts(&entry, id, died)
		life.NoteClaim(&entry, v, id)
		c := &gitcas.Change{Refs: append(keep, lease.DropClaim(id, held))}
		what := "its job died"
		if chain, err := v.ReadChain(ctx, id); err == nil && entry.Next != nil {
			what = fmt.Sprintf("%s's job died · step %d", entry.Next.Role, len(chain.Steps)+1)
		}
		return story.SetEntry(c, id, entry, what, life.DescribeDeath(held.Claim), nil), nil
	}, id)
}

// Record writes a thread's comment and pull request into its entry, for a job that
// takes no step and so has no commit of its own for it. A step that runs is not
// concerned. Of a thread that is not alive nothing is noted.
func (e *Engine) Record(ctx context.Context, id gitcas.ThreadID, f life.Effects) error {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("note the comment and the pull request of thread %s: %w", id, err)
	}
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		was := entry
		f.AddTo(&entry, gitcas.Entry{})
		if !alive || reflect.DeepEqual(entry, was) {
			return nil, nil
		}
		return story.SetEntry(&gitcas.Change{}, id, entry, "comment and pull request noted", "", nil), nil
	}
	if _, err := e.Update(ctx, v, build, id); err != nil {
		return fmt.Errorf("note the comment and the pull request of thread %s: %w", id, err)
	}
	e.Reached("record")
	return nil
}

// Pending is a thread whose next step, or delivery, is due and nobody's work.
type Pending struct {
	Thread  gitcas.ThreadID
	Head    node.Hash
	Deliver bool
	Since   time.Time // the zero time where nobody wrote it down
}

// ListPending lists the threads of a view that have waited for their next step, or for
// their delivery, for longer than idle, without a claim that counts: the job that was
// to do it died, or was never started. The view must have been loaded for no thread
// in particular, which is the claims of all. The oldest come first.
//
// What failed in a job that lived to say so is a person's to try again, and not
// listed; nor is what was interrupted, which the job's own run takes up. A delivery, which costs nothing, is tried until MaxAttempts of them failed,
// which suspends the thread. So is a step whose jobs died MaxAttempts times: nothing
// is listed for ever.
func (e *Engine) ListPending(v *gitcas.View, idle time.Duration) []Pending {
	var out []Pending
	for id, entry := range v.Threads() {
		p := Pending{Thread: id, Head: entry.Head}
		var since int64
		switch {
		case entry.Status == gitcas.StatusActive && entry.Next != nil && life.CountAttempts(entry, id, nil) == 0:
			since = entry.Next.Since
		case entry.Status == gitcas.StatusEnded && entry.Deliver:
			since, p.Deliver = entry.Since, true
		default:
			continue
		}
		if since != 0 {
			p.Since = time.UnixMilli(since)
		}
		// A time to come says nothing, like a claim's: a wrong clock must not keep
		// everybody out.
		if v.Time().Sub(p.Since).Abs() <= idle {
			continue
		}
		if held, claimed := v.FindClaim(id); claimed && e.Leases().Counts(v, held.Claim, entry) {
			continue
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Pending) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Thread, b.Thread))
	})
	return out
}

// FindByKey looks for the thread that has a key, whatever its status. Of several it is
// the oldest. One that is over has given its key back.
func FindByKey(v *gitcas.View, key string) (gitcas.ThreadID, bool) {
	threads := v.Threads()
	for _, id := range slices.Sorted(maps.Keys(threads)) {
		if key != "" && threads[id].Key == key {
			return id, true
		}
	}
	return "", false
}

package step

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
)

// linkUnlinked links the attempts on the thread's head that could be kept and not linked,
// since nobody could change the thread: a state branch that became protected takes no pushes,
// but the attempts' own refs do. It comes before the agent: where linking is refused again,
// so would the step be that was paid for.
func (r *turn) linkUnlinked(ctx context.Context) error {
	refs, stopped, err := r.findUnlinked(ctx)
	if err != nil || len(refs) == 0 {
		return err
	}
	err = r.Change(ctx, "stepped", func(_ *gitcas.View, c *gitcas.Change, entry *gitcas.Entry, _ gitcas.Held) error {
		c.Refs = nil // it goes on under the claim
		life.LinkAttempts(entry, r.ID, nil, refs...)
		if stopped > 0 {
			life.ForgiveAttempts(entry, stopped, r.plan.role)
		}
		c.Subject, c.Body = fmt.Sprintf("failed before · step %d", r.StepNumber()), "kept when the thread could not be changed:\n"+strings.Join(refs, "\n")
		return nil
	})
	switch {
	case life.KindOf(err) == life.KindNotYours:
		return err
	case err != nil:
		return &life.FailedError{Thread: r.ID, Role: r.plan.role, Phase: "prepare", Err: fmt.Errorf(
			"%w\n%s was kept when the thread could not be changed, and still it can't be: no agent runs until it can. Let this job push %s",
			err, refs[0], r.e.Store.Branch())}
	}
	r.Lease.Latest, r.Lease.Entry = r.View, r.Entry
	r.e.Reached("linked")
	return nil
}

// findUnlinked finds those attempts, and how many of them a person stopped.
func (r *turn) findUnlinked(ctx context.Context) (refs []string, stopped int, err error) {
	held, _ := r.Lease.Current()
	known := life.AppendAttempts(r.Entry.Attempts, life.DeadRefs(r.ID, held.Died)...)
	var left []string
	for _, ref := range slices.Sorted(maps.Keys(r.View.Refs())) {
		if strings.HasPrefix(ref, layout.AttemptRefs(r.ID)) && !slices.Contains(known, ref) && !r.tried.OnRecord[ref] {
			left = append(left, ref)
		}
	}
	if len(left) == 0 {
		return nil, 0, nil
	}
	found, err := r.e.Store.Unlinked(ctx, r.View, left)
	if err != nil {
		return nil, 0, fmt.Errorf("look for attempts that are not linked: %w", err)
	}
	for _, ref := range found {
		a, err := r.e.Store.ReadAttempt(ctx, r.View, ref)
		if err != nil {
			return nil, 0, fmt.Errorf("read the attempt %s: %w", ref, err)
		}
		if a.Unlinked != r.Entry.Head {
			continue
		}
		refs = append(refs, ref)
		if attempt.PhaseOf(a) == life.PhaseStopped {
			stopped++
		}
	}
	return refs, stopped, nil
}

// countDead adds the attempts of which this job knows only since it has the claim to what was
// used, those whose claims it found dead and those that were not linked: nothing of them was
// known when the limits were checked first.
func (r *turn) countDead(ctx context.Context) error {
	if r.plan.role == "" || r.plan.suspend != "" {
		return nil
	}
	known := len(r.Entry.Attempts)
	if err := r.linkUnlinked(ctx); err != nil {
		return err
	}
	held, _ := r.Lease.Current()
	if len(held.Died) == 0 && len(r.Entry.Attempts) == known {
		return nil
	}
	var err error
	if r.used, err = r.countUsed(ctx, life.AppendAttempts(r.Entry.Attempts, life.DeadRefs(r.ID, held.Died)...)); err == nil {
		r.plan.limit = r.effectiveLimits().Check(r.used, r.plan.role)
	}
	return err
}

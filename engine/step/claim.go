package step

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/obstacle"
)

// ClaimAhead claims a thread, as a view shows it, for the jobs that the caller starts for its
// next step: each gives the nonce to its Request. It is to be released where they can't be
// started. Nil: that step runs no agent, so that there is nothing to be claimed for.
func (e *Stepper) ClaimAhead(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*lease.Lease, error) {
	r := newTurn(e, Request{Thread: id})
	r.Thread = *reading.Locate(ctx, v, id)
	if _, _, err := r.CheckUnclaimed(ctx); err != nil {
		return nil, thread.CleanError(e.Redact, err)
	}
	if err := r.decideRole(ctx); err != nil {
		return nil, thread.CleanError(e.Redact, err)
	}
	if !r.plan.runsAgent() {
		return nil, nil //nolint:nilnil // a limit is for that step to tell
	}
	if err := r.checkPush(ctx); err != nil {
		return nil, thread.CleanError(e.Redact, err)
	}
	t := r.claimTerms()
	t.Ahead = true
	// Whoever works under it reads the thread anew, as recheck does.
	_, h, err := e.WinClaim(ctx, v, id, t)
	if err != nil {
		return nil, thread.CleanError(e.Redact, err)
	}
	return h, nil
}

// takeClaim claims the thread for what was decided, or goes on with the claim that the step
// before has left for this one, or that was made ahead for it.
func (r *turn) takeClaim(ctx context.Context) error {
	t := r.claimTerms()
	if r.req.Held != nil && r.Lease.ResumeClaim(r.View, r.Entry, t.Budget) {
		return nil
	}
	if l := r.e.Leases().Continue(r.View, r.ID, r.req.Nonce, t.Budget); l != nil {
		r.Lease = l
		return nil
	}
	if r.req.HandsOver {
		l, err := r.e.Leases().Pretend(r.View, r.ID, t)
		r.Lease = l
		return err
	}
	return r.Claim(ctx, t)
}

// effectiveLimits are those that hold for this thread.
func (r *turn) effectiveLimits() moderator.Limits { return thread.LimitsOf(r.e.Settings, &r.Thread) }

// attemptLedger reads the attempts at this step, as of the role whose turn it is.
func (r *turn) attemptLedger() *attempt.Ledger {
	r.tried.Role = r.plan.role
	if r.brought != nil {
		r.tried.Replaces = r.brought.replacesClaim
		r.tried.AtHand = layout.AttemptRef(r.ID, r.brought.step.Run.ID, r.brought.step.Run.Attempt)
	}
	return r.tried
}

// countUsed counts what the thread has used, with the attempts at this step, and with those of
// jobs that died; and finds the limit that leaves nothing for it.
func (r *turn) countUsed(ctx context.Context, died []string) (err error) {
	if r.used, err = r.attemptLedger().CountUsed(ctx, life.AttemptsOf(r.Entry, r.ID, died)); err == nil {
		r.plan.limit = r.effectiveLimits().Check(r.used, r.plan.role)
	}
	return err
}

// remainingBudget is what the limits leave for the next step. The limits were checked
// before, so what is left is more than nothing.
func (r *turn) remainingBudget() task.Budget {
	if r.share != nil {
		return *r.share
	}
	return life.RemainingBudget(r.effectiveLimits(), r.e.Settings.MonthLimits(), r.used)
}

// holdMonth asks the month's limits what they leave the agent, if one is to run after so many
// failed attempts. What a job before this one has paid for is committed whatever they say; where
// that says that it had to run none, none is missing.
func (r *turn) holdMonth(ctx context.Context, failed int) (err error) {
	if !r.plan.runsAgent() || failed >= life.MaxAttempts {
		return nil
	}
	var left error
	if r.req.TakesOver != nil {
		if _, left = r.req.TakesOver(r.View.StoreID(), r.ID); left == nil {
			return nil
		}
	}
	r.share, r.plan.limit, err = thread.HoldMonth(ctx, r.Session, r.used, r.remainingBudget())
	if err == nil && r.plan.limit == nil && life.KindOf(left) == life.KindNotYours {
		return left
	}
	return err
}

// claimTerms are those of a claim for what was decided.
func (r *turn) claimTerms() lease.Terms {
	t := lease.Terms{Work: r.e.Settings.Timeout()}
	if r.plan.runsAgent() {
		t.Budget = r.remainingBudget()
	}
	return t
}

// checkPush asks the remote whether it takes what the step will push, before another agent is
// paid: an attempt at the step failed, and that may be why. For a new thread its start has asked.
func (r *turn) checkPush(ctx context.Context) error {
	if len(r.Entry.Attempts) == 0 || r.req.HandsOver || r.req.TakesOver != nil { // it can't push, or it was paid
		return nil
	}
	err := r.e.CheckPush(ctx, r.View, task.Task{
		Thread: r.ID, Role: r.plan.role, Step: r.StepNumber(), WorkflowName: r.Def.Name, Entry: r.Entry,
	})
	if _, found := obstacle.Of(err); !found {
		return err
	}
	return &life.FailedError{
		Thread: r.ID, Role: r.plan.role, Phase: "prepare", Err: fmt.Errorf("%w\nno agent runs until it would be", err),
	}
}

// linkUnlinked links the attempts on the thread's head that could be kept and not linked,
// since nobody could change the thread: a state branch that became protected takes no pushes,
// but the attempts' own refs do. It comes before the agent: where linking is refused again,
// so would the step be that was paid for.
func (r *turn) linkUnlinked(ctx context.Context) error {
	refs, stopped, err := r.findUnlinked(ctx)
	if err != nil || len(refs) == 0 {
		return err
	}
	if r.req.HandsOver { // the other job does: they count all the same
		life.LinkAttempts(&r.Entry, r.ID, nil, refs...)
		life.ForgiveAttempts(&r.Entry, stopped, r.plan.role)
		return nil
	}
	err = r.Change(ctx, "stepped", func(_ *gitcas.View, c *gitcas.Change, entry *gitcas.Entry, _ gitcas.Held) error {
		c.Refs = nil // it goes on under the claim
		life.LinkAttempts(entry, r.ID, nil, refs...)
		life.ForgiveAttempts(entry, stopped, r.plan.role)
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
	known := life.AttemptsOf(r.Entry, r.ID, held.Died)
	var left []string
	for _, ref := range slices.Sorted(maps.Keys(r.View.Refs())) {
		if strings.HasPrefix(ref, layout.AttemptRefs(r.ID)) && !slices.Contains(known, ref) && !r.tried.OnRecord[ref] {
			left = append(left, ref)
		}
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
	return r.countUsed(ctx, held.Died)
}

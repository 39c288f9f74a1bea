package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
)

// adviser says what a person can do with a thread.
type adviser struct{ *Engine }

// adviseWork says what to do with a thread so that it works: what a person asked of it is
// for later, or for another one.
func (e adviser) adviseWork(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) string {
	entry, _ := v.Entry(id)
	held, claimed := v.Claim(id)
	switch {
	case entry.Status == gitcas.StatusSuspended:
		name, command := life.WayOn(id, life.WaitReason(entry))
		return name + " with: " + command
	case claimed && life.ClaimedByJob(held.Claim) && e.Leases().Counts(v, held.Claim, entry):
		return "wait until its step is over: uwf thread wait " + string(id)
	case life.CountAttempts(entry, id, nil) >= life.MaxAttempts:
		return "let its step be tried again: " + life.RetryCommand(id)
	}
	if limit := e.limitAhead(ctx, v, id); limit != nil {
		return limit.Error() + "\n" + life.AdviseWait(id) + life.AdviseRaise(id, limit)
	}
	advice := "let it work: uwf thread step " + string(id)
	if sum, err := v.Summary(ctx, id); err == nil && sum.Used.Steps > 0 {
		advice += fmt.Sprintf("\nto have its last step done again: uwf thread poke %s -p \"…\"", id)
	}
	return advice
}

// limitAhead is the limit that a thread's next step will find reached; nil: none.
func (e adviser) limitAhead(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	t, err := reading.Read(ctx, v, id)
	if err != nil {
		return nil //nolint:nilerr // the next step will say
	}
	used, err := attempt.NewLedger(e.Store, t, life.WaitingRole(t.Entry)).CountUsed(ctx, t.Entry.Attempts)
	if err != nil {
		return nil //nolint:nilerr // the next step will say
	}
	return e.LimitsOf(t).Check(used, life.WaitingRole(t.Entry))
}

// adviseAfterEnd says what can still be done with a thread that is not alive.
func (e adviser) adviseAfterEnd(ctx context.Context, v *gitcas.View, ended gitcas.Ended) string {
	if ended.Reason == gitcas.ReasonEnded && e.mayReopen(ctx, v, ended.Thread) {
		return fmt.Sprintf("let it go on: uwf thread resume %s -p \"…\"\n%s", ended.Thread, forkAdvice(ended))
	}
	return forkAdvice(ended)
}

// mayReopen reports whether the workflow of a thread that has ended says with whom it
// goes on.
func (e adviser) mayReopen(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) bool {
	past, _, err := reading.FindPast(ctx, e.Store, v, id)
	if err != nil {
		return false
	}
	t, err := reading.Read(ctx, past, id)
	return err == nil && t.Def.Resume != nil
}

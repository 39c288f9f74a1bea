package thread

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/gitcas"
)

// WayOn is what a person does so that a thread that waits goes on: what it is called, and
// the command. A person who is told to answer a limit would resume the thread, and see it
// stop at once; a pause has asked nothing; and what failed is tried again.
func WayOn(id gitcas.ThreadID, reason string) (name, command string) {
	resume := "uwf thread resume " + string(id)
	if flag := limitFlag(reason); flag != "" {
		return "raise it", resume + " " + flag
	}
	if retry := tryAgain(id); strings.HasSuffix(reason, retry) {
		return "try again", retry
	}
	if reason == pausedByAPerson {
		return "let it go on", resume
	}
	return "answer", resume + ` -p "…"`
}

const pausedByAPerson = "paused by a person"

// tryAgain is the command after which what failed too often may be tried again.
func tryAgain(id gitcas.ThreadID) string { return "uwf thread retry " + string(id) }

// limitFlag is the flag that raises the limit that a reason names, with a word for its
// value; empty for other reasons.
func limitFlag(reason string) string {
	reason, ok := strings.CutPrefix(reason, "limit ")
	if !ok {
		return ""
	}
	limit, _, _ := strings.Cut(reason, " reached: ")
	return map[string]string{
		"maxSteps": "--max-steps N", "maxStepsPerRole": "--max-steps-per-role N", "tokens": "--max-tokens N",
		"costUsd": "--max-cost DOLLARS", "wall": "--max-time TIME",
	}[limit]
}

// adviseWork says what to do with a thread so that it works: what a person asked of it is
// for later, or for another one.
func (e *Engine) adviseWork(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) string {
	entry, _ := v.Entry(id)
	held, claimed := v.Claim(id)
	switch {
	case entry.Status == gitcas.StatusSuspended:
		name, command := WayOn(id, reasonOf(entry))
		return name + " with: " + command
	case claimed && ClaimedByJob(held.Claim) && e.counts(v, held.Claim, entry):
		return "wait until its step is over: uwf thread wait " + string(id)
	case attemptsOn(entry, id, nil) >= MaxAttempts:
		return "let its step be tried again: " + tryAgain(id)
	}
	if limit := e.limitAhead(ctx, v, id); limit != nil {
		return limit.Error() + "\n" + makeWait(id) + raiseLimit(id, limit)
	}
	advice := "let it work: uwf thread step " + string(id)
	if sum, err := v.Summary(ctx, id); err == nil && sum.Used.Steps > 0 {
		advice += fmt.Sprintf("\nto have its last step done again: uwf thread poke %s -p \"…\"", id)
	}
	return advice
}

// reasonOf is why a thread waits.
func reasonOf(entry gitcas.Entry) string {
	if entry.Suspended == nil {
		return ""
	}
	return entry.Suspended.Reason
}

// limitAhead is the limit that a thread's next step will find reached; nil: none.
func (e *Engine) limitAhead(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	t, err := e.read(ctx, v, id)
	if err != nil {
		return nil //nolint:nilerr // the next step will say
	}
	used, err := t.totals(ctx, t.entry.Attempts)
	if err != nil {
		return nil //nolint:nilerr // the next step will say
	}
	return t.limits().Check(used, waiting(t.entry))
}

// makeWait is what comes before anything that a thread must wait for.
func makeWait(id gitcas.ThreadID) string {
	return fmt.Sprintf("make it wait with: uwf thread step %s\nthen ", id)
}

// raiseLimit says how a limit is raised that a thread has reached.
func raiseLimit(id gitcas.ThreadID, reached error) string {
	name, command := WayOn(id, reached.Error())
	return name + " with: " + command + "; where the configuration or the workflow sets it, there first: the lowest counts"
}

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/runner/workflowfiles"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// tellWaiting tells that a person has to do something.
func (j *steps) tellWaiting(ctx context.Context, res thread.Result) error {
	j.Outcome.Status = string(gitcas.StatusSuspended)
	reason := ""
	if res.Suspended != nil {
		reason = res.Suspended.Reason
	}
	if p := j.LoadThreadOrLast(ctx, res.Thread); p != nil && p.Entry.Status == gitcas.StatusSuspended {
		t, label := j.DescribeThread(p, report.Waiting), effects.LabelWaiting
		if life.CountAttempts(p.Entry, "", nil) >= life.MaxAttempts {
			t, label = j.finder.describeFailed(p), effects.LabelFailed
		}
		j.TellState(ctx, p, t, label)
	}
	return j.FinishOK(fmt.Sprintf("thread %s waits for a person: %s", res.Thread, effects.FirstLine(reason)))
}

// endAfterError ends a job whose step gave an error, green or red.
func (j *steps) endAfterError(ctx context.Context, res thread.Result, expect node.Pin, err error) error {
	var own *life.DeedError
	errors.As(err, &own)
	switch life.KindOf(err) {
	case life.KindNotYours:
		if res.Deliver && (expect.Hash == "" || expect.Hash == res.Head) {
			return j.deliverThread(ctx, res.Thread, res.Pin())
		}
		if errors.Is(err, errIdle) || errors.As(err, new(*life.MonthHeldError)) {
			return j.tellHeld(ctx, res.Thread, own.Reason)
		}
		if j.Inputs.Command == ci.CommandCommit || own != nil && own.Kept != "" { // an agent was at work
			j.finder.tellStopped(ctx, res.Thread)
		}
		return j.FinishOK(err.Error())
	case life.KindSuspended:
		if j.halted || j.Job.Attempt > 1 {
			return j.tellWaiting(ctx, res)
		}
		j.Outcome.Status = string(gitcas.StatusSuspended)
		return j.FinishOK(err.Error())
	case life.KindLimit:
		if own != nil {
			j.tellLimit(ctx, res, own)
		}
		return err
	case life.KindDamaged:
		return err
	}
	j.Outcome.Status = "failed"
	if failed, ok := errors.AsType[*life.FailedError](err); ok && (failed.Attempt != "" || failed.Unsure) {
		j.tellFailure(ctx, res.Thread, err)
		return err
	}
	if ctx.Err() != nil || errors.Is(err, wire.ErrUnreachable) || errors.Is(err, wire.ErrLostRace) {
		return err // nothing is wrong with the thread: the sweep takes it up again
	}
	return j.suspendBroken(ctx, res.Thread, cmp.Or(expect.Hash, res.Head), err)
}

// tellHeld tells that the thread goes on when steps at work are done. This job starts no other
// one: it would find the same.
func (j *steps) tellHeld(ctx context.Context, id gitcas.ThreadID, why string) error {
	j.held = true
	if p := j.LoadThreadOrLast(ctx, id); p != nil {
		t := j.DescribeThread(p, report.Held)
		t.Why = why
		j.UpdateComment(ctx, p, t)
		j.RecordComment(ctx, p)
	}
	return j.FinishOK(fmt.Sprintf("thread %s: %s", id, why))
}

// tellLimit tells that the thread may go no further.
func (j *steps) tellLimit(ctx context.Context, res thread.Result, err *life.DeedError) {
	j.Outcome.Status = string(gitcas.StatusSuspended)
	p := j.LoadThreadOrLast(ctx, res.Thread)
	if p == nil {
		return
	}
	t := j.DescribeThread(p, report.Limited)
	t.Question = err.Reason
	if reached, ok := errors.AsType[*moderator.LimitError](err); ok {
		t.Limit = reached.Limit
	}
	j.TellState(ctx, p, t, effects.LabelWaiting)
}

// tellFailure tells that the step failed, and what was kept of it.
func (j *steps) tellFailure(ctx context.Context, id gitcas.ThreadID, err error) {
	if p := j.LoadThreadOrLast(ctx, id); p != nil {
		j.TellFailed(ctx, p, j.describeError(p, err))
	}
}

// suspendBroken ends a job that could not even try: its configuration or its definition is
// wrong, or the key is missing. The next job would fare no better, so the thread is
// made to wait, and the sweep leaves it alone.
func (j *steps) suspendBroken(ctx context.Context, id gitcas.ThreadID, head node.Hash, cause error) error {
	j.Outcome.Status = "failed"
	j.Outcome.Thread = id
	if head == "" {
		if p, err := j.LoadThread(ctx, id); err == nil {
			head = p.Entry.Head
		}
	}
	sctx, cancel := effects.WithEffectTime(ctx)
	defer cancel()
	done, err := j.Engine.SuspendAt(sctx, id, head, cause.Error())
	if err != nil {
		return errors.Join(cause, err)
	}
	if done {
		j.tellFailure(ctx, id, cause)
	}
	return cause
}

// describeError is an error as it is shown.
func (j *steps) describeError(p *threadview.Thread, err error) report.Failure {
	f := countTries(p.Entry)
	f.Message, f.ByForge, f.Advice = err.Error(), isForgeAnswer(err), j.adviseOn(err, p.Entry.Status)
	if failed, ok := errors.AsType[*life.FailedError](err); ok {
		f.Phase, f.Attempt, f.Message = failed.Phase, failed.Attempt, failed.Err.Error()
	}
	return f
}

// countTries makes a failure with the tries that there were.
func countTries(e gitcas.Entry) report.Failure {
	n := len(e.Attempts)
	return report.Failure{Tries: n, Forgiven: n - life.CountAttempts(e, "", nil), MaxTries: life.MaxAttempts}
}

// isForgeAnswer reports whether an error's words are what the forge answered.
func isForgeAnswer(err error) bool {
	var e *forge.CallError
	return errors.As(err, &e) && e.Status != 0
}

// adviseOn is what to do about an error.
func (j *steps) adviseOn(err error, status gitcas.Status) string {
	again := "Comment /uwf retry to try again."
	if status == gitcas.StatusSuspended {
		again = "Put it right, then comment /uwf retry."
	}
	if errors.As(err, new(*workflowfiles.ChangedError)) || workflowfiles.Refused(err) {
		return "GitHub lets no job's own token change files below .github/workflows. Have the roles leave them alone, or give the input token one that may (a GitHub App's, or a fine-grained one with \"workflows: write\"). " + again
	}
	return strings.TrimSpace(j.AdvisePush(err) + " " + again)
}

package runner

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
)

// Misread answers a comment whose /uwf line can't be understood, as event.Parse says:
// those who may give commands are told how to write them. It does nothing else.
func (r *Runner) Misread(ctx context.Context, ev event.Event, wrong *event.CommandError) (ci.Outcome, error) {
	j := newJob(r, ev)
	err := func() error {
		if j.Inputs.Command == ci.CommandRun {
			return j.EndGreen("the comment's command can't be understood")
		}
		ok, why, err := j.gate.MayStart(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return j.intake.denyStart(ctx, why)
		}
		return j.intake.AnswerCommand(ctx, report.Reply{Kind: report.Unknown, Why: wrong.Msg})
	}()
	return j.finishJob(ctx, err)
}

// Unready tells that a job could not begin, and why, on the issue or pull request whose
// event would have started or steered a thread: once, and only for people who may. It
// needs no more of a Runner than the forge, the inputs, and what takes secrets out.
func (r *Runner) Unready(ctx context.Context, ev event.Event, why string) {
	j := newJob(r, ev)
	if ev.Subject == nil || j.Job.Attempt > 1 || j.Inputs.Command == ci.CommandRun {
		return
	}
	switch ev.Kind {
	case event.Labeled:
		if !j.gate.AddsLabel() {
			return
		}
	case event.Assigned:
		if !j.gate.IsOurs(ev.Assignee) {
			return
		}
	case event.Comment:
	default:
		return
	}
	if ok, _, err := j.gate.MayStart(ctx); err == nil && ok {
		j.PostAnswer(ctx, ev.Subject.Number, j.DescribeFailure("begin", errors.New(why)))
	}
}

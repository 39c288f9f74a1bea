package runner

import (
	"context"

	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
)

// Misread answers a comment whose /uwf line can't be understood, as event.Parse says:
// those who may give commands are told how to write them. It does nothing else.
func (r *Runner) Misread(ctx context.Context, ev event.Event, wrong *event.CommandError) (Outcome, error) {
	j := newJob(r, ev)
	err := func() error {
		if j.in.Command == CommandRun {
			return j.quiet("the comment's command can't be understood")
		}
		ok, why, err := j.mayStart(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return j.denied(ctx, why)
		}
		return j.say(ctx, report.Reply{Kind: report.Unknown, Why: wrong.Msg})
	}()
	return j.finish(ctx, err)
}

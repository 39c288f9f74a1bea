package runner

import (
	"context"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
)

// reply answers somebody's command, once: a job that is run again finds its answer.
func (j *job) reply(ctx context.Context, number int, r report.Reply) error {
	if number == 0 || j.in.Command == CommandRun {
		return nil
	}
	r.Comment, r.Login = j.ev.CommentID, or(j.ev.CommentAuthor.Login, j.ev.Sender.Login)
	body, err := j.clean(r.Markdown())
	if err != nil {
		return err
	}
	if j.Job.Attempt > 1 {
		list, err := j.Forge.Comments(ctx, number)
		if err != nil {
			return err
		}
		for _, c := range list {
			if strings.HasPrefix(c.Body, report.ReplyMarker(r.Comment)) {
				return j.noteAnswer(j.Forge.UpdateComment(ctx, c.ID, body))
			}
		}
	}
	_, err = j.Forge.CreateComment(ctx, number, body)
	return j.noteAnswer(err)
}

// noteAnswer notes that the issue was answered, unless that failed.
func (j *job) noteAnswer(err error) error {
	if err == nil {
		j.spoke, j.told = true, true
	}
	return err
}

// refuseOnce says who may start and steer threads, unless it was said on the same issue
// before.
func (j *job) refuseOnce(ctx context.Context, number int, why string) error {
	r := report.Reply{Kind: report.Refused, Why: why}
	switch c := j.ev.Command; j.ev.Kind {
	case event.Comment:
		if r.Asked = "a command"; c != nil {
			r.Verb = c.Verb
		}
	case event.Labeled:
		r.Asked = "the label " + j.label()
	case event.Assigned:
		r.Asked = "an assignment"
	default: // nobody looks at an issue for an answer
		return nil
	}
	list, err := j.Forge.Comments(ctx, number)
	if err != nil || slices.ContainsFunc(list, func(c forge.Comment) bool { return report.IsRefusal(c.Body) }) {
		return err
	}
	return j.reply(ctx, number, r)
}

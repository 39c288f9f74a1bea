package effects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/obstacle"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/markdown"
	"github.com/united-workforce/uwf/internal/text"
)

// IsPassing reports whether an error says nothing about what was asked for: a re-run of
// the job may do.
func IsPassing(err error) bool {
	kinds := []error{wire.ErrUnreachable, wire.ErrLostRace, forge.ErrUnreachable, forge.ErrLimited, context.Canceled, context.DeadlineExceeded}
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// maxAnswer bounds a comment that belongs to no thread, in bytes.
const maxAnswer = 30_000

// PostAnswer writes a comment that belongs to no thread.
func (j *Effects) PostAnswer(ctx context.Context, number int, text string) {
	ctx, cancel := WithEffectTime(ctx)
	defer cancel()
	if c := j.Event.Command; c != nil {
		j.PostReply(ctx, number, report.Reply{Kind: report.NotNow, Verb: c.Verb, Why: text})
		return
	}
	marker := report.NoteMarker(j.Job.Run)
	j.noteAnswer(number, j.postOnce(ctx, number, marker, marker+"\n"+sanitize.Outgoing(text, "", maxAnswer)))
}

// postOnce writes a comment that begins with a marker, or replaces the one that a job before this
// one wrote.
func (j *Effects) postOnce(ctx context.Context, number int, marker, text string) error {
	body, err := j.RedactText(text)
	if err != nil {
		return err
	}
	switch given, err := j.FindAnswer(ctx, number, marker); {
	case err != nil:
		return err
	case given != 0:
		return j.Forge.UpdateComment(ctx, given, body)
	}
	_, err = j.Forge.CreateComment(ctx, number, body)
	return err
}

// FindAnswer is the comment with a marker that a job before this one wrote for the same event: the
// one that is run again, or rescued. 0: there is none.
func (j *Effects) FindAnswer(ctx context.Context, number int, marker string) (int64, error) {
	if j.Job.Attempt <= 1 && j.Inputs.Command != ci.CommandRescue {
		return 0, nil
	}
	list, err := j.Forge.ListComments(ctx, number)
	i := slices.IndexFunc(list, func(c forge.Comment) bool { return strings.HasPrefix(c.Body, marker) })
	if i < 0 || err != nil {
		return 0, err
	}
	return list[i].ID, nil
}

// MakeSentence is a reason as one.
func MakeSentence(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return ""
	}
	return string(unicode.ToUpper(first)) + s[size:] + "."
}

// AnswerCommand answers a command, and ends the job green.
func (j *Effects) AnswerCommand(ctx context.Context, r report.Reply) error {
	if s := j.Event.Subject; s != nil {
		j.PostReply(ctx, s.Number, r)
	}
	switch r.Kind {
	case report.Done:
		return j.FinishOK("/uwf " + r.Verb + ": done")
	case report.NoThread:
		return j.FinishOK("/uwf " + r.Verb + ": there is no thread here")
	}
	return j.FinishOK("/uwf " + r.Verb + ": " + cmp.Or(r.Why, "that can't be done"))
}

// FirstLine is the first line of a text.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// DescribeFailure is what is said where nothing was done: what could not be, why, what mends it,
// and how to ask again.
func (j *Effects) DescribeFailure(what string, err error) string {
	why, mend := err.Error(), j.AdvisePush(err)
	if d, ok := errors.AsType[*gitcas.DamagedError](err); ok {
		bare := *d
		bare.Restore = ""
		why, mend = strings.Replace(why, d.Error(), bare.Error(), 1), report.Mending(d.Restore)
	}
	again := "take the label off and put it on again, or comment `/uwf start`."
	if j.Event.Command != nil {
		again = "write the command again."
	}
	then := "Put it right, then " + again
	if IsPassing(err) {
		then = "That may be over soon. Then " + again
	}
	out := "uwf could not " + what + ":\n\n```text\n" + strings.ReplaceAll(text.Cut(why, 4000), "```", "'''") + "\n```\n\n"
	if mend != "" {
		out += mend + "\n\n"
	}
	if url := j.Job.ResolveRunURL(); url != "" && j.Inputs.Command == ci.CommandRescue {
		out += "Its job failed, and so did the one that rescues it: " + markdown.Link("the run", url) + "\n\n"
	}
	return out + then
}

// AdvisePush is what lets a refused push through; empty: the error is about none.
func (j *Effects) AdvisePush(err error) string {
	if o, found := obstacle.Of(err); found {
		page := "settings/rules"
		if j.IsGitea() {
			page = "settings/branches"
		}
		where := "on the repository's page, Settings"
		if repo := j.Job.RepositoryURL(); repo != "" {
			where = repo + "/" + page
		}
		mend := o.Mend(cmp.Or(j.Job.StateBranch, gitcas.DefaultBranch), where)
		return MakeSentence(mend) + " Run `uwf doctor` to check."
	}
	if errors.Is(err, wire.ErrDenied) {
		return "The job needs the permission \"contents: write\"."
	}
	return ""
}

// PostReply answers somebody's command, once: a job that is run again finds its answer.
func (j *Effects) PostReply(ctx context.Context, number int, r report.Reply) {
	if number == 0 || j.Inputs.Command == ci.CommandRun {
		return
	}
	r.Comment, r.Login = j.Event.CommentID, cmp.Or(j.Event.CommentAuthor.Login, j.Event.Sender.Login)
	j.noteAnswer(number, j.postOnce(ctx, number, report.ReplyMarker(r.Comment), r.Markdown()))
}

// noteAnswer notes that an issue was answered, or warns that it was not.
func (j *Effects) noteAnswer(number int, err error) {
	if err != nil {
		j.Warn(fmt.Sprintf("#%d could not be answered", number), err)
		return
	}
	j.Spoke, j.Told = true, true
}

// PostRefusal says who may start and steer threads, unless it was said on the same issue
// before.
func (j *Effects) PostRefusal(ctx context.Context, number int, why string) {
	r := report.Reply{Kind: report.Refused, Why: why}
	switch c := j.Event.Command; j.Event.Kind {
	case event.Comment:
		if r.Asked = "a command"; c != nil {
			r.Verb = c.Verb
		}
	case event.Labeled:
		r.Asked = "the label " + j.StartLabel()
	case event.Assigned:
		r.Asked = "an assignment"
	default: // nobody looks at an issue for an answer
		return
	}
	list, err := j.Forge.ListComments(ctx, number)
	switch {
	case err != nil:
		j.noteAnswer(number, err)
	case !slices.ContainsFunc(list, func(c forge.Comment) bool { return report.IsRefusal(c.Body) }):
		j.PostReply(ctx, number, r)
	}
}

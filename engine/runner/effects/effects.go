// Package effects is what people see of a job: one comment a thread, answers to commands,
// labels, and what the job's log says. An effect that fails never loses a step and never
// makes it a failed one.
package effects

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sticky"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
)

// Effects are what people see of a job: comments, labels, notices and errors. All parts of
// a job speak by the same ones.
type Effects struct {
	Engine *step.Stepper
	Forge  forge.Forge
	Inputs *ci.Inputs // the job's, with what the event carries
	Job    ci.Job
	Out    ci.Output
	Now    func() time.Time
	Hook   func(point string)

	Event   event.Event
	Outcome ci.Outcome
	Comment *sticky.Comment    // the comment of the thread at hand
	Shown   *report.Thread     // what was told of it last
	Last    *threadview.Thread // how it was seen last
	View    *gitcas.View       // in which it was seen; nil: none yet
	Made    gitcas.ThreadID    // the thread that this job started
	Spoke   bool               // something was written on the issue: a comment, or an answer
	Told    bool               // the last that was written there says why nothing goes on
	Branch  string             // the default branch, once it was asked for
	StoreID string             // the store's id, once it was read
}

// PostNotice says why a green job did nothing, or nothing more.
func (j *Effects) PostNotice(msg string) {
	msg, err := j.RedactText(msg)
	if err != nil {
		return
	}
	j.Outcome.Notice = msg
	j.Out.Notice(msg)
}

// FinishOK ends the job, which shows as done well, and says why.
func (j *Effects) FinishOK(msg string) error {
	j.PostNotice(msg)
	return nil
}

// Annotate shows an error, a definition's at file and line.
func (j *Effects) Annotate(err error) {
	for _, a := range ci.AnnotationsOf(err, err.Error()) {
		if a.Message, err = j.RedactText(a.Message); err != nil {
			a.Message = "the job failed; its error could not be checked for secrets, so it is not shown"
		}
		j.Out.Error(a)
	}
}

// NoteResult takes over what a step says.
func (j *Effects) NoteResult(res thread.Result) {
	j.Outcome.Thread, j.Outcome.Head, j.Outcome.Status, j.Outcome.Step, j.Outcome.Done = res.Thread, res.Head, res.Status, res.Step, res.Done
	j.Outcome.NextRole = res.NextRole
	if res.Role != "" {
		j.Outcome.Role, j.Outcome.Result = res.Role, res.Result
	}
	if res.PR != 0 {
		j.Outcome.PullRequest = res.PR
	}
}

// IsGitea reports whether the forge is Gitea or Forgejo.
func (j *Effects) IsGitea() bool { return j.Forge.ForgeFlavour() == forge.Gitea }

// Effects are what people see of a step. One that fails never loses the step and never
// makes it a failed one: it is told as a warning, and made up for by the next job, the
// re-run or the sweep.

// What the job may take for its effects when it was interrupted: GitHub kills it about
// ten seconds after it asked it to end.
const (
	MaxEffectTime = 2 * time.Minute
	graceTime     = 5 * time.Second
)

// WithEffectTime is one for effects: an interrupt leaves them a little time.
func WithEffectTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithTimeout(ctx, MaxEffectTime)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), graceTime)
}

// Labels of a thread's issue or pull request, beside the one that starts it, which is
// left alone.
const (
	LabelWaiting = "uwf-waiting"
	LabelFailed  = "uwf-failed"
)

// Warn tells of an effect that failed.
func (j *Effects) Warn(what string, err error) {
	text, cerr := j.RedactText(err.Error())
	if cerr != nil {
		text = "the error can't be shown"
	}
	j.Out.Warning(what + ": " + text)
}

// RedactText takes secrets out of what is about to be shown. It fails closed.
func (j *Effects) RedactText(s string) (string, error) {
	v, _, err := j.Engine.Redact.Value(s)
	text, ok := v.(string)
	if err != nil || !ok {
		return "", fmt.Errorf("check what is to be shown for secrets: %w", err)
	}
	return text, nil
}

// CallHook is a durable point.
func (j *Effects) CallHook(point string) {
	if j.Hook != nil {
		j.Hook(point)
	}
}

// DefaultBranch asks for the default branch's name: somebody may have renamed it since
// the job before. Git tells it with HEAD whenever the store is read; where it doesn't,
// the forge is asked.
func (j *Effects) DefaultBranch(ctx context.Context) (string, error) {
	if j.Branch != "" {
		return j.Branch, nil
	}
	head := j.Engine.Store.Head()
	if head == "" {
		l, _ := j.Engine.Store.Remote().List(ctx, "HEAD") // a listing that fails tells of none
		head = l.Head
	}

	if name, ok := strings.CutPrefix(head, "refs/heads/"); ok && name != "" {
		j.Branch = name
		return name, nil
	}
	return j.AskDefaultBranch(ctx)
}

// AskDefaultBranch asks the forge for the default branch, whatever git said before.
func (j *Effects) AskDefaultBranch(ctx context.Context) (string, error) {
	repo, err := j.Forge.ReadRepository(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the default branch: %w", err)
	}
	j.Branch = repo.DefaultBranch
	return j.Branch, nil
}

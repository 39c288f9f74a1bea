package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/picture"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sticky"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
)

// effects are what people see of a job: comments, labels, notices and errors. All parts of
// a job speak by the same ones.
type effects struct {
	Engine *step.Stepper
	Forge  forge.Forge
	Inputs *ci.Inputs // the job's, with what the event carries
	Job    ci.Job
	Out    ci.Output
	Now    func() time.Time
	Hook   func(point string)

	ev     event.Event
	out    ci.Outcome
	sticky *sticky.Comment  // the comment of the thread at hand
	shown  *report.Thread   // what was told of it last
	last   *picture.Picture // how it was seen last
	latest *gitcas.View     // in which it was seen; nil: none yet
	made   gitcas.ThreadID  // the thread that this job started
	spoke  bool             // something was written on the issue: a comment, or an answer
	told   bool             // the last that was written there says why nothing goes on
	branch string           // the default branch, once it was asked for
	store  string           // the store's id, once it was read
}

// notice says why a green job did nothing, or nothing more.
func (j *effects) notice(msg string) {
	msg, err := j.clean(msg)
	if err != nil {
		return
	}
	j.out.Notice = msg
	j.Out.Notice(msg)
}

// quiet ends the job, green.
func (j *effects) quiet(msg string) error {
	j.notice(msg)
	return nil
}

// annotate shows an error, a definition's at file and line.
func (j *effects) annotate(err error) {
	var invalid *workflow.InvalidError
	if errors.As(err, &invalid) {
		for i, p := range invalid.Problems {
			if i == maxAnnotations-1 && len(invalid.Problems) > maxAnnotations {
				j.annotation(ci.Annotation{File: p.File, Title: "workflow definition", Message: fmt.Sprintf("and %d more problems; see them all with: uwf workflow validate %s", len(invalid.Problems)-i, p.File)})
				return
			}
			msg := p.Message
			if p.Fix != "" {
				msg += " (" + p.Fix + ")"
			}
			j.annotation(ci.Annotation{File: p.File, Line: p.Line, Col: p.Col, Title: "workflow definition", Message: msg})
		}
		return
	}
	j.annotation(ci.Annotation{Title: "uwf", Message: err.Error()})
}

func (j *effects) annotation(a ci.Annotation) {
	var err error
	if a.Message, err = j.clean(a.Message); err != nil {
		a.Message = "the job failed; its error could not be checked for secrets, so it is not shown"
	}
	j.Out.Error(a)
}

// note takes over what a step says.
func (j *effects) note(res thread.Result) {
	j.out.Thread, j.out.Head, j.out.Status, j.out.Step, j.out.Done = res.Thread, res.Head, res.Status, res.Step, res.Done
	j.out.NextRole = res.NextRole
	if res.Role != "" {
		j.out.Role, j.out.Result = res.Role, res.Result
	}
	if res.PR != 0 {
		j.out.PullRequest = res.PR
	}
}

func (j *effects) gitea() bool { return j.Forge.Flavour() == forge.Gitea }

// Effects are what people see of a step. One that fails never loses the step and never
// makes it a failed one: it is told as a warning, and made up for by the next job, the
// re-run or the sweep.

// What the job may take for its effects when it was interrupted: GitHub kills it about
// ten seconds after it asked it to end.
const (
	effectTime = 2 * time.Minute
	graceTime  = 5 * time.Second
)

// effectContext is one for effects: an interrupt leaves them a little time.
func effectContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() == nil {
		return context.WithTimeout(ctx, effectTime)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), graceTime)
}

// Labels of a thread's issue or pull request, beside the one that starts it, which is
// left alone.
const (
	labelWaiting = "uwf-waiting"
	labelFailed  = "uwf-failed"
)

// warn tells of an effect that failed.
func (j *effects) warn(what string, err error) {
	text, cerr := j.clean(err.Error())
	if cerr != nil {
		text = "the error can't be shown"
	}
	j.Out.Warning(what + ": " + text)
}

// clean takes secrets out of what is about to be shown. It fails closed.
func (j *effects) clean(s string) (string, error) {
	v, _, err := j.Engine.Redact.Value(s)
	text, ok := v.(string)
	if err != nil || !ok {
		return "", fmt.Errorf("check what is to be shown for secrets: %w", err)
	}
	return text, nil
}

// hook is a durable point.
func (j *effects) hook(point string) {
	if j.Hook != nil {
		j.Hook(point)
	}
}

// defaultBranch asks for the default branch's name: somebody may have renamed it since
// the job before. Git tells it with HEAD, at no cost of API calls; where it doesn't,
// the forge is asked.
func (j *effects) defaultBranch(ctx context.Context) (string, error) {
	if j.branch != "" {
		return j.branch, nil
	}
	if l, err := j.Engine.Store.Remote().List(ctx, "HEAD"); err == nil {
		if name, ok := strings.CutPrefix(l.Head, "refs/heads/"); ok && name != "" {
			j.branch = name
			return name, nil
		}
	}
	return j.askBranch(ctx)
}

func (j *effects) askBranch(ctx context.Context) (string, error) {
	repo, err := j.Forge.Repository(ctx)
	if err != nil {
		return "", fmt.Errorf("ask for the default branch: %w", err)
	}
	if repo.DefaultBranch == "" {
		return "", fmt.Errorf("ask for the default branch: repository %s names none", j.Job.Repository)
	}
	j.branch = repo.DefaultBranch
	return j.branch, nil
}

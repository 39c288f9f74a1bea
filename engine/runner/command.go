package runner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/authority"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// commands does what people say in comments.
type commands struct {
	*effects.Effects
	gate   *authority.Gate
	finder *finder
	steps  *steps
	intake *intake
}

// The commands of people.
const (
	verbStart  = "start"
	verbResume = "resume"
	verbStatus = "status"
	verbCancel = "cancel"
	verbRetry  = "retry"
	verbFork   = "fork"
	verbHelp   = "help"
)

// doCommand does what a comment says, and answers it: where nothing of it shows in the
// thread's comment, in words. Errors are told when the job ends.
func (j *commands) doCommand(ctx context.Context) error {
	c, s := j.Event.Command, j.Event.Subject
	if c == nil || s == nil {
		return j.FinishOK("the comment holds no command")
	}
	// Before anything is answered: strangers don't make a job comment.
	ok, why, err := j.gate.MayStart(ctx)
	if err != nil {
		return err
	}
	if ok && c.Verb != verbHelp && c.Verb != verbStatus {
		if why, err = j.gate.ConfirmComment(ctx); err != nil {
			return err
		}
		ok = why == ""
	}
	if !ok {
		return j.intake.denyStart(ctx, why)
	}
	j.gate.Confirmed = true
	if err = j.obeyCommand(ctx, c, s); err == nil && !j.Spoke && j.Job.Attempt <= 1 {
		why := effects.MakeSentence(effects.FirstLine(j.Outcome.Notice))
		j.PostReply(ctx, s.Number, report.Reply{Kind: report.NotNow, Verb: c.Verb, Why: why})
	}
	return err
}

// obeyCommand does what a command says that may be given.
func (j *commands) obeyCommand(ctx context.Context, c *event.Command, s *event.Subject) error {
	if c.Verb == verbHelp {
		return j.AnswerCommand(ctx, report.Reply{Kind: report.Done, Verb: verbHelp, Why: event.Verbs()})
	}
	limits, err := j.applyOptions(c)
	if err != nil {
		return j.AnswerCommand(ctx, report.Reply{Kind: report.NotNow, Verb: c.Verb, Why: err.Error()})
	}
	if c.Verb == verbStart {
		return j.startByCommand(ctx, c, *s, limits)
	}
	f, err := j.finder.findFor(ctx, c, *s)
	if err != nil {
		return err
	}
	if f == nil {
		return j.AnswerCommand(ctx, report.Reply{Kind: report.NoThread, Verb: c.Verb})
	}
	switch c.Verb {
	case verbResume:
		return j.resumeThread(ctx, c, f, limits)
	case verbRetry:
		return j.retryThread(ctx, c, f)
	case verbStatus:
		return j.showStatus(ctx, f)
	case verbCancel:
		return j.cancelThread(ctx, c, f)
	case verbFork:
		return j.forkThread(ctx, c, f, limits)
	}
	return j.AnswerCommand(ctx, report.Reply{Kind: report.Unknown, Verb: c.Verb})
}

// aliasPattern is an agent's name. A comment may not bring a command line along.
var aliasPattern = lazyregexp.New(`^[0-9A-Za-z_-]+$`)

// applyOptions takes over what a command says of this job, and reads the limits that it
// raises. The error is an answer.
func (j *commands) applyOptions(c *event.Command) (limits map[string]float64, err error) {
	if agent, ok := c.Option("agent"); ok {
		if !aliasPattern.MatchString(agent) {
			return nil, errors.New("`--agent` takes the name of an agent of the configuration")
		}
		j.Inputs.Agent = agent
	}
	return limitsOf(c)
}

// startByCommand starts a thread on the comment's issue or pull request, of the
// workflow that the command names.
func (j *commands) startByCommand(ctx context.Context, c *event.Command, s event.Subject, limits map[string]float64) error {
	a := wantedThread{subject: &s, workflow: j.Inputs.Workflow, more: sanitize.Incoming(c.Text), limits: limits, byCommand: true}
	if words := c.Words(); len(words) > 0 {
		if len(words) > 1 || workflow.KindOfRef(words[0]) != workflow.RefName {
			return j.AnswerCommand(ctx, report.Reply{Kind: report.NotNow, Verb: verbStart, Why: "Write `/uwf start`, or `/uwf start` and the name of a workflow; what is to be done goes on the lines below it."})
		}
		a.workflow = words[0]
	}
	return j.intake.startThread(ctx, a)
}

// resumeThread lets a thread go on, and goes on with it.
func (j *commands) resumeThread(ctx context.Context, c *event.Command, f *found, limits map[string]float64) error {
	if again := j.gate.StartedAgainBy(); again != "" {
		j.PostNotice(again + " started this run again: the words of " + j.Event.CommentAuthor.Login + " are not said once more")
		return j.continueReleased(ctx, f)
	}
	if e := f.p.Entry; f.ended == nil && e.Status == gitcas.StatusActive && life.CountAttempts(e, "", nil) > 0 {
		// Nothing goes on by itself, but it does not wait either.
		if _, err := j.Engine.SuspendAt(ctx, f.id, e.Head, "its step failed, and a person lets it go on"); err != nil {
			return err
		}
	}
	text := strings.TrimSpace(strings.Join(c.Words(), " ") + "\n\n" + c.Text)
	err := j.Engine.Resume(ctx, thread.ResumeRequest{Thread: f.id, Text: strings.TrimSpace(sanitize.Incoming(text)), Limits: limits, Written: j.gate.Written, TakeBranch: c.Has("take-branch")})
	return j.continueUnlessRefused(ctx, f, verbResume, err)
}

// continueUnlessRefused goes on with a thread that somebody let go on, unless that was refused. A
// re-run does so whatever became of it.
func (j *commands) continueUnlessRefused(ctx context.Context, f *found, verb string, err error) error {
	switch {
	case err == nil, j.Job.Attempt > 1 && j.isAlreadyDone(err):
		return j.continueReleased(ctx, f)
	case j.isAlreadyDone(err):
		return err
	}
	return j.finder.refuseCommand(ctx, f.id, verb, steerError(err))
}

// isAlreadyDone reports whether an error is not about what was asked for. A re-run finds
// that what it asks for has been done.
func (j *commands) isAlreadyDone(err error) bool {
	switch life.KindOf(err) {
	case life.KindNotYours:
		return j.Job.Attempt > 1
	case life.KindUsage:
		return false
	}
	return true
}

// continueReleased goes on, by a job, with a thread that somebody let go on.
func (j *commands) continueReleased(ctx context.Context, f *found) error {
	head, err := j.intake.findHead(ctx, f.id)
	if err != nil {
		return err
	}
	return j.steps.continueThread(ctx, f.id, head)
}

// retryThread tries again whatever it is that failed: the step, its delivery, or only the
// job for it, which got lost.
func (j *commands) retryThread(ctx context.Context, c *event.Command, f *found) error {
	if f.ended != nil {
		return j.finder.refuseCommand(ctx, f.id, verbRetry, "It is over.")
	}
	e := f.p.Entry
	var err error
	switch _, held := f.v.FindClaim(f.id); {
	case c.Has("take") && held && j.Job.Attempt <= 1: // what a re-run finds was claimed since
		err = j.Engine.Take(ctx, f.id)
	case life.CountAttempts(e, "", nil) > 0:
		err = j.Engine.Retry(ctx, f.id)
	case e.Status == gitcas.StatusSuspended && f.p.Asks():
		return j.finder.refuseCommand(ctx, f.id, verbRetry, "It asks something: answer with `/uwf resume` and the answer on the lines below it.")
	case e.Status == gitcas.StatusSuspended:
		err = j.Engine.Resume(ctx, thread.ResumeRequest{Thread: f.id})
	case j.Job.Attempt <= 1 && f.isClaimed():
		return j.finder.refuseCommand(ctx, f.id, verbRetry, "Another job is working on it. If that job is dead, take the thread from it with `/uwf retry --take`.")
	}
	return j.continueUnlessRefused(ctx, f, verbRetry, err)
}

// showStatus writes the thread's comment anew.
func (j *commands) showStatus(ctx context.Context, f *found) error {
	j.SelectComment(f.p)
	t := j.finder.describeNow(f)
	j.UpdateComment(ctx, f.p, t)
	j.Outcome.Thread, j.Outcome.Head, j.Outcome.Step, j.Outcome.Status = f.id, f.p.Entry.Head, len(f.p.Chain.Steps), string(f.p.Entry.Status)
	if f.ended == nil {
		j.RecordComment(ctx, f.p)
	} else {
		j.Outcome.Status, j.Outcome.Done, j.Outcome.PullRequest = f.ended.Reason, true, f.ended.PR
	}
	return j.FinishOK(fmt.Sprintf("thread %s: %s", f.id, report.Sentence(t)))
}

// cancelThread ends a thread for good.
func (j *commands) cancelThread(ctx context.Context, c *event.Command, f *found) error {
	reason := cancelledBy(j.Event.CommentAuthor.Login)
	if text := strings.TrimSpace(sanitize.Incoming(c.Text)); text != "" {
		reason += ": " + text
	}
	line, err := j.Engine.Cancel(ctx, f.id, reason)
	switch {
	case life.KindOf(err) == life.KindNotYours:
		return j.finder.refuseCommand(ctx, f.id, verbCancel, "It is over already.")
	case err != nil:
		return err
	}
	f.ended = &line
	t := j.finder.describeEnded(f)
	t.Stopping = f.isClaimed()
	j.UpdateComment(ctx, f.p, t)
	for _, l := range effects.Labels() {
		if j.HasLabel(f.p.Trigger.Number, l.Name) {
			j.RemoveLabels(ctx, f.p, l.Name)
		}
	}
	j.Outcome.Thread, j.Outcome.Head, j.Outcome.Status = f.id, f.p.Entry.Head, gitcas.ReasonCancelled
	return j.FinishOK(fmt.Sprintf("thread %s is cancelled", f.id))
}

// forkThread begins another thread with the first steps of this one.
func (j *commands) forkThread(ctx context.Context, c *event.Command, f *found, limits map[string]float64) error {
	n := len(f.p.Chain.Steps)
	steps := -1
	words := c.Words()
	if len(words) > 0 {
		var err error
		steps, err = strconv.Atoi(strings.TrimPrefix(words[0], ":"))
		if err != nil || len(words) > 1 || steps < 0 || steps > n {
			return j.finder.refuseCommand(ctx, f.id, verbFork, fmt.Sprintf("Write `/uwf fork N`, where N is how many steps the new thread shares: 0 to %d.", n))
		}
	}
	id, err := j.intake.newID()
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%s/%s/fork/%d", f.p.Def.Name, threadview.SubjectKey(f.p.Trigger.Pull, f.p.Trigger.Number), j.Event.CommentID)
	over, err := j.intake.endedBefore(ctx, key, true)
	if err != nil {
		return err
	}
	if over != nil {
		return j.FinishOK("the fork that this command began is over")
	}
	started, err := j.Engine.Fork(ctx, thread.ForkRequest{ID: id, From: f.id, Steps: steps, Key: key, Limits: limits})
	if err != nil {
		if c := life.KindOf(err); c == life.KindNotYours || c == life.KindUsage {
			return j.finder.refuseCommand(ctx, f.id, verbFork, steerError(err))
		}
		return err
	}
	j.CallHook("started")
	if !started.Existed {
		j.Made = started.Thread
	}
	j.Comment = nil
	head, err := j.intake.findHead(ctx, started.Thread)
	if err != nil {
		return err
	}
	if started.Suspended != nil {
		return j.steps.tellWaiting(ctx, thread.Result{Thread: started.Thread, Head: head, Suspended: started.Suspended})
	}
	return j.steps.continueThread(ctx, started.Thread, head)
}

// limitsOf reads the limits that a command raises.
func limitsOf(c *event.Command) (map[string]float64, error) {
	out := map[string]float64{}
	for _, limit := range workflow.LimitKinds() {
		v, ok := c.Option(limit.Flag)
		if !ok {
			continue
		}
		n, _ := strconv.ParseFloat(v, 64) // 0 where it is no number, infinite where it is too large
		if limit.Name == "wall" {
			d, _ := time.ParseDuration(v)
			n = d.Seconds()
		}
		whole := limit.Name == "maxSteps" || limit.Name == "maxStepsPerRole"
		switch bad := !(n > 0) || n > workflow.MaxLimit; {
		case whole && (bad || n != math.Trunc(n)):
			return nil, fmt.Errorf("`--%s=%s`: write a whole number from 1", limit.Flag, event.PlainWord(v))
		case bad:
			return nil, fmt.Errorf("`--%s=%s`: write a number that is more than 0; for --wall a time such as 90m", limit.Flag, event.PlainWord(v))
		}
		out[limit.Name] = n
	}
	return out, nil
}

// steerError is an engine's error without what can only be typed in a shell.
func steerError(err error) string {
	if refused, ok := errors.AsType[*life.DeedError](err); ok {
		return effects.MakeSentence(refused.Reason)
	}
	return effects.MakeSentence(effects.FirstLine(err.Error()))
}

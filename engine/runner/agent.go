package runner

import (
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/artifact"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/runner/workflowfiles"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
)

// beginStep tells people that an agent begins before it does, and keeps it from what can't
// be pushed.
func (j *steps) beginStep(ctx context.Context, t task.Task) error {
	j.announceStep(ctx, t)
	return j.checkWorkBranch(ctx, t.Thread, t.Entry, j.Last)
}

// announceStep brings the comment up to date at a claim.
func (j *steps) announceStep(ctx context.Context, t task.Task) {
	p, err := threadview.FromTask(t)
	if err != nil {
		j.Warn("the thread's comment could not be brought up to date", err)
		return
	}
	j.Last = p
	v := j.DescribeThread(p, report.Running)
	v.Question = ""
	v.Role, v.Agent, v.Since = t.Role, t.Agent, j.Now()
	j.UpdateComment(ctx, p, v)
	if n := t.Entry.Next; n != nil && (n.Answer != "" || n.Forgiven > 0) {
		j.RemoveLabels(ctx, p, effects.LabelWaiting, effects.LabelFailed) // somebody let it go on
	}
}

// chooseAgent is who does the step: the engine's own agent or, where agents run in a job of
// their own, what that one left. An artifact that is not of the step that is to be done is
// refused when it is asked for it.
func (j *steps) chooseAgent() task.Agent {
	if j.Inputs.Command != ci.CommandCommit {
		return j.Engine.Agent
	}
	a, err := artifact.Read(j.Inputs.Artifact)
	if err != nil {
		return missingStepAgent{err}
	}
	return artifact.Agent(a, j.Engine.Folder)
}

// agentDied reports whether the job that was to run the thread's agent died before it could
// leave anything: that is no failure of the step's.
func (j *steps) agentDied() bool {
	if j.Inputs.Thread == "" || !slices.ContainsFunc(j.Inputs.Needs, func(n ci.Needed) bool { return n.Result == "failure" && !n.Ran }) {
		return false
	}
	_, err := artifact.Read(j.Inputs.Artifact)
	return errors.Is(err, artifact.ErrNone)
}

// missingStepAgent is the agent of a job that the job before left nothing for.
type missingStepAgent struct{ err error }

// Run implements task.Agent.
func (n missingStepAgent) Run(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
	return task.Draft{}, &task.AgentError{Agent: t.Agent, Reason: "the job that runs agents left no step; its log says why", Err: n.err}
}

// agentOnly runs the agent of a thread's next step on a private copy of the store, and
// leaves what it did as an artifact. It writes nothing else anywhere.
func (j *steps) agentOnly(ctx context.Context) error {
	if j.Inputs.Thread == "" {
		return j.FinishOK("there is no step to do yet: the job that may write starts the thread")
	}
	if err := j.work.PrepareFolder(ctx, j.Inputs.Thread); err != nil {
		return err
	}
	stepper := *j.Engine
	stepper.Agent = guardedAgent{j.Engine.Agent, j}
	captured := artifact.Capture(&stepper)
	res, err := stepper.Step(ctx, step.Request{Thread: j.Inputs.Thread, ExpectHead: j.Inputs.Head, Agent: j.Inputs.Agent, Deliver: true, Nonce: j.Inputs.Claim, HandsOver: true})
	j.NoteResult(res)
	// What it did is on no state branch yet.
	j.Outcome.Done = false
	if h := j.Inputs.Head.Hash; h != "" {
		j.Outcome.Head = h
	}
	if a, ran := captured.Artifact(); ran {
		return errors.Join(err, artifact.Write(j.Inputs.Artifact, a))
	}
	switch life.KindOf(err) {
	case life.KindDone:
		return j.FinishOK("no agent had to run; the job that may write does the rest")
	case life.KindNotYours, life.KindSuspended, life.KindLimit:
		return j.FinishOK(err.Error())
	}
	return err
}

// guardedAgent is an agent that may not change workflow files, where the token may not push
// changes of them.
type guardedAgent struct {
	task.Agent
	j *steps
}

// Run implements task.Agent. Changes are taken back also where the agent failed for another
// reason: its work is kept with the attempt, by a push that would be refused with them.
func (w guardedAgent) Run(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
	if w.j.Job.WorkflowFiles || w.j.IsGitea() || t.Workspace == "" {
		return w.Agent.Run(ctx, t, m)
	}
	watch, err := workflowfiles.Look(t.Workspace)
	if err != nil {
		return task.Draft{}, &task.AgentError{Agent: t.Agent, Reason: "it was not started", Err: err}
	}
	d, err := w.Agent.Run(ctx, t, m)
	if changed := watch.Check(t.Agent); err == nil {
		err = changed
	}
	return d, err
}

package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/runner/workflowfiles"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
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

// artifactFolder is the folder in which the job that runs agents leaves a step.
func (j *steps) artifactFolder() *unpushed.Folder {
	return &unpushed.Folder{Dir: j.Inputs.Artifact}
}

// agentDied reports whether the job that was to run the thread's agent died before it could
// leave anything: that is no failure of the step's.
func (j *steps) agentDied() bool {
	if j.Inputs.Thread == "" || !slices.ContainsFunc(j.Inputs.Needs, func(n ci.Needed) bool { return n.Result == "failure" && !n.Ran }) {
		return false
	}
	return !j.artifactFolder().Holds(j.Inputs.Thread)
}

// WithoutPushes is a remote as the job that runs agents has it, whatever its token could do.
func WithoutPushes(remote wire.Remote) wire.Remote { return withoutPushes{remote} }

type withoutPushes struct{ wire.Remote }

// Push implements wire.Remote.
func (r withoutPushes) Push(context.Context, wire.PushRequest) (time.Time, error) {
	return time.Time{}, &wire.RemoteError{Op: "push", URL: r.URL(), Kind: wire.ErrDenied, Detail: "the job that runs agents may change nothing"}
}

// agentOnly runs the agent of a thread's next step, and leaves what it did as an artifact. It
// writes nothing else anywhere.
func (j *steps) agentOnly(ctx context.Context) error {
	if j.Inputs.Thread == "" {
		return j.FinishOK("there is no step to do yet: the job that may write starts the thread")
	}
	if err := os.RemoveAll(j.idleFile()); err != nil { // of a job before this one
		return err
	}
	if err := j.work.PrepareFolder(ctx, j.Inputs.Thread); err != nil {
		return err
	}
	stepper := *j.Engine
	stepper.Agent, stepper.Unpushed = guardedAgent{j.Engine.Agent, j}, j.artifactFolder()
	res, err := stepper.Step(ctx, step.Request{Thread: j.Inputs.Thread, ExpectHead: j.Inputs.Head, Agent: j.Inputs.Agent, Deliver: true, Nonce: j.Inputs.Claim, HandsOver: true})
	j.NoteResult(res)
	switch kind := life.KindOf(err); {
	case err == nil && (res.Result == "" || res.Again):
		return j.finishIdle("no agent had to run; the job that may write does the rest")
	case kind == life.KindNotYours, kind == life.KindSuspended, kind == life.KindLimit:
		return j.finishIdle(err.Error())
	}
	return err
}

// errIdle is why a job has nothing to commit though an agent is to run: there was no reason to when
// the job before it looked, such as a month's limit that steps at work might have used up.
var errIdle = errors.New("the job that runs agents had none to run when it looked, and now it would have: the next run does it")

// idleFile is the file by which the job that runs agents says that it had none to run: one that
// left nothing at all died, or lost what it was to leave.
func (j *steps) idleFile() string {
	return filepath.Join(j.Inputs.Artifact, string(j.Inputs.Thread)+".idle")
}

// finishIdle ends that job, and leaves the file.
func (j *steps) finishIdle(why string) error {
	return errors.Join(os.MkdirAll(j.Inputs.Artifact, 0o700), os.WriteFile(j.idleFile(), nil, 0o600), j.FinishOK(why))
}

// readArtifact reads what the job that runs agents left. Where that had none to run, the error is
// an errIdle, and the thread not this job's.
func (j *steps) readArtifact(store string, id gitcas.ThreadID) (unpushed.Step, error) {
	u, err := j.artifactFolder().Read(store, id)
	if errors.Is(err, fs.ErrNotExist) && os.Remove(j.idleFile()) == nil { // it says nothing of later jobs
		err = &life.DeedError{Kind: life.KindNotYours, Thread: id, Deed: life.Step, Reason: errIdle.Error(), Err: errIdle}
	}
	return u, err
}

func (j *steps) mayPushWorkflows() bool { return j.Job.WorkflowFiles || j.IsGitea() }

// checkWorkflowFiles is what guardedAgent checks, for a step that another job's agent made.
func (j *steps) checkWorkflowFiles(changes []workspace.Change) error {
	if j.mayPushWorkflows() {
		return nil
	}
	return workflowfiles.CheckChanges(changes)
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
	if w.j.mayPushWorkflows() || t.Workspace == "" {
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

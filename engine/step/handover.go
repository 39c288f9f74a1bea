package step

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Two jobs can share a step. The one runs the agent and can push nothing: it hands over what an
// engine keeps on disk anyway. The other commits it by the ordinary protocol, and takes all
// of it as hostile: the agent could have changed what its job left.

// handOver ends a job whose step another one commits.
func (r *run) handOver(ctx context.Context, d task.Draft, s *sealed, next plan) (thread.Result, error) {
	res := r.describeThread()
	if err := r.writeSealed(s); err != nil {
		return res, r.failStep(ctx, "seal", d, err)
	}
	res.Role, res.NextRole, res.Result, res.Usage = r.task.Role, next.role, next.result, s.step.Usage
	return res, nil
}

// handOverFailure leaves what there is of a step that failed: its StepNode tells why.
func (r *keeper) handOverFailure(a gitcas.Attempt) error {
	h, ok := attempt.ErrorStepOf(a.Nodes)
	if !ok {
		return errors.New("no record of the failure can be made")
	}
	return r.writeToDisk(h, a.Nodes, r.lost)
}

// leftError is why the step failed that another job left, or why it can't be taken.
type leftError struct {
	phase string
	err   error
}

func (e *leftError) Error() string { return e.err.Error() }
func (e *leftError) Unwrap() error { return e.err }

// takeOver is what the job left that ran the agent, as an agent's draft. Of its StepNode only
// the usage counts, which nobody else knows: the rest is this job's to say. What can't be
// committed and is of this step is returned beside the error, to be kept and charged.
func (r *agentRun) takeOver(ctx context.Context) (task.Draft, error) {
	refuse := func(d task.Draft, err error, format string, args ...any) (task.Draft, error) {
		return d, &task.AgentError{Agent: r.task.Agent, Reason: fmt.Sprintf(format, args...), Err: err}
	}
	var made record.Step
	u, err := r.req.TakesOver(r.View.StoreID(), r.ID)
	if err == nil {
		made, err = u.Record()
	}
	switch {
	case err != nil:
		return refuse(task.Draft{}, err, "the job that runs agents left no step; its log says why")
	case u.Entry.Head != r.Entry.Head:
		return refuse(task.Draft{}, nil, "what the job that runs agents left is of another step: run that job again")
	}
	b := &brought{Step: u, step: made}
	d := b.asDraft()
	d.Usage, d.Took = *made.Usage, time.Duration(made.Usage.DurationMs)*time.Millisecond
	if err := r.takeWork(ctx, u.Work); err != nil {
		return d, err
	}
	switch out := u.Nodes[made.Output]; {
	case !life.SameThread(u.Entry, r.Entry):
		return refuse(d, nil, "people have said something else to the thread since the agent began, or changed it; what it did is kept with this attempt: run both jobs again")
	case made.Agent != r.task.Agent:
		return refuse(d, nil, "the job that runs agents left a step of agent %.100q, wanted %q: give the inputs agent and config alike in both jobs", made.Agent, r.task.Agent)
	case out.Type == record.ErrorOutputSchema:
		return b.readFailure(d, out.Payload)
	}
	r.checks = r.reportedChecks(made.Checks, "the agents' job")
	r.prepared, r.notes = b.readPrepared("the agents' job"), reportedNotes(r, made.Notes, "the agents' job")
	return d, nil
}

// takeWork takes the folder as the agent left it.
func (r *agentRun) takeWork(ctx context.Context, w unpushed.Work) error {
	base := r.from
	err := r.rebuildWork(ctx, w)
	if err == nil && r.req.CheckChanges != nil {
		err = r.req.CheckChanges(r.snap.Changes)
	}
	if err == nil {
		err = r.checkFrom(ctx)
	}
	if err != nil && !errors.As(err, new(*workbranch.DivergedError)) {
		r.from, r.snap = base, nil
		err = &leftError{"workspace", err}
	}
	return err
}

// readFailure reads a StepNode that tells of a failure.
func (b *brought) readFailure(d task.Draft, payload any) (task.Draft, error) {
	out, _ := payload.(map[string]any)
	reason, _ := out["error"].(string)
	phase, _ := out["phase"].(string)
	// A person's stop, and an interrupt, are forgiven: whether there was one this job can't know.
	if !slices.Contains([]string{"prepare", "workspace", "checks", "seal", "extract"}, phase) {
		phase = "agent"
	}
	d.Stderr, _ = b.Nodes[b.step.Detail].Payload.(string)
	for _, own := range []node.Hash{b.Handle, b.step.Output, b.step.Detail} {
		delete(d.Nodes, own) // they are made anew
	}
	d.Handle = ""
	return d, &leftError{phase, errors.New(cmp.Or(reason, "the agent failed and did not say why"))}
}

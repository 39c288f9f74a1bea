package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// dispatcher starts the next jobs of threads.
type dispatcher struct {
	*effects.Effects
	sent    bool         // the next job of this one's thread was started
	rescued int          // what the next job is told of those that died
	ahead   *lease.Lease // the claim for the jobs that are to be started; nil: none
	pairs   bool         // agents run in a job of their own, which can push nothing
}

// errNoFile: nobody knows which workflow to start.
var errNoFile = errors.New("which workflow file this job is from is not known (neither GITHUB_WORKFLOW_REF nor GITHUB_WORKFLOW leads to one); give the input dispatch its name")

// sendDispatch starts the next job. While the forge is away it waits for it, longer than other
// effects do: without the next job the thread stands still.
func (j *dispatcher) sendDispatch(ctx context.Context, inputs map[string]string) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = effects.WithEffectTime(ctx)
		defer cancel()
	}
	file := j.Inputs.Dispatch
	switch file {
	case ci.DispatchRepository:
		return j.Forge.DispatchRepository(ctx, ci.DispatchType, inputs)
	case "", ci.DispatchAuto:
		file = j.Job.WorkflowFile
	}
	if file == "" {
		return errNoFile
	}
	ref, err := j.DefaultBranch(ctx)
	if err != nil {
		return err
	}
	err = j.Forge.DispatchWorkflow(ctx, file, ref, inputs)
	if !errors.Is(err, forge.ErrNotFound) && !errors.Is(err, forge.ErrInvalid) {
		return err
	}
	// The forge may know the default branch by another name than git.
	if now, aerr := j.AskDefaultBranch(ctx); aerr == nil && now != ref {
		err = j.Forge.DispatchWorkflow(ctx, file, now, inputs)
	}
	return err
}

// dispatchNext starts the thread's next job. One that the forge refuses leaves the thread
// waiting for a person, with the reason; one that was only held up is left to the sweep.
func (j *dispatcher) dispatchNext(ctx context.Context, id gitcas.ThreadID, head node.Pin, p *threadview.Thread) error {
	if j.Inputs.Dispatch == ci.DispatchOff {
		j.tellQueued(ctx, p)
		j.PostNotice(fmt.Sprintf("thread %s goes on with the next job that is told to step it: the input dispatch is off", id))
		return nil
	}
	if err := j.claimAhead(ctx, id, head, p); err != nil {
		return j.FinishOK(err.Error())
	}
	inputs := j.inputsOf(id, head, j.StoreID, p)
	if nonce := j.ahead.Nonce(); nonce != "" {
		inputs["claim"] = nonce
	}
	err := j.sendDispatch(ctx, inputs)
	if err != nil {
		j.releaseAhead(ctx)
	}
	switch {
	case err == nil:
		j.sent, j.ahead = true, nil
		j.CallHook("dispatched")
		return nil
	case forge.IsRefused(err), errors.Is(err, errNoFile):
		return j.suspendStranded(ctx, id, head.Hash, p, err)
	default:
		j.tellQueued(ctx, p)
		j.Warn("the next job could not be started now; a scheduled run makes up for it", err)
	}
	return nil
}

// tellQueued tells people that a thread's next job is not there yet. One that comes tells it itself.
func (j *dispatcher) tellQueued(ctx context.Context, p *threadview.Thread) {
	if p != nil {
		j.UpdateComment(ctx, p, j.DescribeThread(p, report.Queued))
	}
}

// claimAhead claims a thread for the jobs that are to be started for it, where agents have one
// of their own, which can't, and the commit of the step before has not. The error says that
// others are at work, so that none is to be started.
func (j *dispatcher) claimAhead(ctx context.Context, id gitcas.ThreadID, head node.Pin, p *threadview.Thread) error {
	if !j.pairs || j.ahead != nil || j.View == nil || p == nil || p.Head() != head || p.Entry.Status != gitcas.StatusActive {
		return nil
	}
	var err error
	j.ahead, err = j.Engine.ClaimAhead(ctx, j.View, id)
	if err == nil || life.KindOf(err) == life.KindNotYours {
		return err
	}
	j.Warn("the thread is not claimed for its next jobs", err)
	return nil
}

// releaseAhead lets a thread go whose next jobs are not started after all.
func (j *dispatcher) releaseAhead(ctx context.Context) {
	j.ahead.Release(ctx)
	j.ahead = nil
}

// inputsOf are the inputs of a thread's next job, which its workflow file has to declare.
func (j *dispatcher) inputsOf(id gitcas.ThreadID, head node.Pin, store string, p *threadview.Thread) map[string]string {
	comment, pull := ci.Wanted{Off: j.Inputs.Comment.Off}, ci.Wanted{Off: j.Inputs.PullRequest.Off}
	if p != nil {
		comment.ID, pull.ID = p.Entry.Comment, int64(p.Entry.PR)
	}
	if s := j.Comment; s != nil && s.Thread == string(id) && s.ID > 0 {
		comment.ID = s.ID
	}
	in := map[string]string{"thread": string(id), "head": head.String(), "store": store, "comment": comment.String(), "pull-request": pull.String()}
	if j.rescued > 0 { // that many jobs before it died without a trace
		in["rescued"] = strconv.Itoa(j.rescued)
	}
	return in
}

// suspendStranded says that a thread's next job was refused.
func (j *dispatcher) suspendStranded(ctx context.Context, id gitcas.ThreadID, head node.Hash, p *threadview.Thread, cause error) error {
	reason := "the next job could not be started: " + cause.Error()
	done, err := j.suspendAndTell(ctx, id, head, p, report.Failure{Phase: "dispatch", Message: reason, ByForge: isForgeAnswer(cause), Advice: dispatchAdvice(cause)})
	if err != nil {
		return errors.Join(errors.New(reason), err)
	}
	if !done {
		j.PostNotice(fmt.Sprintf("thread %s has gone on without this job (%s)", id, reason))
		return nil
	}
	return fmt.Errorf("thread %s waits for a person: %s", id, reason)
}

// dispatchAdvice says what lets a job start the next one.
func dispatchAdvice(err error) string {
	const then = " Then go on with /uwf resume in a comment."
	switch {
	case errors.Is(err, forge.ErrForbidden), errors.Is(err, forge.ErrAuth):
		return "Give the job the permission \"actions: write\"." + then
	case errors.Is(err, forge.ErrNotFound):
		return "The workflow file has to be on the default branch, with the trigger workflow_dispatch, and must not be disabled." + then
	case errors.Is(err, forge.ErrInvalid):
		return "The workflow file has to declare the inputs thread, head, store, comment, pull-request and rescued of workflow_dispatch (and claim, where agents run in a job of their own), as the one that uwf init writes does." + then
	}
	return "Name the workflow file in the input dispatch." + then
}

// suspendAndTell makes a thread wait for a person, and says why in its comment. done is false
// where it has gone on meanwhile.
func (j *dispatcher) suspendAndTell(ctx context.Context, id gitcas.ThreadID, head node.Hash, p *threadview.Thread, why report.Failure) (done bool, err error) {
	sctx, cancel := effects.WithEffectTime(ctx)
	defer cancel()
	if done, err = j.Engine.SuspendAt(sctx, id, head, why.Message); err != nil || !done {
		return false, err
	}
	j.Outcome.Status = string(gitcas.StatusSuspended)
	if p != nil {
		j.TellFailed(ctx, p, why)
	}
	return true, nil
}

// suspendCancelled makes a thread wait whose run a person cancelled, and says so in its comment.
// done is false if it has gone on meanwhile.
func (j *dispatcher) suspendCancelled(ctx context.Context, id gitcas.ThreadID, head node.Hash, reason string) (done bool, err error) {
	if j.View, err = j.Engine.FreeClaim(ctx, j.View, id); err != nil {
		return false, err
	}
	if done, err = j.Engine.SuspendAt(ctx, id, head, reason); err != nil || !done {
		return false, err
	}
	if p := j.LoadThreadOrLast(ctx, id); p != nil {
		t := j.DescribeThread(p, report.Waiting)
		t.Role = ""
		j.TellState(ctx, p, t, effects.LabelWaiting)
	}
	return true, nil
}

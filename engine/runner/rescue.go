package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// rescuer goes on with a run of which a job is over that should not be.
type rescuer struct {
	*effects.Effects
	finder     *finder
	dispatcher *dispatcher
	steps      *steps
	intake     *intake
	commands   *commands
}

// maxRescued is how many jobs in a row may die without a trace before a person is asked.
const maxRescued = 3

// recoverRun does what is to be done for a run of which a job is over that should not be.
func (j *rescuer) recoverRun(ctx context.Context) error {
	for _, n := range j.Inputs.Needs { // so their claims are dead, whatever these say
		j.Engine.Who.Over = append(j.Engine.Who.Over, n.Name)
		if !n.Ran {
			j.Engine.Who.Killed = append(j.Engine.Who.Killed, n.Name)
		}
	}
	j.Engine.Who.Ahead = j.Inputs.Claim
	switch {
	case len(j.Inputs.Needs) == 0:
		return life.Usagef("the input needs is empty, so that the command %s has no jobs to look after: write needs: ${{ toJSON(needs) }}", j.Inputs.Command)
	case j.Inputs.Command == ci.CommandStopped:
		return j.runCancelled(ctx)
	}
	return j.rescueThread(ctx)
}

// rescueThread goes on with the run's own thread, whose job died: it is not left to a schedule
// that comes hours later. A step that failed, and said so, is a person's to try again.
func (j *rescuer) rescueThread(ctx context.Context) error {
	if !slices.ContainsFunc(j.Inputs.Needs, ci.Needed.HasDied) {
		return j.FinishOK("no job of this run died")
	}
	if over, err := j.beginAgain(ctx); over || err != nil {
		return err
	}
	p, left, err := j.ownThread(ctx)
	if err != nil || p == nil {
		return err
	}
	moved := j.Inputs.Head.Hash != "" && p.Entry.Head != j.Inputs.Head.Hash
	held, claimed := j.View.FindClaim(p.ID)
	switch {
	case left.Told:
		return j.FinishOK(fmt.Sprintf("the step of thread %s failed, and its job said so: /uwf retry tries it again", p.ID))
	case moved && !left.Step:
		return j.FinishOK(fmt.Sprintf("thread %s has gone on without this run", p.ID))
	case claimed && held.Head == p.Entry.Head && !left.Claim:
		return j.FinishOK(fmt.Sprintf("another job works on thread %s", p.ID))
	}
	if in, err := j.bringIn(ctx, p.ID); in || err != nil {
		return err
	}
	began := slices.ContainsFunc(j.Inputs.Needs, ci.Needed.HadRunner)
	if !began {
		j.Engine.ReleaseAhead(ctx, j.View, p.ID)
		left.Claim = left.Claim && j.Inputs.Claim == ""
	}
	if held, err := j.steps.holdBack(ctx, p); held || err != nil {
		return err
	}
	lost := report.LostJob{Began: true, Again: true}
	switch {
	case left.Claim:
		lost.At, j.dispatcher.pairs = time.UnixMilli(held.Renewed), j.dispatcher.pairs || held.Ahead
		if j.View, err = j.Engine.FreeClaim(ctx, j.View, p.ID); err != nil {
			return err
		}
	case left.Died, left.Step:
	case !began:
		return j.FinishOK(fmt.Sprintf("the job of thread %s never got a runner: nothing died", p.ID))
	default:
		if j.dispatcher.rescued = j.Inputs.Rescued + 1; j.dispatcher.rescued >= maxRescued {
			return j.suspendAfterDeaths(ctx, p)
		}
	}
	t := j.DescribeThread(p, report.Lost)
	t.Lost = lost
	j.UpdateComment(ctx, p, t)
	return j.dispatcher.dispatchNext(ctx, p.ID, p.Head(), p)
}

// bringIn puts the step into the thread that the dead job had sealed and could not push, if
// there is one, and starts the next job. It reports whether it did.
func (j *rescuer) bringIn(ctx context.Context, id gitcas.ThreadID) (bool, error) {
	res, in, err := j.Engine.BringIn(ctx, step.Request{Thread: id, Deliver: true, Effects: j.ListEffects})
	switch {
	case life.KindOf(err) == life.KindNotYours: // it stays in the run's artifact
		return true, j.FinishOK(err.Error())
	case err != nil || !in:
		return in, err
	case res.Suspended != nil:
		j.NoteResult(res)
		return true, j.steps.tellWaiting(ctx, res)
	}
	j.NoteResult(res)
	p, err := j.LoadThread(ctx, id)
	if err != nil {
		return true, err
	}
	j.UpdateComment(ctx, p, j.DescribeThread(p, report.Queued))
	return true, j.dispatcher.dispatchNext(ctx, id, p.Head(), p)
}

// suspendAfterDeaths makes a thread wait whose jobs die before they can begin.
func (j *rescuer) suspendAfterDeaths(ctx context.Context, p *threadview.Thread) error {
	reason := fmt.Sprintf("%d jobs in a row died before they could begin; the log of the last one is at %s", j.dispatcher.rescued, j.Job.ResolveRunURL())
	done, err := j.dispatcher.suspendAndTell(ctx, p.ID, p.Entry.Head, p, report.Failure{Message: reason, Advice: "Look why the jobs die, then comment /uwf retry."})
	if err != nil {
		return err
	}
	if !done {
		return j.FinishOK(fmt.Sprintf("thread %s has gone on without this run", p.ID))
	}
	return j.FinishOK(fmt.Sprintf("thread %s waits for a person: %s", p.ID, reason))
}

// superseded begins what GitHub notes at a job that gave way to another one of its group.
const superseded = "Canceling since a higher priority waiting request"

// cancelledByPattern is what GitHub notes at the jobs of a run that somebody cancelled.
var cancelledByPattern = lazyregexp.New(`(?m)^The run was cancell?ed by @([0-9A-Za-z_-]+(?:\[bot\])?)\.?$`)

// runCancelled makes the run's own thread wait: a person cancelled the run. A job that
// gave way to another one before it had a runner was cancelled by nobody.
func (j *rescuer) runCancelled(ctx context.Context) error {
	if !slices.ContainsFunc(j.Inputs.Needs, func(n ci.Needed) bool { return n.Result == "cancelled" }) {
		return j.FinishOK("no job of this run was cancelled")
	}
	p, left, err := j.ownThread(ctx)
	if err != nil || p == nil {
		return err
	}
	notes, err := j.Forge.ListJobNotes(ctx, j.Job.Run, j.Job.Attempt)
	if err != nil {
		j.Warn("who cancelled the run can't be told", err)
	}
	reason := "cancelled on the Actions page"
	by := cancelledByPattern.FindStringSubmatch(strings.Join(notes, "\n"))
	switch {
	case by != nil:
		reason = "cancelled by @" + by[1] + " on the Actions page"
	case slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, superseded) }),
		left == (thread.Remains{}) && !slices.ContainsFunc(j.Inputs.Needs, func(n ci.Needed) bool { return n.Ran }):
		return j.FinishOK(fmt.Sprintf("the job of thread %s gave way to another one: nobody cancelled it", p.ID))
	}
	reason += ": " + j.Job.ResolveRunURL()
	done, err := j.dispatcher.suspendCancelled(ctx, p.ID, p.Entry.Head, reason)
	if err != nil {
		return err
	}
	if !done {
		return j.FinishOK(fmt.Sprintf("thread %s has gone on without this run", p.ID))
	}
	j.Outcome.Thread, j.Outcome.Status = p.ID, string(gitcas.StatusSuspended)
	return j.FinishOK("the run was " + reason)
}

// ownThread is the thread that this run is about, with what its jobs left on its head;
// nil: there is none, or nothing is due for it, which has been told.
func (j *rescuer) ownThread(ctx context.Context) (*threadview.Thread, thread.Remains, error) {
	id, err := j.ownThreadID(ctx)
	if err != nil {
		return nil, thread.Remains{}, err
	}
	if id == "" {
		return nil, thread.Remains{}, j.FinishOK("this run is about no thread")
	}
	p, err := j.LoadThread(ctx, id)
	if errors.Is(err, gitcas.ErrUnknownThread) {
		j.finder.tellStopped(ctx, id)
		return nil, thread.Remains{}, j.FinishOK(fmt.Sprintf("thread %s is over", id))
	}
	if err != nil {
		return nil, thread.Remains{}, err
	}
	j.Outcome.Thread, j.Outcome.Head, j.Outcome.Status = id, p.Entry.Head, string(p.Entry.Status)
	if e := p.Entry; e.Status == gitcas.StatusSuspended || e.Status == gitcas.StatusEnded && !e.Deliver {
		return nil, thread.Remains{}, j.FinishOK(fmt.Sprintf("thread %s waits for a person, or is over", id))
	}
	left, err := j.findRemains(ctx, j.View, id)
	return p, left, err
}

// findRemains looks for what the run's jobs left on a thread's head.
func (j *rescuer) findRemains(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (thread.Remains, error) {
	return j.Engine.FindRemains(ctx, v, id, func(run string, attempt int) bool {
		return j.Job.IsOwnRun(run) && attempt <= j.Job.Attempt
	})
}

// beginAgain does what a label, an assignment or a command asks for, if the job for it died before
// it left a trace of that. The same people have to be allowed, and the next job does the step.
// over reports whether nothing else is left to rescue.
func (j *rescuer) beginAgain(ctx context.Context) (over bool, err error) {
	s, c := j.Event.Subject, j.Event.Command
	begin, marker := j.intake.startLabeled, report.NoteMarker(j.Job.Run)
	switch j.Event.Kind {
	case event.Labeled:
	case event.Assigned:
		begin = j.intake.startAssigned
	case event.Comment:
		begin, marker = j.commands.doCommand, report.ReplyMarker(j.Event.CommentID)
	default:
		return false, nil
	}
	if s == nil || j.Event.Kind == event.Comment && c == nil {
		return false, nil
	}
	if traced, err := j.hasTrace(ctx, c, *s); traced || err != nil {
		return false, err
	}
	switch given, err := j.FindAnswer(ctx, s.Number, marker); {
	case err != nil:
		return true, err
	case given != 0:
		return true, j.FinishOK("the job failed, and said so")
	case j.Inputs.Unread != "":
		return true, life.Usagef("the job rescue lacks the input %s, which the job that failed computes: write it below its with:, too", j.Inputs.Unread)
	}
	j.dispatcher.rescued = j.Inputs.Rescued + 1
	return true, begin(ctx)
}

// hasTrace reports whether a job of this run did already what its event asks for: the thread is
// there, or a command is on record in it.
func (j *rescuer) hasTrace(ctx context.Context, c *event.Command, s event.Subject) (bool, error) {
	find := func() (*found, error) { return j.finder.findBySubject(ctx, s) }
	if c != nil {
		find = func() (*found, error) { return j.finder.findFor(ctx, c, s) }
	}
	f, err := find()
	switch {
	case f == nil || err != nil:
		return false, err
	case j.Job.IsOwnRun(f.p.Trigger.Run), f.ended == nil && c == nil:
		return true, nil
	case c == nil:
		return false, nil
	case slices.ContainsFunc(f.p.Said, func(w report.Said) bool { return w.By != nil && w.By.URL == j.Event.CommentURL }):
		return true, nil
	case f.ended != nil:
		return f.ended.ClosedBy != nil && f.ended.ClosedBy.URL == j.Event.CommentURL, nil
	}
	left, err := j.findRemains(ctx, f.v, f.id)
	return left != (thread.Remains{}), err
}

// ownThreadID is the id of that thread; empty: there is none.
func (j *rescuer) ownThreadID(ctx context.Context) (gitcas.ThreadID, error) {
	if j.Inputs.Thread != "" {
		return j.Inputs.Thread, nil
	}
	var f *found
	var err error
	switch s := j.Event.Subject; {
	case j.Event.Kind == event.Comment && j.Event.Command != nil && s != nil:
		f, err = j.finder.findFor(ctx, j.Event.Command, *s)
	case (j.Event.Kind == event.Labeled || j.Event.Kind == event.Assigned) && s != nil:
		f, err = j.finder.findBySubject(ctx, *s)
	default:
		return j.startedByPrompt(ctx)
	}
	if err != nil || f == nil || f.ended != nil {
		return "", err
	}
	return f.id, nil
}

// startedByPrompt is the thread that a job of this run started for a prompt.
func (j *rescuer) startedByPrompt(ctx context.Context) (gitcas.ThreadID, error) {
	v, err := j.finder.loadStore(ctx)
	if v == nil {
		return "", err
	}
	for id, e := range v.Threads() {
		if e.Key == promptKey(j.Job.Run) || strings.HasPrefix(e.Key, promptKey(j.Job.Run)+"/") {
			return id, nil
		}
	}
	return "", nil
}

package runner

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/authority"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/delivery"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// job is one Run: what an event leads to, and what is left to do when that is done.
type job struct {
	*effects.Effects
	gate     *authority.Gate
	steps    *steps
	intake   *intake
	commands *commands
	rescuer  *rescuer
	sweeper  *sweeper
}

// newJob puts the parts of a job together. What they say goes out by the same effects.
func newJob(r *Runner, ev event.Event) *job {
	inputs := r.Inputs
	e := &effects.Effects{Engine: r.Engine, Forge: r.Forge, Inputs: &inputs, Job: r.Job, Out: r.Out, Now: r.Now, Hook: r.Hook, Event: ev, StoreID: r.Job.Store}
	g := &authority.Gate{Effects: e}
	e.Engine.By = g.FindPerson()
	f := &finder{Effects: e, idle: r.Idle}
	d := &dispatcher{Effects: e, pairs: r.Inputs.Command == ci.CommandCommit}
	s := &steps{Effects: e, gate: g, finder: f, dispatcher: d, delivery: &delivery.Delivery{Effects: e}, work: r.Work}
	i := &intake{Effects: e, gate: g, finder: f, steps: s, definitions: r.Definitions, base: r.Base, rand: r.Rand, id: r.Engine.Who.Run}
	c := &commands{Effects: e, gate: g, finder: f, steps: s, intake: i}
	return &job{
		Effects: e, gate: g, steps: s, intake: i, commands: c,
		rescuer: &rescuer{Effects: e, finder: f, dispatcher: d, steps: s, intake: i, commands: c}, sweeper: &sweeper{Effects: e, gate: g, finder: f, dispatcher: d, steps: s, rand: r.Rand},
	}
}

func (j *job) runEvent(ctx context.Context) (ci.Outcome, error) {
	err := j.mergeInputs()
	if err == nil {
		err = j.routeEvent(ctx)
	}
	return j.finishJob(ctx, err)
}

// routeEvent says what an event leads to.
func (j *job) routeEvent(ctx context.Context) error {
	switch j.Inputs.Command {
	case ci.CommandRun:
		return j.steps.agentOnly(ctx)
	case ci.CommandRescue, ci.CommandStopped:
		return j.rescuer.recoverRun(ctx)
	case ci.CommandCommit:
		if j.steps.agentDied() {
			return j.FinishOK("the job that runs agents died, and left nothing: its run's rescue goes on with the thread")
		}
	}
	switch j.Event.Kind {
	case event.None:
		return j.FinishOK(cmp.Or(j.Event.Why, "this event is not for uwf"))
	case event.Labeled:
		return j.intake.startLabeled(ctx)
	case event.Assigned:
		return j.intake.startAssigned(ctx)
	case event.Comment:
		return j.commands.doCommand(ctx)
	}
	switch {
	case j.Inputs.Thread != "":
		return j.steps.stepThread(ctx, j.Inputs.Thread, j.Inputs.Head)
	case strings.TrimSpace(j.Inputs.Prompt) != "":
		return j.intake.startPrompted(ctx)
	case j.Event.Kind == event.Schedule:
		j.sweeper.tellUnanswered(ctx)
		return j.FinishOK("looked for threads whose next job got lost")
	}
	return j.FinishOK("there is nothing to do: neither a thread nor a prompt is given")
}

// mergeInputs takes the inputs that the event carries, where the workflow file doesn't hand
// them on: those of workflow_dispatch, and of the event by which jobs start the next.
func (j *job) mergeInputs() error {
	if j.Event.Kind != event.Manual && (j.Event.Kind != event.Dispatch || j.Event.Action != ci.DispatchType) {
		return nil
	}
	given := j.Event.Inputs
	if j.Inputs.Thread == "" && given["thread"] != "" {
		j.Inputs.Thread = gitcas.ThreadID(given["thread"])
		var err error
		if given["head"] != "" {
			j.Inputs.Head, err = node.ParsePin(given["head"])
		}
		if !j.Inputs.Thread.Valid() || err != nil {
			return life.Usagef("the event names thread %.40q at head %.100q: the one is no thread's id, or the other no hash", j.Inputs.Thread, given["head"])
		}
	}
	if j.Inputs.Workflow == "" {
		j.Inputs.Workflow = given["workflow"]
	}
	if j.Inputs.Prompt == "" {
		j.Inputs.Prompt = given["prompt"]
	}
	if n, err := strconv.Atoi(given["rescued"]); err == nil && n > 0 {
		j.Inputs.Rescued = min(n, maxRescued)
	}
	j.Inputs.Claim = given["claim"]
	j.steps.dispatcher.pairs = j.steps.dispatcher.pairs || j.Inputs.Claim != ""
	for name, to := range map[string]*ci.Wanted{"comment": &j.Inputs.Comment, "pull-request": &j.Inputs.PullRequest} {
		w, err := ci.ParseWanted(given[name])
		if err != nil {
			return life.Usagef("the event's %s is %.40q: %v", name, given[name], err)
		}
		if *to == (ci.Wanted{}) {
			*to = w
		}
	}
	return nil
}

// finishJob tells how the job ended, and looks after threads that nobody steps.
func (j *job) finishJob(ctx context.Context, err error) (ci.Outcome, error) {
	if err != nil {
		j.Annotate(err)
		j.sweeper.tellTrouble(ctx, err)
	}
	if j.Shown != nil {
		if text, cerr := j.RedactText(report.Summary(*j.Shown)); cerr == nil {
			j.Out.Summary(text)
		}
	}
	idle := (j.Inputs.Command == ci.CommandRescue || j.Inputs.Command == ci.CommandStopped) && j.Outcome.Thread == ""
	if err == nil && ctx.Err() == nil && j.Inputs.Command != ci.CommandRun && !j.steps.held && !idle {
		if err = j.sweeper.sweepThreads(ctx); err != nil {
			j.Annotate(err)
		}
	}
	return j.Outcome, err
}

// AnswerBadCommand answers a comment whose /uwf line can't be understood, as event.Parse says:
// those who may give commands are told how to write them. It does nothing else.
func (r *Runner) AnswerBadCommand(ctx context.Context, ev event.Event, wrong *event.CommandError) (ci.Outcome, error) {
	j := newJob(r, ev)
	err := func() error {
		if j.Inputs.Command == ci.CommandRun {
			return j.FinishOK("the comment's command can't be understood")
		}
		ok, why, err := j.gate.MayStart(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return j.intake.denyStart(ctx, why)
		}
		return j.intake.AnswerCommand(ctx, report.Reply{Kind: report.Unknown, Why: wrong.Msg})
	}()
	return j.finishJob(ctx, err)
}

// ReportNotReady tells that a job could not begin, and why, on the issue or pull request whose
// event would have started or steered a thread: once, and only for people who may. It
// needs no more of a Runner than the forge, the inputs, and what takes secrets out.
func (r *Runner) ReportNotReady(ctx context.Context, ev event.Event, why string) {
	j := newJob(r, ev)
	if ev.Subject == nil || j.Job.Attempt > 1 || j.Inputs.Command == ci.CommandRun {
		return
	}
	switch ev.Kind {
	case event.Labeled:
		if !j.gate.AddsLabel() {
			return
		}
	case event.Assigned:
		if !j.gate.IsOurs(ev.Assignee) {
			return
		}
	case event.Comment:
	default:
		return
	}
	if ok, _, err := j.gate.MayStart(ctx); err == nil && ok {
		j.PostAnswer(ctx, ev.Subject.Number, j.DescribeFailure("begin", errors.New(why)))
	}
}

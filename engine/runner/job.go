package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/picture"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sticky"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// job is one Run.
type job struct {
	*Runner
	ev event.Event
	in Inputs // the job's, with what the event carries
	id string // the run, as its first step names it

	out     Outcome
	sticky  *sticky.Comment  // the comment of the thread at hand
	shown   *report.Thread   // what was told of it last
	last    *picture.Picture // how it was seen last
	latest  *gitcas.View     // in which it was seen; nil: none yet
	made    gitcas.ThreadID  // the thread that this job started
	sent    bool             // its next job was started
	allowed bool             // the people behind the event may start and steer
	// confirmed: the comment with the command is what its author wrote, who may give it.
	confirmed bool
	spoke     bool         // something was written on the issue: a comment, or an answer
	told      bool         // the last that was written there says why nothing goes on
	halted    bool         // it was suspended by a step of this job
	written   time.Time    // when the comment with the command was, once that is confirmed
	unknown   bool         // the forge can't tell what somebody may do
	branch    string       // the default branch, once it was asked for
	store     string       // the store's id, once it was read
	rescued   int          // what the next job is told of those that died
	ahead     *lease.Lease // the claim for the jobs that are to be started; nil: none
	pairs     bool         // agents run in a job of their own, which can push nothing
}

func newJob(r *Runner, ev event.Event) *job {
	j := &job{Runner: r, ev: ev, in: r.Inputs, pairs: r.Inputs.Command == CommandCommit, id: r.Engine.Who.Run, store: r.Job.Store}
	r.Engine.By = j.personBehind()
	return j
}

func (j *job) run(ctx context.Context) (Outcome, error) {
	err := j.merge()
	if err == nil {
		err = j.route(ctx)
	}
	return j.finish(ctx, err)
}

// route says what an event leads to.
func (j *job) route(ctx context.Context) error {
	switch j.in.Command {
	case CommandRun:
		return j.agentOnly(ctx)
	case CommandRescue, CommandStopped:
		return j.lookAfter(ctx)
	case CommandCommit:
		if j.agentDied() {
			return j.quiet("the job that runs agents died, and left nothing: its run's rescue goes on with the thread")
		}
	}
	switch j.ev.Kind {
	case event.None:
		return j.quiet(or(j.ev.Why, "this event is not for uwf"))
	case event.Labeled:
		return j.labeled(ctx)
	case event.Assigned:
		return j.assigned(ctx)
	case event.Comment:
		return j.command(ctx)
	}
	switch {
	case j.in.Thread != "":
		return j.hop(ctx, j.in.Thread, j.in.Head)
	case strings.TrimSpace(j.in.Prompt) != "":
		return j.plain(ctx)
	case j.ev.Kind == event.Schedule:
		return j.quiet("looked for threads whose next job got lost")
	}
	return j.quiet("there is nothing to do: neither a thread nor a prompt is given")
}

// merge takes the inputs that the event carries, where the workflow file doesn't hand
// them on: those of workflow_dispatch, and of the event by which jobs start the next.
func (j *job) merge() error {
	if j.ev.Kind != event.Manual && (j.ev.Kind != event.Dispatch || j.ev.Type != DispatchType) {
		return nil
	}
	given := j.ev.Inputs
	if j.in.Thread == "" && given["thread"] != "" {
		j.in.Thread = gitcas.ThreadID(given["thread"])
		var err error
		if given["head"] != "" {
			j.in.Head, err = node.ParsePin(given["head"])
		}
		if !j.in.Thread.Valid() || err != nil {
			return &life.UsageError{Msg: fmt.Sprintf("the event names thread %.40q at head %.100q: the one is no thread's id, or the other no hash", j.in.Thread, given["head"])}
		}
	}
	if j.in.Workflow == "" {
		j.in.Workflow = given["workflow"]
	}
	if j.in.Prompt == "" {
		j.in.Prompt = given["prompt"]
	}
	if n, err := strconv.Atoi(given["rescued"]); err == nil && n > 0 {
		j.in.Rescued = min(n, maxRescued)
	}
	j.in.Claim = given["claim"]
	j.pairs = j.pairs || j.in.Claim != ""
	for name, to := range map[string]*Wanted{"comment": &j.in.Comment, "pull-request": &j.in.PullRequest} {
		w, err := ParseWanted(given[name])
		if err != nil {
			return &life.UsageError{Msg: fmt.Sprintf("the event's %s: %v", name, err)}
		}
		if *to == (Wanted{}) {
			*to = w
		}
	}
	return nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// notice says why a green job did nothing, or nothing more.
func (j *job) notice(msg string) {
	msg, err := j.clean(msg)
	if err != nil {
		return
	}
	j.out.Notice = msg
	j.Out.Notice(msg)
}

// quiet ends the job, green.
func (j *job) quiet(msg string) error {
	j.notice(msg)
	return nil
}

// finish tells how the job ended, and looks after threads that nobody steps.
func (j *job) finish(ctx context.Context, err error) (Outcome, error) {
	if err != nil {
		j.annotate(err)
		j.tellTrouble(ctx, err)
	}
	if j.shown != nil {
		if text, cerr := j.clean(report.Summary(*j.shown)); cerr == nil {
			j.Out.Summary(text)
		}
	}
	if err == nil && ctx.Err() == nil && j.in.Command != CommandRun {
		if err = j.sweep(ctx); err != nil {
			j.annotate(err)
		}
	}
	return j.out, err
}

// maxAnnotations is how many errors a runner shows of one step.
const maxAnnotations = 10

// annotate shows an error, a definition's at file and line.
func (j *job) annotate(err error) {
	var invalid *workflow.InvalidError
	if errors.As(err, &invalid) {
		for i, p := range invalid.Problems {
			if i == maxAnnotations-1 && len(invalid.Problems) > maxAnnotations {
				j.annotation(Annotation{File: p.File, Title: "workflow definition", Message: fmt.Sprintf("and %d more problems; see them all with: uwf workflow validate %s", len(invalid.Problems)-i, p.File)})
				return
			}
			msg := p.Message
			if p.Fix != "" {
				msg += " (" + p.Fix + ")"
			}
			j.annotation(Annotation{File: p.File, Line: p.Line, Col: p.Col, Title: "workflow definition", Message: msg})
		}
		return
	}
	j.annotation(Annotation{Title: "uwf", Message: err.Error()})
}

func (j *job) annotation(a Annotation) {
	var err error
	if a.Message, err = j.clean(a.Message); err != nil {
		a.Message = "the job failed; its error could not be checked for secrets, so it is not shown"
	}
	j.Out.Error(a)
}

// note takes over what a step says.
func (j *job) note(res thread.Result) {
	j.out.Thread, j.out.Head, j.out.Status, j.out.Step, j.out.Done = res.Thread, res.Head, res.Status, res.Step, res.Done
	j.out.NextRole = res.NextRole
	if res.Role != "" {
		j.out.Role, j.out.Result = res.Role, res.Result
	}
	if res.PR != 0 {
		j.out.PullRequest = res.PR
	}
}

// Package run is `uwf run`: starting a thread and stepping it until it ends or
// waits for a person, in this process. Each step is one whole run of the step
// protocol, as `uwf thread step` does it.
package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/step"
	engine "github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/text"
)

// Options are what `uwf run` works with.
type Options struct {
	Factory *app.Factory
	Worker  worker.Options
	Start   thread.StartOptions
}

// NewCmdRun makes `uwf run`. A runF that is not nil replaces the run.
func NewCmdRun(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f, Start: thread.StartOptions{Factory: f}}
	cmd := &cobra.Command{
		Use:   "run [WORKFLOW]",
		Short: "Start a thread and step it until it ends or waits",
		Long: `Start a thread of a workflow and step it until it ends or waits for a person, showing
who works, on what, for how long and at what cost.

WORKFLOW is named as for uwf thread start. Without it the repository's only workflow runs,
else solve-issue, which uwf has with it: it says which.

The agents work in a folder of their own, made from this repository's head; what they
did is on the branch uwf/<thread>. Stop it at any time with ctrl-C: nothing finished is
lost, that counts as no failure, and uwf thread step goes on where it stood.

` + thread.ChoiceHelp,
		Example: `  uwf run -p "Fix the failing test"
  uwf run solve-issue -p "The parser panics on an empty file" --provider ollama
  uwf run ./review.yaml -p @task.md --allow-shell
  uwf run ./review.yaml -p test --agent "uwf agent mock script.yaml"`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: thread.CompleteWorkflow(f),
		RunE: app.Run(o, runF, runRun, func(args []string) {
			if len(args) > 0 {
				o.Start.Workflow = args[0]
			}
		}),
	}
	thread.StartFlags(cmd, &o.Start)
	thread.ChoiceFlags(cmd, f)
	thread.WorkerFlags(cmd, &o.Worker)
	return cmd
}

// outcome is the JSON of `uwf run`.
type outcome struct {
	thread.Stepped
	Steps []thread.Stepped `json:"steps"`
}

func runRun(ctx context.Context, o *Options) error {
	if err := o.Start.Prepare(ctx); err != nil {
		return err
	}
	o.Factory.Notes().Println(o.Start.TellWorkflow())
	if err := app.SettleTrust(o.Factory, o.Worker.Trust); err != nil {
		return err
	}
	show := newProgress(o.Factory)
	defer show.endLine()
	o.Worker.Observe, o.Factory.Waiting = show.showEvent, show.showWaiting
	o.Worker.New = true
	w, err := worker.New(ctx, o.Factory, o.Worker)
	if err != nil {
		return err
	}
	if err := thread.CheckReady(w, o.Start.Definition()); err != nil {
		return err
	}
	o.Start.Worker = worker.Options{Replay: o.Worker.Replay}
	started, err := thread.Start(ctx, &o.Start)
	if err != nil {
		return err
	}
	show.showStarted(started)
	if err := w.PrepareFolder(ctx, started.Thread); err != nil {
		return err
	}
	out, err := stepUntilDone(ctx, w, started.Thread)
	w.RememberFolder(ctx)
	show.endLine()
	if out.Done {
		err = w.RemoveFolder(ctx, started.Thread)
	}
	perr := o.Factory.Printer().Print(out, func(p *output.Writer) { o.printEnding(p, started.Thread, out, o.readOutlook(ctx, started.Thread, out)) })
	return errors.Join(err, perr)
}

// stepUntilDone steps the thread until it ends, waits, or a step fails.
func stepUntilDone(ctx context.Context, w *worker.Worker, id gitcas.ThreadID) (outcome, error) {
	out := outcome{Steps: []thread.Stepped{}}
	err := thread.Loop(ctx, w, step.Request{Thread: id}, 0, func(r engine.Result) {
		out.Stepped = thread.SteppedOf(r)
		if r.Error == nil {
			out.Steps = append(out.Steps, out.Stepped)
		}
	})
	return out, err
}

// printEnding is the last word for people: what it came to, and where it is.
func (o *Options) printEnding(p *output.Writer, id gitcas.ThreadID, out outcome, now thread.Outlook) {
	var used moderator.Totals
	all, lost := out.Steps, ""
	if out.Error != nil && out.Usage != nil {
		all, lost = append(slices.Clone(all), out.Stepped), ", the attempt that failed too"
	}
	for _, s := range all {
		used.Add(s.Role, s.Usage)
	}
	p.Println()
	if out.Done {
		p.Good("The thread has ended")
	} else {
		p.Warn("The thread stands still")
	}
	p.Printf(" after %s: %s, %d tokens, %s%s\n", text.Plural(len(out.Steps), "step"), text.Took(used.Wall.Milliseconds()), used.Tokens, text.Dollars(used.CostUSD, used.Unpriced), lost)
	line := func(what, command string) { p.Printf("  %-15s%s\n", what, command) }
	if now.SeeWork != "" {
		line("the work:", now.SeeWork)
	}
	line("the thread:", "uwf thread read "+string(id))
	if out.Done {
		for _, take := range now.Take {
			line(take[0], take[1])
		}
	}
	step := thread.StepCommand(o.Factory, id)
	switch now.Status {
	case string(gitcas.StatusActive):
		line("go on:", step)
	case string(gitcas.StatusSuspended), lookup.Failed, lookup.Running:
		for _, next := range now.Next[:min(len(now.Next), 1)] {
			line(next[0], next[1])
		}
	}
	if now.Status == string(gitcas.StatusSuspended) {
		line("then go on:", step)
	}
}

// readOutlook reads how the thread stands now: others may have had their say meanwhile. Where
// that can't be read, it is as this run left it.
func (o *Options) readOutlook(ctx context.Context, id gitcas.ThreadID, out outcome) thread.Outlook {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	now, err := thread.Look(ctx, o.Factory, id)
	if err != nil {
		return thread.Outlook{Status: out.Status}
	}
	return now
}

// lookTime bounds the last look: a person who pressed ctrl-C waits for it.
const lookTime = 3 * time.Second

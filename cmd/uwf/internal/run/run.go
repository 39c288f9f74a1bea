// Package run is `uwf run`: starting a thread and stepping it until it ends or
// waits for a person, in this process. Each step is one whole run of the step
// protocol, as `uwf thread step` does it.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/board"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/step"
	engine "github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// Options are what `uwf run` works with.
type Options struct {
	Factory  *app.Factory
	Worker   worker.Options
	Start    thread.StartOptions
	Continue bool
	Thread   string // with Continue; empty: the one that was started last and has not ended
	Verbose  bool
}

// NewCmdRun makes `uwf run`. A runF that is not nil replaces the run.
func NewCmdRun(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f, Start: thread.StartOptions{Factory: f}}
	cmd := &cobra.Command{
		Use:   "run [WORKFLOW]",
		Short: "Start a thread and step it until it ends or waits",
		Long: `Start a thread of a workflow and step it until it ends or waits for a person, showing
the way through the workflow, who works, on what, for how long and at what cost.

WORKFLOW is named as for uwf thread start. Without it the repository's only workflow runs,
else solve-issue, which uwf has with it: it says which.

The agents work in a folder of their own, made from this repository's head; what they
did is on the branch uwf/<thread>. A question is asked on the terminal, and the thread
goes on with the answer. Stop it at any time with ctrl-C: nothing finished is lost, that
counts as no failure, and --continue goes on where it stood.

` + thread.ChoiceHelp,
		Example: `  uwf run -p "Fix the failing test"
  uwf run solve-issue -p "The parser panics on an empty file" --provider ollama
  uwf run ./review.yaml -p @task.md --allow-shell
  uwf run ./review.yaml -p test --agent "uwf agent mock script.yaml"
  uwf run --continue 01JY0000000000000000000000 --agent "uwf agent mock script.yaml"`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: thread.CompleteWorkflow(f),
		RunE: app.Run(o, runF, runRun, func(args []string) {
			for _, arg := range args {
				o.Start.Workflow, o.Thread = arg, arg
			}
		}),
	}
	cmd.Flags().BoolVar(&o.Continue, "continue", false, "go on with a thread in place of starting one: the one that is named, else the one that was started last and has not ended")
	cmd.Flags().BoolVarP(&o.Verbose, "verbose", "v", false, "show the last lines of what the agent prints")
	thread.StartFlags(cmd, &o.Start)
	thread.ChoiceFlags(cmd, f)
	thread.WorkerFlags(cmd, f, &o.Worker)
	for _, flag := range append(workflow.LimitFlags(), "prompt", "base", "key", "cwd", "include-uncommitted", "include-untracked") {
		cmd.MarkFlagsMutuallyExclusive("continue", flag)
	}
	return cmd
}

// outcome is the JSON of `uwf run`.
type outcome struct {
	thread.Stepped
	Steps []thread.Stepped `json:"steps"`
}

func runRun(ctx context.Context, o *Options) error {
	begin := o.beginNew
	if o.Continue {
		begin = o.findThread
	} else {
		if err := o.Start.Prepare(ctx); err != nil {
			return err
		}
		o.Factory.Notes().Println(o.Start.TellWorkflow())
	}
	if err := app.SettleTrust(o.Factory); err != nil {
		return err
	}
	if place := o.Factory.DescribePlace(ctx); place != "" {
		o.Factory.Notes().Println(place)
	}
	show := board.New(o.Factory)
	defer show.End()
	o.Worker.Observe, o.Factory.Waiting = show.ShowEvent, show.ShowWaiting
	if o.Verbose {
		o.Worker.Stderr = show
	}
	o.Worker.New = !o.Continue
	w, err := worker.New(ctx, o.Factory, o.Worker)
	if err != nil {
		return err
	}
	id, err := begin(ctx, w, show)
	if err != nil {
		return err
	}
	if err := w.PrepareFolder(ctx, id); err != nil {
		return err
	}
	out := outcome{Steps: []thread.Stepped{}}
	for {
		err = stepUntilDone(ctx, w, id, &out)
		w.RememberFolder(ctx)
		answered, askErr := o.answerHere(ctx, show, id, err)
		if !answered {
			err = errors.Join(err, askErr)
			break
		}
		if w.Who, err = w.NextIdentity(); err != nil { // each step is as if a process of its own did it
			return err
		}
	}
	show.End()
	if out.Done {
		err = errors.Join(err, w.RemoveFolder(ctx, id))
	}
	perr := o.Factory.Printer().Print(out, func(p *output.Writer) { o.printEnding(p, id, out, o.readOutlook(ctx, id, out)) })
	return errors.Join(err, perr)
}

// beginNew starts the thread.
func (o *Options) beginNew(ctx context.Context, w *worker.Worker, show *board.Progress) (gitcas.ThreadID, error) {
	def := o.Start.Definition()
	if err := thread.CheckReady(w, def); err != nil {
		return "", err
	}
	if err := worker.CheckHome(w); err != nil {
		return "", err
	}
	if err := engine.CheckCostLimit(w.Settings, def, o.Start.Limits.Entry()); err != nil {
		return "", err
	}
	if err := o.checkServers(ctx, worker.AskedModels(w, def)); err != nil {
		return "", err
	}
	o.Start.Worker = worker.Options{Replay: o.Worker.Replay}
	started, err := thread.Start(ctx, &o.Start)
	if err != nil {
		return "", err
	}
	show.ShowStarted(started)
	if started.Existed {
		o.Thread = string(started.Thread)
		return o.findThread(ctx, w, show)
	}
	show.Follow(def, o.Start.Title(), life.EffectiveLimits(w.Settings.Limits(def.Name), def, o.Start.Limits.Entry()), nil, moderator.Totals{}, modelNames(w, def))
	return started.Thread, nil
}

// checkServers refuses to begin where a model's server is not there: the first step would try
// for half a minute, and leave a thread behind that failed.
func (o *Options) checkServers(ctx context.Context, models []config.ResolvedModel) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	for _, m := range models {
		name := m.Model.Provider
		err := setup.NewProber(o.Factory).Reach(ctx, setup.Target{
			Provider: name, Kind: m.Provider.Kind, BaseURL: m.Provider.BaseURL, Model: m.Model.Name, Chat: !slices.Contains(m.Provider.Wires, "messages"),
			AddressBy: config.Path{"providers", name, "baseUrl"}.String() + " (uwf setup)",
		})
		if err != nil {
			return &app.UsageError{Err: fmt.Errorf("model %s: %w", output.Line(m.Alias, 80), err)}
		}
	}
	return nil
}

// findThread finds the thread that goes on.
func (o *Options) findThread(ctx context.Context, w *worker.Worker, show *board.Progress) (gitcas.ThreadID, error) {
	if o.Thread == "" {
		v, err := w.Store.Load(ctx)
		if err != nil {
			return "", err
		}
		for id, e := range v.Threads() {
			if e.Status != gitcas.StatusEnded && string(id) > o.Thread {
				o.Thread = string(id)
			}
		}
		if o.Thread == "" {
			return "", app.Usagef("no thread is left to go on with: all have ended (uwf thread list --all); start one with: uwf run -p \"…\"")
		}
	}
	t, err := lookup.Find(ctx, o.Factory.Store, o.Thread)
	if err != nil {
		return "", err
	}
	def, err := workflow.FromNode(t.View.Getter(ctx), t.Entry.Workflow)
	if err != nil {
		return "", fmt.Errorf("workflow of thread %s: %w", t.ID, err)
	}
	if err := thread.CheckReady(w, def); err != nil {
		return "", err
	}
	steps, before, err := thread.CountSoFar(ctx, t)
	if err != nil {
		return "", err
	}
	show.Follow(def, t.Entry.Title, life.EffectiveLimits(w.Settings.Limits(def.Name), def, t.Entry.Limits), steps, before, modelNames(w, def))
	o.Factory.Notes().Printf("thread %s of %s goes on\n", t.ID, def.Name)
	return t.ID, nil
}

// modelNames says which model each role has, as its provider calls it.
func modelNames(w *worker.Worker, def *workflow.Definition) func(role string) string {
	return func(role string) string {
		if m := w.Settings.Model(def.Name, role); m != nil {
			return m.Name
		}
		return ""
	}
}

// stepUntilDone steps the thread until it ends, waits, or a step fails.
func stepUntilDone(ctx context.Context, w *worker.Worker, id gitcas.ThreadID, out *outcome) error {
	return thread.Loop(ctx, w, step.Request{Thread: id}, 0, func(r engine.Result) {
		out.Stepped = thread.SteppedOf(r)
		if r.Error == nil {
			out.Steps = append(out.Steps, out.Stepped)
		}
	})
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
	switch {
	case !out.Done:
		p.Warn("The thread stands still")
	case len(now.Unproven) > 0:
		p.Warn("The thread has ended")
	default:
		p.Good("The thread has ended")
	}
	p.Printf(" after %s: %s, %d tokens, %s%s\n", text.Plural(len(out.Steps), "step"), text.Took(used.Wall.Milliseconds()), used.Tokens, text.Dollars(used.CostUSD, used.Unpriced), lost)
	for _, r := range now.Unproven {
		p.Warn("  check, ")
		thread.WriteUnproven(p, r)
	}
	line := func(what, command string) { p.Printf("  %-15s%s\n", what, command) }
	line("the thread:", "uwf thread read "+string(id))
	if out.Done {
		for _, take := range now.Take {
			line(take[0], take[1])
		}
	} else if now.SeeWork != "" {
		line("the work:", now.SeeWork)
	}
	goOn := thread.ContinueCommand(o.Factory, id)
	switch now.Status {
	case string(gitcas.StatusActive):
		line("go on:", goOn)
	case string(gitcas.StatusSuspended), lookup.Failed, lookup.Running:
		for _, next := range now.Next[:min(len(now.Next), 1)] {
			if now.Status == lookup.Failed {
				next[1] = goOn
			}
			line(next[0], next[1])
		}
	}
	if now.Status == string(gitcas.StatusSuspended) {
		line("then go on:", goOn)
	}
}

// readOutlook reads how the thread stands now: others may have had their say meanwhile. Where
// that can't be read, it is as this run left it.
func (o *Options) readOutlook(ctx context.Context, id gitcas.ThreadID, out outcome) thread.Outlook {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	now, err := thread.Look(ctx, o.Factory, id)
	if err != nil {
		seen := checks.Latest(out.Steps, func(s thread.Stepped) (string, []record.Check) { return s.Role, s.Checks })
		return thread.Outlook{Status: out.Status, Unproven: checks.Unproven(seen)}
	}
	return now
}

// lookTime bounds the looks before and after all steps: a person waits for them.
const lookTime = 3 * time.Second

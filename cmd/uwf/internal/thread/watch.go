package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/board"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// NewCmdWatch makes `uwf thread watch`. A runF that is not nil replaces the run.
func NewCmdWatch(f *app.Factory, runF func(context.Context, *WaitOptions) error) *cobra.Command {
	o := &WaitOptions{Factory: f, For: statefile.ReasonEnded}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:   "watch THREAD",
		Short: "Watch a thread that runs elsewhere, until it ends or waits for a person",
		Long: `Watch a thread that runs elsewhere, as far as the store tells of it: the way through the
workflow, who works since when, the steps that are done, and what was spent. What an agent
does between two steps is known where it runs alone. On a terminal it is shown in place;
elsewhere each step is a line.

It ends with the thread, or where that waits for a person, with the exit codes of thread
wait. Ctrl-C stops the watching, and nothing else.`,
		Example: "  uwf thread watch 01JY0000000000000000000000",
		RunE:    app.Run(o, runF, watchRun, func(args []string) { o.Thread = args[0] }),
	})
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 0, "watch no longer than this `TIME`, such as 10m; 0 is for ever")
	app.RefuseNegative(cmd, "timeout")
	return cmd
}

func watchRun(ctx context.Context, o *WaitOptions) error {
	t, err := lookup.Find(ctx, o.Factory.Store, o.Thread)
	if err != nil {
		return err
	}
	w := &watcher{show: board.New(o.Factory), zone: cmp.Or(o.Factory.Zone, time.UTC)}
	defer w.show.End()
	o.Factory.Waiting = w.show.ShowWaiting
	if err := w.followThread(ctx, o.Factory, t); err != nil {
		return err
	}
	o.For = "" // a thread that waits for a person ends the watching, too
	return (&waiter{WaitOptions: o, first: t.Entry.Head, pause: firstPause, seen: w.showChanges, over: w.show.End}).waitForThread(ctx, t)
}

// watcher tells the board what the store shows to be new.
type watcher struct {
	show  *board.Progress
	zone  *time.Location // of the person who watches
	def   *workflow.Definition
	steps int  // that were told
	claim bool // whether a job at work was told
}

// followThread shows the thread as it is.
func (w *watcher) followThread(ctx context.Context, f *app.Factory, t *lookup.Thread) error {
	def, err := workflow.FromNode(t.View.Getter(ctx), t.Entry.Workflow)
	if errors.Is(err, node.ErrNotFound) || errors.Is(err, workflow.ErrNoWorkflow) {
		def, err = &workflow.Definition{Name: string(t.Entry.Workflow)}, nil // it can be watched all the same
	}
	if err != nil {
		return err
	}
	c, err := f.Config()
	if err != nil {
		return err
	}
	steps, used, err := CountSoFar(ctx, t)
	if err != nil {
		return err
	}
	sum, err := t.View.ReadSummary(ctx, t.ID)
	if err != nil {
		return err
	}
	w.def, w.steps = def, sum.Used.Steps
	w.show.Follow(def, sum.Start.Title, life.EffectiveLimits(c.Limits.Limits, def, t.Entry.Limits), steps, used, nil)
	return w.showChanges(ctx, t)
}

// CountSoFar reads the steps of a thread, and what these and its failed attempts have used;
// nothing of one that has ended, which is not shown at work.
func CountSoFar(ctx context.Context, t *lookup.Thread) ([]gitcas.ChainStep, moderator.Totals, error) {
	if t.Ended != nil {
		return nil, moderator.Totals{}, nil
	}
	counted, used, err := attempt.CountThread(ctx, t.Store, t.View, t.ID)
	if err != nil {
		return nil, used, err
	}
	return counted.Chain.Steps, used, nil
}

// showChanges tells what is new since it looked last: steps, and who works now.
func (w *watcher) showChanges(ctx context.Context, t *lookup.Thread) error {
	sum, err := t.View.ReadSummary(ctx, t.ID)
	if err != nil {
		return err
	}
	if sum.Used.Steps > w.steps {
		chain, err := t.View.ReadChain(ctx, t.ID)
		if err != nil {
			return err
		}
		results, err := t.Results(ctx)
		if err != nil {
			return err
		}
		for n := w.steps; n < len(chain.Steps); n++ {
			s := chain.Steps[n]
			ev := thread.Event{Kind: "committed", Thread: t.ID, Step: n + 1, Role: s.Role, Status: cmp.Or(results[n], "done")}
			if s.Usage != nil {
				ev.Usage = *s.Usage
			}
			w.show.ShowEvent(ev)
		}
		w.steps, w.claim = len(chain.Steps), false
	}
	if t.Ended != nil {
		return nil
	}
	c, works := life.WorkingClaim(t.View, t.ID, t.Entry)
	if !works {
		w.claim = false
		return nil
	}
	job := lookup.JobOf(c)
	if !w.claim && t.Entry.Next != nil {
		w.claim = true
		w.show.ShowEvent(thread.Event{
			Kind: "agent", Thread: t.ID, Step: w.steps + 1, Role: t.Entry.Next.Role, Agent: job.Host,
			Text: fmt.Sprintf("run %s.%d since %s", job.Run, job.Attempt, job.Since.In(w.zone).Format(time.TimeOnly+" MST")),
		})
	}
	w.show.ShowEvent(thread.Event{Kind: "tokens", Thread: t.ID, Usage: record.Usage{InputTokens: job.Tokens, CostUSD: c.CostUSD}})
	return nil
}

package thread

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// ShowOptions are what `uwf thread show` works with.
type ShowOptions struct {
	Factory *app.Factory
	Thread  string
}

// NewCmdShow makes `uwf thread show`. A runF that is not nil replaces the run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{Factory: f}
	return &cobra.Command{
		Use:   "show THREAD",
		Short: "Show where a thread stands, and what to do next",
		Long: `Show where a thread stands: its status, whose turn it is, what it has cost, which
attempts failed, where its work is, how it was started; and what to do next.`,
		Example: `  uwf thread show 01JY0000000000000000000000
  uwf thread show @latest --jq .status`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteThread(f),
		RunE:              app.Run(o, runF, showRun, func(args []string) { o.Thread = args[0] }),
	}
}

// shown is the JSON of `uwf thread show`.
type shown struct {
	standing
	Title     string             `json:"title,omitempty"`
	Steps     int                `json:"steps"`
	NextRole  string             `json:"nextRole,omitempty"`
	Since     *time.Time         `json:"since,omitempty"`
	Suspended *gitcas.Suspended  `json:"suspended,omitempty"`
	Pause     *gitcas.Pause      `json:"pause,omitempty"`
	Running   *lookup.Job        `json:"running,omitempty"`
	Work      gitcas.Work        `json:"work"`
	Key       string             `json:"key,omitempty"`
	Limits    map[string]float64 `json:"limits,omitempty"`
	Allowed   *extent            `json:"allowed,omitempty"`
	Attempts  []string           `json:"attempts,omitempty"`
	Failed    []attempt.Summary  `json:"failed,omitempty"`
	cost                         // with what led to no step
	NoStep    *cost              `json:"noStep,omitempty"`
	StartedAt time.Time          `json:"startedAt"`
	EndedAt   *time.Time         `json:"endedAt,omitempty"`
	Base      string             `json:"base,omitempty"`
	Trigger   map[string]any     `json:"trigger,omitempty"`
	Prompt    string             `json:"prompt"`
	Note      string             `json:"note,omitempty"`
	By        *record.By         `json:"by,omitempty"`       // who started it, or forked it
	ClosedBy  *record.By         `json:"closedBy,omitempty"` // who cancelled it
	GoesOnBy  *record.By         `json:"goesOnBy,omitempty"` // who let it go on last, before its next step

	tried    int    // steps and failed attempts, which the limit of steps counts
	limit    error  // that its next step will find reached
	failures int    // attempts at the next step that count
	seeWork  string // the command that shows the work branch; empty where there is none
}

// cost is what a thread took, or what of it was paid for attempts that failed and for steps
// that were taken back.
type cost struct {
	Tokens     int64   `json:"tokens"`
	CostUSD    float64 `json:"costUsd"`
	Unpriced   bool    `json:"unpriced,omitempty"`
	DurationMs int64   `json:"durationMs"`
}

func showRun(ctx context.Context, o *ShowOptions) error {
	t, err := lookup.Find(ctx, o.Factory.Store, o.Thread)
	if err != nil {
		return err
	}
	s, err := readShown(ctx, o.Factory, t)
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(s, s.writeText)
}

// Outlook is how a thread stands, in the words of `uwf thread show`.
type Outlook struct {
	Status string
	// Next are the commands that come next, each with what it is for.
	Next [][2]string
	// SeeWork is the command that shows the work branch; empty where there is none.
	SeeWork string
}

// Look reads how a thread stands.
func Look(ctx context.Context, f *app.Factory, id gitcas.ThreadID) (Outlook, error) {
	t, err := lookup.Find(ctx, f.Store, string(id))
	if err != nil {
		return Outlook{}, err
	}
	s, err := readShown(ctx, f, t)
	return Outlook{Status: s.Status, Next: s.nextCommands(), SeeWork: s.seeWork}, err
}

// readShown collects what is to be said of a thread.
func readShown(ctx context.Context, f *app.Factory, t *lookup.Thread) (shown, error) {
	sum, err := t.View.Summary(ctx, t.ID)
	if err != nil {
		return shown{}, err
	}
	e := t.Entry
	s := shown{
		standing: standing{Workflow: sum.Start.Workflow, Thread: t.ID, Head: e.Head, Done: t.Ended != nil, Status: t.Status(), turn: turnIn(e)},
		Steps:    sum.Used.Steps, Suspended: e.Suspended, Pause: e.Pause, Work: e.Work, Key: e.Key, Limits: e.Limits, Attempts: e.Attempts,
		StartedAt: t.ID.Time(), Base: sum.Start.Base, Trigger: sum.Start.Trigger, Prompt: sum.Start.Prompt, Title: cmp.Or(e.Title, sum.Start.Title),
		By: cmp.Or(e.By, sum.Start.By), failures: lookup.FailedAttempts(e),
	}
	if s.Name, err = lookup.WorkflowName(ctx, t.View, s.Workflow); err != nil {
		return s, err
	}
	if n := e.Next; n != nil {
		since := time.UnixMilli(n.Since).UTC()
		s.NextRole, s.Since, s.GoesOnBy = n.Role, &since, n.By
	}
	if over := t.Ended; over != nil {
		at := time.UnixMilli(over.CompletedAt).UTC()
		s.Note, s.EndedAt, s.By, s.ClosedBy = over.Note, &at, cmp.Or(over.By, sum.Start.By), over.ClosedBy
	} else if c, ok := lookup.Claim(t.View, t.ID, e); ok {
		job := lookup.JobOf(c)
		s.Running = &job
	}
	there, err := t.HasWork(ctx)
	if err != nil {
		return s, err
	}
	if there {
		s.seeWork = f.ShowBranch(ctx, s.Work.Branch)
	}
	if s.Failed, err = t.Attempts(ctx); err != nil {
		return s, err
	}
	if over := t.Ended; over != nil && over.Used != nil {
		s.addCost(*over.Used, sum.Used)
		return s, nil
	}
	used, err := attempt.CountUsed(ctx, t.Store, t.View, t.ID)
	if err != nil {
		return s, err
	}
	s.tried = used.Steps
	s.addCost(story.CostOf(used), sum.Used)
	return s, s.addLimits(ctx, f, t, used)
}

// addCost says what the thread took, and what of it led to no step.
func (s *shown) addCost(all gitcas.Cost, steps gitcas.Used) {
	s.cost = cost{all.Tokens, all.CostUSD, all.Unpriced, all.DurationMs}
	lost := cost{all.Tokens - steps.Tokens, all.CostUSD - steps.CostUSD, all.Unpriced && !steps.Unpriced, all.DurationMs - steps.DurationMs}
	if lost.Tokens > 0 || lost.CostUSD > leastCost || lost.DurationMs > 0 {
		s.NoStep = &lost
	}
}

// leastCost is the least difference of two sums in US dollars that is none of rounding.
const leastCost = 1e-9

// addLimits says how far the thread may go, all limits together. Where it goes no further, or
// its definition is none that this uwf can run, there is nothing to be said.
func (s *shown) addLimits(ctx context.Context, f *app.Factory, t *lookup.Thread, used moderator.Totals) error {
	if t.Ended != nil {
		return nil
	}
	c, err := f.Config()
	if err != nil {
		return err
	}
	def, err := workflow.FromNode(t.View.Getter(ctx), s.Workflow)
	if errors.Is(err, workflow.ErrNoWorkflow) || errors.Is(err, node.ErrNotFound) {
		return nil // how the thread stands can be said all the same
	}
	if err != nil {
		return err
	}
	limits := life.EffectiveLimits(worker.ConfiguredLimits(c), def, t.Entry.Limits)
	all := limitsOf(limits)
	s.Allowed, s.limit = &all, limits.Check(used, s.NextRole)
	return nil
}

package thread

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// ShowOptions are what `uwf thread show` works with.
type ShowOptions struct {
	Open     lookup.Open
	Config   func() (*config.Config, error)
	ShowWork func(ctx context.Context, branch string) string // the command that shows it
	Printer  output.Printer
	Thread   string
}

// NewCmdShow makes `uwf thread show`. A runF that is not nil replaces the run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{Open: f.Store, Config: f.Config, ShowWork: f.ShowBranch}
	return &cobra.Command{
		Use:   "show THREAD",
		Short: "Show where a thread stands, and what to do next",
		Long: `Show where a thread stands: its status, whose turn it is, what it has cost, which
attempts failed, where its work is, how it was started; and what to do next.`,
		Example: `  uwf thread show 01JY0000000000000000000000
  uwf thread show @latest --jq .status`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteThread(f),
		RunE: app.Run(o, runF, showRun, func(args []string) {
			o.Thread, o.Printer = args[0], f.Printer()
		}),
	}
}

// shown is the JSON of `uwf thread show`.
type shown struct {
	standing
	Title      string             `json:"title,omitempty"`
	Steps      int                `json:"steps"`
	NextRole   string             `json:"nextRole,omitempty"`
	Since      *time.Time         `json:"since,omitempty"`
	Suspended  *gitcas.Suspended  `json:"suspended,omitempty"`
	Pause      *gitcas.Pause      `json:"pause,omitempty"`
	Running    *running           `json:"running,omitempty"`
	Work       gitcas.Work        `json:"work"`
	Key        string             `json:"key,omitempty"`
	Limits     map[string]float64 `json:"limits,omitempty"`
	Allowed    *extent            `json:"allowed,omitempty"`
	Attempts   []string           `json:"attempts,omitempty"`
	Failed     []attempt.Summary  `json:"failed,omitempty"`
	Tokens     int64              `json:"tokens"` // with what led to no step
	CostUSD    float64            `json:"costUsd"`
	Unpriced   bool               `json:"unpriced,omitempty"`
	DurationMs int64              `json:"durationMs"`
	NoStep     *noStep            `json:"noStep,omitempty"`
	StartedAt  time.Time          `json:"startedAt"`
	EndedAt    *time.Time         `json:"endedAt,omitempty"`
	Base       string             `json:"base,omitempty"`
	Trigger    map[string]any     `json:"trigger,omitempty"`
	Prompt     string             `json:"prompt"`
	Note       string             `json:"note,omitempty"`
	By         *record.By         `json:"by,omitempty"`       // who started it, or forked it
	ClosedBy   *record.By         `json:"closedBy,omitempty"` // who cancelled it
	GoesOnBy   *record.By         `json:"goesOnBy,omitempty"` // who let it go on last, before its next step

	tried    int    // steps and failed attempts, which the limit of steps counts
	limit    error  // that its next step will find reached
	failures int    // attempts at the next step that count
	seeWork  string // the command that shows the work branch; empty where there is none
}

// noStep is what was paid for attempts that failed and for steps that were taken back.
type noStep struct {
	Tokens     int64   `json:"tokens"`
	CostUSD    float64 `json:"costUsd"`
	Unpriced   bool    `json:"unpriced,omitempty"`
	DurationMs int64   `json:"durationMs"`
}

// running is the claim of the job that works on a thread.
type running struct {
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`
	Host    string    `json:"host"`
	Since   time.Time `json:"since"`
	Renewed time.Time `json:"renewed"`
	Tokens  int64     `json:"tokens"` // charged so far
	// Ahead: it is not the run at work, but the one that started that.
	Ahead bool `json:"ahead,omitempty"`
}

func showRun(ctx context.Context, o *ShowOptions) error {
	t, err := lookup.Find(ctx, o.Open, o.Thread)
	if err != nil {
		return err
	}
	s, err := o.readShown(ctx, t)
	if err != nil {
		return err
	}
	return o.Printer.Print(s, s.writeText)
}

// allowedLimits is how far a thread may go, all limits together; false where it goes no
// further, or where its definition is none that this uwf can run.
func (o *ShowOptions) allowedLimits(ctx context.Context, t *lookup.Thread, flow node.Hash) (moderator.Limits, bool, error) {
	c, err := o.Config()
	if err != nil || t.Ended != nil {
		return moderator.Limits{}, false, err
	}
	def, err := workflow.FromNode(t.View.Getter(ctx), flow)
	switch {
	case errors.Is(err, workflow.ErrNoWorkflow), errors.Is(err, node.ErrNotFound):
		return moderator.Limits{}, false, nil // how the thread stands can be said all the same
	case err != nil:
		return moderator.Limits{}, false, err
	}
	return life.EffectiveLimits(worker.ConfiguredLimits(c), def, t.Entry.Limits), true, nil
}

// Outlook is how a thread stands, in the words of `uwf thread show`.
type Outlook struct {
	Status string
	// Limit is what its next step will find reached; nil: nothing.
	Limit error
	// Next are the commands that come next, each with what it is for.
	Next [][2]string
	// SeeWork is the command that shows the work branch; empty where there is none.
	SeeWork string
}

// Look reads how a thread stands.
func Look(ctx context.Context, f *app.Factory, id gitcas.ThreadID) (Outlook, error) {
	o := &ShowOptions{Open: f.Store, Config: f.Config, ShowWork: f.ShowBranch}
	t, err := lookup.Find(ctx, o.Open, string(id))
	if err != nil {
		return Outlook{}, err
	}
	s, err := o.readShown(ctx, t)
	return Outlook{Status: s.Status, Next: s.nextCommands(), SeeWork: s.seeWork, Limit: s.limit}, err
}

// readShown collects what is to be said of a thread.
func (o *ShowOptions) readShown(ctx context.Context, t *lookup.Thread) (shown, error) {
	sum, err := t.View.Summary(ctx, t.ID)
	if err != nil {
		return shown{}, err
	}
	stands, err := describeStanding(ctx, t, sum)
	if err != nil {
		return shown{}, err
	}
	s := shown{
		standing: stands, Steps: sum.Used.Steps, Suspended: t.Entry.Suspended, Pause: t.Entry.Pause, Work: t.Entry.Work, Key: t.Entry.Key,
		Limits: t.Entry.Limits, Attempts: t.Entry.Attempts, StartedAt: t.ID.Time(), Base: sum.Start.Base,
		Trigger: sum.Start.Trigger, Prompt: sum.Start.Prompt, Title: cmp.Or(t.Entry.Title, sum.Start.Title), By: t.Entry.By,
	}
	if t.Ended != nil {
		s.By = t.Ended.By
	}
	if s.By == nil {
		s.By = sum.Start.By
	}
	if n := t.Entry.Next; n != nil {
		since := time.UnixMilli(n.Since).UTC()
		s.NextRole, s.Since, s.GoesOnBy = n.Role, &since, n.By
	}
	if t.Ended != nil {
		at := time.UnixMilli(t.Ended.CompletedAt).UTC()
		s.Note, s.EndedAt, s.ClosedBy = t.Ended.Note, &at, t.Ended.ClosedBy
	}
	if c, ok := lookup.Claim(t.View, t.ID, t.Entry); ok && t.Ended == nil {
		s.Running = &running{
			Run: c.Run, Attempt: c.Attempt, Host: c.Host, Tokens: c.Tokens, Ahead: c.Ahead,
			Since: time.UnixMilli(c.Since).UTC(), Renewed: time.UnixMilli(c.Renewed).UTC(),
		}
	}
	s.failures = lookup.FailedAttempts(t.Entry)
	there, err := t.HasWork(ctx)
	if err != nil {
		return s, err
	}
	if there {
		s.seeWork = o.ShowWork(ctx, s.Work.Branch)
	}
	if s.Failed, err = t.Attempts(ctx); err != nil {
		return s, err
	}
	used, err := s.addCost(ctx, t, sum.Used)
	if err != nil {
		return s, err
	}
	limits, runs, err := o.allowedLimits(ctx, t, s.Workflow)
	if runs && err == nil {
		all := limitsOf(limits)
		s.Allowed, s.limit = &all, limits.Check(used, s.NextRole)
	}
	return s, err
}

// addCost says what the thread took, and what of it led to no step.
func (s *shown) addCost(ctx context.Context, t *lookup.Thread, steps gitcas.Used) (moderator.Totals, error) {
	var all moderator.Totals
	if t.Ended != nil && t.Ended.Used != nil {
		u := t.Ended.Used
		s.Tokens, s.CostUSD, s.Unpriced, s.DurationMs = u.Tokens, u.CostUSD, u.Unpriced, u.DurationMs
	} else {
		var err error
		if all, err = attempt.CountUsed(ctx, t.Store, t.View, t.ID); err != nil {
			return all, err
		}
		s.Tokens, s.CostUSD, s.Unpriced, s.DurationMs, s.tried = all.Tokens, all.CostUSD, all.Unpriced, all.Wall.Milliseconds(), all.Steps
	}
	lost := noStep{Tokens: s.Tokens - steps.Tokens, CostUSD: s.CostUSD - steps.CostUSD, Unpriced: s.Unpriced && !steps.Unpriced, DurationMs: s.DurationMs - steps.DurationMs}
	if lost.Tokens > 0 || lost.CostUSD > leastCost || lost.DurationMs > 0 {
		s.NoStep = &lost
	}
	return all, nil
}

// leastCost is the least difference of two sums in US dollars that is none of rounding.
const leastCost = 1e-9

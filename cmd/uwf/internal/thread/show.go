package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/result"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/internal/text"
)

// ShowOptions are what `uwf thread show` works with.
type ShowOptions struct {
	Factory *app.Factory
	Thread  string
}

// NewCmdShow makes `uwf thread show`. A runF that is not nil replaces the run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{Factory: f}
	return lookup.TakeThread(f, &cobra.Command{
		Use:   "show THREAD",
		Short: "Show where a thread stands, and what to do next",
		Long: `Show where a thread stands: its status, whose turn it is, what it has cost, which
attempts failed, where its work is, how it was started; and what to do next.`,
		Example: `  uwf thread show 01JY0000000000000000000000
  uwf thread show @latest --jq .status`,
		RunE: app.Run(o, runF, showRun, func(args []string) { o.Thread = args[0] }),
	})
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
	Checks    []checks.Result    `json:"checks,omitempty"` // what each said last
	cost                         // with what led to no step
	NoStep    *cost              `json:"noStep,omitempty"`
	// Usage is the cost of an ended thread by role and model; nil: not by role.
	Usage     []statefile.RoleUsage `json:"usage,omitempty"`
	StartedAt time.Time             `json:"startedAt"`
	EndedAt   *time.Time            `json:"endedAt,omitempty"`
	Base      string                `json:"base,omitempty"`
	Trigger   map[string]any        `json:"trigger,omitempty"`
	Prompt    string                `json:"prompt"`
	Note      string                `json:"note,omitempty"`
	By        *record.By            `json:"by,omitempty"`       // who started it, or forked it
	ClosedBy  *record.By            `json:"closedBy,omitempty"` // who cancelled it
	GoesOnBy  *record.By            `json:"goesOnBy,omitempty"` // who let it go on last, before its next step

	waysOn   []life.Verb // what a person does so that it goes on
	used     extent      // with failed attempts
	limit    error       // that its next step will find reached
	failures int         // attempts at the next step that count
	seeWork  string      // the command that shows the work branch; empty where there is none
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
	// Take are the commands that show and take what the thread changed, each with what it is for, or a
	// line that says that it changed nothing.
	Take [][2]string
	// Unproven are the last results of the checks that did not pass.
	Unproven []checks.Result
}

// Look reads how a thread stands.
func Look(ctx context.Context, f *app.Factory, id gitcas.ThreadID) (Outlook, error) {
	t, err := lookup.Find(ctx, f.Store, string(id))
	if err != nil {
		return Outlook{}, err
	}
	s, err := readShown(ctx, f, t)
	return Outlook{Status: s.Status, Next: s.nextCommands(), SeeWork: s.seeWork, Take: s.takeCommands(ctx, f), Unproven: checks.Unproven(s.Checks)}, err
}

// takeCommands show and take what a thread changed. Without a branch, the thread changed nothing.
func (s shown) takeCommands(ctx context.Context, f *app.Factory) [][2]string {
	if s.seeWork == "" {
		return [][2]string{{"its changes:", "none: no file was changed"}}
	}
	id := string(s.Thread)
	out := [][2]string{{"see it:", "uwf thread diff " + id}, {"take it here:", "uwf thread apply " + id}}
	if result.OnForge(ctx, f) {
		out = append(out, [2]string{"or propose it:", "uwf thread pr " + id})
	}
	return out
}

// readShown collects what is to be said of a thread.
func readShown(ctx context.Context, f *app.Factory, t *lookup.Thread) (shown, error) {
	sum, err := t.View.ReadSummary(ctx, t.ID)
	if err != nil {
		return shown{}, err
	}
	e := t.Entry
	s := shown{
		standing: standing{Workflow: sum.Start.Workflow, Thread: t.ID, Head: e.Head, Done: t.Ended != nil, Status: t.Status(), turn: turnIn(e)},
		Steps:    sum.Used.Steps, Suspended: e.Suspended, Pause: e.Pause, Work: e.Work, Key: e.Key, Limits: e.Limits, Attempts: e.Attempts,
		StartedAt: t.ID.Time(), Base: sum.Start.Base, Trigger: sum.Start.Trigger, Prompt: sum.Start.Prompt, Title: cmp.Or(e.Title, sum.Start.Title),
		By: cmp.Or(e.By, sum.Start.By), waysOn: life.WaysOn(t.ID, e), failures: life.CountAttempts(e, t.ID, nil),
	}
	if s.Name, err = reading.WorkflowName(ctx, t.View, s.Workflow); err != nil {
		return s, err
	}
	if n := e.Next; n != nil {
		since := time.UnixMilli(n.Since).UTC()
		s.NextRole, s.Since, s.GoesOnBy = n.Role, &since, n.By
	}
	if over := t.Ended; over != nil {
		at := time.UnixMilli(over.CompletedAt).UTC()
		s.Note, s.EndedAt, s.By, s.ClosedBy = over.Note, &at, cmp.Or(over.By, sum.Start.By), over.ClosedBy
	} else if c, ok := life.WorkingClaim(t.View, t.ID, e); ok {
		job := lookup.JobOf(c)
		s.Running = &job
	}
	chain, err := t.View.ReadChain(ctx, t.ID)
	if err != nil {
		return s, err
	}
	s.Checks = checks.Latest(chain.Steps, func(c gitcas.ChainStep) (string, []record.Check) { return c.Role, c.Checks })
	there, err := t.HasWork(ctx)
	if err != nil {
		return s, err
	}
	if there {
		s.seeWork = f.ShowRef(ctx, "log -p", s.Work.Branch)
	}
	if s.Failed, err = t.Attempts(ctx); err != nil {
		return s, err
	}
	if over := t.Ended; over != nil && over.Used != nil {
		s.addCost(*over.Used, sum.Used)
		s.Usage = over.Usage
		return s, nil
	}
	_, used, err := attempt.CountThread(ctx, t.Store, t.View, t.ID)
	if err != nil {
		return s, err
	}
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
	limits := life.EffectiveLimits(c.Limits.Limits, def, t.Entry.Limits)
	all := limitsOf(limits)
	s.Allowed, s.limit, s.used = &all, limits.Check(used, s.NextRole), usedOf(used, life.WaitingRole(t.Entry))
	return nil
}

// sheet writes lines with labels.
type sheet struct{ *output.Writer }

func (s sheet) writeLine(label, format string, args ...any) {
	s.Faint(fmt.Sprintf("%-10s", label))
	s.Printf(format+"\n", args...)
}

func (s shown) writeText(w *output.Writer) {
	p := sheet{w}
	p.writeLine("thread", "%s", s.Thread)
	if s.Title != "" {
		p.writeLine("title", "%s", output.Line(s.Title, 200))
	}
	p.writeLine("workflow", "%s (%s)", s.Name, s.Workflow)
	s.writeStatus(p)
	p.writeLine("steps", "%d", s.Steps)
	p.writeLine("head", "%s", s.Head)
	p.writeLine("cost", "%s", s.formatAmount())
	if n := s.NoStep; n != nil && (n.Tokens > 0 || n.CostUSD > 0) {
		p.writeLine("", "%s of it for attempts that led to no step", n.formatAmount())
	}
	for _, u := range s.Usage {
		p.writeLine("", "%s: %s, %d tokens, %s", output.Line(strings.TrimSpace(cmp.Or(u.Role, "nobody knows whose")+" "+u.Model), 60), text.Plural(u.Steps, "step"), u.TokensIn+u.TokensOut, text.Dollars(u.CostUSD, s.Unpriced))
	}
	if s.Done && s.Usage == nil {
		p.writeLine("", "not by role: the thread ended before that was noted")
	}
	if s.Allowed != nil {
		p.writeLine("limits", "%s; failed attempts count too", s.used.formatAgainst(*s.Allowed))
	}
	for i, a := range s.Failed {
		label := ""
		if i == 0 {
			label = "attempts"
		}
		p.writeLine(label, "%s", formatTried(a, p.Zone))
	}
	for _, r := range s.Checks {
		if r.Status == record.CheckPassed {
			p.writeLine("check", "step %d: %s", r.Step, r.Describe())
		} else {
			p.Faint("check     ")
			WriteUnproven(p.Writer, r)
		}
	}
	if s.Work.Branch != "" {
		p.writeLine("work", "%s at %s", s.Work.Branch, orDash(s.Work.Commit))
	}
	p.writeLine("started", "%s%s%s", text.TimeIn(s.StartedAt, p.Zone), byWhom(s.By), s.describeOrigin())
	if s.EndedAt != nil {
		p.writeLine(s.Status, "%s%s", text.TimeIn(*s.EndedAt, p.Zone), byWhom(s.ClosedBy))
	}
	if s.Note != "" {
		p.writeLine("note", "%s", output.Line(s.Note, 200))
	}
	p.writeLine("prompt", "%s", output.Line(s.Prompt, 200))
	p.Println()
	for _, todo := range s.nextCommands() {
		p.Printf("%-29s", todo[0])
		p.Bold(todo[1])
		p.Println()
	}
}

// shownOutput is how much of a check's output a terminal shows, in bytes.
const shownOutput = 800

// WriteUnproven writes the result of a check that did not pass, with the last lines that it
// printed.
func WriteUnproven(w *output.Writer, r checks.Result) {
	w.Warn(fmt.Sprintf("step %d: %s", r.Step, r.Describe()))
	w.Println()
	if r.Output == "" {
		return
	}
	for line := range strings.Lines(checks.CutHead(strings.TrimLeft(r.Output, "\n"), shownOutput)) {
		w.FaintLine("  | " + strings.TrimRight(line, "\n"))
	}
}

// writeStatus writes the status in words, and what explains it.
func (s shown) writeStatus(p sheet) {
	p.Faint(fmt.Sprintf("%-10s", "status"))
	switch s.Status {
	case lookup.Running:
		p.Good(s.Status)
		p.Printf(": %s works on step %d\n", orDash(s.NextRole), s.Steps+1)
	case lookup.Failed:
		p.Bad(s.Status)
		p.Printf(": the last try at step %d failed; the thread stands where it was\n", s.Steps+1)
	case string(gitcas.StatusSuspended):
		p.Warn(s.Status)
		p.Println(": it waits for a person")
	case string(gitcas.StatusActive):
		p.Good(s.Status)
		p.Printf(": it is the turn of %s\n", orDash(s.NextRole))
	default:
		p.Bold(s.Status)
		p.Println()
	}
	if s.Suspended != nil {
		p.writeLine("waits", "role %s: %s%s", s.Suspended.Role, s.Suspended.Reason, byWhom(s.Suspended.By))
	}
	if s.Pause != nil {
		p.writeLine("pause", "before the next step: %s%s", orDash(s.Pause.Reason), byWhom(s.Pause.By))
	}
	if s.GoesOnBy != nil {
		p.writeLine("goes on", "by the word of %s", reading.Name(*s.GoesOnBy))
	}
	switch r := s.Running; {
	case r == nil:
	case r.Ahead:
		p.writeLine("run", "the one that %s (attempt %d) started at %s", r.Run, r.Attempt, text.TimeIn(r.Since, p.Zone))
	default:
		p.writeLine("run", "%s (attempt %d) on %s since %s, last heard of %s, %d tokens", r.Run, r.Attempt, r.Host,
			text.TimeIn(r.Since, p.Zone), text.TimeIn(r.Renewed, p.Zone), r.Tokens)
	}
}

// byWhom says who did it, where somebody did.
func byWhom(by *record.By) string {
	if by == nil {
		return ""
	}
	return ", by " + reading.Name(*by)
}

// formatAmount is what something took.
func (c cost) formatAmount() string {
	return fmt.Sprintf("%d tokens, %s, %s", c.Tokens, text.Dollars(c.CostUSD, c.Unpriced), text.Took(c.DurationMs))
}

// formatTried says on one line what became of an attempt.
func formatTried(a attempt.Summary, zone *time.Location) string {
	who := a.Role
	if a.Agent != "" {
		who += " (" + a.Agent + ")"
	}
	if u := a.Usage; u != nil {
		who += "  " + cost{u.InputTokens + u.OutputTokens, u.CostUSD, u.Unpriced, u.DurationMs}.formatAmount()
	}
	at := ""
	if !a.At.IsZero() {
		at = text.TimeIn(a.At, zone) + "  "
	}
	what := output.Line(a.Error, 160)
	if a.Phase == "poked" {
		what = strings.TrimSpace("taken back " + what)
	}
	return at + strings.TrimSpace(who+"  "+what)
}

// describeOrigin says what started the thread.
func (s shown) describeOrigin() string {
	var by []string
	if s.Key != "" {
		by = append(by, "key "+s.Key)
	}
	if s.Base != "" {
		by = append(by, "from commit "+s.Base[:min(10, len(s.Base))])
	}
	for _, k := range slices.Sorted(maps.Keys(s.Trigger)) {
		by = append(by, output.Line(fmt.Sprintf("%s %v", k, s.Trigger[k]), 60))
	}
	if len(by) == 0 {
		return ""
	}
	return ", " + strings.Join(by, ", ")
}

// nextCommands are the commands that come next, each with what it is for.
func (s shown) nextCommands() [][2]string {
	id := string(s.Thread)
	read := [2]string{"read it:", "uwf thread read " + id}
	if s.limit != nil && (s.Status == string(gitcas.StatusActive) || s.Status == lookup.Failed) {
		raise := life.NewRaiseLimitVerb(s.Thread, s.limit)
		return [][2]string{{"raise it:", app.Command(raise)}, read}
	}
	switch s.Status {
	case lookup.Running:
		return [][2]string{
			{"wait for it:", "uwf thread wait " + id},
			{"let it wait after this step:", "uwf thread pause " + id},
			{"stop it for good:", "uwf thread cancel " + id},
		}
	case string(gitcas.StatusActive):
		return [][2]string{{"do the next step:", "uwf thread step " + id}, {"see what that would be:", "uwf thread step " + id + " --dry-run"}, read}
	case lookup.Failed:
		again := "uwf thread step " + id
		if s.failures >= life.MaxAttempts { // the next step would only make it wait
			again = "uwf thread retry " + id
		}
		return [][2]string{{"try again:", again}, {"see what went wrong:", "uwf thread steps " + id}}
	case string(gitcas.StatusSuspended):
		return append(s.answerCommands(), read)
	case statefile.ReasonEnded:
		out := [][2]string{read}
		if s.seeWork != "" {
			out = append(out, [2]string{"see the work:", s.seeWork})
		}
		return append(out, [2]string{"try again from a step:", fmt.Sprintf("uwf thread fork %s:%d", id, max(s.Steps-1, 0))})
	}
	return [][2]string{read}
}

// answerCommands are the ways to let a suspended thread go on.
func (s shown) answerCommands() [][2]string {
	id := string(s.Thread)
	what, command := app.NextCommand(s.waysOn)
	out := [][2]string{{what, command}}
	if len(s.Attempts) == 0 {
		return out
	}
	if retry := "uwf thread retry " + id; command == retry {
		out = append(out, [2]string{"tell it something first:", "uwf thread resume " + id + ` -p "…"`})
	} else {
		out = append(out, [2]string{"try again as it was:", retry})
	}
	return append(out, [2]string{"see what went wrong:", "uwf thread steps " + id})
}

func orDash(s string) string { return cmp.Or(s, "-") }

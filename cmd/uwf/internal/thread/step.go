package thread

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// StepOptions are what `uwf thread step` works with.
type StepOptions struct {
	Factory    *app.Factory
	Worker     worker.Options
	Thread     string
	ExpectHead string
	Count      int
	DryRun     bool
}

// NewCmdStep makes `uwf thread step`. A runF that is not nil replaces the run.
func NewCmdStep(f *app.Factory, runF func(context.Context, *StepOptions) error) *cobra.Command {
	o := &StepOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:     "step THREAD",
		Aliases: []string{"exec"},
		Short:   "Do one step: moderator, agent, extract; then exit",
		Long: `Do exactly one step of a thread and exit: the moderator says whose turn it is, the
agent works in the workspace, its output is checked and committed. A step that fails
leaves the thread where it was and keeps what it produced.

With a --count above 1 it goes on, step by step, until the thread ends, waits for a
person or fails, or so many steps are done; the result is a list then, one entry a step.
Each is one whole run of the protocol, as if it were a process of its own.

A command of --agent is looked up from here and runs in the workspace, so give files
among its arguments by absolute paths.

` + ChoiceHelp + `

Exit codes: 0 advanced or ended · 1 the step failed · 2 wrong usage or invalid
definition · 3 suspended, waits for a person · 4 not yours to step: moved, claimed,
cancelled or ended · 5 store damaged or unreadable · 6 limit reached`,
		Example: `  uwf thread step 01JY0000000000000000000000
  uwf thread step @latest --count 5
  uwf thread step 01JY0000000000000000000000 --dry-run
  uwf thread step @latest --provider ollama --model qwen3 --agent reviewer=mock
  uwf thread exec 01JY0000000000000000000000 --agent "uwf agent mock script.yaml"`,
		RunE: app.Run(o, runF, stepRun, func(args []string) { o.Thread = args[0] }),
	})
	cmd.Flags().IntVarP(&o.Count, "count", "c", 0, "do up to `N` steps, until the thread ends, waits or fails")
	app.RefuseZero(cmd, "count")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what the step would do, with its whole prompt; nothing is claimed, written or paid")
	cmd.Flags().StringVar(&o.ExpectHead, "expect-head", "", "step only if the thread's head is `HASH`; HASH@sha256:DIGEST, as a step prints it, is proof against another node of that hash")
	cmd.Flags().StringVar(&f.ExpectStore, "expect-store", "", "step only if the store's id, in VERSION of the state branch, is `ID`")
	ChoiceFlags(cmd, f)
	WorkerFlags(cmd, f, &o.Worker)
	return cmd
}

// ChoiceHelp tells of the variables that say the same as the flags of ChoiceFlags.
const ChoiceHelp = `The variables UWF_AGENT, UWF_MODEL and UWF_PROVIDER say the same as the flags, where those
are not given; UWF_BASE_URL and UWF_API_KEY describe a provider of their own. Flags go before
variables, and both before all settings: before what these give to single roles, too.
~/.uwf/config.yaml (uwf setup) goes before the repository's .uwf/config.yaml.`

// ChoiceFlags adds the flags that choose models and agents for a run.
func ChoiceFlags(cmd *cobra.Command, f *app.Factory) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.Choice.Agents, "agent", nil, "use this `AGENT`, an alias of the configuration or a command line, for all roles; ROLE=AGENT for one role")
	fl.StringArrayVar(&f.Choice.Models, "model", nil, "use this `MODEL`, an alias of the configuration or as its provider calls it, for all roles; ROLE=MODEL for one role")
	fl.StringVar(&f.Choice.Provider, "provider", "", "the `PROVIDER` of the models that are named: "+strings.Join(config.PresetNames(), ", ")+", or one of the configuration")
	app.CompleteFlag(cmd, "provider", config.PresetNames()...)
}

// WorkerFlags adds the flags that say how this process works.
func WorkerFlags(cmd *cobra.Command, f *app.Factory, o *worker.Options) {
	fl := cmd.Flags()
	fl.StringVar(&o.Workspace, "workspace", "", "let agents work in `DIR`, an empty folder or one that a step left so (default: a folder of the thread's own)")
	fl.StringVar(&o.Record, "record", "", "record the conversation with the model into the cassette `FILE`")
	fl.StringVar(&o.Replay, "replay", "", "replay the model from the cassette `FILE`; no model is asked")
	fl.BoolVar(&o.AllowShell, "allow-shell", false, "let the builtin agent run commands")
	trustFlag(cmd, f)
	fl.StringVar(&o.Sandbox, "sandbox", "", "confine agents by `MODE`: off, auto or require; of this and the configuration the stricter one counts (default: as configured)")
	app.AllowValues(cmd, "sandbox", "off", "auto", "require")
	fl.DurationVar(&o.Timeout, "step-time", 0, "stop an agent after this `TIME`, such as 20m")
	app.RefuseNegative(cmd, "step-time")
}

// trustFlag adds the flag that consents to what a repository wants.
func trustFlag(cmd *cobra.Command, f *app.Factory) {
	cmd.Flags().StringSliceVar(&f.Trust, "trust", nil, "consent to what the repository wants of this machine by its `SHA256` (uwf trust show prints it), or go without: none")
}

func stepRun(ctx context.Context, o *StepOptions) error {
	ref, err := lookup.Parse(o.Thread)
	if err != nil {
		return err
	}
	var req step.Request
	if o.ExpectHead != "" {
		hash, digest, _ := strings.Cut(o.ExpectHead, "@")
		if h, err := node.ReadHash(hash); err == nil { // as people type it
			hash = string(h)
		}
		if req.ExpectHead, err = node.ParsePin(strings.TrimSuffix(hash+"@"+digest, "@")); err != nil {
			return app.Usagef("--expect-head: %w", err)
		}
	}
	if o.DryRun && o.Count > 0 {
		return app.Usagef("--dry-run tells of one step: leave --count out")
	}
	if o.Factory.IO.ErrTTY {
		o.Worker.Stderr = o.Factory.IO.Err
	}
	if o.Worker.AsksNobody = o.DryRun; !o.DryRun {
		if err := app.SettleTrust(o.Factory); err != nil {
			return err
		}
	}
	w, err := worker.New(ctx, o.Factory, o.Worker)
	if err != nil {
		return err
	}
	if req.Thread, err = ref.ID(ctx, w.Store); err != nil {
		return err
	}
	if o.DryRun {
		return o.dryRun(ctx, w, req)
	}
	if err := w.PrepareFolder(ctx, req.Thread); err != nil {
		return err
	}
	if o.Count > 1 {
		return o.stepMany(ctx, w, req)
	}
	res, stepErr := w.Step(ctx, req)
	w.RememberFolder(ctx)
	if stepErr != nil && res.Head == "" {
		return stepErr // no thread was found: there is no result
	}
	err = o.Factory.Printer().Print(SteppedOf(res), func(p *output.Writer) { printResult(p, res) })
	if stepErr != nil {
		return stepErr
	}
	if res.Done {
		err = errors.Join(err, w.RemoveFolder(ctx, req.Thread))
	}
	return err
}

// stepMany does several steps and prints the list of what they did.
func (o *StepOptions) stepMany(ctx context.Context, w *worker.Worker, req step.Request) error {
	p := o.Factory.Printer()
	live := p.Text() // people see each step when it is done
	list := []Stepped{}
	stepErr := Loop(ctx, w, req, o.Count, func(r thread.Result) {
		list = append(list, SteppedOf(r))
		if p.Chosen() == output.Text {
			printResult(live, r)
		}
	})
	w.RememberFolder(ctx)
	if len(list) == 0 && stepErr != nil {
		return stepErr
	}
	if n := len(list); stepErr == nil && list[n-1].Done {
		stepErr = w.RemoveFolder(ctx, req.Thread)
	}
	return errors.Join(stepErr, live.Flush(), p.Print(list, func(*output.Writer) {}))
}

// Loop steps a thread until it ends, waits for a person or fails, or until max
// steps are done; 0 is no bound. Each step's result goes to each, that of the one
// that failed as well.
func Loop(ctx context.Context, w *worker.Worker, req step.Request, max int, each func(thread.Result)) error {
	for n := 1; ; n++ {
		var next *lease.Identity
		var nextErr error
		req.Next = func() (lease.Identity, bool) {
			if n == max || ctx.Err() != nil {
				return lease.Identity{}, false
			}
			var who lease.Identity
			who, nextErr = w.NextIdentity()
			next = &who
			return who, nextErr == nil
		}
		res, err := w.Step(ctx, req)
		if err == nil || res.Head != "" {
			each(res)
		}
		if err != nil || res.Done {
			return err
		}
		if res.Suspended != nil {
			s := res.Suspended
			return &life.DeedError{Kind: life.KindSuspended, Thread: req.Thread, Role: s.Role, Reason: s.Reason, Next: s.Next}
		}
		if n == max {
			return nil
		}
		if next == nil {
			req.Next()
		}
		if nextErr != nil {
			return nextErr
		}
		if next == nil || ctx.Err() != nil {
			res.Held.Release(ctx)
			return fmt.Errorf("stopped between two steps of thread %s: %w", req.Thread, ctx.Err())
		}
		w.Who, req.Held = *next, res.Held
		req.ExpectHead = node.Pin{} // what was expected was the head before the first step
	}
}

// Stepped is the JSON of a step.
type Stepped struct {
	thread.Result
	turn
}

// SteppedOf is a step's result as it is printed.
func SteppedOf(r thread.Result) Stepped {
	out := Stepped{Result: r}
	switch {
	case r.Suspended != nil:
		out.turn = turn{SuspendedRole: &r.Suspended.Role, SuspendMessage: &r.Suspended.Reason}
	case r.NextRole != "":
		out.CurrentRole = &r.NextRole
	}
	return out
}

// printResult writes a step's result for people.
func printResult(w *output.Writer, r thread.Result) {
	if r.Role == "" && r.Usage == nil {
		return // nothing was done; the error says why
	}
	n, role, what := r.Step, r.Role, moderator.Arrow(r.Result)
	switch {
	case r.Role == "":
		n, role, what = n+1, orDash(r.NextRole), " gave no step"
	case r.Done:
		what += "; the thread has ended"
	case r.Suspended != nil:
		what += "; the thread waits for a person:\n  " + r.Suspended.Reason
	default:
		what += "; next: " + r.NextRole
	}
	w.Printf("step %d: ", n)
	w.Bold(role)
	w.Println(what)
	if r.Suspended != nil && !r.Done && r.Role != "" {
		next, command := app.NextCommand(r.Suspended.Next)
		w.FaintLine(next + "  " + command)
	}
	for _, c := range r.Checks {
		if c.Status != record.CheckPassed {
			w.Warn("check, ")
			WriteUnproven(w, checks.Result{Step: r.Step, Role: r.Role, Check: c})
			continue
		}
		w.FaintLine("check: " + c.Describe())
	}
	if u := r.Usage; u != nil {
		w.FaintLine(fmt.Sprintf("%d tokens in, %d out, %s, %s", u.InputTokens, u.OutputTokens, text.Dollars(u.CostUSD, u.Unpriced), text.Took(u.DurationMs)))
	}
}

// planned is the JSON of `uwf thread step --dry-run`.
type planned struct {
	step.DryRunPlan
	DryRun bool `json:"dryRun"`
	// Characters of the prompt, and about how many tokens that is.
	Characters int               `json:"promptCharacters"`
	Tokens     int               `json:"promptTokens"`
	Limits     extent            `json:"limits"`
	Used       extent            `json:"used"`
	Error      *thread.StepError `json:"error,omitempty"`
}

// extent is how far a thread may go, or has gone; of limits 0 is none.
type extent struct {
	Steps        int     `json:"steps"`
	StepsPerRole int     `json:"stepsPerRole"` // used: of the role whose turn it is
	Tokens       int64   `json:"tokens"`
	CostUSD      float64 `json:"costUsd"`
	Unpriced     bool    `json:"unpriced,omitempty"`
	WallMs       int64   `json:"wallMs"`
}

// perToken is how many characters make a token, roughly: prose has more, code
// fewer.
const perToken = 4

func limitsOf(l moderator.Limits) extent {
	return extent{Steps: l.MaxSteps, StepsPerRole: l.MaxStepsPerRole, Tokens: l.Tokens, CostUSD: l.CostUSD, WallMs: l.Wall.Milliseconds()}
}

func usedOf(t moderator.Totals, role string) extent {
	return extent{Steps: t.Steps, StepsPerRole: t.PerRole[role], Tokens: t.Tokens, CostUSD: t.CostUSD, Unpriced: t.Unpriced, WallMs: t.Wall.Milliseconds()}
}

// dryRun prints what the next step would do. Nothing is claimed, written or paid.
func (o *StepOptions) dryRun(ctx context.Context, w *worker.Worker, req step.Request) error {
	plan, planErr := w.PlanStep(ctx, req)
	if planErr != nil && plan.Workflow == "" {
		return planErr // nothing is known of it
	}
	n := utf8.RuneCountInString(plan.Prompt)
	p := planned{DryRunPlan: plan, DryRun: true, Characters: n, Tokens: (n + perToken - 1) / perToken, Limits: limitsOf(plan.Limits), Used: usedOf(plan.Used, plan.Role)}
	if planErr != nil {
		p.Error = &thread.StepError{Message: planErr.Error(), Next: life.NextOf(planErr)}
	}
	if err := o.Factory.Printer().Print(p, p.writeText); err != nil {
		return err
	}
	return planErr
}

func (p planned) writeText(w *output.Writer) {
	s := sheet{w}
	s.writeLine("thread", "%s of %s", p.Thread, p.Name)
	switch {
	case p.Suspended != nil:
		s.writeLine("waits", "role %s: %s", p.Suspended.Role, p.Suspended.Reason)
	case p.Done:
		s.writeLine("step", "none: the thread is at its end")
	case p.Role != "":
		s.writeLine("step", "%d, nothing of it was done: this is a dry run", p.Step)
		s.writeLine("role", "%s", p.Role)
		if p.Command != "" {
			s.writeLine("agent", "%s (%s)", p.Agent, p.Command)
		}
	}
	if m := p.Model; m != nil {
		s.writeLine("model", "%s: %s of %s", m.Alias, m.Name, m.Provider)
	}
	if p.Location != "" {
		s.writeLine("folder", "%s", p.Location)
	}
	s.writeLine("used", "%s", p.Used.formatAgainst(p.Limits))
	if p.Prompt == "" {
		return
	}
	s.writeLine("prompt", "%d characters, about %d tokens", p.Characters, p.Tokens)
	s.Println()
	s.Printf("%s\n", p.Prompt)
}

// formatAgainst says what was used of what is allowed.
func (e extent) formatAgainst(limit extent) string {
	of := func(text string, none bool, max string) string {
		if none {
			return text
		}
		return text + " of " + max
	}
	out := of(fmt.Sprint(e.Steps), limit.Steps == 0, fmt.Sprint(limit.Steps)) + " steps"
	out += ", " + of(fmt.Sprint(e.StepsPerRole), limit.StepsPerRole == 0, fmt.Sprint(limit.StepsPerRole)) + " by this role"
	out += ", " + of(fmt.Sprint(e.Tokens), limit.Tokens == 0, fmt.Sprint(limit.Tokens)) + " tokens"
	out += ", " + of(text.Dollars(e.CostUSD, e.Unpriced), limit.CostUSD == 0, fmt.Sprintf("$%.2f", limit.CostUSD))
	return out + ", " + of(text.Took(e.WallMs), limit.WallMs == 0, text.Took(limit.WallMs))
}

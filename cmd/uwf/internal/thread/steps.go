package thread

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// StepsOptions are what `uwf thread steps` works with.
type StepsOptions struct {
	source
	Printer output.Printer
	Thread  string
}

// NewCmdSteps makes `uwf thread steps`. A runF that is not nil replaces the run.
func NewCmdSteps(f *app.Factory, runF func(context.Context, *StepsOptions) error) *cobra.Command {
	o := &StepsOptions{source: source{Store: f.Store}}
	return &cobra.Command{
		Use:     "steps THREAD",
		Short:   "List a thread's steps, with what each cost",
		Long:    "List a thread's steps, the oldest first: role, result, agent, time, tokens, commit.",
		Example: "  uwf thread steps 01JY0000000000000000000000",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread, o.Printer = args[0], f.Printer()
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return stepsRun(cmd.Context(), o)
		},
	}
}

// stepShown is one step in the JSON of `uwf thread steps`.
type stepShown struct {
	Step        int            `json:"step"`
	Hash        node.Hash      `json:"hash"`
	Role        string         `json:"role"`
	Output      map[string]any `json:"output"`
	Body        string         `json:"body,omitempty"`
	Agent       string         `json:"agent"`
	StartedAt   time.Time      `json:"startedAt"`
	CompletedAt time.Time      `json:"completedAt"`
	EdgePrompt  string         `json:"edgePrompt"`
	Usage       *record.Usage  `json:"usage,omitempty"`
	Work        *record.Work   `json:"work,omitempty"`
	Run         *record.Run    `json:"run,omitempty"`
	Attempts    []node.Hash    `json:"previousAttempts,omitempty"`
}

func stepsRun(ctx context.Context, o *StepsOptions) error {
	f, err := o.find(ctx, o.Thread)
	if err != nil {
		return err
	}
	list, err := f.steps(ctx)
	if err != nil {
		return err
	}
	return o.Printer.Print(list, func(w *output.Writer) {
		rows := make([][]string, len(list))
		for i, s := range list {
			rows[i] = s.row()
		}
		w.Table([]string{"step", "role", "result", "agent", "took", "tokens", "cost", "commit"}, rows)
	})
}

func (f *found) steps(ctx context.Context) ([]stepShown, error) {
	chain, err := f.view.Chain(ctx, f.id)
	if err != nil {
		return nil, err
	}
	list := make([]stepShown, 0, len(chain.Steps))
	for i, s := range chain.Steps {
		shown, err := f.step(ctx, i+1, s)
		if err != nil {
			return nil, err
		}
		list = append(list, shown)
	}
	return list, nil
}

func (f *found) step(ctx context.Context, n int, s gitcas.ChainStep) (stepShown, error) {
	out := stepShown{
		Step: n, Hash: s.Hash, Role: s.Role, Agent: s.Agent, EdgePrompt: s.EdgePrompt,
		StartedAt: time.UnixMilli(s.StartedAtMs).UTC(), CompletedAt: time.UnixMilli(s.CompletedAtMs).UTC(),
		Usage: s.Usage, Work: s.Work, Run: s.Run, Attempts: s.PreviousAttempts,
	}
	o, err := f.view.Get(ctx, s.Output)
	if err != nil {
		return out, fmt.Errorf("output of step %d: %w", n, err)
	}
	out.Output, _ = o.Payload.(map[string]any)
	if s.Body != nil {
		b, err := f.view.Get(ctx, *s.Body)
		if err != nil {
			return out, fmt.Errorf("body of step %d: %w", n, err)
		}
		out.Body, _ = b.Payload.(string)
	}
	return out, nil
}

// status is the step's result as its output says it.
func (s stepShown) status() string {
	for _, key := range []string{"$status", "status"} {
		if v, ok := s.Output[key].(string); ok {
			return v
		}
	}
	return "_"
}

func (s stepShown) row() []string {
	tokens, cost, commit := "", "", ""
	if s.Usage != nil {
		tokens = strconv.FormatInt(s.Usage.InputTokens+s.Usage.OutputTokens, 10)
		cost = fmt.Sprintf("$%.4f", s.Usage.CostUSD)
	}
	if s.Work != nil {
		commit = s.Work.Commit[:min(10, len(s.Work.Commit))]
	}
	took := s.CompletedAt.Sub(s.StartedAt).Round(100 * time.Millisecond).String()
	return []string{strconv.Itoa(s.Step), s.Role, s.status(), s.Agent, took, tokens, cost, commit}
}

// StepDetailsOptions are what `uwf thread step-details` works with.
type StepDetailsOptions struct {
	source
	Printer output.Printer
	Step    string
}

// NewCmdStepDetails makes `uwf thread step-details`. A runF that is not nil
// replaces the run.
func NewCmdStepDetails(f *app.Factory, runF func(context.Context, *StepDetailsOptions) error) *cobra.Command {
	o := &StepDetailsOptions{source: source{Store: f.Store}}
	return &cobra.Command{
		Use:   "step-details THREAD:N",
		Short: "Show one step with its agent's turns",
		Long: `Show one step whole: output, body, the prompt that the agent was given, and the details
that the agent kept, such as its turns and tool calls.`,
		Example: "  uwf thread step-details 01JY0000000000000000000000:2",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Step, o.Printer = args[0], f.Printer()
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return stepDetailsRun(cmd.Context(), o)
		},
	}
}

// stepDetails is the JSON of `uwf thread step-details`.
type stepDetails struct {
	stepShown
	Prompt string `json:"prompt,omitempty"`
	Detail any    `json:"detail"`
	Turns  []any  `json:"turns,omitempty"`
}

func stepDetailsRun(ctx context.Context, o *StepDetailsOptions) error {
	id, num, ok := strings.Cut(o.Step, ":")
	n, err := strconv.Atoi(num)
	if !ok || err != nil || n < 1 {
		return app.Usagef("%q is no step: write THREAD:N, as in 01JY0000000000000000000000:2", o.Step)
	}
	f, err := o.find(ctx, id)
	if err != nil {
		return err
	}
	chain, err := f.view.Chain(ctx, f.id)
	if err != nil {
		return err
	}
	if n > len(chain.Steps) {
		return app.Usagef("thread %s has %d steps, there is no step %d", f.id, len(chain.Steps), n)
	}
	d, err := f.details(ctx, n, chain.Steps[n-1])
	if err != nil {
		return err
	}
	return o.Printer.Print(d, d.text)
}

func (f *found) details(ctx context.Context, n int, s gitcas.ChainStep) (stepDetails, error) {
	var d stepDetails
	var err error
	if d.stepShown, err = f.step(ctx, n, s); err != nil {
		return d, err
	}
	if s.AssembledPrompt != nil {
		p, err := f.store.Detail(ctx, f.view, f.id, *s.AssembledPrompt)
		if err != nil {
			return d, fmt.Errorf("prompt of step %d: %w", n, err)
		}
		d.Prompt, _ = p.Payload.(string)
	}
	detail, err := f.store.Detail(ctx, f.view, f.id, s.Detail)
	if err != nil {
		return d, fmt.Errorf("detail of step %d: %w", n, err)
	}
	d.Detail = detail.Payload
	m, _ := detail.Payload.(map[string]any)
	turns, _ := m["turns"].([]any)
	for _, t := range turns {
		h, _ := t.(string)
		turn, err := f.store.Detail(ctx, f.view, f.id, node.Hash(h))
		if err != nil {
			return d, fmt.Errorf("turn of step %d: %w", n, err)
		}
		d.Turns = append(d.Turns, turn.Payload)
	}
	return d, nil
}

func (d stepDetails) text(w *output.Writer) {
	d.stepShown.text(w)
	for i, t := range d.Turns {
		m, _ := t.(map[string]any)
		role, _ := m["role"].(string)
		content, _ := m["content"].(string)
		w.Println()
		w.Bold(fmt.Sprintf("turn %d, %s", i+1, role))
		w.Println()
		indent(w, content)
		calls, _ := m["toolCalls"].([]any)
		for _, c := range calls {
			cm, _ := c.(map[string]any)
			w.Faint(fmt.Sprintf("  %v %v", cm["name"], cm["args"]))
			w.Println()
		}
	}
	if d.Prompt != "" {
		w.Println()
		w.Bold("prompt")
		w.Println()
		indent(w, d.Prompt)
	}
}

func indent(w *output.Writer, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		w.Printf("  %s", line)
	}
}

package thread

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// ShowOptions are what `uwf thread show` works with.
type ShowOptions struct {
	source
	Printer output.Printer
	Thread  string
}

// NewCmdShow makes `uwf thread show`. A runF that is not nil replaces the run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{source: source{Store: f.Store}}
	return &cobra.Command{
		Use:     "show THREAD",
		Short:   "Show where a thread stands",
		Long:    "Show where a thread stands: its status, its head, whose turn it is, what it has cost.",
		Example: "  uwf thread show 01JY0000000000000000000000",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread, o.Printer = args[0], f.Printer()
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return showRun(cmd.Context(), o)
		},
	}
}

// shown is the JSON of `uwf thread show`.
type shown struct {
	Thread       gitcas.ThreadID   `json:"thread"`
	Workflow     string            `json:"workflow"`
	WorkflowHash node.Hash         `json:"workflowHash"`
	Status       string            `json:"status"`
	Head         node.Hash         `json:"head"`
	Steps        int               `json:"steps"`
	NextRole     string            `json:"nextRole,omitempty"`
	Since        *time.Time        `json:"since,omitempty"`
	Suspended    *gitcas.Suspended `json:"suspended,omitempty"`
	Running      *running          `json:"running,omitempty"`
	Work         gitcas.Work       `json:"work"`
	Key          string            `json:"key,omitempty"`
	Attempts     []string          `json:"attempts,omitempty"`
	Tokens       int64             `json:"tokens"`
	CostUSD      float64           `json:"costUsd"`
	Prompt       string            `json:"prompt"`
	Note         string            `json:"note,omitempty"`
}

// running is the claim of the job that works on a thread.
type running struct {
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`
	Host    string    `json:"host"`
	Since   time.Time `json:"since"`
	Renewed time.Time `json:"renewed"`
	Tokens  int64     `json:"tokens"`
}

func showRun(ctx context.Context, o *ShowOptions) error {
	f, err := o.find(ctx, o.Thread)
	if err != nil {
		return err
	}
	s, err := f.shown(ctx)
	if err != nil {
		return err
	}
	return o.Printer.Print(s, s.text)
}

func (f *found) shown(ctx context.Context) (shown, error) {
	chain, err := f.view.Chain(ctx, f.id)
	if err != nil {
		return shown{}, err
	}
	name, err := workflowName(ctx, f.view, chain.Start.Workflow)
	if err != nil {
		return shown{}, err
	}
	s := shown{
		Thread: f.id, Workflow: name, WorkflowHash: chain.Start.Workflow, Status: f.status(), Head: f.entry.Head,
		Steps: len(chain.Steps), Suspended: f.entry.Suspended, Work: f.entry.Work, Key: f.entry.Key,
		Attempts: f.entry.Attempts, Prompt: chain.Start.Prompt,
	}
	if n := f.entry.Next; n != nil {
		since := time.UnixMilli(n.Since).UTC()
		s.NextRole, s.Since = n.Role, &since
	}
	if f.ended != nil {
		s.Note = f.ended.Note
	}
	if s.Status == "running" {
		c, _ := f.view.Claim(f.id)
		s.Running = &running{
			Run: c.Run, Attempt: c.Attempt, Host: c.Host, Tokens: c.Tokens,
			Since: time.UnixMilli(c.Since).UTC(), Renewed: time.UnixMilli(c.Renewed).UTC(),
		}
	}
	for _, st := range chain.Steps {
		if st.Usage != nil {
			s.Tokens += st.Usage.InputTokens + st.Usage.OutputTokens
			s.CostUSD += st.Usage.CostUSD
		}
	}
	return s, nil
}

func workflowName(ctx context.Context, v *gitcas.View, h node.Hash) (string, error) {
	n, err := v.Get(ctx, h)
	if err != nil {
		return "", fmt.Errorf("read the workflow: %w", err)
	}
	m, _ := n.Payload.(map[string]any)
	name, _ := m["name"].(string)
	return name, nil
}

func (s shown) text(w *output.Writer) {
	line := func(label, format string, args ...any) {
		w.Faint(fmt.Sprintf("%-10s", label))
		w.Printf(format+"\n", args...)
	}
	line("thread", "%s", s.Thread)
	line("workflow", "%s (%s)", s.Workflow, s.WorkflowHash)
	line("status", "%s", s.Status)
	if s.Suspended != nil {
		line("waits", "role %s: %s", s.Suspended.Role, s.Suspended.Reason)
	}
	if s.Running != nil {
		line("run", "%s (attempt %d) on %s since %s", s.Running.Run, s.Running.Attempt, s.Running.Host, s.Running.Since.Format(time.DateTime))
	}
	if s.NextRole != "" && s.Status != "suspended" {
		line("next", "%s", s.NextRole)
	}
	line("steps", "%d", s.Steps)
	line("head", "%s", s.Head)
	line("cost", "%d tokens, $%.4f", s.Tokens, s.CostUSD)
	if s.Work.Branch != "" {
		line("work", "%s at %s", s.Work.Branch, orDash(s.Work.Commit))
	}
	for _, a := range s.Attempts {
		line("attempt", "%s", a)
	}
	if s.Note != "" {
		line("note", "%s", s.Note)
	}
	line("prompt", "%s", output.Line(s.Prompt, 200))
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

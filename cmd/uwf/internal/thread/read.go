package thread

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// ReadOptions are what `uwf thread read` works with.
type ReadOptions struct {
	source
	Printer output.Printer
	Thread  string
}

// NewCmdRead makes `uwf thread read`. A runF that is not nil replaces the run.
func NewCmdRead(f *app.Factory, runF func(context.Context, *ReadOptions) error) *cobra.Command {
	o := &ReadOptions{source: source{Store: f.Store}}
	return &cobra.Command{
		Use:     "read THREAD",
		Short:   "Read a thread from beginning to end",
		Long:    "Read a thread from beginning to end: its task, then each step with its output and body.",
		Example: "  uwf thread read 01JY0000000000000000000000",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread, o.Printer = args[0], f.Printer()
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return readRun(cmd.Context(), o)
		},
	}
}

// story is the JSON of `uwf thread read`.
type story struct {
	Thread gitcas.ThreadID `json:"thread"`
	Status string          `json:"status"`
	Prompt string          `json:"prompt"`
	Steps  []stepShown     `json:"steps"`
}

func readRun(ctx context.Context, o *ReadOptions) error {
	f, err := o.find(ctx, o.Thread)
	if err != nil {
		return err
	}
	s, err := f.shown(ctx)
	if err != nil {
		return err
	}
	steps, err := f.steps(ctx)
	if err != nil {
		return err
	}
	all := story{Thread: f.id, Status: s.Status, Prompt: s.Prompt, Steps: steps}
	return o.Printer.Print(all, func(w *output.Writer) {
		w.Bold(fmt.Sprintf("thread %s, %s, %s", f.id, s.Workflow, s.Status))
		w.Println()
		w.Println()
		indent(w, s.Prompt)
		for _, st := range steps {
			w.Println()
			st.text(w)
		}
	})
}

// text writes one step as a reader wants it.
func (s stepShown) text(w *output.Writer) {
	w.Bold(fmt.Sprintf("step %d: %s → %s", s.Step, s.Role, s.status()))
	w.Faint(fmt.Sprintf("  %s, %s", s.Agent, s.CompletedAt.Format("2006-01-02 15:04:05")))
	w.Println()
	for _, k := range slices.Sorted(maps.Keys(s.Output)) {
		if k == "$status" || k == "status" {
			continue
		}
		text, isText := s.Output[k].(string)
		if !isText {
			b, err := node.FormatJSON(s.Output[k])
			if err != nil {
				w.Fail(err)
				return
			}
			text = string(b)
		}
		if text = strings.TrimRight(text, "\n"); strings.Contains(text, "\n") {
			w.Printf("  %s:\n", k)
			for line := range strings.Lines(text + "\n") {
				w.Printf("    %s", line)
			}
			continue
		}
		w.Printf("  %s: %s\n", k, text)
	}
	if body := strings.TrimSpace(s.Body); body != "" {
		w.Println()
		indent(w, body)
	}
}

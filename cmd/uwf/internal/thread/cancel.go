package thread

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
)

// CancelOptions are what `uwf thread cancel` works with.
type CancelOptions struct {
	Factory *app.Factory
	Thread  string
	Reason  string
}

// NewCmdCancel makes `uwf thread cancel`. A runF that is not nil replaces the run.
func NewCmdCancel(f *app.Factory, runF func(context.Context, *CancelOptions) error) *cobra.Command {
	o := &CancelOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "cancel THREAD",
		Aliases: []string{"kill"},
		Short:   "End a thread for good",
		Long: `End a thread for good: it never runs again. A job that is working on it is stopped at
its next renewal, and what it has is kept as an attempt. Cancelling twice is no error.`,
		Example: `  uwf thread cancel 01JY0000000000000000000000 -m "solved by hand"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return cancelRun(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.Reason, "message", "m", "", "why (`TEXT`)")
	return cmd
}

func cancelRun(ctx context.Context, o *CancelOptions) error {
	id, err := parseID(o.Thread)
	if err != nil {
		return err
	}
	w, err := worker.New(ctx, o.Factory, worker.Options{})
	if err != nil {
		return err
	}
	line, err := w.Cancel(ctx, id, o.Reason)
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(line, func(p *output.Writer) {
		p.Printf("thread %s is cancelled after %d steps\n", line.Thread, len(line.Steps))
	})
}

// ResumeOptions are what `uwf thread resume` works with.
type ResumeOptions struct {
	Factory *app.Factory
	Thread  string
	Answer  string
}

// NewCmdResume makes `uwf thread resume`. A runF that is not nil replaces the run.
func NewCmdResume(f *app.Factory, runF func(context.Context, *ResumeOptions) error) *cobra.Command {
	o := &ResumeOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "resume THREAD",
		Short: "Answer a thread that waits for a person",
		Long: `Let a suspended thread go on. The role that waits is told what it asked and what you
answer; without an answer it just goes on. Nothing runs yet: step it.`,
		Example: `  uwf thread resume 01JY0000000000000000000000 -p "Use the second variant"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Thread = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return resumeRun(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.Answer, "prompt", "p", "", "the answer: a `TEXT`, @FILE, or - for stdin")
	return cmd
}

func resumeRun(ctx context.Context, o *ResumeOptions) error {
	id, err := parseID(o.Thread)
	if err != nil {
		return err
	}
	answer, err := readPrompt(o.Factory, o.Answer)
	if err != nil {
		return err
	}
	w, err := worker.New(ctx, o.Factory, worker.Options{})
	if err != nil {
		return err
	}
	if err := w.Resume(ctx, id, answer); err != nil {
		return err
	}
	return o.Factory.Printer().Print(map[string]any{"thread": id, "status": "active"}, func(p *output.Writer) {
		p.Printf("thread %s goes on; step it:  uwf thread step %s\n", id, id)
	})
}

package thread

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
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
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:     "cancel THREAD",
		Aliases: []string{"kill"},
		Short:   "End a thread for good",
		Long: `End a thread for good: it never runs again. A job that is working on it is stopped at
its next renewal, and what it has is kept as an attempt. Cancelling twice is no error.`,
		Example: `  uwf thread cancel 01JY0000000000000000000000 -m "solved by hand"
  uwf thread kill @latest`,
		RunE: app.Run(o, runF, cancelRun, func(args []string) { o.Thread = args[0] }),
	})
	reasonFlags(cmd, &o.Reason)
	return cmd
}

// reasonFlags adds the flag that says why.
func reasonFlags(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVarP(reason, "message", "m", "", "why (`TEXT`)")
	cmd.Flags().StringVar(reason, "reason", "", "the same as --message (`TEXT`)")
}

// cancelled is the JSON of `uwf thread cancel`: the thread's line in the history, and the
// two words that the predecessor had for it.
type cancelled struct {
	gitcas.Ended
	Cancelled bool `json:"cancelled"`
	Archived  bool `json:"archived"`
}

func cancelRun(ctx context.Context, o *CancelOptions) error {
	w, id, err := openWorker(ctx, o.Factory, o.Thread)
	if err != nil {
		return err
	}
	line, err := w.Cancel(ctx, id, o.Reason)
	if err != nil {
		return err
	}
	out := cancelled{Ended: line, Cancelled: line.Reason == gitcas.ReasonCancelled, Archived: true}
	return o.Factory.Printer().Print(out, func(p *output.Writer) {
		p.Printf("thread %s is cancelled after %d steps\n", line.Thread, len(line.Steps))
	})
}

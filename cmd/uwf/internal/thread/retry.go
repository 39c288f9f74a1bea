package thread

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
)

// RetryOptions are what `uwf thread retry` works with.
type RetryOptions struct {
	Factory *app.Factory
	Thread  string
}

// NewCmdRetry makes `uwf thread retry`. A runF that is not nil replaces the run.
func NewCmdRetry(f *app.Factory, runF func(context.Context, *RetryOptions) error) *cobra.Command {
	o := &RetryOptions{Factory: f}
	return &cobra.Command{
		Use:   "retry THREAD",
		Short: "Let the step that failed be tried again",
		Long: `Let the step that failed be tried again, also where three failed attempts have
suspended the thread. The attempts stay linked and are counted in what the thread has
used. Nobody is told anything new: to tell the role something, resume with -p. Nothing
runs yet: step it.`,
		Example:           `  uwf thread retry 01JY0000000000000000000000`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteThread(f),
		RunE:              app.Run(o, runF, retryRun, func(args []string) { o.Thread = args[0] }),
	}
}

func retryRun(ctx context.Context, o *RetryOptions) error {
	w, id, err := open(ctx, o.Factory, o.Thread)
	if err != nil {
		return err
	}
	if err := w.Retry(ctx, id); err != nil {
		return err
	}
	return goesOn(ctx, o.Factory, w, id)
}

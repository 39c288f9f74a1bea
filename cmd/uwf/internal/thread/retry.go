package thread

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/gitcas"
)

// RetryOptions are what `uwf thread retry` works with.
type RetryOptions struct {
	Factory *app.Factory
	Thread  string
	// Take takes the thread from whoever holds its claim.
	Take bool
}

// NewCmdRetry makes `uwf thread retry`. A runF that is not nil replaces the run.
func NewCmdRetry(f *app.Factory, runF func(context.Context, *RetryOptions) error) *cobra.Command {
	o := &RetryOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:   "retry THREAD",
		Short: "Let the step that failed be tried again",
		Long: `Let the step that failed be tried again, also where three failed attempts have
suspended the thread. The attempts stay linked and are counted in what the thread has
used. Nobody is told anything new: to tell the role something, resume with -p. Nothing
runs yet: step it.

A job that died keeps its thread until its claim is over: see uwf ps. Who knows that it is
dead takes the thread with --take, which counts as an attempt that died. A job that lives
after all is stopped, and what it has is kept.`,
		Example: "  uwf thread retry 01JY0000000000000000000000\n  uwf thread retry --take 01JY0000000000000000000000",
		RunE:    app.Run(o, runF, retryRun, func(args []string) { o.Thread = args[0] }),
	})
	cmd.Flags().BoolVar(&o.Take, "take", false, "take the thread from the job that holds it, dead or not")
	return cmd
}

func retryRun(ctx context.Context, o *RetryOptions) error {
	return releaseThread(ctx, o.Factory, o.Thread, func(w *worker.Worker, id gitcas.ThreadID) error {
		if o.Take {
			return w.Take(ctx, id)
		}
		return w.Retry(ctx, id)
	})
}

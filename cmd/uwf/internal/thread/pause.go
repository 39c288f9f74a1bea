package thread

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
)

// PauseOptions are what `uwf thread pause` works with.
type PauseOptions struct {
	Factory *app.Factory
	Thread  string
	Reason  string
}

// NewCmdPause makes `uwf thread pause`. A runF that is not nil replaces the run.
func NewCmdPause(f *app.Factory, runF func(context.Context, *PauseOptions) error) *cobra.Command {
	o := &PauseOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:        "pause THREAD",
		SuggestFor: []string{"stop", "suspend"},
		Short:      "Let a thread wait before its next step",
		Long: `Let a thread wait before its next step. A step that runs now is left alone: it is
finished and committed, and the thread waits after it. uwf thread resume lets it go
on. To stop a running step at once and for good, cancel the thread.`,
		Example: `  uwf thread pause 01JY0000000000000000000000 -m "wait for the release"`,
		RunE:    app.Run(o, runF, pauseRun, func(args []string) { o.Thread = args[0] }),
	})
	reasonFlags(cmd, &o.Reason)
	return cmd
}

func pauseRun(ctx context.Context, o *PauseOptions) error {
	w, id, err := openWorker(ctx, o.Factory, o.Thread)
	if err != nil {
		return err
	}
	if err := w.Pause(ctx, id, o.Reason); err != nil {
		return err
	}
	s, err := readStanding(ctx, o.Factory, w, id)
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(s.standing, func(p *output.Writer) {
		if s.Status == string(gitcas.StatusSuspended) {
			p.Printf("thread %s waits\n", id)
		} else {
			p.Printf("thread %s is %s and waits after this step\n", id, s.Status)
		}
		p.FaintLine("let it go on:  uwf thread resume " + string(id))
	})
}

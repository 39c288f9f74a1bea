package thread

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
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
	cmd := &cobra.Command{
		Use:        "pause THREAD",
		SuggestFor: []string{"stop", "suspend"},
		Short:      "Let a thread wait before its next step",
		Long: `Let a thread wait before its next step. A step that runs now is left alone: it is
finished and committed, and the thread waits after it. uwf thread resume lets it go
on. To stop a running step at once and for good, cancel the thread.`,
		Example:           `  uwf thread pause 01JY0000000000000000000000 -m "wait for the release"`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteThread(f),
		RunE:              app.Run(o, runF, pauseRun, func(args []string) { o.Thread = args[0] }),
	}
	reasonFlags(cmd, &o.Reason)
	return cmd
}

func pauseRun(ctx context.Context, o *PauseOptions) error {
	w, id, err := open(ctx, o.Factory, o.Thread)
	if err != nil {
		return err
	}
	if err := w.Pause(ctx, id, o.Reason); err != nil {
		return err
	}
	t, err := lookup.Find(ctx, func(context.Context) (*gitcas.Store, error) { return w.Store, nil }, string(id))
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(acted{Thread: id, Status: t.Status()}, func(p *output.Writer) {
		if t.Status() == string(gitcas.StatusSuspended) {
			p.Printf("thread %s waits\n", id)
		} else {
			p.Printf("thread %s is %s and waits after this step\n", id, t.Status())
		}
		p.Faint("let it go on:  uwf thread resume " + string(id))
		p.Println()
	})
}

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
	return goesOn(o.Factory, id)
}

// PokeOptions are what `uwf thread poke` works with.
type PokeOptions struct {
	Factory *app.Factory
	Thread  string
	Text    string
}

// NewCmdPoke makes `uwf thread poke`. A runF that is not nil replaces the run.
func NewCmdPoke(f *app.Factory, runF func(context.Context, *PokeOptions) error) *cobra.Command {
	o := &PokeOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "poke THREAD",
		Short: "Have the last step done again, with an instruction",
		Long: `Take the thread's last step back and let its role work again, told the same as before
and what you say. The old step stays readable, linked from the new one. What it did
on the work branch is undone by a new commit; people's commits stay. Nothing runs
yet: step it.`,
		Example: `  uwf thread poke 01JY0000000000000000000000 -p "Keep the old flag working"
  uwf thread poke @latest -p @review.md`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteThread(f),
		RunE:              app.Run(o, runF, pokeRun, func(args []string) { o.Thread = args[0] }),
	}
	cmd.Flags().StringVarP(&o.Text, "prompt", "p", "", "what to do differently: a `TEXT`, @FILE, or - for stdin")
	return cmd
}

func pokeRun(ctx context.Context, o *PokeOptions) error {
	if _, err := lookup.Parse(o.Thread); err != nil {
		return err
	}
	text, err := readPrompt(o.Factory, o.Text)
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return app.Usagef("say with -p what is to be done differently; to try a failed step again as it was: uwf thread retry %s", o.Thread)
	}
	w, id, err := open(ctx, o.Factory, o.Thread)
	if err != nil {
		return err
	}
	if err := w.Poke(ctx, id, text); err != nil {
		return err
	}
	return goesOn(o.Factory, id)
}

// goesOn prints that a thread can be stepped again.
func goesOn(f *app.Factory, id gitcas.ThreadID) error {
	return f.Printer().Print(acted{Thread: id, Status: string(gitcas.StatusActive)}, func(p *output.Writer) {
		p.Printf("thread %s goes on; step it:  uwf thread step %s\n", id, id)
	})
}

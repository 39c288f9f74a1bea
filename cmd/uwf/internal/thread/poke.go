package thread

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/gitcas"
)

// PokeOptions are what `uwf thread poke` works with.
type PokeOptions struct {
	Factory *app.Factory
	Thread  string
	Text    string
}

// NewCmdPoke makes `uwf thread poke`. A runF that is not nil replaces the run.
func NewCmdPoke(f *app.Factory, runF func(context.Context, *PokeOptions) error) *cobra.Command {
	o := &PokeOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:   "poke THREAD",
		Short: "Have the last step done again, with an instruction",
		Long: `Take the thread's last step back and let its role work again, told the same as before
and what you say. The old step stays readable, linked from the new one. What it did
on the work branch is undone by a new commit; people's commits stay. Nothing runs
yet: step it.`,
		Example: `  uwf thread poke 01JY0000000000000000000000 -p "Keep the old flag working"
  uwf thread poke @latest -p @review.md`,
		RunE: app.Run(o, runF, pokeRun, func(args []string) { o.Thread = args[0] }),
	})
	cmd.Flags().StringVarP(&o.Text, "prompt", "p", "", "what to do differently: a `TEXT`, @FILE, or - for stdin")
	return cmd
}

func pokeRun(ctx context.Context, o *PokeOptions) error {
	return releaseThread(ctx, o.Factory, o.Thread, func(w *worker.Worker, id gitcas.ThreadID) error {
		text, err := readPrompt(o.Factory, o.Text)
		if err != nil {
			return err
		}
		if strings.TrimSpace(text) == "" {
			return app.Usagef("say with -p what is to be done differently, in quotes, or from a @FILE")
		}
		return w.Poke(ctx, id, text)
	})
}

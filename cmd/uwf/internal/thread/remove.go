package thread

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/person"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/lists"
)

// RemoveOptions are what `uwf thread rm` works with.
type RemoveOptions struct {
	Factory *app.Factory
	Threads []string
	Yes     bool
}

// NewCmdRemove makes `uwf thread rm`. A runF that is not nil replaces the run.
func NewCmdRemove(f *app.Factory, runF func(context.Context, *RemoveOptions) error) *cobra.Command {
	o := &RemoveOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "rm THREAD...",
		Aliases: []string{"remove"},
		Short:   "Take ended and cancelled threads off all lists",
		Long: `Take threads that have ended or were cancelled off all lists, and delete their
attempts and their work branches. A branch that somebody else needs stays: one with a
pull request, with commits of people, or that another thread builds on.

The history of the state branch still has them; to get rid of a secret, use uwf purge.
On a terminal you are asked first; elsewhere say --yes.`,
		Example:           `  uwf thread rm 01JY0000000000000000000000 --yes`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              app.Run(o, runF, removeRun, func(args []string) { o.Threads = args }),
	}
	cmd.Flags().BoolVarP(&o.Yes, "yes", "y", false, "remove them without asking")
	return cmd
}

// removed is a thread in the JSON of `uwf thread rm`.
type removed struct {
	Thread gitcas.ThreadID `json:"thread"`
	Status string          `json:"status"`
}

func removeRun(ctx context.Context, o *RemoveOptions) error {
	f := o.Factory
	var ids []gitcas.ThreadID
	for _, arg := range o.Threads {
		// All are found before the first one goes: a mistake removes nothing.
		t, err := lookup.Find(ctx, f.Store, arg)
		if err != nil {
			return err
		}
		if t.Ended == nil {
			return app.Usagef("thread %s is %s: only ended and cancelled threads are removed; cancel it first: uwf thread cancel %s", t.ID, t.Status(), t.ID)
		}
		if !slices.Contains(ids, t.ID) {
			ids = append(ids, t.ID)
		}
	}
	w, err := person.NewWorker(ctx, f, worker.Options{})
	if err != nil {
		return err
	}
	if err := f.Confirm(askRemove(ids), o.Yes); err != nil {
		return err
	}
	done := []removed{}
	for _, id := range ids {
		if err = w.Remove(ctx, id); err != nil {
			break
		}
		done = append(done, removed{Thread: id, Status: gitcas.ReasonRemoved})
	}
	return cmp.Or(err, f.Printer().Print(done, func(p *output.Writer) {
		for _, d := range done {
			p.Printf("thread %s is removed\n", d.Thread)
		}
	}))
}

func askRemove(ids []gitcas.ThreadID) string {
	if len(ids) == 1 {
		return fmt.Sprintf("Remove thread %s?", ids[0])
	}
	names := lists.Map(ids, func(id gitcas.ThreadID) string { return string(id) })
	return fmt.Sprintf("Remove these %d threads: %s?", len(ids), strings.Join(names, ", "))
}

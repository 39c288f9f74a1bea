// Package fsck is `uwf fsck`: checking the whole store. It never repairs anything.
package fsck

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas/view"
)

// Options are what `uwf fsck` works with.
type Options struct {
	Factory *app.Factory
	History bool
}

// NewCmdFsck makes `uwf fsck`. A runF that is not nil replaces the run.
func NewCmdFsck(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "Check the store: hashes, schemas, references and chains",
		Long: `Check every file of the state branch: its name, its hash, its schema, what it refers
to, and that each thread is one chain. With --history, check every commit too: that
nothing was rewritten or removed without a line in the history. Nothing is changed.

Exit code 0: sound. 5: something is wrong, or the store can't be read.`,
		Example: "  uwf fsck\n  uwf fsck --history",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, fsckRun, func([]string) {}),
	}
	cmd.Flags().BoolVar(&o.History, "history", false, "walk all commits and the ended threads too")
	return cmd
}

// result is what is printed.
type result struct {
	OK bool `json:"ok"`
	view.Report
}

func fsckRun(ctx context.Context, o *Options) error {
	store, err := o.Factory.Store(ctx)
	if err != nil {
		return err
	}
	report, err := store.Fsck(ctx, o.History)
	if err != nil {
		return err
	}
	r := result{OK: report.OK(), Report: report}
	if r.OK {
		r.Problems = []view.Problem{} // an empty list, not null
	}
	return app.ExitAfter(o.Factory.Printer().Print(r, r.writeText), r.OK, app.CodeDamaged)
}

func (r result) writeText(w *output.Writer) {
	for _, p := range slices.Concat(r.Problems, r.Unread) {
		w.Bold(p.Path)
		w.Printf(": %s\n", p.Why)
	}
	if r.OK {
		w.Good("sound")
	} else {
		w.Bad("damaged")
		w.Printf(", problems: %d", len(r.Problems))
	}
	if len(r.Unread) > 0 {
		w.Printf("; not checked, as the server doesn't give it: %d", len(r.Unread))
	}
	w.Printf("; checked nodes: %d, live threads: %d, ended: %d", r.Nodes, r.Threads, r.Ended)
	if r.Commits > 0 {
		w.Printf(", commits: %d", r.Commits)
	}
	w.Printf("\n")
}

// Package fsck is `uwf fsck`: checking the whole store. It never repairs anything.
package fsck

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas"
)

// Options are what `uwf fsck` works with.
type Options struct {
	Printer output.Printer
	Store   func(context.Context) (*gitcas.Store, error)
	History bool
}

// NewCmdFsck makes `uwf fsck`. A runF that is not nil replaces the run.
func NewCmdFsck(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Store: f.Store}
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "Check the store: hashes, schemas, references and chains",
		Long: `Check every file of the state branch: its name, its hash, its schema, what it refers
to, and that each thread is one chain. With --history, check every commit too: that
nothing was rewritten or removed without a line in the history. Nothing is changed.

Exit code 0: sound. 5: something is wrong, or the store can't be read.`,
		Example: "  uwf fsck\n  uwf fsck --history",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Printer = f.Printer()
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return fsckRun(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.History, "history", false, "walk all commits and the ended threads too")
	return cmd
}

// result is what is printed.
type result struct {
	OK       bool      `json:"ok"`
	Problems []problem `json:"problems"`
	Nodes    int       `json:"nodes"`
	Threads  int       `json:"threads"`
	Ended    int       `json:"ended"`
	Commits  int       `json:"commits,omitempty"`
}

type problem struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

func fsckRun(ctx context.Context, o *Options) error {
	store, err := o.Store(ctx)
	if err != nil {
		return err
	}
	report, err := store.Fsck(ctx, o.History)
	if err != nil {
		return err
	}
	r := result{
		OK: report.OK(), Problems: []problem{},
		Nodes: report.Nodes, Threads: report.Threads, Ended: report.Ended, Commits: report.Commits,
	}
	for _, p := range report.Problems {
		r.Problems = append(r.Problems, problem{p.Path, p.Why})
	}
	if err := o.Printer.Print(r, r.writeText); err != nil {
		return err
	}
	if !r.OK {
		return &app.Exit{Code: app.CodeDamaged}
	}
	return nil
}

func (r result) writeText(w *output.Writer) {
	for _, p := range r.Problems {
		w.Bold(p.Path)
		w.Printf(": %s\n", p.Why)
	}
	if r.OK {
		w.Good("sound")
	} else {
		w.Bad("damaged")
		w.Printf(", problems: %d", len(r.Problems))
	}
	w.Printf("; checked nodes: %d, live threads: %d, ended: %d", r.Nodes, r.Threads, r.Ended)
	if r.Commits > 0 {
		w.Printf(", commits: %d", r.Commits)
	}
	w.Printf("\n")
}

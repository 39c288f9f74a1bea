package log

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/debuglog"
)

// CleanOptions are what `uwf log clean` works with.
type CleanOptions struct {
	Factory *app.Factory
	Before  string
}

// NewCmdClean makes `uwf log clean`. A runF that is not nil replaces the run.
func NewCmdClean(f *app.Factory, runF func(context.Context, *CleanOptions) error) *cobra.Command {
	o := &CleanOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "clean --before TIME",
		Short: "Delete old files of the debug log",
		Long: `Delete the files of the debug log that are older than the day of a time. Without it, files
go after 30 days, and earlier when there are more than 128 MiB of them.`,
		Example: "  uwf log clean --before 7d\n  uwf log clean --before 2026-06-04",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, cleanRun, func([]string) {}),
	}
	cmd.Flags().StringVar(&o.Before, "before", "", "delete files of days before this `TIME`: 2026-06-04 (local time; a file is one day in UTC), or 7d ago")
	return cmd
}

// cleaned is the result of `uwf log clean`.
type cleaned struct {
	Dir     string   `json:"dir"`
	Deleted int      `json:"deleted"`
	Files   []string `json:"files"`
	Bytes   int64    `json:"bytes"`
}

func cleanRun(_ context.Context, o *CleanOptions) error {
	if o.Before == "" {
		return app.Usagef("say what goes: --before 7d, or --before 2026-06-04")
	}
	before, err := app.ParseTime("--before", o.Before, app.LocalNow(o.Factory))
	if err != nil {
		return err
	}
	out := cleaned{Files: []string{}}
	if out.Dir, err = o.Factory.LogDir(); err != nil {
		return err
	}
	gone, err := debuglog.Clean(out.Dir, before.UTC().Format(time.DateOnly))
	out.Deleted = len(gone)
	for _, x := range gone {
		out.Files = append(out.Files, x.Name)
		out.Bytes += x.Size
	}
	if err != nil {
		return fmt.Errorf("clean the debug log: %w", err)
	}
	return o.Factory.Printer().Print(out, func(w *output.Writer) {
		w.Printf("deleted %d files, %d bytes\n", out.Deleted, out.Bytes)
	})
}

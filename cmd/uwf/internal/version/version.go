// Package version is `uwf version`: which uwf this is, and how it was built. It opens
// nothing.
package version

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/internal/program"
)

// Options are what `uwf version` works with.
type Options struct{ Factory *app.Factory }

// NewCmdVersion makes `uwf version`. A runF that is not nil replaces the run.
func NewCmdVersion(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	return &cobra.Command{
		Use:   "version",
		Short: "Say which uwf this is, and how it was built",
		Long: `Say which uwf this is: its version, the commit that it was built from, the version of
Go that built it, and the platform that it was built for. A report of a bug needs these.`,
		Example: "  uwf version\n  uwf version --jq .commit",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, versionRun, func([]string) {}),
	}
}

func versionRun(_ context.Context, o *Options) error {
	b := program.ReadBuild(o.Factory.Release, o.Factory.Commit)
	return o.Factory.Printer().Print(b, func(w *output.Writer) {
		w.Printf("uwf version %s\n", b.Version)
		if b.Commit != "" {
			w.Printf("commit %s", b.Commit)
			if b.Modified {
				w.Printf(", with changes")
			}
			w.Println()
		}
		w.Printf("%s %s\n", b.Go, b.Platform)
	})
}

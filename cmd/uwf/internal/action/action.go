// Package action is `uwf action`: what a CI job of uwf runs. It reads the inputs and
// the forge's environment, takes definitions and settings from the default branch,
// puts an engine, a forge and a runner together, and tells the job what came out. It
// decides nothing about threads: that is engine/runner's.
package action

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
)

// Options are what `uwf action` works with.
type Options struct{ Factory *app.Factory }

// NewCmdAction makes `uwf action`. A runF that is not nil replaces the run.
func NewCmdAction(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	return &cobra.Command{
		Use:     "action",
		Short:   "Do what a CI job of uwf does: one event, one step, its effects",
		Long:    "Do what a CI job of uwf does: one event, one step, its effects.",
		Example: "  uwf action",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, actionRun, func([]string) {}),
	}
}

func actionRun(context.Context, *Options) error {
	return app.Usagef("not in a job: GITHUB_REPOSITORY is not set")
}

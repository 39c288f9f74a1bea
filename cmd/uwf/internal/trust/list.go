package trust

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/internal/text"
)

// ListOptions are what `uwf trust list` works with.
type ListOptions struct{ Factory *app.Factory }

// NewCmdList makes `uwf trust list`. A runF that is not nil replaces the run.
func NewCmdList(f *app.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	o := &ListOptions{f}
	return &cobra.Command{
		Use:     "list",
		Short:   "List all consents",
		Long:    "List all consents of this user: to which repository, when, and to what.",
		Example: "  uwf trust list\n  uwf trust list --jq '.[].repository'",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, listRun, func([]string) {}),
	}
}

func listRun(_ context.Context, o *ListOptions) error {
	store, err := app.Consents(o.Factory)
	if err != nil {
		return err
	}
	all, damaged := store.List()
	err = o.Factory.Printer().Print(all, func(w *output.Writer) {
		if len(all) == 0 {
			w.Println("no repository was given a consent")
		}
		for _, c := range all {
			w.Bold(c.Repository)
			w.Printf("  %s  %s\n", text.TimeIn(c.At, w.Zone), c.SHA256)
			w.FaintLine(strings.Join(consent.Diff(c.Demands, c.Demands), "\n"))
		}
	})
	return errors.Join(err, damaged)
}

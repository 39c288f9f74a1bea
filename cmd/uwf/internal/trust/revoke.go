package trust

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/internal/text"
)

// RevokeOptions are what `uwf trust revoke` works with.
type RevokeOptions struct {
	Factory *app.Factory
	// Folder of the repository; empty: the one at hand.
	Folder string
	All    bool
}

// NewCmdRevoke makes `uwf trust revoke`. A runF that is not nil replaces the run.
func NewCmdRevoke(f *app.Factory, runF func(context.Context, *RevokeOptions) error) *cobra.Command {
	o := &RevokeOptions{Factory: f}
	cmd := &cobra.Command{
		Use:     "revoke [FOLDER]",
		Short:   "Take consents back",
		Long:    "Take all consents to a repository back: to the one that FOLDER is in, as uwf trust list names it,\nor the one at hand. It is asked again before anything of it runs.",
		Example: "  uwf trust revoke\n  uwf trust revoke --all",
		Args:    cobra.MaximumNArgs(1),
		RunE: app.Run(o, runF, revokeRun, func(args []string) {
			if len(args) > 0 {
				o.Folder = args[0]
			}
		}),
	}
	cmd.Flags().BoolVar(&o.All, "all", false, "take back the consents to all repositories")
	return cmd
}

func revokeRun(_ context.Context, o *RevokeOptions) error {
	store, err := app.Consents(o.Factory)
	if err != nil {
		return err
	}
	folder := o.Factory.RepoRoot()
	switch {
	case o.All && o.Folder != "":
		return app.Usagef("--all takes back the consents to every repository: leave %s out", text.ShellWord(o.Folder))
	case o.Folder != "":
		folder = o.Factory.Path(o.Folder)
	case folder == "" && !o.All:
		return app.Usagef("%s is in no git repository: name a folder of uwf trust list, or say --all", o.Factory.Dir)
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil { // it may be gone
		folder = real
	}
	all, damaged := store.List()
	revoked := []consent.Consent{}
	for _, c := range all {
		if o.All || c.Repository == folder {
			if err := store.Revoke(c); err != nil {
				return err
			}
			revoked = append(revoked, c)
		}
	}
	if len(revoked) == 0 && damaged != nil {
		return damaged
	}
	if len(revoked) == 0 && o.Folder != "" {
		return app.Usagef("there is no consent to %s; uwf trust list names all there are", folder)
	}
	return o.Factory.Printer().Print(revoked, func(w *output.Writer) {
		if len(revoked) == 0 {
			w.Println("there was no consent to take back")
			return
		}
		w.Printf("revoked %s\n", text.Plural(len(revoked), "consent"))
	})
}

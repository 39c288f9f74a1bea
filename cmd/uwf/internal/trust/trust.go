// Package trust is `uwf trust`: what this user has allowed repositories to do on this
// machine, and what the one at hand wants.
package trust

import (
	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

// NewCmdTrust makes `uwf trust`.
func NewCmdTrust(f *app.Factory) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "trust",
		Short: "Show and revoke what repositories may do on this machine",
		Long: `Show and revoke what repositories may do on this machine.

A repository's files may want programs run as agents, a shell for them, the open network,
places of this machine, or threads kept in another repository than this one and its remotes.
On a laptop none of that counts before you consent: uwf run, uwf thread start and uwf thread
step show it and ask, or take the SHA-256 of it with --trust. A consent is for
one repository, by its folder, and for exactly what was shown; what changes is asked again.
It lies below the storage root (~/.uwf/trust), never in the repository. In jobs of uwf
action the default branch is trusted, and nothing else is.`,
		Example: "  uwf trust show\n  uwf trust list\n  uwf trust revoke",
	}, NewCmdList(f, nil), NewCmdShow(f, nil), NewCmdRevoke(f, nil))
}

package app

import (
	"github.com/spf13/cobra"
)

// Group makes a command out of others: alone it shows its help, with a word that
// is none of its commands it fails and names the near ones. Cobra alone would show
// the help and succeed.
func Group(cmd *cobra.Command, sub ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(sub...)
	cmd.Args = cobra.ArbitraryArgs // so that a wrong word comes here, not to cobra
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return &UnknownError{What: "command of " + cmd.CommandPath(), ID: args[0], Near: cmd.SuggestionsFor(args[0]), See: cmd.CommandPath() + " --help"}
	}
	return cmd
}

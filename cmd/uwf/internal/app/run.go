package app

import (
	"context"

	"github.com/spf13/cobra"
)

// Run makes what a command does of its options: set takes over the arguments,
// then the command's own function gets the options, or the one that a test put in
// its place.
func Run[O any](o *O, injected, own func(context.Context, *O) error, set func(args []string)) func(*cobra.Command, []string) error {
	if injected != nil {
		own = injected
	}
	return func(cmd *cobra.Command, args []string) error {
		set(args)
		return own(cmd.Context(), o)
	}
}

package agent

import (
	"os"
	"slices"

	jq "github.com/itchyny/gojq/cli"
	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

func newJQCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "jq [OPTIONS] FILTER [FILE…]",
		Short: "The jq language for scripts on machines without jq",
		Long: `The jq language for scripts on machines without jq: a filter over JSON from files or
stdin. It is gojq, which takes jq's options (-r, -j, -c, -n, -R, -s, -e, --arg, --argjson,
--rawfile, --slurpfile, …) and exits as jq does. Filters don't see the environment.`,
		Example: `  uwf agent context | uwf agent jq -r .model.name
  uwf agent jq -n --arg q "What is 2+2?" '{messages: [{role: "user", content: $q}]}'
  uwf agent jq -r '.choices[0].message.content' answer.json`,
		DisableFlagParsing: true, // --arg takes two words
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "--help" }) {
				return cmd.Help()
			}

			// The library takes all from the process, which is over after it.
			os.Args = slices.Concat([]string{"uwf agent jq"}, args)
			os.Clearenv()
			if code := jq.Run(); code != 0 {
				return &app.Exit{Code: code}
			}
			return nil
		},
	}
}

package agent

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/cli"
)

// newCLICmd returns the command of an agent that is somebody else's command line.
func newCLICmd(o Options, c cli.CLI) *cobra.Command {
	return &cobra.Command{
		Use:   c.Name + " THREAD-ID ROLE",
		Short: fmt.Sprintf("%s (%s), with the gateway as its model", c.Title, c.Program),
		Long: fmt.Sprintf(`%s (%s), with the gateway as its model.

It needs no login and no key: it asks the configured model through the gateway, which
counts and bounds what it costs. It gets a HOME of its own, and none of the settings
for such tools that a workspace holds take effect. It runs commands by itself.

Tried with versions %s to %s: %s`, c.Title, c.Program, c.Versions.Min, c.Versions.Tested, c.Install()),
		Example: fmt.Sprintf(`  uwf config set agentOverrides.solve-issue.developer %[1]s`, c.Name),
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Args = args
			return agents.RunAdapter(cmd.Context(), &cli.Agent{CLI: c}, o.Process)
		},
	}
}

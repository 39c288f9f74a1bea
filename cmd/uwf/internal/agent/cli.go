package agent

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/acp"
	"github.com/united-workforce/uwf/agents/cli"
)

// newCLICmd returns the command of an agent that is somebody else's command line.
func newCLICmd(o Options, c cli.CLI) *cobra.Command {
	s := acp.Server{Name: c.Name, Title: c.Title, Program: c.Program, Versions: c.Versions, Install: c.Install()}
	return newForeignCmd(s, "with the gateway as its model", func(cmd *cobra.Command, args []string) error {
		o.Args = args
		return agents.RunAdapter(cmd.Context(), &cli.Agent{CLI: c}, o.Process)
	})
}

// newForeignCmd returns the command of an agent that runs a program of somebody else's; by is how.
func newForeignCmd(s acp.Server, by string, run func(*cobra.Command, []string) error) *cobra.Command {
	tried := "Untested: nobody has run it with uwf; what it is given is from its documentation."
	if !s.Untested() {
		tried = fmt.Sprintf("Tried with version %s: %s", s.Versions, s.Install)
	}
	model := "It needs no login and no key: it asks the configured model through the gateway, which\ncounts and bounds what it costs."
	if s.OwnServers {
		model = "It talks to the servers of its makers alone, so that it needs login: own, which see in\ndocs/acp.md: uwf neither counts nor bounds what it costs."
	}
	short := fmt.Sprintf("%s (%s), %s", s.Title, agents.CommandLine(append([]string{s.Program}, s.Args...)...), by)
	return &cobra.Command{
		Use:   s.Name + " THREAD-ID ROLE",
		Short: short,
		Long: short + ".\n\n" + model + ` It gets a HOME of its own, and none of the settings for such
tools that a workspace holds take effect. It runs commands by itself.

` + tried,
		Example: "  uwf config set agentOverrides.solve-issue.developer " + s.Name,
		Args:    cobra.ExactArgs(2),
		RunE:    run,
	}
}

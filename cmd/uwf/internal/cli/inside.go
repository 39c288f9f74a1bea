package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

// mayRunInAgents says whether an agent may run a command: it only looks, or writes but files of
// the workspace. Those below uwf agent are the agents and their protocol. A command that is not
// named here is refused inside of agents.
func mayRunInAgents(cmd *cobra.Command) bool {
	of := map[string]string{
		"uwf":          "doctor fsck import inbox log ps schema version help",
		"uwf cas":      "get verify",
		"uwf config":   "get path schema show validate",
		"uwf step":     "list read show",
		"uwf thread":   "diff export list read show step-details steps wait watch",
		"uwf trust":    "list show",
		"uwf workflow": "graph history list new schema show test validate",
	}
	group := cmd.Parent().CommandPath()
	return cmd.HasSubCommands() || group == "uwf agent" || group == "uwf completion" ||
		slices.Contains(strings.Fields(of[group]), cmd.Name())
}

// refuseInAgents has all other commands say, inside of an agent, that it can't be.
func refuseInAgents(f *app.Factory, group *cobra.Command) {
	for _, cmd := range group.Commands() {
		refuseInAgents(f, cmd)
		run := cmd.RunE
		if run == nil || mayRunInAgents(cmd) {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := f.RefuseInAgent(cmd.CommandPath()); err != nil {
				return err
			}
			return run(cmd, args)
		}
	}
}

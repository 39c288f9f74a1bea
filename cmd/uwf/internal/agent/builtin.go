package agent

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/builtin"
)

func newBuiltinCmd(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "builtin THREAD-ID ROLE",
		Short: "Chat with tools, over the gateway's OpenAI-compatible URL",
		Long: `Chat with tools, over the gateway's OpenAI-compatible URL.

Tools: read_file, write_file, edit_file, list_dir, glob, grep, and run_command
where ` + agents.EnvAllowShell + `=1 or the configuration's allowShell permits it. Anthropic's models are
reached at their OpenAI-compatible address.`,
		Example: `  uwf thread step 01JY0000000000000000000000 --agent builtin
  uwf agent builtin 01JY0000000000000000000000 developer`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a := &builtin.Agent{Transport: o.Transport}
			defer func() { err = errors.Join(err, a.Close()) }()
			return agents.Run(cmd.Context(), a, o.newProcess(args))
		},
	}
}

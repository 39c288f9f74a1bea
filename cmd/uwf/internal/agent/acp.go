package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/acp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// ACPName is the agent that runs any server of the Agent Client Protocol.
const ACPName = "acp"

// acpNames are the agents that speak the Agent Client Protocol.
func acpNames() []string {
	return append([]string{ACPName}, lists.Map(acp.All(), func(s acp.Server) string { return s.Name })...)
}

// foreignServer says which program such an agent runs, by its name and command line.
func foreignServer(name string, argv []string) (agents.Foreign, bool) {
	if name == ACPName {
		at := slices.Index(argv, "--")
		if at < 0 || at+1 == len(argv) {
			return agents.Foreign{}, false
		}
		return agents.Foreign{Program: argv[at+1]}, true
	}
	s, ok := acp.Find(name)
	if !ok {
		return agents.Foreign{}, false
	}
	return s.Foreign(), true
}

// newACPCmds returns the commands of the agents that speak the Agent Client Protocol.
func newACPCmds(o Options) []*cobra.Command {
	cmds := []*cobra.Command{newACPCmd(o)}
	for _, s := range acp.All() {
		cmds = append(cmds, newForeignCmd(s, "over the Agent Client Protocol", func(cmd *cobra.Command, args []string) error { return runServer(cmd, o, s, args) }))
	}
	return cmds
}

// runServer does a step with a server.
func runServer(cmd *cobra.Command, o Options, s acp.Server, args []string) (err error) {
	a := &acp.Agent{Server: s}
	defer func() { err = errors.Join(err, a.Close()) }()
	o.Args = args
	return agents.RunAdapter(cmd.Context(), a, o.Process)
}

func newACPCmd(o Options) *cobra.Command {
	server := acp.Server{Name: ACPName}
	var meta, permissions string
	cmd := &cobra.Command{
		Use:   "acp [FLAGS] -- PROGRAM [ARGS] THREAD-ID ROLE",
		Short: "Any program that speaks the Agent Client Protocol",
		Long: `Any program that speaks the Agent Client Protocol, over its stdin and stdout.

PROGRAM is on PATH, or relative to where uwf was called. It gets a HOME of its own, the
gateway's address and key in the variables that clients of OpenAI and Anthropic read, and
what --env sets, in which $UWF_GATEWAY_URL, $UWF_GATEWAY_KEY and $UWF_MODEL are filled in.
What it asks permission for is allowed: the sandbox bounds it, as every agent.

Its answer is what it says after its last tool call. Replays are not promised: many such
programs ask their model for titles and suggestions besides, which is counted, too.`,
		Example: `  uwf config set agents.qwen.command 'uwf agent acp --mode yolo -- qwen --acp --auth-type openai'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if at := cmd.ArgsLenAtDash(); at != 0 || len(args) < 3 {
				return fmt.Errorf("uwf agent acp [FLAGS] -- PROGRAM [ARGS] THREAD-ID ROLE: the program stands after --; got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var object map[string]any
			if meta != "" && text.DecodeJSON([]byte(meta), &object) != nil {
				return fmt.Errorf("--meta %s: it is no JSON object", text.OneLine(meta))
			}
			server.Policy = acp.Policy(permissions)
			if server.Policy != acp.AllowTools && server.Policy != acp.RejectTools {
				return fmt.Errorf("--permissions %s: it is %s or %s", text.OneLine(permissions), acp.AllowTools, acp.RejectTools)
			}
			n := len(args) - 2
			server.Meta, server.Program, server.Args = json.RawMessage(meta), args[0], args[1:n]
			return runServer(cmd, o, server, args[n:])
		},
	}
	cmd.Flags().StringVar(&server.Mode, "mode", "", "set the session to this `MODE`, as the program names it")
	cmd.Flags().StringVar(&meta, "meta", "", "send this `JSON` object as _meta of session/new")
	cmd.Flags().StringArrayVar(&server.Env, "env", nil, "set `NAME=VALUE` for the program")
	cmd.Flags().StringVar(&permissions, "permissions", string(acp.AllowTools), "answer what the program asks permission for by this `POLICY`: allow or reject")
	return cmd
}

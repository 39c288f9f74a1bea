// Package agent is `uwf agent`: the agents that are part of this binary, and the
// two commands that agents in other languages need. Each runs as a child of a
// step, with UWF_CONTEXT and UWF_STAGE set. It never touches a store.
package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/acp"
	"github.com/united-workforce/uwf/agents/builtin"
	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/agents/mock"
	"github.com/united-workforce/uwf/agents/program"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/internal/lists"
)

// Options are what the commands need of their process, whose arguments each has of its own.
type Options struct {
	agents.Process
	Stdin io.Reader
}

// Names are the agents of this binary, for agents.Options.Own.
func Names() []string {
	programs := lists.Map(cli.All(), func(c cli.CLI) string { return c.Name })
	return slices.Concat([]string{builtin.Name, mock.Name}, programs, acpNames())
}

// Foreign says which of them run a program of somebody else's, for agents.Options.Foreign.
func Foreign(name string, argv []string) (agents.Foreign, bool) {
	c, ok := cli.Find(name)
	if !ok {
		return foreignServer(name, argv)
	}
	return c.Foreign(), true
}

// Facts are what is known of an agent of this binary.
type Facts struct {
	Title string // as people know it
	// Versions of the program of somebody else's that were tried; none: nobody has tried it.
	Versions program.Range
	// Wires are the APIs in which it asks a model, the best first; none: it asks none, or in any.
	Wires []string
	// Asks: it asks a model in each run.
	Asks bool
	// OwnServers: it asks its makers' servers alone, with a login of its own.
	OwnServers bool
}

// FindFacts finds what is known of an agent by its name.
func FindFacts(name string) (Facts, bool) {
	switch name {
	case builtin.Name:
		return Facts{Title: "uwf's own agent", Wires: []string{"messages", "chat", "responses"}, Asks: true}, true
	case mock.Name:
		return Facts{Title: "answers from a script"}, true
	}
	if c, ok := cli.Find(name); ok {
		return Facts{Title: c.Title, Versions: c.Versions, Wires: c.Wires, Asks: true}, true
	}
	if name == ACPName {
		return Facts{Title: "any program that speaks the Agent Client Protocol", Asks: true}, true
	}
	s, ok := acp.Find(name)
	return Facts{Title: s.Title, Versions: s.Versions, Wires: s.Wires, Asks: true, OwnServers: s.OwnServers}, ok
}

// NewCmd returns `uwf agent`, with more commands that need what these don't. The context of a
// command ends its agent. An error with a method ExitCode() int says which code to exit with; every other is 1.
func NewCmd(o Options, more ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Agents of this binary, and tools for agents in any language",
		Long: `Agents of this binary, and tools for agents in any language.

uwf starts an agent as: COMMAND [ARGS] THREAD-ID ROLE, in the workspace, with
UWF_CONTEXT (a folder with the task) and UWF_STAGE (a folder for new nodes) set.
The last line that the agent prints is the handle of the step it staged. In any
language, the whole protocol is:

  uwf agent context --prompt      what to do
  uwf agent commit answer.md      check the answer, stage the step, print the handle

These run inside a step, as children of the agent; outside they say so. list and check are
for people, before there is one. The repository's examples/agents has whole agents in
shell and Python, and the protocol on one page.`,
		Example: `  uwf agent list
  uwf agent check
  uwf agent context --prompt
  uwf agent context --field statuses
  uwf agent commit answer.md
  uwf thread step 01JY0000000000000000000000 --agent ./agent.sh`,
	}
	app.Group(cmd, append(more, newBuiltinCmd(o), newMockCmd(o), newContextCmd(o), newStageCmd(o), newCommitCmd(o), newJQCmd())...)
	for _, c := range cli.All() {
		cmd.AddCommand(newCLICmd(o, c))
	}
	cmd.AddCommand(newACPCmds(o)...)
	return cmd
}

// readStart reads at most that many bytes of a file, or of stdin ("-"). Relative names are
// those of the folder that the command was called in.
func (o Options) readStart(name string, limit int64) ([]byte, error) {
	r := o.Stdin
	if name != "-" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(o.Dir, name)
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		r = f
	}
	return io.ReadAll(io.LimitReader(r, limit))
}

// readWhole is readStart for a file that must not be larger.
func (o Options) readWhole(name string, limit int64) ([]byte, error) {
	b, err := o.readStart(name, limit+1)
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return b, err
}

func newBuiltinCmd(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "builtin THREAD-ID ROLE",
		Short: "uwf's own agent: a model with tools, asked through the gateway",
		Long: `uwf's own agent: a model with tools, asked through the gateway.

Tools: read_file, write_file, edit_file, list_dir, glob, grep, run_command where
` + agents.EnvAllowShell + `=1 or the configuration's allowShell permits it, fetch_url where pages
may be fetched, and those of the configuration's MCP servers. It asks Anthropic's models by
messages, OpenAI's that reason by responses, and all others by chat completions.`,
		Example: `  uwf thread step 01JY0000000000000000000000 --agent builtin
  uwf agent builtin 01JY0000000000000000000000 developer`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a := &builtin.Agent{Transport: o.Transport}
			defer func() { err = errors.Join(err, a.Close()) }()
			o.Args = args
			return agents.RunAdapter(cmd.Context(), a, o.Process)
		},
	}
}

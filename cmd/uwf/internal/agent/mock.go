package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/mock"
	"github.com/united-workforce/uwf/agents/sandbox"
)

func newMockCmd(o Options) *cobra.Command {
	var inOrder string
	var schema bool
	cmd := &cobra.Command{
		Use:   "mock {{SCRIPT | --mock-data SCRIPT} THREAD-ID ROLE | --schema}",
		Short: "Play a script: outputs by step and role, with crashes, hangs and lies on demand",
		Long: `Play a script: outputs by step and role, with crashes, hangs and lies on demand.

SCRIPT is a YAML file, relative to where uwf was called. The smallest one:

  steps:
    - output: |
        ---
        $status: done
        ---
        All is well.

An entry may have conditions (role, step, visit, attempt), of several outputs the
later ones answer corrections, and it may edit files, run commands, take its time,
report usage, crash and lie: docs/mock.md and examples/mock.yaml have every key. Nothing
of it costs anything; extract: true lets a model read an output that can't be taken.
--schema prints the JSON Schema of scripts. Editors take it from a first line:

  # yaml-language-server: $schema=` + mock.SchemaID + `

Scripts of the TypeScript uwf mean what they meant: where entries have a role and an
output alone, and a role comes again, or with --mock-data, the first entry is the
thread's first step, and so on. An entry of another role fails the step.`,
		Example: `  uwf thread step 01JY0000000000000000000000 --agent "uwf agent mock script.yaml"
  uwf run solve-issue -p "Try it" --agent "uwf agent mock script.yaml"
  uwf agent mock --schema > mock.schema.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case schema:
				return cobra.NoArgs(cmd, args)
			case inOrder != "":
				return cobra.ExactArgs(2)(cmd, args)
			}
			return cobra.ExactArgs(3)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if schema {
				b, err := indentedJSON(mock.Schema())
				if err != nil {
					return err
				}
				_, err = o.Stdout.Write(b)
				return err
			}
			if inOrder != "" {
				args = append([]string{inOrder}, args...)
			}
			script, err := o.readScript(args[0])
			if err != nil {
				return err
			}
			script.InOrder = script.InOrder || inOrder != ""
			o.Args = args[1:]
			return agents.RunAdapter(cmd.Context(), &mock.Agent{Script: script, Stdout: o.Stdout}, o.Process)
		},
	}
	cmd.Flags().StringVar(&inOrder, "mock-data", "", "play this `SCRIPT` in order, an entry a step, as the TypeScript uwf did")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of scripts, for editors")
	cmd.MarkFlagsMutuallyExclusive("mock-data", "schema")
	return cmd
}

// readScript reads a script. The agent runs in the workspace, but its command
// line was written where uwf was called.
func (o Options) readScript(name string) (mock.Script, error) {
	file := name
	if base := sandbox.Getenv(o.Environ, agents.EnvCallDir); !filepath.IsAbs(file) && base != "" {
		file = filepath.Join(base, file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return mock.Script{}, fmt.Errorf("reading the mock's script: %w", err)
	}
	return mock.Parse(name, b)
}

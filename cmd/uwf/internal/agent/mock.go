package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/mock"
)

func newMockCmd(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "mock SCRIPT THREAD-ID ROLE",
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
report usage, crash and lie: see the documentation of package agents/mock. Nothing
of it costs anything; extract: true lets a model read an output that can't be taken.`,
		Example: `  uwf thread step 01JY0000000000000000000000 --agent "uwf agent mock script.yaml"
  uwf run solve-issue -p "Try it" --agent "uwf agent mock script.yaml"`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := o.readScript(args[0])
			if err != nil {
				return err
			}
			return agents.Run(cmd.Context(), &mock.Agent{Script: script, Stdout: o.Stdout}, o.process(args[1:]))
		},
	}
}

// readScript reads a script. The agent runs in the workspace, but its command
// line was written where uwf was called.
func (o Options) readScript(name string) (mock.Script, error) {
	file := name
	if base := o.getenv(agents.EnvCallDir); !filepath.IsAbs(file) && base != "" {
		file = filepath.Join(base, file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return mock.Script{}, fmt.Errorf("reading the mock's script: %w", err)
	}
	return mock.Parse(name, b)
}

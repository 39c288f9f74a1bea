package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/gitcas/node"
)

func newContextCmd(o Options) *cobra.Command {
	var prompt, schema bool
	var hash string
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Print the task, its prompt, its output schema or a node of the thread",
		Long: `Print the task of the running step as JSON: thread, role, prompt, statuses and
more. With a flag, print one part of it as it is.`,
		Args: cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) (err error) {
			c, err := agents.LoadContext(o.getenv(agents.EnvContext))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, c.Close()) }()
			switch {
			case prompt:
				_, err = io.WriteString(o.Stdout, c.Task.Prompt)
				return err
			case schema:
				s, err := c.OutputSchema()
				if err != nil {
					return err
				}
				return printJSON(o.Stdout, s)
			case hash != "":
				return o.printNode(c, hash)
			}
			return printJSON(o.Stdout, c.Task)
		},
	}
	cmd.Flags().BoolVar(&prompt, "prompt", false, "print the prompt")
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON schema of the output")
	cmd.Flags().StringVar(&hash, "node", "", "print the node with this `HASH`")
	cmd.MarkFlagsMutuallyExclusive("prompt", "schema", "node")
	return cmd
}

func (o Options) printNode(c *agents.Context, hash string) error {
	h, err := node.ParseHash(hash)
	if err != nil {
		return err
	}
	n, err := c.Get(h)
	if err != nil {
		return err
	}
	b, err := node.EncodeFile(n)
	if err != nil {
		return err
	}
	_, err = o.Stdout.Write(b)
	return err
}

func printJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", b)
	return err
}

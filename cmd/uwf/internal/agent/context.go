package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// contextOptions are the flags of `uwf agent context`.
type contextOptions struct {
	Options
	prompt, schema bool
	node           string
	of             string // the step that refers to node; empty: any
	field          string
	jq             string
}

func newContextCmd(o Options) *cobra.Command {
	c := contextOptions{Options: o}
	cmd := &cobra.Command{
		Use:   "context",
		Short: "Print the task, its prompt, its output schema or a node of the thread",
		Long: `Print the task of the running step as JSON: thread, role, prompt, statuses and
more. With a flag, print one part of it as it is.

--field NAME prints one field for scripts: text and numbers as they are, a list one
item a line, anything else as JSON. A dotted name goes deeper (model.alias,
statuses.0), and a field that is not there prints nothing. With --node it is a field
of that node (payload, payload.output). --jq works as it does everywhere.`,
		Example: `  uwf agent context
  uwf agent context --prompt
  uwf agent context --field statuses
  uwf agent context --node "$(uwf agent context --field prev)" --field payload.role`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("field") && c.field == "" {
				return app.Usagef("--field: name one, such as role or model.alias")
			}
			if c.of != "" && c.node == "" {
				return app.Usagef("--of: it says which node is meant; name one with --node")
			}
			return c.runContext()
		},
	}
	cmd.Flags().BoolVar(&c.prompt, "prompt", false, "print the prompt")
	cmd.Flags().BoolVar(&c.schema, "schema", false, "print the JSON schema of the output")
	cmd.Flags().StringVar(&c.node, "node", "", "print the node with this `HASH`")
	cmd.Flags().StringVar(&c.of, "of", "", "with --node: the one that this `STEP` (its hash) refers to, where a hash names several")
	cmd.Flags().StringVar(&c.field, "field", "", "print the field `NAME` alone, without quotes")
	// In the place of the one that all commands have: this one knows no Factory.
	cmd.Flags().StringVar(&c.jq, "jq", "", "print what this jq `EXPRESSION` makes of the JSON")
	cmd.MarkFlagsMutuallyExclusive("prompt", "schema", "node")
	cmd.MarkFlagsMutuallyExclusive("prompt", "field", "jq")
	return cmd
}

func (o contextOptions) runContext() (err error) {
	c, err := o.openContext()
	if err != nil {
		return err
	}
	if o.prompt {
		_, err = io.WriteString(o.Stdout, c.Task.Prompt)
		return err
	}
	text, err := o.selectPart(c)
	if err != nil {
		return err
	}
	if o.field != "" {
		if err := o.checkField(); err != nil {
			return err
		}
		if text, err = fieldOf(text, o.field); err != nil {
			return err
		}
	}
	if o.jq != "" {
		q, err := output.ParseQuery(o.jq)
		if err != nil {
			return &app.UsageError{Err: err}
		}
		return output.Printer{Out: o.Stdout, Format: output.JSON, Query: q}.Print(json.RawMessage(text), nil)
	}
	_, err = o.Stdout.Write(text)
	return err
}

// selectPart is the JSON of what was asked for.
func (o contextOptions) selectPart(c *agents.Context) ([]byte, error) {
	switch {
	case o.schema:
		s, err := c.OutputSchema()
		if err != nil {
			return nil, err
		}
		return indentedJSON(s)
	case o.node != "":
		h, err := node.ReadHash(o.node)
		if err != nil {
			return nil, &app.UsageError{Err: err}
		}
		of, err := node.ReadHash(o.of)
		if o.of != "" && err != nil {
			return nil, app.Usagef("--of: %q is no hash of a step", o.of)
		}
		n, err := c.GetOf(of, h)
		if err != nil {
			return nil, err
		}
		return node.EncodeFile(n)
	}
	return indentedJSON(c.Task)
}

func indentedJSON(v any) ([]byte, error) {
	b, err := text.IndentJSON(v)
	if err != nil {
		return nil, fmt.Errorf("printing JSON: %w", err)
	}
	return append(b, '\n'), nil
}

// checkField refuses a field that no task has: a mistyped name must not look like
// one that is not set.
func (o contextOptions) checkField() error {
	if o.schema || o.node != "" {
		return nil
	}
	var known []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[task.Task]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			known = append(known, name)
		}
	}
	name, _, _ := strings.Cut(o.field, ".")
	if slices.Contains(known, name) {
		return nil
	}
	return &app.UnknownError{What: "field of the task", ID: name, Near: app.SuggestNames(name, known), See: "uwf agent context"}
}

// fieldOf is one field of a JSON text, as a script can use it. A field that is not
// there is empty: many are there only sometimes.
func fieldOf(task []byte, name string) ([]byte, error) {
	var v any
	if err := text.DecodeJSON(task, &v); err != nil {
		return nil, fmt.Errorf("reading the field %q: %w", name, err)
	}
	for key := range strings.SplitSeq(name, ".") {
		v = childOf(v, key)
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out bytes.Buffer
	for _, e := range list {
		if e == nil {
			continue
		}
		line, err := plainValue(e)
		if err != nil {
			return nil, err
		}
		out.WriteString(line + "\n")
	}
	return out.Bytes(), nil
}

func childOf(v any, key string) any {
	switch x := v.(type) {
	case map[string]any:
		return x[key]
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(x) {
			return x[i]
		}
	}
	return nil
}

func plainValue(v any) (string, error) {
	switch x := v.(type) {
	case string:
		return x, nil
	case json.Number:
		return x.String(), nil
	}
	b, err := text.EncodeJSON(v)
	return string(b), err
}

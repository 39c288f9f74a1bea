package config

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
)

// SchemaOptions are what `uwf config schema` works with.
type SchemaOptions struct{ Factory *app.Factory }

// NewCmdSchema makes `uwf config schema`. A runF that is not nil replaces the run.
func NewCmdSchema(f *app.Factory, runF func(context.Context, *SchemaOptions) error) *cobra.Command {
	o := &SchemaOptions{f}
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of config.yaml, for editors",
		Long: `Print the JSON Schema of config.yaml. Editors that know YAML take it from a first line:

  # yaml-language-server: $schema=` + engine.SchemaID + `

or from a file that this command has written.`,
		Example: "  uwf config schema > .uwf/config.schema.json",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, schemaRun, func([]string) {}),
	}
}

func schemaRun(_ context.Context, o *SchemaOptions) error {
	schema := engine.Schema()
	return o.Factory.Printer().Print(schema, func(w *output.Writer) {
		b, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			w.Fail(err)
			return
		}
		w.Println(string(b))
	})
}

package workflow

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/paths"
	"github.com/united-workforce/uwf/engine/workflow/format"
)

// SchemaOptions are what `uwf workflow schema` works with.
type SchemaOptions struct {
	Factory *app.Factory
	Paths   bool // of what workflow test reads
}

// NewCmdSchema makes `uwf workflow schema`. A runF that is not nil replaces the run.
func NewCmdSchema(f *app.Factory, runF func(context.Context, *SchemaOptions) error) *cobra.Command {
	o := &SchemaOptions{Factory: f}
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of workflow definitions, for editors",
		Long: `Print the JSON Schema of workflow definitions of every dialect. Editors complete and
explain definitions with it: write

  # yaml-language-server: $schema=` + format.URL + `

at the top of a definition, or name a copy of the schema there. It knows the shape of
a definition; workflow validate knows its sense too.

With --paths it is the schema of the files of answers that workflow test tries.`,
		Example: "  uwf workflow schema > workflow.schema.json\n  uwf workflow schema --paths > paths.schema.json",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, schemaRun, func([]string) {}),
	}
	cmd.Flags().BoolVar(&o.Paths, "paths", false, "of the files that workflow test reads")
	return cmd
}

func schemaRun(_ context.Context, o *SchemaOptions) error {
	p := o.Factory.Printer()
	if p.Chosen() == output.Text {
		p.Format = output.JSON // there is no other text of it
	}
	if o.Paths {
		return p.Print(paths.Schema(), nil)
	}
	return p.Print(format.Schema(), nil)
}

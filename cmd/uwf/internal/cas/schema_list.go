package cas

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
)

// SchemaListOptions are what `uwf cas schema list` works with.
type SchemaListOptions struct {
	source
	Printer output.Printer
}

// NewCmdSchemaList makes `uwf cas schema list`. A runF that is not nil replaces
// the run.
func NewCmdSchemaList(f *app.Factory, runF func(context.Context, *SchemaListOptions) error) *cobra.Command {
	o := &SchemaListOptions{source: source{Store: f.Store}}
	return &cobra.Command{
		Use:     "list",
		Short:   "List the schemas",
		Long:    "List the schemas that every uwf knows, and those among the shared nodes.",
		Example: "  uwf cas schema list",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, schemaListRun, func([]string) { o.Printer = f.Printer() }),
	}
}

func schemaListRun(ctx context.Context, o *SchemaListOptions) error {
	l, err := o.openNodes(ctx)
	if err != nil {
		return err
	}
	list, err := l.listSchemas(ctx)
	if err != nil {
		return err
	}
	return o.Printer.Print(list, func(w *output.Writer) {
		rows := make([][]string, len(list))
		for i, s := range list {
			from := "shared"
			if s.BuiltIn {
				from = "built in"
			}
			rows[i] = []string{string(s.Hash), s.Title, from}
		}
		w.Table([]string{"HASH", "TITLE", "FROM"}, rows)
	})
}

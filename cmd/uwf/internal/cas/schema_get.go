package cas

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
)

// SchemaGetOptions are what `uwf cas schema get` works with.
type SchemaGetOptions struct {
	source
	Printer output.Printer
	Name    string
}

// NewCmdSchemaGet makes `uwf cas schema get`. A runF that is not nil replaces the
// run.
func NewCmdSchemaGet(f *app.Factory, runF func(context.Context, *SchemaGetOptions) error) *cobra.Command {
	o := &SchemaGetOptions{source: source{Store: f.Store}}
	return &cobra.Command{
		Use:     "get HASH|TITLE",
		Short:   "Print a schema",
		Long:    "Print a schema as JSON. A title will do where only one schema has it.",
		Example: "  uwf cas schema get 108DB063KRQWW\n  uwf cas schema get builtin-detail",
		Args:    cobra.ExactArgs(1),
		RunE:    app.Run(o, runF, schemaGetRun, func(args []string) { o.Name, o.Printer = args[0], f.Printer() }),
	}
}

func schemaGetRun(ctx context.Context, o *SchemaGetOptions) error {
	l, err := o.openNodes(ctx)
	if err != nil {
		return err
	}
	n, err := l.findSchema(ctx, o.Name)
	if err != nil {
		return err
	}
	return o.Printer.Print(ordered{n.Payload}, func(w *output.Writer) { printJSON(w, n.Payload) })
}

// findSchema finds a schema by hash or title.
func (l *nodes) findSchema(ctx context.Context, name string) (node.Node, error) {
	if h := node.Hash(name); h.Valid() {
		n, err := l.Get(h)
		switch {
		case err == nil && n.Type != node.MetaSchema:
			return n, app.Usagef("node %s is no schema: its type is %s (see: uwf cas get %s)", h, n.Type, h)
		case !errors.Is(err, node.ErrNotFound):
			return n, err
		}
	}
	all, err := l.listSchemas(ctx)
	if err != nil {
		return node.Node{}, err
	}
	var hits, titles []string
	for _, s := range all {
		titles = append(titles, s.Title)
		if s.Title == name {
			hits = append(hits, string(s.Hash))
		}
	}
	switch len(hits) {
	case 0:
		return node.Node{}, &app.UnknownError{What: "schema", ID: name, Near: app.Near(name, titles), See: "uwf cas schema list"}
	case 1:
		return l.Get(node.Hash(hits[0]))
	}
	return node.Node{}, app.Usagef("%d schemas have the title %q: name one by its hash: %s", len(hits), name, strings.Join(hits, ", "))
}

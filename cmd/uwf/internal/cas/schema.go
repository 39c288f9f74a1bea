package cas

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// NewCmdSchema makes `uwf cas schema`.
func NewCmdSchema(f *app.Factory) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:     "schema",
		Short:   "List schemas, and print one",
		Long:    "List schemas, and print one. A schema is a node whose type is the meta-schema.",
		Example: "  uwf cas schema list\n  uwf cas schema get 108DB063KRQWW",
	}, NewCmdSchemaList(f, nil), NewCmdSchemaGet(f, nil))
}

// schemaInfo is a line of `uwf cas schema list`.
type schemaInfo struct {
	Hash    node.Hash `json:"hash"`
	Title   string    `json:"title"`
	BuiltIn bool      `json:"builtIn"` // known without a store
}

// listSchemas lists the schemas that are known or shared, by title.
func (l *nodes) listSchemas(ctx context.Context) ([]schemaInfo, error) {
	all := map[node.Hash]schemaInfo{}
	known := node.Builtin()
	maps.Copy(known, record.Schemas())
	for h, n := range known {
		all[h] = schemaInfo{Hash: h, Title: titleOf(h, n), BuiltIn: true}
	}
	if l.tip != nil {
		err := l.tip.Shared(ctx, func(h node.Hash, n node.Node) error {
			if _, known := all[h]; n.Type == node.MetaSchema && !known {
				all[h] = schemaInfo{Hash: h, Title: titleOf(h, n)}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b schemaInfo) int {
		return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(a.Hash, b.Hash))
	}), nil
}

// NewCmdSchemaList makes `uwf cas schema list`. A runF that is not nil replaces the run.
func NewCmdSchemaList(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	o := &LookOptions{Factory: f}
	return &cobra.Command{
		Use:     "list",
		Short:   "List the schemas",
		Long:    "List the schemas that every uwf knows, and those among the shared nodes.",
		Example: "  uwf cas schema list",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, schemaListRun, func([]string) {}),
	}
}

func schemaListRun(ctx context.Context, o *LookOptions) error {
	l, err := o.openNodes(ctx)
	if err != nil {
		return err
	}
	list, err := l.listSchemas(ctx)
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(list, func(w *output.Writer) {
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

// NewCmdSchemaGet makes `uwf cas schema get`. A runF that is not nil replaces the run.
func NewCmdSchemaGet(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	o := &LookOptions{Factory: f}
	return &cobra.Command{
		Use:     "get HASH|TITLE",
		Short:   "Print a schema",
		Long:    "Print a schema as JSON. A title will do where only one schema has it.",
		Example: "  uwf cas schema get 108DB063KRQWW\n  uwf cas schema get builtin-detail",
		Args:    cobra.ExactArgs(1),
		RunE:    app.Run(o, runF, schemaGetRun, func(args []string) { o.Hash = args[0] }),
	}
}

func schemaGetRun(ctx context.Context, o *LookOptions) error {
	l, err := o.openNodes(ctx)
	if err != nil {
		return err
	}
	n, err := l.findSchema(ctx, o.Hash)
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(ordered{n.Payload}, func(w *output.Writer) { printJSON(w, n.Payload) })
}

// findSchema finds a schema by hash or title.
func (l *nodes) findSchema(ctx context.Context, name string) (node.Node, error) {
	if h, err := node.ReadHash(name); err == nil {
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
		return node.Node{}, &app.UnknownError{What: "schema", ID: name, Near: app.SuggestNames(name, titles), See: "uwf cas schema list"}
	case 1:
		return l.Get(node.Hash(hits[0]))
	}
	return node.Node{}, app.Usagef("%d schemas have the title %q: name one by its hash: %s", len(hits), name, strings.Join(hits, ", "))
}

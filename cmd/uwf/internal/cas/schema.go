package cas

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
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

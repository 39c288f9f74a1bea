package cas

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// NewCmdWalk makes `uwf cas walk`. A runF that is not nil replaces the run.
func NewCmdWalk(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	return newLookCmd(f, "walk", "List everything that a node reaches", `List a node and everything that it reaches by references and types, each once,
parents before children. A node that is missing is an error.`, []string{"9W3MGR3184QYE"}, walkRun, runF)
}

type visited struct {
	Hash  node.Hash `json:"hash"`
	Type  node.Hash `json:"type"`
	Title string    `json:"title,omitempty"` // of its type
}

type reached struct {
	Hashes []node.Hash `json:"hashes"`
	Nodes  []visited   `json:"nodes"` // the same, with what they are
}

func walkRun(ctx context.Context, o *LookOptions) error {
	f, err := o.readNode(ctx)
	if err != nil {
		return err
	}
	var out reached
	err = f.walkNodes(ctx, func(at gitcas.Place, h node.Hash, n node.Node) error {
		out.Hashes = append(out.Hashes, h)
		out.Nodes = append(out.Nodes, visited{Hash: h, Type: n.Type, Title: schemaTitle(f.getterIn(ctx, at), n.Type)})
		return nil
	})
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(out, func(w *output.Writer) {
		for _, v := range out.Nodes {
			w.Printf("%s  %s", v.Hash, v.Type)
			w.Faint("  " + output.Line(v.Title, 60))
			w.Printf("\n")
		}
	})
}

func (f found) walkNodes(ctx context.Context, visit func(gitcas.Place, node.Hash, node.Node) error) error {
	if f.view != nil {
		return f.view.Walk(ctx, f.Place, f.Hash, visit)
	}
	return node.Walk(f.getterIn(ctx, f.Place), f.Hash, func(h node.Hash, n node.Node) error { return visit(f.Place, h, n) })
}

func schemaTitle(g node.Getter, schema node.Hash) string {
	n, err := g.Get(schema)
	if err != nil {
		return "" // the walk itself reports it
	}
	return titleOf(schema, n)
}

func titleOf(h node.Hash, n node.Node) string {
	if h == node.MetaSchema {
		return "schema"
	}
	m, _ := n.Payload.(map[string]any)
	if t, ok := m["title"].(string); ok {
		return t
	}
	t, _ := m["type"].(string)
	return t
}

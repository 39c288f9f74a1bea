package cas

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
)

// NewCmdRefs makes `uwf cas refs`. A runF that is not nil replaces the run.
func NewCmdRefs(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	return newLookCmd(f, "refs", "List what a node refers to", "List the nodes that a node's payload refers to directly, without its type.",
		[]string{"9W3MGR3184QYE"}, refsRun, runF)
}

type references struct {
	Refs []node.Hash `json:"refs"`
}

func refsRun(ctx context.Context, o *LookOptions) error {
	f, err := o.readNode(ctx)
	if err != nil {
		return err
	}
	var schemas node.Schemas
	refs, err := schemas.Refs(f.getterIn(ctx, f.Place), f.Node)
	if err != nil {
		return err
	}
	if refs == nil {
		refs = []node.Hash{}
	}
	return o.Factory.Printer().Print(references{refs}, func(w *output.Writer) {
		for _, r := range refs {
			w.Println(r)
		}
	})
}

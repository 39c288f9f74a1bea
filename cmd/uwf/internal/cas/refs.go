package cas

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
)

// RefsOptions are what `uwf cas refs` works with.
type RefsOptions struct {
	source
	Printer output.Printer
}

// NewCmdRefs makes `uwf cas refs`. A runF that is not nil replaces the run.
func NewCmdRefs(f *app.Factory, runF func(context.Context, *RefsOptions) error) *cobra.Command {
	o := &RefsOptions{source: source{Store: f.Store}}
	cmd := &cobra.Command{
		Use:     "refs [THREAD[:N]] HASH",
		Short:   "List what a node refers to",
		Long:    "List the nodes that a node's payload refers to directly, without its type." + whereHelp,
		Example: "  uwf cas refs 9W3MGR3184QYE",
		Args:    cobra.RangeArgs(1, 2),
		RunE:    app.Run(o, runF, refsRun, func(args []string) { o.takeArgs(args); o.Printer = f.Printer() }),
	}
	return cmd
}

// references is the JSON of `uwf cas refs`.
type references struct {
	Refs []node.Hash `json:"refs"`
}

func refsRun(ctx context.Context, o *RefsOptions) error {
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
	return o.Printer.Print(references{refs}, func(w *output.Writer) {
		for _, r := range refs {
			w.Println(r)
		}
	})
}

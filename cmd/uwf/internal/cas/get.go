package cas

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
)

// GetOptions are what `uwf cas get` works with.
type GetOptions struct {
	source
	Printer   output.Printer
	Payload   bool
	Timestamp bool
}

// NewCmdGet makes `uwf cas get`. A runF that is not nil replaces the run.
func NewCmdGet(f *app.Factory, runF func(context.Context, *GetOptions) error) *cobra.Command {
	o := &GetOptions{source: source{Store: f.Store}}
	cmd := &cobra.Command{
		Use:   "get [THREAD[:N]] HASH",
		Short: "Print a node",
		Long: `Print a node: its type and payload, and with --timestamp when it was made, which its
hash doesn't tell.` + whereHelp,
		Example: "  uwf cas get 9W3MGR3184QYE\n  uwf cas get --payload 9W3MGR3184QYE\n  uwf cas get @latest:1 7VQ43ZSJTEWA7",
		Args:    cobra.RangeArgs(1, 2),
		RunE:    app.Run(o, runF, getRun, func(args []string) { o.takeArgs(args); o.Printer = f.Printer() }),
	}
	cmd.Flags().BoolVar(&o.Timestamp, "timestamp", false, "print when the node was made, in milliseconds")
	cmd.Flags().BoolVar(&o.Payload, "payload", false, "print the payload alone")
	return cmd
}

func getRun(ctx context.Context, o *GetOptions) error {
	f, err := o.readNode(ctx)
	if err != nil {
		return err
	}
	n := f.Node
	if o.Payload {
		return o.Printer.Print(ordered{n.Payload}, func(w *output.Writer) {
			if s, ok := n.Payload.(string); ok {
				w.Println(s)
				return
			}
			printJSON(w, n.Payload)
		})
	}
	out := nodeJSON{Type: n.Type, Payload: ordered{n.Payload}}
	if o.Timestamp {
		out.Timestamp = &n.Timestamp
	}
	p := o.Printer
	if p.Chosen() == output.Text {
		p.Format = output.JSON // there is no better text of it
	}
	return p.Print(out, nil)
}

package cas

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
)

// NewCmdGet makes `uwf cas get`. A runF that is not nil replaces the run.
func NewCmdGet(f *app.Factory, runF func(context.Context, *LookOptions) error) *cobra.Command {
	var payload, timestamp bool
	cmd := newLookCmd(f, "get", "Print a node", `Print a node: its type and payload, and with --timestamp when it was made, which its
hash doesn't tell.`, []string{"9W3MGR3184QYE", "--payload 9W3MGR3184QYE", "@latest:1 7VQ43ZSJTEWA7"},
		func(ctx context.Context, o *LookOptions) error { return getRun(ctx, o, payload, timestamp) }, runF)
	cmd.Flags().BoolVar(&timestamp, "timestamp", false, "print when the node was made, in milliseconds")
	cmd.Flags().BoolVar(&payload, "payload", false, "print the payload alone")
	return cmd
}

func getRun(ctx context.Context, o *LookOptions, payload, timestamp bool) error {
	h, l, err := o.openHash(ctx)
	if err != nil {
		return err
	}
	f, err := l.getNode(h)
	if err != nil {
		return err
	}
	n := f.Node
	if payload {
		return o.Factory.Printer().Print(ordered{n.Payload}, func(w *output.Writer) {
			if s, ok := n.Payload.(string); ok {
				w.Println(s)
				return
			}
			printJSON(w, n.Payload)
		})
	}
	out := nodeJSON{Type: n.Type, Payload: ordered{n.Payload}}
	if timestamp {
		out.Timestamp = &n.Timestamp
	}
	p := o.Factory.Printer()
	if p.Chosen() == output.Text {
		p.Format = output.JSON // there is no better text of it
	}
	return p.Print(out, nil)
}

// ordered is a payload that is marshalled with its keys in canonical order.
type ordered struct{ payload any }

// MarshalJSON implements json.Marshaler.
func (o ordered) MarshalJSON() ([]byte, error) { return node.FormatJSON(o.payload) }

// nodeJSON is a node as it is printed: the keys of its file, in their order.
type nodeJSON struct {
	Type      node.Hash `json:"type"`
	Payload   ordered   `json:"payload"`
	Timestamp *int64    `json:"timestamp,omitempty"` // only where it was asked for
}

// printJSON writes a payload as indented JSON.
func printJSON(w *output.Writer, payload any) {
	b, err := node.FormatJSON(payload)
	if err != nil {
		w.Fail(err)
		return
	}
	w.Printf("%s", b)
}

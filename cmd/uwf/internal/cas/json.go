package cas

import (
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
)

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

package cas

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
)

const selfType = "SELF"

// NewCmdHash makes `uwf cas hash`. A runF that is not nil replaces the run.
func NewCmdHash(f *app.Factory, runF func(context.Context, *PutOptions) error) *cobra.Command {
	o := &PutOptions{Factory: f}
	return &cobra.Command{
		Use:   "hash TYPE [JSON|FILE|-]",
		Short: "Tell the address that a JSON payload would have",
		Long: `Tell the address that a JSON payload would have under a type, without storing it and
without checking it against the type. The payload is the argument itself where that is
JSON, else a file's (write ./1 for one that is called 1), or stdin's. TYPE is a schema's hash, the name of a type that
every store has (schema, string, number, integer, boolean, object, array, null), or
SELF for a payload that is its own type, as the meta-schema is. No store is needed.`,
		Example: "  echo '\"hello\"' | uwf cas hash string\n  uwf cas hash number 7\n  uwf cas hash schema my-schema.json",
		Args:    cobra.RangeArgs(1, 2),
		RunE:    app.Run(o, runF, hashRun, o.takeArguments),
	}
}

type address struct {
	Hash node.Hash `json:"hash"`
}

func hashRun(_ context.Context, o *PutOptions) error {
	hash := node.SelfHash
	if o.Type != selfType {
		typ, err := parseType(o.Type)
		if err != nil {
			return err
		}
		hash = func(payload any) (node.Hash, error) { return node.HashOf(typ, payload) }
	}
	payload, err := o.readPayload()
	if err != nil {
		return err
	}
	h, err := hash(payload)
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(address{h}, func(w *output.Writer) { w.Println(h) })
}

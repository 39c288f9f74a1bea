package cas

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
)

// selfType asks for the hash of a payload that is its own type.
const selfType = "SELF"

// HashOptions are what `uwf cas hash` works with.
type HashOptions struct {
	Printer output.Printer
	Read    func(name string, limit int64) ([]byte, error)
	Type    string
	File    string
}

// NewCmdHash makes `uwf cas hash`. A runF that is not nil replaces the run.
func NewCmdHash(f *app.Factory, runF func(context.Context, *HashOptions) error) *cobra.Command {
	o := &HashOptions{Read: f.ReadInput}
	return &cobra.Command{
		Use:   "hash TYPE [FILE|-]",
		Short: "Tell the address that a JSON payload would have",
		Long: `Tell the address that a JSON payload would have under a type, without storing it and
without checking it against the type. TYPE is a schema's hash, the name of a type that
every store has (schema, string, number, integer, boolean, object, array, null), or
SELF for a payload that is its own type, as the meta-schema is. No store is needed.`,
		Example: "  echo '\"hello\"' | uwf cas hash string\n  uwf cas hash schema my-schema.json",
		Args:    cobra.RangeArgs(1, 2),
		RunE: app.Run(o, runF, hashRun, func(args []string) {
			o.Type, o.Printer = args[0], f.Printer()
			if len(args) == 2 {
				o.File = args[1]
			}
		}),
	}
}

func hashRun(_ context.Context, o *HashOptions) error {
	self := o.Type == selfType
	var typ node.Hash
	var err error
	if !self {
		if typ, err = parseType(o.Type); err != nil {
			return err
		}
	}
	payload, err := readPayload(o.Read, o.File)
	if err != nil {
		return err
	}
	var h node.Hash
	if self {
		h, err = node.SelfHash(payload)
	} else {
		h, err = node.HashOf(typ, payload)
	}
	if err != nil {
		return err
	}
	return o.Printer.Print(h, func(w *output.Writer) { w.Println(h) })
}

// readPayload reads a FILE argument as strict JSON.
func readPayload(read func(string, int64) ([]byte, error), file string) (any, error) {
	b, err := read(file, node.MaxFile)
	if err != nil {
		return nil, err
	}
	payload, err := node.ParseJSON(b)
	if err != nil {
		if file == "" || file == "-" {
			file = "stdin"
		}
		return nil, app.Usagef("%s: %w", file, err)
	}
	return payload, nil
}

package cas

import (
	"context"
	"strings"

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
	Data    string // JSON, a file, or stdin
}

// NewCmdHash makes `uwf cas hash`. A runF that is not nil replaces the run.
func NewCmdHash(f *app.Factory, runF func(context.Context, *HashOptions) error) *cobra.Command {
	o := &HashOptions{Read: f.ReadInput}
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
		RunE: app.Run(o, runF, hashRun, func(args []string) {
			o.Type, o.Printer = args[0], f.Printer()
			if len(args) == 2 {
				o.Data = args[1]
			}
		}),
	}
}

// address is the JSON of the commands that tell a node's hash.
type address struct {
	Hash node.Hash `json:"hash"`
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
	payload, err := readPayload(o.Read, o.Data)
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
	return o.Printer.Print(address{h}, func(w *output.Writer) { w.Println(h) })
}

// readPayload reads a payload as strict JSON: the argument itself, the file that it names,
// or stdin where it is empty or "-".
func readPayload(read func(string, int64) ([]byte, error), arg string) (any, error) {
	stdin := arg == "" || arg == "-"
	if !stdin {
		payload, err := node.ParseJSON([]byte(arg))
		if err == nil {
			return payload, nil
		}
		if strings.ContainsAny(arg[:1], `{["`) {
			return nil, app.Usagef("the payload is no JSON: %w", err) // no file was meant
		}
	}
	b, err := read(arg, node.MaxFile)
	if err != nil {
		return nil, err
	}
	payload, err := node.ParseJSON(b)
	if err != nil {
		if stdin {
			arg = "stdin"
		}
		return nil, app.Usagef("%s: %w", arg, err)
	}
	return payload, nil
}

package cas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// PutOptions are what `uwf cas put` works with.
type PutOptions struct {
	Factory *app.Factory
	Type    string
	Data    string // JSON, a file, or stdin
}

// NewCmdPut makes `uwf cas put`. A runF that is not nil replaces the run.
func NewCmdPut(f *app.Factory, runF func(context.Context, *PutOptions) error) *cobra.Command {
	o := &PutOptions{Factory: f}
	return &cobra.Command{
		Use:   "put TYPE [JSON|FILE|-]",
		Short: "Add a shared node",
		Long: `Add a node to the shared ones and print its hash. The payload is JSON and has to
fit its type: it is the argument itself where that is JSON, else a file's (write ./1 for
one that is called 1), or stdin's. TYPE is a schema's hash or the name of a type that
every store has (schema, string, number, integer, boolean, object, array, null).
A node that is there already is left as it is.

Only init, workflow put and thread start make a store where there is none yet.`,
		Example: `  echo '{"type":"object","title":"point"}' | uwf cas put schema
  uwf cas put FRBAB1BF0ZBCS '{"name":"Alice"}'
  uwf cas put FRBAB1BF0ZBCS alice.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: app.Run(o, runF, putRun, func(args []string) {
			if o.Type = args[0]; len(args) == 2 {
				o.Data = args[1]
			}
		}),
	}
}

func putRun(ctx context.Context, o *PutOptions) error {
	typ, err := parseType(o.Type)
	if err != nil {
		return err
	}
	payload, err := o.readPayload()
	if err != nil {
		return err
	}
	n, h, err := node.New(typ, payload, o.Factory.Now())
	if err != nil {
		return &app.UsageError{Err: err}
	}
	if err := o.Factory.CheckNoSecret(ctx, "the payload", payload); err != nil {
		return err
	}
	store, v, err := lookup.Load(ctx, o.Factory.Store)
	if err != nil {
		return err
	}
	if err := checkFits(ctx, v, n); err != nil {
		return err
	}
	nodes := []gitcas.PlacedNode{{Hash: h, Node: n}}
	if schema, ok := record.Schemas()[typ]; ok {
		// Every uwf knows it, but who reads the branch with git alone doesn't.
		nodes = append(nodes, gitcas.PlacedNode{Hash: typ, Node: schema})
	}
	_, err = store.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		if old, err := v.Get(ctx, h); !errors.Is(err, node.ErrNotFound) {
			return nil, cmp.Or(err, checkSame(old, n)) // it is there, or can't be read
		}
		return &gitcas.Change{
			Subject:  fmt.Sprintf("put node %s", h),
			Trailers: []gitcas.Trailer{{Key: "Uwf-Node", Value: string(h)}},
			Nodes:    nodes,
		}, nil
	})
	if err != nil {
		return fmt.Errorf("put node %s: %w", h, err)
	}
	return o.Factory.Printer().Print(struct {
		Hash node.Hash `json:"hash"`
	}{h}, func(w *output.Writer) { w.Println(h) })
}

// checkSame refuses a node whose hash is taken by another one.
func checkSame(old, n node.Node) error {
	a, err := old.Sum()
	if err != nil {
		return err
	}
	b, err := n.Sum()
	if err == nil && a != b {
		err = &app.UsageError{Err: fmt.Errorf("%w; change the payload in any way", gitcas.ErrCollision)}
	}
	return err
}

// checkFits checks a node against its type before anything is pushed, for errors that speak of
// the payload.
func checkFits(ctx context.Context, v *gitcas.View, n node.Node) error {
	err := node.Check(v.Getter(ctx), n)
	switch {
	case errors.As(err, new(*node.SchemaError)), errors.As(err, new(*node.ValidationError)), errors.Is(err, node.ErrNotSchema), errors.Is(err, node.ErrTooLarge):
		return &app.UsageError{Err: err}
	case errors.Is(err, node.ErrNotFound):
		return &app.UnknownError{What: "type", ID: string(n.Type), Hint: "put its schema first: uwf cas put schema"}
	}
	return err
}

// readPayload reads a payload as strict JSON: the argument itself, the file that it names, or
// stdin if it is empty or "-".
func (o *PutOptions) readPayload() (any, error) {
	arg := o.Data
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
	b, err := o.Factory.ReadInput(arg, node.MaxFile)
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

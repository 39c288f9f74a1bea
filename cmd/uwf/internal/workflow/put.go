package workflow

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// PutOptions are what `uwf workflow put` works with.
type PutOptions struct {
	Factory *app.Factory
	Ref     string
}

// NewCmdPut makes `uwf workflow put`. A runF that is not nil replaces the run.
func NewCmdPut(f *app.Factory, runF func(context.Context, *PutOptions) error) *cobra.Command {
	o := &PutOptions{Factory: f}
	return &cobra.Command{
		Use:     "put FILE|NAME",
		Aliases: []string{"add"},
		Short:   "Check a definition and register it under its name",
		Long: `Check a definition, store it, and register it under its name. What was registered
before stays in the store and in the name's history; threads keep the workflow that
they were started with. The store is made if there is none yet.

The checks are those of workflow validate.`,
		Example: "  uwf workflow put solve-issue.yaml",
		Args:    cobra.ExactArgs(1),
		RunE:    app.Run(o, runF, putRun, func(args []string) { o.Ref = args[0] }),
	}
}

// putResult is what is printed.
type putResult struct {
	Name    string    `json:"name"`
	Hash    node.Hash `json:"hash"`
	Changed bool      `json:"changed"`
}

func putRun(ctx context.Context, o *PutOptions) error {
	f := o.Factory
	w, err := definition.New(f).File(ctx, o.Ref)
	if err != nil {
		return err
	}
	for _, n := range w.Nodes {
		if err := f.CheckNoSecret(ctx, "the definition "+w.From, n.Payload); err != nil {
			return err
		}
	}
	store, err := f.NewStore(ctx)
	if err != nil {
		return err
	}
	v, err := store.Init(ctx)
	if err != nil {
		return err
	}
	res := putResult{Name: w.Definition.Name, Hash: w.Hash}
	_, err = store.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		if v.Registry()[res.Name].Hash == w.Hash {
			return nil, nil
		}
		res.Changed = true
		c := registerChange(v, "put workflow "+res.Name, w.Definition.Description, res.Name, w.Hash)
		for _, h := range slices.Sorted(maps.Keys(w.Nodes)) {
			c.Nodes = append(c.Nodes, gitcas.PlacedNode{Hash: h, Node: w.Nodes[h]})
		}
		return c, nil
	})
	if err != nil {
		return fmt.Errorf("put the workflow %s: %w", res.Name, err)
	}
	return f.Printer().Print(res, func(t *output.Writer) {
		t.Bold(res.Name)
		t.Printf("  %s", res.Hash)
		if !res.Changed {
			t.Faint("  unchanged")
		}
		t.Println()
	})
}

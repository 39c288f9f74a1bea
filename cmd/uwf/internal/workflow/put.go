package workflow

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// PutOptions are what `uwf workflow put` works with.
type PutOptions struct {
	Printer  output.Printer
	Resolver *definition.Resolver
	NewStore func(context.Context) (*gitcas.Store, error)
	// NoSecret refuses a definition that holds one.
	NoSecret func(ctx context.Context, what string, v any) error
	Ref      string
}

// NewCmdPut makes `uwf workflow put`. A runF that is not nil replaces the run.
func NewCmdPut(f *app.Factory, runF func(context.Context, *PutOptions) error) *cobra.Command {
	o := &PutOptions{NewStore: f.NewStore, NoSecret: f.NoSecret}
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
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Ref, o.Printer, o.Resolver = args[0], f.Printer(), definition.New(f)
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return putRun(cmd.Context(), o)
		},
	}
}

// putResult is what is printed.
type putResult struct {
	Name    string    `json:"name"`
	Hash    node.Hash `json:"hash"`
	Changed bool      `json:"changed"`
}

func putRun(ctx context.Context, o *PutOptions) error {
	w, err := o.Resolver.File(ctx, o.Ref)
	if err != nil {
		return err
	}
	for _, n := range w.Nodes {
		if err := o.NoSecret(ctx, "the definition "+w.From, n.Payload); err != nil {
			return err
		}
	}
	store, err := o.NewStore(ctx)
	if err != nil {
		return err
	}
	v, err := store.Init(ctx)
	if err != nil {
		return err
	}
	res := putResult{Name: w.Definition.Name, Hash: w.Hash}
	_, err = store.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		old, there := v.Registry()[res.Name]
		if there && old.Hash == w.Hash {
			return nil, nil
		}
		res.Changed = true
		return change(v, w, old, there), nil
	})
	if err != nil {
		return fmt.Errorf("put the workflow %s: %w", res.Name, err)
	}
	return o.Printer.Print(res, func(t *output.Writer) {
		t.Bold(res.Name)
		t.Printf("  %s", res.Hash)
		if !res.Changed {
			t.Faint("  unchanged")
		}
		t.Printf("\n")
	})
}

// change registers a workflow.
func change(v *gitcas.View, w *definition.Resolved, old gitcas.RegistryEntry, there bool) *gitcas.Change {
	name := w.Definition.Name
	c := registerChange(v, "put workflow "+name, w.Definition.Description, name, w.Hash, old, there)
	for _, h := range slices.Sorted(maps.Keys(w.Nodes)) {
		c.Nodes = append(c.Nodes, gitcas.PlacedNode{Hash: h, Node: w.Nodes[h]})
	}
	return c
}

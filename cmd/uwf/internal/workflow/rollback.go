package workflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// RollbackOptions are what `uwf workflow rollback` works with.
type RollbackOptions struct {
	Factory *app.Factory
	Name    string
	Hash    string // the beginning of one; empty: the version before the present one
}

// NewCmdRollback makes `uwf workflow rollback`. A runF that is not nil replaces the
// run.
func NewCmdRollback(f *app.Factory, runF func(context.Context, *RollbackOptions) error) *cobra.Command {
	o := &RollbackOptions{Factory: f}
	return &cobra.Command{
		Use:   "rollback NAME [HASH]",
		Short: "Register an earlier version of a workflow again",
		Long: `Make a name mean an earlier version again: the one before the present one, or the
one of the history whose hash begins with HASH (at least 4 characters). The version
that was current stays in the history, so a rollback can be rolled back. Threads keep
the version that they were started with.`,
		Example: `  uwf workflow put solve-issue.yaml
  uwf workflow rollback solve-issue`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeRegistered(f),
		RunE: app.Run(o, runF, rollbackRun, func(args []string) {
			if o.Name = args[0]; len(args) > 1 {
				o.Hash = args[1]
			}
		}),
	}
}

// rolledBack is what is printed.
type rolledBack struct {
	Name    string    `json:"name"`
	Hash    node.Hash `json:"hash"`
	Before  node.Hash `json:"before"`
	Changed bool      `json:"changed"`
	// Changes says what is different now, in words.
	Changes []string `json:"changes"`
}

func rollbackRun(ctx context.Context, o *RollbackOptions) error {
	r, err := findRegistered(ctx, o.Factory, o.Name)
	if err != nil {
		return err
	}
	target, err := versionMeant(o.Name, r.RegistryEntry, o.Hash)
	if err != nil {
		return err
	}
	res := rolledBack{Name: o.Name, Hash: target, Before: r.Hash, Changes: []string{}}
	d, err := workflow.FromNode(r.view.Getter(ctx), target)
	if err != nil {
		return fmt.Errorf("roll %s back: %w", o.Name, err)
	}
	if old, err := workflow.FromNode(r.view.Getter(ctx), r.Hash); err == nil {
		res.Changes = append(res.Changes, describeChanges(old, d)...)
	}
	if res.Changed, err = r.changeTarget(ctx, "roll "+o.Name+" back", target); err != nil {
		return fmt.Errorf("roll the workflow back: %w", err)
	}
	if err := o.Factory.Printer().Print(res, res.writeText); err != nil {
		return err
	}
	file, err := definition.New(o.Factory).Find(o.Name)
	if err == nil && file != "" {
		o.Factory.Notes().Printf("note: here %s means the file %s, which goes before the registry\n", o.Name, file)
	}
	return err
}

// minHashPrefix is the least of a hash that names a version.
const minHashPrefix = 4

// versionMeant is the version that the argument of a rollback means.
func versionMeant(name string, e gitcas.RegistryEntry, prefix string) (node.Hash, error) {
	var all []node.Hash
	for _, h := range e.History {
		if h.Hash != e.Hash && !slices.Contains(all, h.Hash) {
			all = append(all, h.Hash)
		}
	}
	if prefix == "" {
		if len(all) == 0 {
			return "", app.Usagef("%s has no earlier version: %s is the only one (see: uwf workflow history %s)", name, e.Hash, name)
		}
		return all[0], nil
	}
	prefix = strings.ToUpper(prefix)
	if len(prefix) < minHashPrefix {
		return "", app.Usagef("%q is too little of a hash: write at least %d characters of it", prefix, minHashPrefix)
	}
	var fits, texts []string
	for _, h := range append(all, e.Hash) {
		texts = append(texts, string(h))
		if strings.HasPrefix(string(h), prefix) {
			fits = append(fits, string(h))
		}
	}
	switch len(fits) {
	case 1:
		return node.Hash(fits[0]), nil
	case 0:
		return "", &app.UnknownError{What: "version of " + name, ID: prefix, Near: app.SuggestNames(prefix, texts), See: "uwf workflow history " + name}
	}
	return "", app.Usagef("%q is the beginning of %d versions of %s: %s: write more of it", prefix, len(fits), name, strings.Join(fits, ", "))
}

func (r rolledBack) writeText(w *output.Writer) {
	w.Bold(r.Name)
	w.Printf("  %s", r.Hash)
	if r.Changed {
		w.FaintLine("  before: " + string(r.Before))
	} else {
		w.FaintLine("  unchanged: it is the current version")
	}
	for _, c := range r.Changes {
		w.Printf("  %s\n", c)
	}
}

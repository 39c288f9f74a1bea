package workflow

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// ListOptions are what `uwf workflow list` works with.
type ListOptions struct {
	Printer  output.Printer
	Resolver *Resolver
}

// NewCmdList makes `uwf workflow list`. A runF that is not nil replaces the run.
func NewCmdList(f *app.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	o := &ListOptions{}
	return &cobra.Command{
		Use:     "list",
		Short:   "List the workflows of the repository's folders and of the registry",
		Long:    "List the workflows that can be named here: the definitions in the repository's folders, and the registry.",
		Example: "  uwf workflow list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Printer, o.Resolver = f.Printer(), NewResolver(f)
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return listRun(cmd.Context(), o)
		},
	}
}

// listed is one line.
type listed struct {
	Name string    `json:"name"`
	Hash node.Hash `json:"hash,omitempty"`
	From string    `json:"from"`
	// Updated is when the registry's entry was set, in milliseconds.
	Updated  int64 `json:"updated,omitempty"`
	Versions int   `json:"versions,omitempty"`
	Problems int   `json:"problems,omitempty"` // of a file that can't be used
}

func listRun(ctx context.Context, o *ListOptions) error {
	list, err := o.Resolver.list(ctx)
	if err != nil {
		return err
	}
	return o.Printer.Print(list, func(w *output.Writer) {
		rows := make([][]string, len(list))
		for i, l := range list {
			state := ""
			if l.Updated != 0 {
				state = time.UnixMilli(l.Updated).UTC().Format(time.DateTime)
			}
			if l.Problems > 0 {
				state = "invalid: uwf workflow validate " + l.From
			}
			rows[i] = []string{l.Name, string(l.Hash), l.From, state}
		}
		w.Table([]string{"NAME", "HASH", "FROM", "UPDATED"}, rows)
	})
}

func (r *Resolver) list(ctx context.Context) ([]listed, error) {
	files, err := r.Files()
	if err != nil {
		return nil, err
	}
	out := []listed{}
	for name, file := range files {
		l := listed{Name: name, From: file}
		w, err := r.file(ctx, file)
		var invalid *workflow.InvalidError
		switch {
		case errors.As(err, &invalid):
			l.Problems = len(invalid.Problems)
		case err != nil:
			return nil, err
		default:
			l.Hash = w.Hash
		}
		out = append(out, l)
	}
	v, err := r.View(ctx)
	if err != nil && !errors.Is(err, gitcas.ErrNoStore) {
		return nil, err
	}
	if err == nil {
		for name, e := range v.Registry() {
			out = append(out, listed{Name: name, Hash: e.Hash, From: FromRegistry, Updated: e.Timestamp, Versions: 1 + len(e.History)})
		}
	}
	slices.SortFunc(out, func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.From, b.From))
	})
	return out, nil
}

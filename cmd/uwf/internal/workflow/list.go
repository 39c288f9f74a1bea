package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/definition"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// ListOptions are what `uwf workflow list` works with.
type ListOptions struct{ Factory *app.Factory }

// NewCmdList makes `uwf workflow list`. A runF that is not nil replaces the run.
func NewCmdList(f *app.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	o := &ListOptions{Factory: f}
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the workflows of the repository's folders, of the registry and of uwf",
		Long: `List the workflows that can be named here, and where each name leads: a definition in
the folders .uwf/workflows, .workflow and .workflows, from here up to the repository's
top (NAME.yaml, NAME.yml, NAME/index.yaml, NAME/index.yml), before the registry, before those
that uwf has with it. Of several with one name the first is taken; the others are shown as
hidden.`,
		Example: "  uwf workflow list",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, listRun, func([]string) {}),
	}
}

// listed is one line.
type listed struct {
	Name    string           `json:"name"`
	Hash    node.Hash        `json:"hash"`   // empty where the definition can't be used
	Origin  string           `json:"origin"` // local, global or uwf
	Dialect workflow.Dialect `json:"dialect,omitempty"`
	From    string           `json:"from"` // a file, or "registry", or "uwf itself"
	// HiddenBy is what the name means instead; empty: this is what it means.
	HiddenBy string `json:"hiddenBy,omitempty"`
	// Updated is when the registry's entry was set, in milliseconds.
	Updated  int64  `json:"updated,omitempty"`
	Versions int    `json:"versions,omitempty"`
	Problems int    `json:"problems,omitempty"` // of a definition that can't be used
	Error    string `json:"error,omitempty"`    // why a file or a stored workflow can't be read
}

func listRun(ctx context.Context, o *ListOptions) error {
	r := definition.New(o.Factory)
	r.Invalid, r.Warn = nil, nil // a list is no check
	lines, err := listAll(ctx, r)
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(lines, func(w *output.Writer) {
		output.WriteTable(w, []string{"NAME", "HASH", "DIALECT", "FROM", ""}, lines, func(l listed) []string {
			return []string{l.Name, string(l.Hash), string(l.Dialect), l.From, l.describeState(w.Zone)}
		})
	})
}

// describeState is what else is to be said of a line, with times in a zone.
func (l listed) describeState(zone *time.Location) string {
	switch {
	case l.Error != "":
		return "can't be read: " + l.Error
	case l.Problems > 0:
		return fmt.Sprintf("invalid (%s): uwf workflow validate %s", text.Plural(l.Problems, "problem"), l.From)
	case l.HiddenBy != "":
		return "hidden by " + l.HiddenBy
	case l.Updated != 0:
		return fmt.Sprintf("%s, %s", text.TimeIn(time.UnixMilli(l.Updated), zone), text.Plural(l.Versions, "version"))
	}
	return ""
}

func listAll(ctx context.Context, r *definition.Resolver) ([]listed, error) {
	places, err := r.Places()
	if err != nil {
		return nil, err
	}
	out := []listed{}
	for _, p := range places {
		l := listed{Name: p.Name, Origin: "local", From: p.File}
		w, err := r.Load(ctx, p.File)
		var invalid *workflow.InvalidError
		switch {
		case errors.As(err, &invalid):
			l.Problems = len(invalid.Problems)
		case err != nil && app.ExitCodeOf(err) == app.CodeUsage:
			l.Error = definition.Reason(err).Error()
		case err != nil:
			return nil, err
		default:
			l.Hash, l.Dialect = w.Hash, w.Definition.Dialect
		}
		out = append(out, l)
	}
	stored, err := listRegistry(ctx, r)
	if err != nil {
		return nil, err
	}
	out = append(out, stored...)
	for _, name := range examples.Workflows() {
		w, err := r.Preset(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, listed{Name: name, Origin: "uwf", From: w.From, Hash: w.Hash, Dialect: w.Definition.Dialect})
	}
	// The order of precedence is kept among those with one name.
	slices.SortStableFunc(out, func(a, b listed) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(out); i++ {
		if before := out[i-1]; before.Name == out[i].Name {
			out[i].HiddenBy = cmp.Or(before.HiddenBy, before.From)
		}
	}
	return out, nil
}

func listRegistry(ctx context.Context, r *definition.Resolver) ([]listed, error) {
	v, err := r.View(ctx)
	if errors.Is(err, gitcas.ErrNoStore) || err == nil && len(v.Registry()) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known, err := readShared(ctx, v)
	if err != nil {
		return nil, err
	}
	var out []listed
	for name, e := range v.Registry() {
		l := listed{Name: name, Origin: "global", Hash: e.Hash, From: definition.FromRegistry, Updated: e.Timestamp, Versions: 1 + len(e.History)}
		d, err := workflow.FromNode(known, e.Hash)
		if err != nil {
			l.Error = err.Error() // one damaged workflow doesn't hide the others
		} else {
			l.Dialect = d.Dialect
		}
		out = append(out, l)
	}
	return out, nil
}

// readShared reads workflows and schemas at once: one by one, each would be a request.
func readShared(ctx context.Context, v *gitcas.View) (node.Map, error) {
	out := node.Map{}
	err := v.Shared(ctx, func(h node.Hash, n node.Node) error {
		out[h] = n
		return nil
	})
	return out, err
}

package workflow

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// registered is what a name means in the registry, as a command found it.
type registered struct {
	gitcas.RegistryEntry
	name  string
	store *gitcas.Store
	view  *gitcas.View
}

// findRegistered finds a name in the registry.
func findRegistered(ctx context.Context, f *app.Factory, name string) (registered, error) {
	r := registered{name: name}
	var err error
	if r.store, r.view, err = lookup.Load(ctx, f.Store); err != nil {
		return r, err
	}
	var there bool
	if r.RegistryEntry, there = r.view.Registry()[name]; !there {
		near := app.SuggestNames(name, slices.Collect(maps.Keys(r.view.Registry())))
		return r, &app.UnknownError{What: "registered workflow", ID: name, Near: near, See: "uwf workflow list"}
	}
	return r, nil
}

// listVersions are the workflows that the name has meant, the present one first.
func (r registered) listVersions() []gitcas.RegistryVersion {
	return append([]gitcas.RegistryVersion{{Hash: r.Hash, Timestamp: r.Timestamp}}, r.History...)
}

// changeTarget lets the name mean another workflow, or with an empty target nothing, and reports
// whether it did: perhaps the name means that already. What somebody else made of it
// meanwhile was never looked at, and stays.
func (r registered) changeTarget(ctx context.Context, subject string, target node.Hash) (changed bool, err error) {
	_, err = r.store.Update(ctx, r.view, func(v *gitcas.View) (*gitcas.Change, error) {
		switch now := v.Registry()[r.name].Hash; now {
		case target:
			return nil, nil
		case r.Hash:
			changed = true
			return registerChange(v, subject, "", r.name, target), nil
		default:
			return nil, app.Usagef("%s: meanwhile somebody else set it to %s (before: %s); nothing was changed, look at it and run this again", r.name, cmp.Or(now, "nothing"), r.Hash)
		}
	})
	return changed, err
}

// registerChange makes a name mean a workflow, or nothing. The former versions come newest
// first.
func registerChange(v *gitcas.View, subject, body, name string, h node.Hash) *gitcas.Change {
	old, there := v.Registry()[name]
	c := &gitcas.Change{
		Subject: subject, Body: body,
		Trailers: []gitcas.Trailer{{Key: "Uwf-Workflow", Value: string(cmp.Or(h, old.Hash))}},
		Registry: map[string]*gitcas.RegistryEntry{name: nil},
	}
	if h != "" {
		e := &gitcas.RegistryEntry{Hash: h, Timestamp: v.Time().Truncate(time.Millisecond).UnixMilli()}
		if there {
			e.History = registered{RegistryEntry: old}.listVersions()
		}
		c.Registry[name] = e
	}
	return c
}

// completeRegistered completes names of the registry.
func completeRegistered(f *app.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return lookup.Complete(cmd, f, func(v *gitcas.View) []string { return slices.Sorted(maps.Keys(v.Registry())) }), cobra.ShellCompDirectiveNoFileComp
	}
}

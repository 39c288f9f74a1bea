// Package definition finds the workflow that an argument means (a hash, a file, a
// name in the repository's folders or in the registry) and the definition files that
// arguments mean (folders and patterns too), and compiles them. It stores nothing.
package definition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/annotation"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/examples"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
)

// MaxSize is the largest definition or included file, in bytes.
const MaxSize = 1 << 20

// Resolved is a workflow that a reference led to.
type Resolved struct {
	Definition *workflow.Definition
	Hash       node.Hash
	Node       node.Node // the workflow's own
	// Nodes are what has to be stored for it; empty when it came from the store.
	Nodes map[node.Hash]node.Node
	// From says where it was found: a file, relative to the working directory, or
	// "registry", or "store", or FromUWF.
	From string
}

// Where workflows are found besides files.
const (
	FromRegistry = "registry"
	FromStore    = "store"
)

// Resolver finds workflows: by hash, by the path of a file, by a name in the
// repository's folders, by a name in the registry, and as one that uwf has with it, in this
// order.
type Resolver struct {
	Dir  string // the working directory
	Root string // the repository's top folder; empty outside of one
	Now  func() time.Time
	// View reads the store; it is called only when it is needed, and may say
	// gitcas.ErrNoStore.
	View func(context.Context) (*gitcas.View, error)
	// Invalid is told of each definition that can't be used; nil: nobody.
	Invalid func(*workflow.InvalidError)
	// Warn is told what a definition says to no effect; nil: nobody.
	Warn func(workflow.Problem)
}

// New makes a Resolver that reads the store at most once.
func New(f *app.Factory) *Resolver {
	r := &Resolver{Dir: f.Dir, Root: f.RepoRoot(), Now: f.Now}
	r.Warn = func(p workflow.Problem) { f.Notes().Printf("warning: %s\n", p) }
	if job := annotation.Of(f); job != nil {
		r.Invalid, r.Warn = job.Invalid, job.Warn
	}
	var view *gitcas.View
	r.View = func(ctx context.Context) (*gitcas.View, error) {
		if view != nil {
			return view, nil
		}
		var err error
		_, view, err = lookup.Load(ctx, f.Store)
		return view, err
	}
	return r
}

// Resolve finds a workflow.
func (r *Resolver) Resolve(ctx context.Context, ref string) (*Resolved, error) {
	if workflow.KindOfRef(ref) == workflow.RefHash {
		return r.readStored(ctx, node.Hash(ref), FromStore)
	}
	return r.loadNamed(ctx, ref, func() (*Resolved, error) {
		found, err := r.findRegistered(ctx, ref)
		h, typed := node.ReadHash(ref)
		if typed != nil || !errors.As(err, new(*app.UnknownError)) {
			return found, err
		}
		if stored, serr := r.readStored(ctx, h, FromStore); serr == nil { // a hash in small letters
			return stored, nil
		}
		return found, err
	})
}

// File finds the file that a reference means: a path, or a name in the folders.
func (r *Resolver) File(ctx context.Context, ref string) (*Resolved, error) {
	return r.loadNamed(ctx, ref, func() (*Resolved, error) {
		names, err := r.Files()
		if err != nil {
			return nil, err
		}
		return nil, &app.UnknownError{What: "workflow file", ID: ref, Near: app.SuggestNames(ref, slices.Collect(maps.Keys(names))),
			Hint: "give the path of a YAML file, or put it into .uwf/workflows"}
	})
}

// loadNamed loads the file that a path or a name means, or else does as otherwise says.
func (r *Resolver) loadNamed(ctx context.Context, file string, otherwise func() (*Resolved, error)) (*Resolved, error) {
	if isBundle(file) {
		return nil, app.Usagef("%s %s: docs/import.md (Bundles) says how its roles and its moderator become a workflow", file, aBundle)
	}
	if workflow.KindOfRef(file) != workflow.RefPath {
		var err error
		if file, err = r.Find(file); err != nil {
			return nil, err
		}
		if file == "" {
			return otherwise()
		}
	}
	return r.Load(ctx, file)
}

// aBundle is what a workflow from before YAML is, in words.
const aBundle = "is a bundle of 2026-05, which uwf can't run yet"

func isBundle(file string) bool { return strings.HasSuffix(file, ".esm.js") }

// storeGetter finds the schemas that roles name by hash and that not every uwf knows. A
// store that does not exist yet has none.
type storeGetter struct {
	ctx context.Context
	r   *Resolver
}

// Get implements node.Getter.
func (g storeGetter) Get(h node.Hash) (node.Node, error) {
	v, err := g.r.View(g.ctx)
	if errors.Is(err, gitcas.ErrNoStore) {
		return node.Node{}, fmt.Errorf("%w: %s", node.ErrNotFound, h)
	}
	if err != nil {
		return node.Node{}, err
	}
	return v.Get(g.ctx, h)
}

// findRegistered finds a name in the registry.
func (r *Resolver) findRegistered(ctx context.Context, name string) (*Resolved, error) {
	v, err := r.View(ctx)
	if err != nil && !errors.Is(err, gitcas.ErrNoStore) {
		return nil, err
	}
	var registry map[string]gitcas.RegistryEntry
	if err == nil {
		registry = v.Registry()
	}
	if e, ok := registry[name]; ok {
		return r.readStored(ctx, e.Hash, FromRegistry)
	}
	if slices.Contains(examples.Workflows(), name) {
		return r.Preset(ctx, name)
	}
	files, err := r.Files()
	if err != nil {
		return nil, err
	}
	known := slices.Concat(slices.Collect(maps.Keys(files)), slices.Collect(maps.Keys(registry)), examples.Workflows())
	e := &app.UnknownError{What: "workflow", ID: name, Near: app.SuggestNames(name, known), See: "uwf workflow list"}
	if workflow.CheckName(name) != "" { // a task, most likely
		e.See, e.Hint = "", "what is to be done is said with -p: uwf run -p \"…\""
	}
	return nil, e
}

// readStored reads a workflow of the store.
func (r *Resolver) readStored(ctx context.Context, h node.Hash, from string) (*Resolved, error) {
	v, err := r.View(ctx)
	if err != nil {
		return nil, err
	}
	var n node.Node
	d, err := workflow.FromNode(v.Getter(ctx), h)
	if err == nil {
		n, err = v.Get(ctx, h)
	}
	switch {
	case errors.Is(err, workflow.ErrNoWorkflow):
		return nil, &app.UsageError{Err: err}
	case errors.Is(err, node.ErrNotFound) && from == FromStore:
		known := slices.Collect(maps.Values(v.Registry()))
		near := lists.Map(known, func(e gitcas.RegistryEntry) string { return string(e.Hash) })
		return nil, &app.UnknownError{What: "workflow", ID: string(h), Near: app.SuggestNames(string(h), near), See: "uwf workflow list"}
	case err != nil:
		return nil, fmt.Errorf("workflow %s of the %s: %w", h, from, err)
	}
	return &Resolved{Definition: d, Hash: h, Node: n, Nodes: map[node.Hash]node.Node{}, From: from}, nil
}

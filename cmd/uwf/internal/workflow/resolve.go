package workflow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// maxDefinition is the largest definition or included file, in bytes.
const maxDefinition = 1 << 20

// Resolved is a workflow that a reference led to.
type Resolved struct {
	Definition *workflow.Definition
	Hash       node.Hash
	// Nodes are what has to be stored for it; empty when it came from the store.
	Nodes map[node.Hash]node.Node
	// From says where it was found: a file, relative to the working directory, or
	// "registry", or "store".
	From string
}

// Where workflows are found besides files.
const (
	FromRegistry = "registry"
	FromStore    = "store"
)

// Resolver finds workflows: by hash, by the path of a file, by a name in the
// repository's folders, by a name in the registry, in this order.
type Resolver struct {
	Dir  string // the working directory
	Root string // the repository's top folder; empty outside of one
	Now  func() time.Time
	// View reads the store; it is called only when it is needed, and may say
	// gitcas.ErrNoStore.
	View func(context.Context) (*gitcas.View, error)
}

// NewResolver makes a Resolver that reads the store at most once.
func NewResolver(f *app.Factory) *Resolver {
	r := &Resolver{Dir: f.Dir, Root: f.RepoRoot(), Now: f.Now}
	var view *gitcas.View
	r.View = func(ctx context.Context) (*gitcas.View, error) {
		if view != nil {
			return view, nil
		}
		store, err := f.Store(ctx)
		if err != nil {
			return nil, err
		}
		v, err := store.Load(ctx)
		if err == nil {
			view = v
		}
		return v, err
	}
	return r
}

// Resolve finds a workflow.
func (r *Resolver) Resolve(ctx context.Context, ref string) (*Resolved, error) {
	switch workflow.KindOfRef(ref) {
	case workflow.RefHash:
		return r.stored(ctx, node.Hash(ref), FromStore)
	case workflow.RefPath:
		return r.file(ctx, ref)
	}
	file, err := r.find(ref)
	if err != nil {
		return nil, err
	}
	if file != "" {
		return r.file(ctx, file)
	}
	return r.registered(ctx, ref)
}

// File finds the file that a reference means: a path, or a name in the folders.
func (r *Resolver) File(ctx context.Context, ref string) (*Resolved, error) {
	if workflow.KindOfRef(ref) == workflow.RefPath {
		return r.file(ctx, ref)
	}
	file, err := r.find(ref)
	if err != nil {
		return nil, err
	}
	if file == "" {
		names, err := r.Files()
		if err != nil {
			return nil, err
		}
		return nil, &app.UnknownError{What: "workflow file", ID: ref, Near: app.Near(ref, slices.Collect(maps.Keys(names))),
			Hint: "give the path of a YAML file, or put it into .uwf/workflows"}
	}
	return r.file(ctx, file)
}

// top is the folder up to which definitions are looked for, and the working
// directory relative to it.
func (r *Resolver) top() (root, dir string) {
	if r.Root == "" {
		return r.Dir, "."
	}
	rel, err := filepath.Rel(r.Root, r.Dir)
	if err != nil || !filepath.IsLocal(rel) {
		return r.Root, "."
	}
	return r.Root, filepath.ToSlash(rel)
}

// find returns the file of a named definition; empty where there is none.
func (r *Resolver) find(name string) (string, error) {
	root, dir := r.top()
	for _, c := range workflow.Candidates(name, dir) {
		file := filepath.Join(root, filepath.FromSlash(c))
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look for the workflow %s: %w", name, err)
		}
		return r.shown(file), nil
	}
	return "", nil
}

// shown is a file relative to the working directory, as people would type it.
func (r *Resolver) shown(file string) string {
	if rel, err := filepath.Rel(r.Dir, file); err == nil {
		return rel
	}
	return file
}

// Files lists the definitions in the repository's folders: name → file. Of two
// with one name the one that Resolve would take counts.
func (r *Resolver) Files() (map[string]string, error) {
	out := map[string]string{}
	root, dir := r.top()
	// The candidates of any name tell the folders, in order of precedence.
	for _, c := range workflow.Candidates("x", dir) {
		folder, ext := path.Dir(c), path.Ext(c)
		entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(folder)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list workflows: %w", err)
		}
		for _, e := range entries {
			name, ok := strings.CutSuffix(e.Name(), ext)
			if _, taken := out[name]; ok && !taken && !e.IsDir() && workflow.CheckName(name) == "" {
				out[name] = r.shown(filepath.Join(root, filepath.FromSlash(folder), e.Name()))
			}
		}
	}
	return out, nil
}

// file reads and compiles a definition. Includes are confined to its folder, also
// through symbolic links.
func (r *Resolver) file(ctx context.Context, name string) (res *Resolved, err error) {
	full := name
	if !filepath.IsAbs(full) {
		full = filepath.Join(r.Dir, name)
	}
	folder, err := os.OpenRoot(filepath.Dir(full))
	if err != nil {
		return nil, &app.UsageError{Err: fmt.Errorf("read the workflow %s: %w", name, err)}
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	// The file itself may be a link to anywhere: it was named by the user.
	data, err := app.ReadRegular(full, maxDefinition)
	if err != nil {
		return nil, &app.UsageError{Err: fmt.Errorf("read the workflow %s: %w", name, err)}
	}
	d, err := workflow.Parse(filepath.ToSlash(name), data, workflow.Options{
		Include: func(inc string) ([]byte, error) { return readIn(folder, inc) },
		Nodes:   storeGetter{ctx, r},
	})
	if err != nil {
		return nil, err
	}
	hash, nodes, err := workflow.Materialize(d, r.Now())
	if err != nil {
		return nil, fmt.Errorf("workflow %s: %w", name, err)
	}
	res = &Resolved{Definition: d, Hash: hash, From: name, Nodes: map[node.Hash]node.Node{
		record.WorkflowSchema: record.Schemas()[record.WorkflowSchema],
	}}
	for _, n := range nodes {
		h, err := n.Hash()
		if err != nil {
			return nil, fmt.Errorf("workflow %s: %w", name, err)
		}
		res.Nodes[h] = n
	}
	return res, nil
}

// readIn reads a regular file below a folder.
func readIn(root *os.Root, name string) (b []byte, err error) {
	info, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	file, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b, err = io.ReadAll(io.LimitReader(file, maxDefinition+1))
	if err == nil && len(b) > maxDefinition {
		err = fmt.Errorf("larger than %d bytes", maxDefinition)
	}
	return b, err
}

// storeGetter finds the schemas that roles name by hash. A store that does not
// exist yet has none but the known ones.
type storeGetter struct {
	ctx context.Context
	r   *Resolver
}

// Get implements node.Getter.
func (g storeGetter) Get(h node.Hash) (node.Node, error) {
	for _, known := range []map[node.Hash]node.Node{node.Builtin(), record.Schemas()} {
		if n, ok := known[h]; ok {
			return n, nil
		}
	}
	v, err := g.r.View(g.ctx)
	if errors.Is(err, gitcas.ErrNoStore) {
		return node.Node{}, fmt.Errorf("%w: %s", node.ErrNotFound, h)
	}
	if err != nil {
		return node.Node{}, err
	}
	return v.Get(g.ctx, h)
}

// registered finds a name in the registry.
func (r *Resolver) registered(ctx context.Context, name string) (*Resolved, error) {
	v, err := r.View(ctx)
	if err != nil && !errors.Is(err, gitcas.ErrNoStore) {
		return nil, err
	}
	var registry map[string]gitcas.RegistryEntry
	if err == nil {
		registry = v.Registry()
	}
	if e, ok := registry[name]; ok {
		return r.stored(ctx, e.Hash, FromRegistry)
	}
	files, err := r.Files()
	if err != nil {
		return nil, err
	}
	known := slices.AppendSeq(slices.Collect(maps.Keys(files)), maps.Keys(registry))
	return nil, &app.UnknownError{What: "workflow", ID: name, Near: app.Near(name, known), See: "uwf workflow list"}
}

// stored reads a workflow of the store.
func (r *Resolver) stored(ctx context.Context, h node.Hash, from string) (*Resolved, error) {
	v, err := r.View(ctx)
	if err != nil {
		return nil, err
	}
	d, err := workflow.FromNode(v.Getter(ctx), h)
	switch {
	case errors.Is(err, workflow.ErrNoWorkflow):
		return nil, &app.UsageError{Err: err}
	case errors.Is(err, node.ErrNotFound) && from == FromStore:
		var near []string
		for _, e := range v.Registry() {
			near = append(near, string(e.Hash))
		}
		return nil, &app.UnknownError{What: "workflow", ID: string(h), Near: app.Near(string(h), near), See: "uwf workflow list"}
	case err != nil:
		return nil, fmt.Errorf("workflow %s of the %s: %w", h, from, err)
	}
	return &Resolved{Definition: d, Hash: h, Nodes: map[node.Hash]node.Node{}, From: from}, nil
}

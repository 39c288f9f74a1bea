package definition

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// topFolder is the folder up to which definitions are looked for, and the working
// directory relative to it.
func (r *Resolver) topFolder() (root, dir string) {
	if r.Root == "" {
		return r.Dir, "."
	}
	rel, err := filepath.Rel(r.Root, r.Dir)
	if err != nil || !filepath.IsLocal(rel) {
		return r.Root, "."
	}
	return r.Root, filepath.ToSlash(rel)
}

// Find returns the file of a named definition; empty where there is none.
func (r *Resolver) Find(name string) (string, error) {
	root, dir := r.topFolder()
	for _, c := range workflow.Candidates(name, dir) {
		file := filepath.Join(root, filepath.FromSlash(c))
		there, err := isFile(file)
		if err != nil {
			return "", fmt.Errorf("look for the workflow %s: %w", name, err)
		}
		if there {
			return r.shownPath(file), nil
		}
	}
	return "", nil
}

// isFile reports whether a path names something that is no folder.
func isFile(file string) (bool, error) {
	info, err := os.Stat(file)
	if isMissing(err) {
		return false, nil
	}
	return err == nil && !info.IsDir(), err
}

// isMissing reports that a path leads nowhere: nothing is there, or a file is where
// a folder would have to be.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// shownPath is a file relative to the working directory, as people would type it.
func (r *Resolver) shownPath(file string) string {
	if rel, err := filepath.Rel(r.Dir, file); err == nil {
		return rel
	}
	return file
}

// Full is the absolute path of a file that was named.
func (r *Resolver) Full(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(r.Dir, name)
}

// Place is a definition in one of the repository's folders.
type Place struct{ Name, File string }

// Places lists the definitions in the repository's folders in the order in which
// they are tried. Of several with one name the first is what the name means.
func (r *Resolver) Places() ([]Place, error) {
	root, dir := r.topFolder()
	var out []Place
	for _, folder := range workflow.Folders(dir) {
		found, err := r.placesIn(filepath.Join(root, filepath.FromSlash(folder)))
		if err != nil {
			return nil, fmt.Errorf("list workflows: %w", err)
		}
		out = append(out, found...)
	}
	return out, nil
}

// placesIn lists the definitions in one folder.
func (r *Resolver) placesIn(folder string) ([]Place, error) {
	entries, err := os.ReadDir(folder)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
			names = append(names, name[:len(name)-len(ext)])
		}
		names = append(names, name) // the name of a folder with an index, perhaps
	}
	slices.Sort(names)
	var out []Place
	for _, name := range slices.Compact(names) {
		if workflow.CheckName(name) != "" {
			continue
		}
		for _, layout := range workflow.Layouts(name) {
			file := filepath.Join(folder, filepath.FromSlash(layout))
			there, err := isFile(file)
			if err != nil {
				return nil, err
			}
			if there {
				out = append(out, Place{name, r.shownPath(file)})
			}
		}
	}
	return out, nil
}

// Files lists the definitions in the repository's folders: name → file. Of two
// with one name the one that Resolve would take counts.
func (r *Resolver) Files() (map[string]string, error) {
	list, err := r.Places()
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(list))
	for _, p := range list {
		if _, taken := out[p.Name]; !taken {
			out[p.Name] = p.File
		}
	}
	return out, nil
}

// Load reads and compiles a definition.
func (r *Resolver) Load(ctx context.Context, name string) (*Resolved, error) {
	data, err := app.ReadRegular(r.Full(name), MaxSize)
	if err != nil {
		return nil, &app.UsageError{Err: fmt.Errorf("read the workflow %s: %w", name, err)}
	}
	return r.Compile(ctx, name, data)
}

// Compile makes a workflow of a definition's text. Includes are confined to the
// folder of its file, also through symbolic links. The file itself may be a link to
// anywhere: it was named by the user.
func (r *Resolver) Compile(ctx context.Context, name string, data []byte) (res *Resolved, err error) {
	o := workflow.Options{Nodes: node.First{node.Map(node.Builtin()), node.Map(record.Schemas()), storeGetter{ctx, r}}, Warn: r.Warn}
	folder, err := os.OpenRoot(filepath.Dir(r.Full(name)))
	switch {
	case err == nil:
		defer func() { err = errors.Join(err, folder.Close()) }()
		o.Include = func(inc string) ([]byte, error) { return readIn(folder, inc) }
	case !isMissing(err):
		return nil, &app.UsageError{Err: fmt.Errorf("read the workflow %s: %w", name, err)}
	}
	d, err := workflow.Parse(filepath.ToSlash(name), data, o)
	if err != nil {
		if invalid, ok := errors.AsType[*workflow.InvalidError](err); ok && r.Invalid != nil {
			r.Invalid(invalid)
		}
		return nil, err
	}
	hash, nodes, err := workflow.Materialize(d, r.Now())
	if err != nil {
		return nil, fmt.Errorf("workflow %s: %w", name, err)
	}
	res = &Resolved{Definition: d, Hash: hash, From: name, Nodes: map[node.Hash]node.Node{}}
	for _, n := range nodes {
		h, err := n.ComputeHash()
		if err != nil {
			return nil, fmt.Errorf("workflow %s: %w", name, err)
		}
		res.Nodes[h] = n
		if h == hash {
			res.Node = n
		}
		// The schema of the workflow's own node, whichever it is, is stored with it.
		if schema, known := record.Schemas()[n.Type]; known {
			res.Nodes[n.Type] = schema
		}
	}
	return res, nil
}

// readIn reads a regular file below a folder.
func readIn(root *os.Root, name string) ([]byte, error) {
	return app.ReadRegularBy(root.Stat, root.Open, filepath.FromSlash(name), MaxSize)
}

package tree

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Edit is what changes in a folder and in those below it. The zero Edit changes nothing.
type Edit struct {
	set   map[string]gitobj.Entry // an entry with a zero id goes away
	below map[string]*Edit
	// from is the folder to begin with in place of the one that is there, and known one
	// like it that the remote has.
	from, known *Dir
}

// At is the edit of a folder below; of this one where the path is empty.
func (e *Edit) At(path string) *Edit {
	if path == "" {
		return e
	}
	for name := range strings.SplitSeq(path, "/") {
		if e.below == nil {
			e.below = map[string]*Edit{}
		}
		if e.below[name] == nil {
			e.below[name] = &Edit{}
		}
		e = e.below[name]
	}
	return e
}

// Set puts an entry into the folder. One with a zero id goes away.
func (e *Edit) Set(entry gitobj.Entry) {
	if e.set == nil {
		e.set = map[string]gitobj.Entry{}
	}
	e.set[entry.Name] = entry
}

// SetFile puts a plain file at a path.
func (e *Edit) SetFile(path string, id wire.ID) { e.setAt(path, filemode.Regular, id) }

// Remove takes away what is at a path.
func (e *Edit) Remove(path string) { e.setAt(path, filemode.Empty, wire.ZeroID) }

func (e *Edit) setAt(path string, mode filemode.FileMode, id wire.ID) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		e, path = e.At(path[:i]), path[i+1:]
	}
	e.Set(gitobj.Entry{Name: path, Mode: mode, ID: id})
}

// Replace begins with another folder than the one that is there. known is one like it that
// the remote has.
func (e *Edit) Replace(from, known *Dir) { e.from, e.known = from, known }

// Write makes the folder at path that from becomes, and those below it, each of which it
// gives to put with what it was made of and with what it is like of known, which the remote
// has; nil where there is none. It returns nil when nothing is left of the folder.
func (e *Edit) Write(ctx context.Context, r *Reader, path string, kind layout.Kind, from, known *Dir, put func(made, from, known *Dir)) (*Dir, error) {
	if e.from != nil {
		from, known = e.from, e.known
	}
	set := maps.Clone(e.set)
	for _, name := range slices.Sorted(maps.Keys(e.below)) {
		old, err := r.Below(ctx, from, name)
		if err != nil {
			return nil, err
		}
		like, err := r.Below(ctx, known, name)
		if err != nil {
			return nil, err
		}
		d, err := e.below[name].Write(ctx, r, strings.TrimPrefix(path+"/"+name, "/"), kind.ChildOf(name), old, like, put)
		if err != nil {
			return nil, err
		}
		if set == nil {
			set = map[string]gitobj.Entry{}
		}
		set[name] = gitobj.Entry{Name: name}
		if d != nil {
			set[name] = gitobj.Entry{Name: name, Mode: filemode.Dir, ID: d.Object.ID}
		}
	}
	d, err := from.afterSet(path, kind, set)
	if d != nil {
		put(d, from, known)
	}
	return d, err
}

package tree

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Dir is one folder. It does not change. A nil *Dir is a folder that is not there: git has
// no empty ones.
type Dir struct {
	Path    string // without a slash at its end; empty: the root
	Kind    layout.Kind
	Object  wire.Object
	entries []gitobj.Entry
	index   map[string]int
}

func newDir(path string, kind layout.Kind, obj wire.Object, entries []gitobj.Entry) *Dir {
	d := &Dir{Path: path, Kind: kind, Object: obj, entries: entries, index: make(map[string]int, len(entries))}
	for i, e := range entries {
		d.index[e.Name] = i
	}
	return d
}

// Parse reads a folder and looks at every entry: what is foreign to the layout is damage.
func Parse(path string, kind layout.Kind, obj wire.Object) (*Dir, error) {
	if obj.Type != plumbing.TreeObject {
		return nil, Damaged(quotePath(path), "it is a %s, not a folder", obj.Type)
	}
	entries, err := gitobj.DecodeTree(obj.Data)
	if err != nil {
		return nil, DamagedBy(quotePath(path), err)
	}
	d := newDir(path, kind, obj, entries)
	for _, e := range entries {
		if err := d.checkEntry(e); err != nil {
			return nil, DamagedBy(d.PathOf(e.Name), err)
		}
	}
	return d, nil
}

var errForeign = errors.New("a foreign file: only uwf writes to this branch; take it off with a commit of your own")

// checkEntry refuses everything but folders and plain files where the layout has them:
// symlinks, executables, submodules.
func (d *Dir) checkEntry(e gitobj.Entry) error {
	switch kind := d.Kind.ChildOf(e.Name); {
	case kind == layout.Foreign:
		return errForeign
	case kind.IsFolder() && !e.IsDir():
		return fmt.Errorf("it has the mode %s, not that of a folder", e.Mode)
	case !kind.IsFolder() && e.Mode != filemode.Regular:
		return fmt.Errorf("it has the mode %s, not that of a plain file", e.Mode)
	}
	return nil
}

func quotePath(path string) string {
	if path == "" {
		return "the root of the state branch"
	}
	return path
}

// PathOf is the path of an entry.
func (d *Dir) PathOf(name string) string {
	if d.Path == "" {
		return name
	}
	return d.Path + "/" + name
}

// Find finds an entry; there is none in a nil Dir.
func (d *Dir) Find(name string) (gitobj.Entry, bool) {
	if d == nil {
		return gitobj.Entry{}, false
	}
	i, ok := d.index[name]
	if !ok {
		return gitobj.Entry{}, false
	}
	return d.entries[i], true
}

// IDOf is the object id of an entry, zero when there is none.
func (d *Dir) IDOf(name string) wire.ID {
	e, _ := d.Find(name)
	return e.ID
}

// Entries are all entries, in git's order.
func (d *Dir) Entries() []gitobj.Entry {
	if d == nil {
		return nil
	}
	return d.entries
}

// afterSet returns the folder at path after some entries were set; one with a zero id goes away.
// It is nil when nothing is left in it. The receiver may be nil.
func (d *Dir) afterSet(path string, kind layout.Kind, set map[string]gitobj.Entry) (*Dir, error) {
	entries := slices.DeleteFunc(slices.Clone(d.Entries()), func(e gitobj.Entry) bool {
		_, ok := set[e.Name]
		return ok
	})
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if e := set[name]; !e.ID.IsZero() {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		return nil, nil
	}
	data, err := gitobj.EncodeTree(entries)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, quotePath(path), err)
	}
	return newDir(path, kind, wire.NewObject(plumbing.TreeObject, data), entries), nil
}

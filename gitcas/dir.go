package gitcas

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

// dir is one folder of the state branch. It does not change. A nil *dir is a
// folder that is not there: git has no empty ones.
type dir struct {
	path    string // without a slash at its end; empty: the root
	kind    layout.Kind
	obj     wire.Object
	entries []gitobj.Entry
	index   map[string]int
}

// parseDir reads a tree and looks at every entry: what is foreign to the layout is damage.
func parseDir(path string, kind layout.Kind, obj wire.Object) (*dir, error) {
	if obj.Type != plumbing.TreeObject {
		return nil, newContentError(quotePath(path), fmt.Sprintf("it is a %s, not a folder", obj.Type))
	}
	entries, err := gitobj.DecodeTree(obj.Data)
	if err != nil {
		return nil, contentErr(quotePath(path), err)
	}
	d := newDir(path, kind, obj, entries)
	for _, e := range entries {
		if err := d.checkEntry(e); err != nil {
			return nil, newContentError(d.pathOf(e.Name), err.Error())
		}
	}
	return d, nil
}

func newDir(path string, kind layout.Kind, obj wire.Object, entries []gitobj.Entry) *dir {
	d := &dir{path: path, kind: kind, obj: obj, entries: entries, index: make(map[string]int, len(entries))}
	for i, e := range entries {
		d.index[e.Name] = i
	}
	return d
}

var errForeign = errors.New("a foreign file: only uwf writes to this branch; take it off with a commit of your own")

// checkEntry refuses everything but folders and plain files where the layout has them:
// symlinks, executables, submodules.
func (d *dir) checkEntry(e gitobj.Entry) error {
	switch kind := d.kind.ChildOf(e.Name); {
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

// pathOf is the path of an entry.
func (d *dir) pathOf(name string) string {
	if d.path == "" {
		return name
	}
	return d.path + "/" + name
}

// findEntry finds an entry; there is none in a nil dir.
func (d *dir) findEntry(name string) (gitobj.Entry, bool) {
	if d == nil {
		return gitobj.Entry{}, false
	}
	i, ok := d.index[name]
	if !ok {
		return gitobj.Entry{}, false
	}
	return d.entries[i], true
}

// entryID is the object id of an entry, zero when there is none.
func (d *dir) entryID(name string) wire.ID {
	e, _ := d.findEntry(name)
	return e.ID
}

func (d *dir) listEntries() []gitobj.Entry {
	if d == nil {
		return nil
	}
	return d.entries
}

// dirEdit collects changes of one folder by name; an entry with a zero id goes
// away.
type dirEdit map[string]gitobj.Entry

func (e dirEdit) setFile(name string, id wire.ID) {
	e[name] = gitobj.Entry{Name: name, Mode: filemode.Regular, ID: id}
}

func (e dirEdit) setFolder(name string, d *dir) {
	if d == nil {
		e[name] = gitobj.Entry{Name: name}
		return
	}
	e[name] = gitobj.Entry{Name: name, Mode: filemode.Dir, ID: d.obj.ID}
}

func (e dirEdit) removeEntry(name string) { e[name] = gitobj.Entry{Name: name} }

// afterEdit returns the folder at path after an edit; nil when nothing is left in it.
// The receiver may be nil.
func (d *dir) afterEdit(path string, kind layout.Kind, edit dirEdit) (*dir, error) {
	entries := make([]gitobj.Entry, 0, len(d.listEntries())+len(edit))
	for _, e := range d.listEntries() {
		if _, ok := edit[e.Name]; !ok {
			entries = append(entries, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(edit)) {
		if e := edit[name]; !e.ID.IsZero() {
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

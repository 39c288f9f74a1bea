package workspace

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
)

// entry is one line of a tree.
type entry struct {
	name  string
	mode  filemode.FileMode
	id    wire.ID
	size  int64        // of a file whose content was read or written, otherwise 0
	stamp stamps.Stamp // what the file looked like when its content had this id
	dir   *dir         // the content, when it is a folder
}

// looksLike reports whether a file still looks as it did when its content was read.
func (e *entry) looksLike(st stamps.Stat) bool {
	return e != nil && e.stamp.IsKnown() && e.stamp == st.Stamp
}

// isSize reports whether a file of that size can be the entry's: it is at most the limit, or of
// the size of the entry, which is known from it or from what was seen last.
func isSize(limit, size int64, e, seen *entry) bool {
	if size <= limit || e.size == size {
		return true
	}
	return seen != nil && seen.id == e.id && seen.size == size
}

// asFolder is what is in an entry that is a folder; nil: there is none.
func (e *entry) asFolder() *dir {
	if e == nil {
		return nil
	}
	return e.dir
}

// asFile is an entry that is no folder; nil where it is one.
func (e *entry) asFile() *entry {
	if e == nil || e.mode == filemode.Dir {
		return nil
	}
	return e
}

// idOf returns the id of an entry, and zero for no entry.
func (e *entry) idOf() wire.ID {
	if e == nil {
		return wire.ZeroID
	}
	return e.id
}

func (e *entry) isSubmodule() bool { return e != nil && e.mode == filemode.Submodule }

func (e *entry) isLink() bool { return e.mode == filemode.Symlink }

// firstSubmodule returns the path of the first submodule at or below an entry, which is at path,
// or "".
func (e *entry) firstSubmodule(path string) string {
	if e.isSubmodule() {
		return path
	}
	if d := e.asFolder(); d != nil {
		for below := range d.filesThat((*entry).isSubmodule) {
			return joinPath(path, below)
		}
	}
	return ""
}

func sameEntry(a, b *entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.mode == b.mode && a.id == b.id
}

func isRegular(e *entry) bool { return isFile(e.mode) }

func isFile(m filemode.FileMode) bool {
	return m == filemode.Regular || m == filemode.Executable || m == filemode.Deprecated
}

func blobID(data []byte) wire.ID { return plumbing.ComputeHash(plumbing.BlobObject, data) }

// joinPath puts a name behind a folder's path; the top folder's path is empty.
func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// dir is a git tree with everything below it. It is not changed once it is
// complete, so several places may share one.
type dir struct {
	id      wire.ID
	entries []entry // sorted by name, bytewise
	files   int     // entries at and below that are no folders
	folders int     // folders below
	depth   int     // folders on the longest way down, this one included
	longest int     // bytes of the longest path below
}

// emptyDir is the tree without entries.
func emptyDir() *dir { return &dir{id: wire.EmptyTree, depth: 1} }

// cloneDir copies a dir, not what is below it, without stamps.
func cloneDir(d *dir) *dir {
	c := *d
	c.entries = slices.Clone(d.entries)
	for i := range c.entries {
		c.entries[i].stamp = stamps.Stamp{}
	}
	return &c
}

// entryOf is the entry of a folder; nil where there is none.
func entryOf(name string, d *dir) *entry {
	if d == nil {
		return nil
	}
	return &entry{name: name, mode: filemode.Dir, id: d.id, dir: d}
}

// findEntry returns the entry of that name, or nil. A nil dir has none.
func (d *dir) findEntry(name string) *entry {
	if d == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(d.entries, name, func(e entry, n string) int { return strings.Compare(e.name, n) })
	if !ok {
		return nil
	}
	return &d.entries[i]
}

// findFolder returns the folder of that name, or nil.
func (d *dir) findFolder(name string) *dir { return d.findEntry(name).asFolder() }

// allEntries returns the entries; a nil dir has none.
func (d *dir) allEntries() []entry {
	if d == nil {
		return nil
	}
	return d.entries
}

// allFiles yields the paths and entries of everything except folders, at and below the top one.
func (d *dir) allFiles() iter.Seq2[string, *entry] {
	return d.filesThat(func(*entry) bool { return true })
}

// filesThat yields the matching ones of allFiles. It makes paths for these alone: most searches
// match few files of many.
func (d *dir) filesThat(match func(e *entry) bool) iter.Seq2[string, *entry] {
	return func(yield func(string, *entry) bool) { d.yieldFiles("", match, yield) }
}

func (d *dir) yieldFiles(path string, match func(*entry) bool, yield func(string, *entry) bool) bool {
	for i := range d.entries {
		e := &d.entries[i]
		switch {
		case e.dir != nil:
			if !e.dir.yieldFiles(joinPath(path, e.name), match, yield) {
				return false
			}
		case match(e) && !yield(joinPath(path, e.name), e):
			return false
		}
	}
	return true
}

// listContents lists the ids of all that the tree's files and links hold.
func (d *dir) listContents() map[wire.ID]bool {
	ids := make(map[wire.ID]bool, d.files)
	for _, e := range d.allFiles() {
		if e.mode != filemode.Submodule {
			ids[e.id] = true
		}
	}
	return ids
}

// measureTree sets what is computed from the entries.
func (d *dir) measureTree() {
	d.files, d.folders, d.depth, d.longest = 0, 0, 1, 0
	for i := range d.entries {
		e := &d.entries[i]
		n := len(e.name)
		if e.dir == nil {
			d.files++
		} else {
			d.files += e.dir.files
			d.folders += e.dir.folders + 1
			d.depth = max(d.depth, e.dir.depth+1)
			n += 1 + e.dir.longest
		}
		d.longest = max(d.longest, n)
	}
}

// checkSize refuses trees that are too large. Counting on the way up finds a
// small pack that unfolds to billions of files before it is unfolded.
func (d *dir) checkSize(op, path string, maxFiles int) error {
	for _, c := range []struct {
		is, most int
		what     string
	}{{d.files, maxFiles, "files"}, {d.folders, maxFiles, "folders"}, {d.depth, maxDepth, "levels of folders"}, {d.longest, maxPath, "bytes in a path"}} {
		if c.is > c.most {
			return rooted.NewError(ErrLimit, op, path, "more than %d %s: remove what is not needed, or add it to .gitignore", c.most, c.what)
		}
	}
	return nil
}

// treeObject is the git tree with these entries.
func treeObject(entries []entry) (wire.Object, error) {
	list := make([]gitobj.Entry, len(entries))
	for i := range entries {
		e := &entries[i]
		list[i] = gitobj.Entry{Name: e.name, Mode: e.mode, ID: e.id}
	}
	data, err := gitobj.EncodeTree(list)
	if err != nil {
		return wire.Object{}, err
	}
	return wire.NewObject(plumbing.TreeObject, data), nil
}

// newObjects are objects that have to be pushed.
type newObjects struct {
	list []wire.PackObject
	had  map[wire.ID]bool // those in the list, and others that the remote has
}

func (n *newObjects) addObject(o wire.Object, base *wire.Object) {
	if !n.had[o.ID] {
		n.had[o.ID] = true
		n.list = append(n.list, wire.PackObject{Object: o, Base: base})
	}
}

// addTree completes a folder whose entries are known: it gives it its id and adds its
// object, as a delta against base, which the remote has. Without entries it is nil.
func (n *newObjects) addTree(d, base *dir) (*dir, error) {
	if len(d.entries) == 0 {
		return nil, nil
	}
	d.measureTree()
	same := func(a, b entry) bool { return a.name == b.name && sameEntry(&a, &b) }
	if base != nil && slices.EqualFunc(d.entries, base.entries, same) {
		d.id = base.id
		return d, nil
	}
	o, err := treeObject(d.entries)
	if err != nil {
		return nil, fmt.Errorf("make a tree: %w", err)
	}
	d.id = o.ID
	var old *wire.Object
	if len(base.allEntries()) > 0 {
		// An old program may have written base in a form that is not ours.
		if b, err := treeObject(base.entries); err == nil && b.ID == base.id {
			old = &b
		}
	}
	n.addObject(o, old)
	return d, nil
}

// allNames are the names in any of several versions of a folder, sorted.
func allNames(versions ...*dir) []string {
	names := map[string]bool{}
	for _, d := range versions {
		for _, e := range d.allEntries() {
			names[e.name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func sameDir(a, b *dir) bool {
	return a == b || a != nil && b != nil && a.id == b.id
}

// compareTrees visits what differs in two versions of a folder, folders before what is in
// them; nil stands for what one version doesn't have.
func compareTrees(path string, was, is *dir, visit func(path string, was, is *entry) error) error {
	if sameDir(was, is) {
		return nil
	}
	for _, name := range allNames(was, is) {
		at, w, i := joinPath(path, name), was.findEntry(name), is.findEntry(name)
		if sameEntry(w, i) {
			continue
		}
		if err := visit(at, w, i); err != nil {
			return err
		}
		if err := compareTrees(at, w.asFolder(), i.asFolder(), visit); err != nil {
			return err
		}
	}
	return nil
}

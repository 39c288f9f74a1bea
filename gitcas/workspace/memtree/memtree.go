// Package memtree holds a git tree with everything below it in memory: to look things up in it, to
// compare two of them, and to make a new one with the objects that a push needs.
package memtree

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

const (
	// MaxDepth is how deep folders may lie in one another.
	MaxDepth = 256
	// MaxPath is the length of the longest path, in bytes (PATH_MAX of Linux).
	MaxPath = 4096
)

// Entry is one line of a tree.
type Entry struct {
	Name  string
	Mode  filemode.FileMode
	ID    wire.ID
	Size  int64        // of a file whose content was read or written, otherwise 0
	Stamp stamps.Stamp // what the file looked like when its content had this id
	Dir   *Dir         // the content, when it is a folder
}

// LooksLike reports whether a file still looks as it did when its content was read.
func (e *Entry) LooksLike(st stamps.Stat) bool {
	return e != nil && e.Stamp.IsKnown() && e.Stamp == st.Stamp
}

// IsSize reports whether a file of that size can be the entry's. Above the limit it must have the
// size of the entry or, if only that is known, of the entry with the same id that was seen last.
func IsSize(limit, size int64, e, seen *Entry) bool {
	if size <= limit || e.Size == size {
		return true
	}
	return seen != nil && seen.ID == e.ID && seen.Size == size
}

// AsFolder returns the content of a folder; nil: e is no folder.
func (e *Entry) AsFolder() *Dir {
	if e == nil {
		return nil
	}
	return e.Dir
}

// AsFile returns e; nil: e is a folder.
func (e *Entry) AsFile() *Entry {
	if e == nil || e.Mode == filemode.Dir {
		return nil
	}
	return e
}

// IDOf returns the id of an entry, and zero for no entry.
func (e *Entry) IDOf() wire.ID {
	if e == nil {
		return wire.ZeroID
	}
	return e.ID
}

// IsSubmodule reports whether an entry is a submodule.
func (e *Entry) IsSubmodule() bool { return e != nil && e.Mode == filemode.Submodule }

// IsLink reports whether an entry is a symlink.
func (e *Entry) IsLink() bool { return e.Mode == filemode.Symlink }

// FirstSubmodule returns the path of the first submodule at or below an entry, which is at path,
// or "".
func (e *Entry) FirstSubmodule(path string) string {
	if e.IsSubmodule() {
		return path
	}
	if d := e.AsFolder(); d != nil {
		for below := range d.FilesThat((*Entry).IsSubmodule) {
			return JoinPath(path, below)
		}
	}
	return ""
}

// SameEntry reports whether two entries have one mode and one content.
func SameEntry(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Mode == b.Mode && a.ID == b.ID
}

// IsRegular reports whether an entry is a file.
func IsRegular(e *Entry) bool { return IsFile(e.Mode) }

// IsFile reports whether a mode is that of a file, executable or not.
func IsFile(m filemode.FileMode) bool {
	return m == filemode.Regular || m == filemode.Executable || m == filemode.Deprecated
}

// BlobID is the id of a blob with that content.
func BlobID(data []byte) wire.ID { return plumbing.ComputeHash(plumbing.BlobObject, data) }

// JoinPath puts a name behind a folder's path; the top folder's path is empty.
func JoinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// Dir is a git tree with everything below it. It is not changed once it is
// complete, so several places may share one.
type Dir struct {
	ID      wire.ID
	Entries []Entry // sorted by name, bytewise
	Files   int     // entries at and below that are no folders
	folders int     // folders below
	Depth   int     // folders on the longest way down, this one included
	longest int     // bytes of the longest path below
}

// EmptyDir is the tree without entries.
func EmptyDir() *Dir { return &Dir{ID: wire.EmptyTree, Depth: 1} }

// CloneDir copies a dir, not what is below it, without stamps.
func CloneDir(d *Dir) *Dir {
	c := *d
	c.Entries = slices.Clone(d.Entries)
	for i := range c.Entries {
		c.Entries[i].Stamp = stamps.Stamp{}
	}
	return &c
}

// EntryOf returns the entry of a folder; nil for no folder.
func EntryOf(name string, d *Dir) *Entry {
	if d == nil {
		return nil
	}
	return &Entry{Name: name, Mode: filemode.Dir, ID: d.ID, Dir: d}
}

// FindEntry returns the entry of that name, or nil. A nil dir has none.
func (d *Dir) FindEntry(name string) *Entry {
	if d == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(d.Entries, name, func(e Entry, n string) int { return strings.Compare(e.Name, n) })
	if !ok {
		return nil
	}
	return &d.Entries[i]
}

// FindFolder returns the folder of that name, or nil.
func (d *Dir) FindFolder(name string) *Dir { return d.FindEntry(name).AsFolder() }

// AllEntries returns the entries; a nil dir has none.
func (d *Dir) AllEntries() []Entry {
	if d == nil {
		return nil
	}
	return d.Entries
}

// AllFiles yields the paths and entries of everything except folders, at and below the top one.
func (d *Dir) AllFiles() iter.Seq2[string, *Entry] {
	return d.FilesThat(func(*Entry) bool { return true })
}

// FilesThat yields the matching ones of AllFiles. It makes paths for these alone: most searches
// match few files of many.
func (d *Dir) FilesThat(match func(e *Entry) bool) iter.Seq2[string, *Entry] {
	return func(yield func(string, *Entry) bool) { d.yieldFiles("", match, yield) }
}

func (d *Dir) yieldFiles(path string, match func(*Entry) bool, yield func(string, *Entry) bool) bool {
	for i := range d.Entries {
		e := &d.Entries[i]
		switch {
		case e.Dir != nil:
			if !e.Dir.yieldFiles(JoinPath(path, e.Name), match, yield) {
				return false
			}
		case match(e) && !yield(JoinPath(path, e.Name), e):
			return false
		}
	}
	return true
}

// ListContents lists the ids of all that the tree's files and links hold.
func (d *Dir) ListContents() map[wire.ID]bool {
	ids := make(map[wire.ID]bool, d.Files)
	for _, e := range d.AllFiles() {
		if e.Mode != filemode.Submodule {
			ids[e.ID] = true
		}
	}
	return ids
}

// MeasureTree sets what is computed from the entries.
func (d *Dir) MeasureTree() {
	d.Files, d.folders, d.Depth, d.longest = 0, 0, 1, 0
	for i := range d.Entries {
		e := &d.Entries[i]
		n := len(e.Name)
		if e.Dir == nil {
			d.Files++
		} else {
			d.Files += e.Dir.Files
			d.folders += e.Dir.folders + 1
			d.Depth = max(d.Depth, e.Dir.Depth+1)
			n += 1 + e.Dir.longest
		}
		d.longest = max(d.longest, n)
	}
}

// CheckSize refuses trees that are too large. Counting on the way up finds a
// small pack that unfolds to billions of files before it is unfolded.
func (d *Dir) CheckSize(op, path string, maxFiles int) error {
	for _, c := range []struct {
		is, most int
		what     string
	}{{d.Files, maxFiles, "files"}, {d.folders, maxFiles, "folders"}, {d.Depth, MaxDepth, "levels of folders"}, {d.longest, MaxPath, "bytes in a path"}} {
		if c.is > c.most {
			return rooted.NewError(rooted.ErrLimit, op, path, "more than %d %s: remove what is not needed, or add it to .gitignore", c.most, c.what)
		}
	}
	return nil
}

// TreeObject is the git tree with these entries.
func TreeObject(entries []Entry) (wire.Object, error) {
	list := make([]gitobj.Entry, len(entries))
	for i := range entries {
		e := &entries[i]
		list[i] = gitobj.Entry{Name: e.Name, Mode: e.Mode, ID: e.ID}
	}
	data, err := gitobj.EncodeTree(list)
	if err != nil {
		return wire.Object{}, err
	}
	return wire.NewObject(plumbing.TreeObject, data), nil
}

// Objects are objects that have to be pushed.
type Objects struct {
	List []wire.PackObject
	Had  map[wire.ID]bool // those in the list, and others that the remote has
}

// AddObject adds an object, once.
func (n *Objects) AddObject(o wire.Object, base *wire.Object) {
	if !n.Had[o.ID] {
		n.Had[o.ID] = true
		n.List = append(n.List, wire.PackObject{Object: o, Base: base})
	}
}

// AddTree completes a folder whose entries are known: it gives it its id and adds its
// object, as a delta against base, which the remote has. Without entries it is nil.
func (n *Objects) AddTree(d, base *Dir) (*Dir, error) {
	if len(d.Entries) == 0 {
		return nil, nil
	}
	d.MeasureTree()
	same := func(a, b Entry) bool { return a.Name == b.Name && SameEntry(&a, &b) }
	if base != nil && slices.EqualFunc(d.Entries, base.Entries, same) {
		d.ID = base.ID
		return d, nil
	}

	o, err := TreeObject(d.Entries)
	if err != nil {
		return nil, fmt.Errorf("make a tree: %w", err)
	}
	d.ID = o.ID

	var old *wire.Object
	if len(base.AllEntries()) > 0 {
		// An old program may have written base in a form that is not ours.
		if b, err := TreeObject(base.Entries); err == nil && b.ID == base.ID {
			old = &b
		}
	}
	n.AddObject(o, old)
	return d, nil
}

// AllNames are the names in any of several versions of a folder, sorted.
func AllNames(versions ...*Dir) []string {
	names := map[string]bool{}
	for _, d := range versions {
		for _, e := range d.AllEntries() {
			names[e.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// SameDir reports whether two folders hold the same.
func SameDir(a, b *Dir) bool {
	return a == b || a != nil && b != nil && a.ID == b.ID
}

// CompareTrees visits what differs in two versions of a folder, folders before what is in
// them; nil stands for what one version doesn't have.
func CompareTrees(path string, was, is *Dir, visit func(path string, was, is *Entry) error) error {
	if SameDir(was, is) {
		return nil
	}
	for _, name := range AllNames(was, is) {
		at, w, i := JoinPath(path, name), was.FindEntry(name), is.FindEntry(name)
		if SameEntry(w, i) {
			continue
		}
		if err := visit(at, w, i); err != nil {
			return err
		}
		if err := CompareTrees(at, w.AsFolder(), i.AsFolder(), visit); err != nil {
			return err
		}
	}
	return nil
}

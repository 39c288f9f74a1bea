package workspace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// RebuildSnapshot makes a snapshot again of which only the tree and the new objects are
// left, and which anybody may have written; but for its commit, see AddCommit. The tree is
// compared with the first parent's, and may hold no more than Workspace.Snapshot would
// have taken: nothing but new objects and what that parent has, at paths and with links
// that it allows. Objects that the tree doesn't need are left out. What else is wrong with
// it is ErrDamaged, or ErrLimit.
func RebuildSnapshot(ctx context.Context, remote wire.Remote, parents []wire.ID, tree wire.ID, objects wire.Objects) (Snapshot, error) {
	fail := func(err error) (Snapshot, error) {
		return Snapshot{}, fmt.Errorf("rebuild a snapshot of tree %s: %w", tree, err)
	}
	l, base := newLoader(remote, nil, DefaultMaxFiles), emptyDir()
	if len(parents) > 0 {
		var err error
		if base, err = l.commitTree(ctx, parents[0], blobNone, nil); err != nil {
			return fail(err)
		}
	}
	b := &rebuilder{base: base, objects: objects, sent: map[wire.ID]bool{}, out: Snapshot{Tree: tree}}
	made, err := b.loadTree(l, tree)
	if err != nil {
		return fail(err)
	}
	if err := b.compareFolders("", base, made); err != nil {
		return fail(err)
	}
	slices.SortFunc(b.out.Changes, func(x, y Change) int { return strings.Compare(x.Path, y.Path) })
	return b.out, nil
}

// AddCommit gives a snapshot its commit: the same request gives the same one.
func (s *Snapshot) AddCommit(req SnapshotRequest) error {
	o, err := commitObject(req, s.Tree)
	if err == nil {
		s.Commit, s.Objects = o.ID, append(s.Objects, wire.PackObject{Object: o})
	}
	return err
}

// rebuilder compares two trees of which the second may be a stranger's.
type rebuilder struct {
	base    *dir
	objects wire.Objects     // the new ones
	sent    map[wire.ID]bool // those of them that are needed
	had     map[wire.ID]bool // contents of the base; nil: not listed yet
	total   int64
	out     Snapshot
}

func newRefusal(path, format string, args ...any) error {
	return &Error{Op: "rebuild", Path: path, Kind: ErrDamaged, Detail: fmt.Sprintf(format, args...)}
}

// loadTree reads the tree from the new objects and those of the base. Nothing is fetched: what
// the remote has beside the base is not the tree's to name.
func (b *rebuilder) loadTree(of *loader, tree wire.ID) (*dir, error) {
	l := newLoader(nil, of.objects, of.maxFiles)
	maps.Copy(l.objects, b.objects)
	l.dirs, l.partial = of.dirs, map[wire.ID]bool{}
	d, err := l.buildDir(tree, 0)
	if err == nil && len(l.missing) > 0 {
		err = newRefusal(l.missing[0].String(), "the folder is neither new nor in the parent")
	}
	return d, err
}

func (b *rebuilder) compareFolders(path string, was, is *dir) error {
	if sameDir(was, is) {
		return nil
	}
	if is != nil {
		b.noteNeeded(is.id)
	}
	names := map[string]bool{}
	for _, d := range []*dir{was, is} {
		for _, e := range d.allEntries() {
			names[e.name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if err := b.compareEntries(joinPath(path, name), was.findEntry(name), is.findEntry(name)); err != nil {
			return err
		}
	}
	return nil
}

func (b *rebuilder) compareEntries(path string, was, is *entry) error {
	if sameEntry(was, is) {
		return nil
	}
	if err := b.noteFile(path, fileOf(was), fileOf(is)); err != nil {
		return err
	}
	return b.compareFolders(path, dirOf(was), dirOf(is))
}

// fileOf is an entry that is no folder; nil where it is one.
func fileOf(e *entry) *entry {
	if e == nil || e.mode == filemode.Dir {
		return nil
	}
	return e
}

// noteFile notes the change of one file.
func (b *rebuilder) noteFile(path string, was, is *entry) error {
	c := Change{Path: path, Kind: Modified}
	if was != nil {
		c.Old, c.OldMode, c.Blob = was.id, was.mode, was.id
	}
	switch {
	case was == nil && is == nil:
		return nil
	case is == nil:
		c.Kind = Deleted
		b.out.Changes = append(b.out.Changes, c)
		return nil
	case was == nil:
		c.Kind = Added
	}
	c.Blob, c.Mode = is.id, is.mode
	if is.mode == filemode.Submodule {
		return newRefusal(path, "a submodule that the parent doesn't have")
	}
	if err := CheckPath(path, is.mode); err != nil {
		return newRefusal(path, "%v", err)
	}
	if err := b.checkContent(&c); err != nil {
		return err
	}
	b.out.Changes = append(b.out.Changes, c)
	return nil
}

// checkContent checks what a file has in it.
func (b *rebuilder) checkContent(c *Change) error {
	o, isNew := b.objects[c.Blob]
	switch {
	case !isNew && !b.hadContent(c.Blob):
		return newRefusal(c.Path, "its content %s is neither new nor in the parent", c.Blob)
	case !isNew:
		return nil
	case o.Type != plumbing.BlobObject:
		return newRefusal(c.Path, "its content is a %s", o.Type)
	}
	c.Size = int64(len(o.Data))
	if b.noteNeeded(o.ID) {
		b.total += c.Size
	}
	if c.Size > DefaultMaxFile || b.total > DefaultMaxTotal {
		return &Error{Op: "rebuild", Path: c.Path, Kind: ErrLimit, Detail: fmt.Sprintf("with it there are %d bytes of new files", b.total)}
	}
	if c.Mode == filemode.Symlink {
		if err := CheckLink(c.Path, string(o.Data)); err != nil {
			return newRefusal(c.Path, "%v", err)
		}
	}
	return nil
}

// noteNeeded notes that a new object is needed, and reports whether that is news.
func (b *rebuilder) noteNeeded(id wire.ID) bool {
	o, isNew := b.objects[id]
	if !isNew || b.sent[id] {
		return false
	}
	b.sent[id] = true
	b.out.Objects = append(b.out.Objects, wire.PackObject{Object: o})
	return true
}

// hadContent reports whether any file of the base has that content.
func (b *rebuilder) hadContent(id wire.ID) bool {
	if b.had == nil {
		b.had = map[wire.ID]bool{}
		seen := map[wire.ID]bool{}
		for todo := []*dir{b.base}; len(todo) > 0; {
			d := todo[0]
			todo = todo[1:]
			for _, e := range d.allEntries() {
				switch {
				case e.mode != filemode.Dir && e.mode != filemode.Submodule:
					b.had[e.id] = true
				case e.dir != nil && !seen[e.dir.id]:
					seen[e.dir.id] = true
					todo = append(todo, e.dir)
				}
			}
		}
	}
	return b.had[id]
}

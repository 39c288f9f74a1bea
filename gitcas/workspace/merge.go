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

// MergeResult is the tree that holds both sides' edits, or the files that stand
// against it.
type MergeResult struct {
	// Tree of the merge; zero when Overlap isn't empty. Making the commit is
	// left to the caller.
	Tree wire.ID
	// Objects are the trees that are neither on the remote nor among the known
	// objects.
	Objects []wire.PackObject
	// Overlap are the paths that both sides changed, and not alike, sorted. A
	// path whose file one side made a folder is named once.
	Overlap []string
}

// Merge joins the edits that lead from base to ours with those that lead from
// base to theirs, file by file: a file that only one side changed (or both in the
// same way) is taken, and contents are never mixed. base, ours and theirs are
// commits (or trees); a zero base stands for the empty tree. What of them is not
// among the known objects is fetched from the remote, without blobs.
func Merge(ctx context.Context, remote wire.Remote, base, ours, theirs wire.ID, known wire.Objects) (MergeResult, error) {
	l := newLoader(remote, known, DefaultMaxFiles)
	var sides [3]*dir
	var wants []wire.ID
	for _, id := range []wire.ID{base, ours, theirs} {
		if _, ok := known[id]; !ok && !id.IsZero() && id != wire.EmptyTree && !slices.Contains(wants, id) {
			wants = append(wants, id)
		}
	}
	if len(wants) > 0 {
		if err := l.fetchObjects(ctx, wants, 1, blobNone, nil); err != nil {
			return MergeResult{}, fmt.Errorf("merge %s into %s: %w", ours, theirs, err)
		}
	}
	for i, id := range []wire.ID{base, ours, theirs} {
		d, err := l.readSide(ctx, id)
		if err != nil {
			return MergeResult{}, fmt.Errorf("merge %s into %s: %w", ours, theirs, err)
		}
		sides[i] = d
	}
	m := merger{objects: l.objects, made: make(map[wire.ID]bool)}
	d, err := m.mergeFolders("", sides[0], sides[1], sides[2])
	if err != nil {
		return MergeResult{}, fmt.Errorf("merge %s into %s: %w", ours, theirs, err)
	}
	if len(m.overlap) > 0 {
		slices.Sort(m.overlap)
		return MergeResult{Overlap: m.overlap}, nil
	}
	if d == nil {
		d = emptyDir()
		m.addObject(wire.NewObject(plumbing.TreeObject, nil), nil)
	}
	return MergeResult{Tree: d.id, Objects: m.out}, nil
}

// readSide reads the tree of a commit, or a tree.
func (l *loader) readSide(ctx context.Context, id wire.ID) (*dir, error) {
	if id.IsZero() {
		return emptyDir(), nil
	}
	if o, ok := l.objects[id]; ok && o.Type == plumbing.CommitObject {
		return l.fetchedTree(ctx, id)
	}
	return l.readTree(ctx, id)
}

type merger struct {
	objects wire.Objects // on the remote or known
	made    map[wire.ID]bool
	out     []wire.PackObject
	overlap []string
}

// mergeFolders merges three versions of a folder; nil stands for none. The result is
// nil when nothing is left, or when files overlap.
func (m *merger) mergeFolders(path string, base, ours, theirs *dir) (*dir, error) {
	switch {
	case sameDir(ours, theirs), sameDir(base, theirs):
		return ours, nil
	case sameDir(base, ours):
		return theirs, nil
	}
	names := make(map[string]bool)
	for _, d := range []*dir{base, ours, theirs} {
		for i := range d.allEntries() {
			names[d.entries[i].name] = true
		}
	}
	out := &dir{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		e, err := m.mergeEntries(joinPath(path, name), base.findEntry(name), ours.findEntry(name), theirs.findEntry(name))
		if err != nil {
			return nil, err
		}
		if e != nil {
			out.entries = append(out.entries, *e)
		}
	}
	if len(out.entries) == 0 || len(m.overlap) > 0 {
		return nil, nil
	}
	return m.finishFolder(out, theirs)
}

func sameDir(a, b *dir) bool {
	return a == b || a != nil && b != nil && a.id == b.id
}

// mergeEntries merges three versions of what one name stands for.
func (m *merger) mergeEntries(path string, base, ours, theirs *entry) (*entry, error) {
	switch {
	case sameEntry(ours, theirs), sameEntry(base, theirs):
		return ours, nil
	case sameEntry(base, ours):
		return theirs, nil
	}
	o, t := dirOf(ours), dirOf(theirs)
	if ours != nil && o == nil || theirs != nil && t == nil {
		// A file or submodule on one side at least, and both changed it.
		m.overlap = append(m.overlap, path)
		return nil, nil
	}
	if base != nil && base.dir == nil && ours != nil && theirs != nil {
		// Both made a folder of the file.
		base = nil
	}
	if base != nil && base.dir == nil {
		// One side deleted the file, the other made a folder of it.
		m.overlap = append(m.overlap, path)
		return nil, nil
	}
	d, err := m.mergeFolders(path, dirOf(base), o, t)
	if err != nil || d == nil {
		return nil, err
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	return &entry{name: name, mode: filemode.Dir, id: d.id, dir: d}, nil
}

func dirOf(e *entry) *dir {
	if e == nil {
		return nil
	}
	return e.dir
}

func sameEntry(a, b *entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.mode == b.mode && a.id == b.id
}

// finishFolder makes the tree object of a merged folder, as a delta against theirs,
// which the remote has.
func (m *merger) finishFolder(d *dir, theirs *dir) (*dir, error) {
	d.measureTree()
	if d.files > DefaultMaxFiles || d.longest > maxPath || d.depth > maxDepth {
		return nil, &Error{Op: "merge", Path: ".", Kind: ErrLimit, Detail: "the joined folders are too large"}
	}
	o, err := treeObject(d.entries)
	if err != nil {
		return nil, &Error{Op: "merge", Path: ".", Kind: ErrDamaged, Err: err}
	}
	d.id = o.ID
	var base *wire.Object
	if theirs != nil {
		if b, ok := m.objects[theirs.id]; ok {
			base = &b
		}
	}
	m.addObject(o, base)
	return d, nil
}

func (m *merger) addObject(o wire.Object, base *wire.Object) {
	if _, known := m.objects[o.ID]; known || m.made[o.ID] {
		return
	}
	m.made[o.ID] = true
	m.out = append(m.out, wire.PackObject{Object: o, Base: base})
}

package workspace

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
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
	result, err := mergeTrees(ctx, remote, []wire.ID{base, ours, theirs}, known)
	if err != nil {
		return MergeResult{}, fmt.Errorf("merge %s into %s: %w", ours, theirs, err)
	}
	return result, nil
}

func mergeTrees(ctx context.Context, remote wire.Remote, sides []wire.ID, known wire.Objects) (MergeResult, error) {
	l := newLoader(remote, wire.Objects{}, DefaultMaxFiles)
	maps.Copy(l.objects, known)
	var wants []wire.ID
	for _, id := range sides {
		if _, ok := known[id]; !ok && !id.IsZero() && id != wire.EmptyTree && !slices.Contains(wants, id) {
			wants = append(wants, id)
		}
	}
	if len(wants) > 0 {
		if err := l.fetchObjects(ctx, 1, blobNone, wants...); err != nil {
			return MergeResult{}, err
		}
	}
	trees := make([]*memtree.Dir, len(sides))
	for i, id := range sides {
		var err error
		if trees[i], err = l.readSide(ctx, id); err != nil {
			return MergeResult{}, err
		}
	}
	m := merger{made: memtree.Objects{Had: make(map[wire.ID]bool)}}
	for id := range l.objects {
		m.made.Had[id] = true
	}
	d, err := m.mergeFolders("", trees[0], trees[1], trees[2])
	if err != nil {
		return MergeResult{}, err
	}
	if len(m.overlap) > 0 {
		slices.Sort(m.overlap)
		return MergeResult{Overlap: m.overlap}, nil
	}
	if d == nil {
		d = memtree.EmptyDir()
		m.made.AddObject(wire.NewObject(plumbing.TreeObject, nil), nil)
	}
	return MergeResult{Tree: d.ID, Objects: m.made.List}, d.CheckSize("merge", ".", DefaultMaxFiles)
}

// readSide reads the tree of a commit, or a tree.
func (l *loader) readSide(ctx context.Context, id wire.ID) (*memtree.Dir, error) {
	if id.IsZero() {
		return memtree.EmptyDir(), nil
	}
	if l.objects[id].Type == plumbing.CommitObject {
		return l.readCommit(ctx, id)
	}
	return l.readTree(ctx, id)
}

type merger struct {
	made    memtree.Objects
	overlap []string
}

// mergeFolders merges three versions of a folder; nil stands for none. The result is
// nil when nothing is left, or when files overlap.
func (m *merger) mergeFolders(path string, base, ours, theirs *memtree.Dir) (*memtree.Dir, error) {
	switch {
	case memtree.SameDir(ours, theirs), memtree.SameDir(base, theirs):
		return ours, nil
	case memtree.SameDir(base, ours):
		return theirs, nil
	}
	out := &memtree.Dir{}
	for _, name := range memtree.AllNames(base, ours, theirs) {
		e, err := m.mergeEntries(memtree.JoinPath(path, name), base.FindEntry(name), ours.FindEntry(name), theirs.FindEntry(name))
		if err != nil {
			return nil, err
		}
		if e != nil {
			out.Entries = append(out.Entries, *e)
		}
	}
	if len(m.overlap) > 0 {
		return nil, nil
	}
	return m.made.AddTree(out, theirs)
}

// mergeEntries merges three versions of what one name stands for.
func (m *merger) mergeEntries(path string, base, ours, theirs *memtree.Entry) (*memtree.Entry, error) {
	switch {
	case memtree.SameEntry(ours, theirs), memtree.SameEntry(base, theirs):
		return ours, nil
	case memtree.SameEntry(base, ours):
		return theirs, nil
	}
	bothFolders := ours.AsFolder() != nil && theirs.AsFolder() != nil
	if ours.AsFile() != nil || theirs.AsFile() != nil || base.AsFile() != nil && !bothFolders {
		// Both changed it, and there is a file or a submodule on one side at least, or one side
		// deleted the file that was there and the other made a folder of it.
		m.overlap = append(m.overlap, path)
		return nil, nil
	}
	d, err := m.mergeFolders(path, base.AsFolder(), ours.AsFolder(), theirs.AsFolder())
	_, name := rooted.SplitPath(path)
	return memtree.EntryOf(name, d), err
}

package view

import (
	"context"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Renamed is what a node is called that had another hash where it was imported from.
type Renamed struct {
	Hash   node.Hash
	Thread layout.ThreadID // that it came with; empty: it came with a registered workflow
}

// listsAtOnce is the most lists that are fetched in one request.
const listsAtOnce = 16

// formerLists reads the lists of former hashes of the tip.
type formerLists struct{ *View }

// FindFormer looks a hash up among those that imported nodes had. It reads all lists of
// them: for hashes that are nowhere else.
func FindFormer(ctx context.Context, v *View, h node.Hash) ([]Renamed, error) {
	dir, err := v.Reader.Below(ctx, v.Root, layout.FormerDir)
	if err != nil {
		return nil, err
	}
	var out []Renamed
	for chunk := range slices.Chunk(dir.Entries(), listsAtOnce) {
		if err := v.Reader.FetchEntries(ctx, chunk); err != nil {
			return nil, err
		}
		for _, e := range chunk {
			list, err := formerLists{v}.readFormer(ctx, dir.PathOf(e.Name), e.ID)
			if err != nil {
				return nil, err
			}
			if i := slices.IndexFunc(list, func(f statefile.Former) bool { return f.Former == h }); i >= 0 {
				id, _ := layout.ParseFormerName(e.Name)
				out = append(out, Renamed{list[i].Hash, id})
			}
		}
	}
	return out, nil
}

// readFormer reads one list, and forgets it.
func (v formerLists) readFormer(ctx context.Context, path string, id wire.ID) ([]statefile.Former, error) {
	o, err := v.Reader.Read(ctx, path, id, plumbing.BlobObject, statefile.MaxFormerFile)
	if err != nil {
		return nil, err
	}
	v.Reader.Drop(id)
	list, err := statefile.ParseFormer(o.Data)
	if err != nil {
		return nil, tree.DamagedBy(path, err)
	}
	return list, nil
}

// checkFormer checks the lists of former hashes: that each can be read, and is of a thread
// that the store has had, or of a workflow whose nodes are here. Those of threads are
// compared with them where these are read, see checkRenamed.
func (f *fsck) checkFormer() error {
	dir, err := f.v.Reader.Below(f.ctx, f.v.Root, layout.FormerDir)
	if err != nil {
		return f.NoteError(layout.FormerDir, err)
	}
	for _, e := range dir.Entries() {
		id, flow := layout.ParseFormerName(e.Name)
		_, alive := f.v.ThreadsFile.Get(id)
		switch {
		case flow != "":
			err = f.checkRenamed(e.Name, nil)
		case !alive && f.ended[id] == nil:
			f.addProblem(dir.PathOf(e.Name), "there is no such thread")
		case !alive:
			_, err = formerLists{f.v}.readFormer(f.ctx, dir.PathOf(e.Name), e.ID)
			err = f.NoteError(dir.PathOf(e.Name), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkRenamed checks that a list of former hashes, if there is one of that name, leads to
// nodes that are there: among these, or shared.
func (f *fsck) checkRenamed(name string, there map[node.Hash]bool) error {
	path := layout.FormerDir + "/" + name
	dir, err := f.v.Reader.Below(f.ctx, f.v.Root, layout.FormerDir)
	e, ok := dir.Find(name)
	if err != nil || !ok {
		return f.NoteError(layout.FormerDir, err)
	}
	list, err := formerLists{f.v}.readFormer(f.ctx, path, e.ID)
	for _, n := range list {
		_, known := known()[n.Hash]
		if _, inCas := f.v.CasDir.Find(layout.FileOf(n.Hash)); !known && !inCas && !there[n.Hash] {
			f.addProblem(path, "%s is called %s, which is missing", n.Former, n.Hash)
		}
	}
	return f.NoteError(path, err)
}

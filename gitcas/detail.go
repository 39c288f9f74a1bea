package gitcas

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Detail returns a node of a thread's details, or any other node that v.Get
// finds. The first call reads the listing of the details; the whole folder of the
// step that a node belongs to comes with it, because who reads one turn reads the
// others too.
func (s *Store) Detail(ctx context.Context, v *View, id ThreadID, h node.Hash) (node.Node, error) {
	if n, ok := s.known[h]; ok {
		return n, nil
	}
	d, err := v.folder(ctx, id)
	if err != nil {
		return node.Node{}, err
	}
	if d == nil {
		return node.Node{}, fmt.Errorf("%w: %s", ErrUnknownThread, id)
	}
	if e, ok := d.get(nodeFile(h)); ok {
		if _, loaded := v.folders[id]; loaded {
			return v.inFolder(ctx, d, e, h)
		}
		return v.read(ctx, d.at(e.Name), e.ID, h)
	}
	path, blob, ok, err := v.findDetail(ctx, d, h)
	if err != nil {
		return node.Node{}, err
	}
	if !ok {
		return v.Get(ctx, h)
	}
	return v.read(ctx, path, blob, h)
}

// findDetail looks a node up below detail/.
func (v *View) findDetail(ctx context.Context, thread *dir, h node.Hash) (string, wire.ID, bool, error) {
	steps, loose, err := v.detailFolders(ctx, thread)
	if err != nil {
		return "", wire.ZeroID, false, err
	}
	if e, ok := loose.get(nodeFile(h)); ok {
		return loose.at(e.Name), e.ID, true, nil
	}
	for _, d := range steps {
		e, ok := d.get(nodeFile(h))
		if !ok {
			continue
		}
		ids := make([]wire.ID, len(d.entries))
		for i, x := range d.entries {
			ids[i] = x.ID
		}
		return d.at(e.Name), e.ID, true, v.fetch(ctx, ids...)
	}
	return "", wire.ZeroID, false, nil
}

// detailFolders are the folders of the steps below detail/, and detail/ itself.
func (v *View) detailFolders(ctx context.Context, thread *dir) ([]*dir, *dir, error) {
	e, ok := thread.get(detailDir)
	if !ok {
		return nil, nil, nil
	}
	detail, err := v.dir(ctx, thread.at(detailDir), e.ID, checkDetail)
	if err != nil {
		return nil, nil, err
	}
	var entries []gitobj.Entry
	var ids []wire.ID
	for _, x := range detail.entries {
		if x.IsDir() {
			entries, ids = append(entries, x), append(ids, x.ID)
		}
	}
	if err := v.fetch(ctx, ids...); err != nil {
		return nil, nil, err
	}
	out := make([]*dir, len(entries))
	for i, x := range entries {
		if out[i], err = v.dir(ctx, detail.at(x.Name), x.ID, checkCas); err != nil {
			return nil, nil, err
		}
	}
	return out, detail, nil
}

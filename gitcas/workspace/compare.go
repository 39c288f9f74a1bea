package workspace

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
)

// Compare lists the files in which two commits differ, sorted by path. A zero commit has none.
func (w *Workspace) Compare(ctx context.Context, from, to wire.ID) ([]Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	var trees [2]*memtree.Dir
	for i, commit := range []wire.ID{from, to} {
		if trees[i] = memtree.EmptyDir(); commit.IsZero() {
			continue
		}
		var err error
		if trees[i], err = w.treeOf(ctx, commit); err != nil {
			return nil, fmt.Errorf("compare commits: read %s: %w", commit, err)
		}
	}

	var s Snapshot
	err := memtree.CompareTrees("", trees[0], trees[1], func(path string, was, is *memtree.Entry) error {
		if c, ok := newChange(path, was, is); ok {
			s.Changes = append(s.Changes, c)
		}
		return ctx.Err()
	})
	s.sortChanges()
	return s.Changes, err
}

// FetchFiles gets contents of files that the remote has; those that it could get also beside an
// error. A file that is empty is not nil.
func FetchFiles(ctx context.Context, remote wire.Remote, ids []wire.ID) (map[wire.ID][]byte, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	objs, err := remote.Fetch(ctx, wire.FetchRequest{Wants: ids})
	if err != nil {
		return nil, fmt.Errorf("read the files as they were: %w", err)
	}
	data := make(map[wire.ID][]byte, len(ids))
	for _, id := range ids {
		o, ok := objs[id]
		if !ok {
			err = errors.Join(err, fmt.Errorf("file %s is not on the remote", id))
			continue
		}
		if data[id] = o.Data; data[id] == nil {
			data[id] = []byte{}
		}
	}
	return data, err
}

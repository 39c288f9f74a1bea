package gitcas

import (
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Shared gives every node of cas/ to fn, in the order of their hashes. ErrStop
// from fn ends it early. One that can't be read ends it with an error.
func (v *View) Shared(ctx context.Context, fn func(node.Hash, node.Node) error) error {
	var files []gitobj.Entry
	for _, e := range v.cas.listEntries() {
		if _, ok := nodeOf(e.Name); ok {
			files = append(files, e)
		}
	}
	for chunk := range slices.Chunk(files, filesAtOnce) {
		ids := make([]wire.ID, len(chunk))
		for i, e := range chunk {
			ids[i] = e.ID
		}
		if err := v.fetchObjects(ctx, ids...); err != nil {
			return err
		}
		for _, e := range chunk {
			h, _ := nodeOf(e.Name)
			n, err := v.readNode(ctx, v.cas.pathOf(e.Name), e.ID, h)
			if err != nil {
				return err
			}
			if err := fn(h, n); errors.Is(err, ErrStop) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

package gitcas

import (
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Shared gives every node of cas/ to fn, in the order of their hashes. ErrStop
// from fn ends it early. One that can't be read ends it with an error.
func (v *View) Shared(ctx context.Context, fn func(node.Hash, node.Node) error) error {
	for chunk := range slices.Chunk(v.cas.Entries(), filesAtOnce) {
		ids := make([]wire.ID, len(chunk))
		for i, e := range chunk {
			ids[i] = e.ID
		}
		if err := v.Reader.Fetch(ctx, ids...); err != nil {
			return err
		}
		for _, e := range chunk {
			_, h, _ := layout.ParseNodeFile(e.Name)
			n, err := v.readNode(ctx, v.cas.PathOf(e.Name), e.ID, h)
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

package importer

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/bundle"
	"github.com/united-workforce/uwf/gitcas/node"
)

// checkExport refuses a thread that the store has with other hashes, unless it was exported from
// here (uwf thread export), now or before it went on here: then nothing is to be pushed. heads
// are those that it has where it comes from, oldest first.
func checkExport(ctx context.Context, here bundle.Thread, heads []node.Hash) error {
	ours, err := bundle.Heads(ctx, here, workflow.ForPeers)
	if err != nil {
		return err
	}
	last := len(heads) - 1
	for i := last; i >= 0; i-- {
		switch at := slices.Index(ours, heads[i]); {
		case at < 0:
			continue
		case i == last:
			return nil
		case at == len(ours)-1:
			return newRefusal("it went on elsewhere, from step %d, where it is here, to step %d; steps of the TypeScript uwf can't follow those of this one: here it stays as it is", i, last)
		default:
			return newRefusal("it went on in both from step %d on: there to step %d, here to step %d; here it stays as it is", i, last, len(ours)-1)
		}
	}
	return newRefusal("the store has another thread of this id, at %s", here.Entry.Head)
}

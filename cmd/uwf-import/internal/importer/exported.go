package importer

import (
	"context"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/bundle"
	"github.com/united-workforce/uwf/gitcas/node"
)

// checkExport refuses a thread that the store has with other hashes, unless it was exported from
// here (uwf thread export), now or before it went on here: then nothing is to be pushed, and why
// says where it is here. heads are those that it has where it comes from, oldest first.
func checkExport(ctx context.Context, here bundle.Thread, heads []node.Hash) (why string, err error) {
	ours, err := bundle.Heads(ctx, here, workflow.ForPeers)
	if err != nil {
		return "", err
	}
	last := len(heads) - 1
	for i := last; i >= 0; i-- {
		switch at := slices.Index(ours, heads[i]); {
		case at < 0:
			continue
		case i == last && at < len(ours)-1:
			return fmt.Sprintf("it is at step %d there, and at step %d here, where it stays as it is", i, len(ours)-1), nil
		case i == last:
			return "", nil
		case at == len(ours)-1:
			return "", newRefusal("it went on elsewhere, from step %d, where it is here, to step %d; it was made, cancelled or taken off the lists here: here it stays as it is", i, last)
		default:
			return "", newRefusal("it went on in both from step %d on: there to step %d, here to step %d; here it stays as it is", i, last, len(ours)-1)
		}
	}
	return "", newRefusal("the store has another thread of this id, at %s", here.Entry.Head)
}

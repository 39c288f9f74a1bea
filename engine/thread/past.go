package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// Thread is a thread as a view of the store shows it: its entry, workflow, chain and outputs.
type Thread struct {
	id    gitcas.ThreadID
	v     *gitcas.View
	entry gitcas.Entry
	def   *workflow.Definition
	chain gitcas.Chain
	past  []moderator.Output
	in    func(gitcas.Place) node.Getter // finds the thread's nodes
}

// readThread reads a thread of a view, alive or past.
func readThread(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*Thread, error) {
	r := locateThread(ctx, v, id)
	if err := r.readChain(ctx, v); err != nil {
		return nil, fmt.Errorf("read thread %s: %w", id, err)
	}
	return r, nil
}

// locateThread is a thread of a view of which nothing but its entry is read yet.
func locateThread(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) *Thread {
	r := &Thread{id: id, v: v}
	r.look(ctx, v)
	r.entry, _ = v.Entry(id)
	return r
}

// Past is a thread as the moderator sees it: its workflow, and what its steps put
// out. It is for those who draw or explain a thread; it decides nothing.
func Past(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*workflow.Definition, moderator.Thread, error) {
	r := locateThread(ctx, v, id)
	if err := r.readChain(ctx, v); err != nil {
		return nil, moderator.Thread{}, err
	}
	t, err := r.thread()
	return r.def, t, err
}

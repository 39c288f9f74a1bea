package thread

import (
	"context"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
)

// Past is a thread as the moderator sees it: its workflow, and what its steps put
// out. It is for those who draw or explain a thread; it decides nothing.
func Past(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) (*workflow.Definition, moderator.Thread, error) {
	r := stepRun{id: id}
	r.look(ctx, v)
	if err := r.readChain(ctx, v); err != nil {
		return nil, moderator.Thread{}, err
	}
	t, err := r.thread()
	return r.def, t, err
}

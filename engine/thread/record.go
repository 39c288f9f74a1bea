package thread

import (
	"context"
	"fmt"
	"reflect"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
)

// Record writes a thread's comment and pull request into its entry, for a job that
// takes no step and so has no commit of its own for it. A step that runs is not
// concerned. Of a thread that is not alive nothing is noted.
func (e *Engine) Record(ctx context.Context, id gitcas.ThreadID, f life.Effects) error {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("note the comment and the pull request of thread %s: %w", id, err)
	}
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		was := entry
		f.AddTo(&entry, gitcas.Entry{})
		if !alive || reflect.DeepEqual(entry, was) {
			return nil, nil
		}
		return story.SetEntry(&gitcas.Change{}, id, entry, "comment and pull request noted", "", nil), nil
	}
	if _, err := e.Update(ctx, v, build, id); err != nil {
		return fmt.Errorf("note the comment and the pull request of thread %s: %w", id, err)
	}
	e.Reached("record")
	return nil
}

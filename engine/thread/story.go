package thread

import (
	"context"

	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
)

// update makes a change of the store. With it go the index pages of the threads whose
// entries change.
func (e *Engine) update(ctx context.Context, v *gitcas.View, build func(*gitcas.View) (*gitcas.Change, error), ids ...gitcas.ThreadID) (*gitcas.View, error) {
	return e.Store.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) {
		c, err := build(v)
		if err == nil && c != nil {
			story.AddPages(ctx, v, c)
		}
		return c, err
	}, ids...)
}

package thread

import (
	"cmp"
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// findPast is the view in which a thread that is not alive was last, and its newest
// history line.
func findPast(ctx context.Context, store *gitcas.Store, v *gitcas.View, id gitcas.ThreadID) (*gitcas.View, gitcas.Ended, error) {
	ended, ok, err := store.FindEnded(ctx, v, id)
	switch {
	case err != nil:
		return nil, ended, fmt.Errorf("look for thread %s among the ended ones: %w", id, err)
	case !ok:
		return nil, ended, life.NewUnknownThreadError(v, id)
	}
	past, err := store.LoadEnded(ctx, v, ended)
	if err != nil {
		return nil, ended, fmt.Errorf("read the ended thread %s: %w", id, err)
	}
	return past, ended, nil
}

// title is what the thread is about, on one line.
func (r *Thread) title() string { return titleOfThread(r.entry, r.chain.Start) }

// titleOfThread is what a thread is about, as far as its entry or its start says it.
func titleOfThread(e gitcas.Entry, s record.Start) string {
	return cmp.Or(e.Title, s.Title, TitleOf(s.Prompt))
}

// cut leaves only the first n steps of what was read.
func (r *Thread) cut(n int) {
	r.chain.Steps, r.past = r.chain.Steps[:n:n], r.past[:n:n]
}

// upNext asks the moderator what follows the steps, whatever anybody has said.
func (r *Thread) upNext() (moderator.Decision, error) {
	t, err := r.thread()
	if err != nil {
		return moderator.Decision{}, err
	}
	return moderator.Next(r.def, t)
}

// reopened asks the moderator how the thread goes on after its end.
func (r *Thread) reopened(text string) (moderator.Decision, error) {
	t, err := r.thread()
	if err != nil {
		return moderator.Decision{}, err
	}
	d, err := moderator.Reopen(r.def, t, text)
	if err == nil && len(d.Prompt) > maxEdgePrompt {
		err = fmt.Errorf("the prompt of role %s has %d bytes; at most %d are passed on", d.Role, len(d.Prompt), maxEdgePrompt)
	}
	return d, err
}

// poked is the step that the next one does again, if there is one.
func (r *Thread) poked() []node.Hash {
	if r.entry.Next == nil || r.entry.Next.Poked == "" {
		return nil
	}
	return []node.Hash{r.entry.Next.Poked}
}

// lastStep is the thread's head; nil before the first step.
func (r *Thread) lastStep() *node.Hash {
	n := len(r.chain.Steps)
	if n == 0 {
		return nil
	}
	return &r.chain.Steps[n-1].Hash
}

package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// Cancel ends a thread for good: it never runs again. A job that works on it
// finds its claim gone and keeps what it has as an attempt.
func (e *Engine) Cancel(ctx context.Context, id gitcas.ThreadID, reason string) (gitcas.Ended, error) {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return gitcas.Ended{}, fmt.Errorf("cancel thread %s: %w", id, err)
	}
	if entry, alive := v.Entry(id); alive {
		e.Branches().CatchUp(ctx, v, id, entry.Work)
	}
	var line gitcas.Ended
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		c, l, err := cancelling{e}.cancelChange(ctx, v, id, reason)
		if c != nil {
			c.Landed = func(*gitcas.View) { line = l }
		} else {
			line = l
		}
		return c, err
	}
	if _, err := e.Update(ctx, v, build, id); err != nil {
		return gitcas.Ended{}, err
	}
	e.Reached("cancel")
	return line, nil
}

// cancelling ends a thread on a word.
type cancelling struct{ *Engine }

func (e cancelling) cancelChange(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, note string) (*gitcas.Change, gitcas.Ended, error) {
	entry, alive := v.Entry(id)
	if !alive {
		ended, ok, err := e.Store.FindEnded(ctx, v, id)
		switch {
		case err != nil:
			return nil, ended, err
		case !ok:
			return nil, ended, life.NewUnknownThreadError(v, id)
		case ended.Reason == gitcas.ReasonCancelled:
			return nil, ended, nil // cancelled is cancelled, whoever did it
		}
		return nil, ended, &life.NotYoursError{Thread: id, Reason: life.DescribeEnd(ended)}
	}
	chain, err := v.Chain(ctx, id)
	if err != nil {
		return nil, gitcas.Ended{}, err
	}
	steps := make([]node.Hash, 0, len(chain.Steps))
	for _, s := range chain.Steps {
		steps = append(steps, s.Hash)
	}
	clean, _, err := e.Redact.Value(note)
	if err != nil {
		return nil, gitcas.Ended{}, fmt.Errorf("check the reason for secrets: %w", err)
	}
	note, _ = clean.(string)
	note = text.Cut(note, life.MaxReason)
	line := gitcas.Ended{
		Thread: id, Workflow: chain.Start.Workflow, Head: entry.Head, CompletedAt: v.Time().UnixMilli(),
		Reason: gitcas.ReasonCancelled, Note: note, Key: entry.Key, Steps: steps, PR: entry.PR, Work: entry.Work,
		Title: entry.Title, By: entry.By, ClosedBy: e.By.OnRecord(), Used: e.costOf(ctx, v, id),
		Commit: v.Tip().String(),
	}
	c := &gitcas.Change{
		Subject:  story.Subject(entry.Title, id, fmt.Sprintf("cancelled · step %d", len(steps))),
		Body:     note,
		Trailers: story.EntryTrailers(id, entry),
		Archive:  []gitcas.Ended{line},
	}
	if held, claimed := v.Claim(id); claimed {
		release, _ := gitcas.ClaimUpdate(id, &held, nil, v.Time())
		c.Refs = append(c.Refs, release)
	}
	return story.Sign(c, e.By), line, nil
}

// costOf is what a thread took so far, with the attempts at its next step that failed;
// nil where that can't be read.
func (e cancelling) costOf(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) *gitcas.Cost {
	r, t, err := attempt.CountWithChain(ctx, e.Store, v, id)
	if err != nil {
		return nil
	}
	cost := story.CostOf(t)
	cost.Steps = len(r.Chain.Steps)
	return &cost
}

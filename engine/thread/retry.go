package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/text"
)

// Retry lets the step whose attempts failed be tried again: the attempts stay
// linked, but no longer count towards suspending the thread. Nobody is told
// anything new. Of a thread that has ended it is the delivery that is tried again.
func (e *Engine) Retry(ctx context.Context, id gitcas.ThreadID) error {
	return e.letRetry(ctx, id, life.Retry, forDeed(life.Retry))
}

// Take is Retry that takes the thread from whoever holds its claim, dead or not, on a
// person's word. Its job counts as one that died; where it did not, it finds its claim gone,
// and keeps what it has as an attempt.
func (e *Engine) Take(ctx context.Context, id gitcas.ThreadID) error {
	t := forDeed(life.Retry)
	t.Take = &gitcas.Held{}
	return e.letRetry(ctx, id, life.Take, t)
}

func (e *Engine) letRetry(ctx context.Context, id gitcas.ThreadID, d life.Deed, t lease.Terms) error {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("retry thread %s: %w", id, err)
	}
	if _, err := e.Judge(ctx, v, id, d); err != nil {
		return err
	}
	return e.withClaim(ctx, v, id, t, func(v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
		// What failed is known only now that dead jobs are linked.
		s := life.Standing{Thread: id, Alive: true, Entry: *entry}
		if !t.TookOver() {
			if err := s.Judge(life.Retry); err != nil {
				return nil, err
			}
		}
		subject, what := "retry: delivery", "deliveries"
		if entry.Deliver {
			life.DeliverAgain(v, entry)
		} else {
			role := life.WaitingRole(*entry)
			subject, what = "retry: "+text.OneLine(role), "attempts"
			life.LetGoOn(entry, role, life.NextTime(v, *entry), e.By.OnRecord())
		}
		body := fmt.Sprintf("%d failed %s no longer count", len(s.Entry.Attempts), what)
		if t.TookOver() {
			body += fmt.Sprintf("\nthe claim of run %s (attempt %d) on %s was taken", text.Cut(text.OneLine(t.Take.Run), 100), t.Take.Attempt, text.Cut(text.OneLine(t.Take.Host), 100))
		}
		return story.SetEntry(&gitcas.Change{}, id, *entry, subject, body, e.By), nil
	})
}

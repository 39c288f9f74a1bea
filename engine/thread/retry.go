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
	return retrying{e}.letRetry(ctx, id, lease.Terms{Purpose: life.ForRetry, Work: lease.DeedTime})
}

// Take is Retry that takes the thread from whoever holds its claim, dead or not, on a
// person's word. Its job counts as one that died; where it did not, it finds its claim gone,
// and keeps what it has as an attempt.
func (e *Engine) Take(ctx context.Context, id gitcas.ThreadID) error {
	return retrying{e}.letRetry(ctx, id, lease.Terms{Purpose: life.ForRetry, Work: lease.DeedTime, Take: &gitcas.Held{}})
}

// retrying lets failed attempts be tried again.
type retrying struct{ *Engine }

func (e retrying) letRetry(ctx context.Context, id gitcas.ThreadID, t lease.Terms) error {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("retry thread %s: %w", id, err)
	}
	if entry, alive := v.Entry(id); alive && entry.Deliver {
		return e.retryDelivery(ctx, v, id, t)
	}
	entry, err := e.readAlive(ctx, v, id, life.ForRetry)
	if err != nil {
		return err
	}
	held, claimed := v.Claim(id)
	takes := t.Take != nil && claimed
	waits := entry.Status != gitcas.StatusActive
	if len(entry.Attempts) == 0 && (waits || !takes && (held.Head != entry.Head || held.For != "" && len(held.Died) == 0)) {
		return e.nothingFailed(ctx, v, id)
	}
	return e.withClaimOn(ctx, v, id, t, func(v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
		active := entry.Status == gitcas.StatusActive
		if active && life.CountAttempts(*entry, id, nil) == 0 && !t.Took() || !active && len(entry.Attempts) == 0 {
			return nil, e.nothingFailed(ctx, v, id)
		}
		role := life.WaitingRole(*entry)
		next := gitcas.Next{Role: role}
		if entry.Next != nil {
			next = *entry.Next
		}
		next.Since, next.Forgiven, next.By = life.NextTime(v, *entry), len(entry.Attempts), e.By.OnRecord()
		entry.Status, entry.Suspended, entry.Pause, entry.Next = gitcas.StatusActive, nil, nil, &next
		return story.Sign(&gitcas.Change{
			Subject:  story.Subject(entry.Title, id, "retry: "+text.OneLine(role)),
			Body:     fmt.Sprintf("%d failed attempts no longer count%s", len(entry.Attempts), describeTaken(t)),
			Trailers: story.EntryTrailers(id, *entry),
		}, e.By), nil
	})
}

// describeTaken says whose claim was taken, for a commit's body.
func describeTaken(t lease.Terms) string {
	if !t.Took() {
		return ""
	}
	return fmt.Sprintf("\nthe claim of run %s (attempt %d) on %s was taken", text.Cut(text.OneLine(t.Take.Run), 100), t.Take.Attempt, text.Cut(text.OneLine(t.Take.Host), 100))
}

// retryDelivery lets the delivery of an ended thread be tried again: what failed so
// far no longer counts.
func (e retrying) retryDelivery(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, t lease.Terms) error {
	return e.withClaimOn(ctx, v, id, t, func(v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
		failed := len(entry.Attempts)
		if failed == 0 && entry.Status == gitcas.StatusEnded && !t.Took() {
			return nil, &life.RefusedError{Thread: id, Do: life.ForRetry, Reason: "it has ended, and no delivery of it failed"}
		}
		life.DeliverAgain(v, entry)
		return story.Sign(&gitcas.Change{
			Subject:  story.Subject(entry.Title, id, "retry: delivery"),
			Body:     fmt.Sprintf("%d failed deliveries no longer count%s", failed, describeTaken(t)),
			Trailers: story.EntryTrailers(id, *entry),
		}, e.By), nil
	})
}

// nothingFailed says that there is nothing to try again, and what to do instead.
func (e retrying) nothingFailed(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	reason := "no failed attempt of its next step counts"
	if entry, _ := v.Entry(id); entry.Status == gitcas.StatusSuspended {
		reason += "; it waits for a person (" + waitReason(entry) + ")"
	}
	return &life.RefusedError{Thread: id, Do: life.ForRetry, Reason: reason, Advice: adviser(e).adviseWork(ctx, v, id)}
}

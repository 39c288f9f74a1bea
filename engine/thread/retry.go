package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/gitcas"
)

// Retry lets the step whose attempts failed be tried again: the attempts stay
// linked, but no longer count towards suspending the thread. Nobody is told
// anything new. Of a thread that has ended it is the delivery that is tried again.
func (e *Engine) Retry(ctx context.Context, id gitcas.ThreadID) error {
	v, err := e.Store.Load(ctx, id)
	if err != nil {
		return fmt.Errorf("retry thread %s: %w", id, err)
	}
	if entry, alive := v.Entry(id); alive && entry.Deliver {
		return e.retryDelivery(ctx, v, id)
	}
	entry, err := e.aliveOr(ctx, v, id, "retry")
	if err != nil {
		return err
	}
	if held, _ := v.Claim(id); len(entry.Attempts) == 0 && (held.Head != entry.Head || held.For != "" && len(held.Died) == 0) {
		return e.nothingFailed(ctx, v, id)
	}
	return e.alone(ctx, v, id, "retry", func(v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
		if len(entry.Attempts) == 0 || entry.Status == gitcas.StatusActive && attemptsOn(*entry, id, nil) == 0 {
			return nil, e.nothingFailed(ctx, v, id)
		}
		role := waiting(*entry)
		next := gitcas.Next{Role: role}
		if entry.Next != nil {
			next = *entry.Next
		}
		next.Since, next.Forgiven, next.By = laterThan(v, *entry), len(entry.Attempts), e.By.onRecord()
		entry.Status, entry.Suspended, entry.Pause, entry.Next = gitcas.StatusActive, nil, nil, &next
		return Sign(&gitcas.Change{
			Subject:  subjectOf(entry.Title, id, "retry: "+oneLine(role)),
			Body:     fmt.Sprintf("%d failed attempts no longer count", len(entry.Attempts)),
			Trailers: entryTrailers(id, *entry),
		}, e.By), nil
	})
}

// retryDelivery lets the delivery of an ended thread be tried again: what failed so
// far no longer counts.
func (e *Engine) retryDelivery(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	return e.alone(ctx, v, id, "retry", func(v *gitcas.View, entry *gitcas.Entry) (*gitcas.Change, error) {
		failed := len(entry.Attempts)
		if failed == 0 && entry.Status == gitcas.StatusEnded {
			return nil, &RefusedError{Thread: id, Do: "retry", Reason: "it has ended, and no delivery of it failed"}
		}
		deliverAgain(v, entry)
		return Sign(&gitcas.Change{
			Subject:  subjectOf(entry.Title, id, "retry: delivery"),
			Body:     fmt.Sprintf("%d failed deliveries no longer count", failed),
			Trailers: entryTrailers(id, *entry),
		}, e.By), nil
	})
}

// nothingFailed says that there is nothing to try again, and what to do instead.
func (e *Engine) nothingFailed(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) error {
	reason := "no failed attempt of its next step counts"
	if entry, _ := v.Entry(id); entry.Status == gitcas.StatusSuspended {
		reason += "; it waits for a person (" + waitReason(entry) + ")"
	}
	return &RefusedError{Thread: id, Do: "retry", Reason: reason, Advice: e.adviseWork(ctx, v, id)}
}

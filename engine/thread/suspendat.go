package thread

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// SuspendAt makes a thread wait for a person when nobody will go on with it, as when
// the job that should was refused: only where it is still at that head, and nobody
// works on it. Else, and where it waits or is over already, nothing is done. An ended
// thread waits for its delivery then. One whose own nodes can't be read waits, too.
func (e *Engine) SuspendAt(ctx context.Context, id gitcas.ThreadID, head node.Hash, reason string) (done bool, err error) {
	clean, _, err := e.Redact.Value(reason)
	if err != nil {
		return false, fmt.Errorf("check the reason for secrets: %w", err)
	}
	reason, _ = clean.(string)
	reason = text.Cut(reason, life.MaxReason)
	ids := []gitcas.ThreadID{id}
	v, err := e.Store.Load(ctx, ids...)
	if errors.Is(err, gitcas.ErrDamaged) {
		ids = nil
		v, err = e.Store.Load(ctx)
	}
	if err != nil {
		return false, fmt.Errorf("suspend thread %s: %w", id, err)
	}
	if entry, alive := v.Entry(id); alive && entry.Head == head {
		e.branches().CatchUp(ctx, v, id, entry.Work)
	}
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(id)
		pending := entry.Status == gitcas.StatusActive || entry.Status == gitcas.StatusEnded && entry.Deliver
		held, claimed := v.Claim(id)
		if !alive || entry.Head != head || !pending || claimed && held.Head == entry.Head && !e.leases().IsSurelyDead(v, held.Claim) {
			return nil, nil
		}
		c := suspendChange(v, id, entry, reason, nil)
		c.Landed = func(*gitcas.View) { done = true }
		return c, nil
	}
	if _, err := e.update(ctx, v, build, ids...); err != nil {
		return false, fmt.Errorf("suspend thread %s: %w", id, err)
	}
	if done {
		e.reached("suspend")
	}
	return done, nil
}

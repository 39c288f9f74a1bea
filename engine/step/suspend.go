package step

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
)

// suspendThread suspends the thread and returns the error that the step ends with.
func (r *run) suspendThread(ctx context.Context, reason string) (thread.Result, error) {
	if err := r.Suspend(ctx, r.waitingRole(), reason, nil, nil); err != nil {
		return r.describeThread(), err
	}
	return r.describeThread(), life.Waiting(r.ID, r.Entry)
}

// suspendWith suspends a thread whose finished step can't be placed on the work
// branch; the step is kept as an attempt in the same push.
func (r *run) suspendWith(ctx context.Context, d task.Draft, cause *workbranch.DivergedError) (thread.Result, error) {
	a := r.buildAttempt(ctx, "commit", d, cause)
	err := r.Suspend(ctx, r.waitingRole(), cause.Error(), &a, r.workObjects())
	var moved *life.Error
	switch {
	case errors.As(err, &moved) && moved.Kind == life.KindNotYours:
		return r.endUncommitted(r.loseThread(ctx, "commit", d, moved.Reason))
	case err != nil:
		// The work is done: whatever keeps the thread from being suspended, it is kept.
		return r.endUncommitted(r.failStep(ctx, "commit", d, errors.Join(cause, err)))
	}
	r.dropFromDisk()
	return r.describeThread(), life.Waiting(r.ID, r.Entry)
}

// endThread ends a thread whose moderator says so without a step: one whose last
// step was committed by an older version or another tool.
func (r *run) endThread(ctx context.Context) (thread.Result, error) {
	err := r.Change(ctx, "ended", func(v *gitcas.View, c *gitcas.Change, entry *gitcas.Entry, _ gitcas.Held) error {
		life.EndThread(entry, r.req.Deliver, v.Time().UnixMilli())
		if !r.req.Deliver {
			c.Archive = []gitcas.Ended{r.EndLine(*entry)}
		}
		c.Subject = "ended"
		return nil
	})
	res := r.describeThread()
	res.Done = err == nil
	return res, err
}

package step

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
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
	nodes, text := r.salvageDrafts(ctx, "commit", d, cause)
	err := r.Suspend(ctx, r.waitingRole(), cause.Error(), &gitcas.Attempt{
		Thread: r.ID, Run: r.stepMaker().ID, Attempt: r.stepMaker().Attempt, Parents: r.workParents(),
		Nodes: nodes, WorkTree: r.salvageTree(ctx), Error: text, At: r.Lease.ServerTime(),
	}, r.workObjects())
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
	after := r.Entry
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		entry, alive := v.Entry(r.ID)
		if !alive {
			_, err := r.e.Judge(ctx, v, r.ID, life.Step)
			return nil, err
		}
		held, claimed := v.Claim(r.ID)
		if !life.SameThread(entry, r.Entry) || !claimed || !r.Lease.Owns(held.Claim) {
			return nil, r.Refuse("it changed before it could be ended")
		}
		r.AddEffects(&entry)
		life.EndThread(&entry, r.req.Deliver, v.Time().UnixMilli())
		c := &gitcas.Change{
			Subject:  story.Subject(r.Title(), r.ID, "ended"),
			Trailers: story.EntryTrailers(r.ID, entry),
			Threads:  map[gitcas.ThreadID]*gitcas.Entry{r.ID: &entry},
			Refs:     []wire.RefUpdate{lease.Drop(r.ID, held)},
			Landed:   func(*gitcas.View) { after = entry },
		}
		if !r.req.Deliver {
			c.Archive = []gitcas.Ended{r.EndLine(entry)}
		}
		return c, nil
	}
	v, err := r.e.Update(ctx, r.View, build, r.ID)
	if err != nil {
		return r.describeThread(), err
	}
	r.View = v
	r.Lease.Adopt(v)
	res := r.describeThread()
	res.AddEntry(after)
	res.Status, res.Done = string(gitcas.StatusEnded), true
	return res, nil
}

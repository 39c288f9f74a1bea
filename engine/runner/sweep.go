package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/united-workforce/uwf/engine/runner/authority"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/threadview"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// sweeper looks after threads that nobody steps, and says why a job is red.
type sweeper struct {
	*effects.Effects
	gate       *authority.Gate
	finder     *finder
	dispatcher *dispatcher
	steps      *steps
	rand       io.Reader
}

// Bounds on what one job dispatches for others. A thread stays due until the job for it
// has begun, so that jobs which end meanwhile start it again: a job with a thread of its
// own starts one at most, then their number doesn't grow. A scheduled run does nothing
// else.
const (
	sweepMaxHop      = 1
	sweepMax         = 2
	sweepMaxSchedule = 5
)

// sweepThreads starts the next job of threads that nobody works on although they are due:
// their job died, or its dispatch got lost. It fails no job but a scheduled one, which is
// there for nothing else, and only where the store is damaged.
func (j *sweeper) sweepThreads(ctx context.Context) error {
	if j.Inputs.Dispatch == ci.DispatchOff {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, effects.MaxEffectTime)
	defer cancel()
	if j.View != nil && len(j.listDue(j.View)) == 0 {
		return nil // that view lacks claims of others, which only make fewer threads due
	}
	v, err := j.Engine.Store.Reload(ctx, j.View)
	switch {
	case errors.Is(err, gitcas.ErrNoStore):
		return nil
	case err == nil:
		j.startDueThreads(ctx, v)
		return nil
	}
	j.tellDamage(ctx, err)
	err = fmt.Errorf("look for threads whose next job got lost: %w", err)
	if j.Event.Kind == event.Schedule && errors.Is(err, gitcas.ErrDamaged) {
		return err
	}
	j.Warn("the threads that are due were not taken up", err)
	return nil
}

// startDueThreads starts the next job of some of the threads that are due. It reads none of them:
// a job that can't read its thread makes it wait.
func (j *sweeper) startDueThreads(ctx context.Context, v *gitcas.View) {
	most := sweepMax
	switch {
	case j.Outcome.Thread != "" || j.Inputs.Thread != "":
		most = sweepMaxHop
	case j.Event.Kind == event.Schedule:
		most = sweepMaxSchedule
	}
	for _, p := range j.pickSome(j.listDue(v), most) {
		entry, _ := v.Entry(p.Thread)
		inputs := j.dispatcher.inputsOf(p.Thread, node.Pin{Hash: p.Head}, v.StoreID(), &threadview.Thread{ID: p.Thread, Entry: entry})
		if err := j.dispatcher.sendDispatch(ctx, inputs); err != nil {
			j.Warn(fmt.Sprintf("thread %s is due, but its next job could not be started", p.Thread), err)
			j.tellLost(ctx, v, p.Thread)
			return
		}
		j.Out.Notice(fmt.Sprintf("thread %s was due and nobody worked on it: its next job was started", p.Thread))
		j.CallHook("dispatched")
	}
}

// tellLost shows in a thread's comment that its job died, or never came, and that there
// is no other one. Where there is, that says more soon.
func (j *sweeper) tellLost(ctx context.Context, v *gitcas.View, id gitcas.ThreadID) {
	if p := j.LoadThreadOrLast(ctx, id); p != nil {
		t := j.DescribeThread(p, report.Lost)
		t.Lost, _ = j.finder.lostJob(v, p)
		j.UpdateComment(ctx, p, t)
	}
}

// listDue are the threads that wait for a job, but for the one whose next job this one
// has just started.
func (j *sweeper) listDue(v *gitcas.View) []thread.Pending {
	return slices.DeleteFunc(j.Engine.ListPending(v, j.finder.idleTime()), func(p thread.Pending) bool { return j.dispatcher.sent && p.Thread == j.Outcome.Thread })
}

// pickSome picks at most n of the threads, by chance: jobs that end at the same time pick
// different ones.
func (j *sweeper) pickSome(due []thread.Pending, n int) []thread.Pending {
	var seed [32]byte
	_, _ = io.ReadFull(j.rand, seed[:]) // which ones is no secret
	rand.New(rand.NewChaCha8(seed)).Shuffle(len(due), func(a, b int) { due[a], due[b] = due[b], due[a] })
	return due[:min(n, len(due))]
}

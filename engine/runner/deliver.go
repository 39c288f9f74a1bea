package runner

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/engine/deliver"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// deliverThread makes a thread's end known: a pull request and the last words of its
// comment. The engine takes it off the tip then.
func (j *steps) deliverThread(ctx context.Context, id gitcas.ThreadID, head node.Pin) error {
	if p := j.Last; p == nil || p.ID != id {
		j.LoadThreadOrLast(ctx, id)
	}
	if p := j.Last; p != nil && p.ID == id {
		if err := j.checkWorkBranch(ctx, id, p.Entry, p); err != nil {
			return j.suspendBroken(ctx, id, head.Hash, err)
		}
	}
	res, err := deliver.Run(ctx, j.Engine.Engine, deliver.Request{Thread: id, ExpectHead: head, Hold: j.holdDelivery, Do: func(ctx context.Context, d deliver.Delivery) (life.Effects, error) {
		return j.delivery.HandOver(ctx, id, d)
	}})
	j.NoteResult(res)
	var undelivered *life.DeedError
	switch {
	case err == nil:
		j.CallHook("delivered")
		if terr := j.work.RemoveFolder(ctx, id); terr != nil {
			j.Warn("the working folder stays", terr)
		}
		return nil
	case life.KindOf(err) == life.KindNotYours:
		return j.FinishOK(err.Error())
	case life.KindOf(err) == life.KindSuspended:
		return j.tellWaiting(ctx, res)
	case errors.As(err, &undelivered) && undelivered.Kind == life.KindFailed:
		j.tellUndelivered(ctx, id, undelivered)
	}
	return err
}

// tellUndelivered tells that a thread's end could not be made known.
func (j *steps) tellUndelivered(ctx context.Context, id gitcas.ThreadID, err *life.DeedError) {
	p := j.LoadThreadOrLast(ctx, id)
	if p == nil {
		return
	}
	t := j.DescribeThread(p, report.Failed)
	f, label := countTries(p.Entry), ""
	f.Phase, f.Message, f.ByForge = "deliver", err.Err.Error(), isForgeAnswer(err.Err)
	f.Advice = "All roles are done and their work is safe. The next scheduled run delivers it again; /uwf retry does so at once."
	if len(err.Next) > 0 {
		f.Advice, label = "All roles are done and their work is safe. Comment /uwf retry to have it delivered again.", effects.LabelFailed
	}
	t.Question, t.Role, t.Failure = "", "", &f
	j.TellState(ctx, p, t, label)
}

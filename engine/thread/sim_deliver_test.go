package thread_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/deliver"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// What jobs of the simulation make for a thread: always the same.
const (
	simComment = 34
	simPR      = 12
)

// toTheEnd steps the main thread to its end, without faults: what goes wrong in this
// story goes wrong with its delivery.
func (w *world) toTheEnd() {
	w.chaos.Store(false)
	for n := range 2 {
		name := fmt.Sprintf("E%d", n)
		a := w.spawn(name+".1", name, 1, w.main, func(a *actor) {
			_, a.err = a.eng.Step(a.ctx, step.Request{Thread: w.main, Deliver: true, Effects: func() life.Effects { return life.Effects{Comment: simComment} }})
		})
		if w.openAll(a); a.err != nil {
			w.fail("%s: %v", name, a.err)
		}
	}
	if !w.whole && w.rng.IntN(2) == 0 {
		w.lag()
	}
	w.chaos.Store(true)
	w.say("-- it is to be delivered")
}

// lag makes the work branch one that never got the last step's commit, as when the job
// died between two parts of its push. An attempt's ref still has the commit.
func (w *world) lag() {
	ref := "refs/heads/" + layout.WorkBranch(w.main)
	tip := w.mem.Refs()[ref]
	c, err := w.commitOf(tip)
	if err == nil {
		_, err = w.mem.Push(context.Background(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: ref, Old: tip, New: c.Parents[0]}}})
	}
	if err != nil {
		w.fail("set the work branch back: %v", err)
	}
	w.model.work[ref] = c.Parents[0]
	w.say("-- the work branch lags behind")
}

// deliver is the part of a job that delivers its thread.
func (w *world) deliver(a *actor, head node.Hash) {
	var did bool
	a.res, a.err = a.eng.Deliver(a.ctx, deliver.Request{Thread: a.thread, ExpectHead: node.Pin{Hash: head}, Do: func(ctx context.Context, d deliver.Delivery) (life.Effects, error) {
		w.deliveryStarts(a, d)
		for range 1 + a.rng.IntN(2) {
			w.waitIn(ctx, a, "deliver")
			if ctx.Err() != nil {
				return life.Effects{}, context.Cause(ctx)
			}
			if a.rng.IntN(5) == 0 {
				time.Sleep(time.Duration(a.rng.IntN(200)) * time.Second)
			}
		}
		if w.chaos.Load() && a.rng.IntN(3) == 0 {
			return life.Effects{PR: simPR}, errSim
		}
		w.mu.Lock()
		w.model.delivered[d.Entry.Head]++
		w.mu.Unlock()
		did = true
		return life.Effects{Comment: simComment, PR: simPR}, nil
	}})
	w.deliveryOver(a, did)
}

// deliveryStarts: only a thread that has ended is delivered, at the head that it was
// claimed at, and with all its work on the branch; and none that is off the tip already,
// as far as the job could see: an outage between its last look and here may be long.
// Without atomic pushes the last can't be: the archive goes out without the claim, so a
// job whose claim was just taken over may archive while the other begins.
func (w *world) deliveryStarts(a *actor, d deliver.Delivery) {
	if a.claimHead != "" && string(d.Entry.Head) != a.claimHead {
		w.problem("%s delivers head %s, but claimed the thread at %s", a.name, d.Entry.Head, a.claimHead)
	}
	if d.Entry.Status != gitcas.StatusEnded || !d.Entry.Deliver {
		w.problem("%s delivers a thread that is %s", a.name, d.Entry.Status)
	}
	w.mu.Lock()
	done := w.model.delivered[d.Entry.Head] > 0
	w.mu.Unlock()
	knows := w.holds(a) || w.model.moved[a.thread].push < a.listed
	if done && w.whole && knows && w.archivedAt(a.thread, d.Entry.Head) > 0 {
		w.problem("%s delivers head %s, which was delivered and archived", a.name, d.Entry.Head)
	}
	if c := d.Entry.Work.Commit; c != "" && !w.reaches(d.Tip, plumbing.NewHash(c)) {
		w.problem("%s delivers work branch %s, which has not the commit %s", a.name, d.Tip, c)
	}
}

// deliveryOver looks at what a job says of its delivery.
func (w *world) deliveryOver(a *actor, did bool) {
	if a.crashed {
		return
	}
	w.say("%s: delivery: exit %d: %v", a.name, life.KindOf(a.err), a.err)
	switch archived := w.archivedAt(a.thread, a.res.Head); {
	case errors.Is(a.err, wire.ErrUnreachable) && a.signaled.IsZero() && !a.excused():
		w.problem("%s did not wait for the remote: %v", a.name, a.err)
	case !a.excused() && w.claims(a):
		w.problem("%s is over and its claim is left: %v", a.name, a.err)
	case a.err == nil && archived != 1:
		w.problem("%s says that it delivered the thread at %s, which history has %d times", a.name, a.res.Head, archived)
	case a.err == nil && !did && !a.res.Again:
		w.problem("%s says that it delivered the thread, and did nothing", a.name)
	case life.KindOf(a.err) == life.KindSuspended && did:
		w.problem("%s delivered the thread, and says %v", a.name, a.err)
	case a.err != nil && a.signaled.IsZero() && !errors.Is(a.err, wire.ErrUnreachable) && life.KindOf(a.err) != life.KindNotYours && life.KindOf(a.err) != life.KindSuspended && life.KindOf(a.err) != life.KindFailed:
		w.problem("%s: delivery: %T: %v", a.name, a.err, a.err)
	}
}

// archivedAt counts the lines of history that say that the thread ended at a head.
func (w *world) archivedAt(id gitcas.ThreadID, head node.Hash) int {
	n := 0
	w.history(func(e gitcas.Ended) {
		if e.Thread == id && e.Head == head && e.Reason == gitcas.ReasonEnded {
			n++
		}
	})
	return n
}

// history visits all lines, those of threads that live again too.
func (w *world) history(visit func(gitcas.Ended)) {
	c, err := w.commitOf(w.mem.Refs()["refs/heads/"+gitcas.DefaultBranch])
	if err != nil {
		w.problem("%v", err)
		return
	}
	for _, years := range w.list(c.Tree) {
		if years.Name != "history" {
			continue
		}
		for _, year := range w.list(years.ID) {
			for _, day := range w.list(year.ID) {
				if layout.YearFolder.ChildOf(day.Name) != layout.DayFile {
					continue
				}
				o, _ := w.mem.Get(day.ID)
				if err := statefile.ParseHistory(o.Data, func(e gitcas.Ended) error { visit(e); return nil }); err != nil {
					w.problem("%s/%s: %v", year.Name, day.Name, err)
				}
			}
		}
	}
}

func (w *world) list(tree wire.ID) []gitobj.Entry {
	o, _ := w.mem.Get(tree)
	entries, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		w.problem("tree %s: %v", tree, err)
	}
	return entries
}

// checkDelivered: what jobs were to deliver goes off the tip only when they have, and
// history names the pull request.
func (w *world) checkDelivered(id gitcas.ThreadID, ended gitcas.Ended) {
	w.mu.Lock()
	times := w.model.delivered[ended.Head]
	w.mu.Unlock()
	switch {
	case !w.delivers:
		return
	case !w.model.entries[id].Deliver:
		w.fail("thread %s is off the tip, and was not to be delivered", id)
	case times == 0:
		w.fail("thread %s is off the tip at %s, and nobody delivered it", id, ended.Head)
	case ended.PR != simPR:
		w.fail("thread %s was delivered, and its pull request is %d", id, ended.PR)
	}
}

// checkHistory: no end is told twice.
func (w *world) checkHistory() {
	seen := map[string]bool{}
	w.history(func(e gitcas.Ended) {
		if e.Reason != gitcas.ReasonEnded {
			return
		}
		at := string(e.Thread) + " at " + string(e.Head)
		if seen[at] {
			w.fail("history tells the end of %s twice", at)
		}
		seen[at] = true
	})
}

// sweeper is a job that looks for what nobody does, and does it.
func (w *world) sweeper(run string) {
	w.say("%s sweeps", run)
	idle := time.Duration(w.rng.IntN(3)) * time.Minute
	w.spawn(run+".1", run, 1, w.main, func(a *actor) {
		a.isJob = true
		v, err := a.eng.Store.Load(a.ctx)
		if a.err = err; err != nil {
			return
		}
		for _, p := range a.eng.ListPending(v, idle) {
			switch {
			case p.Thread != w.main:
			case p.Deliver:
				w.deliver(a, p.Head)
				return
			default:
				a.res, a.err = a.eng.Step(a.ctx, step.Request{Thread: w.main, ExpectHead: node.Pin{Hash: p.Head}, Deliver: w.delivers})
				w.stepped(a)
				return
			}
		}
		w.say("%s: nothing is pending", fmt.Sprint(run))
	})
}

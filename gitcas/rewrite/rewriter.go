package rewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// Rewriter rewrites one state branch. It is for one use: a Plan, then perhaps
// Execute.
type Rewriter struct {
	remote wire.Remote
	o      Options
	run    *run
	last   *Plan
	// arrived is the plan with which the branch got the new history; nil: it has not.
	arrived *Plan
}

// New makes a Rewriter. It does no I/O.
func New(remote wire.Remote, o Options) *Rewriter {
	if o.Find == nil {
		o.Find = findsNothing{}
	}
	return &Rewriter{remote: remote, o: o}
}

// refs are the refs that matter, as they are now.
type refs struct {
	tip, mark wire.ID
	attempts  map[string]wire.ID
}

func (w *Rewriter) listRefs(ctx context.Context) (refs, error) {
	l, err := w.remote.List(ctx, w.o.Branch, w.o.Store, w.o.Attempts)
	if err != nil {
		return refs{}, err
	}
	out := refs{tip: l.Refs[w.o.Branch], mark: l.Refs[w.o.Store], attempts: map[string]wire.ID{}}
	for name, id := range l.Refs {
		if strings.HasPrefix(name, w.o.Attempts) {
			out.attempts[name] = id
		}
	}
	if out.tip.IsZero() {
		return out, fmt.Errorf("%w: %s is not there", ErrMoved, w.o.Branch)
	}
	return out, nil
}

// MakePlan works out what would change, and writes nothing.
func (w *Rewriter) MakePlan(ctx context.Context) (*Plan, error) {
	now, err := w.listRefs(ctx)
	if err != nil {
		return nil, err
	}
	w.run = newRun(ctx, w.remote, &w.o)
	return w.followRefs(ctx, now)
}

// followRefs takes the run to where the refs are.
func (w *Rewriter) followRefs(ctx context.Context, now refs) (*Plan, error) {
	w.run.ctx = ctx
	err := w.run.runTo(now.tip)
	if errors.Is(err, ErrMoved) && w.last != nil && w.last.Old != w.last.New {
		// Perhaps the last push was taken after all, though nobody said so.
		w.noteArrived()
		err = w.run.runTo(now.tip)
	}
	if err != nil {
		return nil, err
	}
	alive, err := w.run.aliveThreads()
	if err != nil {
		return nil, err
	}
	attempts, err := w.run.rewriteAttempts(now.attempts)
	if err != nil {
		return nil, err
	}
	rep := w.run.report
	if err := rep.checkAllFound(); err != nil {
		return nil, err
	}
	if len(rep.fixed) > 0 && !w.o.LeaveNames {
		return nil, &FixedError{Places: rep.fixed}
	}
	p := *rep.plan
	p.Old, p.New, p.Attempts, p.Left = w.run.old, w.run.new, attempts, rep.fixed
	p.Threads, p.Bytes = rep.changedThreads(alive), w.run.w.total
	w.last = &p
	return &p, nil
}

// pushes is how often a push is tried when others are faster.
const pushes = 10

// Execute does what the plan says, on top of whatever was committed since. Until
// its one push is taken, nothing has changed. It returns the plan as it was carried
// out.
func (w *Rewriter) Execute(ctx context.Context) (*Plan, error) {
	if w.run == nil {
		return nil, errors.New("a rewrite without a plan")
	}
	for try := 0; ; try++ {
		now, err := w.listRefs(ctx)
		if err != nil {
			return nil, err
		}
		p, err := w.followRefs(ctx, now)
		if err != nil || p.Empty() {
			return cmp.Or(w.arrived, p), err
		}
		var extra []wire.RefUpdate
		if w.o.Before != nil {
			if extra, err = w.o.Before(ctx, p); err != nil {
				return nil, err
			}
		}
		err = w.sendUpdates(ctx, now, p, extra)
		if err == nil {
			return cmp.Or(w.arrived, p), nil
		}
		if try == pushes || !errors.Is(err, wire.ErrLostRace) {
			return nil, err
		}
	}
}

// noteArrived notes that the branch has the new history.
func (w *Rewriter) noteArrived() { w.arrived, w.run.old = w.last, w.run.new }

// sendUpdates pushes everything in one go, where the remote can and takes so many refs.
func (w *Rewriter) sendUpdates(ctx context.Context, now refs, p *Plan, extra []wire.RefUpdate) error {
	objs := w.run.w.objs
	branch := wire.RefUpdate{Name: w.o.Branch, Old: p.Old, New: p.New}
	mark := wire.RefUpdate{Name: w.o.Store, Old: now.mark, New: p.New}
	rest := slices.Clone(extra)
	for _, a := range p.Attempts {
		rest = append(rest, wire.RefUpdate{Name: a.Ref, Old: a.Old, New: a.New})
	}
	if !w.o.Atomic {
		return w.sendInOrder(ctx, branch, mark, rest, objs)
	}
	updates := rest
	if p.Old != p.New {
		updates = append([]wire.RefUpdate{branch, mark}, rest...)
	}
	_, err := wire.PushRefs(ctx, w.remote, w.o.Outages, wire.PushRequest{Updates: updates, Objects: objs, Atomic: len(updates) > 1})
	if _, tooMany := wire.RefLimitAfter(err, len(updates)); tooMany {
		return w.sendInOrder(ctx, branch, mark, rest, objs)
	}
	return err
}

// sendInOrder is send where the remote has no atomic pushes. The order keeps the
// store sound wherever it stops: a branch without the ref that marks the store is
// one that the next writer completes.
func (w *Rewriter) sendInOrder(ctx context.Context, branch, mark wire.RefUpdate, rest []wire.RefUpdate, objs []wire.PackObject) error {
	one := func(u wire.RefUpdate, objs []wire.PackObject) error {
		if u.Old == u.New {
			return nil
		}
		_, err := wire.PushRefs(ctx, w.remote, w.o.Outages, wire.PushRequest{Updates: []wire.RefUpdate{u}, Objects: objs})
		return err
	}
	if branch.Old != branch.New {
		if err := one(wire.RefUpdate{Name: mark.Name, Old: mark.Old}, nil); err != nil {
			return err
		}
		if err := one(branch, objs); err != nil {
			return err
		}
		w.noteArrived()
		mark.Old = wire.ZeroID
	}
	if mark.Old.IsZero() {
		if err := one(mark, nil); err != nil && !errors.Is(err, wire.ErrLostRace) {
			return err
		}
	}
	for _, u := range rest {
		if err := one(u, objs); err != nil {
			return err
		}
	}
	return nil
}

package thread

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/thread/branch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// DivergedError: the work branch no longer contains the commit that the thread
// recorded, so nobody can say which edits the next role should see.
type DivergedError struct {
	Branch, Recorded, Tip string
	Overlap               []string
}

func (e *DivergedError) Error() string {
	if len(e.Overlap) > 0 {
		return fmt.Sprintf("branch %s was changed by people in files that the agent changed too (%s); merge them on the branch, then resume the thread",
			e.Branch, strings.Join(e.Overlap, ", "))
	}
	return fmt.Sprintf("branch %s is at %s, which does not contain %s, the thread's last recorded commit; merge or reset the branch to a descendant of it, then resume the thread",
		e.Branch, e.Tip, e.Recorded)
}

func branchRef(branch string) string { return "refs/heads/" + branch }

// workTip is where the work branch stands in v; zero when it is not there.
func workTip(v *gitcas.View, w gitcas.Work) wire.ID {
	tip, _ := v.Ref(branchRef(w.Branch))
	return tip
}

// workOf is where a thread's edits are. An entry that another tool wrote may not
// name the branch.
func workOf(id gitcas.ThreadID, entry gitcas.Entry) gitcas.Work {
	w := entry.Work
	if w.Branch == "" {
		w.Branch = gitcas.WorkBranch(id)
	}
	return w
}

// restore makes the folder equal to the work branch's tip if that descends from
// the recorded commit, so that people's commits are kept, and to the recorded
// commit where the branch is not there.
func (r *stepRun) restore(ctx context.Context) error {
	from, err := r.whereFrom(ctx)
	if err != nil {
		return err
	}
	r.from = from
	if !r.from.IsZero() {
		if err := r.e.Folder.Restore(ctx, r.from); err != nil {
			return fmt.Errorf("restore %s to commit %s: %w", r.e.Folder.Dir(), r.from, err)
		}
	}
	r.restored = true
	return nil
}

// branchTries bounds how often a work branch is looked at again that others push to.
const branchTries = 5

// whereFrom finds the commit to work from. Somebody may push to the branch while
// it is brought up: then it is looked at again.
func (r *stepRun) whereFrom(ctx context.Context) (wire.ID, error) {
	w := workOf(r.id, r.entry)
	for try := 0; ; try++ {
		recorded := plumbing.NewHash(w.Commit)
		tip := workTip(r.v, w)
		switch {
		case tip.IsZero():
			return recorded, nil
		case tip == recorded || recorded.IsZero():
			return tip, nil
		}
		from, err := r.e.follow(ctx, r.v, r.id, w, tip)
		switch {
		case err == nil && from != tip:
			return from, r.reloadStore(ctx) // the branch was brought up
		case !errors.Is(err, wire.ErrLostRace) || try >= branchTries:
			return from, err
		}
		if err := r.reloadStore(ctx); err != nil {
			return wire.ZeroID, err
		}
	}
}

// reloadStore reads the store again after a push of this job's own, which the commit must not
// take for somebody else's, or one that came too late. A claim that is seen to be gone ends
// the work here, before it is paid for.
func (r *stepRun) reloadStore(ctx context.Context) error {
	v, err := r.e.Store.Reload(ctx, r.v, r.id)
	if err != nil {
		return err
	}
	r.v = v
	if r.lease == nil {
		return nil
	}
	if _, err := r.lease.See(v); err != nil {
		return &life.NotYoursError{Thread: r.id, Reason: "it was taken over, suspended or cancelled while its work branch was brought up"}
	}
	return nil
}

// cwd is the folder of the work tree that the thread was started for; "." is its top. A
// thread of the predecessor has a path of the machine that started it, which leads
// nowhere here.
func (r *stepRun) cwd() string {
	if cwd := r.chain.Start.Cwd; inWorkTree(cwd) {
		return cwd
	}
	return "."
}

// inWorkTree reports whether a path is one below the work tree's top, as "." is, on every
// system.
func inWorkTree(path string) bool { return fs.ValidPath(path) && !strings.ContainsAny(path, `\:`) }

// location is the folder of the work tree that the role works in: the edge's, else the
// thread's; empty: the top.
func (r *stepRun) location() string {
	if cwd := r.cwd(); r.plan.location == "" && cwd != "." {
		return cwd
	}
	return r.plan.location
}

// enter makes the step's location the folder that the agent is started in. That of an
// edge was filled in from an agent's output, so it is only taken inside the workspace.
func (r *stepRun) enter() error {
	if r.task.Location == "" {
		return nil
	}
	dir, err := r.e.Folder.Sub(r.task.Location)
	if err != nil {
		return fmt.Errorf("go to location %q of the workspace: %w", r.task.Location, err)
	}
	r.task.Workspace = dir
	return nil
}

// follow returns the commit to work from when the branch is not at the recorded
// commit: its tip, if that contains the commit. On a remote without atomic
// pushes the branch may lag behind what was recorded, and is brought up.
func (e *Engine) follow(ctx context.Context, v *gitcas.View, id gitcas.ThreadID, w gitcas.Work, tip wire.ID) (wire.ID, error) {
	recorded := plumbing.NewHash(w.Commit)
	contains, err := branch.Contains(ctx, e.Store.Remote(), tip, recorded)
	if err != nil {
		return wire.ZeroID, fmt.Errorf("compare branch %s with the recorded commit: %w", w.Branch, err)
	}
	if contains {
		return tip, nil
	}
	if e.Store.Atomic(v) {
		return wire.ZeroID, &DivergedError{Branch: w.Branch, Recorded: w.Commit, Tip: tip.String()}
	}
	return e.bringUp(ctx, id, w, tip)
}

// bringUp moves a work branch that lags behind the recorded commit, or has moved
// on beside it, to one that contains both: a fast-forward, or one merge commit
// where no file overlaps.
func (e *Engine) bringUp(ctx context.Context, id gitcas.ThreadID, w gitcas.Work, tip wire.ID) (wire.ID, error) {
	recorded := plumbing.NewHash(w.Commit)
	behind, err := branch.Contains(ctx, e.Store.Remote(), recorded, tip)
	if err != nil {
		return wire.ZeroID, err
	}
	target, objs := recorded, []wire.PackObject(nil)
	if !behind {
		if target, objs, err = e.mergeCommit(ctx, w, recorded, tip); err != nil {
			return wire.ZeroID, err
		}
	}
	if err := e.Store.PushRef(ctx, wire.RefUpdate{Name: branchRef(w.Branch), Old: tip, New: target}, objs); err != nil {
		return wire.ZeroID, fmt.Errorf("bring branch %s of thread %s up: %w", w.Branch, id, err)
	}
	return target, nil
}

func (e *Engine) mergeCommit(ctx context.Context, w gitcas.Work, recorded, tip wire.ID) (wire.ID, []wire.PackObject, error) {
	base, err := branch.Base(ctx, e.Store.Remote(), recorded, tip)
	if err != nil {
		return wire.ZeroID, nil, err
	}
	if base.IsZero() {
		return wire.ZeroID, nil, &DivergedError{Branch: w.Branch, Recorded: w.Commit, Tip: tip.String()}
	}
	m, err := workspace.Merge(ctx, e.Store.Remote(), base, recorded, tip, nil)
	if err != nil {
		return wire.ZeroID, nil, err
	}
	if len(m.Overlap) > 0 {
		return wire.ZeroID, nil, &DivergedError{Branch: w.Branch, Recorded: w.Commit, Tip: tip.String(), Overlap: m.Overlap}
	}
	o, err := branch.Commit(e.Clock.Now(), m.Tree, []wire.ID{recorded, tip}, "Merge people's commits with the thread's\n")
	if err != nil {
		return wire.ZeroID, nil, err
	}
	return o.ID, append(m.Objects, wire.PackObject{Object: o}), nil
}

// workID is the commit that is recorded for a thread; zero for none.
func workID(w gitcas.Work) wire.ID { return plumbing.NewHash(w.Commit) }

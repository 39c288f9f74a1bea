package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// restore makes the folder equal to the work branch's tip if that descends from
// the recorded commit, so that people's commits are kept, and to the recorded
// commit where the branch is not there.
func (r *stepRun) restore(ctx context.Context) error {
	from, err := r.findBase(ctx)
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

// findBase finds the commit to work from.
func (r *stepRun) findBase(ctx context.Context) (wire.ID, error) {
	return r.e.branches().FindBase(ctx, r.View, r.ID, workbranch.Of(r.ID, r.Entry), r.reloadStore)
}

// reloadStore reads the store again after a push of this job's own, which the commit must not
// take for somebody else's, or one that came too late. A claim that is seen to be gone ends
// the work here, before it is paid for.
func (r *stepRun) reloadStore(ctx context.Context) (*gitcas.View, error) {
	v, err := r.e.Store.Reload(ctx, r.View, r.ID)
	if err != nil {
		return nil, err
	}
	r.View = v
	if r.lease == nil {
		return v, nil
	}
	if _, err := r.lease.See(v); err != nil {
		return nil, &life.NotYoursError{Thread: r.ID, Reason: "it was taken over, suspended or cancelled while its work branch was brought up"}
	}
	return v, nil
}

// location is the folder of the work tree that the role works in: the edge's, else the
// thread's; empty: the top.
func (r *stepRun) location() string {
	if cwd := r.WorkFolder(); r.plan.location == "" && cwd != "." {
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

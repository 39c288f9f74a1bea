package step

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/step/screen"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// restoreFolder makes the folder equal to the work branch's tip if that descends from
// the recorded commit, so that people's commits are kept, and to the recorded
// commit where the branch is not there.
func (r *agentRun) restoreFolder(ctx context.Context) error {
	from, err := r.FindBase(ctx)
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

// enterLocation makes the step's location the folder that the agent is started in. That of an
// edge was filled in from an agent's output, so it is only taken inside the workspace.
func (r *agentRun) enterLocation() error {
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

// salvageTree takes a picture of the folder for the attempt ref, without files that may
// hold a token; the zero id when there is none, or when it holds a secret.
func (r *agentRun) salvageTree(ctx context.Context) wire.ID {
	if r.snap == nil {
		if !r.restored || r.unreadable {
			return wire.ZeroID
		}
		snap, err := r.takeSnapshot(ctx, "attempt", nil)
		var found *screen.FoundError
		if errors.As(err, &found) && !found.Known() {
			snap, err = r.takeSnapshot(ctx, "attempt", nil, found.Paths()...)
		}
		if err != nil {
			return wire.ZeroID
		}
		r.snap = snap
	}
	return r.snap.Tree
}

func (r *agentRun) workObjects() []wire.PackObject {
	if r.snap == nil {
		return nil
	}
	return r.snap.Objects
}

func (r *agentRun) workParents() []wire.ID {
	if r.from == wire.ZeroID {
		return nil
	}
	return []wire.ID{r.from}
}

// takeSnapshot makes the work commit and refuses one that holds what must not be
// committed. Files at the paths without are left as they were.
// workMessage is the message of the step's commit on the work branch; s is nil where there is
// no step.
func (r *agentRun) workMessage(result string, s *sealed) (string, error) {
	head := node.Pin{Hash: reading.HeadOf(r.Chain), Digest: r.Chain.Head}
	if s == nil {
		return story.WorkMessage(r.task, r.stepMaker(), head, result, nil, nil)
	}
	return story.WorkMessage(r.task, r.stepMaker(), head, result, &s.Told, s.step.Usage)
}

func (r *agentRun) takeSnapshot(ctx context.Context, result string, s *sealed, without ...string) (*workspace.Snapshot, error) {
	snap, err := r.snapshotChecked(ctx, result, s, without...)
	var found *screen.FoundError
	r.unreadable = err != nil && !errors.As(err, &found)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("what is in %s takes too long to read: remove what isn't needed, or add whole folders of it to .gitignore: %w", r.e.Folder.Dir(), err)
	case errors.Is(err, workspace.ErrLimit):
		err = fmt.Errorf("%w; what the agent left is in %s until the next try", err, r.e.Folder.Dir())
	}
	return snap, err
}

func (r *agentRun) snapshotChecked(ctx context.Context, result string, s *sealed, without ...string) (*workspace.Snapshot, error) {
	msg, err := r.workMessage(result, s)
	if err != nil {
		return nil, err
	}
	snap, err := r.e.Folder.Snapshot(ctx, workspace.SnapshotRequest{
		Parents: r.workParents(), Message: msg, When: r.Lease.ServerTime(), Without: without,
	})
	if err != nil {
		return nil, err
	}
	for _, k := range snap.Skipped {
		r.emitNotice(fmt.Sprintf("%s is not kept: %s", k.Path, k.Why))
	}
	if n := snap.MoreSkipped; n > 0 {
		r.emitNotice(fmt.Sprintf("%d more are not kept", n))
	}
	if err := screen.Search(ctx, snap, r.e.Redact, r.e.ReadBlobs); err != nil {
		return nil, err
	}
	return &snap, nil
}

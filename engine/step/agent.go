package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/patch"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/step/screen"
	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/text"
)

// runAgent runs the agent while the claim is renewed beside it. Its error is the
// step's: the attempt has been kept by then.
func (r *run) runAgent(ctx context.Context) (task.Draft, error) {
	r.Lease.Budget = r.task.Budget
	r.e.Emit(thread.Event{Kind: "agent", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Agent: r.task.Agent, Text: r.task.EdgePrompt})
	r.task.Timeout = r.Lease.AgentTime(r.task.Timeout)
	var draft task.Draft
	err := r.Work(ctx, &r.meter, func(ctx context.Context) (err error) {
		if r.req.OnClaimed != nil {
			err = r.req.OnClaimed(ctx, r.task)
		}
		switch {
		case err != nil:
		case r.req.TakesOver != nil:
			draft, err = r.takeOver(ctx)
		default:
			draft, err = r.runChecked(ctx)
		}
		return err
	})
	var left *leftError
	var div *workbranch.DivergedError
	switch {
	case errors.Is(err, lease.ErrLost):
		return draft, r.endLostStep(ctx, "agent", draft, "it was taken over, suspended or cancelled while the agent ran")
	case errors.As(err, &div): // people moved the branch while another job's agent worked
		_, err = r.suspendWith(ctx, draft, div)
		return draft, err
	case errors.As(err, &left):
		return draft, r.failStep(ctx, left.phase, draft, err)
	case err != nil:
		return draft, r.failStep(ctx, "agent", draft, err)
	}
	return draft, nil
}

// maxLine bounds a line that a program or a file name has a part in, in bytes.
const maxLine = 1_000

// cleanLine makes such a line fit to be shown and kept: without secrets.
func (r *agentRun) cleanLine(line string) string {
	said, err := thread.CleanText(r.e.Redact, "line", line)
	if err != nil {
		said = "something that could not be checked for secrets"
	}
	return text.Cut(text.Line(said), maxLine)
}

// restoreFolder makes the folder equal to the work branch's tip if that descends from
// the recorded commit, so that people's commits are kept, and to the recorded
// commit where the branch is not there. The agent is started in the step's location: that of
// an edge was filled in from an agent's output, so it is only taken inside the workspace.
func (r *agentRun) restoreFolder(ctx context.Context) (err error) {
	r.from, err = r.FindBase(ctx)
	switch {
	case r.req.HandsOver && errors.Is(err, wire.ErrDenied): // the other job brings the branch up
		r.from, err = workbranch.CommitID(workbranch.Of(r.ID, r.Entry)), nil
	case r.req.TakesOver != nil: // the agent has been in a folder of its own
		return err
	}
	if err != nil {
		return err
	}
	if !r.from.IsZero() {
		if base := r.base(); r.e.Repository != nil && !base.IsZero() && base != r.from {
			r.e.Repository.Expect(base)
		}
		if err := r.e.Folder.Restore(ctx, r.from, r.base()); err != nil {
			return fmt.Errorf("restore %s to commit %s: %w", r.e.Folder.Dir(), r.from, err)
		}
		r.leftOut = r.e.Folder.ListLeftOut()
		r.task.LeftOut = r.leftOut[:min(len(r.leftOut), maxLeftOut)]
	}
	r.restored = true
	if r.task.Location != "" {
		if r.task.Workspace, err = r.e.Folder.Sub(r.task.Location); err != nil {
			return fmt.Errorf("go to location %q of the workspace: %w", r.task.Location, err)
		}
	}
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
		if found, ok := errors.AsType[*screen.FoundError](err); ok && !found.Known() {
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

// workMessage is the message of the step's commit on the work branch; s is nil where there is
// no step.
func (r *agentRun) workMessage(result string, s *sealed) (string, error) {
	head := node.Pin{Hash: reading.HeadOf(r.Chain), Digest: r.Chain.Head}
	if s == nil {
		return story.WorkMessage(r.task, r.stepMaker(), head, result, nil, nil)
	}
	return story.WorkMessage(r.task, r.stepMaker(), head, result, &s.Told, s.step.Usage)
}

// takeSnapshot makes the work commit and refuses one that holds what must not be
// committed. Files at the paths without are left as they were.
func (r *agentRun) takeSnapshot(ctx context.Context, result string, s *sealed, without ...string) (*workspace.Snapshot, error) {
	if r.req.TakesOver != nil {
		return r.snap, r.addWorkCommit(result, s, r.Lease.ServerTime())
	}
	snap, err := r.snapshotChecked(ctx, result, s, without...)
	r.unreadable = err != nil && !errors.As(err, new(*screen.FoundError))
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("what is in %s takes too long to read: remove what isn't needed, or add whole folders of it to .gitignore: %w", r.e.Folder.Dir(), err)
	case errors.Is(err, workspace.ErrLimit), errors.Is(err, workspace.ErrFilter):
		err = fmt.Errorf("%w; what the agent left is in %s until the next try", err, r.e.Folder.Dir())
	}
	return snap, err
}

func (r *agentRun) snapshotChecked(ctx context.Context, result string, s *sealed, without ...string) (*workspace.Snapshot, error) {
	msg, err := r.workMessage(result, s)
	if err != nil {
		return nil, err
	}
	snap, err := r.e.Folder.TakeSnapshot(ctx, workspace.SnapshotRequest{
		Parents: r.workParents(), Message: msg, When: r.Lease.ServerTime(), Without: without,
	})
	if err != nil {
		return nil, err
	}
	said := r.describeSnapshot(&snap)
	for _, line := range said {
		r.emitNotice(line)
	}
	r.notes = noteFolder(r, said)
	if err := screen.Search(ctx, snap, r.e.Redact, r.e.ReadBlobs); err != nil {
		return nil, err
	}
	return &snap, nil
}

// patchTimeout bounds how long the old versions of changed files are read.
const patchTimeout = 30 * time.Second

// sealPatch gives a step that changed files the patch of it. One that can't be made is
// left out, and said: the work itself is in the commit.
func (r *agentRun) sealPatch(ctx context.Context, o *sealed) {
	if r.snap.Unchanged || len(r.snap.Changes) == 0 {
		return
	}
	files, err := patch.CollectFiles(r.snap.Objects, r.snap.Changes, func(ids []wire.ID) (map[wire.ID][]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, patchTimeout)
		defer cancel()
		return workspace.FetchFiles(ctx, r.e.Store.Remote(), ids)
	})
	if err != nil {
		r.emitNotice("the record of what the step changed has no diff: " + err.Error())
	}
	base := ""
	if !r.from.IsZero() {
		base = r.from.String()
	}
	s := r.newSealer(nil)
	p := patch.Make(base, files, r.e.Clock.Now)
	h, clean, err := addPatch(s, p)
	if err != nil {
		r.emitNotice("what the step changed is not on record beside its commit: " + err.Error())
		return
	}
	o.step.Patch, o.Patch = &h, &clean
	o.nodes = append(o.nodes, s.Nodes()...)
}

// addPatch seals a patch, and returns it as it is then: without secrets.
func addPatch(s *seal.Sealer, p record.Patch) (h node.Hash, clean record.Patch, err error) {
	var n node.Node
	if h, err = s.AddUpTo(maxPatch, record.PatchSchema, p.Payload(), true); err == nil {
		n, err = s.Get(h)
	}
	if err == nil {
		clean, err = record.ParsePatch(n)
	}
	return h, clean, err
}

// maxPatch bounds the node of a patch, in bytes: a diff or hashes of lines, and names.
const maxPatch = 4 << 20

// ReadBlobs fetches contents of files that the remote has; those that it could get also
// beside an error. A file that is empty is not nil. A remote that is away is waited for,
// however little time ctx leaves for the work on this machine.
func (e *Stepper) ReadBlobs(ctx context.Context, ids []wire.ID) (map[wire.ID][]byte, error) {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.CommitGrace)
	defer cancel()
	return workspace.FetchFiles(ctx, e.Store.Remote(), ids)
}

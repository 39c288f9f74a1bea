package step

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// broughtInError says inside an Update that another job has brought this job's step in.
type broughtInError struct{ res thread.Result }

func (e *broughtInError) Error() string { return "the step is in the thread already" }

// commitStep pushes the step: nodes and head on the state branch, the edits on the
// work branch and the claim's deletion, all in one.
func (r *run) commitStep(ctx context.Context, d task.Draft, s *sealed, next plan) (thread.Result, error) {
	push, cancel := deadline.Outlive(ctx, 0, deadline.CommitGrace)
	defer cancel()
	var done *committed
	r.made = &s.step
	along, err := r.planNext(next, s.step.Usage)
	if err != nil {
		return r.endUncommitted(r.failStep(ctx, "commit", d, err))
	}
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		c, tried, err := r.stepChange(push, v, s, next, along)
		if err == nil {
			c.Landed = func(*gitcas.View) { done = tried }
		}
		return c, err
	}
	v, err := r.e.Update(push, r.View, build, r.ID)
	err = r.judgeLostRace(ctx, err)
	var moved *life.DeedError
	var div *workbranch.DivergedError
	switch {
	case err == nil:
		r.noteCommitted(push, v, done)
		r.dropFromDisk()
		if next.end && !r.req.Deliver {
			r.DropDeadTries(push, v)
		}
		return r.describeCommitted(done, s, next, along), nil
	case errors.As(err, &div):
		return r.suspendWith(ctx, d, div)
	case errors.As(err, &moved) && moved.Kind == life.KindNotYours:
		err = r.endLostStep(ctx, "commit", d, moved.Reason)
	case !errors.As(err, new(*broughtInError)):
		err = r.failStep(ctx, "commit", d, err)
	}
	return r.endUncommitted(err)
}

// judgeLostRace looks once more at a thread whose commit has lost every race: it may not be ours
// any more. If it can't be looked at, the error stays as it is.
func (r *run) judgeLostRace(ctx context.Context, lost error) error {
	if !errors.Is(lost, gitcas.ErrLostRace) {
		return lost
	}
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.LinkGrace)
	defer cancel()
	v, err := r.e.Store.Reload(ctx, r.View, r.ID)
	if err == nil {
		_, _, err = r.checkStillOurs(ctx, v)
	}
	if life.KindOf(err) == life.KindNotYours || errors.As(err, new(*broughtInError)) {
		return err
	}
	return lost
}

// endUncommitted is the end of a job that did not commit its step; there is no error where another
// job did that.
func (r *keeper) endUncommitted(err error) (thread.Result, error) {
	if done, ok := errors.AsType[*broughtInError](err); ok {
		r.dropFromDisk()
		return done.res, nil
	}
	return r.describeThread(), err
}

// findOwnStep is a *broughtInError where a view shows a thread that has moved on, and this job's
// sealed step in it: another job has brought it in. A thread that can't be read tells of
// none.
func (r *keeper) findOwnStep(ctx context.Context, v *gitcas.View) error {
	entry, alive := v.Entry(r.ID)
	if r.made == nil || alive && entry.Head == r.Entry.Head {
		return nil
	}
	now := newTurn(r.e, r.req)
	if err := now.ReadNow(ctx, v); err != nil || !now.HasStep(*r.made) {
		return nil //nolint:nilerr // see above
	}
	return &broughtInError{now.Report(now.describeThread())}
}

// noteCommitted takes note of a commit that is in the store. Where the remote has no
// atomic pushes the work branch may not have got its part yet: it is brought up at
// once if that can be done, else by the next job, and until then the commit is on
// the attempt ref.
func (r *run) noteCommitted(ctx context.Context, v *gitcas.View, done *committed) {
	r.View = v
	r.Lease.Adopt(v)
	if r.e.Store.Atomic(v) {
		return
	}
	fresh, err := r.e.Store.Reload(ctx, v, r.ID)
	if err != nil {
		return
	}
	if workbranch.Tip(fresh, done.entry.Work).IsZero() && r.snap != nil && !r.snap.Unchanged {
		first := wire.RefUpdate{Name: workbranch.Ref(done.entry.Work.Branch), New: plumbing.NewHash(done.entry.Work.Commit)}
		_ = r.e.Store.PushRef(ctx, first, nil) // else by the next job
		return
	}
	r.e.Branches().CatchUp(ctx, fresh, r.ID, done.entry.Work)
}

// committed is a step as it went out.
type committed struct {
	entry  gitcas.Entry
	digest node.Digest // of the head
	claim  gitcas.Held // that of the next step, where it went out too
}

// stepChange is the commit as v allows it: rebuilt for every try.
func (r *run) stepChange(ctx context.Context, v *gitcas.View, s *sealed, next plan, along *lease.Lease) (*gitcas.Change, *committed, error) {
	entry, held, err := r.checkStillOurs(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	work, refs, objs, err := r.placeWork(ctx, v, entry, next, s)
	if err != nil {
		return nil, nil, err
	}
	step := s.step
	if work.Commit != "" {
		step.Work = &record.Work{Branch: work.Branch, Commit: work.Commit}
	}
	nodes, prev, err := r.attemptLedger().ReadErrorSteps(ctx, v, life.AttemptsOf(entry, r.ID, held.Died))
	if err != nil {
		return nil, nil, err
	}
	step.PreviousAttempts = append(r.PokedStep(), prev...)
	if step.Counts, err = r.attemptLedger().Count(step); err != nil {
		return nil, nil, err
	}
	head, own, err := v.Complete(ctx, r.ID, step, r.Lease.ServerTime(), s.nodes, nodes)
	if err != nil {
		return nil, nil, err
	}
	digest, err := digestOf(own, head)
	if err != nil {
		return nil, nil, err
	}
	nodes = append(nodes, own...)

	r.AddEffects(&entry)
	after := r.nextEntry(entry, head, work, next)
	r.NoteSpent(&after, r.used, step.Usage)
	tale := story.Of(&r.Thread, after)
	tale.Took = story.CostOf(r.used)
	tale.AddStep(s.Output, next.result, step, s.Words)
	if after.Status != gitcas.StatusActive {
		along = nil // it was to pause meanwhile
	}
	claim, claimObjs, claimed := lease.ExchangeClaim(along, v, r.ID, held, head)
	c := &gitcas.Change{
		Subject:  story.Subject(r.Title(), r.ID, story.DescribeStep(r.task.Role, next.result, r.task.Step)),
		Body:     story.CommitBody(&s.Told),
		Trailers: append(story.StepTrailers(r.task, r.stepMaker(), next.result, head), story.CostTrailers(r.task, step.Usage)...),
		Nodes:    nodes,
		Readable: map[string][]byte{
			layout.PagePath(r.ID, r.task.Step, r.task.Role): story.WriteStep(r.task, step, &s.Told, story.Outcome{Result: next.result, Ends: next.end, Waits: next.suspend != "", Role: next.role}),
			layout.IndexPath(r.ID):                          tale.WriteIndex(),
		},
		Threads: map[gitcas.ThreadID]*gitcas.Entry{r.ID: &after},
		Refs:    append(refs, claim),
		Objects: append(claimObjs, objs...),
	}
	if next.end && !r.req.Deliver {
		line := r.EndLine(after)
		line.Result = text.OneLine(next.result)
		c.Archive = []gitcas.Ended{line}
	}
	if !r.e.Store.Atomic(v) {
		if err := r.holdWork(c, v, own, work); err != nil {
			return nil, nil, err
		}
	}
	return c, &committed{entry: after, digest: digest, claim: claimed}, nil
}

// digestOf is the digest of a record among nodes.
func digestOf(nodes []gitcas.PlacedNode, h node.Hash) (node.Digest, error) {
	for _, n := range nodes {
		if n.Hash == h && n.Place.Of == "" {
			return n.Node.Sum()
		}
	}
	return "", fmt.Errorf("%w: %s", node.ErrNotFound, h)
}

// checkStillOurs applies the rules for committing: the claim is still this run's and
// the thread is as it was, except for what does not matter.
func (r *run) checkStillOurs(ctx context.Context, v *gitcas.View) (gitcas.Entry, gitcas.Held, error) {
	entry, alive := v.Entry(r.ID)
	held, claimed := v.FindClaim(r.ID)
	if err := r.findOwnStep(ctx, v); err != nil {
		return entry, held, err
	}
	switch {
	case !alive:
		ended, err := reading.FindEnded(ctx, v, r.ID)
		if err == nil || errors.As(err, new(*life.UnknownThreadError)) {
			err = r.Refuse(life.DescribeEnd(ended))
		}
		return entry, held, err
	case entry.Head != r.Entry.Head:
		return entry, held, r.Refuse("its head moved on to " + string(entry.Head))
	case !life.SameThread(entry, r.Entry):
		return entry, held, r.Refuse("it was changed while the agent worked")
	case !claimed || !r.Lease.Owns(held.Claim):
		return entry, held, r.Refuse("the claim is no longer ours")
	}
	return entry, held, nil
}

// placeWork puts the edits on the work branch: as they are where nobody pushed
// meanwhile, else replayed on people's commits where no file overlaps.
func (r *run) placeWork(ctx context.Context, v *gitcas.View, entry gitcas.Entry, next plan, s *sealed) (gitcas.Work, []wire.RefUpdate, []wire.PackObject, error) {
	work := workbranch.Of(r.ID, entry)
	tip := workbranch.Tip(v, work)
	if r.snap == nil || r.snap.Unchanged {
		if !r.from.IsZero() {
			work.Commit = r.from.String() // people's commits that the agent has seen
		}
		return work, nil, nil, nil
	}
	objs := r.snap.Objects
	target := r.snap.Commit
	if !tip.IsZero() && tip != r.from {
		replayed, more, err := r.replayEdits(ctx, work, tip, next, s)
		if err != nil {
			return work, nil, nil, err
		}
		target, objs = replayed, append(objs[:len(objs):len(objs)], more...)
	}
	work.Commit = target.String()
	return work, []wire.RefUpdate{{Name: workbranch.Ref(work.Branch), Old: tip, New: target}}, objs, nil
}

func (r *run) replayEdits(ctx context.Context, work gitcas.Work, tip wire.ID, next plan, s *sealed) (wire.ID, []wire.PackObject, error) {
	contains, err := workbranch.Contains(ctx, r.e.Store.Remote(), tip, r.from)
	if err != nil {
		return wire.ZeroID, nil, err
	}
	if !contains {
		return wire.ZeroID, nil, &workbranch.DivergedError{Branch: work.Branch, Recorded: r.from.String(), Tip: tip.String()}
	}
	msg, err := r.workMessage(next.result, s)
	if err != nil {
		return wire.ZeroID, nil, err
	}
	known := make(wire.Objects, len(r.snap.Objects))
	for _, o := range r.snap.Objects {
		known.Add(o.Object)
	}
	work.Commit = r.from.String()
	join := workbranch.Join{Work: work, Base: r.from, Ours: r.snap.Commit, Tip: tip, Parents: []wire.ID{tip}, Known: known}
	return join.Commit(ctx, r.e.Store.Remote(), r.Lease.ServerTime(), msg)
}

// nextEntry is the thread's entry after the step.
func (r *run) nextEntry(entry gitcas.Entry, head node.Hash, work gitcas.Work, next plan) gitcas.Entry {
	entry.Head, entry.Work = head, work
	at := r.Lease.ServerTime().UnixMilli()
	switch {
	case next.end:
		life.EndThread(&entry, r.req.Deliver, at)
	case next.suspend != "":
		life.MakeWait(&entry, r.task.Role, next.suspend, nil)
		entry.Next, entry.Attempts = nil, nil
	default:
		entry.Status, entry.Suspended, entry.Attempts, entry.Next = gitcas.StatusActive, nil, nil, &gitcas.Next{Role: next.role, Since: at}
		if entry.Pause != nil {
			life.ApplyPause(&entry, next.role)
		}
	}
	return entry
}

// holdWork makes a push without atomicity safe: the attempt ref goes first and
// holds the work commit until the work branch has it.
func (r *run) holdWork(c *gitcas.Change, v *gitcas.View, nodes []gitcas.PlacedNode, work gitcas.Work) error {
	a := r.newAttempt(nodes)
	if work.Commit != "" {
		a.Parents = []wire.ID{plumbing.NewHash(work.Commit)}
	}
	return r.Attempt.AddTo(c, v, "work "+work.Commit, a, nil)
}

// describeCommitted is the result of a step that is on the state branch, with the claim for
// the next one.
func (r *run) describeCommitted(done *committed, s *sealed, next plan, along *lease.Lease) thread.Result {
	res := r.describeThread()
	res.Head, res.HeadDigest, res.Status, res.Result = done.entry.Head, done.digest, string(done.entry.Status), next.result
	res.Role, res.NextRole, res.Step, res.Usage, res.Done = r.task.Role, next.role, r.task.Step, s.step.Usage, next.end
	// Without edits the thread has no branch of its own.
	if w := done.entry.Work; w.Commit != "" && (w.Commit != r.Chain.Start.Base || !workbranch.Tip(r.View, w).IsZero()) {
		res.Work = &record.Work{Branch: w.Branch, Commit: w.Commit}
	}
	res.Checks, res.View = s.step.Checks, r.View
	res.AddEntry(done.entry)
	kind := "committed"
	if res.Suspended != nil {
		kind = "suspended"
	} else if next.end {
		kind = "ended"
	}
	r.e.Emit(thread.Event{Kind: kind, Thread: r.ID, Step: r.task.Step, Role: r.task.Role, Agent: r.task.Agent, Status: next.result, Usage: *s.step.Usage})
	if !done.claim.ID.IsZero() {
		along.NoteClaim(done.claim, false)
		res.Held = along
	}
	r.e.Reached("commit")
	return res
}

// suspendThread suspends the thread and returns the error that the step ends with.
func (r *run) suspendThread(ctx context.Context, reason string) (thread.Result, error) {
	if err := r.Suspend(ctx, r.waitingRole(), reason, nil, nil); err != nil {
		return r.describeThread(), err
	}
	return r.describeThread(), life.NewWaitingError(r.ID, r.Entry)
}

// suspendWith suspends a thread whose finished step can't be placed on the work
// branch; the step is kept as an attempt in the same push.
func (r *run) suspendWith(ctx context.Context, d task.Draft, cause *workbranch.DivergedError) (thread.Result, error) {
	a := r.buildAttempt(ctx, "commit", d, cause)
	err := r.Suspend(ctx, r.waitingRole(), cause.Error(), &a, r.workObjects())
	var moved *life.DeedError
	switch {
	case errors.As(err, &moved) && moved.Kind == life.KindNotYours:
		return r.endUncommitted(r.endLostStep(ctx, "commit", d, moved.Reason))
	case err != nil:
		// The work is done: whatever keeps the thread from being suspended, it is kept.
		return r.endUncommitted(r.failStep(ctx, "commit", d, errors.Join(cause, err)))
	}
	r.dropFromDisk()
	return r.describeThread(), life.NewWaitingError(r.ID, r.Entry)
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

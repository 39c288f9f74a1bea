package step

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/step/screen"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/text"
)

// BringIn puts the sealed step that is kept on this machine for a thread into it, as the
// job that sealed it would have, and without its agent: under a fresh claim, and only
// where the thread is as that job read it. It reports whether the step is in the thread
// now, brought in or, with Result.Again, already there. Else there was none, or it became
// an attempt: then the thread is to be stepped like any other. A step whose thread somebody
// else works on, or that can't be pushed, stays on this machine, beside the error.
//
// Step does the same first, so that only a job that is to run no agent calls it.
func (e *Stepper) BringIn(ctx context.Context, req Request) (thread.Result, bool, error) {
	r := newRun(e, req)
	ctx, stop := deadline.WatchInterrupt(ctx, e.Clock)
	defer stop()
	res, in, err := r.describeThread(), false, r.Load(ctx)
	if err == nil {
		res, in, err = r.bringIn(ctx)
	}
	err = res.Conclude(e.Redact, err)
	return res, in, err
}

// bringIn is BringIn of a thread that was loaded. There may be several steps: what became an
// attempt, or was there already, makes way for the next. The thread is loaded again then.
func (r *run) bringIn(ctx context.Context) (thread.Result, bool, error) {
	if r.e.Unpushed == nil {
		return r.describeThread(), false, nil
	}
	var again *thread.Result
	for {
		u, err := r.e.Unpushed.Read(r.View.StoreID(), r.ID)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		b := &bringing{newRun(r.e, r.req)}
		b.View, b.Entry, b.onDisk = r.View, r.Entry, true
		b.SetNodeSource(ctx, r.View)
		var bad *unpushed.BadError
		switch {
		case errors.As(err, &bad):
			b.setAside(bad.Path, err)
		case err != nil:
			r.emitNotice(err.Error())
		default:
			res, in, err := b.placeStep(ctx, u)
			if in && !res.Again || err != nil {
				return res, in, err
			}
			if in {
				again = &res
			}
			if err := r.Load(ctx); err != nil {
				return r.describeThread(), false, err
			}
		}
		if b.onDisk { // it can't be moved, and would be found again
			break
		}
	}
	if again != nil {
		return *again, true, nil
	}
	return r.describeThread(), false, nil
}

// bringing is a run that brings in a step which another job sealed.
type bringing struct{ *run }

// brought is a sealed step that another job left.
type brought struct {
	unpushed.Step
	step record.Step
	// same: the thread is as that job read it.
	same bool
}

// replacesClaim reports whether the step tells all that a dead claim tells of: that it was made
// under it, and took as much.
func (b *brought) replacesClaim(c gitcas.Claim) bool {
	u, run := b.step.Usage, b.step.Run
	switch {
	case c.Nonce != b.Nonce:
		return false
	case c.Ahead:
		return true // all that its jobs might have used is charged
	}
	return c.Run == run.ID && c.Attempt == run.Attempt && c.Tokens <= u.InputTokens+u.OutputTokens && c.CostUSD <= u.CostUSD
}

// asDraft is the step as its agent left it, but that it was redacted and hashed by the job
// that ran it. It is sealed again, so that nothing in it is taken on trust. Records of
// the thread that it refers to are the thread's.
func (b *brought) asDraft() task.Draft {
	d := task.Draft{Handle: b.Handle, Nodes: map[node.Hash]node.Node{}}
	for h, n := range b.Nodes {
		if h == b.Handle || !record.IsRecord(n.Type) {
			d.Nodes[h] = n
		}
	}
	return d
}

// readPrompt is what the agent was told.
func (b *brought) readPrompt() string {
	if b.step.AssembledPrompt == nil {
		return ""
	}
	text, _ := b.Nodes[*b.step.AssembledPrompt].Payload.(string)
	return text
}

// isJobOrRemoteError reports whether an error is the remote's or the job's own, and not to be
// blamed on what is brought in: that stays for the next step then.
func isJobOrRemoteError(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || slices.ContainsFunc([]error{
		wire.ErrUnreachable, wire.ErrUnreadable, wire.ErrDenied, wire.ErrLostRace, wire.ErrReadOnly, wire.ErrNoProgram,
	}, func(kind error) bool { return errors.Is(err, kind) }))
}

// placeStep finds out what becomes of the step, and sees to it. It reports whether the step
// is in the thread.
func (r *bringing) placeStep(ctx context.Context, u unpushed.Step) (thread.Result, bool, error) {
	made, err := u.Record()
	r.brought = &brought{Step: u, step: made}
	if err != nil {
		r.setAside(r.diskPath(), err)
		return r.describeThread(), false, nil
	}
	live := r.View
	entry, alive := live.Entry(r.ID)
	switch err := r.ReadNow(ctx, live); {
	case errors.As(err, new(*life.UnknownThreadError)):
		return r.describeThread(), false, nil // of another store's thread: the step itself says so
	case err != nil:
		return r.describeThread(), false, err
	}
	if r.HasStep(r.brought.step) {
		r.dropFromDisk()
		return r.Report(r.describeThread()), true, nil
	}
	if alive && r.wasPoked() {
		r.dropFromDisk()
		return r.describeThread(), false, nil
	}
	if expect := r.Expect.Hash; alive && expect != "" && expect != entry.Head {
		return r.describeThread(), false, nil // the step itself says so
	}
	if err := r.CheckHead(); alive && err != nil {
		return r.describeThread(), false, err
	}
	switch err := r.checkBrought(ctx); {
	case isJobOrRemoteError(ctx, err):
		return r.describeThread(), false, err
	case err != nil:
		r.setAside(r.diskPath(), err)
		return r.describeThread(), false, nil
	}
	if !alive || entry.Status != gitcas.StatusActive || entry.Head != r.brought.Entry.Head {
		if err := r.CutAfter(r.brought.Entry.Head); err != nil {
			return r.describeThread(), false, err
		}
		r.Lease = r.e.Leases().NewUnclaimedLease(live, r.ID, r.Entry)
		return r.keepBrought(ctx, live, "the thread has moved on, or waits, since", false)
	}
	if err := r.Claim(ctx, lease.Terms{Work: lease.DeliveryTime}); err != nil {
		return r.describeThread(), false, err
	}
	defer r.Lease.Release(ctx)
	r.SetNodeSource(ctx, r.View)
	r.brought.same = life.SameTask(r.Entry, r.brought.Entry)
	if !r.brought.same {
		return r.keepBrought(ctx, r.View, "people have changed the thread since", true)
	}
	return r.commitBrought(ctx)
}

// wasPoked reports whether it was there, and was taken back since.
func (r *bringing) wasPoked() bool {
	return slices.ContainsFunc(r.PokedStep(), func(h node.Hash) bool {
		s, err := r.tried.ReadStep(h)
		return err == nil && reading.SameStep(s, r.brought.step)
	})
}

// checkBrought checks what can be checked before anything is pushed: all that the file
// says of its role and of the agent's folder.
func (r *bringing) checkBrought(ctx context.Context) error {
	b := r.brought
	if _, ok := r.Def.Roles[b.step.Role]; !ok {
		return fmt.Errorf("the workflow has no role %q", b.step.Role)
	}
	r.plan = plan{role: b.step.Role, agent: b.step.Agent}
	r.task = task.Task{
		Thread: r.ID, Role: b.step.Role, Agent: b.step.Agent, Step: r.StepNumber(), Start: r.Chain.StartHash, Prev: r.LastStep(),
		Workflow: r.Chain.Start.Workflow, WorkflowName: r.Def.Name, Cwd: r.WorkFolder(), Run: r.stepMaker(), Entry: r.Entry, Definition: r.Def,
		OutputSchema: r.Def.Roles[b.step.Role].Frontmatter, Suspends: r.Def.AgentSuspends,
	}
	return r.rebuildWork(ctx, b.Work)
}

// rebuildWork makes the snapshot of the folder that another job's agent left. What is said of
// it is hostile.
func (r *agentRun) rebuildWork(ctx context.Context, w unpushed.Work) error {
	r.from = w.From
	if w.Commit.IsZero() {
		r.snap = &workspace.Snapshot{Commit: r.from, Unchanged: true}
		return nil
	}
	c, err := gitobj.DecodeCommit(w.Objects[w.Commit].Data)
	if err != nil {
		return err
	}
	snap, err := workspace.RebuildSnapshot(ctx, r.e.Store.Remote(), r.workParents(), c.Tree, w.Objects)
	if err == nil {
		err = screen.Search(ctx, snap, r.e.Redact, r.e.ReadBlobs)
	}
	if err != nil {
		return err
	}
	snap.Unchanged = len(snap.Changes) == 0
	r.snap = &snap
	return nil
}

// addWorkCommit makes the step's commit of such a snapshot.
func (r *agentRun) addWorkCommit(result string, s *sealed, at time.Time) error {
	if r.snap.Unchanged {
		return nil
	}
	msg, err := r.workMessage(result, s)
	if err != nil {
		return err
	}
	return r.snap.AddCommit(workspace.SnapshotRequest{Parents: r.workParents(), Message: msg, When: at})
}

// keepBrought keeps the step as an attempt of the run that made it, and nothing is left
// on this machine then.
func (r *bringing) keepBrought(ctx context.Context, live *gitcas.View, why string, link bool) (thread.Result, bool, error) {
	d := r.brought.asDraft()
	r.task.Nodes, _ = r.visibleNodes() // without them less of the attempt can be checked, and kept
	cause := fmt.Errorf("it was sealed, and not pushed before its job ended; %s", why)
	a := r.buildAttempt(ctx, "commit", d, cause)
	r.View = live
	ref, _, err := r.saveAttempt(ctx, a, link)
	switch {
	case err == nil:
		r.emitNotice(fmt.Sprintf("the step that run %s had sealed was kept as an attempt, %s: %s", text.OneLine(r.stepMaker().ID), ref, why))
	case isJobOrRemoteError(ctx, err):
		return r.describeThread(), false, fmt.Errorf("keep the step that run %s had sealed: %w", text.OneLine(r.stepMaker().ID), err)
	default: // it must not keep the thread from going on
		r.setAside(r.diskPath(), err)
	}
	return r.describeThread(), false, nil
}

// commitBrought commits the step, with the claim in hand, by the ordinary rules: all but
// what its agent made is worked out again.
func (r *bringing) commitBrought(ctx context.Context) (thread.Result, bool, error) {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.CommitGrace)
	defer cancel()
	d := r.brought.asDraft()
	step, next, err := r.sealBrought(ctx, d)
	var div *workbranch.DivergedError
	var res thread.Result
	switch {
	case errors.As(err, &div):
		res, err = r.suspendWith(ctx, d, div)
	case isJobOrRemoteError(ctx, err):
		return r.describeThread(), false, err // it stays for the next job
	case err != nil:
		res, err = r.describeThread(), r.failStep(ctx, "seal", d, err)
	default:
		r.emitNotice(fmt.Sprintf("the step that run %s had sealed is brought in; its agent does not run again", text.OneLine(r.stepMaker().ID)))
		res, err = r.commitStep(ctx, d, step, next)
	}
	switch {
	case err == nil:
		return res, true, nil
	case r.onDisk || life.KindOf(err) == life.KindSuspended:
		return res, false, err
	}
	r.emitNotice(fmt.Sprintf("the step that run %s had sealed was kept as an attempt: %v", text.OneLine(r.stepMaker().ID), err))
	return r.describeThread(), false, nil
}

// sealBrought does what a job does between its agent and the commit.
func (r *bringing) sealBrought(ctx context.Context, d task.Draft) (*sealed, plan, error) {
	held, _ := r.Lease.Current()
	decision, err := r.DecideNext()
	if err != nil {
		return nil, plan{}, err
	}
	if p := planOf(decision); p.role != r.plan.role {
		return nil, plan{}, fmt.Errorf("the next step is role %s's, and not role %s's", p.role, r.plan.role)
	}
	r.plan.prompt = decision.Prompt
	if err := r.noteApproval(); err != nil {
		return nil, plan{}, err
	}
	if err := r.countUsed(ctx, held.Died); err != nil {
		return nil, plan{}, err
	}
	r.task.EdgePrompt, r.task.Prompt = r.plan.prompt, r.brought.readPrompt()
	r.prepared = r.brought.readPrepared("the job that ran it")
	r.task.Entry = r.Entry
	if name := r.brought.Model; name != "" {
		r.task.Model = &task.Model{Name: name}
	}
	if r.task.Nodes, err = r.visibleNodes(); err == nil {
		err = r.checkFrom(ctx)
	}
	if err != nil {
		return nil, plan{}, err
	}
	step, next, _, err := r.sealAndDecide(d)
	if err == nil {
		err = r.addWorkCommit(next.result, step, r.madeAt())
	}
	if err == nil {
		r.sealPatch(ctx, step)
	}
	return step, next, err
}

// madeAt is when the work commit was made, so that it is made again as it was.
func (r *bringing) madeAt() time.Time {
	now := r.Lease.ServerTime()
	c, err := gitobj.DecodeCommit(r.brought.Work.Objects[r.brought.Work.Commit].Data)
	if err != nil || c.Committer.When.After(now) {
		return now
	}
	return c.Committer.When
}

// checkFrom makes sure that the agent's folder was made equal to a commit that this
// thread's can be made equal to: the recorded one, or one on the work branch after it.
func (r *agentRun) checkFrom(ctx context.Context) error {
	w := workbranch.Of(r.ID, r.Entry)
	recorded, tip := workbranch.CommitID(w), workbranch.Tip(r.View, w)
	if r.from == recorded || r.from == tip {
		return nil
	}
	if tip.IsZero() || r.from.IsZero() {
		return fmt.Errorf("its agent began at commit %s, which is not the thread's", r.from)
	}
	on, err := workbranch.Contains(ctx, r.e.Store.Remote(), tip, r.from)
	if err == nil && on && !recorded.IsZero() {
		on, err = workbranch.Contains(ctx, r.e.Store.Remote(), r.from, recorded)
	}
	if err == nil && !on {
		err = &workbranch.DivergedError{Branch: w.Branch, Recorded: r.from.String(), Tip: tip.String()}
	}
	return err
}

// baseOfBrought is what is on record of a step that another job made. What that job
// measured is not measured again.
func (r *agentRun) baseOfBrought() record.Step {
	s := r.brought.step
	now := r.Lease.ServerTime().UnixMilli()
	done := max(min(s.CompletedAtMs, now), 0)
	usage := *s.Usage
	usage.Model = story.ModelOf(r.task, &usage)
	out := record.Step{
		Start: r.task.Start, Prev: r.task.Prev, Role: r.task.Role, Agent: r.task.Agent, EdgePrompt: r.task.EdgePrompt,
		StartedAtMs: max(min(s.StartedAtMs, done), 0), CompletedAtMs: done, Cwd: r.task.Cwd, Usage: &usage, Run: s.Run,
		Checks: r.reportedChecks(s.Checks, "the job that ran them"), Notes: reportedNotes(r, s.Notes, "the job that ran it"),
	}
	if next := r.Entry.Next; next != nil && r.brought.same {
		out.By = next.By
	}
	return out
}

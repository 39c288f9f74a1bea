package step

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/obstacle"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// failStep ends a step that gave no output: what there is goes to the attempt ref,
// is linked from the thread while the claim is still ours, and the claim is let
// go. It returns the error that the step ends with.
//
// A sealed step that lost every race has not failed: it stays on this machine, under its claim,
// and the next step here brings it in, as after an outage. So does one whose push something is in
// the way of, but that it is an attempt, too: another machine knows of it then.
func (r *keeper) failStep(ctx context.Context, phase string, d task.Draft, cause error) error {
	unsure := phase == "commit" && errors.Is(cause, gitcas.ErrUnsure)
	if phase == "commit" && r.onDisk && errors.Is(cause, gitcas.ErrLostRace) {
		r.Lease.Leave()
		return &life.FailedError{Thread: r.ID, Role: r.task.Role, Phase: phase, Err: cause, OnDisk: r.diskPath(), Unsure: unsure}
	}
	_, inTheWay := obstacle.Of(cause)
	r.stays = inTheWay && phase == "commit" && r.onDisk
	switch {
	case deadline.StoppedByPerson(ctx):
		phase = life.PhaseStopped
	case deadline.WasInterrupted(ctx):
		phase = life.PhaseInterrupted
	}
	ref, step, err := r.saveAttempt(ctx, r.buildAttempt(ctx, phase, d, cause), true)
	if errors.As(err, new(*broughtInError)) {
		return err
	}
	failure := &life.FailedError{Thread: r.ID, Role: r.task.Role, Phase: phase, Attempt: ref, Step: step, Err: cause, Tries: r.tries, Show: r.showAttempt(ref), Unsure: unsure}
	if r.stays {
		failure.OnDisk = r.diskPath()
	}
	if err != nil {
		failure.Err = errors.Join(cause, fmt.Errorf("and what it produced could not be kept: %w", err))
		if r.onDisk {
			failure.OnDisk, failure.Err = r.diskPath(), errors.Join(cause, fmt.Errorf("nor could it be kept as an attempt: %w", err))
		}
	}
	return failure
}

// endLostStep ends a step whose thread is no longer ours: only the attempt is kept.
func (r *keeper) endLostStep(ctx context.Context, phase string, d task.Draft, reason string) error {
	ref, _, err := r.saveAttempt(ctx, r.buildAttempt(ctx, phase, d, errors.New(reason)), false)
	if errors.As(err, new(*broughtInError)) {
		return err
	}
	if err != nil {
		// Somebody else has the thread, but this job's work is gone: that is no
		// quiet ending.
		return &life.FailedError{Thread: r.ID, Role: r.task.Role, Phase: phase,
			Err: fmt.Errorf("the thread is not ours any more (%s), and what this job produced could not be %s: %w", reason, r.describeNotKept(), err)}
	}
	moved := r.Refuse(reason)
	moved.Kept, moved.Show = ref, r.showAttempt(ref)
	return moved
}

// showAttempt is the command that shows what a ref of the store's remote holds.
func (r *keeper) showAttempt(ref string) string {
	if r.e.ShowRef == nil || ref == "" {
		return "git show " + ref
	}
	return r.e.ShowRef(ref)
}

// describeNotKept says of what a job produced what could not be done with it.
func (r *keeper) describeNotKept() string {
	if !r.onDisk {
		return "kept"
	}
	return fmt.Sprintf("pushed; it is in %s, from where the thread's next step on this machine brings it in", r.diskPath())
}

// saveAttempt pushes the attempt ref. With link it also names the attempt in the
// thread's entry and deletes the claim in the same push, provided that claim and
// head are still ours. It returns the ref, and the StepNode that tells of the attempt.
func (r *keeper) saveAttempt(ctx context.Context, a gitcas.Attempt, link bool) (ref string, step node.Hash, err error) {
	if r.req.HandsOver {
		return "", "", r.handOverFailure(a)
	}
	err = r.pushAttempt(ctx, a, link)
	if errors.Is(err, wire.ErrSecretRefused) {
		// The server found a secret, most likely in the folder: without it, at
		// least the record of the attempt is kept.
		r.snap, a.WorkTree = nil, wire.ZeroID
		err = r.pushAttempt(ctx, a, link)
	}
	if errors.As(err, new(*broughtInError)) {
		return "", "", err
	}
	if err != nil {
		// Whatever keeps the thread from being changed, a branch rule, a damaged
		// store or too many others: the attempt's own ref is this job's alone. The
		// next step links it.
		if link {
			a.Unlinked = r.Entry.Head
		}
		if alone := r.pushAttemptAlone(ctx, a); alone != nil {
			return "", "", errors.Join(err, alone)
		}
	}
	r.e.Reached("attempt")
	if !r.stays {
		r.dropFromDisk()
	}
	r.Lease.Release(ctx)
	step, _ = attempt.ErrorStepOf(a.Nodes)
	return layout.AttemptRef(r.ID, a.Run, a.Attempt), step, nil
}

// buildAttempt is the attempt as it is to be kept.
func (r *keeper) buildAttempt(ctx context.Context, phase string, d task.Draft, cause error) gitcas.Attempt {
	ctx, cancel := deadline.Outlive(ctx, deadline.SalvageTimeout, deadline.SalvageGrace)
	defer cancel()
	a := r.newAttempt(nil)
	a.Nodes, a.Error = r.salvageDrafts(ctx, phase, d, cause)
	a.WorkTree = r.salvageTree(ctx)
	return a
}

// newAttempt is an attempt with some nodes, on what its agent worked from.
func (r *agentRun) newAttempt(nodes []gitcas.PlacedNode) gitcas.Attempt {
	made := r.stepMaker()
	return gitcas.Attempt{Thread: r.ID, Run: made.ID, Attempt: made.Attempt, Parents: r.workParents(), Nodes: nodes, At: r.Lease.ServerTime()}
}

func (r *keeper) pushAttempt(ctx context.Context, a gitcas.Attempt, link bool) error {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.LinkGrace)
	defer cancel()
	stopped := deadline.StoppedByPerson(ctx)
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		if err := r.findOwnStep(ctx, v); err != nil {
			return nil, err
		}
		return r.keepChange(v, a, link, stopped)
	}
	v, err := r.e.Update(ctx, r.View, build, r.ID)
	if err == nil {
		r.Lease.Adopt(v) // deleted in the same push
	}
	return err
}

// pushAttemptAlone pushes nothing but the attempt's ref, and reads nothing but that: the
// store may be what is broken.
func (r *keeper) pushAttemptAlone(ctx context.Context, a gitcas.Attempt) error {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.KeepGrace)
	defer cancel()
	ref := layout.AttemptRef(r.ID, a.Run, a.Attempt)
	old, _ := r.View.Ref(ref)
	what := "failure"
	if a.Unlinked != "" {
		what += ", not linked"
	}
	var err error
	for range workbranch.Tries {
		var upd wire.RefUpdate
		var objs []wire.PackObject
		if upd, objs, err = r.Attempt.Update(old, what, a); err != nil || upd.Name == "" {
			return err
		}
		if err = r.e.Store.PushRef(ctx, upd, append(objs, r.workObjects()...)); !errors.Is(err, wire.ErrLostRace) {
			return err
		}
		if l, lerr := r.e.Store.Remote().List(ctx, ref); lerr == nil {
			old = l.Refs[ref]
		}
	}
	return err
}

// keepChange is the push that keeps an attempt, as v allows it; nil when the
// attempt is there already and nothing is left to do.
func (r *keeper) keepChange(v *gitcas.View, a gitcas.Attempt, link, stopped bool) (*gitcas.Change, error) {
	c := &gitcas.Change{}
	if err := r.Attempt.AddTo(c, v, "failure", a, r.workObjects()); err != nil {
		return nil, err
	}
	entry, alive := v.Entry(r.ID)
	held, claimed := v.FindClaim(r.ID)
	mine := claimed && r.Lease.Owns(held.Claim)
	if mine {
		c.Refs = append(c.Refs, lease.DropClaim(r.ID, held))
	}
	if link && alive && mine && entry.Head == r.Entry.Head && entry.Status == gitcas.StatusActive {
		life.LinkAttempts(&entry, r.ID, held.Died)
		known := len(entry.Attempts)
		life.LinkAttempts(&entry, r.ID, nil, layout.AttemptRef(r.ID, a.Run, a.Attempt))
		result := "failed"
		if stopped {
			result = life.PhaseStopped
			life.ForgiveAttempts(&entry, len(entry.Attempts)-known, r.task.Role)
		}
		r.tries = life.CountAttempts(entry, r.ID, nil)
		r.AddEffects(&entry)
		r.NoteSpent(&entry, r.used, r.lost)
		if entry.Pause != nil {
			life.ApplyPause(&entry, r.task.Role)
		}
		c.Threads = map[gitcas.ThreadID]*gitcas.Entry{r.ID: &entry}
		c.Subject = story.Subject(r.Title(), r.ID, story.DescribeStep(r.task.Role, result, r.task.Step))
		c.Body = a.Error
		c.Trailers = story.StepTrailers(r.task, r.stepMaker(), result, entry.Head)
	}
	if len(c.Refs) == 0 && c.Threads == nil {
		return nil, nil
	}
	return c, nil
}

// salvageDrafts makes the error StepNode and keeps each draft that passes the checks
// by itself, as long as ctx lasts. It fails closed: what can't be redacted is left
// out. The error StepNode comes first: no agent can fill the room that it needs.
func (r *keeper) salvageDrafts(ctx context.Context, phase string, d task.Draft, cause error) ([]gitcas.PlacedNode, string) {
	step := r.baseStep(task.Draft{Usage: d.Usage, Took: d.Took}, record.Step{})
	r.lost = step.Usage
	s := r.newSealer(d.Nodes)
	reason, err := s.Clean(cause.Error())
	if err != nil {
		reason = "the error message could not be checked for secrets and was left out"
	}
	reason = text.Cut(reason, attempt.MaxErrorText)
	var h node.Hash
	var nodes []gitcas.PlacedNode
	step.Output, err = s.Add(record.ErrorOutputSchema, map[string]any{"$status": "error", "error": reason, "phase": phase}, false)
	if err == nil {
		step.Detail, err = s.Add(node.String, text.Cut(d.Stderr, attempt.MaxErrorText), false)
	}
	if err == nil {
		step.EdgePrompt, err = s.Clean(step.EdgePrompt)
	}
	if err == nil {
		h, nodes, err = r.View.Complete(ctx, r.ID, step, r.Lease.ServerTime(), s.Nodes(), nil)
	}
	if err != nil {
		return nil, reason
	}
	own := len(s.Nodes())
	s.Salvage(ctx)
	for _, n := range s.Nodes()[own:] {
		n.Place = gitcas.Place{Thread: r.ID, Of: h, Detail: true}
		nodes = append(nodes, n)
	}
	return nodes, reason
}

// keepOnDisk keeps the sealed step on this machine, as far as that can be done: where it
// can't, it is pushed all the same.
func (r *keeper) keepOnDisk(s *sealed) {
	if r.e.Unpushed == nil {
		return
	}
	if err := r.writeSealed(s); err != nil {
		r.emitNotice("the step is not kept on this machine until it is pushed: " + err.Error())
	}
}

// writeSealed writes the sealed step to disk.
func (r *keeper) writeSealed(s *sealed) error {
	n, h, err := s.step.Node(r.Lease.ServerTime())
	if err != nil {
		return err
	}
	return r.writeToDisk(h, append(slices.Clone(s.nodes), gitcas.PlacedNode{Hash: h, Node: n}), s.step.Usage)
}

// writeToDisk writes a step that is among nodes, with the folder as its agent left it.
func (r *keeper) writeToDisk(step node.Hash, nodes []gitcas.PlacedNode, usage *record.Usage) error {
	u := unpushed.Step{
		Store: r.View.StoreID(), Thread: r.ID, Entry: r.Entry, Nonce: r.Lease.Nonce(),
		Handle: step, Nodes: map[node.Hash]node.Node{}, Model: story.ModelOf(r.task, usage),
		Work: unpushed.Work{From: r.from},
	}
	for _, n := range nodes {
		u.Nodes[n.Hash] = n.Node
	}
	if r.snap != nil && !r.snap.Unchanged {
		u.Work.Commit, u.Work.Objects = r.snap.Commit, wire.Objects{}
		for _, o := range r.snap.Objects {
			u.Work.Objects.Add(o.Object)
		}
	}
	if err := r.e.Unpushed.Write(u); err != nil {
		return err
	}
	r.onDisk = true
	r.e.Reached("on-disk")
	return nil
}

// dropFromDisk deletes the sealed step, which is on the remote.
func (r *keeper) dropFromDisk() {
	if !r.onDisk {
		return
	}
	if err := r.e.Unpushed.Remove(r.View.StoreID(), r.ID, r.sealedUnder()); err != nil {
		r.emitNotice("what is on the remote by now could not be deleted on this machine: " + err.Error())
		return
	}
	r.onDisk = false
}

// sealedUnder is the nonce of the claim under which the step was made.
func (r *agentRun) sealedUnder() string {
	if r.brought != nil {
		return r.brought.Nonce
	}
	return r.Lease.Nonce()
}

// diskPath is where the sealed step is on disk.
func (r *agentRun) diskPath() string {
	return r.e.Unpushed.Path(r.View.StoreID(), r.ID, r.sealedUnder())
}

// setAside moves a file that can't be brought in out of the way of the steps to come.
func (r *keeper) setAside(path string, why error) {
	to, err := r.e.Unpushed.SetAside(path)
	if err != nil {
		r.emitNotice(fmt.Sprintf("%v; nor can it be moved out of the way: %v", why, err))
		return
	}
	r.onDisk = false
	r.emitNotice(fmt.Sprintf("a step that was sealed on this machine, and not pushed, can't be brought in: %v; it is in %s", why, to))
}

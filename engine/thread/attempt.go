package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread/screen"
	"github.com/united-workforce/uwf/engine/thread/seal"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/text"
)

// failed ends a step that gave no output: what there is goes to the attempt ref,
// is linked from the thread while the claim is still ours, and the claim is let
// go. It returns the error that the step ends with.
func (r *stepRun) failed(ctx context.Context, phase string, d task.Draft, cause error) error {
	stopped := deadline.StoppedByPerson(ctx)
	switch {
	case stopped:
		phase = life.PhaseStopped
	case deadline.WasInterrupted(ctx):
		phase = life.PhaseInterrupted
	}
	ref, step, err := r.keep(ctx, phase, d, cause, true)
	if errors.As(err, new(*doneError)) {
		return err
	}
	failure := &life.FailedError{Thread: r.ID, Role: r.task.Role, Phase: phase, Attempt: ref, Step: step, Err: cause, Stopped: stopped, Tries: r.tries, Show: r.e.showRef(ref)}
	if err != nil {
		failure.Err = errors.Join(cause, fmt.Errorf("and what it produced could not be %s: %w", r.notKept(), err))
	}
	return failure
}

// yielded ends a step whose thread is no longer ours: only the attempt is kept.
func (r *stepRun) yielded(ctx context.Context, phase string, d task.Draft, reason string) error {
	ref, _, err := r.keep(ctx, phase, d, errors.New(reason), false)
	if errors.As(err, new(*doneError)) {
		return err
	}
	if err != nil {
		// Somebody else has the thread, but this job's work is gone: that is no
		// quiet ending.
		return &life.FailedError{Thread: r.ID, Role: r.task.Role, Phase: phase,
			Err: fmt.Errorf("the thread is not ours any more (%s), and what this job produced could not be %s: %w", reason, r.notKept(), err)}
	}
	return &life.NotYoursError{Thread: r.ID, Reason: reason, Kept: ref, Show: r.e.showRef(ref)}
}

// notKept says of what a job produced what could not be done with it.
func (r *stepRun) notKept() string {
	if !r.onDisk {
		return "kept"
	}
	return fmt.Sprintf("pushed; it is in %s, from where the thread's next step on this machine brings it in", r.diskPath())
}

// showRef is the command that shows what a ref of the store's remote holds; empty where
// nobody said.
func (e *Engine) showRef(ref string) string {
	if e.ShowRef == nil || ref == "" {
		return ""
	}
	return e.ShowRef(ref)
}

// keep pushes the attempt ref. With link it also names the attempt in the
// thread's entry and deletes the claim in the same push, provided that claim and
// head are still ours. It returns the ref, and the StepNode that tells of the attempt.
func (r *stepRun) keep(ctx context.Context, phase string, d task.Draft, cause error, link bool) (ref string, step node.Hash, err error) {
	return r.keepAttempt(ctx, r.salvaged(ctx, phase, d, cause), link)
}

// keepAttempt is keep of an attempt that was put together.
func (r *stepRun) keepAttempt(ctx context.Context, a gitcas.Attempt, link bool) (ref string, step node.Hash, err error) {
	err = r.pushAttempt(ctx, a, link)
	if errors.Is(err, wire.ErrSecretRefused) {
		// The server found a secret, most likely in the folder: without it, at
		// least the record of the attempt is kept.
		r.snap, a.WorkTree = nil, wire.ZeroID
		err = r.pushAttempt(ctx, a, link)
	}
	if errors.As(err, new(*doneError)) {
		return "", "", err
	}
	if err != nil {
		// Whatever keeps the thread from being changed, a branch rule, a damaged
		// store or too many others: the attempt's own ref is this job's alone. The
		// next step links it.
		if link {
			a.Unlinked = r.Entry.Head
		}
		if alone := r.pushAlone(ctx, a); alone != nil {
			return "", "", errors.Join(err, alone)
		}
	}
	r.e.reached("attempt")
	r.dropFromDisk()
	r.lease.Release(ctx)
	step, _ = attempt.ErrorStepOf(a.Nodes)
	return gitcas.AttemptRef(r.ID, a.Run, a.Attempt), step, nil
}

// salvaged is the attempt as it is to be kept.
func (r *stepRun) salvaged(ctx context.Context, phase string, d task.Draft, cause error) gitcas.Attempt {
	ctx, cancel := deadline.Outlive(ctx, deadline.SalvageTimeout, deadline.SalvageGrace)
	defer cancel()
	nodes, text := r.salvage(ctx, phase, d, cause)
	return gitcas.Attempt{
		Thread: r.ID, Run: r.madeBy().ID, Attempt: r.madeBy().Attempt, Parents: r.workParents(),
		Nodes: nodes, WorkTree: r.salvageTree(ctx), Error: text, At: r.lease.ServerTime(),
	}
}

func (r *stepRun) pushAttempt(ctx context.Context, a gitcas.Attempt, link bool) error {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.LinkGrace)
	defer cancel()
	stopped := deadline.StoppedByPerson(ctx)
	build := func(v *gitcas.View) (*gitcas.Change, error) {
		if err := r.doneBefore(ctx, v); err != nil {
			return nil, err
		}
		return r.keepChange(v, a, link, stopped)
	}
	v, err := r.e.update(ctx, r.View, build, r.ID)
	if err == nil {
		r.lease.Adopt(v) // deleted in the same push
	}
	return err
}

// pushAlone pushes nothing but the attempt's ref, and reads nothing but that: the
// store may be what is broken.
func (r *stepRun) pushAlone(ctx context.Context, a gitcas.Attempt) error {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.KeepGrace)
	defer cancel()
	ref := gitcas.AttemptRef(r.ID, a.Run, a.Attempt)
	old, _ := r.View.Ref(ref)
	what := "failure"
	if a.Unlinked != "" {
		what += ", not linked"
	}
	var err error
	for range workbranch.Tries {
		var upd wire.RefUpdate
		var objs []wire.PackObject
		if upd, objs, err = r.attemptUpdate(old, what, a); err != nil || upd.Name == "" {
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

// attemptUpdate moves the attempt ref on from old. What is there already must not
// get lost, such as the work commit of a push that was taken in part: it becomes a
// parent of the new commit. What says what the attempt holds, so that a try whose
// reply was lost is recognised: then there is no update.
func (r *stepRun) attemptUpdate(old wire.ID, what string, a gitcas.Attempt) (wire.RefUpdate, []wire.PackObject, error) {
	if !old.IsZero() {
		if r.keptAs[old] == what {
			return wire.RefUpdate{}, nil, nil
		}
		a.Parents = append(slices.Clone(a.Parents), old)
	}
	upd, objs, err := gitcas.BuildAttempt(a)
	if err != nil {
		return upd, nil, err
	}
	upd.Old = old
	r.keptAs[upd.New] = what
	return upd, objs, nil
}

// addAttempt puts the attempt ref into a change.
func (r *stepRun) addAttempt(c *gitcas.Change, v *gitcas.View, what string, a gitcas.Attempt, objs []wire.PackObject) error {
	old, _ := v.Ref(gitcas.AttemptRef(r.ID, a.Run, a.Attempt))
	upd, more, err := r.attemptUpdate(old, what, a)
	if err != nil || upd.Name == "" {
		return err
	}
	c.Refs = append(c.Refs, upd)
	c.Objects = append(append(c.Objects, objs...), more...)
	return nil
}

// keepChange is the push that keeps an attempt, as v allows it; nil when the
// attempt is there already and nothing is left to do.
func (r *stepRun) keepChange(v *gitcas.View, a gitcas.Attempt, link, stopped bool) (*gitcas.Change, error) {
	c := &gitcas.Change{}
	if err := r.addAttempt(c, v, "failure", a, r.workObjects()); err != nil {
		return nil, err
	}
	entry, alive := v.Entry(r.ID)
	held, claimed := v.Claim(r.ID)
	mine := claimed && r.lease.Owns(held.Claim)
	if mine {
		release, _ := gitcas.ClaimUpdate(r.ID, &held, nil, v.Time())
		c.Refs = append(c.Refs, release)
	}
	if link && alive && mine && entry.Head == r.Entry.Head && entry.Status == gitcas.StatusActive {
		life.LinkAttempts(&entry, r.ID, held.Died)
		known := len(entry.Attempts)
		life.LinkAttempts(&entry, r.ID, nil, gitcas.AttemptRef(r.ID, a.Run, a.Attempt))
		result := "failed"
		if stopped {
			result = life.PhaseStopped
			life.ForgiveAttempts(&entry, len(entry.Attempts)-known, r.task.Role)
		}
		r.tries = life.CountAttempts(entry, r.ID, nil)
		r.effects(&entry)
		if entry.Pause != nil {
			life.TakePause(&entry, r.task.Role)
		}
		c.Threads = map[gitcas.ThreadID]*gitcas.Entry{r.ID: &entry}
		c.Subject = story.Subject(r.Title(), r.ID, story.DescribeStep(r.task.Role, result, r.task.Step))
		c.Body = a.Error
		c.Trailers = story.StepTrailers(r.task, r.madeBy(), result, entry.Head)
	}
	if len(c.Refs) == 0 && c.Threads == nil {
		return nil, nil
	}
	return c, nil
}

// salvage makes the error StepNode and keeps each draft that passes the checks
// by itself, as long as ctx lasts. It fails closed: what can't be redacted is left
// out. The error StepNode comes first: no agent can fill the room that it needs.
func (r *stepRun) salvage(ctx context.Context, phase string, d task.Draft, cause error) ([]gitcas.PlacedNode, string) {
	r.lost = r.baseStep(task.Draft{Usage: d.Usage, Took: d.Took}, record.Step{}).Usage
	s := r.newSealer(d.Nodes)
	reason, err := s.Clean(cause.Error())
	if err != nil {
		reason = "the error message could not be checked for secrets and was left out"
	}
	reason = text.Cut(reason, maxErrorText)
	h, nodes, err := r.errorStep(ctx, s, phase, reason, d)
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

// maxErrorText bounds what an attempt says of its error, in bytes.
const maxErrorText = 32 << 10

func (r *stepRun) errorStep(ctx context.Context, s *seal.Sealer, phase, reason string, d task.Draft) (node.Hash, []gitcas.PlacedNode, error) {
	out, err := s.Add(record.ErrorOutputSchema, map[string]any{"$status": "error", "error": reason, "phase": phase}, false)
	if err != nil {
		return "", nil, err
	}
	detail, err := s.Add(node.String, text.Cut(d.Stderr, maxErrorText), false)
	if err != nil {
		return "", nil, err
	}
	step := r.baseStep(task.Draft{Usage: d.Usage, Took: d.Took}, record.Step{})
	step.Output, step.Detail = out, detail
	if step.EdgePrompt, err = s.Clean(step.EdgePrompt); err != nil {
		return "", nil, err
	}
	return r.View.Complete(ctx, r.ID, step, r.lease.ServerTime(), s.Nodes(), nil)
}

// salvageTree takes a picture of the folder for the attempt ref, without files that may
// hold a token; the zero id when there is none, or when it holds a secret.
func (r *stepRun) salvageTree(ctx context.Context) wire.ID {
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

func (r *stepRun) workObjects() []wire.PackObject {
	if r.snap == nil {
		return nil
	}
	return r.snap.Objects
}

func (r *stepRun) workParents() []wire.ID {
	if r.from == wire.ZeroID {
		return nil
	}
	return []wire.ID{r.from}
}

// takeSnapshot makes the work commit and refuses one that holds what must not be
// committed. Files at the paths without are left as they were.
// workMessage is the message of the step's commit on the work branch; s is nil where there is
// no step.
func (r *stepRun) workMessage(result string, s *sealed) (string, error) {
	head := node.Pin{Hash: reading.HeadOf(r.Chain), Digest: r.Chain.Head}
	if s == nil {
		return story.WorkMessage(r.task, r.madeBy(), head, result, nil, nil)
	}
	return story.WorkMessage(r.task, r.madeBy(), head, result, &s.Told, s.step.Usage)
}

func (r *stepRun) takeSnapshot(ctx context.Context, result string, s *sealed, without ...string) (*workspace.Snapshot, error) {
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

func (r *stepRun) snapshotChecked(ctx context.Context, result string, s *sealed, without ...string) (*workspace.Snapshot, error) {
	msg, err := r.workMessage(result, s)
	if err != nil {
		return nil, err
	}
	snap, err := r.e.Folder.Snapshot(ctx, workspace.SnapshotRequest{
		Parents: r.workParents(), Message: msg, When: r.lease.ServerTime(), Without: without,
	})
	if err != nil {
		return nil, err
	}
	for _, k := range snap.Skipped {
		r.e.observe(Event{Kind: "notice", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Text: fmt.Sprintf("%s is not kept: %s", k.Path, k.Why)})
	}
	if n := snap.MoreSkipped; n > 0 {
		r.e.observe(Event{Kind: "notice", Thread: r.ID, Step: r.StepNumber(), Role: r.task.Role, Text: fmt.Sprintf("%d more are not kept", n)})
	}
	if err := screen.Search(ctx, snap, r.e.Redact, r.e.ReadBlobs); err != nil {
		return nil, err
	}
	return &snap, nil
}

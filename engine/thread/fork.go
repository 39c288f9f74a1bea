package thread

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/view"
)

// ForkRequest describes a thread that begins with the steps of another one.
type ForkRequest struct {
	ID   gitcas.ThreadID
	From gitcas.ThreadID // alive or ended
	// Steps is how many steps the new thread shares: 0 for none, -1 for all.
	Steps int
	// Key makes the fork idempotent, see StartRequest.
	Key    string
	Limits map[string]float64
}

// Fork makes a new thread out of the first steps of another one. They are shared by
// their hashes; the work goes on from the commit that the last of them recorded, on
// a branch of the new thread's own.
func (e *Engine) Fork(ctx context.Context, req ForkRequest) (Started, error) {
	if err := life.CheckLimits(req.Limits); err != nil {
		return Started{}, err
	}
	if err := refuseSecret(e.Redact, "the key", req.Key); err != nil {
		return Started{}, err
	}
	v, err := e.Store.Load(ctx, req.From, req.ID)
	if err != nil {
		return Started{}, fmt.Errorf("fork thread %s: %w", req.From, err)
	}
	f := &forking{e: e, req: req}
	if _, err := e.Update(ctx, v, func(v *gitcas.View) (*gitcas.Change, error) { return f.buildChange(ctx, v) }, req.From, req.ID); err != nil {
		return Started{}, err
	}
	e.Reached("fork")
	return f.out, nil
}

// forking is one Fork, over all its tries.
type forking struct {
	e   *Engine
	req ForkRequest
	out Started
	who *story.Person
	// asked: the forge has said who that is, if it can.
	asked bool
}

// buildChange is the push that makes the fork, as v allows it.
func (f *forking) buildChange(ctx context.Context, v *gitcas.View) (*gitcas.Change, error) {
	if done, err := f.findEarlierFork(ctx, v); done || err != nil {
		return nil, err
	}
	t, err := f.readSource(ctx, v)
	if err != nil {
		return nil, err
	}
	steps := f.req.Steps
	switch n := len(t.Chain.Steps); {
	case steps < -1 || steps > n:
		return nil, life.Usagef("thread %s has %d steps: a fork shares 0 to %d of them, not %d", f.req.From, n, n, steps)
	case steps == -1:
		steps = n
	}
	if err := CheckCostLimit(f.e.Settings, t.Def, f.req.Limits); err != nil {
		return nil, err
	}
	if err := t.KeepSteps(steps); err != nil {
		return nil, err
	}
	d, err := t.AskModerator()
	switch {
	case err != nil:
		refused := life.Usagef("fork thread %s at step %d: the workflow can't say what follows: %v", f.req.From, steps, err)
		if steps > 0 {
			refused.Next = []life.Verb{f.forkEarlier(steps)}
		}
		return nil, refused
	case d.Kind == moderator.End:
		refused := life.Refuse(life.Fork, f.req.From, fmt.Sprintf("step %d of it leads to the end: nothing would be left to do", steps), f.forkEarlier(steps))
		if t.Def.Resume != nil && t.Entry.Status == gitcas.StatusEnded {
			refused.Next = append(refused.Next, life.Verb{For: "or let it go on after its end", Do: life.Resume, Thread: f.req.From, Needs: life.NeedsText})
		}
		return nil, refused
	}
	return f.buildFork(ctx, v, t, d)
}

// forkEarlier is to share fewer steps.
func (f *forking) forkEarlier(steps int) life.Verb {
	return life.Verb{For: "fork an earlier step", Do: life.Fork, Thread: f.req.From, Steps: max(steps-1, 0)}
}

// findEarlierFork reports whether the new thread is there already, under the same key, and
// notes it.
func (f *forking) findEarlierFork(ctx context.Context, v *gitcas.View) (done bool, err error) {
	if f.out, done, err = findTaken(ctx, v, life.Fork, f.req.ID, f.req.Key); done || err != nil {
		return done, err
	}
	// An id that was used is not used again. Since it is new, the whole past need not be
	// read for that.
	all, err := view.FindAllEnded(ctx, v, f.req.ID.Time(), f.req.ID)
	ended, found := all[f.req.ID]
	if found && err == nil {
		err = life.Refuse(life.Fork, f.req.ID, life.DescribeEnd(ended))
	}
	return found, err
}

// readSource reads the thread to fork.
func (f *forking) readSource(ctx context.Context, v *gitcas.View) (*reading.Thread, error) {
	t, ended, err := reading.ReadAnywhere(ctx, v, f.req.From)
	if err == nil && ended.Reason == gitcas.ReasonRemoved {
		err = life.Standing{Thread: f.req.From, Ended: ended}.Judge(life.Fork)
	}
	return t, err
}

// buildFork is the commit of a fork. t is the thread to fork, cut where the new one
// begins.
func (f *forking) buildFork(ctx context.Context, v *gitcas.View, t *reading.Thread, d moderator.Decision) (*gitcas.Change, error) {
	if !f.asked {
		f.asked = true
		f.who = f.e.identifyPerson(ctx, t.Def, f.req.ID, "the fork is made, and where its workflow wants the approval of somebody else than who forked it, it can get none")
	}
	now, steps := v.Time().UnixMilli(), len(t.Chain.Steps)
	work := gitcas.Work{Branch: layout.WorkBranch(f.req.ID), Commit: reading.RecordedCommit(t.Chain)}
	entry := gitcas.Entry{
		Head: reading.HeadOf(t.Chain), Status: gitcas.StatusActive, Workflow: t.Chain.Start.Workflow, Key: f.req.Key,
		Work: work, Limits: f.req.Limits, Next: &gitcas.Next{Role: d.Role, Since: now},
		Title: t.Title(), By: f.who.OnRecord(), Released: now,
	}
	// The steps that it shares are paid for. Whoever works on it may have a limit on a month,
	// though who forks has none.
	u := t.Chain.Counts.Done
	life.NoteSpent(&entry, "", moderator.Totals{Tokens: u.Tokens, CostUSD: u.CostUSD}, nil, v.Time())
	out := Started{Thread: f.req.ID, Workflow: entry.Workflow, Name: t.Def.Name, Head: entry.Head, Role: d.Role,
		ForkedFrom: &ForkPoint{Step: entry.Head, Thread: f.req.From, Steps: steps}}
	if d.Kind == moderator.Suspend {
		life.MakeWait(&entry, d.Role, d.Reason, nil)
		entry.Next = nil
		out.Suspended = newSuspendedInfo(f.req.ID, entry)
	}
	refs, err := f.e.Branches().RestoreRef(ctx, v, work)
	if err != nil {
		return nil, err
	}
	from := fmt.Sprintf("%s:%d", f.req.From, steps)
	tale := story.WithTries(ctx, t, entry)
	tale.ID = f.req.ID
	return story.Sign(&gitcas.Change{
		Subject: story.Subject(entry.Title, f.req.ID, "forked from "+from),
		Trailers: append(story.EntryTrailers(f.req.ID, entry),
			gitcas.Trailer{Key: "Uwf-Forked-From", Value: from},
			gitcas.Trailer{Key: "Uwf-Run", Value: fmt.Sprintf("%s attempt %d", f.e.Who.Run, f.e.Who.Attempt)}),
		Forks:    map[gitcas.ThreadID]gitcas.ThreadID{f.req.ID: f.req.From},
		Readable: map[string][]byte{layout.TaskPath(f.req.ID): tale.WriteTask(from), layout.IndexPath(f.req.ID): tale.WriteIndex()},
		Threads:  map[gitcas.ThreadID]*gitcas.Entry{f.req.ID: &entry},
		Refs:     refs,
		Landed:   func(*gitcas.View) { f.out = out },
	}, f.who), nil
}

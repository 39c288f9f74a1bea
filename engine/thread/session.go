package thread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Session is one job's work on one thread: what it read of it, and the claim that it holds
// then. A step and a delivery are made of it.
type Session struct {
	reading.Thread // its entry as read after the claim
	Engine         *Engine
	Deed           life.Deed // that is done with it
	Whole          bool      // a step reads all steps before it, for whoever shows them
	// Expect is the head that the job was told to work on; zero: any.
	Expect node.Pin
	// Effects is what the job knows of the thread's comment and pull request; nil: nothing.
	Effects func() life.Effects
	Lease   *lease.Lease
	// Took is what the thread took before this job, and what the job's own try did that led to
	// no step, as far as known; nil: nothing is.
	Took func() (before moderator.Totals, own *record.Usage)
	// Attempt pushes what is kept of a try that failed.
	Attempt attempt.Writer
}

// NewSession begins a job's work on a thread; nothing is read yet.
func NewSession(e *Engine, d life.Deed, id gitcas.ThreadID, expect node.Pin) *Session {
	return &Session{Thread: reading.Thread{ID: id}, Engine: e, Deed: d, Expect: expect}
}

// Refuse says why the thread is not this job's to work on.
func (s *Session) Refuse(reason string) *life.DeedError { return life.Refuse(s.Deed, s.ID, reason) }

// Load reads the store for the thread.
func (s *Session) Load(ctx context.Context) error {
	v, err := s.Engine.Store.Load(ctx, s.ID)
	if err != nil {
		return fmt.Errorf("read thread %s: %w", s.ID, err)
	}
	s.View = v
	s.SetNodeSource(ctx, v)
	s.Entry, _ = v.Entry(s.ID)
	return nil
}

// Claim takes the thread for this job, and reads its entry as it was claimed.
func (s *Session) Claim(ctx context.Context, t lease.Terms) error {
	v, l, err := s.Engine.Claim(ctx, s.View, s.ID, t)
	if err == nil {
		s.View, s.Lease = v, l
		s.Entry, _ = v.Entry(s.ID)
	}
	return err
}

// Reload reads the store again after a push of this job's own, which the commit must not
// take for somebody else's, or one that came too late. A claim that is seen to be gone ends
// the work here, before it is paid for.
func (s *Session) Reload(ctx context.Context) (*gitcas.View, error) {
	v, err := s.Engine.Store.Reload(ctx, s.View, s.ID)
	if err != nil {
		return nil, err
	}
	s.View = v
	if s.Lease == nil {
		return v, nil
	}
	if _, err := s.Lease.CheckView(v); err != nil {
		return nil, s.Refuse("it was taken over, suspended or cancelled while its work branch was brought up")
	}
	return v, nil
}

// FindBase finds the commit to work from. On a branch that has no commit of the thread's, people
// may do what they like, such as rebase it: its tip is the thread's, also when the commit that the
// thread began from is gone from the remote by then.
func (s *Session) FindBase(ctx context.Context) (wire.ID, error) {
	w := workbranch.Of(s.ID, s.Entry)
	if tip := workbranch.Tip(s.View, w); w.Commit == s.Chain.Start.Base && !tip.IsZero() {
		return tip, nil
	}
	return s.Engine.Branches().FindBase(ctx, s.View, s.ID, w, s.Reload)
}

// CheckHead makes sure that the head is the one that the caller was told, and not another
// node of its hash. All before the head it vouches for itself, by the digests in it.
func (s *Session) CheckHead() error {
	want := s.Expect.Digest
	if want == "" || want == s.Chain.Head {
		return nil
	}
	return life.Advise(&gitcas.DamagedError{
		What: gitcas.Place{Thread: s.ID}.Path(s.Entry.Head), Kind: gitcas.ErrContent, Err: gitcas.ErrExchanged,
		Why: fmt.Sprintf("it is not the head that this job was told to go on from: its SHA-256 is %s, not %s; somebody exchanged it on the branch", s.Chain.Head, want),
	}, life.Verb{For: "see what was changed, and by whom", Do: life.Check})
}

// IsOurs reports whether the thread is in a view as this job claimed it, claim and all.
func (s *Session) IsOurs(v *gitcas.View) (gitcas.Entry, gitcas.Held, bool) {
	entry, alive := v.Entry(s.ID)
	held, claimed := v.FindClaim(s.ID)
	return entry, held, alive && life.SameThread(entry, s.Entry) && claimed && s.Lease.Owns(held.Claim)
}

// AddEffects puts what the job knows of its effects into an entry that is about to be
// written.
func (s *Session) AddEffects(entry *gitcas.Entry) {
	if s.Effects != nil {
		s.Effects().AddTo(entry, s.Entry)
	}
}

// ThreadResult describes the thread as this job last saw it.
func (s *Session) ThreadResult() Result {
	res := Result{Thread: s.ID, Head: s.Entry.Head, Status: string(s.Entry.Status), Step: s.StepNumber() - 1}
	if s.Def != nil {
		res.Workflow, res.Name = s.Chain.Start.Workflow, s.Def.Name
	}
	if reading.HeadOf(s.Chain) == s.Entry.Head {
		res.HeadDigest = s.Chain.Head
	}
	res.AddEntry(s.Entry)
	return res
}

// Report completes the result of a job that has done its step before: a re-run
// says what the first attempt said, for the effects that are still pending.
func (s *Session) Report(res Result) Result {
	last := s.Chain.Steps[len(s.Chain.Steps)-1]
	res.Workflow, res.Name = s.Chain.Start.Workflow, s.Def.Name
	res.Role, res.Usage, res.Work = last.Role, last.Usage, last.Work
	res.Result = s.LastResult()
	res.Again = true
	res.Done = res.Done || s.Entry.Status != gitcas.StatusActive && s.Entry.Status != gitcas.StatusSuspended
	if s.Entry.Status == gitcas.StatusActive && s.Entry.Next != nil {
		res.NextRole = s.Entry.Next.Role
	}
	return res
}

// Describe describes the thread, in a delivery with what its last step said.
func (s *Session) Describe() Result {
	res := s.ThreadResult()
	if s.Deed == life.Deliver && len(s.Chain.Steps) > 0 {
		res = s.Report(res)
		res.Again = false
	}
	return res
}

// CheckUnclaimed settles what needs no claim: threads that are gone, at another head, not as
// the deed needs them, or already stepped by this very run. It reports whether this run did
// before what it was to do.
func (s *Session) CheckUnclaimed(ctx context.Context) (bool, Result, error) {
	if _, alive := s.View.Entry(s.ID); !alive {
		return s.reportEnd(ctx)
	}
	least := view.WholeChain
	if s.Deed == life.Step && !s.Whole {
		least = 0
	}
	if err := s.ReadTail(ctx, s.View, least); err != nil {
		return false, s.ThreadResult(), err
	}
	if expect := s.Expect; expect.Hash != "" && s.Entry.Head != expect.Hash {
		if s.Deed == life.Step && s.SteppedBy(s.Engine.Who.Run) {
			return true, s.Report(s.ThreadResult()), nil
		}
		return false, s.Describe(), s.Refuse(fmt.Sprintf("its head is %s, not %s", s.Entry.Head, expect.Hash))
	}
	err := s.CheckHead()
	if err == nil {
		err = life.Standing{Thread: s.ID, Alive: true, Entry: s.Entry}.Judge(s.Deed)
	}
	return false, s.Describe(), err
}

// reportEnd answers for a thread that is no longer on the tip. To the run that ended it, where
// that is what it was to do, it says what it said then, and reports true; to all others the
// error says how the thread ended.
func (s *Session) reportEnd(ctx context.Context) (bool, Result, error) {
	res := s.ThreadResult()
	ended, err := reading.FindEnded(ctx, s.View, s.ID)
	if err != nil {
		return false, res, err
	}
	res.Head, res.Status, res.Step, res.PR, res.Done = ended.Head, ended.Reason, len(ended.Steps), ended.PR, true
	res.Workflow = ended.Workflow
	if res.Name, err = reading.WorkflowName(ctx, s.View, ended.Workflow); err != nil && !errors.Is(err, node.ErrNotFound) {
		return false, res, err
	}
	s.finishEnd(ctx, ended)
	isDue := s.Expect.Hash != "" && ended.Head != s.Expect.Hash
	if s.Deed == life.Deliver {
		isDue = !isDue
	}
	if ended.Reason == gitcas.ReasonEnded && isDue {
		mine, err := s.isEndedByUs(ctx, ended)
		if err != nil {
			return false, res, err
		}
		if mine {
			return true, s.Report(res), nil
		}
	}
	return false, res, s.Refuse(life.DescribeEnd(ended))
}

// finishEnd does, as well as it can, what a job left undone that was killed: in the
// middle of a push without atomicity, so that the work branch lags behind the end,
// or with a claim, which nobody else would delete on a thread that has ended.
func (s *Session) finishEnd(ctx context.Context, ended gitcas.Ended) {
	if workbranch.Tip(s.View, ended.Work).IsZero() {
		s.makeWorkBranch(ctx, ended)
	}
	s.Engine.Branches().CatchUp(ctx, s.View, s.ID, ended.Work)
	if held, claimed := s.View.FindClaim(s.ID); claimed && !s.Engine.Leases().IsAlive(s.View, held.Claim) {
		_ = s.Engine.Store.PushRef(ctx, lease.DropClaim(s.ID, held), nil) // it harms nobody
	}
}

// makeWorkBranch makes the work branch of a thread that has ended with edits, where the
// push that should have was not atomic and never came.
func (s *Session) makeWorkBranch(ctx context.Context, ended gitcas.Ended) {
	if s.Engine.Store.Atomic(s.View) || ended.Work.Commit == "" {
		return
	}
	past, err := s.View.LoadEnded(ctx, ended)
	if err != nil {
		return
	}
	if chain, err := past.ReadChain(ctx, s.ID); err != nil || chain.Start.Base == ended.Work.Commit {
		return
	}
	first := wire.RefUpdate{Name: workbranch.Ref(ended.Work.Branch), New: plumbing.NewHash(ended.Work.Commit)}
	_ = s.Engine.Store.PushRef(ctx, first, nil) // the attempt ref still has it
}

// isEndedByUs reports whether the last step of an ended thread is this run's.
func (s *Session) isEndedByUs(ctx context.Context, ended gitcas.Ended) (bool, error) {
	past, err := s.View.LoadEnded(ctx, ended)
	if err != nil {
		return false, fmt.Errorf("read the ended thread %s: %w", s.ID, err)
	}
	s.SetNodeSource(ctx, past)
	err = s.ReadChain(ctx, past)
	return err == nil && s.SteppedBy(s.Engine.Who.Run), err
}

// EndLine is the line that history gets of the thread, which ends with an entry.
func (s *Session) EndLine(entry gitcas.Entry) gitcas.Ended {
	line := s.Thread.EndLine(entry, gitcas.ReasonEnded, s.Lease.ServerTime())
	line.Result = s.LastResult()
	return line
}

// Change changes the thread's entry, as long as the thread is as this job claimed it, and lets
// the claim go in the same push: a job without the claim may not. complete gets the entry,
// and a change whose subject says what becomes of the thread.
func (s *Session) Change(ctx context.Context, did string, complete func(v *gitcas.View, c *gitcas.Change, entry *gitcas.Entry, held gitcas.Held) error) error {
	var after gitcas.Entry
	v, err := s.Engine.Update(ctx, s.View, func(v *gitcas.View) (*gitcas.Change, error) {
		entry, held, ours := s.IsOurs(v)
		if !ours {
			return nil, s.Refuse("it changed, or its claim was lost, before it could be " + did)
		}
		s.AddEffects(&entry)
		if s.Took != nil {
			before, own := s.Took()
			s.NoteSpent(&entry, before, own)
		}
		c := &gitcas.Change{
			Refs:    []wire.RefUpdate{lease.DropClaim(s.ID, held)},
			Threads: map[gitcas.ThreadID]*gitcas.Entry{s.ID: &entry},
			Landed:  func(*gitcas.View) { after = entry },
		}
		if err := complete(v, c, &entry, held); err != nil {
			return nil, err
		}
		c.Subject = story.Subject(s.Title(), s.ID, c.Subject)
		c.Trailers = append(story.EntryTrailers(s.ID, entry), c.Trailers...)
		return c, nil
	}, s.ID)
	if err == nil {
		s.View, s.Entry = v, after
		s.Lease.Adopt(v)
	}
	return err
}

// Suspend makes the thread wait before a role. An attempt, if there is one, is kept in the
// same push, with the objects of its work.
func (s *Session) Suspend(ctx context.Context, role, reason string, kept *gitcas.Attempt, objs []wire.PackObject) error {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.CommitGrace)
	defer cancel()
	s.Engine.Branches().CatchUp(ctx, s.View, s.ID, s.Entry.Work)
	step := s.StepNumber()
	err := s.Change(ctx, "suspended", func(v *gitcas.View, c *gitcas.Change, entry *gitcas.Entry, held gitcas.Held) error {
		life.LinkAttempts(entry, s.ID, held.Died)
		life.MakeWait(entry, role, reason, nil)
		c.Subject, c.Body = fmt.Sprintf("suspended · step %d", step), entry.Suspended.Reason
		if kept == nil {
			return nil
		}
		life.LinkAttempts(entry, s.ID, nil, layout.AttemptRef(s.ID, kept.Run, kept.Attempt))
		return s.Attempt.AddTo(c, v, "failure", *kept, objs)
	})
	if err != nil {
		return err
	}
	s.Engine.Reached("suspend")
	s.Engine.Emit(Event{Kind: "suspended", Thread: s.ID, Step: step, Role: role, Text: s.Entry.Suspended.Reason})
	return nil
}

// DropDeadTries deletes the refs of this thread's tries whose jobs died: nothing but a claim is
// left of them. What can't be read or deleted stays for uwf gc. It is no part of the push that
// ends the thread, which has no refs to spare where a remote takes few at once.
func (s *Session) DropDeadTries(ctx context.Context, v *gitcas.View) {
	for _, name := range slices.Sorted(maps.Keys(v.Refs())) {
		if !strings.HasPrefix(name, layout.AttemptRefs(s.ID)) {
			continue
		}
		id, _ := v.Ref(name)
		c, err := workbranch.Read(ctx, s.Engine.Store.Remote(), id)
		if err == nil && c.Tree == wire.EmptyTree {
			_ = s.Engine.Store.PushRef(ctx, wire.RefUpdate{Name: name, Old: id}, nil)
		}
	}
}

// AskHold asks beside the claim's push what keeps the thread from going on; nil: nobody is
// asked. wait returns the answer. stop ends the question, so that no request outlives the job.
func (s *Session) AskHold(ctx context.Context, ask func(context.Context, *reading.Thread) life.Hold) (wait func() life.Hold, stop func()) {
	if ask == nil {
		return func() life.Hold { return life.Hold{} }, func() {}
	}

	t := s.Thread // the claim changes what this job knows of it
	ctx, cancel := context.WithCancel(ctx)
	answer := make(chan life.Hold, 1)
	go func() {
		defer close(answer)
		answer <- ask(ctx, &t)
	}()

	wait = func() life.Hold { return <-answer }
	return wait, func() {
		cancel()
		wait()
	}
}

// HoldBack makes the thread wait before a role, or ends it. The error is the one that the deed
// ends with.
func (s *Session) HoldBack(ctx context.Context, role string, h life.Hold) error {
	if h.Over {
		if err := s.Engine.Abandon(ctx, s.ID, h.Reason); err != nil {
			return err
		}
		return s.Refuse("it was cancelled: " + h.Reason)
	}
	if err := s.Suspend(ctx, role, h.Reason, nil, nil); err != nil {
		return err
	}
	return life.NewWaitingError(s.ID, s.Entry)
}

// Work does something while the claim is watched and renewed beside it; after that nothing but
// the commit touches the claim. It gets a context that ends when the claim is lost, which is
// lease.ErrLost then.
func (s *Session) Work(ctx context.Context, meter *task.Meter, do func(ctx context.Context) error) error {
	doCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	renewCtx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	bell := meter.Listen() // before the agent uses anything
	wg.Go(func() { s.Lease.Watch(renewCtx, meter, bell, stop) })
	err := do(doCtx)
	cancel()
	wg.Wait()
	s.View = s.Lease.Latest
	switch {
	case errors.Is(context.Cause(doCtx), lease.ErrLost):
		return lease.ErrLost
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
	return err
}

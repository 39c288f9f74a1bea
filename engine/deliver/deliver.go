// Package deliver makes the end of a thread known, and takes it off the tip.
package deliver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workbranch"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// Request names the thread to deliver.
type Request struct {
	Thread gitcas.ThreadID
	// ExpectHead is the head that the caller was told to deliver; zero: any.
	ExpectHead node.Pin
	// Hold is asked, while the thread is claimed, what keeps its end from being made known: then
	// it waits, or is cancelled. Nil: nothing does.
	Hold func(ctx context.Context, t *reading.Thread) life.Hold
	// Do makes the end known: pull request and comment. It is called with the claim
	// in hand, at least once, and must be safe to repeat; its context ends when the
	// claim is lost. What it made counts also beside an error.
	Do func(ctx context.Context, d Delivery) (life.Effects, error)
}

// Delivery is a thread that has ended, as its claim was won.
type Delivery struct {
	View  *gitcas.View
	Entry gitcas.Entry
	Def   *workflow.Definition
	Chain gitcas.Chain
	// Tip is where the work branch stands: at the recorded commit, or at one that
	// contains it. Zero: there is no branch, as nothing was changed.
	Tip wire.ID
	// Ended is the line that history will have, as far as it is known.
	Ended gitcas.Ended
}

// delivery is one Deliver.
type delivery struct {
	*thread.Session
	do   func(context.Context, Delivery) (life.Effects, error)
	ask  func(context.Context, *reading.Thread) life.Hold
	made life.Effects
	line gitcas.Ended
}

// Run makes the end of a thread known and takes it off the tip. The thread is
// claimed on its end head, its work branch brought up to the recorded commit, then Do
// is called, then the archive commit is pushed, which names the pull request.
//
// When Do fails, the thread stays to be delivered and the error is one of kind failed;
// after MaxAttempts failed deliveries, or where the work branch can't be brought up,
// it is suspended until a person resumes or retries it.
func Run(ctx context.Context, e *thread.Engine, req Request) (thread.Result, error) {
	r := &delivery{Session: thread.NewSession(e, life.Deliver, req.Thread, req.ExpectHead), do: req.Do, ask: req.Hold}
	ctx, stop := deadline.WatchInterrupt(ctx, e.Clock)
	defer stop()
	res, err := r.claimAndDeliver(ctx)
	err = res.Conclude(e.Redact, err)
	return res, err
}

func (r *delivery) claimAndDeliver(ctx context.Context) (thread.Result, error) {
	if err := r.Load(ctx); err != nil {
		return r.ThreadResult(), err
	}
	if done, res, err := r.CheckUnclaimed(ctx); done || err != nil {
		r.Engine.DropClaim(ctx, r.View, r.ID)
		return res, err
	}
	hold, stop := r.AskHold(ctx, r.ask)
	defer stop()
	if err := r.Claim(ctx, lease.Terms{Purpose: life.Deliver, Work: lease.DeliveryTime}); err != nil {
		return r.Describe(), err
	}
	defer r.Lease.Release(ctx)
	r.Engine.Reached("deliver-claimed")
	if h := hold(); h != (life.Hold{}) {
		err := r.HoldBack(ctx, "", h) // all roles are done
		return r.ThreadResult(), err
	}
	held, _ := r.Lease.Current()
	if n := life.CountAttempts(r.Entry, r.ID, held.Died); n >= life.MaxAttempts {
		return r.suspendThread(ctx, tooManyDeliveries(n))
	}
	return r.tryDelivery(ctx)
}

// suspendThread makes the thread wait, and returns the error that the delivery ends with.
func (r *delivery) suspendThread(ctx context.Context, reason string) (thread.Result, error) {
	if err := r.Suspend(ctx, "", reason, nil, nil); err != nil { // all roles are done
		return r.ThreadResult(), err
	}
	return r.ThreadResult(), life.NewWaitingError(r.ID, r.Entry)
}

func tooManyDeliveries(n int) string { return fmt.Sprintf("it has ended, but %d deliveries failed", n) }

// tryDelivery brings the work branch up, does what is to be done, and archives.
func (r *delivery) tryDelivery(ctx context.Context) (thread.Result, error) {
	tip, err := r.bringBranchUp(ctx)
	var div *workbranch.DivergedError
	switch kind := life.KindOf(err); {
	case errors.As(err, &div):
		return r.suspendThread(ctx, div.Error())
	case kind == life.KindUsage:
		return r.suspendThread(ctx, err.Error())
	case kind == life.KindNotYours:
		return r.Describe(), err
	case err != nil:
		return r.Describe(), r.noteFailure(ctx, fmt.Errorf("bring its work branch up: %w", err))
	}
	// Bringing the branch up takes a while, in which nobody renews the claim.
	if _, _, ours := r.IsOurs(r.View); !ours {
		return r.Describe(), r.Refuse("it was taken over, resumed or cancelled before it could be delivered")
	}
	r.line = r.EndLine(r.Entry)
	if err := r.callDo(ctx, tip); err != nil {
		return r.Describe(), err
	}
	return r.archiveThread(ctx)
}

// callDo calls Do while the claim is renewed beside it.
func (r *delivery) callDo(ctx context.Context, tip wire.ID) error {
	err := r.Work(ctx, &task.Meter{}, func(ctx context.Context) (err error) {
		r.made, err = r.do(ctx, Delivery{View: r.View, Entry: r.Entry, Def: r.Def, Chain: r.Chain, Tip: tip, Ended: r.line})
		return err
	})
	switch {
	case errors.Is(err, lease.ErrLost):
		return r.Refuse("it was taken over, resumed or cancelled while it was delivered")
	case err != nil:
		return r.noteFailure(ctx, err)
	}
	r.Engine.Reached("deliver-done")
	return nil
}

// bringBranchUp makes sure that the work branch has the recorded commit, and returns
// where it stands; zero where the thread changed nothing and has no branch.
func (r *delivery) bringBranchUp(ctx context.Context) (wire.ID, error) {
	w := workbranch.Of(r.ID, r.Entry)
	for try := 0; ; try++ {
		if tip := workbranch.Tip(r.View, w); !tip.IsZero() {
			return r.FindBase(ctx)
		}
		if w.Commit == "" || w.Commit == r.Chain.Start.Base {
			return wire.ZeroID, nil
		}
		upd, err := r.Engine.Branches().RestoreRef(ctx, r.View, w)
		if err != nil {
			return wire.ZeroID, err
		}
		err = r.Engine.Store.PushRef(ctx, upd[0], nil)
		if err != nil && (!errors.Is(err, wire.ErrLostRace) || try >= workbranch.Tries) {
			return wire.ZeroID, err
		}
		if _, err := r.Reload(ctx); err != nil {
			return wire.ZeroID, err
		}
	}
}

// noteFailure notes a delivery that failed: its error goes to the attempt's ref, is linked
// from the entry, and the claim is let go, in one push.
func (r *delivery) noteFailure(ctx context.Context, cause error) error {
	ctx, cancel := deadline.Outlive(ctx, 0, deadline.LinkGrace)
	defer cancel()
	reason := r.cleanReason(cause)
	err := r.Change(ctx, "noted", func(v *gitcas.View, c *gitcas.Change, entry *gitcas.Entry, held gitcas.Held) error {
		c.Subject, c.Body = "not delivered", reason
		a := gitcas.Attempt{Thread: r.ID, Run: r.Engine.Who.Run, Attempt: r.Engine.Who.Attempt, Error: reason, At: r.Lease.ServerTime()}
		life.LinkAttempts(entry, r.ID, held.Died, layout.AttemptRef(r.ID, a.Run, a.Attempt))
		r.made.AddTo(entry, r.Entry)
		entry.Since = v.Time().UnixMilli()
		if n := life.CountAttempts(*entry, r.ID, nil); n >= life.MaxAttempts {
			life.MakeWait(entry, "", tooManyDeliveries(n)+"\n"+reason, nil)
		}
		return r.Attempt.AddTo(c, v, "delivery", a, nil)
	})
	switch {
	case err == nil:
		r.Engine.Reached("delivery failed")
	case life.KindOf(err) != life.KindNotYours: // else somebody else has it: nothing to note
		cause = errors.Join(cause, fmt.Errorf("and that could not be noted: %w", err))
	}
	return life.NewUndeliveredError(r.ID, err == nil && r.Entry.Status == gitcas.StatusSuspended, cause)
}

// cleanReason is an error without secrets, as it is kept.
func (r *delivery) cleanReason(cause error) string {
	reason, err := thread.CleanText(r.Engine.Redact, "error", cause.Error())
	if err != nil {
		reason = "the error message could not be checked for secrets and was left out"
	}
	return text.Cut(reason, attempt.MaxErrorText)
}

// archiveThread takes the thread off the tip, while it is still ended at the head that was
// delivered. What the effects added to its entry is committed first: a thread that is
// resumed after its end goes on from there.
func (r *delivery) archiveThread(ctx context.Context) (thread.Result, error) {
	push, cancel := deadline.Outlive(ctx, 0, deadline.CommitGrace)
	defer cancel()
	r.line.CompletedAt = r.Lease.ServerTime().UnixMilli()
	err := r.Change(push, "archived", func(_ *gitcas.View, c *gitcas.Change, entry *gitcas.Entry, _ gitcas.Held) error {
		was := *entry
		r.made.AddTo(entry, r.Entry)
		if entry.Comment == was.Comment && entry.PR == was.PR {
			c.Threads = nil
		}
		r.line.PR, r.line.Key, r.line.Work = entry.PR, entry.Key, entry.Work
		c.Subject, c.Archive = "delivered", []gitcas.Ended{r.line}
		c.Trailers = []gitcas.Trailer{{Key: "Uwf-Run", Value: fmt.Sprintf("%s attempt %d", r.Engine.Who.Run, r.Engine.Who.Attempt)}}
		if entry.PR != 0 {
			c.Trailers = append(c.Trailers, gitcas.Trailer{Key: "Uwf-Pull", Value: strings.TrimSpace(fmt.Sprintf("%d %s", entry.PR, text.OneLine(r.made.Link)))})
		}
		return nil
	})
	switch {
	case life.KindOf(err) == life.KindNotYours:
		return r.Describe(), err
	case err != nil:
		return r.Describe(), r.noteFailure(ctx, fmt.Errorf("its end was made known, but the thread could not be archived: %w", err))
	}
	r.DropDeadTries(push, r.View)
	r.Engine.Reached("delivered")
	res := r.Describe()
	res.Status, res.Done, res.Deliver, res.PR = string(gitcas.StatusEnded), true, false, r.line.PR
	r.Engine.Emit(thread.Event{Kind: "delivered", Thread: r.ID, Step: len(r.Chain.Steps)})
	return res, nil
}

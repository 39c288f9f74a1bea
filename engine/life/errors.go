// Package life is what may become of a thread: what counts as claimed, as failed and as over
// a limit, and how an entry changes by what jobs and people do. It is pure: everything is
// worked out from entries and claims as they were read.
package life

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// DeedError is why a deed is not done, or not to its end.
type DeedError struct {
	Kind   Kind
	Thread gitcas.ThreadID
	Deed   Deed
	Role   string // that waits; empty: all are done
	Reason string
	Next   []Verb
	Kept   string // the attempt ref that keeps what a job had done of it, if it had any
	Show   string // the command that shows it
	Err    error
}

func (e *DeedError) Error() string {
	kept, who := "", ""
	if e.Kept != "" {
		kept = "\nthis job's work was kept: " + e.Show
	}
	if e.Role != "" {
		who = " (role " + e.Role + ")"
	}
	switch e.Kind {
	case KindNotYours:
		return fmt.Sprintf("can't %s thread %s: %s%s", e.Deed, e.Thread, e.Reason, kept)
	case KindSuspended:
		return fmt.Sprintf("thread %s waits for a person%s: %s", e.Thread, who, e.Reason)
	case KindLimit:
		return fmt.Sprintf("thread %s: %s", e.Thread, e.Reason)
	}
	return e.Reason
}

func (e *DeedError) Unwrap() error { return e.Err }

// Verbs is what can be done about it.
func (e *DeedError) Verbs() []Verb { return e.Next }

// Refuse says that a thread is not as it would have to be for a deed. Nothing was changed.
func Refuse(d Deed, id gitcas.ThreadID, reason string, next ...Verb) *DeedError {
	return &DeedError{Kind: KindNotYours, Thread: id, Deed: d, Reason: reason, Next: next}
}

// RefuseClaimed says that somebody else works on the thread.
func RefuseClaimed(d Deed, id gitcas.ThreadID, c gitcas.Claim) *DeedError {
	cause := &ClaimedError{c}
	return &DeedError{Kind: KindNotYours, Thread: id, Deed: d, Reason: cause.Error(), Err: cause}
}

// Usagef says that a request can't be right, whatever the store holds.
func Usagef(format string, args ...any) *DeedError {
	return &DeedError{Kind: KindUsage, Reason: fmt.Sprintf(format, args...)}
}

// NewWaitingError says that a thread waits for a person, as its entry tells.
func NewWaitingError(id gitcas.ThreadID, entry gitcas.Entry) *DeedError {
	err := &DeedError{Kind: KindSuspended, Thread: id, Reason: WaitReason(entry), Next: WaysOn(id, entry)}
	if entry.Suspended != nil {
		err.Role = entry.Suspended.Role
	}
	return err
}

// NewLimitError says that a limit was reached before anything was paid.
func NewLimitError(id gitcas.ThreadID, reached error) *DeedError {
	return &DeedError{Kind: KindLimit, Thread: id, Reason: reached.Error(), Err: reached, Next: []Verb{NewRaiseLimitVerb(id, reached)}}
}

// NewStuckError says that a workflow can't say what follows a thread's steps, or not with what they
// put out. No agent ran.
func NewStuckError(id gitcas.ThreadID, steps int, cause error) *DeedError {
	err := &DeedError{Kind: KindUsage, Thread: id, Reason: fmt.Sprintf("thread %s can't go on: %v", id, cause), Err: cause}
	if steps == 0 {
		err.Next = []Verb{{For: "correct the definition, store it, start another thread, and cancel this one", Do: Cancel, Thread: id}}
		return err
	}
	err.Next = []Verb{
		{For: "have its last step done again", Do: Poke, Thread: id, Needs: NeedsText},
		{For: "or begin another thread before it", Do: Fork, Thread: id, Steps: steps - 1},
	}
	return err
}

// NewUndeliveredError says that a thread has ended, and its end could not be made known. It stays to
// be delivered by the next job; or it waits for a person, who lets it be tried again.
func NewUndeliveredError(id gitcas.ThreadID, waits bool, cause error) *DeedError {
	err := &DeedError{Kind: KindFailed, Thread: id, Deed: Deliver, Err: cause}
	next := "its work is safe, and the next job tries again"
	if waits {
		next, err.Next = "nobody tries again by itself", []Verb{{For: "let it be tried", Do: Retry, Thread: id}}
	}
	err.Reason = fmt.Sprintf("thread %s has ended, but could not be delivered: %v\n%s", id, cause, next)
	return err
}

// FailedError: the step failed. The thread's head has not moved, unless Unsure;
// Attempt is the ref that keeps what the agent produced, empty when nothing could
// be kept.
type FailedError struct {
	Thread  gitcas.ThreadID
	Role    string
	Phase   string // "workspace", "agent", "checks", "extract", "seal", "commit", PhaseStopped, PhaseInterrupted
	Attempt string
	// Step is the StepNode that tells of it, in that attempt; empty where there is none.
	Step node.Hash
	Err  error
	// OnDisk is the file of the sealed step, which is finished and could not be pushed; the
	// next step on this machine brings it in. Empty: there is none.
	OnDisk string
	// Unsure: nobody could be asked whether the step was committed after all.
	Unsure bool
	// Tries is how many attempts at the step have failed that count, as far as known.
	Tries int
	Show  string // the command that shows Attempt
}

func (e *FailedError) Error() string {
	msg := fmt.Sprintf("step of thread %s failed (role %s, %s): %v", e.Thread, e.Role, e.Phase, e.Err)
	if e.Phase == PhaseStopped {
		msg = fmt.Sprintf("step of thread %s was stopped (role %s): %v", e.Thread, e.Role, e.Err)
	}
	if e.OnDisk != "" {
		msg = fmt.Sprintf("step of thread %s is finished, but could not be pushed; it is in %s (role %s, %s): %v", e.Thread, e.OnDisk, e.Role, e.Phase, e.Err)
	}
	if e.Attempt != "" && !e.Unsure {
		msg += "\nthe thread has not moved; what there is was kept: " + e.Show
	}
	return msg
}

func (e *FailedError) Unwrap() error { return e.Err }

// Verbs is what can be done about it.
func (e *FailedError) Verbs() []Verb {
	v := Verb{For: "try again", Do: Step, Thread: e.Thread}
	switch {
	case e.OnDisk != "": // which finds out, too, if it was pushed
		v.For = "nothing is lost; this brings it in on this machine, without asking the agent again"
	case e.Unsure:
		v.For, v.Do = "whether the thread has moved is not known; look", Show
	case e.Phase == PhaseStopped:
		v.For = "it counts as no failed attempt; go on"
	case e.Tries >= MaxAttempts:
		v.For, v.Do = fmt.Sprintf("it has failed %d times, and waits for your word", e.Tries), Retry
	}
	return []Verb{v}
}

// UnknownThreadError: no thread of that id, neither alive nor ended.
type UnknownThreadError struct {
	Thread gitcas.ThreadID
	Alive  []gitcas.ThreadID // those that there are, for suggestions
}

func (e *UnknownThreadError) Error() string {
	return fmt.Sprintf("no thread %s in this store", e.Thread)
}

// NewUnknownThreadError says that a view has no thread of that id, and which it has.
func NewUnknownThreadError(v *gitcas.View, id gitcas.ThreadID) error {
	return &UnknownThreadError{Thread: id, Alive: slices.Sorted(maps.Keys(v.Threads()))}
}

// Kind is what an error means to whoever asked for a deed.
type Kind int

// The kinds of errors.
const (
	KindDone      Kind = iota // none: advanced, or ended
	KindFailed                // the step failed
	KindUsage                 // wrong usage or invalid definition
	KindSuspended             // waits for a person
	KindNotYours              // moved, claimed, cancelled or ended: not as it would have to be
	KindDamaged               // store damaged or unreadable
	KindLimit                 // a limit is reached
)

// KindOf says of which kind an error is: of this package, of the Store or of a definition.
func KindOf(err error) Kind {
	var own *DeedError
	isAny := func(kinds ...error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	}
	switch {
	case err == nil:
		return KindDone
	case isAny(gitcas.ErrDamaged): // first: trying again does not help
		return KindDamaged
	case errors.As(err, new(*FailedError)):
		return KindFailed
	case errors.As(err, &own):
		return own.Kind
	case errors.As(err, new(*UnknownThreadError)), errors.As(err, new(*workflow.InvalidError)),
		isAny(workflow.ErrNoWorkflow, gitcas.ErrNoStore, gitcas.ErrUnknownThread, gitcas.ErrInvalid, gitcas.ErrLocalDiffers, gitcas.ErrSHA256, wire.ErrInTheWay):
		return KindUsage
	case isAny(context.Canceled, wire.ErrLostRace):
		// Interrupted, or others were faster until the time was up: nothing is
		// wrong with the store.
		return KindFailed
	case isAny(node.ErrNotFound, record.ErrNotRecord), errors.As(err, new(*wire.RemoteError)):
		return KindDamaged
	}
	return KindFailed
}

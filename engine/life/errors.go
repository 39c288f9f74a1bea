package life

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// FailedError: the step failed. The thread's head has not moved, unless Unsure;
// Attempt is the ref that keeps what the agent produced, empty when nothing could
// be kept.
type FailedError struct {
	Thread  gitcas.ThreadID
	Role    string
	Phase   string // "workspace", "agent", "extract", "seal", "commit", PhaseStopped, PhaseInterrupted
	Attempt string
	// Step is the StepNode that tells of it, in that attempt; empty where there is none.
	Step node.Hash
	Err  error
	// Unsure: nobody could be asked whether the step was committed after all.
	Unsure bool
	// Stopped: a person stopped it, see ErrStopped.
	Stopped bool
	// Tries is how many attempts at the step have failed that count, as far as known.
	Tries int
	// Show is the command that shows Attempt; empty: git show.
	Show string
}

func (e *FailedError) Error() string {
	msg := fmt.Sprintf("step of thread %s failed (role %s, %s): %v", e.Thread, e.Role, e.Phase, e.Err)
	if e.Stopped {
		msg = fmt.Sprintf("step of thread %s was stopped (role %s): %v", e.Thread, e.Role, e.Err)
	}
	if e.Unsure {
		return msg + "\nwhether the thread has moved is not known; look with: uwf thread show " + string(e.Thread)
	}
	if e.Attempt != "" {
		msg += "\nthe thread has not moved; what there is was kept: " + cmp.Or(e.Show, "git show "+e.Attempt)
	}
	switch {
	case e.Stopped:
		return fmt.Sprintf("%s\nit counts as no failed attempt; go on with: uwf thread step %s", msg, e.Thread)
	case e.Tries >= MaxAttempts:
		return fmt.Sprintf("%s\nit has failed %d times, and waits for your word: %s", msg, e.Tries, RetryCommand(e.Thread))
	}
	return fmt.Sprintf("%s\ntry again with: uwf thread step %s", msg, e.Thread)
}

func (e *FailedError) Unwrap() error { return e.Err }

// DeliverError: the thread has ended, and its end could not be made known. It stays
// to be delivered, by the next job; or it waits for a person, who lets it be tried
// again.
type DeliverError struct {
	Thread gitcas.ThreadID
	Waits  bool // too many deliveries failed: the thread was suspended
	Err    error
}

func (e *DeliverError) Error() string {
	if e.Waits {
		return fmt.Sprintf("thread %s has ended, but could not be delivered: %v\nnobody tries again by itself; let it be tried with: uwf thread retry %s", e.Thread, e.Err, e.Thread)
	}
	return fmt.Sprintf("thread %s has ended, but could not be delivered: %v\nits work is safe, and the next job tries again", e.Thread, e.Err)
}

func (e *DeliverError) Unwrap() error { return e.Err }

// UsageError: the request can't be right, whatever the store holds.
type UsageError struct{ Msg string }

func (e *UsageError) Error() string { return e.Msg }

// SuspendedError: the thread waits for a person.
type SuspendedError struct {
	Thread gitcas.ThreadID
	Role   string // empty: all roles are done
	Reason string
	// Way is what the person does, with its command; empty: see WayOn.
	Way string
}

func (e *SuspendedError) Error() string {
	who, way := " (role "+e.Role+")", e.Way
	name, command := WayOn(e.Thread, e.Reason)
	if e.Role == "" {
		who = ""
	}
	if e.Role == "" && name == "answer" { // whom?
		name, command = "let it go on", "uwf thread resume "+string(e.Thread)
	}
	return fmt.Sprintf("thread %s waits for a person%s: %s\n%s", e.Thread, who, e.Reason, cmp.Or(way, name+" with: "+command))
}

// NotYoursError: the thread is not this job's to step. Nothing was lost and
// nothing needs to be done.
type NotYoursError struct {
	Thread gitcas.ThreadID
	Reason string
	Kept   string // the attempt ref that keeps this job's work, if it had any
	Show   string // the command that shows it; empty: git show
	Cause  error
}

func (e *NotYoursError) Error() string {
	msg := fmt.Sprintf("thread %s is not ours to step: %s", e.Thread, e.Reason)
	if e.Kept != "" {
		msg += "\nthis job's work was kept: " + cmp.Or(e.Show, "git show "+e.Kept)
	}
	return msg
}

func (e *NotYoursError) Unwrap() error { return e.Cause }

// RefusedError: what somebody asked for does not fit the thread as it is. Nothing
// was changed.
type RefusedError struct {
	Thread gitcas.ThreadID
	Do     string // what was asked for: "fork", "poke"
	Reason string
	Advice string // what to do instead; may be empty
	Cause  error
}

func (e *RefusedError) Error() string {
	msg := fmt.Sprintf("can't %s thread %s: %s", e.Do, e.Thread, e.Reason)
	if e.Advice != "" {
		msg += "\n" + e.Advice
	}
	return msg
}

func (e *RefusedError) Unwrap() error { return e.Cause }

// LimitError: a limit was reached before anything was paid; the thread was
// suspended.
type LimitError struct {
	Thread gitcas.ThreadID
	Err    error
	// Ahead: the thread does not wait yet. Its next step will find the limit.
	Ahead bool
}

func (e *LimitError) Error() string {
	msg := fmt.Sprintf("thread %s: %v", e.Thread, e.Err)
	var reached *moderator.LimitError
	if !errors.As(e.Err, &reached) {
		return msg
	}
	first := ""
	if e.Ahead {
		first = AdviseWait(e.Thread)
	}
	return msg + "\n" + first + AdviseRaise(e.Thread, reached)
}

func (e *LimitError) Unwrap() error { return e.Err }

// StuckError: the workflow can't say what follows the thread's steps, or not with
// what they put out. No agent ran.
type StuckError struct {
	Thread gitcas.ThreadID
	Steps  int // that the thread has
	Err    error
}

func (e *StuckError) Error() string {
	msg := fmt.Sprintf("thread %s can't go on: %v", e.Thread, e.Err)
	if e.Steps == 0 {
		return fmt.Sprintf("%s\ncorrect the definition (uwf workflow validate), store it, and start another thread; cancel this one: uwf thread cancel %s", msg, e.Thread)
	}
	return fmt.Sprintf("%s\nhave its last step done again: uwf thread poke %s -p \"…\"\nor begin another thread before it: uwf thread fork %s:%d", msg, e.Thread, e.Thread, e.Steps-1)
}

func (e *StuckError) Unwrap() error { return e.Err }

// UnknownThreadError: no thread of that id, neither alive nor ended.
type UnknownThreadError struct {
	Thread gitcas.ThreadID
	Alive  []gitcas.ThreadID // those that there are, for suggestions
}

func (e *UnknownThreadError) Error() string {
	return fmt.Sprintf("no thread %s in this store (see: uwf thread list --all)", e.Thread)
}

// NewUnknownThreadError says that a view has no thread of that id, and which it has.
func NewUnknownThreadError(v *gitcas.View, id gitcas.ThreadID) error {
	return &UnknownThreadError{Thread: id, Alive: slices.Sorted(maps.Keys(v.Threads()))}
}

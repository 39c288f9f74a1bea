package thread

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Code is the exit code of a command that works on a thread.
type Code int

// The exit codes. They are part of the interface: scripts and jobs branch on them.
const (
	CodeOK        Code = 0 // advanced, or ended
	CodeFailed    Code = 1 // the step failed
	CodeUsage     Code = 2 // wrong usage or invalid definition
	CodeSuspended Code = 3 // waits for a person
	CodeNotYours  Code = 4 // moved, claimed, cancelled or ended: not as it would have to be
	CodeDamaged   Code = 5 // store damaged or unreadable
	CodeLimit     Code = 6 // a limit is reached
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
		return fmt.Sprintf("%s\nit has failed %d times, and waits for your word: %s", msg, e.Tries, tryAgain(e.Thread))
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
	cause  error
}

func (e *NotYoursError) Error() string {
	msg := fmt.Sprintf("thread %s is not ours to step: %s", e.Thread, e.Reason)
	if e.Kept != "" {
		msg += "\nthis job's work was kept: " + cmp.Or(e.Show, "git show "+e.Kept)
	}
	return msg
}

func (e *NotYoursError) Unwrap() error { return e.cause }

// RefusedError: what somebody asked for does not fit the thread as it is. Nothing
// was changed.
type RefusedError struct {
	Thread gitcas.ThreadID
	Do     string // what was asked for: "fork", "poke"
	Reason string
	Advice string // what to do instead; may be empty
	cause  error
}

func (e *RefusedError) Error() string {
	msg := fmt.Sprintf("can't %s thread %s: %s", e.Do, e.Thread, e.Reason)
	if e.Advice != "" {
		msg += "\n" + e.Advice
	}
	return msg
}

func (e *RefusedError) Unwrap() error { return e.cause }

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
		first = makeWait(e.Thread)
	}
	return msg + "\n" + first + raiseLimit(e.Thread, reached)
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

func unknownThread(v *gitcas.View, id gitcas.ThreadID) error {
	return &UnknownThreadError{Thread: id, Alive: slices.Sorted(maps.Keys(v.Threads()))}
}

// CodeOf says which exit code an error of this package, of the Store or of a
// definition stands for.
func CodeOf(err error) Code {
	var (
		failed    *FailedError
		deliver   *DeliverError
		usage     *UsageError
		suspended *SuspendedError
		notYours  *NotYoursError
		refused   *RefusedError
		limit     *LimitError
		stuck     *StuckError
		unknown   *UnknownThreadError
		invalid   *workflow.InvalidError
		wireErr   *wire.Error
	)
	switch {
	case err == nil:
		return CodeOK
	case errors.Is(err, gitcas.ErrDamaged): // first: trying again does not help
		return CodeDamaged
	case errors.As(err, &failed), errors.As(err, &deliver):
		return CodeFailed
	case errors.As(err, &usage), errors.As(err, &unknown), errors.As(err, &stuck), errors.As(err, &invalid), errors.Is(err, workflow.ErrNoWorkflow),
		errors.Is(err, gitcas.ErrNoStore), errors.Is(err, gitcas.ErrUnknownThread), errors.Is(err, gitcas.ErrInvalid), errors.Is(err, gitcas.ErrLocalDiffers):
		return CodeUsage
	case errors.As(err, &suspended):
		return CodeSuspended
	case errors.As(err, &notYours), errors.As(err, &refused):
		return CodeNotYours
	case errors.As(err, &limit):
		return CodeLimit
	case errors.Is(err, context.Canceled), errors.Is(err, wire.ErrLostRace):
		// Interrupted, or others were faster until the time was up: nothing is
		// wrong with the store.
		return CodeFailed
	case errors.Is(err, node.ErrNotFound), errors.Is(err, record.ErrNotRecord), errors.As(err, &wireErr):
		return CodeDamaged
	}
	return CodeFailed
}

// cleanError is an error whose text held a secret: of an agent's stderr, say.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }

func (e *cleanError) Unwrap() error { return e.err }

// cleanError takes secrets out of what an error says.
func (e *Engine) cleanError(err error) error {
	text, found, rerr := e.Redact.Value(err.Error())
	switch {
	case rerr != nil:
		return &cleanError{"the step ended with an error that could not be checked for secrets, so it is not shown: " + rerr.Error(), err}
	case found == 0:
		return err
	}
	clean, _ := text.(string)
	return &cleanError{clean, err}
}

package life

import (
	"errors"
	"strings"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
)

// Verb is something that a person can do next. Who shows it knows how it is said there: the
// command line by a command, a forge by a comment.
type Verb struct {
	For    string          `json:"for"` // what it is for: "try again"
	Do     Deed            `json:"do"`
	Thread gitcas.ThreadID `json:"thread"`
	Needs  string          `json:"needs,omitempty"` // what it takes besides: NeedsText, or the name of a limit to raise; empty: nothing
	Steps  int             `json:"steps,omitempty"` // of a fork: how many steps it shares
}

// NeedsText is the need of a text: an answer, an instruction.
const NeedsText = "text"

// What else people do about a thread.
const (
	Show  Deed = "show"
	Wait  Deed = "wait"
	Check Deed = "fsck"
)

// NextOf is what can be done about an error, as far as it says so.
func NextOf(err error) []Verb {
	var says interface{ Verbs() []Verb }
	if !errors.As(err, &says) {
		return nil
	}
	return says.Verbs()
}

// advisedError is an error of a package below, with what can be done about it.
type advisedError struct {
	error
	next []Verb
}

func (e *advisedError) Unwrap() error { return e.error }

// Verbs is what can be done about it.
func (e *advisedError) Verbs() []Verb { return e.next }

// Advise says what can be done about an error.
func Advise(err error, next ...Verb) error { return &advisedError{err, next} }

// WaysOn is what a person does so that a thread goes on whose entry says that it waits. A
// person who is told to answer a limit would resume the thread, and see it stop at once; a
// pause has asked nothing; and what failed is tried again.
func WaysOn(id gitcas.ThreadID, e gitcas.Entry) []Verb {
	v := Verb{For: "answer", Do: Resume, Thread: id, Needs: NeedsText}
	switch limit := ReachedLimit(e); {
	case strings.HasPrefix(limit, moderator.MonthPrefix):
		v.For, v.Needs = overMonth, ""
	case limit != "":
		v.For, v.Needs = "raise it", limit
	case CountAttempts(e, id, nil) >= MaxAttempts:
		v = Verb{For: "try again", Do: Retry, Thread: id}
	case e.Deliver || e.Suspended != nil && (e.Suspended.Role == "" || e.Suspended.By != nil || e.Suspended.Reason == PausedByPerson):
		v.For, v.Needs = "let it go on", ""
	}
	return []Verb{v}
}

// ReachedLimit is the limit that a thread waits for, as its entry tells, by its name in the
// configuration; empty: it waits for something else.
func ReachedLimit(e gitcas.Entry) string { return parseReachedLimit(WaitReason(e)) }

// parseReachedLimit is the limit that a reason names, see moderator.LimitError; empty for other
// reasons. An agent's question can be one.
func parseReachedLimit(reason string) string {
	rest, _ := strings.CutPrefix(reason, "limit ")
	limit, _, reached := strings.Cut(rest, " reached: ")
	if rest == reason || !reached {
		return ""
	}
	if kind, ok := strings.CutPrefix(limit, moderator.MonthPrefix); ok && (kind == "tokens" || kind == "costUsd") {
		return limit
	}
	return workflow.FindLimit(limit).Name
}

// overMonth is what lets a thread go on for which the month has nothing left.
const overMonth = "once the month is over, or the limit was raised in the configuration, let it go on"

// Next is what else a person can do with a thread that a deed does not fit.
func (s Standing) Next(d Deed) []Verb {
	fork := Verb{For: "begin another thread from one of its steps", Do: Fork, Thread: s.Thread, Steps: max(len(s.Ended.Steps)-1, 0)}
	resume := Verb{For: "let it go on", Do: Resume, Thread: s.Thread, Needs: NeedsText}
	switch state := s.FindState(); {
	case state == Removed, state == ToDeliver, d == Step, d == Deliver, d == Suspend, d == Cancel: // nothing has to be done
		return nil
	case d == Remove:
		return []Verb{{For: "cancel it first", Do: Cancel, Thread: s.Thread}}
	case state == Ended && s.Reopens:
		return []Verb{resume, fork}
	case !s.Alive:
		return []Verb{fork}
	case s.Entry.Status == gitcas.StatusSuspended:
		return WaysOn(s.Thread, s.Entry)
	case s.Claim != nil:
		next := []Verb{{For: "wait until its step is over", Do: Wait, Thread: s.Thread}}
		if s.Claim.For != "" {
			next = []Verb{NewLookAgainVerb(s.Thread)}
		}
		if d == Retry {
			next = append(next, Verb{For: "if whoever it is is dead", Do: Take, Thread: s.Thread})
		}
		return next
	case CountAttempts(s.Entry, s.Thread, s.Died) >= MaxAttempts:
		return []Verb{{For: "let its step be tried again", Do: Retry, Thread: s.Thread}}
	case s.Limit != nil:
		return []Verb{NewRaiseLimitVerb(s.Thread, s.Limit)}
	case s.Steps > 0:
		return []Verb{newStepVerb(s.Thread), {For: "to have its last step done again", Do: Poke, Thread: s.Thread, Needs: NeedsText}}
	}
	return []Verb{newStepVerb(s.Thread)}
}

// newStepVerb is how a thread is told to work on.
func newStepVerb(id gitcas.ThreadID) Verb { return Verb{For: "let it work", Do: Step, Thread: id} }

// NewLookAgainVerb is what a person does with a thread that changed meanwhile.
func NewLookAgainVerb(id gitcas.ThreadID) Verb {
	return Verb{For: "look at it and try again", Do: Show, Thread: id}
}

// NewRaiseLimitVerb is how a limit is raised that a thread has reached.
func NewRaiseLimitVerb(id gitcas.ThreadID, reached error) Verb {
	needs := parseReachedLimit(reached.Error())
	if strings.HasPrefix(needs, moderator.MonthPrefix) {
		return Verb{For: overMonth, Do: Resume, Thread: id}
	}
	return Verb{
		For: "raise it (where the configuration or the workflow sets it, there first: the lowest counts)", Do: Resume, Thread: id,
		Needs: needs,
	}
}

package life

import (
	"cmp"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/text"
)

// Deed is what a job or a person does with a thread.
type Deed string

// The deeds that a thread's state decides on.
const (
	Start   Deed = "start"
	Step    Deed = "step"
	Deliver Deed = "deliver"
	Resume  Deed = "resume"
	Raise   Deed = "raise the limits of"
	Retry   Deed = "retry"
	Take    Deed = "take"
	Poke    Deed = "poke"
	Pause   Deed = "pause"
	Suspend Deed = "suspend"
	Cancel  Deed = "cancel"
	Fork    Deed = "fork"
	Remove  Deed = "remove"
)

// State is how a thread stands, as far as that decides what may be done with it. Where
// people are told no less than that, it is the status that they see.
type State string

// The states: of threads that are alive, and of those that are over.
const (
	Active      State = "active"
	Running     State = "running"
	Failed      State = "failed"
	Pausing     State = "to be paused"
	Suspended   State = "suspended"
	ToDeliver   State = "to be delivered"
	Undelivered State = "not delivered"
	Ended       State = "ended"
	Cancelled   State = "cancelled"
	Removed     State = "removed"
)

// rule is what a deed does at the states at which it may be done. At all others it is
// refused, where the thread is under way in words of the deed's own.
type rule struct {
	does     map[State]string
	underWay string
}

// at gives several states the same words.
func at(does string, states ...State) map[State]string {
	out := make(map[State]string, len(states))
	for _, s := range states {
		out[s] = does
	}
	return out
}

// rules is what each deed does, and where. docs/states.md is made of it.
var rules = map[Deed]rule{
	Start: {does: map[State]string{
		Active: begun, Running: begun, Failed: begun, Pausing: begun, Suspended: begun, ToDeliver: begun, Undelivered: begun,
		Ended: "begins another thread", Cancelled: "begins another thread", Removed: "begins another thread",
	}},
	Step: {does: map[State]string{
		Active:  "has the next role work",
		Failed:  "has the role try again; after three failed attempts makes the thread wait",
		Pausing: "makes the thread wait",
	}},
	Deliver: {does: at("makes the end known, and takes the thread off the list", ToDeliver), underWay: "it has not ended"},
	Resume: {underWay: "it does not wait for anybody", does: map[State]string{
		Pausing:     "takes the pause back",
		Suspended:   "has the role that waits work, and tells it the answer; failed attempts no longer count",
		Undelivered: "has it delivered",
		ToDeliver:   "lets it go on by the workflow's resume edge instead",
		Ended:       "brings it back, and lets it go on by the workflow's resume edge",
	}},
	Raise: {does: at("raises its limits", Active, Failed, Pausing)},
	Retry: {does: at(again, Failed, Pausing, Suspended, ToDeliver, Undelivered), underWay: nothingFailed},
	Take:  {does: at(again+"; the claim of a job that has the thread is taken away", Running, Failed, Pausing, Suspended, ToDeliver, Undelivered), underWay: nothingFailed},
	Poke:  {does: at("takes the last step back, and has it done again", Active, Failed, Pausing, Suspended, Undelivered)},
	Pause: {does: map[State]string{
		Active: waits, Failed: waits, Running: "makes it wait after the step that runs", Pausing: "gives another reason for the pause",
	}},
	Suspend: {does: at("makes it wait; a job that has it loses it", Active, Running, Failed, Pausing)},
	Cancel: {does: map[State]string{
		Active: over, Running: over, Failed: over, Pausing: over, Suspended: over, ToDeliver: over, Undelivered: over, Cancelled: "does nothing",
	}},
	Fork: {does: at("begins another thread with its first steps", Active, Running, Failed, Pausing, Suspended, ToDeliver, Undelivered, Ended, Cancelled)},
	Remove: {underWay: "it is under way", does: map[State]string{
		Ended: off, Cancelled: off, Removed: "deletes what is left of its refs",
	}},
}

// What several deeds do, or say.
const (
	begun         = "is answered with this thread"
	again         = "no longer counts the attempts that failed, so that the next job tries again"
	waits         = "makes it wait"
	over          = "ends it for good; a job that has it loses it"
	off           = "takes it off all lists, and deletes its refs"
	nothingFailed = "no failed attempt of its next step counts"
)

// Standing is how a thread stands: its entry, its newest history line where it is over, and
// what of the rest of the store decides on deeds.
type Standing struct {
	Thread gitcas.ThreadID
	Alive  bool
	Entry  gitcas.Entry
	Ended  gitcas.Ended
	Claim  *gitcas.Claim // of whoever works on it; nil: nobody does
	Died   []string      // the jobs that died on its head and are not linked yet, see RecordDead
	// What else a person can do hangs on how many steps it has, on the limit that its next
	// one will find reached, and on whether its workflow lets it go on after its end.
	Steps   int
	Limit   error
	Reopens bool
}

// Status is the thread's status as people see it.
func (s Standing) Status() string {
	switch {
	case !s.Alive:
		return s.Ended.Reason
	case s.Entry.Status != gitcas.StatusActive:
		return string(s.Entry.Status)
	case s.Claim != nil:
		return string(Running)
	case CountAttempts(s.Entry, s.Thread, s.Died) > 0:
		return string(Failed)
	}
	return string(Active)
}

// State is the thread's state.
func (s Standing) State() State {
	switch e := s.Entry; {
	case s.Alive && e.Status == gitcas.StatusEnded:
		return ToDeliver
	case s.Alive && e.Status == gitcas.StatusSuspended && e.Deliver:
		return Undelivered
	case s.Alive && e.Status == gitcas.StatusActive && e.Pause != nil:
		return Pausing
	}
	return State(s.Status())
}

// hasFailed reports whether there is something to be tried again.
func (s Standing) hasFailed() bool {
	switch s.State() {
	case Undelivered:
		return true
	case Suspended, ToDeliver:
		return len(s.Entry.Attempts)+len(s.Died) > 0
	}
	return CountAttempts(s.Entry, s.Thread, s.Died) > 0
}

// Judge says why a deed may not be done now; nil: it may.
func (s Standing) Judge(d Deed) error {
	state := s.State()
	waits := state == Suspended || state == Undelivered
	tries := d == Retry || d == Take && (s.Claim == nil || waits)
	switch r := rules[d]; {
	case r.does[state] != "" && (!tries || s.hasFailed()):
		return nil
	case waits && (d == Step || d == Deliver):
		return Waiting(s.Thread, s.Entry)
	case !s.Alive:
		return s.Refuse(d, DescribeEnd(s.Ended))
	case state == ToDeliver && tries:
		return s.Refuse(d, "it has ended, and no delivery of it failed")
	case state == ToDeliver:
		return s.Refuse(d, "it has ended and is being delivered")
	case waits && tries:
		return s.Refuse(d, nothingFailed+"; it waits for a person ("+waitReason(s.Entry)+")")
	case waits:
		return s.Refuse(d, "it waits already ("+waitReason(s.Entry)+")")
	case state == Running:
		err := RefuseClaimed(d, s.Thread, *s.Claim)
		err.Next = s.Next(d)
		return err
	default:
		return s.Refuse(d, r.underWay)
	}
}

// Refuse says why a deed may not be done, and what may.
func (s Standing) Refuse(d Deed, reason string) *Error {
	return Refuse(d, s.Thread, reason, s.Next(d)...)
}

func waitReason(e gitcas.Entry) string {
	return cmp.Or(text.OneLine(WaitReason(e)), "no reason is given")
}

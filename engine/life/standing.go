package life

import (
	"cmp"
	"slices"

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

var (
	underWay = []State{Active, Running, Failed, Pausing}
	living   = append(underWay[:4:4], Suspended, ToDeliver, Undelivered)
)

// rules is what each deed does, and at which states. At all others it is refused.
// docs/states.md is made of it.
var rules = []struct {
	deed Deed
	does string
	at   []State
}{
	{Start, "is answered with this thread", living},
	{Start, "begins another thread", []State{Ended, Cancelled, Removed}},
	{Step, "has the next role work", []State{Active}},
	{Step, "has the role try again; after three failed attempts makes the thread wait", []State{Failed}},
	{Step, "makes the thread wait", []State{Pausing}},
	{Deliver, "makes the end known, and takes the thread off the list", []State{ToDeliver}},
	{Resume, "takes the pause back", []State{Pausing}},
	{Resume, "has the role that waits work, and tells it the answer; failed attempts no longer count", []State{Suspended}},
	{Resume, "has it delivered", []State{Undelivered}},
	{Resume, "lets it go on by the workflow's resume edge instead", []State{ToDeliver}},
	{Resume, "brings it back, and lets it go on by the workflow's resume edge", []State{Ended}},
	{Raise, "raises its limits", []State{Active, Failed, Pausing}},
	{Retry, "no longer counts the attempts that failed, so that the next job tries again", []State{Failed, Pausing, Suspended, ToDeliver, Undelivered}},
	{Take, "is retry; the claim of a job that has the thread is taken away", []State{Running, Failed, Pausing, Suspended, ToDeliver, Undelivered}},
	{Poke, "takes the last step back, and has it done again", []State{Active, Failed, Pausing, Suspended, Undelivered}},
	{Pause, "makes it wait", []State{Active, Failed}},
	{Pause, "makes it wait after the step that runs", []State{Running}},
	{Pause, "gives another reason for the pause", []State{Pausing}},
	{Suspend, "makes it wait; a job that has it loses it", underWay},
	{Cancel, "ends it for good; a job that has it loses it", living},
	{Cancel, "does nothing", []State{Cancelled}},
	{Fork, "begins another thread with its first steps", append(living[:7:7], Ended, Cancelled)},
	{Remove, "takes it off all lists, and deletes its refs", []State{Ended, Cancelled}},
	{Remove, "deletes what is left of its refs", []State{Removed}},
}

// refusals are why deeds are refused that do not fit a thread under way.
var refusals = map[Deed]string{
	Deliver: "it has not ended", Resume: "it does not wait for anybody", Retry: nothingFailed, Take: nothingFailed, Remove: "it is under way",
}

const nothingFailed = "no failed attempt of its next step counts"

// effectOf is what a deed does at a state; empty: it is refused.
func effectOf(d Deed, s State) string {
	for _, r := range rules {
		if r.deed == d && slices.Contains(r.at, s) {
			return r.does
		}
	}
	return ""
}

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

// FindState is the thread's state.
func (s Standing) FindState() State {
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
	switch s.FindState() {
	case Undelivered:
		return true
	case Suspended, ToDeliver:
		return len(s.Entry.Attempts)+len(s.Died) > 0
	}
	return CountAttempts(s.Entry, s.Thread, s.Died) > 0
}

// Judge says why a deed may not be done now; nil: it may.
func (s Standing) Judge(d Deed) error {
	state := s.FindState()
	waits := state == Suspended || state == Undelivered
	tries := d == Retry || d == Take && (s.Claim == nil || waits)
	switch {
	case effectOf(d, state) != "" && (!tries || s.hasFailed()):
		return nil
	case waits && (d == Step || d == Deliver):
		return NewWaitingError(s.Thread, s.Entry)
	case !s.Alive:
		return s.RefuseDeed(d, DescribeEnd(s.Ended))
	case state == ToDeliver && tries && s.Claim != nil:
		err := RefuseClaimed(d, s.Thread, *s.Claim)
		err.Next = []Verb{{For: "if whoever it is is dead", Do: Take, Thread: s.Thread}}
		return err
	case state == ToDeliver && tries:
		return s.RefuseDeed(d, "it has ended, and no delivery of it failed")
	case state == ToDeliver:
		return s.RefuseDeed(d, "it has ended and is being delivered")
	case waits && tries:
		return s.RefuseDeed(d, nothingFailed+"; it waits for a person ("+waitReason(s.Entry)+")")
	case waits:
		return s.RefuseDeed(d, "it waits already ("+waitReason(s.Entry)+")")
	case state == Running:
		err := RefuseClaimed(d, s.Thread, *s.Claim)
		err.Next = s.Next(d)
		return err
	default:
		return s.RefuseDeed(d, refusals[d])
	}
}

// RefuseDeed says why a deed may not be done, and what may.
func (s Standing) RefuseDeed(d Deed, reason string) *DeedError {
	return Refuse(d, s.Thread, reason, s.Next(d)...)
}

func waitReason(e gitcas.Entry) string {
	return cmp.Or(text.OneLine(WaitReason(e)), "no reason is given")
}

package thread

import (
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
)

// turn is whose turn it is, or who waits for a person and why, by the predecessor's
// keys: null says that there is nobody.
type turn struct {
	CurrentRole    *string `json:"currentRole"`
	SuspendedRole  *string `json:"suspendedRole"`
	SuspendMessage *string `json:"suspendMessage"`
}

// turnOf is the turn of the role that works next, or of the one that waits; nil: none
// does.
func turnOf(nextRole string, waits *thread.SuspendedInfo) turn {
	switch {
	case waits != nil:
		return turn{SuspendedRole: &waits.Role, SuspendMessage: &waits.Reason}
	case nextRole != "":
		return turn{CurrentRole: &nextRole}
	}
	return turn{}
}

// turnIn is the turn that a live thread's entry tells of.
func turnIn(e gitcas.Entry) turn {
	var next string
	if e.Next != nil {
		next = e.Next.Role
	}
	var waits *thread.SuspendedInfo
	if s := e.Suspended; s != nil {
		waits = &thread.SuspendedInfo{Role: s.Role, Reason: s.Reason}
	}
	return turnOf(next, waits)
}

// Stepped is the JSON of a step.
type Stepped struct {
	thread.Result
	turn
}

// SteppedOf is a step's result as it is printed.
func SteppedOf(r thread.Result) Stepped {
	return Stepped{Result: r, turn: turnOf(r.NextRole, r.Suspended)}
}

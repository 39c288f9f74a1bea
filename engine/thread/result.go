package thread

import (
	"errors"

	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Result is what a step did: the JSON of `uwf thread step`.
type Result struct {
	Workflow node.Hash       `json:"workflow"`
	Name     string          `json:"name"` // the workflow's
	Thread   gitcas.ThreadID `json:"thread"`
	Head     node.Hash       `json:"head"`
	// HeadDigest is the SHA-256 of the head; empty where it was not read.
	HeadDigest node.Digest    `json:"headDigest,omitempty"`
	Done       bool           `json:"done"`
	Status     string         `json:"status"`           // active, running, suspended, ended, cancelled, failed
	Result     string         `json:"result,omitempty"` // the step's status
	Role       string         `json:"role,omitempty"`
	NextRole   string         `json:"nextRole,omitempty"`
	Step       int            `json:"step"`
	Usage      *record.Usage  `json:"usage,omitempty"` // what the step took; of one that failed, what its attempt did
	Checks     []record.Check `json:"checks,omitempty"`
	Suspended  *SuspendedInfo `json:"suspended,omitempty"`
	Error      *StepError     `json:"error,omitempty"`
	// Work is the work branch after the step.
	Work *record.Work `json:"work,omitempty"`

	// Again: this run (one of its attempts) had done it before, and did nothing now
	// but tell. What follows from it may still be to do.
	Again bool `json:"-"`
	// Deliver: the thread has ended and waits to be delivered.
	Deliver bool `json:"-"`
	// Held is this job's claim for the next step, see StepRequest.Next; nil: there is none.
	Held *lease.Lease `json:"-"`
	// View is the store with the step, as this job pushed it; nil: it pushed none.
	View *gitcas.View `json:"-"`
	// Comment and PR are the thread's, as far as its entry tells; 0: not known.
	Comment int64 `json:"-"`
	PR      int   `json:"-"`
}

// Pin is the head with its digest.
func (res Result) Pin() node.Pin { return node.Pin{Hash: res.Head, Digest: res.HeadDigest} }

// AddEntry fills in what an entry says besides the status.
func (res *Result) AddEntry(entry gitcas.Entry) {
	res.Comment, res.PR = entry.Comment, entry.PR
	res.Deliver = entry.Deliver && entry.Status == gitcas.StatusEnded
	res.Suspended = newSuspendedInfo(res.Thread, entry)
}

// StepError says why a step is not the thread's next one.
type StepError struct {
	Message string `json:"message"`
	// StepHash is the StepNode that tells of the attempt; empty: nothing of it was kept.
	StepHash node.Hash `json:"stepHash,omitempty"`
	// Next is what can be done about it.
	Next []life.Verb `json:"next,omitempty"`
}

// Conclude takes secrets out of the error that a job's work on the thread ended with, if any,
// and has the result tell of it.
func (res *Result) Conclude(r Redactor, err error) error {
	if err == nil {
		return nil
	}
	err = CleanError(r, err)
	res.Error = &StepError{Message: err.Error(), Next: life.NextOf(err)}
	if failed, ok := errors.AsType[*life.FailedError](err); ok {
		res.Error.StepHash = failed.Step
	}
	if claimed, ok := errors.AsType[*life.ClaimedError](err); ok && claimed.For == "" {
		res.Status = string(life.Running)
	}
	return err
}

// SuspendedInfo says which role waits for a person, and why.
type SuspendedInfo struct {
	Role   string `json:"role"`
	Reason string `json:"reason"`
	// Next is what the person does.
	Next []life.Verb `json:"next,omitempty"`
}

// newSuspendedInfo is what an entry says of why its thread waits; nil: it doesn't.
func newSuspendedInfo(id gitcas.ThreadID, entry gitcas.Entry) *SuspendedInfo {
	s := entry.Suspended
	if s == nil {
		return nil
	}
	return &SuspendedInfo{Role: s.Role, Reason: s.Reason, Next: life.WaysOn(id, entry)}
}

package statefile

import (
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// ThreadID names a thread.
type ThreadID = layout.ThreadID

// By says who did something, see record.By.
type By = record.By

// Status of a thread's entry in threads.yaml.
type Status string

// The statuses that threads.yaml knows. A cancelled thread has no entry: its
// history line says so.
const (
	StatusActive    Status = "active"
	StatusSuspended Status = "suspended"
	StatusEnded     Status = "ended"
)

// Entry is one thread in threads.yaml.
type Entry struct {
	Head      node.Hash
	Status    Status
	Workflow  node.Hash
	Key       string
	Work      Work
	Comment   int64
	PR        int
	Next      *Next
	Deliver   bool  // next: deliver
	Since     int64 // since when it waits to be delivered (milliseconds); 0: not known
	Released  int64 // when a person last let it go on (milliseconds); 0: nobody did
	Suspended *Suspended
	Pause     *Pause
	Attempts  []string // refs below refs/uwf/attempts/
	Limits    map[string]float64
	Title     string // what it is about, on one line
	By        *By    // who started it, or forked it; nil: nobody, or nobody knows
	Used      Used
	Spent     Spent
}

// Used is what a thread's steps took, up to the head that it names. It is there so
// that a list of threads need not read their chains; the chain is what counts. In
// an entry with another head it says nothing: whoever moved the head does not know
// of it.
type Used struct {
	Head       node.Hash
	Steps      int
	Tokens     int64 // in and out
	CostUSD    float64
	Unpriced   bool // it cost more: of some tokens nobody knows the price
	DurationMs int64
}

// Spent is what a thread took from its first step on, attempts that led to none included, as
// who worked on it under a limit on all threads' month noted it last. Its zero value says
// nothing: nobody did.
type Spent struct {
	Month   string  `json:"month"`  // that of the note, by UTC: 2026-11
	Tokens  int64   `json:"tokens"` // in and out
	CostUSD float64 `json:"costUsd"`
	// What it had taken of that before the month began.
	TokensBefore int64   `json:"tokensBefore,omitempty"`
	CostBefore   float64 `json:"costBefore,omitempty"`
}

// Known is what the entry says of the thread's steps; false where it says nothing
// that holds for its head.
func (e Entry) Known() (Used, bool) { return e.Used, e.Head != "" && e.Used.Head == e.Head }

// WaitingRole is the role whose step is next; empty: there is none, or nobody knows.
func (e Entry) WaitingRole() string {
	switch {
	case e.Suspended != nil && e.Suspended.Role != "":
		return e.Suspended.Role
	case e.Next != nil:
		return e.Next.Role
	}
	return ""
}

// Work is where the agents' edits are: a branch and the commit recorded for it.
// An empty Commit means that the thread began without a repository.
type Work struct {
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// Next names the role whose turn it is and since when (milliseconds). After a
// resume, Answer is the node with what people said, kept in the thread's folder, By
// who was the last to let the thread go on, and Forgiven the number of linked attempts that
// don't count towards suspending the thread: a person stopped them, or let the step be tried
// again. After a poke, Poked is the StepNode that
// was taken off the chain, also in the folder.
type Next struct {
	Role     string
	Since    int64
	Answer   node.Hash // yaml: answer
	Poked    node.Hash // yaml: poked
	Forgiven int       // yaml: forgiven
	By       *By       // yaml: by
}

// Pause asks for a thread to wait before its next step. The step that runs is not
// concerned: whoever commits it, or would begin the next one, suspends the thread
// for this reason.
type Pause struct {
	Reason string `json:"reason"`
	By     *By    `json:"by,omitempty"` // who asked for it
}

// Suspended says which role waits and why.
type Suspended struct {
	Role   string `json:"role"`
	Reason string `json:"reason"`
	By     *By    `json:"by,omitempty"` // who made it wait; nil: nobody did, it asks or can't go on
}

// RegistryEntry is one name in registry.yaml.
type RegistryEntry struct {
	Hash      node.Hash
	Timestamp int64 // milliseconds; 0 where unknown
	History   []RegistryVersion
}

// RegistryVersion is one earlier hash of a name.
type RegistryVersion struct {
	Hash      node.Hash
	Timestamp int64
}

// Ended is one line of history/YYYY/MM-DD.jsonl. Of several lines of one thread
// the newest counts: it ended, was resumed and ended again, or was removed.
type Ended struct {
	Thread      ThreadID    `json:"thread"`
	Title       string      `json:"title,omitempty"`
	Workflow    node.Hash   `json:"workflow"`
	Head        node.Hash   `json:"head"`
	CompletedAt int64       `json:"completedAt"` // milliseconds
	Reason      string      `json:"reason"`      // "ended", "cancelled" or "removed"
	Note        string      `json:"note,omitempty"`
	Result      string      `json:"result,omitempty"`   // the last step's status
	By          *By         `json:"by,omitempty"`       // who started it, or forked it
	ClosedBy    *By         `json:"closedBy,omitempty"` // who cancelled or removed it
	Used        *Cost       `json:"used,omitempty"`     // what its steps and failed attempts took
	Usage       []RoleUsage `json:"usage,omitempty"`    // the same by role and model; nil: an older line, not by role
	Spent       *Spent      `json:"spent,omitempty"`
	Commit      string      `json:"commit"` // the last state commit that held the thread's folder
	Key         string      `json:"key,omitempty"`
	Steps       []node.Hash `json:"steps"`
	PR          int         `json:"pr,omitempty"`
	Work        Work        `json:"work"`
}

// Cost is what a thread took, from its first step to its end.
type Cost = record.Totals

// RoleUsage is what the steps of one role took that asked one model, and its failed attempts.
type RoleUsage struct {
	Role      string  `json:"role"`            // empty: nobody knows
	Model     string  `json:"model,omitempty"` // empty: none was asked, or nobody noted which
	Steps     int     `json:"steps"`
	TokensIn  int64   `json:"tokensIn"` // with those of which only the sum is known
	TokensOut int64   `json:"tokensOut"`
	CostUSD   float64 `json:"costUsd"`
}

// Reasons of a history line. A removed thread is in no list any more.
const (
	ReasonEnded     = "ended"
	ReasonCancelled = "cancelled"
	ReasonRemoved   = "removed"
)

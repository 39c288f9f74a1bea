// Package report writes what people see of a thread on a forge: the sticky comment,
// the job's summary, the pull request. It is pure, and treats everything that an
// agent or a stranger wrote as hostile.
package report

import (
	"time"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
)

// State is how a thread stands, as people are told.
type State string

// The states of a thread.
const (
	Running   State = "running"   // an agent works now
	Queued    State = "queued"    // the next job is on its way
	Held      State = "held"      // steps of other threads at work may use what is left of the month's limit
	Waiting   State = "waiting"   // a person has to answer
	Failed    State = "failed"    // a step failed; nothing goes on by itself
	Delivered State = "delivered" // it ended, and there is a pull request or a link
	NoChanges State = "no-changes"
	Cancelled State = "cancelled"
	Limited   State = "limited" // a limit is reached; a person has to raise it
	Lost      State = "lost"    // the job that was to go on with it died, or never came
	Damaged   State = "damaged" // the state branch can't be read or trusted; a person has to mend it
)

// Thread is everything that a report can show.
type Thread struct {
	ID       string
	Workflow string
	State    State
	// Definition and Past draw the graph; Definition may be nil.
	Definition *workflow.Definition
	Past       moderator.Thread
	Steps      []Step // oldest first
	// Role works now, is next, waits, or failed; Agent is who it is.
	Role, Agent string
	// Since is when that began; the zero time: not known.
	Since time.Time
	// Waits says that nothing goes on but by a person's word: only then a thread whose
	// step failed can be told something.
	Waits bool
	// Question is what a person is asked (Waiting), or which limit is reached
	// (Limited); Failure is why it failed. Asks: the role asks it. Otherwise it is uwf's reason
	// why the thread waits.
	Question string
	Asks     bool
	// Limit is the limit that is reached, as configurations name it: maxSteps,
	// maxStepsPerRole, tokens, costUsd or wall; month.tokens or month.costUsd.
	Limit   string
	Failure *Failure // of Damaged too: what is wrong, and how it is mended
	// Delivering: all roles are done. What works, is next or was lost delivers the result.
	Delivering bool
	// Stopping, for the state Cancelled: an agent may still work on it.
	Stopping bool
	Lost     LostJob // for the state Lost
	// Closed is who cancelled it, nil: nobody, or nobody knows; Why is what they said.
	Closed *record.By
	Why    string
	// Last is the newest output in full.
	Last *Output
	// Limits and what was used of them.
	Tokens, MaxTokens   int64
	CostUSD, MaxCostUSD float64
	// Unpriced: it cost more, since nobody knows the price of some tokens.
	Unpriced bool
	MaxSteps int
	// Subject is the issue or pull request that it came from; 0: none.
	Subject     int
	SubjectPull bool
	Pull        *Pull
	// Former is the pull request of an earlier thread about the same subject; 0: none.
	Former int
	// Started is who started or forked it, nil: nobody, or nobody knows; Said is what
	// people said to it, the oldest first.
	Started *record.By
	Said    []Said
	// Prevented says why there is no pull request although there are changes.
	Prevented string
	Links     Links
	Now       time.Time
}

// Said is what a person said before a step.
type Said struct {
	Step int // its number
	record.Word
}

// Step is one row of the table.
type Step struct {
	N        int
	Role     string
	Agent    string
	Result   string
	Took     time.Duration
	Tokens   int64
	CostUSD  float64
	Unpriced bool
	Commit   string // on the work branch; empty: it changed nothing
	Attempts int    // failed ones before it
	// Unmetered: a job died in one of them, and nobody knows what it used.
	Unmetered bool
	Checks    []record.Check
	Notes     []string // what its folder did not have, and what was not kept
}

// LostJob is a job that is not there any more, or never was.
type LostJob struct {
	Began bool // it had begun to work
	// At is when it was heard of last, or, where it never began, since when it is due;
	// the zero time: not known.
	At    time.Time
	Again bool // another one was started for it
}

// Failure is why a step failed.
type Failure struct {
	// Phase is the step's part that failed: workspace, agent, extract, seal,
	// commit, interrupted, dispatch, or deliver; empty: not known.
	Phase, Message string
	ByForge        bool   // Message is what the forge answered
	Attempt        string // the ref that keeps what was produced
	// Tries are all failed tries at the step. Forgiven of them came before a person let
	// the thread go on: the others count towards MaxTries.
	Tries, Forgiven, MaxTries int
	// Advice is what to do about it, where it is known. Mend is how a store is mended:
	// what a command does, a colon and the command, or a sentence; several are separated
	// by semicolons.
	Advice, Mend string
}

// Output is what a role put out.
type Output struct {
	Role, Status string
	Fields       map[string]any
	Body         string // markdown
}

// Pull is the pull request.
type Pull struct {
	Number  int
	URL     string
	Draft   bool
	Updated bool // it was there before
}

// Links are addresses on the forge. Empty ones are left out.
type Links struct {
	Repo        string // https://forge/owner/name
	Run         string
	Compare     string // where a person opens the pull request by hand
	Comment     string // the thread's own comment
	Gitea       bool   // its addresses of commits and branches differ
	StateBranch string
	WorkBranch  string
}

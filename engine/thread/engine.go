package thread

import (
	"context"
	"sync"
	"time"

	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Redactor removes secrets. Every method fails closed: what can't be checked is
// an error, never passed on.
type Redactor interface {
	// Value returns v with secrets replaced in all its strings, and how many.
	Value(v any) (any, int, error)
	// Find lists the secrets that b holds.
	Find(b []byte) ([]redact.Finding, error)
	// AllowsFile says whether a file may hold what looks like a token, and be too large
	// to be looked through.
	AllowsFile(path string) bool
}

// Settings says which agent works a role, with which model, and how far a thread
// may go.
type Settings interface {
	// Agent returns the name that is recorded, and the command to run.
	Agent(workflow, role, override string) (name, command string, err error)
	// Model returns nil where the agent needs none or none is configured.
	Model(workflow, role string) *task.Model
	// ExtractModel reads the fields of an answer that the agent could not put into
	// form after its corrections; nil: none does.
	ExtractModel(workflow, role string) *task.Model
	// CheckPrices makes sure that what a role costs can be told, whichever model it asks
	// through uwf: without that no limit on cost can be kept. The error says what to do.
	CheckPrices(workflow, role, override string) error
	// Limits of a thread of that workflow.
	Limits(workflow string) moderator.Limits
	// Timeout of one agent run; 0: none.
	Timeout() time.Duration
}

// Engine changes threads in a store, for a person or a job. All fields but By, Prove,
// ShowRef, Observe and Hook are required.
type Engine struct {
	Store    *gitcas.Store
	Redact   Redactor
	Settings Settings
	Who      lease.Identity
	// By is whom the deeds of people (start, resume, cancel …) are done for; nil: nobody.
	By *story.Person
	// Prove asks the forge who the person of this machine is, where it matters; nil: it
	// can't be asked.
	Prove func(ctx context.Context) (*story.Person, error)
	Clock deadline.Clock
	// ShowRef is the command that shows a person what a ref of the store's remote holds;
	// nil: git show, in the repository that the store is in.
	ShowRef func(ref string) string
	// Nonce returns a random word that tells one claim from all others; empty: none can
	// be had.
	Nonce func() string
	// Observe is told what goes on; it must not block.
	Observe func(Event)
	// Hook is called after each durable point of the protocol, by name. Fault
	// injection only.
	Hook func(point string)

	released sync.Map // the nonces of claims that this engine let go, deleted or not
}

// Event is something worth showing while a step runs.
type Event struct {
	// Kind is "claimed", "agent" (it starts; Text is what it was told), "tokens"
	// (Usage so far), "notice" (Text), "sealed", "committed", "suspended" or "ended".
	Kind   string
	Thread gitcas.ThreadID
	Step   int
	Role   string
	Agent  string
	Status string
	Tokens int64
	Usage  record.Usage
	Text   string
}

// Emit tells whoever observes the engine what goes on.
func (e *Engine) Emit(ev Event) {
	if e.Observe != nil {
		e.Observe(ev)
	}
}

// Reached calls the hook at a durable point of the protocol.
func (e *Engine) Reached(point string) {
	if e.Hook != nil {
		e.Hook(point)
	}
}

// JobRun is this job, as records have it.
func (e *Engine) JobRun() record.Run { return record.Run{ID: e.Who.Run, Attempt: e.Who.Attempt} }

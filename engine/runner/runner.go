// Package runner is a CI job of uwf: an event comes in, one thread does one step,
// and people see the effects: a comment, labels, a pull request, the next job. It
// knows forges only through engine/forge and threads only through engine/thread.
// It never reads the checkout and never trusts a payload with rights.
package runner

import (
	"context"
	"io"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// Runner runs one job. All fields but Hook are required.
type Runner struct {
	Engine      *step.Stepper
	Forge       forge.Forge
	Work        Worker
	Definitions Definitions
	// Base is the commit at the tip of a branch of the repository.
	Base   func(ctx context.Context, branch string) (string, error)
	Inputs ci.Inputs
	Job    ci.Job
	Out    ci.Output
	Now    func() time.Time
	Rand   io.Reader
	// Idle is how long a thread has to lie still before the sweep takes its next
	// job for lost. 0: five minutes; an hour where agents run in jobs of their own.
	Idle time.Duration
	// Hook is called after each effect, by name. Fault injection only.
	Hook func(point string)
}

// Worker is the job's working folder and its identity.
type Worker interface {
	// PrepareFolder chooses the working folder for a thread.
	PrepareFolder(ctx context.Context, id gitcas.ThreadID) error
	// RememberFolder remembers how the folder is now, for a further step in this job.
	RememberFolder(ctx context.Context)
	// RemoveFolder removes the folder of a thread that has ended.
	RemoveFolder(ctx context.Context, id gitcas.ThreadID) error
	// NextIdentity is that of a further step in this job, which is the same in every
	// re-run of the job.
	NextIdentity() (lease.Identity, error)
}

// Definition is a workflow of the default branch, ready to be stored.
type Definition struct {
	Hash       node.Hash
	Nodes      map[node.Hash]node.Node
	Definition *workflow.Definition
}

// Definitions finds workflows by name, on the default branch only. A definition
// that is not valid is a *workflow.InvalidError.
type Definitions interface {
	Resolve(ctx context.Context, name string) (Definition, error)
}

// Run does the job. An error is a red job; a green one that did nothing says why in
// Outcome.Notice. What there is to say was said to Out.
func (r *Runner) Run(ctx context.Context, ev event.Event) (ci.Outcome, error) {
	j := newJob(r, ev)
	return j.runEvent(ctx)
}

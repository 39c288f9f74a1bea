package step

import (
	"context"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// Preparer makes the folder ready for an agent, as the settings say (npm ci, go mod download).
type Preparer interface {
	// Prepare runs what has to be run, unless that was done before with the same files. output
	// is what it printed, redacted; empty: nothing was run. A command that failed is a
	// *PrepareError.
	Prepare(ctx context.Context, req PrepareRequest) (output string, err error)
}

// PrepareRequest says of which commits the folder is.
type PrepareRequest struct {
	Base wire.ID // what the thread's work began from; zero: nothing
	From wire.ID // what the folder was made equal to
	// Time is what all of it may take.
	Time time.Duration
}

// PrepareError says that a command which prepares the folder failed.
type PrepareError struct {
	Command string
	End     string // how it ended: "exit code 1"
	Output  string // what it printed, redacted
}

func (e *PrepareError) Error() string {
	return fmt.Sprintf("%q (workspace.prepare): %s\n%s", e.Command, e.End, cutHead(e.Output))
}

// prepareWorkspace makes the folder ready for the agent.
func (r *agentRun) prepareWorkspace(ctx context.Context) error {
	if r.e.Preparer == nil {
		return nil
	}
	var err error
	r.prepared, err = r.e.Preparer.Prepare(ctx, PrepareRequest{Base: plumbing.NewHash(r.Chain.Start.Base), From: r.from, Time: r.Lease.AgentTime(0)})
	if err != nil {
		return &leftError{"prepare", fmt.Errorf("prepare the workspace: %w", err)}
	}
	return nil
}

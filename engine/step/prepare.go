package step

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/engine/step/seal"
	"github.com/united-workforce/uwf/gitcas/node"
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
	return fmt.Sprintf("%q (workspace.prepare): %s\n%s", e.Command, e.End, checks.CutHead(e.Output, checks.MaxOutput))
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

// Bounds of what is on record of an output, in bytes. One that was cut is enough shorter for
// the marks of the jobs that pass it on, so that it is not cut again.
const (
	maxPrepared = 64 << 10
	cutPrepared = maxPrepared - 1<<10
)

// sealPrepared gives the step what was printed when its folder was made ready. Secrets are
// taken out before the middle is, so that the cut leaves no part of one.
func (r *agentRun) sealPrepared(s *seal.Sealer, o *sealed) error {
	if r.prepared == "" {
		return nil
	}
	clean, err := s.Clean(r.prepared)
	if err != nil {
		return err
	}
	h, err := s.Add(node.String, cutMiddle(clean), true)
	if err != nil {
		return err
	}
	o.step.Prepare = &h
	return nil
}

// cutMiddle leaves the beginning and the end of an output that is too long.
func cutMiddle(s string) string {
	if len(s) <= maxPrepared {
		return s
	}
	const half = cutPrepared / 2
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s",
		strings.ToValidUTF8(s[:half], ""), len(s)-2*half, strings.ToValidUTF8(s[len(s)-half:], ""))
}

// readPrepared is what the job that ran the agent says was printed, marked as its word. No such
// job leaves more than is kept, and to search more for secrets would take long.
func (b *brought) readPrepared(who string) string {
	if b.step.Prepare == nil {
		return ""
	}
	said, _ := b.Nodes[*b.step.Prepare].Payload.(string)
	if said == "" {
		return ""
	}
	return "reported by " + who + ":\n" + cutMiddle(said)
}

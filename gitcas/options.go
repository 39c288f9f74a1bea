package gitcas

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/outage"
)

// DefaultBranch is the state branch where the configuration names none.
const DefaultBranch = "uwf-state"

// DefaultRetryFor bounds how long Update tries when it keeps losing races: as long as it waits
// for a remote that is away.
const DefaultRetryFor = outage.Patience

// Options says which store of a remote is meant. The zero value is the default
// branch with the machine's clock and randomness.
type Options struct {
	// Branch is the state branch's short name; empty: DefaultBranch.
	Branch string
	// ExpectStore is the id that the store must have; empty: any.
	ExpectStore string
	// Author signs commits; empty: uwf <uwf@localhost>.
	Author gitobj.Author
	// Now is the clock for commit dates and for bounding retries; nil: time.Now.
	Now func() time.Time
	// Jitter returns a number in [0, 1) for the waits between tries; nil: random.
	Jitter func() float64
	// Sleep waits between tries; nil: a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// RetryFor bounds how long Update tries while it keeps losing races; 0:
	// DefaultRetryFor. Outages are not counted.
	RetryFor time.Duration
	// Until is when no outage of the remote is waited for any more, and Waiting hears of
	// each wait: see outage.Policy.
	Until   time.Time
	Waiting func(outage.Wait)
	// Rand gives the bytes of a new store's id; nil: crypto/rand.
	Rand io.Reader
	// LocalTip looks up the branch of the same name in the local repository,
	// where there is one that is not the remote itself; nil: there is none.
	LocalTip func(ctx context.Context) (wire.ID, bool, error)
}

func (o Options) withDefaults() Options {
	if o.Branch == "" {
		o.Branch = DefaultBranch
	}
	if o.Author == (gitobj.Author{}) {
		o.Author = view.Uwf
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = mathrand.Float64
	}
	if o.Sleep == nil {
		o.Sleep = outage.Sleep
	}
	if o.RetryFor == 0 {
		o.RetryFor = DefaultRetryFor
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return o
}

// outagePolicy is how long the remote is waited for where it is away.
func (o Options) outagePolicy() outage.Policy {
	return outage.Policy{Until: o.Until, Tell: o.Waiting, Now: o.Now, Sleep: o.Sleep, Jitter: o.Jitter}
}

// branchPattern is narrower than git's own rule: what every forge and shell
// takes without quoting.
var branchPattern = lazyregexp.New(`^[0-9A-Za-z_][0-9A-Za-z._-]*(/[0-9A-Za-z_][0-9A-Za-z._-]*)*$`)

// checkBranch refuses a branch that git, or the work branches next to it, don't allow.
func (o Options) checkBranch() error {
	b := o.Branch
	switch {
	case !branchPattern.MatchString(b) || strings.Contains(b, "..") || strings.HasSuffix(b, ".") || strings.HasSuffix(b, ".lock") || len(b) > 200:
		return fmt.Errorf("%w: the state branch %q: use letters, digits, dots, dashes and slashes", ErrInvalid, b)
	case strings.HasPrefix(b+"/", layout.WorkBranches):
		return fmt.Errorf("%w: the state branch %q stands where the work branches %s<thread> go: choose another name", ErrInvalid, b, layout.WorkBranches)
	}
	sig := o.Author.Sign(time.Unix(0, 0))
	_, err := gitobj.EncodeCommit(gitobj.Commit{Tree: wire.EmptyTree, Author: sig, Committer: sig})
	if err != nil {
		return fmt.Errorf("%w: the author of state commits: %w", ErrInvalid, err)
	}
	return nil
}

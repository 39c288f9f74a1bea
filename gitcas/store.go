package gitcas

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/obstacle"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/outage"
)

// Store is one state branch on one remote. It keeps compiled schemas, how many refs its remote
// takes in a push, and the newest view, so that no object is fetched twice. It is safe for
// concurrent use.
type Store struct {
	source view.Source
	o      Options
	err    error // what Open found wrong with the options
	// learnt is how many refs a push may update, as a refusal has told; 0: none has.
	learnt atomic.Int64
	// latest is the view that was read or pushed last; nil: none was.
	latest atomic.Pointer[View]
}

// Open returns the store behind a remote. It does no I/O: what is wrong with the
// options, or with the remote, is the error of the first method called.
func Open(remote wire.Remote, o Options) *Store {
	s := &Store{o: o.withDefaults()}
	s.source = view.Source{Remote: wire.Patient(remote, s.o.outagePolicy()), Branch: layout.Heads + s.o.Branch, Schemas: &node.Schemas{}}
	s.err = s.o.checkBranch()
	return s
}

// Remote is the remote that the store is on. Its reads wait for it where it is away, as
// the Store's own do.
func (s *Store) Remote() wire.Remote { return s.source.Remote }

// Outages says how long the Store waits for its remote where that is away.
func (s *Store) Outages() outage.Policy { return s.o.outagePolicy() }

// Branch is the full name of the state branch's ref.
func (s *Store) Branch() string { return s.source.Branch }

// Head is the full name of the remote's default branch when the Store was read last; empty: it
// was not, or the remote didn't say.
func (s *Store) Head() string {
	if v := s.latest.Load(); v != nil {
		return v.Head
	}
	return ""
}

// StepRefs is how many refs a change of one thread updates: the state branch, refs/uwf/store,
// the claim, and the work branch or the ref of an attempt.
const StepRefs = 4

// mostRefs bounds the refs of one push where the remote doesn't.
const mostRefs = 100

// MostRefs is how many refs one push updates: as many as the remote takes, as far as a refusal
// has told, now or when VERSION was written, and no more than 100.
func (s *Store) MostRefs(v *View) int { return s.mostRefs(v.Version.Refs) }

func (s *Store) mostRefs(noted int) int {
	most := mostRefs
	for _, n := range []int{noted, int(s.learnt.Load())} {
		if n > 0 {
			most = min(most, n)
		}
	}
	return most
}

// refsAtOnce is how many refs of a change go in one push.
func (s *Store) refsAtOnce(version statefile.Version) int {
	if !version.Atomic {
		return 1
	}
	return s.mostRefs(version.Refs)
}

// TryBranch asks the remote whether it would take a commit on a branch, see obstacle.TryBranch. An
// outage is waited for.
func (s *Store) TryBranch(ctx context.Context, v *View, branch string, tip wire.ID, commit wire.Object) error {
	for o := s.o.outagePolicy().Begin(); ; {
		err := s.tryBranchOnce(ctx, v.Version, branch, tip, commit)
		after, away := wire.IsOutage(err)
		switch {
		case away:
			if err := o.WaitToRetry(ctx, err, after); err != nil {
				return err
			}
		case !errors.Is(err, errFewerRefs):
			return err
		}
	}
}

func (s *Store) tryBranchOnce(ctx context.Context, version statefile.Version, branch string, tip wire.ID, commit wire.Object, more ...wire.PackObject) error {
	most := min(s.refsAtOnce(version), obstacle.TriedRefs)
	return s.learnRefLimit(obstacle.TryBranch(ctx, s.source.Remote, most, branch, tip, commit, more...), most)
}

// Atomic reports whether the remote takes what a change of one thread updates at once, or not
// at all: it had atomic pushes when the store was made, and takes that many refs. Where it
// does not, Push updates the refs in parts, see there.
func (s *Store) Atomic(v *View) bool { return s.refsAtOnce(v.Version) >= StepRefs }

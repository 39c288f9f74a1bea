package gitcas

import (
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/outage"
)

// Store is one state branch on one remote. It keeps no state of the branch
// itself, only compiled schemas; it is safe for concurrent use.
type Store struct {
	remote  wire.Remote
	o       Options
	err     error // what Open found wrong with the options
	ref     string
	schemas node.Schemas
}

// Open returns the store behind a remote. It does no I/O: what is wrong with the
// options, or with the remote, is the error of the first method called.
func Open(remote wire.Remote, o Options) *Store {
	s := &Store{o: o.withDefaults()}
	s.remote = wire.Patient(remote, s.o.outages())
	s.err = s.o.check()
	s.ref = headsFolder + s.o.Branch
	return s
}

// Remote is the remote that the store is on. Its reads wait for it where it is away, as
// the Store's own do.
func (s *Store) Remote() wire.Remote { return s.remote }

// Outages says how long the Store waits for its remote where that is away.
func (s *Store) Outages() outage.Policy { return s.o.outages() }

// Branch is the full name of the state branch's ref.
func (s *Store) Branch() string { return s.ref }

// Atomic reports whether the remote took atomic pushes when the store was made.
// Where it did not, Push updates the refs one by one, see there.
func (s *Store) Atomic(v *View) bool { return v.version.Atomic }

package gitcas

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// Kinds of failure of the Store, for errors.Is. Those of the remote itself are
// wire's.
var (
	// ErrNoStore: the remote has neither a state branch nor refs/uwf/store.
	ErrNoStore = errors.New("no uwf store here")
	// ErrDamaged: the store can't be trusted as it is. Every *DamagedError
	// matches it (exit code 5).
	ErrDamaged = errors.New("the store is damaged or unreadable")
	// ErrBranchGone: refs/uwf/store is there, the state branch is not.
	ErrBranchGone = errors.New("the state branch was deleted")
	// ErrRewritten: the state branch doesn't extend the last commit that was
	// written by uwf.
	ErrRewritten = errors.New("the history of the state branch was rewritten")
	// ErrOtherStore: the store's id is not the expected one.
	ErrOtherStore = errors.New("this is another store")
	// ErrVersion: VERSION names a format that this program doesn't know.
	ErrVersion = errors.New("unknown format of the state branch")
	// ErrContent: a file on the state branch is not what it has to be.
	ErrContent = errors.New("unexpected content on the state branch")
	// ErrLostRace: the state branch or another ref moved; the same as
	// wire.ErrLostRace.
	ErrLostRace = wire.ErrLostRace
	// ErrCollision: a node with another payload is stored under this hash.
	ErrCollision = errors.New("another payload is stored under this hash")
	// ErrExchanged: a file holds a node of the right hash that is not the one that was
	// stored.
	ErrExchanged = errors.New("another node of the same hash")
	// ErrStale: a change no longer fits the thread that it is for.
	ErrStale = errors.New("the thread is not as the change expects it")
	// ErrInvalid: a change or an argument that can never be stored.
	ErrInvalid = errors.New("not storable")
	// ErrLocalDiffers: the state branch stands in the local repository too, with
	// another tip.
	ErrLocalDiffers = errors.New("the local and the remote state branch differ")
	// ErrUnknownThread: threads.yaml has no such thread.
	ErrUnknownThread = errors.New("no such thread on the state branch")
	// ErrUnsure: a push was not answered, and whether it was taken can't be told; the same as
	// wire.ErrUnsure.
	ErrUnsure = wire.ErrUnsure
	// ErrStop ends an iteration early when a callback returns it; the iterating
	// method then returns nil.
	ErrStop = errors.New("stop")
)

// DamagedError says what of the store can't be read or trusted. It matches
// ErrDamaged and its Kind.
type DamagedError struct {
	What      string  // the file, ref or commit
	Why       string  // what is wrong with it
	Kind      error   // one of ErrBranchGone, ErrRewritten, ErrOtherStore, ErrVersion, ErrContent
	LastKnown wire.ID // the last state commit known to be good; zero when unknown
	Restore   string  // the command that restores it, or what else to do; may be empty
	Err       error   // the cause; may be nil
}

func (e *DamagedError) Error() string {
	s := fmt.Sprintf("%s: %v: %s", e.What, e.Kind, e.Why)
	if !e.LastKnown.IsZero() {
		s += fmt.Sprintf("; last known commit %s", e.LastKnown)
	}
	if e.Restore != "" {
		s += "; " + e.Restore
	}
	return s
}

// Unwrap makes the error match ErrDamaged, its kind and its cause.
func (e *DamagedError) Unwrap() []error {
	out := []error{ErrDamaged}
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// newContentError is the error for a file that is not what it has to be.
func newContentError(path, why string) *DamagedError {
	return &DamagedError{What: path, Why: why, Kind: ErrContent}
}

// contentErr is content with a cause.
func contentErr(path string, err error) *DamagedError {
	return &DamagedError{What: path, Why: err.Error(), Kind: ErrContent, Err: err}
}

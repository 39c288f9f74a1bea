package gitcas

import (
	"errors"

	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Kinds of failure of the Store, for errors.Is. Those of the remote itself are
// wire's.
var (
	// ErrNoStore: the remote has neither a state branch nor refs/uwf/store.
	ErrNoStore = errors.New("no uwf store here")
	// ErrDamaged: the store can't be trusted as it is. Every *DamagedError
	// matches it (exit code 5).
	ErrDamaged = tree.ErrDamaged
	// ErrBranchGone: refs/uwf/store is there, the state branch is not.
	ErrBranchGone = errors.New("the state branch was deleted")
	// ErrRewritten: the state branch doesn't extend the last commit that was
	// written by uwf.
	ErrRewritten = errors.New("the history of the state branch was rewritten")
	// ErrOtherStore: the store's id is not the expected one.
	ErrOtherStore = view.ErrOtherStore
	// ErrVersion: VERSION names a format that this program doesn't know.
	ErrVersion = view.ErrVersion
	// ErrContent: a file on the state branch is not what it has to be.
	ErrContent = tree.ErrContent
	// ErrLostRace: the state branch or another ref moved; the same as
	// wire.ErrLostRace.
	ErrLostRace = wire.ErrLostRace
	// ErrCollision: a node with another payload is stored under this hash.
	ErrCollision = errors.New("another payload is stored under this hash")
	// ErrExchanged: a file holds a node of the right hash that is not the one that was
	// stored.
	ErrExchanged = view.ErrExchanged
	// ErrStale: a change no longer fits the thread that it is for.
	ErrStale = errors.New("the thread is not as the change expects it")
	// ErrInvalid: a change or an argument that can never be stored.
	ErrInvalid = tree.ErrInvalid
	// ErrLocalDiffers: the state branch stands in the local repository too, with
	// another tip.
	ErrLocalDiffers = errors.New("the local and the remote state branch differ")
	// ErrUnknownThread: threads.yaml has no such thread.
	ErrUnknownThread = view.ErrUnknownThread
	// ErrUnsure: a push was not answered, and whether it was taken can't be told; the same as
	// wire.ErrUnsure.
	ErrUnsure = wire.ErrUnsure
	// ErrSHA256: the repository names its objects by SHA-256; the same as wire.ErrSHA256.
	ErrSHA256 = wire.ErrSHA256
	// ErrStop ends an iteration early when a callback returns it; the iterating
	// method then returns nil.
	ErrStop = view.ErrStop
)

// DamagedError says what of the store can't be read or trusted. It matches ErrDamaged and
// its Kind, one of ErrBranchGone, ErrRewritten, ErrOtherStore, ErrVersion, ErrContent.
type DamagedError = tree.DamagedError

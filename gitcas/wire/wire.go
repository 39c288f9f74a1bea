// Package wire speaks the git protocol to one remote: it lists refs, fetches
// objects into memory and pushes refs with the objects they need. It knows
// nothing of nodes, threads or working trees, never opens a repository's files
// itself, never forces and never merges.
//
// A Remote is a git server as this package sees it. [Dial] makes one for
// HTTP(S), file:// and ssh URLs; package internal/wiretest has one that lives in
// memory and obeys the same rules, for tests and for simulation.
package wire

import (
	"bytes"
	"context"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire/internal/pack"
)

// ID is a git object id (SHA-1). The zero ID stands for "no such ref".
type ID = plumbing.Hash

// ZeroID is the ID that stands for an absent ref.
var ZeroID = plumbing.ZeroHash

// EmptyTree is the id of the tree without entries.
var EmptyTree = plumbing.NewHash("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

// Object is one whole git object: its ID, its Type, and its Data, the content
// without git's header.
type Object = pack.Object

// NewObject returns the object of that type and content, with its id.
func NewObject(t plumbing.ObjectType, data []byte) Object { return pack.NewObject(t, data) }

// Objects is a set of objects by id. The zero value is not usable: make(Objects).
type Objects map[ID]Object

// Add puts objects into the set.
func (o Objects) Add(objs ...Object) {
	for _, x := range objs {
		o[x.ID] = x
	}
}

// Size returns how many bytes the objects hold together.
func (o Objects) Size() (n int64) {
	for _, x := range o {
		n += int64(len(x.Data))
	}
	return n
}

// Pack returns the objects as one git pack.
func (o Objects) Pack() ([]byte, error) {
	entries := make([]PackObject, 0, len(o))
	for _, x := range o {
		entries = append(entries, PackObject{Object: x})
	}
	var out bytes.Buffer
	err := pack.Append(&out, entries)
	return out.Bytes(), err
}

// Listing is what a remote's refs were at one moment.
type Listing struct {
	// Refs holds the refs asked for, by full name.
	Refs map[string]ID
	// Head is the full name of the branch that the remote's HEAD points to;
	// empty when HEAD was not asked for, is detached or is unborn.
	Head string
	// Time is the server's clock when it answered: the Date header over HTTP
	// (resolution one second), this machine's clock over file://; over ssh that too,
	// put right by what https://<host>/ says of the time.
	Time time.Time
	// WholeOnly: the server gives single objects only where a ref points to them. Others are
	// read with the whole history of a ref.
	WholeOnly bool
	// TimeGuessed: nobody knows the server's clock, and Time is this machine's.
	TimeGuessed bool
}

// FetchRequest says which objects are wanted.
type FetchRequest struct {
	// Wants are object ids: commits, trees or blobs.
	Wants []ID
	// Depth limits history: 1 fetches the wanted commits without their parents,
	// 0 fetches all history that Haves do not reach.
	Depth int
	// Filter is a git object filter ("blob:none", "tree:2") or empty. A server
	// that can't filter sends more than was asked for; that is no error. The
	// depth of "tree:<n>" counts a wanted commit's root tree as 0, and the
	// entries of a wanted tree as 0 too.
	Filter string
	// Haves are commits whose whole history the caller has already.
	Haves []ID
	// MaxBytes bounds the objects together; 0: by what one fetch may hold at all. A larger answer
	// is ErrUnreadable, and is not read to its end.
	MaxBytes int64
}

// RefUpdate moves one ref from an expected value to a new one. A zero Old means
// that the ref must not exist, a zero New deletes it.
type RefUpdate struct {
	Name     string
	Old, New ID
}

// PackObject is an Object to send. When its Base is set the remote is known to
// hold that object, and the new one may be sent as a delta against it.
type PackObject = pack.Entry

// PushRequest is one push: several refs and the objects they need.
type PushRequest struct {
	Updates []RefUpdate
	Objects []PackObject
	// Atomic asks that all updates happen or none. A remote that is known not
	// to offer it fails with ErrNotAtomic before anything is sent.
	Atomic bool
}

// Remote is one git repository reached over the git protocol. All methods are
// safe for concurrent use. Errors are *RemoteError values; match their kind with
// errors.Is and the Err… sentinels.
type Remote interface {
	// URL names the remote for messages, without credentials.
	URL() string
	// List returns the refs whose full name begins with one of the prefixes.
	// The name "HEAD" as a prefix asks for Listing.Head too.
	List(ctx context.Context, prefixes ...string) (Listing, error)
	// Fetch returns at least the wanted objects, and what they need by the
	// request's depth and filter. A want that the remote doesn't hold is
	// ErrNotFound. Of a want that lies inside another one (a tree of a wanted
	// commit) only the object itself is certain to come. With Haves, a want
	// that they reach need not come. Nobody may change the objects' bytes.
	Fetch(ctx context.Context, req FetchRequest) (Objects, error)
	// Push updates refs. It returns the server's clock. An update whose
	// expected value no longer holds is ErrLostRace. When a server without
	// atomic pushes took some updates and refused others, the error is a
	// *PartialError that says which.
	Push(ctx context.Context, req PushRequest) (time.Time, error)
	// Atomic reports whether the remote offers atomic pushes. It may cost a
	// request that lists every ref: call it when a store is created.
	Atomic(ctx context.Context) (bool, error)
}

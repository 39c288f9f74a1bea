// Package rewrite takes texts and nodes out of the whole history of a state
// branch: it writes every commit anew in which they stand, with all that refers to
// what changed, and moves the branch there in one push. It never touches branches
// of people, never changes an object that needs no change, and its plans never say what
// it looks for. Its errors may quote what could not be read: who has them shown takes
// out of them what is looked for.
//
// # How
//
// The commits are read oldest first, a few at a time, each with the objects that
// it brought. A node whose texts change gets another hash, so the nodes that refer
// to it change too, up to the heads, with the digests that records have of what they
// refer to; their files, the lists that name them, the history lines, pages and
// messages follow. What was looked at is remembered by object id and place alone, so an
// object is read once in each place. Memory grows with the number of objects, and with the
// size of those that are written anew: some 70 MB where 10,000 commits are.
//
// A node is known by its hash and its place on the branch, as in package gitcas: agents
// can make a node of any hash, and what they make is never taken for another one. A
// digest that was wrong before is not made right.
//
// A [Plan] is what would change. It is worked out without writing anything;
// [Rewriter.Execute] then pushes. The same history and the same texts always give
// the same commits: dates, authors and order stay.
//
// # What is not rewritten
//
// Names that other things depend on (a role, a status, the key of a schema's
// property, a branch) can't be replaced by "[purged]" without breaking threads.
// Where a text stands in one, the rewrite is refused, or the name is left as it is
// ([Options.LeaveNames]).
package rewrite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/outage"
)

// Purged stands in the place of what was taken out.
const Purged = "[purged]"

// Finder takes texts out of a text. with gives what stands in the place of each
// one (nil: Purged); the count is how many there were.
type Finder interface {
	Replace(s string, with func(found string) string) (string, int)
}

// findsNothing is a Finder that finds nothing.
type findsNothing struct{}

func (findsNothing) Replace(s string, _ func(string) string) (string, int) { return s, 0 }

// Options say where the state is and what is to be taken out.
type Options struct {
	// Branch, Store and Attempts are ref names: of the state branch, of the ref that
	// moves with it, and the folder (with a slash at the end) of the attempts.
	Branch, Store, Attempts string
	// Atomic: the remote takes atomic pushes.
	Atomic bool
	// Find finds the texts to take out; nil: none.
	Find Finder
	// Nodes are hashes of nodes whose free texts are all taken out: of every node of
	// that hash, wherever it is.
	Nodes []node.Hash
	// Quotes makes a Finder of the texts of a named node: pages and messages of
	// its threads quote them. A nil Finder finds nothing.
	Quotes func(texts []string) Finder
	// LeaveNames leaves names as they are instead of refusing.
	LeaveNames bool
	// Verify looks at a node that was rewritten, beyond its schema: that a
	// workflow still compiles. g has the schemas that it refers to. nil: nothing is
	// looked at. Its error must not quote the node.
	Verify func(g node.Getter, h node.Hash, n node.Node) error
	// Before is called right before each push, with what is to be pushed. It
	// returns more updates for the same push; an error ends the rewrite.
	Before func(ctx context.Context, p *Plan) ([]wire.RefUpdate, error)
	// Outages says how long the remote is waited for.
	Outages outage.Policy
}

// Errors of this package.
var (
	// ErrUnreadable: the history holds what can't be rewritten: a merge, a broken
	// object.
	ErrUnreadable = errors.New("this history can't be rewritten")
	// ErrMoved: the branch no longer extends what was read.
	ErrMoved = errors.New("the state branch was set back or rewritten meanwhile")
)

// FixedError: a text stands in names that other things depend on. Nothing was
// changed.
type FixedError struct{ Places []Place }

func (e *FixedError) Error() string {
	var b strings.Builder
	b.WriteString("it stands in names that other things depend on, where it can't be replaced:")
	for i, p := range e.Places {
		if i == maxPlaces {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Places)-i)
			break
		}
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// Place is where something stands. It never holds what was looked for.
type Place struct {
	Path   string `json:"path"`             // of the file on the branch, or the ref
	At     string `json:"at,omitempty"`     // JSON pointer, key or part; may be empty
	Commit string `json:"commit,omitempty"` // the first state commit that has it, as it was; empty for other refs
}

func (p Place) String() string {
	if p.At == "" {
		return p.Path
	}
	return p.Path + " " + p.At
}

// maxPlaces is how many places an error lists.
const maxPlaces = 20

// Plan is what a rewrite changes.
type Plan struct {
	Old, New wire.ID // tips of the state branch
	Commits  int     // of the history
	Changed  int     // of these, how many are written anew
	Purged   int     // nodes in which something was taken out, in each of their places
	Rehashed int     // nodes that only refer to such
	Found    []Place // where it was found, each file once
	Left     []Place // names that hold it and stay (LeaveNames)
	Threads  []Thread
	Attempts []Attempt
	// Nodes are the named nodes that were found.
	Nodes []node.Hash
	// Bytes is the size of the objects that are written.
	Bytes int64
}

// Empty reports whether nothing is to be changed.
func (p *Plan) Empty() bool { return p.Old == p.New && len(p.Attempts) == 0 }

// Thread is one whose head changes.
type Thread struct {
	ID    statefile.ThreadID `json:"thread"`
	Ended bool               `json:"ended"`
	Old   node.Hash          `json:"old"`
	New   node.Hash          `json:"new"`
}

// Attempt is the ref of an attempt that is written anew.
type Attempt struct {
	Ref      string
	Old, New wire.ID
}

// Package view is a store as it was at one moment: the state branch at one commit, with the
// refs beside it. It reads what is asked for, entries, chains, nodes in their places, the
// history, and believes none of it before it is checked; it changes nothing.
package view

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Kinds of failure, for errors.Is.
var (
	// ErrVersion: VERSION names a format that this program doesn't know.
	ErrVersion = errors.New("unknown format of the state branch")
	// ErrOtherStore: the store's id is not the expected one.
	ErrOtherStore = errors.New("this is another store")
	// ErrExchanged: a file holds a node of the right hash that is not the one that was
	// stored.
	ErrExchanged = errors.New("another node of the same hash")
	// ErrUnknownThread: threads.yaml has no such thread.
	ErrUnknownThread = errors.New("no such thread on the state branch")
	// ErrStop ends an iteration early when a callback returns it; the iterating
	// method then returns nil.
	ErrStop = errors.New("stop")
)

// View is the store as it was at one moment: the tip of the state branch and the
// refs beside it. It does not change; what it was not loaded with it fetches by
// object id, so that it stays consistent. It is safe for concurrent use.
type View struct {
	State
	Source Source
	Reader *tree.Reader
	// Pinned: made of a former commit, to read an ended thread; it can't be pushed on.
	Pinned bool
	// Head is the full name of the branch that the remote's HEAD pointed to; empty: not known.
	Head string
	// Lagging are the refs that a push without atomicity could not update after the
	// state branch was: the step is done, and a later job brings them up.
	Lagging map[string]error

	at time.Time
	// guessed: at is this machine's clock.
	guessed bool
	refs    map[string]wire.ID
	claims  map[layout.ThreadID]Held
	derivedMemos
}

// Source is where views are read from.
type Source struct {
	Remote  wire.Remote
	Branch  string        // the full name of the state branch's ref
	Schemas *node.Schemas // compiled ones, which all views share
}

// shortBranch is the name of the state branch as people say it.
func (s Source) shortBranch() string { return strings.TrimPrefix(s.Branch, layout.Heads) }

// State is the content of one state commit, as far as every view has it. Like View it
// does not change.
type State struct {
	Commit  wire.ID
	Parents []wire.ID
	Version statefile.Version

	Root, CasDir, ThreadsDir, HistoryDir *tree.Dir

	ThreadsFile  *statefile.Threads
	RegistryFile *statefile.Registry
}

// FindFolders reads the folders in the root.
func (st *State) FindFolders(ctx context.Context, r *tree.Reader) (err error) {
	for name, to := range map[string]**tree.Dir{layout.CasDir: &st.CasDir, layout.ThreadsDir: &st.ThreadsDir, layout.HistoryDir: &st.HistoryDir} {
		if *to, err = r.Below(ctx, st.Root, name); err != nil {
			return err
		}
	}
	return nil
}

// derivedMemos are what was worked out of records. It doesn't change: views that are made from one
// another share it.
type derivedMemos struct {
	closed *tree.Memo[layout.Place, node.Map]
	flows  *tree.Memo[node.Hash, definition]
	older  *tree.Memo[wire.ID, *olderSteps] // by the id of the thread's folder
}

func newDerivedMemos() derivedMemos {
	return derivedMemos{&tree.Memo[layout.Place, node.Map]{}, &tree.Memo[node.Hash, definition]{}, &tree.Memo[wire.ID, *olderSteps]{}}
}

// Tip is the state commit that the view shows.
func (v *View) Tip() wire.ID { return v.Commit }

// StoreID is the store's random id.
func (v *View) StoreID() string { return v.Version.Store }

// Time is the server's clock when the view was read.
func (v *View) Time() time.Time { return v.at }

// TimeGuessed reports whether Time is this machine's clock, since nobody knows the server's.
func (v *View) TimeGuessed() bool { return v.guessed }

// Entry is a thread's entry in threads.yaml.
func (v *View) Entry(id layout.ThreadID) (statefile.Entry, bool) { return v.ThreadsFile.Get(id) }

// Threads are all entries of threads.yaml.
func (v *View) Threads() map[layout.ThreadID]statefile.Entry { return v.ThreadsFile.All() }

// Registry are all entries of registry.yaml.
func (v *View) Registry() map[string]statefile.RegistryEntry { return v.RegistryFile.All() }

// FindClaim is a thread's claim, if there is one and the view was loaded for that
// thread, or for none in particular.
func (v *View) FindClaim(id layout.ThreadID) (Held, bool) {
	h, ok := v.claims[id]
	return h, ok
}

// Claims are all claims that the view shows.
func (v *View) Claims() map[layout.ThreadID]Held { return maps.Clone(v.claims) }

// Ref is a ref's value, if it is one of those that Load lists.
func (v *View) Ref(name string) (wire.ID, bool) {
	id, ok := v.refs[name]
	return id, ok
}

// Refs are all refs that the view shows.
func (v *View) Refs() map[string]wire.ID { return maps.Clone(v.refs) }

// After is the view after a push of these updates, which made another state. objs are what
// was pushed with it; stale are folders that others took the place of.
func (v *View) After(st State, at time.Time, updates []wire.RefUpdate, objs []wire.PackObject, stale []wire.ID) (*View, error) {
	next := *v
	next.State, next.at, next.refs, next.claims = st, at, maps.Clone(v.refs), maps.Clone(v.claims)
	if st.Commit != v.Commit {
		stale = append(stale, v.Commit)
	}
	for _, name := range []string{layout.VersionName, layout.ThreadsName, layout.RegistryName} {
		if id := v.Root.IDOf(name); id != st.Root.IDOf(name) {
			stale = append(stale, id)
		}
	}
	next.Reader = v.Reader.Copy(stale...)
	for _, u := range updates {
		if u.New.IsZero() {
			delete(next.refs, u.Name)
		} else {
			next.refs[u.Name] = u.New
		}
		if ref := layout.ParseRef(u.Name); ref.Kind == layout.ClaimKind {
			delete(next.claims, ref.Thread)
			if err := (tipReader{&next}).readPushedClaim(ref.Thread, u.New, objs); err != nil {
				return nil, err
			}
		}
	}
	return &next, nil
}

// Get returns a shared node by hash: one of the built-in ones, or one of cas/. Its hash
// and schema are checked. One that is not there is node.ErrNotFound.
func (v *View) Get(ctx context.Context, h node.Hash) (node.Node, error) {
	if n, ok := known()[h]; ok {
		return n, nil
	}
	if e, ok := v.CasDir.Find(layout.FileOf(h)); ok {
		return v.readNode(ctx, v.CasDir.PathOf(e.Name), e.ID, h)
	}
	return node.Node{}, fmt.Errorf("%w: %s, not in cas/", node.ErrNotFound, h)
}

// Getter gives the shared nodes to code that knows no context.
func (v *View) Getter(ctx context.Context) node.Getter {
	return node.GetterFunc(func(h node.Hash) (node.Node, error) { return v.Get(ctx, h) })
}

// readNode returns the node in a file, checked against its name and its schema, which is a
// shared one.
func (v *View) readNode(ctx context.Context, path string, id wire.ID, h node.Hash) (node.Node, error) {
	return v.readWith(ctx, path, id, h, v.Getter(ctx))
}

// readWith is readNode with a type that g finds.
func (v *View) readWith(ctx context.Context, path string, id wire.ID, h node.Hash, g node.Getter) (node.Node, error) {
	n, err := v.Reader.Node(ctx, path, id, h)
	if err != nil || n.Checked {
		return n.Node, err
	}
	if err := v.Source.Schemas.CheckNode(g, n.Node); err != nil {
		return node.Node{}, tree.DamagedUnlessWire(path, err)
	}
	n.Checked = true
	v.Reader.Decoded(id, n)
	return n.Node, nil
}

// ThreadFolder returns threads/<id>, nil when the tip has none.
func (v *View) ThreadFolder(ctx context.Context, id layout.ThreadID) (*tree.Dir, error) {
	return v.Reader.Below(ctx, v.ThreadsDir, string(id))
}

// Shared gives every node of cas/ to fn, in the order of their hashes. ErrStop
// from fn ends it early. One that can't be read ends it with an error.
func (v *View) Shared(ctx context.Context, fn func(node.Hash, node.Node) error) error {
	for chunk := range slices.Chunk(v.CasDir.Entries(), filesAtOnce) {
		if err := v.Reader.FetchEntries(ctx, chunk); err != nil {
			return err
		}
		for _, e := range chunk {
			_, h, _ := layout.ParseNodeFile(e.Name)
			n, err := v.readNode(ctx, v.CasDir.PathOf(e.Name), e.ID, h)
			if err != nil {
				return err
			}
			if err := fn(h, n); errors.Is(err, ErrStop) {
				return nil
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

package gitcas

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// View is the store as it was at one moment: the tip of the state branch and the
// refs beside it. It does not change; what it was not loaded with it fetches by
// object id, so that it stays consistent. It is safe for concurrent use.
type View struct {
	s  *Store
	at time.Time
	// guessed: at is this machine's clock.
	guessed bool
	refs    map[string]wire.ID
	claims  map[ThreadID]Held
	// pinned: made of a former commit, to read an ended thread; it can't be
	// pushed on.
	pinned  bool
	lagging map[string]error
	Reader  *tree.Reader
	worked
	state
}

// state is the content of one state commit, as far as it was read. Like View it
// does not change.
type state struct {
	tip     wire.ID
	parents []wire.ID
	version statefile.Version

	root, cas, threadDirs, history *tree.Dir

	threads  *statefile.Threads
	registry *statefile.Registry
}

// worked is what was worked out of records. It doesn't change: views that are made from one
// another share it.
type worked struct {
	closed *tree.Memo[Place, node.Map]
	flows  *tree.Memo[node.Hash, definition]
}

func newWorked() worked {
	return worked{&tree.Memo[Place, node.Map]{}, &tree.Memo[node.Hash, definition]{}}
}

// Tip is the state commit that the view shows.
func (v *View) Tip() wire.ID { return v.tip }

// StoreID is the store's random id.
func (v *View) StoreID() string { return v.version.Store }

// Time is the server's clock when the view was read.
func (v *View) Time() time.Time { return v.at }

// TimeGuessed reports whether Time is this machine's clock, since nobody knows the server's.
func (v *View) TimeGuessed() bool { return v.guessed }

// Entry is a thread's entry in threads.yaml.
func (v *View) Entry(id ThreadID) (Entry, bool) { return v.threads.Get(id) }

// Threads are all entries of threads.yaml.
func (v *View) Threads() map[ThreadID]Entry { return v.threads.All() }

// Registry are all entries of registry.yaml.
func (v *View) Registry() map[string]RegistryEntry { return v.registry.All() }

// Claim is a thread's claim, if there is one and the view was loaded for that
// thread, or for none in particular.
func (v *View) Claim(id ThreadID) (Held, bool) {
	h, ok := v.claims[id]
	return h, ok
}

// Claims are all claims that the view shows.
func (v *View) Claims() map[ThreadID]Held { return maps.Clone(v.claims) }

// Ref is a ref's value, if it is one of those that Load lists.
func (v *View) Ref(name string) (wire.ID, bool) {
	id, ok := v.refs[name]
	return id, ok
}

// Refs are all refs that the view shows.
func (v *View) Refs() map[string]wire.ID { return maps.Clone(v.refs) }

// Lagging are the refs that a push without atomicity could not update after the
// state branch was: the step is done, and a later job brings them up.
func (v *View) Lagging() map[string]error { return maps.Clone(v.lagging) }

// Get returns a shared node by hash: one of the built-in ones, or one of cas/. Its hash
// and schema are checked. One that is not there is node.ErrNotFound.
func (v *View) Get(ctx context.Context, h node.Hash) (node.Node, error) {
	if n, ok := known()[h]; ok {
		return n, nil
	}
	if e, ok := v.cas.Find(layout.FileOf(h)); ok {
		return v.readNode(ctx, v.cas.PathOf(e.Name), e.ID, h)
	}
	return node.Node{}, fmt.Errorf("%w: %s, not in cas/", node.ErrNotFound, h)
}

// Getter gives the shared nodes to code that knows no context.
func (v *View) Getter(ctx context.Context) node.Getter {
	return getterFunc(func(h node.Hash) (node.Node, error) { return v.Get(ctx, h) })
}

// getterFunc is a node.Getter.
type getterFunc func(node.Hash) (node.Node, error)

// Get implements node.Getter.
func (f getterFunc) Get(h node.Hash) (node.Node, error) { return f(h) }

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
	if err := v.s.schemas.Check(g, n.Node); err != nil {
		return node.Node{}, tree.DamagedUnlessWire(path, err)
	}
	n.Checked = true
	v.Reader.Decoded(id, n)
	return n.Node, nil
}

// threadFolder returns threads/<id>, nil when the tip has none.
func (v *View) threadFolder(ctx context.Context, id ThreadID) (*tree.Dir, error) {
	return v.Reader.Below(ctx, v.threadDirs, string(id))
}

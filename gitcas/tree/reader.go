// Package tree reads the folders and files of a state commit from a remote, each when it
// is asked for and once, and makes the folders of the next one. All that is read is taken
// for hostile; it knows no more of a file than whether it is there and what hash the node
// in it has.
package tree

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
)

// MaxNodeFile is the largest node file that is read or written, in bytes.
const MaxNodeFile = 16 << 20

// MaxTree is the largest folder that is read, in bytes: half a million entries.
const MaxTree = 32 << 20

// OnlyWanted is the filter for wants that are to come without what they refer to.
const OnlyWanted = "tree:0"

// Reader reads objects and keeps them. It is safe for concurrent use.
type Reader struct {
	Remote wire.Remote
	objs   Memo[wire.ID, wire.Object]
	dirs   Memo[dirKey, *Dir]
	nodes  Memo[wire.ID, Stored] // by the id of their blob
}

type dirKey struct {
	path string
	id   wire.ID
}

// Stored is a node that was decoded from a blob. Its hash is computed, so it can
// be compared with any name that the blob has.
type Stored struct {
	Hash    node.Hash
	Node    node.Node
	Checked bool // against its schema, a shared one
}

// NewReader returns a reader that has nothing yet.
func NewReader(remote wire.Remote) *Reader {
	return &Reader{Remote: remote}
}

// Apart returns a reader of the same remote that has the decoded nodes of r, and nothing else.
func (r *Reader) Apart() *Reader {
	c := NewReader(r.Remote)
	r.nodes.copyTo(&c.nodes)
	return c
}

// Copy returns a reader that has what r has, but for some objects.
func (r *Reader) Copy(but ...wire.ID) *Reader {
	c := r.Apart()
	r.objs.copyTo(&c.objs)
	r.dirs.copyTo(&c.dirs)
	for _, id := range but {
		c.Drop(id)
	}
	return c
}

// Keep takes objects in.
func (r *Reader) Keep(objs ...wire.Object) {
	for _, o := range objs {
		r.objs.Put(o.ID, o)
	}
}

// Drop forgets an object.
func (r *Reader) Drop(id wire.ID) { r.objs.dropKey(id) }

// Object is an object that is here.
func (r *Reader) Object(id wire.ID) (wire.Object, bool) { return r.objs.Get(id) }

// Has reports whether an object, or the node in it, is here.
func (r *Reader) Has(id wire.ID) bool {
	_, raw := r.objs.Get(id)
	_, decoded := r.nodes.Get(id)
	return raw || decoded
}

// Missing are those of the ids, each once, that are not here.
func (r *Reader) Missing(ids []wire.ID) []wire.ID {
	var out []wire.ID
	seen := map[wire.ID]bool{wire.ZeroID: true}
	for _, id := range ids {
		if !seen[id] && !r.Has(id) {
			out = append(out, id)
		}
		seen[id] = true
	}
	return out
}

// Fetch gets the objects that are not here, all in one request.
func (r *Reader) Fetch(ctx context.Context, ids ...wire.ID) error {
	_, err := r.FetchWith(ctx, OnlyWanted, ids)
	return err
}

// FetchEntries is Fetch for the objects of entries.
func (r *Reader) FetchEntries(ctx context.Context, entries []gitobj.Entry) error {
	return r.Fetch(ctx, lists.Map(entries, func(e gitobj.Entry) wire.ID { return e.ID })...)
}

// FetchWith is Fetch with a filter. What comes along is returned, and not kept.
func (r *Reader) FetchWith(ctx context.Context, filter string, ids []wire.ID) (wire.Objects, error) {
	return r.FetchUpTo(ctx, 0, filter, ids)
}

// FetchUpTo is FetchWith of an answer that holds at most so many bytes, see
// wire.FetchRequest.MaxBytes.
func (r *Reader) FetchUpTo(ctx context.Context, maxBytes int64, filter string, ids []wire.ID) (wire.Objects, error) {
	wants := r.Missing(ids)
	if len(wants) == 0 {
		return nil, nil
	}
	objs, err := r.Remote.Fetch(ctx, wire.FetchRequest{Wants: wants, Depth: 1, Filter: filter, MaxBytes: maxBytes})
	if err != nil {
		return nil, fmt.Errorf("read the state branch: %w", err)
	}
	for _, id := range wants {
		o, ok := objs[id]
		if !ok {
			return nil, Damaged(id.String(), "the remote doesn't send this object of the state branch")
		}
		r.Keep(o)
	}
	return objs, nil
}

// Read returns one object, fetched when it was not yet.
func (r *Reader) Read(ctx context.Context, path string, id wire.ID, typ plumbing.ObjectType, most int) (wire.Object, error) {
	if err := r.Fetch(ctx, id); err != nil {
		return wire.Object{}, err
	}
	o, ok := r.objs.Get(id)
	switch {
	case !ok:
		return o, Damaged(path, "the remote doesn't send its object %s", id)
	case o.Type != typ:
		return o, Damaged(path, "object %s is a %s, not a %s", id, o.Type, typ)
	case len(o.Data) > most:
		return o, Damaged(path, "%d bytes, more than %d", len(o.Data), most)
	}
	return o, nil
}

// ReadDir reads a folder by its tree's id.
func (r *Reader) ReadDir(ctx context.Context, path string, kind layout.Kind, id wire.ID) (*Dir, error) {
	if d, ok := r.dirs.Get(dirKey{path, id}); ok {
		return d, nil
	}
	o, err := r.Read(ctx, quotePath(path), id, plumbing.TreeObject, MaxTree)
	if err != nil {
		return nil, err
	}
	d, err := Parse(path, kind, o)
	if err == nil {
		r.dirs.Put(dirKey{path, id}, d)
	}
	return d, err
}

// Below reads a folder in another one, and so on; nil where there is none.
func (r *Reader) Below(ctx context.Context, d *Dir, names ...string) (*Dir, error) {
	for _, name := range names {
		e, ok := d.Find(name)
		if !ok {
			return nil, nil
		}
		var err error
		if d, err = r.ReadDir(ctx, d.PathOf(name), d.Kind.ChildOf(name), e.ID); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Node returns the node in a file, checked against its name alone.
func (r *Reader) Node(ctx context.Context, path string, id wire.ID, h node.Hash) (Stored, error) {
	n, ok := r.nodes.Get(id)
	if !ok {
		o, err := r.Read(ctx, path, id, plumbing.BlobObject, MaxNodeFile)
		if err == nil {
			if n, err = DecodeNode(path, o); err == nil {
				r.Decoded(id, n)
			}
		} else if n, ok = r.nodes.Get(id); ok {
			err = nil // somebody else has decoded it meanwhile, and its blob is not here any more
		}
		if err != nil {
			return Stored{}, err
		}
	}
	if n.Hash != h {
		return Stored{}, Damaged(path, "its content hashes to %s", n.Hash)
	}
	return n, nil
}

// DecodeNode reads the file of a node.
func DecodeNode(path string, o wire.Object) (Stored, error) {
	n, err := node.DecodeFile(o.Data)
	if err != nil {
		return Stored{}, DamagedBy(path, err)
	}
	h, err := n.ComputeHash()
	if err != nil {
		return Stored{}, DamagedBy(path, err)
	}
	return Stored{Hash: h, Node: n}, nil
}

// Decoded keeps a decoded node; its blob is not needed again.
func (r *Reader) Decoded(id wire.ID, n Stored) {
	r.nodes.Put(id, n)
	r.objs.dropKey(id)
}

// Memo remembers what was worked out. It is safe for concurrent use.
type Memo[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]V
}

// Get is what was put for a key.
func (m *Memo[K, V]) Get(k K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.m[k]
	return v, ok
}

// Put remembers a value.
func (m *Memo[K, V]) Put(k K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.m == nil {
		m.m = map[K]V{}
	}
	m.m[k] = v
}

func (m *Memo[K, V]) dropKey(k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.m, k)
}

func (m *Memo[K, V]) copyTo(other *Memo[K, V]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	other.m = maps.Clone(m.m)
}

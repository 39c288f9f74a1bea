package gitcas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
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
	cache   *cache
	state
}

// state is the content of one state commit, as far as it was read. Like View it
// does not change.
type state struct {
	tip     wire.ID
	parents []wire.ID
	version statefile.Version

	root, cas, threadDirs, history *dir

	threads  *statefile.Threads
	registry *statefile.Registry
	folders  map[ThreadID]*dir // loaded folders of threads
}

// cache holds the objects of one view: folders by the id of their tree, what was
// worked out of records, and all else as it came. Decoded nodes are kept apart: the
// views that are made from one another share them.
type cache struct {
	mu     sync.Mutex
	objs   wire.Objects
	dirs   map[wire.ID][]*dir // one for each path
	closed map[Place]node.Map
	flows  map[node.Hash]definition
	nodes  *nodeCache
}

// nodeCache holds nodes by the id of their blob.
type nodeCache struct {
	mu sync.Mutex
	m  map[wire.ID]stored
}

// stored is a node that was decoded from a blob. Its hash is computed, so it can
// be compared with any name that the blob has.
type stored struct {
	hash    node.Hash
	node    node.Node
	checked bool // against its schema, a shared one
}

func newCache() *cache {
	return newCacheWith(&nodeCache{m: map[wire.ID]stored{}})
}

func newCacheWith(nodes *nodeCache) *cache {
	return &cache{objs: wire.Objects{}, dirs: map[wire.ID][]*dir{}, closed: map[Place]node.Map{}, flows: map[node.Hash]definition{}, nodes: nodes}
}

// cachedDir returns a folder that was read; at another path it is parsed anew.
func (c *cache) cachedDir(path string, kind layout.Kind, id wire.ID) (*dir, bool, error) {
	c.mu.Lock()
	known := c.dirs[id]
	c.mu.Unlock()
	for _, d := range known {
		if d.path == path {
			return d, true, nil
		}
	}
	if len(known) == 0 {
		return nil, false, nil
	}
	d, err := parseDir(path, kind, known[0].obj)
	if err == nil {
		c.addDir(d)
	}
	return d, true, err
}

// addDir keeps a folder; its object is not needed again.
func (c *cache) addDir(d *dir) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, have := range c.dirs[d.obj.ID] {
		if have.path == d.path {
			return
		}
	}
	c.dirs[d.obj.ID] = append(slices.Clone(c.dirs[d.obj.ID]), d)
	delete(c.objs, d.obj.ID)
}

func (c *cache) addObjects(objs wire.Objects) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.objs, objs)
}

func (c *cache) getObject(id wire.ID) (wire.Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.objs[id]
	return o, ok
}

// getNode returns a decoded node.
func (c *cache) getNode(id wire.ID) (stored, bool) {
	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	n, ok := c.nodes.m[id]
	return n, ok
}

// putNode keeps a decoded node; its blob is not needed again.
func (c *cache) putNode(id wire.ID, n stored) {
	c.nodes.mu.Lock()
	c.nodes.m[id] = n
	c.nodes.mu.Unlock()
	c.mu.Lock()
	delete(c.objs, id)
	c.mu.Unlock()
}

// hasObject reports whether an object is in either cache.
func (c *cache) hasObject(id wire.ID) bool {
	if _, decoded := c.getNode(id); decoded {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, raw := c.objs[id]
	return raw || len(c.dirs[id]) > 0
}

// missingIDs are those of the ids, each once, that are in neither cache.
func (c *cache) missingIDs(ids []wire.ID) []wire.ID {
	var out []wire.ID
	seen := map[wire.ID]bool{}
	for _, id := range ids {
		if !c.hasObject(id) && !seen[id] && !id.IsZero() {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
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
	if e, ok := v.cas.findEntry(layout.FileOf(h)); ok {
		return v.readNode(ctx, v.cas.pathOf(e.Name), e.ID, h)
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
	return v.readWith(path, id, h, v.Getter(ctx), func() (wire.Object, error) {
		return v.readObject(ctx, path, id, plumbing.BlobObject, MaxNodeFile)
	})
}

func (v *View) readWith(path string, id wire.ID, h node.Hash, g node.Getter, blob func() (wire.Object, error)) (node.Node, error) {
	n, err := v.decodeNode(path, id, h, blob)
	if err != nil || n.checked {
		return n.node, err
	}
	if err := v.s.schemas.Check(g, n.node); err != nil {
		return node.Node{}, damagedUnlessWire(path, err)
	}
	n.checked = true
	v.cache.putNode(id, n)
	return n.node, nil
}

// decodeNode returns the node in a file, checked against its name alone.
func (v *View) decodeNode(path string, id wire.ID, h node.Hash, blob func() (wire.Object, error)) (stored, error) {
	n, ok := v.cache.getNode(id)
	if !ok {
		o, err := blob()
		if err == nil {
			if n, err = decodeNode(path, o); err == nil {
				v.cache.putNode(id, n)
			}
		} else if n, ok = v.cache.getNode(id); ok {
			err = nil // somebody else has decoded it meanwhile, and the cache let go of the blob
		}
		if err != nil {
			return stored{}, err
		}
	}
	if n.hash != h {
		return stored{}, newContentError(path, fmt.Sprintf("its content hashes to %s", n.hash))
	}
	return n, nil
}

func decodeNode(path string, o wire.Object) (stored, error) {
	n, err := node.DecodeFile(o.Data)
	if err != nil {
		return stored{}, contentErr(path, err)
	}
	h, err := n.Hash()
	if err != nil {
		return stored{}, contentErr(path, err)
	}
	return stored{hash: h, node: n}, nil
}

// damagedUnlessWire says of a check that failed on a file that the file is
// damaged, unless the remote, or a file that it refers to, is to blame.
func damagedUnlessWire(path string, err error) error {
	if err == nil {
		return nil
	}
	var we *wire.Error
	if errors.As(err, &we) || errors.Is(err, ErrDamaged) {
		return fmt.Errorf("check %s: %w", path, err)
	}
	return contentErr(path, err)
}

// readObject returns one object of the branch, fetched when it was not yet.
func (v *View) readObject(ctx context.Context, path string, id wire.ID, typ plumbing.ObjectType, maxSize int) (wire.Object, error) {
	if err := v.fetchObjects(ctx, id); err != nil {
		return wire.Object{}, err
	}
	o, ok := v.cache.getObject(id)
	switch {
	case !ok:
		return wire.Object{}, newContentError(path, "the remote doesn't send its object "+id.String())
	case o.Type != typ:
		return wire.Object{}, newContentError(path, fmt.Sprintf("object %s is a %s, not a %s", id, o.Type, typ))
	case len(o.Data) > maxSize:
		return wire.Object{}, newContentError(path, fmt.Sprintf("%d bytes, more than %d", len(o.Data), maxSize))
	}
	return o, nil
}

// onlyWanted is the filter for wants that are to come without what they refer to.
const onlyWanted = "tree:0"

// fetchObjects gets the objects that are not in the cache, all in one request.
func (v *View) fetchObjects(ctx context.Context, ids ...wire.ID) error {
	_, err := v.fetchWith(ctx, onlyWanted, ids)
	return err
}

// fetchWith is fetch with a filter. What comes along is returned, and not kept.
func (v *View) fetchWith(ctx context.Context, filter string, ids []wire.ID) (wire.Objects, error) {
	wants := v.cache.missingIDs(ids)
	if len(wants) == 0 {
		return nil, nil
	}
	objs, err := v.s.remote.Fetch(ctx, wire.FetchRequest{Wants: wants, Depth: 1, Filter: filter})
	if err != nil {
		return nil, fmt.Errorf("read the state branch: %w", err)
	}
	for _, id := range wants {
		o, ok := objs[id]
		if !ok {
			return nil, newContentError(id.String(), "the remote doesn't send this object of the state branch")
		}
		v.cache.addObjects(wire.Objects{id: o})
	}
	return objs, nil
}

// threadFolder returns threads/<id>, nil when the tip has none.
func (v *View) threadFolder(ctx context.Context, id ThreadID) (*dir, error) {
	if d, ok := v.folders[id]; ok {
		return d, nil
	}
	return v.readSub(ctx, v.threadDirs, string(id))
}

// readDir reads a folder by its tree's id.
func (v *View) readDir(ctx context.Context, path string, kind layout.Kind, id wire.ID) (*dir, error) {
	if d, ok, err := v.cache.cachedDir(path, kind, id); ok {
		return d, err
	}
	o, err := v.readObject(ctx, path, id, plumbing.TreeObject, maxTree)
	if err != nil {
		// Somebody else may have read it meanwhile: then the cache let go of the object.
		if d, ok, derr := v.cache.cachedDir(path, kind, id); ok {
			return d, derr
		}
		return nil, err
	}
	d, err := parseDir(path, kind, o)
	if err == nil {
		v.cache.addDir(d)
	}
	return d, err
}

// readSub reads a folder in another one; nil where there is none.
func (v *View) readSub(ctx context.Context, parent *dir, name string) (*dir, error) {
	e, ok := parent.findEntry(name)
	if !ok {
		return nil, nil
	}
	return v.readDir(ctx, parent.pathOf(name), parent.kind.ChildOf(name), e.ID)
}

// MaxNodeFile is the largest node file that is read or written, in bytes.
const MaxNodeFile = 16 << 20

// maxTree is the largest folder that is read, in bytes: half a million entries.
const maxTree = 32 << 20

package gitcas

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// builder turns a Change into commits on top of a view. cur is the content after
// the commits made so far; deltas are made against the view's, because only that
// is known to be on the remote.
type builder struct {
	ctx  context.Context
	v    *View
	c    *Change
	cur  state
	objs []wire.PackObject
	sent map[wire.ID]bool
	// fresh are the nodes of this change, for checks and for the next view.
	fresh map[node.Hash]node.Node
	made  map[wire.ID]stored
	blobs wire.Objects // of the root's files, bases for the next change
	// edits of the folders, by thread
	threads map[ThreadID]*threadEdit
	cas     dirEdit
}

// threadEdit collects what changes in one thread's folder.
type threadEdit struct {
	base   *dir // the folder as it is, or the part of another one that a fork takes over
	known  *dir // what the remote has to make a delta against
	detail *dir // detail/ of the base, once it was read
	files  dirEdit
	// details are the edits of detail/, by the step that they belong to.
	details map[node.Hash]dirEdit
}

func newThreadEdit() *threadEdit {
	return &threadEdit{files: dirEdit{}, details: map[node.Hash]dirEdit{}}
}

func newBuilder(ctx context.Context, v *View, c *Change) *builder {
	return &builder{
		ctx: ctx, v: v, c: c, cur: v.state, sent: map[wire.ID]bool{},
		fresh: map[node.Hash]node.Node{}, made: map[wire.ID]stored{}, blobs: wire.Objects{},
		threads: map[ThreadID]*threadEdit{}, cas: dirEdit{},
	}
}

// hasContent reports whether the change needs a commit besides an archive commit.
func (c *Change) hasContent() bool {
	return len(c.Nodes) > 0 || len(c.Readable) > 0 || len(c.Threads) > 0 || len(c.Registry) > 0 || len(c.Forks) > 0 || len(c.Reopen) > 0
}

// build makes the commits. Afterwards cur is the state after them.
func (b *builder) build() error {
	if b.c.hasContent() {
		if err := b.content(); err != nil {
			return err
		}
	}
	if len(b.c.Archive) > 0 || len(b.c.Removed) > 0 {
		return b.archive()
	}
	return nil
}

// content makes the commit with nodes and entries.
func (b *builder) content() error {
	for _, n := range b.c.Nodes {
		b.fresh[n.Hash] = n.Node
	}
	for _, id := range slices.Sorted(maps.Keys(b.c.Forks)) {
		if err := b.fork(id, b.c.Forks[id]); err != nil {
			return err
		}
	}
	for _, e := range b.c.Reopen {
		if err := b.reopen(e); err != nil {
			return err
		}
	}
	for _, n := range b.c.Nodes {
		if err := b.place(n); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(b.c.Readable)) {
		if err := b.page(path, b.c.Readable[path]); err != nil {
			return err
		}
	}
	root := dirEdit{}
	if err := b.folders(root); err != nil {
		return err
	}
	if err := b.lists(root); err != nil {
		return err
	}
	return b.commit(root, b.c.Subject, b.c.Body, b.c.Trailers)
}

// thread returns the edit of a thread's folder.
func (b *builder) thread(id ThreadID) (*threadEdit, error) {
	if e, ok := b.threads[id]; ok {
		return e, nil
	}
	if !id.Valid() {
		return nil, fmt.Errorf("%w: %w: %.40q", ErrInvalid, statefile.ErrBadThreadID, id)
	}
	d, err := b.v.folder(b.ctx, id)
	if err != nil {
		return nil, err
	}
	e := newThreadEdit()
	e.base, e.known = d, d
	b.threads[id] = e
	return e, nil
}

// place puts one node where it belongs, unless it is there.
func (b *builder) place(n PlacedNode) error {
	data, err := b.check(n)
	if err != nil {
		return fmt.Errorf("store node %s: %w", n.Hash, err)
	}
	blob := wire.NewObject(plumbing.BlobObject, data)
	name := nodeFile(n.Hash)
	edit, base := b.cas, b.cur.cas
	if n.Place.Thread != "" {
		t, err := b.thread(n.Place.Thread)
		if err != nil {
			return err
		}
		edit, base = t.files, t.base
		if n.Place.Detail {
			step, err := b.stepOf(n.Place.Thread)
			if err != nil {
				return err
			}
			if t.details[step] == nil {
				t.details[step] = dirEdit{}
			}
			// Compared with what is there, if anything, once detail/ is read.
			edit, base = t.details[step], nil
		}
	}
	if old, there := base.get(name); there {
		if _, known := b.v.s.known[n.Hash]; known {
			return nil // compared by check; nobody reads the stored one
		}
		return b.sameNode(base.at(name), old.ID, n)
	}
	edit.file(name, blob.ID)
	b.send(blob, nil)
	b.made[blob.ID] = stored{hash: n.Hash, node: n.Node, checked: true}
	return nil
}

// check makes sure that a node is what its hash says and fits its schema, and
// returns its file.
func (b *builder) check(n PlacedNode) ([]byte, error) {
	h, err := n.Node.Hash()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if h != n.Hash {
		return nil, fmt.Errorf("%w: its content hashes to %s", ErrInvalid, h)
	}
	if n.Place.Thread == "" && n.Place.Detail {
		return nil, fmt.Errorf("%w: a detail without a thread", ErrInvalid)
	}
	if known, ok := b.v.s.known[n.Hash]; ok {
		if err := samePayload(known, n.Node); err != nil {
			return nil, err
		}
	}
	if err := b.v.s.schemas.Check(b, n.Node); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	data, err := node.EncodeFile(n.Node)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(data) > MaxNodeFile {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrInvalid, len(data), MaxNodeFile)
	}
	return data, nil
}

// Get implements node.Getter over the change's own nodes and the view's.
func (b *builder) Get(h node.Hash) (node.Node, error) {
	if n, ok := b.fresh[h]; ok {
		return n, nil
	}
	return b.v.Get(b.ctx, h)
}

// sameNode refuses a node whose hash is taken by another payload. The stored one
// stays, with its time.
func (b *builder) sameNode(path string, id wire.ID, n PlacedNode) error {
	old, err := b.v.read(b.ctx, path, id, n.Hash)
	if err != nil {
		return err
	}
	if err := samePayload(old, n.Node); err != nil {
		return fmt.Errorf("store node %s, which %s holds: %w", n.Hash, path, err)
	}
	return nil
}

func samePayload(a, b node.Node) error {
	x, err := node.EncodeCBOR(a.Payload)
	if err != nil {
		return err
	}
	y, err := node.EncodeCBOR(b.Payload)
	if err != nil {
		return err
	}
	if a.Type != b.Type || !bytes.Equal(x, y) {
		return fmt.Errorf("%w: 64 bits are not collision-proof; change the payload in any way", ErrCollision)
	}
	return nil
}

// stepOf names the folder that a thread's details go to: that of the step which
// is the head after this change.
func (b *builder) stepOf(id ThreadID) (node.Hash, error) {
	if e := b.c.Threads[id]; e != nil {
		return e.Head, nil
	}
	if e, ok := b.cur.threads.Get(id); ok {
		return e.Head, nil
	}
	return "", fmt.Errorf("%w: details of thread %s, which has no entry", ErrInvalid, id)
}

// page puts a page for people.
func (b *builder) page(path string, text []byte) error {
	id, name, err := splitReadable(path)
	if err != nil {
		return err
	}
	if len(text) > maxReadable {
		text = append(bytes.ToValidUTF8(text[:maxReadable], nil), "\n…\n"...)
	}
	t, err := b.thread(id)
	if err != nil {
		return err
	}
	blob := wire.NewObject(plumbing.BlobObject, text)
	t.files.file(name, blob.ID)
	b.send(blob, nil)
	return nil
}

// folders writes the edited folders below root.
func (b *builder) folders(root dirEdit) error {
	if len(b.cas) > 0 {
		d, err := b.edited(casDir, b.cur.cas, b.v.cas, b.cas)
		if err != nil {
			return err
		}
		b.cur.cas = d
		root.folder(casDir, d)
	}
	edit := dirEdit{}
	loaded := maps.Clone(b.cur.folders)
	for _, id := range slices.Sorted(maps.Keys(b.threads)) {
		d, err := b.threadFolder(id, b.threads[id])
		if err != nil {
			return err
		}
		edit.folder(string(id), d)
		loaded[id] = d
	}
	if len(edit) > 0 {
		d, err := b.edited(threadsDir, b.cur.threadDirs, b.v.threadDirs, edit)
		if err != nil {
			return err
		}
		b.cur.threadDirs, b.cur.folders = d, loaded
		root.folder(threadsDir, d)
	}
	return nil
}

// threadFolder writes one thread's folder.
func (b *builder) threadFolder(id ThreadID, t *threadEdit) (*dir, error) {
	path := threadPath(id)
	if len(t.details) > 0 {
		d, err := b.detailFolder(path+"/"+detailDir, t)
		if err != nil {
			return nil, err
		}
		t.files.folder(detailDir, d)
	}
	return b.edited(path, t.base, t.known, t.files)
}

// detailFolder writes the details: a folder for each step. What is there is read
// first: the folder of folders is short, whatever the steps hold.
func (b *builder) detailFolder(path string, t *threadEdit) (*dir, error) {
	if e, ok := t.base.get(detailDir); ok && t.detail == nil {
		var err error
		if t.detail, err = b.v.dir(b.ctx, path, e.ID, checkDetail); err != nil {
			return nil, err
		}
	}
	edit := dirEdit{}
	for _, step := range slices.Sorted(maps.Keys(t.details)) {
		sub := path + "/" + string(step)
		var old *dir
		if e, ok := t.detail.get(string(step)); ok {
			var err error
			if old, err = b.v.dir(b.ctx, sub, e.ID, checkCas); err != nil {
				return nil, err
			}
		}
		if err := b.keepSame(old, t.details[step]); err != nil {
			return nil, err
		}
		d, err := b.edited(sub, old, old, t.details[step])
		if err != nil {
			return nil, err
		}
		edit.folder(string(step), d)
	}
	return b.edited(path, t.detail, t.detail, edit)
}

// keepSame leaves nodes that are stored already as they are.
func (b *builder) keepSame(old *dir, edit dirEdit) error {
	for name := range edit {
		e, there := old.get(name)
		if !there {
			continue
		}
		h, _ := nodeOf(name)
		if err := b.sameNode(old.at(name), e.ID, PlacedNode{Hash: h, Node: b.fresh[h]}); err != nil {
			return err
		}
		delete(edit, name)
	}
	return nil
}

// edited makes a folder and sends it as a delta against known, which the remote
// has.
func (b *builder) edited(path string, from, known *dir, edit dirEdit) (*dir, error) {
	d, err := from.with(path, edit)
	if err != nil || d == nil {
		return nil, err
	}
	if known != nil {
		b.send(d.obj, &known.obj)
	} else {
		b.send(d.obj, nil)
	}
	return d, nil
}

// send adds an object to the pack, once, unless it is its own base.
func (b *builder) send(o wire.Object, base *wire.Object) {
	if b.sent[o.ID] || base != nil && base.ID == o.ID {
		return
	}
	b.sent[o.ID] = true
	b.objs = append(b.objs, wire.PackObject{Object: o, Base: base})
}

// lists writes threads.yaml and registry.yaml.
func (b *builder) lists(root dirEdit) error {
	if err := b.checkHeads(); err != nil {
		return err
	}
	if len(b.c.Threads) > 0 {
		t, err := b.cur.threads.With(b.counted())
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		b.cur.threads = t
		if err := b.rootFile(root, threadsName, t.Encode(), statefile.MaxThreadsFile); err != nil {
			return err
		}
	}
	if len(b.c.Registry) > 0 {
		r, err := b.cur.registry.With(b.c.Registry)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		b.cur.registry = r
		return b.rootFile(root, registryName, r.Encode(), statefile.MaxRegistryFile)
	}
	return nil
}

// checkHeads makes sure that every head that is set is in its thread's folder.
func (b *builder) checkHeads() error {
	for id, e := range b.c.Threads {
		if e == nil {
			return fmt.Errorf("%w: thread %s: no entry; a thread is taken off by Archive", ErrInvalid, id)
		}
		d, ok := b.cur.folders[id]
		if !ok {
			var err error
			if d, err = b.v.folder(b.ctx, id); err != nil {
				return err
			}
		}
		if _, ok := d.get(nodeFile(e.Head)); !ok {
			return fmt.Errorf("%w: thread %s: its head %s is not in its folder", ErrInvalid, id, e.Head)
		}
	}
	for id := range b.threads {
		if _, listed := b.cur.threads.Get(id); !listed && b.c.Threads[id] == nil {
			return fmt.Errorf("%w: files for thread %s, which has no entry", ErrStale, id)
		}
	}
	return nil
}

// rootFile writes one of the files at the root, as a delta against the tip's.
func (b *builder) rootFile(root dirEdit, name string, data []byte, most int) error {
	if len(data) > most {
		return fmt.Errorf("%w: %s would have %d bytes, more than %d", ErrInvalid, name, len(data), most)
	}
	o := wire.NewObject(plumbing.BlobObject, data)
	root.file(name, o.ID)
	var base *wire.Object
	if old, ok := b.v.cache.get(b.v.root.id(name)); ok {
		base = &old
	}
	b.send(o, base)
	b.blobs.Add(o)
	return nil
}

// commit writes the root and a commit on top of the current one.
func (b *builder) commit(root dirEdit, subject, body string, trailers []Trailer) error {
	d, err := b.edited("", b.cur.root, b.v.root, root)
	if err != nil {
		return err
	}
	msg, err := statefile.Message(subject, body, trailers)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	o, err := b.v.s.commitObject(d.obj.ID, []wire.ID{b.cur.tip}, msg)
	if err != nil {
		return err
	}
	b.send(o, nil)
	b.cur.parents, b.cur.tip, b.cur.root = []wire.ID{b.cur.tip}, o.ID, d
	return nil
}

// commitObject makes a state commit, dated by the store's clock.
func (s *Store) commitObject(tree wire.ID, parents []wire.ID, msg string) (wire.Object, error) {
	sig := s.o.signature(s.o.Now())
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: tree, Parents: parents, Author: sig, Committer: sig, Message: msg})
	if err != nil {
		return wire.Object{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return wire.NewObject(plumbing.CommitObject, data), nil
}

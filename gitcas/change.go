package gitcas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/commitmsg"
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
	fresh Nodes
	made  map[wire.ID]tree.Stored
	blobs wire.Objects // of the root's files, bases for the next change
	stale []wire.ID    // folders in those of threads that others take the place of
	// edits of the folders, by thread
	threads map[ThreadID]*threadEdit
	cas     tree.Edit
}

// threadEdit collects what changes in one thread's folder.
type threadEdit struct {
	base  *tree.Dir // the folder as it is, or the part of another one that a fork takes over
	known *tree.Dir // what the remote has to make a delta against
	files tree.Edit // records, and what they refer to
	pages tree.Edit
	// details are the edits of detail/, by the record that they belong to.
	details map[node.Hash]tree.Edit
}

func newThreadEdit() *threadEdit {
	return &threadEdit{files: tree.Edit{}, pages: tree.Edit{}, details: map[node.Hash]tree.Edit{}}
}

// knownFolder is a folder in this one, if the remote has it: what a fork takes over it hasn't.
func (t *threadEdit) knownFolder(d *tree.Dir) *tree.Dir {
	if t.base != t.known {
		return nil
	}
	return d
}

func (t *threadEdit) editAt(p Place) tree.Edit {
	if !p.Detail {
		return t.files
	}
	if t.details[p.Of] == nil {
		t.details[p.Of] = tree.Edit{}
	}
	return t.details[p.Of]
}

func newBuilder(ctx context.Context, v *View, c *Change) *builder {
	return &builder{
		ctx: ctx, v: v, c: c, cur: v.state, sent: map[wire.ID]bool{},
		fresh: Nodes{}, made: map[wire.ID]tree.Stored{}, blobs: wire.Objects{},
		threads: map[ThreadID]*threadEdit{}, cas: tree.Edit{},
	}
}

// newReader finds nodes as they are after this change.
func (b *builder) newReader() *folderReader {
	return &folderReader{ctx: b.ctx, v: b.v, fresh: b.fresh, base: func(id ThreadID) (*tree.Dir, error) {
		if t, ok := b.threads[id]; ok {
			return t.base, nil
		}
		return b.v.threadFolder(b.ctx, id)
	}}
}

// hasContent reports whether the change needs a commit besides an archive commit.
func (c *Change) hasContent() bool {
	return c.Deed || len(c.Nodes) > 0 || len(c.Readable) > 0 || len(c.Threads) > 0 || len(c.Registry) > 0 || len(c.Forks) > 0 || len(c.Reopen) > 0
}

// buildCommits makes the commits. Afterwards cur is the state after them.
func (b *builder) buildCommits() error {
	if b.c.hasContent() {
		if err := b.buildContent(); err != nil {
			return err
		}
	}
	if len(b.c.Archive) > 0 || len(b.c.Removed) > 0 {
		return b.archiveThreads()
	}
	return nil
}

// buildContent makes the commit with nodes and entries.
func (b *builder) buildContent() error {
	if err := b.takeNodes(); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(b.c.Forks)) {
		if err := b.forkThread(id, b.c.Forks[id]); err != nil {
			return err
		}
	}
	for _, e := range b.c.Reopen {
		if err := b.reopenThread(e); err != nil {
			return err
		}
	}
	for _, n := range b.c.Nodes {
		if err := b.placeNode(n); err != nil {
			return err
		}
	}
	if err := b.checkClosures(); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(b.c.Readable)) {
		if err := b.putPage(path, b.c.Readable[path]); err != nil {
			return err
		}
	}
	root := tree.Edit{}
	if err := b.writeFolders(root); err != nil {
		return err
	}
	if err := b.writeLists(root); err != nil {
		return err
	}
	if err := b.noteRefs(root); err != nil {
		return err
	}
	return b.writeCommit(root, b.c.Subject, b.c.Body, b.c.Trailers)
}

// noteRefs writes into VERSION how many refs the remote takes in a push, once a refusal has
// told: later jobs need not be refused. Where there is no room for it they are.
func (b *builder) noteRefs(root tree.Edit) error {
	learnt := int(b.v.s.learnt.Load())
	if noted := b.cur.version.Refs; learnt == 0 || noted != 0 && noted <= learnt {
		return nil
	}
	text, err := tipReader{b.v}.rootFile(b.ctx, &b.cur, layout.VersionName)
	if err != nil {
		return err
	}
	if text, err = statefile.SetVersionRefs(text, learnt); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(text) > statefile.MaxVersionFile {
		return nil
	}
	b.cur.version.Refs = learnt
	return b.rootFile(root, layout.VersionName, text, statefile.MaxVersionFile)
}

// editThread returns the edit of a thread's folder.
func (b *builder) editThread(id ThreadID) (*threadEdit, error) {
	if e, ok := b.threads[id]; ok {
		return e, nil
	}
	if err := id.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	d, err := b.v.threadFolder(b.ctx, id)
	if err != nil {
		return nil, err
	}
	e := newThreadEdit()
	e.base, e.known = d, d
	b.threads[id] = e
	return e, nil
}

// takeNodes notes the nodes of the change. Of one place and hash there is one.
func (b *builder) takeNodes() error {
	for _, n := range b.c.Nodes {
		if old, twice := b.fresh[n.Place][n.Hash]; twice {
			if err := samePayload(old, n.Node); err != nil {
				return fmt.Errorf("store node %s twice in %s: %w", n.Hash, n.Place, err)
			}
			continue
		}
		b.fresh.Add(n.Place, n.Hash, n.Node)
	}
	return nil
}

// placeNode puts one node where it belongs, unless it is there.
func (b *builder) placeNode(n PlacedNode) error {
	data, err := b.checkNode(n)
	if err != nil {
		return fmt.Errorf("store node %s: %w", n.Place.Path(n.Hash), err)
	}
	blob := wire.NewObject(plumbing.BlobObject, data)
	name := n.Place.File(n.Hash)
	edit, base := b.cas, b.cur.cas
	if n.Place.Thread != "" {
		t, err := b.editThread(n.Place.Thread)
		if err != nil {
			return err
		}
		edit, base = t.editAt(n.Place), t.base
		if n.Place.Detail {
			base = nil // compared with what is there, if anything, once that is read
		}
	}
	if old, there := base.Find(name); there {
		if _, known := known()[n.Hash]; known {
			return nil // compared by check; nobody reads the stored one
		}
		return b.sameNode(base.PathOf(name), old.ID, n)
	}
	edit.SetFile(name, blob.ID)
	b.addToPack(blob, nil)
	b.made[blob.ID] = tree.Stored{Hash: n.Hash, Node: n.Node, Checked: n.Place.Of == ""}
	return nil
}

// checkNode makes sure that a node is what its hash says, fits its schema and is what may
// be in its place, and returns its file.
func (b *builder) checkNode(n PlacedNode) ([]byte, error) {
	h, err := n.Node.Hash()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if h != n.Hash {
		return nil, fmt.Errorf("%w: its content hashes to %s", ErrInvalid, h)
	}
	isRecord := record.IsRecord(n.Node.Type)
	switch p := n.Place; {
	case p.Thread == "" && (p.Of != "" || p.Detail), p.Detail && p.Of == "", p.Of != "" && !p.Of.Valid():
		return nil, fmt.Errorf("%w: there is no such place", ErrInvalid)
	case p.Thread != "" && p.Of == "" && !isRecord:
		return nil, fmt.Errorf("%w: it is neither a StartNode nor a StepNode: what one of these refers to is stored under its hash", ErrInvalid)
	}
	if known, ok := known()[n.Hash]; ok {
		if err := samePayload(known, n.Node); err != nil {
			return nil, err
		}
	}
	types, err := b.newReader().typesIn(n.Place)
	if err != nil {
		return nil, asChangeFault(err)
	}
	if err := b.v.s.schemas.Check(types, n.Node); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return EncodeNode(n.Node)
}

// EncodeNode is the file of a node that can be stored, and read again. The error matches
// ErrInvalid.
func EncodeNode(n node.Node) ([]byte, error) {
	data, err := node.EncodeFile(n)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(data) > tree.MaxNodeFile {
		return nil, fmt.Errorf("%w: a file of %d bytes, more than %d", ErrInvalid, len(data), tree.MaxNodeFile)
	}
	return data, nil
}

// checkClosures makes sure that all that the change's records refer to is under their hashes, and
// is what they say: nothing is stored that could not be read.
func (b *builder) checkClosures() error {
	r := b.newReader()
	for at, nodes := range b.fresh {
		if at.Thread == "" || at.Of != "" {
			continue
		}
		for h, n := range nodes {
			var err error
			if p := (Place{Thread: at.Thread, Of: h, Detail: true}); record.IsStart(n.Type) {
				_, err = r.flowOf(p)
			} else {
				_, err = r.readClosed(p)
			}
			if err != nil {
				return asChangeFault(fmt.Errorf("store %s: %w", at.Path(h), err))
			}
		}
	}
	return nil
}

// asChangeFault says of an error about what is to be stored that it is the change's fault,
// not the store's.
func asChangeFault(err error) error {
	var d *DamagedError
	if !errors.As(err, &d) || errors.Is(err, wire.ErrUnreachable) {
		return err
	}
	return fmt.Errorf("%w: %s: %s", ErrInvalid, d.What, d.Why)
}

// sameNode refuses a node whose hash is taken by another payload. The stored one
// stays, with its time.
func (b *builder) sameNode(path string, id wire.ID, n PlacedNode) error {
	old, err := b.v.Reader.Node(b.ctx, path, id, n.Hash)
	if err != nil {
		return err
	}
	if err := samePayload(old.Node, n.Node); err != nil {
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

// maxReadable is the largest page for people, in bytes.
const maxReadable = 1 << 20

// putPage puts a page for people.
func (b *builder) putPage(path string, text []byte) error {
	id, name, ok := layout.ParsePage(path)
	if !ok {
		return fmt.Errorf("%w: %q is no path of a page: threads/<id>/pages/NN-<role>.md or index.md", ErrInvalid, path)
	}
	if len(text) > maxReadable {
		text = append(bytes.ToValidUTF8(text[:maxReadable], nil), "\n…\n"...)
	}
	t, err := b.editThread(id)
	if err != nil {
		return err
	}
	blob := wire.NewObject(plumbing.BlobObject, text)
	t.pages.SetFile(name, blob.ID)
	b.addToPack(blob, nil)
	return nil
}

// writeFolders writes the edited folders below root.
func (b *builder) writeFolders(root tree.Edit) error {
	if len(b.cas) > 0 {
		d, err := b.editFolder(layout.CasDir, layout.CasFolder, b.cur.cas, b.v.cas, b.cas)
		if err != nil {
			return err
		}
		b.cur.cas = d
		root.SetDir(layout.CasDir, d)
	}
	edit := tree.Edit{}
	for _, id := range slices.Sorted(maps.Keys(b.threads)) {
		d, err := b.threadFolder(id, b.threads[id])
		if err != nil {
			return err
		}
		edit.SetDir(string(id), d)
	}
	if len(edit) > 0 {
		d, err := b.editFolder(layout.ThreadsDir, layout.ThreadsFolder, b.cur.threadDirs, b.v.threadDirs, edit)
		if err != nil {
			return err
		}
		b.cur.threadDirs = d
		root.SetDir(layout.ThreadsDir, d)
	}
	return nil
}

// threadFolder writes one thread's folder.
func (b *builder) threadFolder(id ThreadID, t *threadEdit) (*tree.Dir, error) {
	path := layout.ThreadPath(id)
	if len(t.details) > 0 {
		old, err := b.v.Reader.Below(b.ctx, t.base, layout.DetailDir)
		if err != nil {
			return nil, err
		}
		edit := tree.Edit{}
		for _, of := range slices.Sorted(maps.Keys(t.details)) {
			d, err := b.detailFolder(Place{Thread: id, Of: of, Detail: true}, old, t.details[of])
			if err != nil {
				return nil, err
			}
			edit.SetDir(string(of), d)
		}
		d, err := b.editFolder(path+"/"+layout.DetailDir, layout.DetailFolder, old, t.knownFolder(old), edit)
		if err != nil {
			return nil, err
		}
		t.files.SetDir(layout.DetailDir, d)
	}
	if len(t.pages) > 0 {
		old, err := b.v.Reader.Below(b.ctx, t.base, layout.PagesDir)
		if err != nil {
			return nil, err
		}
		d, err := b.editFolder(path+"/"+layout.PagesDir, layout.PagesFolder, old, t.knownFolder(old), t.pages)
		if err != nil {
			return nil, err
		}
		t.files.SetDir(layout.PagesDir, d)
	}
	return b.editFolder(path, layout.ThreadFolder, t.base, t.known, t.files)
}

// detailFolder writes the folder of a record's details.
func (b *builder) detailFolder(p Place, details *tree.Dir, edit tree.Edit) (*tree.Dir, error) {
	old, err := b.v.Reader.Below(b.ctx, details, string(p.Of))
	if err != nil {
		return nil, err
	}
	if err := b.keepSame(p, old, edit); err != nil {
		return nil, err
	}
	return b.editFolder(p.Folder(), layout.NodeFolder, old, old, edit)
}

// keepSame leaves nodes that are stored already as they are.
func (b *builder) keepSame(p Place, old *tree.Dir, edit tree.Edit) error {
	for name := range edit {
		_, h, isNode := layout.ParseNodeFile(name)
		e, there := old.Find(name)
		if !there || !isNode {
			continue
		}
		if err := b.sameNode(old.PathOf(name), e.ID, PlacedNode{Hash: h, Node: b.fresh[p][h]}); err != nil {
			return err
		}
		delete(edit, name)
	}
	return nil
}

// editFolder makes a folder and sends it as a delta against known, which the remote
// has.
func (b *builder) editFolder(path string, kind layout.Kind, from, known *tree.Dir, edit tree.Edit) (*tree.Dir, error) {
	d, err := from.After(path, kind, edit)
	if err != nil || d == nil {
		return nil, err
	}
	if from != nil {
		b.stale = append(b.stale, from.Object.ID)
	}
	b.v.Reader.Keep(d.Object)
	if known != nil {
		b.addToPack(d.Object, &known.Object)
	} else {
		b.addToPack(d.Object, nil)
	}
	return d, nil
}

// addToPack adds an object to the pack, once, unless it is its own base.
func (b *builder) addToPack(o wire.Object, base *wire.Object) {
	if b.sent[o.ID] || base != nil && base.ID == o.ID {
		return
	}
	b.sent[o.ID] = true
	b.objs = append(b.objs, wire.PackObject{Object: o, Base: base})
}

// writeLists writes threads.yaml and registry.yaml.
func (b *builder) writeLists(root tree.Edit) error {
	if err := b.checkHeads(); err != nil {
		return err
	}
	if len(b.c.Threads) > 0 {
		t, err := b.cur.threads.With(b.countedEntries())
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		b.cur.threads = t
		if err := b.rootFile(root, layout.ThreadsName, t.Encode(), statefile.MaxThreadsFile); err != nil {
			return err
		}
	}
	if len(b.c.Registry) > 0 {
		r, err := b.cur.registry.With(b.c.Registry)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		b.cur.registry = r
		return b.rootFile(root, layout.RegistryName, r.Encode(), statefile.MaxRegistryFile)
	}
	return nil
}

// checkHeads makes sure that every head that is set is in its thread's folder.
func (b *builder) checkHeads() error {
	for id, e := range b.c.Threads {
		if e == nil {
			return fmt.Errorf("%w: thread %s: no entry; a thread is taken off by Archive", ErrInvalid, id)
		}
		d, err := b.v.Reader.Below(b.ctx, b.cur.threadDirs, string(id))
		if err != nil {
			return err
		}
		if _, ok := d.Find(layout.FileOf(e.Head)); !ok {
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
func (b *builder) rootFile(root tree.Edit, name string, data []byte, most int) error {
	if len(data) > most {
		return fmt.Errorf("%w: %s would have %d bytes, more than %d", ErrInvalid, name, len(data), most)
	}
	o := wire.NewObject(plumbing.BlobObject, data)
	root.SetFile(name, o.ID)
	var base *wire.Object
	if old, ok := b.v.Reader.Object(b.v.root.IDOf(name)); ok {
		base = &old
	}
	b.addToPack(o, base)
	b.blobs.Add(o)
	return nil
}

// writeCommit writes the root and a commit on top of the current one.
func (b *builder) writeCommit(root tree.Edit, subject, body string, trailers []Trailer) error {
	d, err := b.editFolder("", layout.RootFolder, b.cur.root, b.v.root, root)
	if err != nil {
		return err
	}
	msg, err := commitmsg.Message{Subject: subject, Body: body, Trailers: trailers, SkipCI: true}.Format()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	o, err := b.v.s.commitObject(d.Object.ID, []wire.ID{b.cur.tip}, msg, b.c.Author)
	if err != nil {
		return err
	}
	b.addToPack(o, nil)
	b.blobs.Add(o)
	b.cur.parents, b.cur.tip, b.cur.root = []wire.ID{b.cur.tip}, o.ID, d
	return nil
}

// commitObject makes a state commit, dated by the store's clock. Its author is whose deed
// it is, its committer always the Store's own.
func (s *Store) commitObject(tree wire.ID, parents []wire.ID, msg string, author *Author) (wire.Object, error) {
	committer := s.o.signatureAt(s.o.Now())
	signed := committer
	if author != nil {
		signed.Name, signed.Email = author.Name, author.Email
	}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: tree, Parents: parents, Author: signed, Committer: committer, Message: msg})
	if err != nil {
		return wire.Object{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return wire.NewObject(plumbing.CommitObject, data), nil
}

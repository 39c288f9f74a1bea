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
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/commitmsg"
)

// builder turns a Change into commits on top of a view. cur is the content after
// the commits made so far; deltas are made against the view's, because only that
// is known to be on the remote.
type builder struct {
	ctx  context.Context
	s    *Store
	v    *View
	c    *Change
	cur  view.State
	edit *tree.Edit // of the root, since the last commit
	objs []wire.PackObject
	sent map[wire.ID]bool
	// fresh are the nodes of this change.
	fresh Nodes
	stale []wire.ID // folders that others take the place of
	// threads are the folders of those that the change puts files into, as they are without
	// its nodes and pages.
	threads map[ThreadID]*tree.Dir
}

func newBuilder(ctx context.Context, s *Store, v *View, c *Change) *builder {
	return &builder{ctx: ctx, s: s, v: v, c: c, cur: v.State, edit: &tree.Edit{}, sent: map[wire.ID]bool{}, fresh: Nodes{}, threads: map[ThreadID]*tree.Dir{}}
}

// newReader finds nodes as they are after this change.
func (b *builder) newReader() *view.FolderReader {
	return view.NewFolderReader(b.ctx, b.v, b.fresh, b.baseOf)
}

// baseOf is the folder of a thread without what the change puts into it.
func (b *builder) baseOf(id ThreadID) (*tree.Dir, error) {
	if d, ok := b.threads[id]; ok {
		return d, nil
	}
	return b.v.ThreadFolder(b.ctx, id)
}

// hasContent reports whether the change needs a commit besides an archive commit.
func (c *Change) hasContent() bool {
	return c.Deed || len(c.Nodes) > 0 || len(c.Readable) > 0 || len(c.Threads) > 0 || len(c.Registry) > 0 || len(c.Forks) > 0 || len(c.Reopen) > 0 || len(c.Former) > 0
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
	for id := range b.threads {
		if err := b.moveOlder(id); err != nil {
			return err
		}
	}
	if err := b.putFormer(); err != nil {
		return err
	}
	if err := b.writeLists(); err != nil {
		return err
	}
	if err := b.noteRefs(); err != nil {
		return err
	}
	return b.writeCommit(b.c.Subject, b.c.Body, b.c.Trailers)
}

// noteRefs writes into VERSION how many refs the remote takes in a push, once a refusal has
// told: later jobs need not be refused. Where there is no room for it they are.
func (b *builder) noteRefs() error {
	learnt := int(b.s.learnt.Load())
	if noted := b.cur.Version.Refs; learnt == 0 || noted != 0 && noted <= learnt {
		return nil
	}
	text, err := b.v.RootFile(b.ctx, layout.VersionName)
	if err != nil {
		return err
	}
	if text, err = statefile.SetVersionRefs(text, learnt); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(text) > statefile.MaxVersionFile {
		return nil
	}
	b.cur.Version.Refs = learnt
	return b.rootFile(layout.VersionName, text, statefile.MaxVersionFile)
}

// editThread notes that the change puts files into a thread's folder, which is returned.
func (b *builder) editThread(id ThreadID) (*tree.Dir, error) {
	if err := id.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	d, err := b.baseOf(id)
	if err == nil {
		b.threads[id] = d
	}
	return d, err
}

// takeNodes notes the nodes of the change. Of one place and hash there is one.
func (b *builder) takeNodes() error {
	for _, n := range b.c.Nodes {
		if old, twice := b.fresh[n.Place][n.Hash]; twice {
			if err := checkSamePayload(old, n.Node); err != nil {
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
	folder := b.cur.CasDir
	if n.Place.Thread != "" {
		if folder, err = b.editThread(n.Place.Thread); err != nil {
			return err
		}
	}
	if n.Place.Detail {
		if folder, err = b.v.Reader.Below(b.ctx, folder, layout.DetailDir, string(n.Place.Of)); err != nil {
			return err
		}
	}
	if old, there := folder.Find(n.Place.File(n.Hash)); there {
		if _, known := view.Known(n.Hash); known {
			return nil // compared by check; nobody reads the stored one
		}
		return b.checkSameNode(folder.PathOf(old.Name), old.ID, n)
	}
	blob := b.putFile(n.Place.Path(n.Hash), data, nil)
	b.v.Reader.Decoded(blob.ID, tree.Stored{Hash: n.Hash, Node: n.Node, Checked: n.Place.Of == ""})
	return nil
}

// checkNode makes sure that a node is what its hash says, fits its schema and is what may
// be in its place, and returns its file.
func (b *builder) checkNode(n PlacedNode) ([]byte, error) {
	h, err := n.Node.ComputeHash()
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
	if known, ok := view.Known(n.Hash); ok {
		if err := checkSamePayload(known, n.Node); err != nil {
			return nil, err
		}
	}
	types, err := b.newReader().TypesIn(n.Place)
	if err != nil {
		return nil, asChangeFault(err)
	}
	if err := b.s.source.Schemas.CheckNode(types, n.Node); err != nil {
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
			if err := r.CheckRecord(at.Thread, h, n); err != nil {
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

// checkSameNode refuses a node whose hash is taken by another payload. The stored one
// stays, with its time.
func (b *builder) checkSameNode(path string, id wire.ID, n PlacedNode) error {
	old, err := b.v.Reader.Node(b.ctx, path, id, n.Hash)
	if err != nil {
		return err
	}
	if err := checkSamePayload(old.Node, n.Node); err != nil {
		return fmt.Errorf("store node %s, which %s holds: %w", n.Hash, path, err)
	}
	return nil
}

func checkSamePayload(a, b node.Node) error {
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
	if _, err := b.editThread(id); err != nil {
		return err
	}
	b.putFile(layout.ThreadPath(id)+"/"+layout.PagesDir+"/"+name, text, nil)
	return nil
}

// putFormer puts the lists of former hashes.
func (b *builder) putFormer() error {
	for _, name := range slices.Sorted(maps.Keys(b.c.Former)) {
		data, err := statefile.EncodeFormer(b.c.Former[name])
		if err != nil {
			return fmt.Errorf("%w: the former hashes of %s: %w", ErrInvalid, name, err)
		}
		if layout.FormerFolder.ChildOf(name) != layout.FormerFile {
			return fmt.Errorf("%w: %q is no name of a list of former hashes", ErrInvalid, name)
		}
		b.putFile(layout.FormerDir+"/"+name, data, nil)
	}
	return nil
}

// putFile puts a file at a path, and sends it as a delta against base, if there is one.
func (b *builder) putFile(path string, data []byte, base *wire.Object) wire.Object {
	o := wire.NewObject(plumbing.BlobObject, data)
	b.edit.SetFile(path, o.ID)
	b.addToPack(o, base)
	return o
}

// putFolder sends a folder as a delta against known, and keeps it for the next view.
func (b *builder) putFolder(made, from, known *tree.Dir) {
	var base *wire.Object
	if known != nil {
		base = &known.Object
	}
	b.addToPack(made.Object, base)
	if from != nil && from.Object.ID != made.Object.ID {
		b.stale = append(b.stale, from.Object.ID)
	}
	b.v.Reader.Keep(made.Object)
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
func (b *builder) writeLists() error {
	if err := b.checkHeads(); err != nil {
		return err
	}
	if len(b.c.Threads) > 0 {
		t, err := b.cur.ThreadsFile.With(b.countedEntries())
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		b.cur.ThreadsFile = t
		if err := b.rootFile(layout.ThreadsName, t.Encode(), statefile.MaxThreadsFile); err != nil {
			return err
		}
	}
	if len(b.c.Registry) > 0 {
		r, err := b.cur.RegistryFile.With(b.c.Registry)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		b.cur.RegistryFile = r
		return b.rootFile(layout.RegistryName, r.Encode(), statefile.MaxRegistryFile)
	}
	return nil
}

// checkHeads makes sure that every head that is set is in its thread's folder.
func (b *builder) checkHeads() error {
	for id, e := range b.c.Threads {
		if e == nil {
			return fmt.Errorf("%w: thread %s: no entry; a thread is taken off by Archive", ErrInvalid, id)
		}
		d, err := b.baseOf(id)
		if err != nil {
			return err
		}
		_, fresh := b.fresh[Place{Thread: id}][e.Head]
		if !fresh {
			if d, err = b.v.FolderOf(b.ctx, d, e.Head); err != nil {
				return err
			}
		}
		if _, ok := d.Find(layout.FileOf(e.Head)); !ok && !fresh {
			return fmt.Errorf("%w: thread %s: its head %s is not in its folder", ErrInvalid, id, e.Head)
		}
	}
	for id := range b.threads {
		if _, listed := b.cur.ThreadsFile.Get(id); !listed && b.c.Threads[id] == nil {
			return fmt.Errorf("%w: files for thread %s, which has no entry", ErrStale, id)
		}
	}
	return nil
}

// rootFile writes one of the files at the root, as a delta against the tip's.
func (b *builder) rootFile(name string, data []byte, most int) error {
	if len(data) > most {
		return fmt.Errorf("%w: %s would have %d bytes, more than %d", ErrInvalid, name, len(data), most)
	}
	var base *wire.Object
	if old, ok := b.v.Reader.Object(b.v.Root.IDOf(name)); ok {
		base = &old
	}
	b.v.Reader.Keep(b.putFile(name, data, base))
	return nil
}

// writeCommit writes the root and a commit on top of the current one.
func (b *builder) writeCommit(subject, body string, trailers []Trailer) error {
	d, err := b.edit.Write(b.ctx, b.v.Reader, "", layout.RootFolder, b.cur.Root, b.v.Root, b.putFolder)
	if err != nil {
		return err
	}
	msg, err := commitmsg.Message{Subject: subject, Body: body, Trailers: trailers, SkipCI: true}.Format()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	o, err := b.s.commitObject(d.Object.ID, []wire.ID{b.cur.Commit}, msg, b.c.Author)
	if err != nil {
		return err
	}
	b.addToPack(o, nil)
	b.v.Reader.Keep(o)
	b.cur.Parents, b.cur.Commit, b.cur.Root, b.edit = []wire.ID{b.cur.Commit}, o.ID, d, &tree.Edit{}
	return b.cur.FindFolders(b.ctx, b.v.Reader)
}

// commitObject makes a state commit, dated by the store's clock. Its author is whose deed
// it is, its committer always the Store's own.
func (s *Store) commitObject(tree wire.ID, parents []wire.ID, msg string, author *gitobj.Author) (wire.Object, error) {
	committer := s.o.Author.Sign(s.o.Now())
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

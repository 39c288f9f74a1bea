package gitcas

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/commitmsg"
)

// Attempt is one try at a step that did not become a step: what its agent
// produced, kept on a ref of its own.
type Attempt struct {
	Thread  ThreadID
	Run     string
	Attempt int
	// Parents are the commits that the work was based on: they keep the work
	// tree's unchanged objects connected.
	Parents  []wire.ID
	Nodes    []PlacedNode
	WorkTree wire.ID // the folder as the agent left it; zero when there was none
	Error    string  // why it failed
	// Unlinked is the thread's head that the attempt failed on, where it could be kept and
	// not be linked from the thread: the next step links it. Empty: it is linked, or is not
	// to be.
	Unlinked node.Hash
	At       time.Time
	// Claim is set by ReadAttempt when the ref only keeps the claim of a job that
	// died: there is nothing else then.
	Claim *Claim
}

// maxErrorText is the longest error that an attempt keeps, in bytes.
const maxErrorText = 64 << 10

// BuildAttempt makes the commit of an attempt and the update that creates its
// ref. The objects of the work tree are the caller's to push along. Equal
// arguments give equal objects.
func BuildAttempt(a Attempt) (wire.RefUpdate, []wire.PackObject, error) {
	u := wire.RefUpdate{Name: layout.AttemptRef(a.Thread, a.Run, a.Attempt)}
	fail := func(err error) (wire.RefUpdate, []wire.PackObject, error) {
		return u, nil, fmt.Errorf("keep attempt %d of run %s: %w", a.Attempt, a.Run, err)
	}
	if !a.Thread.Valid() || a.Attempt < 0 {
		return fail(fmt.Errorf("%w: thread %.40q", ErrInvalid, a.Thread))
	}
	var objs []wire.PackObject
	add := func(t plumbing.ObjectType, data []byte) wire.ID {
		o := wire.NewObject(t, data)
		objs = append(objs, wire.PackObject{Object: o})
		return o.ID
	}
	files := &tree.Edit{}
	for _, n := range a.Nodes {
		data, err := EncodeNode(n.Node)
		if err != nil {
			return fail(err)
		}
		files.SetFile(a.nodePath(n), add(plumbing.BlobObject, data))
	}
	text := strings.ToValidUTF8(a.Error, "\uFFFD")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "\n…\n"
	}
	files.SetFile(layout.AttemptError, add(plumbing.BlobObject, []byte(text)))
	if a.Unlinked != "" {
		files.SetFile(layout.AttemptUnlinked, add(plumbing.BlobObject, []byte(a.Unlinked+"\n")))
	}
	if !a.WorkTree.IsZero() {
		files.Set(gitobj.Entry{Name: layout.AttemptWork, Mode: filemode.Dir, ID: a.WorkTree})
		if a.WorkTree == wire.EmptyTree {
			add(plumbing.TreeObject, nil)
		}
	}
	root, err := files.Write(context.Background(), nil, "", layout.AttemptFolder, nil, nil, func(d, _, _ *tree.Dir) {
		objs = append(objs, wire.PackObject{Object: d.Object})
	})
	if err != nil {
		return fail(err)
	}
	commit, err := attemptCommit(a, root.Object.ID, text)
	if err != nil {
		return fail(err)
	}
	u.New = add(plumbing.CommitObject, commit)
	sortObjects(objs)
	return u, objs, nil
}

// nodePath is where a node goes in the tree of the attempt's commit.
func (a Attempt) nodePath(n PlacedNode) string {
	path := n.Place.Path(n.Hash)
	if rest, ok := strings.CutPrefix(path, layout.ThreadPath(a.Thread)+"/"); ok {
		return layout.AttemptThread + "/" + rest
	}
	return path
}

func attemptCommit(a Attempt, tree wire.ID, text string) ([]byte, error) {
	subject := fmt.Sprintf("attempt %d of run %s", a.Attempt, a.Run)
	msg, err := commitmsg.Message{Subject: subject, Body: text, SkipCI: true, Trailers: []Trailer{
		{Key: "Uwf-Thread", Value: string(a.Thread)}, {Key: "Uwf-Run", Value: fmt.Sprintf("%s attempt %d", a.Run, a.Attempt)},
	}}.Format()
	if err != nil {
		return nil, err
	}
	sig := view.Uwf.Sign(time.Unix(max(a.At.Unix(), 0), 0))
	return gitobj.EncodeCommit(gitobj.Commit{Tree: tree, Parents: a.Parents, Author: sig, Committer: sig, Message: msg})
}

// sortObjects puts objects in an order that doesn't depend on Go's maps.
func sortObjects(objs []wire.PackObject) {
	slices.SortFunc(objs, func(a, b wire.PackObject) int { return slices.Compare(a.ID[:], b.ID[:]) })
}

// ReadAttempt reads the attempt that a ref holds. Its nodes are checked like any
// other. A ref that is not there is wire.ErrNotFound.
func (s *Store) ReadAttempt(ctx context.Context, v *View, ref string) (Attempt, error) {
	a, err := parseAttemptRef(ref)
	if err != nil {
		return a, err
	}
	id, ok := v.Ref(ref)
	if !ok {
		l, err := s.source.Remote.List(ctx, ref)
		if err != nil {
			return a, fmt.Errorf("read %s: %w", ref, err)
		}
		if id, ok = l.Refs[ref]; !ok {
			return a, fmt.Errorf("read %s: %w", ref, &wire.RemoteError{Op: "list refs", URL: s.source.Remote.URL(), Ref: ref, Kind: wire.ErrNotFound})
		}
	}
	objs, err := v.ReadAttemptCommits(ctx, id)
	if err != nil {
		return a, fmt.Errorf("read %s: %w", ref, err)
	}
	r := &attemptReader{ctx: ctx, s: s, v: v, ref: ref, objs: objs, a: a}
	if err := r.readCommit(id); err != nil {
		return a, err
	}
	return r.a, nil
}

// Unlinked are those of some attempts' refs that were kept and could not be linked from their
// thread, see Attempt.Unlinked. It takes one fetch; what holds no attempt is none of them.
func (s *Store) Unlinked(ctx context.Context, v *View, refs []string) ([]string, error) {
	var wants []wire.ID
	for _, ref := range refs {
		if id, ok := v.Ref(ref); ok && !slices.Contains(wants, id) {
			wants = append(wants, id)
		}
	}
	if len(wants) == 0 {
		return nil, nil
	}
	objs, err := v.ReadAttemptCommits(ctx, wants...)
	switch {
	case errors.Is(err, wire.ErrNotFound):
		return nil, nil // deleted since they were listed
	case err != nil:
		return nil, err
	}
	r := &attemptReader{objs: objs}
	return slices.DeleteFunc(slices.Clone(refs), func(ref string) bool {
		id, _ := v.Ref(ref)
		c, err := gitobj.DecodeCommit(objs[id].Data)
		if err != nil {
			return true
		}
		root, err := r.readDir("", layout.AttemptFolder, c.Tree)
		return err != nil || root.IDOf(layout.AttemptUnlinked).IsZero()
	}), nil
}

// parseAttemptRef takes the ref's name apart.
func parseAttemptRef(ref string) (Attempt, error) {
	r := layout.ParseRef(ref)
	if r.Run == "" {
		return Attempt{}, fmt.Errorf("%w: %.100q is no ref of an attempt", ErrInvalid, ref)
	}
	return Attempt{Thread: r.Thread, Run: r.Run, Attempt: r.Attempt}, nil
}

// attemptReader reads the commit of an attempt.
type attemptReader struct {
	ctx   context.Context
	s     *Store
	v     *View
	ref   string
	objs  wire.Objects
	fresh Nodes
	a     Attempt
}

func (r *attemptReader) readCommit(id wire.ID) error {
	o := r.objs[id]
	if o.Type != plumbing.CommitObject {
		return tree.Damaged(r.ref, "it does not point to a commit")
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return tree.DamagedBy(r.ref, err)
	}
	r.a.Parents, r.a.At = c.Parents, c.Committer.When
	if c.Tree == wire.EmptyTree {
		claim, err := view.ParseClaim(o)
		if err != nil {
			return tree.DamagedBy(r.ref, err)
		}
		r.a.Claim = &claim
		return nil
	}
	root, err := r.readDir("", layout.AttemptFolder, c.Tree)
	if err != nil {
		return err
	}
	r.a.WorkTree = root.IDOf(layout.AttemptWork)
	return r.readNodes(root)
}

func (r *attemptReader) readDir(path string, kind layout.Kind, id wire.ID) (*tree.Dir, error) {
	o, ok := r.objs[id]
	if !ok {
		return nil, tree.Damaged(r.ref, "the remote doesn't send its object %s", id)
	}
	d, err := tree.Parse(path, kind, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.ref, err)
	}
	return d, nil
}

// attemptFilter sends the folders of an attempt with all nodes, see Place.Folder.
const attemptFilter = "tree:3"

// readNodes fetches and checks the nodes of all folders.
func (r *attemptReader) readNodes(root *tree.Dir) error {
	type folder struct {
		place Place
		path  string
		id    wire.ID
		kind  layout.Kind
	}
	var todo []folder
	var wants []wire.ID
	for _, in := range []folder{{Place{}, layout.CasDir, root.IDOf(layout.CasDir), layout.CasFolder}, {Place{Thread: r.a.Thread}, layout.AttemptThread, root.IDOf(layout.AttemptThread), layout.ThreadFolder}} {
		if !in.id.IsZero() {
			todo, wants = append(todo, in), append(wants, in.id)
		}
	}
	for _, name := range []string{layout.AttemptError, layout.AttemptUnlinked} {
		if e, ok := root.Find(name); ok {
			wants = append(wants, e.ID)
		}
	}
	if len(wants) == 0 {
		return nil
	}
	objs, err := r.s.source.Remote.Fetch(r.ctx, wire.FetchRequest{Wants: wants, Depth: 1, Filter: attemptFilter})
	if err != nil {
		return fmt.Errorf("read %s: %w", r.ref, err)
	}
	maps.Copy(r.objs, objs)
	if text := objs[root.IDOf(layout.AttemptError)].Data; len(text) <= 2*maxErrorText {
		r.a.Error = string(text)
	}
	if h := node.Hash(strings.TrimSuffix(string(objs[root.IDOf(layout.AttemptUnlinked)].Data), "\n")); h.Valid() {
		r.a.Unlinked = h
	}
	r.fresh = Nodes{}
	for len(todo) > 0 {
		in := todo[0]
		todo = todo[1:]
		d, err := r.readDir(in.path, in.kind, in.id)
		if err != nil {
			return err
		}
		for _, e := range d.Entries() {
			if place, kind, ok := in.place.Inside(d.Kind, e.Name); ok {
				todo = append(todo, folder{place, d.PathOf(e.Name), e.ID, kind})
			} else if err := r.readNode(in.place, d, e); err != nil && !in.place.Detail {
				return err // what else the agent made is for people: it keeps nobody from going on
			}
		}
	}
	nodes := r.a.Nodes
	r.a.Nodes = nil
	for _, n := range nodes {
		err := r.s.source.Schemas.CheckNode(r.typeGetter(n.Place), n.Node)
		if err != nil && !n.Place.Detail {
			return tree.DamagedUnlessWire(r.ref+": "+r.a.nodePath(n), err)
		}
		if err == nil {
			r.a.Nodes = append(r.a.Nodes, n)
		}
	}
	return nil
}

func (r *attemptReader) readNode(at Place, d *tree.Dir, f gitobj.Entry) error {
	path := r.ref + ": " + d.PathOf(f.Name)
	at, h, ok := at.NodeAt(f.Name)
	if !ok {
		return tree.Damaged(path, "a foreign file")
	}
	o := r.objs[f.ID]
	if o.Type != plumbing.BlobObject || len(o.Data) > tree.MaxNodeFile {
		return tree.Damaged(path, "it is missing, no file, or too large")
	}
	n, err := tree.DecodeNode(path, o)
	if err != nil {
		return err
	}
	if n.Hash != h {
		return tree.Damaged(path, "its content hashes to %s", n.Hash)
	}
	r.fresh.Add(at, h, n.Node)
	r.a.Nodes = append(r.a.Nodes, PlacedNode{Hash: h, Node: n.Node, Place: at})
	return nil
}

// typeGetter finds the types of nodes in one place: there, else among the shared ones.
func (r *attemptReader) typeGetter(at Place) node.Getter {
	shared, _ := view.NewFolderReader(r.ctx, r.v, r.fresh, nil).TypesIn(Place{}) // no record is asked for these
	return node.GetterFunc(func(h node.Hash) (node.Node, error) {
		if _, known := view.Known(h); !known && at.Of != "" {
			for _, p := range []Place{{Thread: at.Thread, Of: at.Of}, at} {
				if n, ok := r.fresh[p][h]; ok {
					return n, nil
				}
			}
		}
		return shared.Get(h)
	})
}

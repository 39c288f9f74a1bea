package gitcas

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/wire"
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
	At       time.Time
	// Claim is set by ReadAttempt when the ref only keeps the claim of a job that
	// died: there is nothing else then.
	Claim *Claim
}

// Names in the tree of an attempt's commit.
const (
	attemptNodes = "nodes"     // what would go to the thread's folder
	attemptError = "error.txt" // why it failed
	attemptWork  = "work"      // the work tree
)

// maxErrorText is the longest error that an attempt keeps, in bytes.
const maxErrorText = 64 << 10

// BuildAttempt makes the commit of an attempt and the update that creates its
// ref. The objects of the work tree are the caller's to push along. Equal
// arguments give equal objects.
func BuildAttempt(a Attempt) (wire.RefUpdate, []wire.PackObject, error) {
	u := wire.RefUpdate{Name: AttemptRef(a.Thread, a.Run, a.Attempt)}
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
	folders := map[string]dirEdit{attemptNodes: {}, detailDir: {}, casDir: {}}
	for _, n := range a.Nodes {
		data, err := node.EncodeFile(n.Node)
		if err != nil {
			return fail(err)
		}
		folders[attemptFolderOf(n.Place)].file(nodeFile(n.Hash), add(plumbing.BlobObject, data))
	}
	text := strings.ToValidUTF8(a.Error, "\uFFFD")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "\n…\n"
	}
	root := dirEdit{}
	root.file(attemptError, add(plumbing.BlobObject, []byte(text)))
	for name, edit := range folders {
		d, err := (*dir)(nil).with(name, edit)
		if err != nil {
			return fail(err)
		}
		if d != nil {
			root.folder(name, d)
			objs = append(objs, wire.PackObject{Object: d.obj})
		}
	}
	if !a.WorkTree.IsZero() {
		root.folder(attemptWork, &dir{obj: wire.Object{ID: a.WorkTree}})
		if a.WorkTree == wire.EmptyTree {
			objs = append(objs, wire.PackObject{Object: wire.NewObject(plumbing.TreeObject, nil)})
		}
	}
	d, err := (*dir)(nil).with("", root)
	if err != nil {
		return fail(err)
	}
	objs = append(objs, wire.PackObject{Object: d.obj})
	commit, err := attemptCommit(a, d.obj.ID, text)
	if err != nil {
		return fail(err)
	}
	u.New = add(plumbing.CommitObject, commit)
	sortObjects(objs)
	return u, objs, nil
}

func attemptFolderOf(p Place) string {
	switch {
	case p.Thread == "":
		return casDir
	case p.Detail:
		return detailDir
	}
	return attemptNodes
}

func attemptCommit(a Attempt, tree wire.ID, text string) ([]byte, error) {
	subject := fmt.Sprintf("attempt %d of run %s", a.Attempt, a.Run)
	msg, err := statefile.Message(subject, text, []Trailer{
		{Key: "Uwf-Thread", Value: string(a.Thread)}, {Key: "Uwf-Run", Value: fmt.Sprintf("%s attempt %d", a.Run, a.Attempt)},
	})
	if err != nil {
		return nil, err
	}
	sig := gitobj.Signature{Name: defaultAuthor.Name, Email: defaultAuthor.Email, When: time.Unix(max(a.At.Unix(), 0), 0).UTC()}
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
		l, err := s.remote.List(ctx, ref)
		if err != nil {
			return a, fmt.Errorf("read %s: %w", ref, err)
		}
		if id, ok = l.Refs[ref]; !ok {
			return a, fmt.Errorf("read %s: %w", ref, &wire.Error{Op: "list refs", URL: s.remote.URL(), Ref: ref, Kind: wire.ErrNotFound})
		}
	}
	objs, err := s.remote.Fetch(ctx, wire.FetchRequest{Wants: []wire.ID{id}, Depth: 1, Filter: tipFilter})
	if err != nil {
		return a, fmt.Errorf("read %s: %w", ref, err)
	}
	r := &attemptReader{ctx: ctx, v: v, ref: ref, cache: newCache(), a: a}
	r.cache.add(objs)
	if err := r.read(id); err != nil {
		return a, err
	}
	return r.a, nil
}

// parseAttemptRef takes the ref's name apart.
func parseAttemptRef(ref string) (Attempt, error) {
	thread, ok := threadOfRef(ref, attemptFolder)
	rest := strings.TrimPrefix(ref, AttemptRefPrefix(thread))
	dot := strings.LastIndexByte(rest, '.')
	if !ok || dot < 1 {
		return Attempt{}, fmt.Errorf("%w: %.100q is no ref of an attempt", ErrInvalid, ref)
	}
	n, err := strconv.Atoi(rest[dot+1:])
	if err != nil || n < 0 {
		return Attempt{}, fmt.Errorf("%w: %.100q is no ref of an attempt", ErrInvalid, ref)
	}
	return Attempt{Thread: thread, Run: rest[:dot], Attempt: n}, nil
}

// attemptReader reads the commit of an attempt.
type attemptReader struct {
	ctx   context.Context
	v     *View
	ref   string
	cache *cache
	fresh map[node.Hash]node.Node
	a     Attempt
}

func (r *attemptReader) read(id wire.ID) error {
	o, _ := r.cache.get(id)
	if o.Type != plumbing.CommitObject {
		return content(r.ref, "it does not point to a commit")
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return contentErr(r.ref, err)
	}
	r.a.Parents, r.a.At = c.Parents, c.Committer.When
	if c.Tree == wire.EmptyTree {
		claim, err := parseClaim(o)
		if err != nil {
			return contentErr(r.ref, err)
		}
		r.a.Claim = &claim
		return nil
	}
	root, err := r.dir("", c.Tree, checkAttempt)
	if err != nil {
		return err
	}
	r.a.WorkTree = root.id(attemptWork)
	if blob, ok := r.cache.get(root.id(attemptError)); ok && len(blob.Data) <= 2*maxErrorText {
		r.a.Error = string(blob.Data)
	}
	return r.nodes(root)
}

func checkAttempt(e gitobj.Entry) error {
	switch e.Name {
	case attemptNodes, detailDir, casDir, attemptWork:
		return folderEntry(e)
	case attemptError:
		return regular(e)
	}
	return errForeign
}

func (r *attemptReader) dir(path string, id wire.ID, check func(gitobj.Entry) error) (*dir, error) {
	o, ok := r.cache.get(id)
	if !ok {
		return nil, content(r.ref, "the remote doesn't send its object "+id.String())
	}
	d, err := parseDir(path, o, check)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.ref, err)
	}
	return d, nil
}

// nodes fetches and checks the nodes of all folders.
func (r *attemptReader) nodes(root *dir) error {
	var dirs []*dir
	var wants []wire.ID
	for _, name := range []string{casDir, attemptNodes, detailDir} {
		e, ok := root.get(name)
		if !ok {
			continue
		}
		d, err := r.dir(name, e.ID, checkCas)
		if err != nil {
			return err
		}
		dirs = append(dirs, d)
		for _, f := range d.entries {
			wants = append(wants, f.ID)
		}
	}
	if wants = r.cache.missing(wants); len(wants) > 0 {
		objs, err := r.v.s.remote.Fetch(r.ctx, wire.FetchRequest{Wants: wants, Depth: 1, Filter: onlyWanted})
		if err != nil {
			return fmt.Errorf("read %s: %w", r.ref, err)
		}
		r.cache.add(objs)
	}
	r.fresh = map[node.Hash]node.Node{}
	for _, d := range dirs {
		for _, f := range d.entries {
			if err := r.node(d, f); err != nil {
				return err
			}
		}
	}
	for _, n := range r.a.Nodes {
		if err := r.v.s.schemas.Check(r, n.Node); err != nil {
			return damagedUnlessWire(r.ref+": "+nodeFile(n.Hash), err)
		}
	}
	return nil
}

func (r *attemptReader) node(d *dir, f gitobj.Entry) error {
	path := r.ref + ": " + d.at(f.Name)
	o, _ := r.cache.get(f.ID)
	if o.Type != plumbing.BlobObject || len(o.Data) > MaxNodeFile {
		return content(path, "it is missing, no file, or too large")
	}
	n, err := decodeNode(path, o)
	if err != nil {
		return err
	}
	h, _ := nodeOf(f.Name)
	if n.hash != h {
		return content(path, fmt.Sprintf("its content hashes to %s", n.hash))
	}
	place := Place{}
	if d.path != casDir {
		place = Place{Thread: r.a.Thread, Detail: d.path == detailDir}
	}
	r.fresh[h] = n.node
	r.a.Nodes = append(r.a.Nodes, PlacedNode{Hash: h, Node: n.node, Place: place})
	return nil
}

// Get implements node.Getter over the attempt's own nodes and the view's.
func (r *attemptReader) Get(h node.Hash) (node.Node, error) {
	if n, ok := r.fresh[h]; ok {
		return n, nil
	}
	return r.v.Get(r.ctx, h)
}

package gitcas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/view"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
)

// Found is a node and where it was found.
type Found struct {
	Hash  node.Hash
	Node  node.Node
	Place Place
	Ended *Ended // set when the thread of Place has ended
}

// AmbiguousError: a bare hash names several nodes.
type AmbiguousError struct {
	Hash   node.Hash
	Places []Place // of each one the first that was found
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s names %d different nodes:", e.Hash, len(e.Places))
	for _, p := range e.Places {
		b.WriteString("\n  " + p.Path(e.Hash))
	}
	return b.String()
}

// Find looks a bare hash up: among what is built in, in cas/ and in the folders of all
// live threads; where it is in none of these, among the steps of ended threads. What
// ended threads refer to is found through the thread, see FindIn. A hash that
// names several nodes is an *AmbiguousError, one that is nowhere node.ErrNotFound.
func Find(ctx context.Context, v *View, h node.Hash) (Found, error) {
	if !h.Valid() {
		return Found{}, fmt.Errorf("%w: %w: %.40q", ErrInvalid, node.ErrInvalidHash, h)
	}
	if n, ok := view.Known(h); ok {
		return Found{Hash: h, Node: n}, nil
	}
	q := &search{ctx: ctx, v: v, h: h}
	if e, ok := v.CasDir.Find(layout.FileOf(h)); ok {
		q.spots = append(q.spots, foundFile{Place{}, v.CasDir.PathOf(e.Name), e.ID})
	}
	threads := lists.Map(v.ThreadsDir.Entries(), func(e gitobj.Entry) ThreadID { return ThreadID(e.Name) })
	f, err := q.searchThreads(threads)
	if !errors.Is(err, node.ErrNotFound) {
		return f, err
	}
	return findInEnded(ctx, v, h)
}

// FindIn is Find in one thread of a view, live or past: among its records, and all that
// these refer to.
func FindIn(ctx context.Context, v *View, id ThreadID, h node.Hash) (Found, error) {
	return (&search{ctx: ctx, v: v, h: h}).searchThreads([]ThreadID{id})
}

// search looks for the files of one name in the folders of threads.
type search struct {
	ctx   context.Context
	v     *View
	h     node.Hash
	spots []foundFile
}

// foundFile is a file that was found.
type foundFile struct {
	place Place
	path  string
	id    wire.ID
}

// searchFolder is a folder to look into.
type searchFolder struct {
	place Place
	path  string
	id    wire.ID
	kind  layout.Kind
}

// foldersAtOnce is how many folders of threads are fetched in one request: it
// bounds the memory that a search takes.
const foldersAtOnce = 200

// searchThreads searches threads, and reads what it found.
func (q *search) searchThreads(threads []ThreadID) (Found, error) {
	var todo []searchFolder
	for _, id := range threads {
		if e, ok := q.v.ThreadsDir.Find(string(id)); ok {
			todo = append(todo, searchFolder{Place{Thread: id}, layout.ThreadPath(id), e.ID, layout.ThreadFolder})
		}
	}
	// From folders to the folders in them: a few requests, however many there are.
	for len(todo) > 0 {
		var next []searchFolder
		for chunk := range slices.Chunk(todo, foldersAtOnce) {
			more, err := q.listFolders(chunk)
			if err != nil {
				return Found{}, err
			}
			next = append(next, more...)
		}
		todo = next
	}
	return q.readSpots()
}

// listFolders lists folders, which are not kept, and returns those in them.
func (q *search) listFolders(folders []searchFolder) ([]searchFolder, error) {
	wants := lists.Map(folders, func(f searchFolder) wire.ID { return f.id })
	objs, err := q.v.Source.Remote.Fetch(q.ctx, wire.FetchRequest{Wants: wants, Depth: 1, Filter: tree.OnlyWanted})
	if err != nil {
		return nil, fmt.Errorf("read the folders of threads: %w", err)
	}
	var next []searchFolder
	for _, f := range folders {
		o, ok := objs[f.id]
		if !ok {
			return nil, tree.Damaged(f.path, "the remote doesn't send its object %s", f.id)
		}
		d, err := tree.Parse(f.path, f.kind, o)
		if err != nil {
			return nil, err
		}
		for _, e := range d.Entries() {
			if place, kind, ok := f.place.Inside(d.Kind, e.Name); ok {
				next = append(next, searchFolder{place, d.PathOf(e.Name), e.ID, kind})
			} else if p, h, ok := f.place.NodeAt(e.Name); ok && h == q.h {
				q.spots = append(q.spots, foundFile{p, d.PathOf(e.Name), e.ID})
			}
		}
	}
	return next, nil
}

// readSpots reads what the files hold: all must be the same node.
func (q *search) readSpots() (Found, error) {
	ids := lists.Map(q.spots, func(s foundFile) wire.ID { return s.id })
	if err := q.v.Reader.Fetch(q.ctx, ids...); err != nil {
		return Found{}, err
	}
	var found []Found
	sums := map[node.Digest]bool{}
	for _, s := range q.spots {
		n, err := q.v.Reader.Node(q.ctx, s.path, s.id, q.h)
		if err != nil {
			return Found{}, err
		}
		sum, err := n.Node.Sum()
		if err != nil {
			return Found{}, tree.DamagedBy(s.path, err)
		}
		if !sums[sum] {
			sums[sum] = true
			found = append(found, Found{Hash: q.h, Node: n.Node, Place: s.place})
		}
	}
	switch len(found) {
	case 0:
		return Found{}, fmt.Errorf("%w: %s, neither in cas/ nor in a live thread", node.ErrNotFound, q.h)
	case 1:
		return found[0], q.checkFound(found[0])
	}
	return Found{}, &AmbiguousError{Hash: q.h, Places: lists.Map(found, func(f Found) Place { return f.Place })}
}

// checkFound checks a node in its place: a record refers to it, with this digest. What no
// record refers to must fit a schema that is in its place.
func (q *search) checkFound(f Found) error {
	if _, err := q.v.In(q.ctx, f.Place).Get(f.Hash); !errors.Is(err, node.ErrNotFound) {
		return err
	}
	types, err := view.NewFolderReader(q.ctx, q.v, nil, nil).TypesIn(f.Place)
	if err != nil {
		return err
	}
	return tree.DamagedUnlessWire(f.Place.Path(f.Hash), q.v.Source.Schemas.CheckNode(types, f.Node))
}

func findInEnded(ctx context.Context, v *View, h node.Hash) (Found, error) {
	f := Found{Hash: h}
	var e Ended
	ok := false
	err := v.History(ctx, time.Time{}, func(line Ended) error {
		if line.Head != h && !slices.Contains(line.Steps, h) {
			return nil
		}
		e, ok = line, true
		return ErrStop
	})
	if err != nil {
		return f, err
	}
	if !ok {
		return f, fmt.Errorf("%w: %s, neither in cas/, nor in a live thread, nor a step of an ended one", node.ErrNotFound, h)
	}
	past, err := v.LoadEnded(ctx, e)
	if err != nil {
		return f, err
	}
	f.Place, f.Ended = Place{Thread: e.Thread}, &e
	f.Node, err = past.In(ctx, f.Place).Get(h)
	return f, err
}

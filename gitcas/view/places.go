package view

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/tree"
)

// In finds the nodes of one place, and beside them only what is built in and, for what
// a record refers to, the workflow that its thread was started with. Below a record it
// finds what that refers to and no more, each checked against the SHA-256 that the
// record has for it. A node that is not there is node.ErrNotFound.
func (v *View) In(ctx context.Context, p layout.Place) node.Getter {
	if p.Thread == "" {
		return v.Getter(ctx)
	}
	return node.GetterFunc(func(h node.Hash) (node.Node, error) {
		if n, ok := known()[h]; ok {
			return n, nil
		}
		if p.Of == "" {
			return (&FolderReader{ctx: ctx, v: v}).readRecord(p.Thread, h)
		}
		nodes, err := placeReader{v}.closedNodes(ctx, p)
		if err != nil {
			return node.Node{}, err
		}
		n, ok := nodes[h]
		if !ok {
			return n, fmt.Errorf("%w: %s, not in %s", node.ErrNotFound, h, p)
		}
		return n, nil
	})
}

// placeReader reads what lies in the places of a thread's folder.
type placeReader struct{ *View }

// closedNodes are the nodes that a record refers to, checked. They are worked out once.
func (v placeReader) closedNodes(ctx context.Context, p layout.Place) (node.Map, error) {
	if nodes, ok := v.closed.Get(p); ok {
		return nodes, nil
	}
	nodes, err := (&FolderReader{ctx: ctx, v: v.View}).readClosed(p)
	if err == nil {
		v.closed.Put(p, nodes)
	}
	return nodes, err
}

// definition is a workflow with its role schemas.
type definition struct {
	nodes  node.Map
	digest node.Digest
}

// readDefinition reads a workflow and all that it refers to, from cas/.
func (v placeReader) readDefinition(ctx context.Context, h node.Hash) (definition, error) {
	d, ok := v.flows.Get(h)
	if ok {
		return d, nil
	}
	if !prefetcher(v).smallCas() {
		if err := v.Reader.Fetch(ctx, prefetcher(v).casFiles(map[node.Hash]bool{h: true})...); err != nil {
			return d, err
		}
		if err := prefetcher(v).prefetchRefs(ctx, h); err != nil {
			return d, err
		}
	}
	d, err := v.Source.closeDefinition(v.Getter(ctx), h)
	if errors.Is(err, node.ErrNotFound) {
		err = tree.DamagedBy(layout.CasDir+"/"+layout.FileOf(h), fmt.Errorf("it is the thread's workflow, and it is not whole: %w", err))
	}
	if err == nil {
		v.flows.Put(h, d)
	}
	return d, err
}

// closeDefinition collects a workflow and all that it refers to.
func (s Source) closeDefinition(g node.Getter, h node.Hash) (definition, error) {
	c := node.Closure{Schemas: s.Schemas, Getter: g}
	digest, err := c.ComputeDigest(h)
	return definition{c.Nodes, digest}, err
}

// Definition is the digest of a workflow with its role schemas, as a StartNode has it.
// more are nodes that are not stored yet.
func (v *View) Definition(ctx context.Context, h node.Hash, more map[node.Hash]node.Node) (node.Digest, error) {
	if len(more) == 0 {
		d, err := placeReader{v}.readDefinition(ctx, h)
		return d.digest, err
	}
	d, err := v.Source.closeDefinition(node.GetterFunc(func(h node.Hash) (node.Node, error) {
		if n, ok := more[h]; ok {
			return n, nil
		}
		return v.Get(ctx, h)
	}), h)
	return d.digest, err
}

// PlacedNode is a node to store and where.
type PlacedNode struct {
	Hash  node.Hash
	Node  node.Node
	Place layout.Place
}

// Nodes are nodes by where they are, or are to go.
type Nodes map[layout.Place]node.Map

// Add puts a node into its place.
func (p Nodes) Add(at layout.Place, h node.Hash, n node.Node) {
	if p[at] == nil {
		p[at] = node.Map{}
	}
	p[at][h] = n
}

// In finds the nodes of one place, and what is shared: the built-in ones, and those of
// the zero Place. Nothing stands for these.
func (p Nodes) In(at layout.Place) node.Getter {
	return node.GetterFunc(func(h node.Hash) (node.Node, error) {
		if n, ok := known()[h]; ok {
			return n, nil
		}
		if n, ok := p[layout.Place{}][h]; ok {
			return n, nil
		}
		return p[at].Get(h)
	})
}

// known are the nodes that every uwf has without reading them.
var known = sync.OnceValue(func() node.Map {
	out := node.Map{}
	maps.Copy(out, record.Schemas())
	maps.Copy(out, node.Builtin())
	return out
})

// Known is a node that every uwf has without reading it.
func Known(h node.Hash) (node.Node, bool) {
	n, ok := known()[h]
	return n, ok
}

// unplaced stands for the hash of a record that is not known yet.
const unplaced node.Hash = "0000000000000"

// NextPlace is the place of what a step refers to, as long as the step has no hash: see
// View.Complete.
func NextPlace(detail bool) layout.Place { return layout.Place{Of: unplaced, Detail: detail} }

// Complete gives a step that follows a thread's records its digests and makes its node.
// own are the nodes that it refers to; of their places only Detail, and whether they are
// shared, is looked at. records are earlier attempts that it names and that are stored
// with it. It returns the step's hash and all nodes of it, each in its place.
func (v *View) Complete(ctx context.Context, id layout.ThreadID, step record.Step, at time.Time, own, records []PlacedNode) (node.Hash, []PlacedNode, error) {
	r := &FolderReader{ctx: ctx, v: v, fresh: Nodes{}}
	for _, n := range own {
		p := layout.Place{}
		if n.Place != (layout.Place{}) {
			p = layout.Place{Thread: id, Of: unplaced, Detail: n.Place.Detail}
		}
		r.fresh.Add(p, n.Hash, n.Node)
	}
	for _, n := range records {
		r.fresh.Add(n.Place, n.Hash, n.Node)
	}
	flow, err := r.readWorkflow(id, step.Start)
	if err != nil {
		return "", nil, err
	}
	nodes, details := r.newClosure(layout.Place{Thread: id, Of: unplaced}, flow), r.newClosure(layout.Place{Thread: id, Of: unplaced, Detail: true}, flow)
	nodes.Trust, details.Trust = true, true // the push checks them
	err = step.SetDigests(func(ref record.Ref) (node.Digest, error) {
		switch ref.To {
		case record.ToOwn:
			return nodes.ComputeDigest(ref.Hash)
		case record.ToDetail:
			return details.ComputeDigest(ref.Hash)
		}
		n, err := r.readRecord(id, ref.Hash)
		if err != nil {
			return "", err
		}
		return n.Sum()
	})
	if err != nil {
		return "", nil, fmt.Errorf("the digests of a step: %w", err)
	}
	n, h, err := step.Node(at)
	if err != nil {
		return "", nil, err
	}
	out := make([]PlacedNode, 0, len(own)+1)
	for _, n := range own {
		if n.Place != (layout.Place{}) {
			n.Place = layout.Place{Thread: id, Of: h, Detail: n.Place.Detail}
		}
		out = append(out, n)
	}
	out = append(out, PlacedNode{Hash: h, Node: n, Place: layout.Place{Thread: id}})
	return h, append(out, sharedTypes(out)...), nil
}

// sharedTypes are the types of nodes that every uwf knows: who reads the branch with git
// alone doesn't.
func sharedTypes(nodes []PlacedNode) []PlacedNode {
	types := map[node.Hash]bool{}
	for _, n := range nodes {
		types[n.Node.Type] = true
	}
	var out []PlacedNode
	for _, h := range slices.Sorted(maps.Keys(types)) {
		if s, ok := record.Schemas()[h]; ok {
			out = append(out, PlacedNode{Hash: h, Node: s})
		}
	}
	return out
}

// FolderReader looks nodes up in the folders of a view's threads, and first among nodes
// that are about to be stored.
type FolderReader struct {
	ctx   context.Context
	v     *View
	fresh Nodes
	// base gives a thread's folder where it is not the view's; nil: the view's.
	base func(layout.ThreadID) (*tree.Dir, error)
}

// NewFolderReader looks first among nodes that are about to be stored. base gives a thread's
// folder where it is not the view's; nil: the view's.
func NewFolderReader(ctx context.Context, v *View, fresh Nodes, base func(layout.ThreadID) (*tree.Dir, error)) *FolderReader {
	return &FolderReader{ctx, v, fresh, base}
}

// folderOf is the one of a thread's folders that has a record, with what that refers to.
func (r *FolderReader) folderOf(id layout.ThreadID, record node.Hash) (*tree.Dir, error) {
	var d *tree.Dir
	var err error
	if r.base != nil {
		d, err = r.base(id)
	} else {
		d, err = r.v.ThreadFolder(r.ctx, id)
	}
	_, fresh := r.fresh[layout.Place{Thread: id}][record]
	if err != nil || fresh || record == unplaced {
		return d, err
	}
	return r.v.FolderOf(r.ctx, d, record)
}

// readShared reads a node of cas/.
func (r *FolderReader) readShared(h node.Hash) (node.Node, error) {
	if n, ok := known()[h]; ok {
		return n, nil
	}
	if n, ok := r.fresh[layout.Place{}][h]; ok {
		return n, nil
	}
	return r.v.Get(r.ctx, h)
}

// readRecord reads a StartNode or StepNode of a thread; node.ErrNotFound where there is none.
func (r *FolderReader) readRecord(id layout.ThreadID, h node.Hash) (node.Node, error) {
	if n, ok := r.fresh[layout.Place{Thread: id}][h]; ok {
		return n, nil
	}
	d, err := r.folderOf(id, h)
	if err != nil {
		return node.Node{}, err
	}
	e, ok := d.Find(layout.FileOf(h))
	if !ok {
		return node.Node{}, fmt.Errorf("%w: %s, not in %s", node.ErrNotFound, h, layout.Place{Thread: id})
	}
	n, err := r.v.readNode(r.ctx, d.PathOf(e.Name), e.ID, h)
	if err == nil && !record.IsRecord(n.Type) {
		err = tree.Damaged(d.PathOf(e.Name), "it is neither a StartNode nor a StepNode")
	}
	return n, err
}

// readWorkflow reads what the thread of a record was started with.
func (r *FolderReader) readWorkflow(id layout.ThreadID, start node.Hash) (node.Map, error) {
	n, err := r.readRecord(id, start)
	if errors.Is(err, node.ErrNotFound) {
		err = tree.Damaged(layout.Place{Thread: id}.Path(start), "the chain needs it, and it is missing")
	}
	if err != nil {
		return nil, err
	}
	s, err := record.ParseStart(n)
	if err != nil {
		return nil, tree.DamagedBy(layout.Place{Thread: id}.Path(start), err)
	}
	var d definition
	if _, fresh := r.fresh[layout.Place{}][s.Workflow]; fresh {
		d, err = r.v.Source.closeDefinition(node.GetterFunc(r.readShared), s.Workflow)
	} else {
		d, err = placeReader{r.v}.readDefinition(r.ctx, s.Workflow)
	}
	if err == nil && s.Digests != nil && s.Digests.Workflow != d.digest {
		err = newExchangedError(layout.CasDir+"/"+layout.FileOf(s.Workflow), "the workflow, with its role schemas, of thread "+string(id))
	}
	return d.nodes, err
}

// newExchangedError is the error for a node that has the right hash and is another one.
func newExchangedError(path, what string) error {
	e := tree.Damaged(path, "it is not what was stored as %s: it has the same hash, and another SHA-256; somebody exchanged it", what)
	e.Err = ErrExchanged
	return e
}

// readClosed reads the nodes that a record refers to under its hash, each with the
// digest that the record has for it: then it is what was checked when it was stored.
// Without digests each is checked against its schema. What a person has said is there
// under its own hash.
func (r *FolderReader) readClosed(p layout.Place) (node.Map, error) {
	n, err := r.readRecord(p.Thread, p.Of)
	if errors.Is(err, node.ErrNotFound) && !p.Detail {
		return r.readAnswer(p)
	}
	if err != nil {
		return nil, err
	}
	if record.IsStart(n.Type) {
		return node.Map{}, nil
	}
	s, err := record.ParseStep(n)
	if err != nil {
		return nil, tree.DamagedBy(layout.Place{Thread: p.Thread}.Path(p.Of), err)
	}
	flow, err := r.readWorkflow(p.Thread, s.Start)
	if err != nil {
		return nil, err
	}
	out := node.Map{}
	own, details := r.newClosure(layout.Place{Thread: p.Thread, Of: p.Of}, flow), r.newClosure(layout.Place{Thread: p.Thread, Of: p.Of, Detail: true}, flow)
	own.Nodes, details.Nodes = out, out
	own.Trust, details.Trust = s.Digests != nil, s.Digests != nil
	for _, ref := range s.Refs() {
		c, at := own, layout.Place{Thread: p.Thread, Of: p.Of}
		switch {
		case ref.To == record.ToDetail && p.Detail:
			c, at.Detail = details, true
		case ref.To != record.ToOwn:
			continue
		}
		what := fmt.Sprintf("the %s of step %s", ref.Field, p.Of)
		digest, err := c.ComputeDigest(ref.Hash)
		switch {
		case errors.Is(err, node.ErrNotFound):
			return nil, tree.DamagedBy(at.Path(ref.Hash), fmt.Errorf("it is %s, and not whole: %w", what, err))
		case err != nil:
			return nil, tree.DamagedUnlessWire(at.Path(ref.Hash), err)
		case ref.Digest != "" && ref.Digest != digest:
			return nil, newExchangedError(at.Path(ref.Hash), what)
		}
	}
	return out, nil
}

// CheckRecord makes sure that all that a record refers to is under its hash, and is what the
// record says.
func (r *FolderReader) CheckRecord(id layout.ThreadID, h node.Hash, n node.Node) (err error) {
	if p := (layout.Place{Thread: id, Of: h, Detail: true}); record.IsStart(n.Type) {
		_, err = r.flowOf(p)
	} else {
		_, err = r.readClosed(p)
	}
	return err
}

// readAnswer reads what a person has said to a thread and no step has taken up yet.
func (r *FolderReader) readAnswer(p layout.Place) (node.Map, error) {
	c := r.newClosure(p, nil)
	if _, err := c.ComputeDigest(p.Of); err != nil {
		return nil, tree.DamagedUnlessWire(p.Path(p.Of), err)
	}
	return c.Nodes, nil
}

// newClosure makes one that looks under the hash of a record, with its details if p is
// these. What is built in, and what is the workflow's, nothing in the folder can stand for.
func (r *FolderReader) newClosure(p layout.Place, flow node.Map) *node.Closure {
	return &node.Closure{Schemas: r.v.Source.Schemas, Alone: record.IsRecord, Getter: node.GetterFunc(func(h node.Hash) (node.Node, error) {
		if n, ok := known()[h]; ok {
			return n, nil
		}
		if n, ok := flow[h]; ok {
			return n, nil
		}
		return r.readOwn(p, h)
	})}
}

// TypesIn finds the types of nodes in a place.
func (r *FolderReader) TypesIn(p layout.Place) (node.Getter, error) {
	if p.Of == "" {
		return node.GetterFunc(r.readShared), nil
	}
	flow, err := r.flowOf(p)
	return r.newClosure(p, flow).Getter, err
}

// flowOf is the workflow of the thread that a record belongs to; of what a person has
// said it is none.
func (r *FolderReader) flowOf(p layout.Place) (node.Map, error) {
	n, err := r.readRecord(p.Thread, p.Of)
	switch {
	case errors.Is(err, node.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case record.IsStart(n.Type):
		return r.readWorkflow(p.Thread, p.Of)
	}
	s, err := record.ParseStep(n)
	if err != nil {
		return nil, tree.DamagedBy(layout.Place{Thread: p.Thread}.Path(p.Of), err)
	}
	return r.readWorkflow(p.Thread, s.Start)
}

// readOwn reads what a record refers to; of the details, where p is these, last.
func (r *FolderReader) readOwn(p layout.Place, h node.Hash) (node.Node, error) {
	d, err := r.folderOf(p.Thread, p.Of)
	if err != nil {
		return node.Node{}, err
	}
	n, err := r.readIn(layout.Place{Thread: p.Thread, Of: p.Of}, d, h)
	if !p.Detail || !errors.Is(err, node.ErrNotFound) {
		return n, err
	}
	if d, err = r.v.Reader.Below(r.ctx, d, layout.DetailDir, string(p.Of)); err != nil {
		return node.Node{}, err
	}
	return r.readIn(p, d, h)
}

// readIn reads a node of one place, checked by its hash alone: who asks checks it against its
// schema, which may be readIn that place as well.
func (r *FolderReader) readIn(at layout.Place, d *tree.Dir, h node.Hash) (node.Node, error) {
	if n, ok := r.fresh[at][h]; ok {
		return n, nil
	}
	e, ok := d.Find(at.File(h))
	if !ok {
		return node.Node{}, fmt.Errorf("%w: %s, not in %s", node.ErrNotFound, h, at)
	}
	if at.Detail && !r.v.Reader.Has(e.ID) {
		// Who reads one turn reads the others too.
		if err := r.v.Reader.FetchEntries(r.ctx, d.Entries()); err != nil {
			return node.Node{}, err
		}
	}
	n, err := r.v.Reader.Node(r.ctx, d.PathOf(e.Name), e.ID, h)
	return n.Node, err
}

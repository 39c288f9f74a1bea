package gitcas

import (
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
)

// countedEntries are the entries to set, those with a new head with what their steps
// took. Only nodes that are at hand are asked: where one is not, nothing is said,
// and readers go by the chain.
func (b *builder) countedEntries() map[ThreadID]*Entry {
	out := make(map[ThreadID]*Entry, len(b.c.Threads))
	for id, e := range b.c.Threads {
		out[id] = e
		if e == nil {
			continue
		}
		if _, known := e.Known(); known {
			continue
		}
		c, err := b.chainAtHand(id, e.Head)
		if err != nil {
			continue
		}
		with := *e
		with.Used = c.Used()
		out[id] = &with
	}
	return out
}

// chainAtHand is the chain from a head with its counts, of which it may have the last step alone.
func (b *builder) chainAtHand(id ThreadID, head node.Hash) (c view.Chain, err error) {
	get, path := func(h node.Hash) (node.Node, error) { return b.readAtHand(id, h) }, layout.ThreadPath(id)
	n, err := get(head)
	if err != nil {
		return c, err
	}
	if s, err := record.ParseStep(n); err == nil && s.Counts != nil {
		return view.Chain{Steps: []view.ChainStep{{Hash: head, Step: s}}, Counts: *s.Counts}, nil
	}
	if c, err = view.FollowChain(head, path, get); err == nil {
		c.Counts, err = c.Count(path, get)
	}
	return c, err
}

// readAtHand is a node of a thread that need not be fetched.
func (b *builder) readAtHand(id ThreadID, h node.Hash) (node.Node, error) {
	if n, ok := b.fresh[Place{Thread: id}][h]; ok {
		return n, nil
	}
	d, err := b.baseOf(id)
	f, ok := d.Find(layout.FileOf(h))
	if err != nil || !ok || !b.v.Reader.Has(f.ID) {
		return node.Node{}, node.ErrNotFound
	}
	n, err := b.v.Reader.Node(b.ctx, d.PathOf(f.Name), f.ID, h)
	return n.Node, err
}

// stepsAtHand are the newest steps of a thread, newest first, and the number (from 1) of the last
// one of these; 0: it is not known.
func (b *builder) stepsAtHand(id ThreadID) (steps []view.ChainStep, first int) {
	entry, _ := b.cur.ThreadsFile.Get(id)
	if set := b.c.Threads[id]; set != nil {
		entry = *set
	}
	for at := &entry.Head; at != nil; {
		n, err := b.readAtHand(id, *at)
		if err != nil {
			break
		}
		s, err := record.ParseStep(n)
		if err != nil {
			break
		}
		steps, at = append(steps, view.ChainStep{Hash: *at, Step: s}), s.Prev
	}
	switch n := len(steps); {
	case n > 0 && steps[n-1].Prev == nil:
		return steps, 1
	case n > 0 && steps[0].Counts != nil:
		return steps, steps[0].Counts.Done.Steps - n + 1
	}
	return steps, 0
}

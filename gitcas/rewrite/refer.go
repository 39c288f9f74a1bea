package rewrite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// follower tells what the node that a hash names is called now.
type follower func(node.Hash) (node.Hash, error)

// newFollower finds what f refers to in the first of some scopes. It is rewritten first.
func (n *nodes) newFollower(f *pendingNode, w *writer, in ...*scope) follower {
	return func(h node.Hash) (node.Hash, error) {
		if _, builtIn := n.known[h]; builtIn {
			return h, nil
		}
		for _, s := range in {
			i, ok := n.locateNode(s, h)
			if !ok {
				continue
			}
			became, err := n.resolveNode(i, w)
			f.was[h], f.now[became.to] = became.was, became.now
			return became.to, err
		}
		return h, nil
	}
}

// renewRefs is a node with what the nodes are called now that it refers to. It reports
// whether anything changed.
func (n *nodes) renewRefs(f *pendingNode, w *writer) (node.Node, bool, error) {
	refs, _, err := record.RefsOf(f.node)
	if f.id.in.isOfRecords() && err == nil && len(refs) > 0 {
		return n.referRecord(f, refs, w)
	}
	follow := n.newFollower(f, w, f.id.in)
	out := f.node
	if out.Type, err = follow(f.node.Type); err != nil {
		return out, false, err
	}
	payload, changed, err := n.followRefs(f.node.Payload, follow)
	out.Payload = payload
	return out, changed || out.Type != f.node.Type, err
}

// referRecord is refer for a StartNode or StepNode: of each of its references it is known
// where it leads. A hash in its texts may be of any of the thread's nodes.
func (n *nodes) referRecord(f *pendingNode, refs []record.Ref, w *writer) (node.Node, bool, error) {
	out := f.node
	was, _ := f.node.Payload.(map[string]any) // RefsOf has read it
	now := maps.Clone(was)
	lead := map[string]follower{}
	for _, r := range refs {
		lead[r.Field] = n.newFollower(f, w, n.targetScope(f.id, r.To))
	}
	text := n.newFollower(f, w, f.id.in, n.scopes.ofRecord(f.id))
	changed := false
	for _, k := range slices.Sorted(maps.Keys(was)) { // the same order always
		follow := lead[k]
		switch {
		case k == "digests":
			continue
		case follow == nil:
			follow = text
		}
		v, other, err := n.followRefs(was[k], follow)
		if err != nil {
			return out, false, err
		}
		now[k], changed = v, changed || other
	}
	if swap := n.renewedDigests(f, refs); len(swap) > 0 {
		now["digests"], changed = node.MapStrings(was["digests"], func(s string) string { return cmp.Or(swap[s], s) }), true
	}
	out.Payload = now
	return out, changed, nil
}

// targetScope is the scope that a reference of a record leads to.
func (n *nodes) targetScope(i nodeID, to record.Target) *scope {
	switch to {
	case record.ToShared:
		return n.scopes.shared
	case record.ToRecord:
		return i.in
	}
	return n.scopes.ofRecord(i)
}

// renewedDigests are the digests of a record that are other ones now, by what they were. One
// that was not right before is left as it is: nobody's forgery is made good here.
func (n *nodes) renewedDigests(f *pendingNode, refs []record.Ref) map[string]string {
	out := map[string]string{}
	for _, r := range refs {
		i, ok := n.locateNode(n.targetScope(f.id, r.To), r.Hash)
		became := n.seen[i]
		if ok && r.Digest != "" && r.Digest == became.was && became.now != became.was && became.now != "" {
			out[string(r.Digest)] = string(became.now)
		}
	}
	return out
}

// followRefs follows every string that is a node's hash, and reports whether any changed.
func (n *nodes) followRefs(v any, follow follower) (out any, changed bool, err error) {
	out = node.MapStrings(v, func(s string) string {
		if err != nil || !node.Hash(s).Valid() {
			return s
		}
		var to node.Hash
		to, err = follow(node.Hash(s))
		changed = changed || string(to) != s
		return string(to)
	})
	return out, changed, err
}

// closedDigest is the digest of a node with what it refers to, as the records that refer to it
// have it; empty where that is not whole.
func (n *nodes) closedDigest(x node.Node, sum node.Digest, k refDigests) node.Digest {
	if record.IsRecord(x.Type) {
		return sum // it has the digests of what it refers to itself
	}
	g := types{n, k}
	refs, err := n.cache.Refs(g, x)
	if err != nil {
		return ""
	}
	d, err := x.Closed(sum, refs, g.digestOf)
	if err != nil {
		return ""
	}
	return d
}

// keepKnown remembers nodes that others are checked against.
func (n *nodes) keepKnown(d node.Digest, x node.Node) {
	if _, twice := n.types[d]; x.Type == node.MetaSchema && d != "" && !twice {
		n.types[d] = x
	}
}

// types are the schemas that a node refers to, and those that are built in.
type types struct {
	n       *nodes
	digests refDigests
}

// Get implements node.Getter.
func (t types) Get(h node.Hash) (node.Node, error) {
	d, err := t.digestOf(h)
	if err != nil {
		return node.Node{}, err
	}
	x, ok := t.n.types[d]
	if !ok {
		return x, fmt.Errorf("%w: %s, as a schema", node.ErrNotFound, h)
	}
	return x, nil
}

func (t types) digestOf(h node.Hash) (node.Digest, error) {
	if d, builtIn := t.n.known[h]; builtIn {
		return d, nil
	}
	if d := t.digests[h]; d != "" {
		return d, nil
	}
	return "", fmt.Errorf("%w: %s", node.ErrNotFound, h)
}

// hasRef reports whether a string is the hash of a node that is referred to.
func (t types) hasRef(s string) bool {
	_, builtIn := t.n.known[node.Hash(s)]
	_, here := t.digests[node.Hash(s)]
	return builtIn || here
}

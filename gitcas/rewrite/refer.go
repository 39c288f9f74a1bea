package rewrite

import (
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// follower tells what the node that a hash names is called now.
type follower func(node.Hash) (node.Hash, error)

// follower finds what f refers to in the first of some scopes. It is rewritten first.
func (n *nodes) follower(f *fresh, w *writer, in ...*scope) follower {
	return func(h node.Hash) (node.Hash, error) {
		if _, builtIn := n.known[h]; builtIn {
			return h, nil
		}
		for _, s := range in {
			i, ok := n.locate(s, h)
			if !ok {
				continue
			}
			became, err := n.resolve(i, w)
			f.was[h], f.now[became.to] = became.was, became.now
			return became.to, err
		}
		return h, nil
	}
}

// refer is a node with what the nodes are called now that it refers to. It reports
// whether anything changed.
func (n *nodes) refer(f *fresh, w *writer) (node.Node, bool, error) {
	refs, _, err := record.RefsOf(f.node)
	if f.id.in.records() && err == nil && len(refs) > 0 {
		return n.referRecord(f, refs, w)
	}
	in := []*scope{f.id.in}
	if f.id.in.records() { // a record of another version
		in = append(in, n.scopes.of(f.id))
	}
	follow := n.follower(f, w, in...)
	out := f.node
	if out.Type, err = follow(f.node.Type); err != nil {
		return out, false, err
	}
	payload, changed, err := n.refs(f.node.Payload, follow)
	out.Payload = payload
	return out, changed || out.Type != f.node.Type, err
}

// referRecord is refer for a StartNode or StepNode: of each of its references it is known
// where it leads. A hash in its texts may be of any of the thread's nodes.
func (n *nodes) referRecord(f *fresh, refs []record.Ref, w *writer) (node.Node, bool, error) {
	out := f.node
	was, _ := f.node.Payload.(map[string]any) // RefsOf has read it
	now := maps.Clone(was)
	lead := map[string]follower{}
	for _, r := range refs {
		lead[r.Field] = n.follower(f, w, n.target(f.id, r.To))
	}
	text := n.follower(f, w, f.id.in, n.scopes.of(f.id))
	changed := false
	for _, k := range slices.Sorted(maps.Keys(was)) { // the same order always
		follow := lead[k]
		switch {
		case k == "digests":
			continue
		case follow == nil:
			follow = text
		}
		v, other, err := n.refs(was[k], follow)
		if err != nil {
			return out, false, err
		}
		now[k], changed = v, changed || other
	}
	if swap := n.renewed(f, refs); len(swap) > 0 {
		now["digests"], changed = node.ReplaceStrings(was["digests"], swap), true
	}
	out.Payload = now
	return out, changed, nil
}

// target is the scope that a reference of a record leads to.
func (n *nodes) target(i nodeID, to record.Target) *scope {
	switch to {
	case record.ToShared:
		return n.scopes.shared
	case record.ToRecord:
		return i.in
	}
	return n.scopes.of(i)
}

// renewed are the digests of a record that are other ones now, by what they were. One
// that was not right before is left as it is: nobody's forgery is made good here.
func (n *nodes) renewed(f *fresh, refs []record.Ref) map[string]string {
	out := map[string]string{}
	for _, r := range refs {
		i, ok := n.locate(n.target(f.id, r.To), r.Hash)
		became := n.seen[i]
		if ok && r.Digest != "" && r.Digest == became.was && became.now != became.was && became.now != "" {
			out[string(r.Digest)] = string(became.now)
		}
	}
	return out
}

// refs follows every string that is a node's hash.
func (n *nodes) refs(v any, follow follower) (any, bool, error) {
	switch x := v.(type) {
	case string:
		if len(x) != node.HashLen || !node.Hash(x).Valid() {
			return v, false, nil
		}
		to, err := follow(node.Hash(x))
		return string(to), string(to) != x, err
	case []any:
		var out []any
		for i, e := range x {
			y, changed, err := n.refs(e, follow)
			if err != nil {
				return nil, false, err
			}
			if changed && out == nil {
				out = slices.Clone(x)
			}
			if out != nil {
				out[i] = y
			}
		}
		if out != nil {
			return out, true, nil
		}
	case map[string]any:
		var out map[string]any
		for _, k := range slices.Sorted(maps.Keys(x)) { // the same order always
			y, changed, err := n.refs(x[k], follow)
			if err != nil {
				return nil, false, err
			}
			if changed && out == nil {
				out = maps.Clone(x)
			}
			if out != nil {
				out[k] = y
			}
		}
		if out != nil {
			return out, true, nil
		}
	}
	return v, false, nil
}

// closed is the digest of a node with what it refers to, as the records that refer to it
// have it; empty where that is not whole.
func (n *nodes) closed(x node.Node, sum node.Digest, k kin) node.Digest {
	if record.IsRecord(x.Type) {
		return sum // it has the digests of what it refers to itself
	}
	g := types{n, k}
	refs, err := n.cache.Refs(g, x)
	if err != nil {
		return ""
	}
	d, err := x.Closed(sum, refs, g.digest)
	if err != nil {
		return ""
	}
	return d
}

// keep remembers nodes that others are checked against.
func (n *nodes) keep(d node.Digest, x node.Node) {
	if _, twice := n.types[d]; x.Type == node.MetaSchema && d != "" && !twice {
		n.types[d] = x
	}
}

// types are the schemas that a node refers to, and those that are built in.
type types struct {
	n   *nodes
	kin kin
}

// Get implements node.Getter.
func (t types) Get(h node.Hash) (node.Node, error) {
	d, err := t.digest(h)
	if err != nil {
		return node.Node{}, err
	}
	x, ok := t.n.types[d]
	if !ok {
		return x, fmt.Errorf("%w: %s, as a schema", node.ErrNotFound, h)
	}
	return x, nil
}

func (t types) digest(h node.Hash) (node.Digest, error) {
	if d, builtIn := t.n.known[h]; builtIn {
		return d, nil
	}
	if d := t.kin[h]; d != "" {
		return d, nil
	}
	return "", fmt.Errorf("%w: %s", node.ErrNotFound, h)
}

// has reports whether a string is the hash of a node that is referred to.
func (t types) has(s string) bool {
	_, builtIn := t.n.known[node.Hash(s)]
	_, here := t.kin[node.Hash(s)]
	return builtIn || here
}

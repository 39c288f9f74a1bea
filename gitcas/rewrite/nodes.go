package rewrite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// nodes rewrites nodes. It knows which hashes changed, and keeps of the nodes
// themselves only those that others are checked against: schemas and workflows.
type nodes struct {
	o      *Options
	named  map[node.Hash]bool
	known  node.Map // built in: never changed
	types  node.Map // schemas and workflows, as they were and as they are now
	cache  node.Schemas
	seen   map[node.Hash]struct{}
	moved  map[node.Hash]node.Hash // only what changed
	fresh  map[node.Hash]*fresh    // nodes of the present commit
	memo   map[memoKey]wire.ID
	depth  int
	report *report
}

// fresh is a node that was read and not yet rewritten.
type fresh struct {
	node   node.Node
	files  []file
	place  Place
	thread string
	busy   bool
	done   bool
}

// file is one file of a node: the same node may stand in several, which differ in
// their time.
type file struct {
	blob wire.Object
	time int64
}

func newNodes(o *Options, rep *report, memo map[memoKey]wire.ID) *nodes {
	n := &nodes{
		o: o, memo: memo, named: map[node.Hash]bool{}, known: node.Map{}, types: node.Map{}, seen: map[node.Hash]struct{}{},
		moved: map[node.Hash]node.Hash{}, fresh: map[node.Hash]*fresh{}, report: rep,
	}
	for _, h := range o.Nodes {
		n.named[h] = true
	}
	for h, s := range record.Schemas() {
		n.known[h] = s
	}
	for h, s := range node.Builtin() {
		n.known[h] = s
	}
	return n
}

// Get implements node.Getter over schemas and workflows.
func (n *nodes) Get(h node.Hash) (node.Node, error) {
	if x, ok := n.known[h]; ok {
		return x, nil
	}
	return n.types.Get(h)
}

// now is the hash that a node has now.
func (n *nodes) now(h node.Hash) node.Hash {
	if to, ok := n.moved[h]; ok {
		return to
	}
	return h
}

// isRef reports whether a string is the hash of a node that was seen.
func (n *nodes) isRef(s string) bool {
	if len(s) != node.HashLen || !node.Hash(s).Valid() {
		return false
	}
	if _, ok := n.seen[node.Hash(s)]; ok {
		return true
	}
	_, ok := n.known[node.Hash(s)]
	return ok
}

// add takes the node of a file, unless it is none: then the file is like any
// other.
func (n *nodes) add(h node.Hash, blob wire.Object, place Place, thread string) bool {
	f, there := n.fresh[h]
	if there && slices.ContainsFunc(f.files, func(x file) bool { return x.blob.ID == blob.ID }) {
		return true
	}
	x, err := node.DecodeFile(blob.Data)
	if err != nil {
		return false
	}
	if got, err := x.Hash(); err != nil || got != h {
		return false
	}
	if !there {
		n.seen[h] = struct{}{}
		f = &fresh{node: x, place: place, thread: thread}
		n.fresh[h] = f
	}
	f.files = append(f.files, file{blob, x.Timestamp})
	return true
}

// maxChain bounds how deep nodes of one commit refer to each other: each level costs
// stack.
const maxChain = 200_000

// resolve is the hash that a node gets. What it refers to is rewritten first.
func (n *nodes) resolve(h node.Hash, w *writer) (node.Hash, error) {
	f, ok := n.fresh[h]
	if !ok || f.done || f.busy {
		return n.now(h), nil
	}
	if n.depth >= maxChain {
		return "", fmt.Errorf("%w: more than %d nodes refer to each other in one commit", ErrUnreadable, maxChain)
	}
	f.busy = true
	n.depth++
	to, err := n.rewrite(h, f, w)
	n.depth--
	if err != nil {
		return "", err
	}
	f.done = true
	if to != h {
		n.moved[h] = to
	}
	return to, nil
}

func (n *nodes) rewrite(h node.Hash, f *fresh, w *writer) (node.Hash, error) {
	for _, x := range f.files {
		n.memo[memoKey{nodeFile, x.blob.ID}] = x.blob.ID
	}
	if _, builtIn := n.known[h]; builtIn {
		return h, nil
	}
	typ, err := n.resolve(f.node.Type, w)
	if err != nil {
		return "", err
	}
	x, changed, err := n.refs(f.node.Payload, w)
	if err != nil {
		return "", err
	}
	out := node.Node{Type: typ, Payload: x}
	purged, err := n.purge(h, &out, f)
	if err != nil {
		return "", err
	}
	n.keep(h, f.node)
	if !changed && !purged && typ == f.node.Type {
		return h, nil
	}
	to, err := out.Hash()
	if err != nil {
		return "", fmt.Errorf("node %s can't be rewritten", h)
	}
	n.keep(to, out)
	if purged {
		n.report.plan.Purged++
	} else {
		n.report.plan.Rehashed++
	}
	return to, n.write(h, to, out, f, w)
}

// write writes the files of a rewritten node.
func (n *nodes) write(h, to node.Hash, out node.Node, f *fresh, w *writer) error {
	if n.o.Verify != nil && n.o.Verify(n, to, out) != nil {
		return fmt.Errorf("node %s can't be rewritten: it would no longer work without what is to be taken out", h)
	}
	for _, x := range f.files {
		out.Timestamp = x.time
		data, err := node.EncodeFile(out)
		if err != nil {
			return fmt.Errorf("node %s can't be rewritten", h)
		}
		n.memo[memoKey{nodeFile, x.blob.ID}] = w.put(plumbing.BlobObject, data, &x.blob)
	}
	return nil
}

// keep remembers nodes that others are checked against.
func (n *nodes) keep(h node.Hash, x node.Node) {
	if x.Type == node.MetaSchema || record.IsWorkflow(x.Type) {
		n.types[h] = x
	}
}

// refs follows every string that is a node's hash.
func (n *nodes) refs(v any, w *writer) (any, bool, error) {
	switch x := v.(type) {
	case string:
		if len(x) != node.HashLen || !node.Hash(x).Valid() {
			return v, false, nil
		}
		to, err := n.resolve(node.Hash(x), w)
		return string(to), string(to) != x, err
	case []any:
		var out []any
		for i, e := range x {
			y, changed, err := n.refs(e, w)
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
			y, changed, err := n.refs(x[k], w)
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

// purge takes texts out of a node's payload, so that it still fits its schema. It
// reports whether anything changed.
func (n *nodes) purge(h node.Hash, x *node.Node, f *fresh) (bool, error) {
	changed := false
	if n.o.Find != nil {
		p, same, err := n.purgeWith(payload{find: n.o.Find}, x, f)
		if err != nil {
			return false, err
		}
		if changed = !same; changed {
			n.report.found(f.place, p.spots[0].at)
		}
	}
	if !n.named[h] {
		return changed, nil
	}
	p, same, err := n.purgeWith(payload{find: n.o.Find, all: true}, x, f)
	switch {
	case err != nil:
		return false, err
	case same && !changed:
		return false, &NothingError{Node: h}
	}
	n.report.named(h, f.thread, p.texts)
	n.report.found(f.place, "")
	return true, nil
}

// purgeWith puts the payload that p makes into x, and reports whether it is as it
// was.
func (n *nodes) purgeWith(p payload, x *node.Node, f *fresh) (*payload, bool, error) {
	schema, _ := n.Get(x.Type)
	p.rule, p.ref = ruleOf(x.Type, schema.Payload), n.isRef
	p.gather(x.Payload)
	for _, at := range p.fixed {
		n.report.name(f.place, at)
	}
	if len(p.spots) == 0 {
		return &p, true, nil
	}
	bound := p.fit(func(v any) error { return n.fits(node.Node{Type: x.Type, Payload: v}) })
	for _, at := range bound {
		n.report.name(f.place, at)
	}
	same, err := samePayload(x.Payload, p.root)
	if err == nil {
		x.Payload = p.root
	}
	return &p, same, err
}

// NothingError: a named node holds no text that could be taken out.
type NothingError struct{ Node node.Hash }

func (e *NothingError) Error() string {
	return fmt.Sprintf("node %s holds no text that could be taken out: names, statuses, numbers and what its schema demands have to stay", e.Node)
}

func (n *nodes) fits(x node.Node) error {
	if x.Type != node.MetaSchema {
		if _, err := n.Get(x.Type); errors.Is(err, node.ErrNotFound) {
			return nil // a node of another store: nothing to fit
		}
	}
	return n.cache.Check(n, x)
}

func samePayload(a, b any) (bool, error) {
	x, err := node.EncodeCBOR(a)
	if err != nil {
		return false, err
	}
	y, err := node.EncodeCBOR(b)
	return string(x) == string(y), err
}

// tokens replaces, in text, the hashes and commit ids that changed.
func (n *nodes) tokens(s string, commits map[wire.ID]wire.ID) string {
	if len(n.moved) == 0 && len(commits) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && wordByte(s[end]) {
			end++
		}
		if end == i {
			i++
			continue
		}
		if to, ok := n.token(s[i:end], commits); ok {
			b.WriteString(s[at:i])
			b.WriteString(to)
			at = end
		}
		i = end
	}
	if at == 0 {
		return s
	}
	b.WriteString(s[at:])
	return b.String()
}

func (n *nodes) token(s string, commits map[wire.ID]wire.ID) (string, bool) {
	switch len(s) {
	case node.HashLen:
		to, ok := n.moved[node.Hash(s)]
		return string(to), ok
	case 40:
		to, ok := commits[plumbing.NewHash(s)]
		return to.String(), ok && strings.ToLower(s) == s
	}
	return "", false
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

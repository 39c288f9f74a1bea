package rewrite

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// nodes rewrites nodes. It knows what became of each, and keeps of the nodes
// themselves only those that others are checked against: schemas.
type nodes struct {
	o       *Options
	known   map[node.Hash]node.Digest // built in: never changed
	scopes  scopes
	types   map[node.Digest]node.Node // schemas, built in ones too, as they were and as they are now
	cache   node.Schemas
	seen    map[nodeID]nodeOutcome
	starts  map[nodeID]node.Hash               // the StartNode of a step
	flows   map[nodeID]node.Hash               // the workflow of a StartNode
	below   map[node.Hash][]node.Hash          // what a shared node refers to
	reached map[node.Hash]map[node.Hash]bool   // what a workflow reaches, worked out of below
	moved   map[string]map[node.Hash]node.Hash // only what changed, by thread
	all     map[node.Hash]node.Hash            // the same of all threads
	names   map[renamed]node.Hash              // of files that changed
	pending map[nodeID]*pendingNode            // nodes of the present commit
	todo    []*pendingNode                     // the same, and those whose names others have, too
	memo    map[memoKey]wire.ID
	depth   int
	report  *report
}

// nodeOutcome is what became of a node.
type nodeOutcome struct {
	to       node.Hash
	was, now node.Digest // with all that it refers to, see node.Closure; empty: it is not whole
}

// pendingNode is a node that was read and not yet rewritten.
type pendingNode struct {
	id       nodeID
	node     node.Node
	sum      node.Digest
	files    []file
	path     string
	was, now refDigests
	busy     bool
	done     bool
}

// refDigests are the digests of the nodes that a node refers to, its type among them, by their
// hashes.
type refDigests map[node.Hash]node.Digest

// file is one file of a node: the same node may stand in several, which differ in
// their time.
type file struct {
	blob wire.Object
	time int64
}

// renamed is a node's file that was written anew: the hash that it had, and the new file.
type renamed struct {
	was  node.Hash
	file wire.ID
}

func newNodes(o *Options, rep *report, memo map[memoKey]wire.ID) *nodes {
	n := &nodes{
		o: o, memo: memo, report: rep, scopes: newScopes(),
		known: map[node.Hash]node.Digest{}, types: map[node.Digest]node.Node{}, seen: map[nodeID]nodeOutcome{},
		starts: map[nodeID]node.Hash{}, flows: map[nodeID]node.Hash{}, below: map[node.Hash][]node.Hash{}, reached: map[node.Hash]map[node.Hash]bool{},
		moved: map[string]map[node.Hash]node.Hash{}, all: map[node.Hash]node.Hash{}, names: map[renamed]node.Hash{}, pending: map[nodeID]*pendingNode{},
	}
	for _, nodes := range []map[node.Hash]node.Node{record.Schemas(), node.Builtin()} {
		for h, s := range nodes {
			if d, err := s.Sum(); err == nil { // a constant
				n.known[h], n.types[d] = d, s
			}
		}
	}
	return n
}

// hashNow is the hash that a node has now.
func (n *nodes) hashNow(in *scope, h node.Hash) node.Hash {
	if i, ok := n.locateNode(in, h); ok && n.seen[i].to != "" {
		return n.seen[i].to
	}
	return h
}

// recordNow is what the hash of a thread's record is now.
func (n *nodes) recordNow(thread string, h node.Hash) node.Hash {
	return n.hashNow(n.scopes.ofThread(thread), h)
}

// sharedNow is what the hash of a shared node is now.
func (n *nodes) sharedNow(h node.Hash) node.Hash { return n.hashNow(n.scopes.shared, h) }

// folderNow is the hash under which that is now which a record refers to. What a person has
// said is under its own hash, of which there is no record.
func (n *nodes) folderNow(own *scope) node.Hash {
	if _, ok := n.locateNode(own.up, own.of); ok {
		return n.hashNow(own.up, own.of)
	}
	return n.hashNow(own, own.of)
}

// answerNow is what the hash of something that a person has said to a thread is now.
func (n *nodes) answerNow(thread string, h node.Hash) node.Hash {
	if h == "" {
		return h
	}
	return n.folderNow(n.scopes.ofRecord(nodeID{n.scopes.ofThread(thread), h}))
}

// addNode takes the node of a file, unless it is none: then the file is like any
// other.
func (n *nodes) addNode(i nodeID, blob wire.Object, path string) {
	x, err := node.DecodeFile(blob.Data)
	if err != nil {
		return
	}
	h, sum, err := x.Identify()
	if err != nil || h != i.hash {
		return
	}
	i.hash = h // not a part of the folder's text, which would be kept with it
	f := n.pending[i]
	if f == nil || f.sum != sum {
		first := f == nil
		f = &pendingNode{id: i, node: x, sum: sum, path: path, was: refDigests{}, now: refDigests{}}
		n.todo = append(n.todo, f)
		if first { // another node of that hash is purged as well, but nothing refers to it
			n.pending[i] = f
			n.noteOrigin(i, x)
		}
	}
	f.files = append(f.files, file{blob, x.Timestamp})
}

// resolveAll rewrites all nodes of the present commit in the order in which git has them:
// cas/ comes first, and what workflows reach decides what a name stands for elsewhere.
func (n *nodes) resolveAll(w *writer) error {
	for _, f := range n.todo {
		if _, err := n.settlePending(f, w); err != nil {
			return err
		}
	}
	n.todo = nil
	clear(n.pending)
	return nil
}

// maxChain bounds how deep nodes of one commit refer to each other: each level costs
// stack.
const maxChain = 200_000

// resolveNode is what became of a node. What it refers to is rewritten first.
func (n *nodes) resolveNode(i nodeID, w *writer) (nodeOutcome, error) {
	if f, ok := n.pending[i]; ok {
		return n.settlePending(f, w)
	}
	return n.seen[i], nil
}

func (n *nodes) settlePending(f *pendingNode, w *writer) (nodeOutcome, error) {
	if f.busy {
		return nodeOutcome{to: f.id.hash}, nil // a circle
	}
	if f.done {
		return n.seen[f.id], nil
	}
	if n.depth >= maxChain {
		return nodeOutcome{}, fmt.Errorf("%w: more than %d nodes refer to each other in one commit", ErrUnreadable, maxChain)
	}
	f.busy = true
	n.depth++
	became, err := n.rewriteNode(f, w)
	n.depth--
	f.busy, f.done = false, true
	if err == nil && n.pending[f.id] == f {
		n.noteFate(f, became)
	}
	return became, err
}

// noteFate remembers what became of a node.
func (n *nodes) noteFate(f *pendingNode, became nodeOutcome) {
	h, thread := f.id.hash, f.id.in.thread
	n.seen[f.id] = became
	if f.id.in == n.scopes.shared {
		n.below[h] = n.schemaRefs(f)
		clear(n.reached)
	}
	if became.to == h {
		return
	}
	if n.moved[thread] == nil {
		n.moved[thread] = map[node.Hash]node.Hash{}
	}
	n.moved[thread][h] = became.to
	if _, twice := n.all[h]; !twice {
		n.all[h] = became.to
	}
}

// schemaRefs are the hashes that a node refers to by its schema, with its type; none where
// that is not whole.
func (n *nodes) schemaRefs(f *pendingNode) []node.Hash {
	refs, err := n.cache.Refs(types{n, f.was}, f.node)
	if err != nil {
		return nil
	}
	return append(refs, f.node.Type)
}

func (n *nodes) rewriteNode(f *pendingNode, w *writer) (nodeOutcome, error) {
	h := f.id.hash
	for _, x := range f.files {
		n.memo[f.memoOf(x)] = x.blob.ID
	}
	if _, builtIn := n.known[h]; builtIn {
		return nodeOutcome{h, f.sum, f.sum}, nil
	}
	out, changed, err := n.renewRefs(f, w)
	if err != nil {
		return nodeOutcome{}, err
	}
	purged := n.purgePayload(&out, f)
	became := nodeOutcome{to: h, was: n.closedDigest(f.node, f.sum, f.was)}
	n.keepKnown(became.was, f.node)
	sum := f.sum
	if changed || purged {
		if became.to, sum, err = out.Identify(); err != nil {
			return nodeOutcome{}, fmt.Errorf("node %s can't be rewritten", h)
		}
	}
	became.now = n.closedDigest(out, sum, f.now)
	n.keepKnown(became.now, out)
	switch {
	case purged:
		n.report.plan.Purged++
	case changed:
		n.report.plan.Rehashed++
	default:
		return became, nil
	}
	return became, n.writeNode(became.to, out, f, w)
}

func (f *pendingNode) memoOf(x file) memoKey { return memoKey{layout.NodeFile, x.blob.ID, f.id.in} }

// writeNode writes the files of a rewritten node.
func (n *nodes) writeNode(to node.Hash, out node.Node, f *pendingNode, w *writer) error {
	h := f.id.hash
	if n.o.Verify != nil && n.o.Verify(types{n, f.now}, to, out) != nil {
		return fmt.Errorf("node %s can't be rewritten: it would no longer work without what is to be taken out", h)
	}
	for _, x := range f.files {
		out.Timestamp = x.time
		data, err := node.EncodeFile(out)
		if err != nil {
			return fmt.Errorf("node %s can't be rewritten", h)
		}
		file := w.putObject(plumbing.BlobObject, data, &x.blob)
		n.memo[f.memoOf(x)], n.names[renamed{h, file}] = file, to
	}
	return nil
}

// purgePayload takes texts out of a node's payload, so that it still fits its schema. It
// reports whether anything changed.
func (n *nodes) purgePayload(x *node.Node, f *pendingNode) bool {
	h := f.id.hash
	p, changed := n.purgeWith(payload{find: n.o.Find}, x, f)
	if changed {
		n.report.noteFound(f.path, p.spots[0].at)
	}
	if !slices.Contains(n.o.Nodes, h) {
		return changed
	}
	p, more := n.purgeWith(payload{find: n.o.Find, all: true}, x, f)
	if !more && !changed {
		n.report.empty[h] = true
		return false
	}
	n.report.noteNamed(h, f.id.in.thread, p.texts)
	n.report.noteFound(f.path, "")
	return true
}

// purgeWith puts the payload that p makes into x, and reports whether it is another one.
func (n *nodes) purgeWith(p payload, x *node.Node, f *pendingNode) (*payload, bool) {
	g := types{n, f.now}
	schema, _ := g.Get(x.Type)
	p.rule, p.ref = ruleOf(x.Type, schema.Payload), g.hasRef
	p.copyValue(x.Payload)
	for _, at := range p.fixed {
		n.report.noteName(f.path, at)
	}
	if len(p.spots) == 0 {
		return &p, false
	}
	bound := p.fitSpots(func(v any) error { return n.checkSchema(g, node.Node{Type: x.Type, Payload: v}) })
	for _, at := range bound {
		n.report.noteName(f.path, at)
	}
	changed := !reflect.DeepEqual(x.Payload, p.root)
	x.Payload = p.root
	return &p, changed
}

// NothingError: a named node holds no text that could be taken out.
type NothingError struct{ Node node.Hash }

func (e *NothingError) Error() string {
	return fmt.Sprintf("node %s holds no text that could be taken out: names, statuses, numbers and what its schema demands have to stay", e.Node)
}

func (n *nodes) checkSchema(g types, x node.Node) error {
	if x.Type != node.MetaSchema {
		if _, err := g.Get(x.Type); errors.Is(err, node.ErrNotFound) {
			return nil // a node of another store: nothing to fit
		}
	}
	return n.cache.CheckNode(g, x)
}

// renewTokens replaces, in a text of a thread, the hashes and commit ids that changed.
func (n *nodes) renewTokens(s, thread string, commits map[wire.ID]wire.ID) string {
	if len(n.all) == 0 && len(commits) == 0 {
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
		if to, ok := n.renewToken(s[i:end], thread, commits); ok {
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

func (n *nodes) renewToken(s, thread string, commits map[wire.ID]wire.ID) (string, bool) {
	switch len(s) {
	case node.HashLen:
		return n.quotedNow(node.Hash(s), thread)
	case 40:
		to, ok := commits[plumbing.NewHash(s)]
		return to.String(), ok && strings.ToLower(s) == s
	}
	return "", false
}

// quotedNow is what a hash in a text of a thread is now, which doesn't say of which place
// it is: of the thread's own nodes, the records first, else of whatever changed.
func (n *nodes) quotedNow(h node.Hash, thread string) (string, bool) {
	if became, ok := n.seen[nodeID{n.scopes.ofThread(thread), h}]; ok && thread != "" {
		return string(became.to), became.to != h
	}
	for _, moved := range []map[node.Hash]node.Hash{n.moved[thread], n.moved[""], n.all} {
		if to, ok := moved[h]; ok {
			return string(to), true
		}
	}
	return "", false
}

func wordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

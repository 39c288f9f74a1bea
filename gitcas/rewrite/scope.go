package rewrite

import (
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// scope is a part of the store in which a hash names one node. Elsewhere it may name
// another one: a hash is only a name, and who chooses a payload can choose its hash.
// So nothing here is kept by a hash alone.
type scope struct {
	thread string    // empty: what all share
	of     node.Hash // what this record refers to; empty: the records of a thread
	up     *scope    // of such a scope: that of the record
}

// nodeID names a node.
type nodeID struct {
	in   *scope
	hash node.Hash
}

// threadScope is the scope that text is rewritten in: that of the thread.
func (s *scope) threadScope() *scope {
	if s.up != nil {
		return s.up
	}
	return s
}

// isOfRecords reports whether the scope is that of a thread's records.
func (s *scope) isOfRecords() bool { return s.thread != "" && s.up == nil }

// scopes are those of a store, each once. What an attempt at a step holds is in those
// of its thread, as if it stood in the thread's folder.
type scopes struct {
	shared  *scope
	threads map[string]*scope
	own     map[nodeID]*scope // by the record
}

func newScopes() scopes {
	return scopes{shared: &scope{}, threads: map[string]*scope{}, own: map[nodeID]*scope{}}
}

// ofThread is the scope of a thread's records.
func (s *scopes) ofThread(name string) *scope {
	if s.threads[name] == nil {
		name = strings.Clone(name) // it is part of a folder's text
		s.threads[name] = &scope{thread: name}
	}
	return s.threads[name]
}

// ofRecord is the scope of what a record refers to, with its details.
func (s *scopes) ofRecord(record nodeID) *scope {
	if s.own[record] == nil {
		record.hash = node.Hash(strings.Clone(string(record.hash)))
		s.own[record] = &scope{thread: record.in.thread, of: record.hash, up: record.in}
	}
	return s.own[record]
}

// locateNode finds the node that a hash names in a scope. Of what a record refers to,
// nothing takes the place of the workflow that its thread was started with.
func (n *nodes) locateNode(in *scope, h node.Hash) (nodeID, bool) {
	if in.up == nil {
		return n.findFirst(h, in)
	}
	if n.workflowNodes(in)[h] {
		return nodeID{n.scopes.shared, h}, true
	}
	return n.findFirst(h, in, n.scopes.shared)
}

// findFirst finds a node in the first scope that has it.
func (n *nodes) findFirst(h node.Hash, in ...*scope) (nodeID, bool) {
	for _, s := range in {
		i := nodeID{s, h}
		if _, ok := n.pending[i]; ok {
			return i, true
		}
		if _, ok := n.seen[i]; ok {
			return i, true
		}
	}
	return nodeID{}, false
}

// noteOrigin notes where a record leads to: a step to its StartNode, that to its workflow.
func (n *nodes) noteOrigin(i nodeID, x node.Node) {
	if !i.in.isOfRecords() {
		return
	}
	refs, _, err := record.RefsOf(x)
	if err != nil {
		return // it leads nowhere
	}
	for _, r := range refs {
		switch r.Field {
		case "start":
			n.starts[i] = r.Hash
		case "workflow":
			n.flows[i] = r.Hash
		}
	}
}

// workflowNodes are the shared nodes that the workflow reaches with which the thread of a record
// was started.
func (n *nodes) workflowNodes(own *scope) map[node.Hash]bool {
	i := nodeID{own.up, own.of}
	if start, isStep := n.starts[i]; isStep {
		i.hash = start
	}
	h, ok := n.flows[i]
	if !ok {
		return nil // what a person has said is of no record
	}
	if n.reached[h] == nil {
		n.reached[h] = n.reachableFrom(h)
	}
	return n.reached[h]
}

// reachableFrom are a shared node and all that it refers to.
func (n *nodes) reachableFrom(h node.Hash) map[node.Hash]bool {
	out := map[node.Hash]bool{}
	for todo := []node.Hash{h}; len(todo) > 0; {
		h := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if _, ok := n.seen[nodeID{n.scopes.shared, h}]; ok && !out[h] {
			out[h] = true
			todo = append(todo, n.below[h]...)
		}
	}
	return out
}

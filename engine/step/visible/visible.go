// Package visible gathers the nodes that an agent may read, with their schemas. It reads what it
// is given readers for, and nothing else.
package visible

import (
	"fmt"
	"maps"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/view"
)

// Gathering is what was gathered of a thread so far. The first error ends it.
type Gathering struct {
	id    gitcas.ThreadID
	nodes gitcas.Nodes
	err   error
}

// Begin begins with the nodes of a thread's definition.
func Begin(id gitcas.ThreadID, definition map[node.Hash]node.Node) *Gathering {
	return &Gathering{id: id, nodes: gitcas.Nodes{{}: maps.Clone(definition)}}
}

// Nodes are those that were gathered; the error is the first one.
func (v *Gathering) Nodes() (gitcas.Nodes, error) { return v.nodes, v.err }

// AddNodes adds nodes of one place, and the schemas of these.
func (v *Gathering) AddNodes(at gitcas.Place, g node.Getter, hashes ...node.Hash) {
	for i := 0; i < len(hashes) && v.err == nil; i++ {
		h := hashes[i]
		n, shared := view.Known(h)
		if shared {
			v.nodes.Add(gitcas.Place{}, h, n)
			continue
		}
		if _, there := v.nodes[gitcas.Place{}][h]; there {
			continue
		}
		n, err := g.Get(h)
		if err != nil {
			v.err = fmt.Errorf("read node %s of thread %s: %w", h, v.id, err)
			return
		}
		v.nodes.Add(at, h, n)
		hashes = append(hashes, n.Type)
	}
}

// AddRecord adds a StartNode or a StepNode, with some nodes that it refers to.
func (v *Gathering) AddRecord(g func(gitcas.Place) node.Getter, h node.Hash, refs ...node.Hash) {
	records, own := gitcas.Place{Thread: v.id}, gitcas.Place{Thread: v.id, Of: h}
	v.AddNodes(records, g(records), h)
	v.AddNodes(own, g(own), refs...)
}

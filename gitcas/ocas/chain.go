package ocas

import (
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Where says where a node belongs.
type Where uint8

// The places.
const (
	Shared Where = iota // cas/
	InThread
	InDetail
)

// Node is a node of a thread.
type Node struct {
	Hash  node.Hash
	Node  node.Node
	Where Where
}

// Chain is a thread, whole and checked: its start, then its steps.
type Chain struct {
	Workflow node.Hash
	Parts    []Part
}

// Part is what one more head of a chain adds.
type Part struct {
	Head  node.Hash
	Step  *record.Step // nil: the StartNode
	Nodes []Node       // those that no part before has
}

// maxSteps bounds a chain.
const maxSteps = 100_000

// ErrOtherSchema: the chain has records of a generation that this uwf does not know.
var ErrOtherSchema = errors.New("a record of a generation that this uwf does not know (it knows those of 2026-06-04 and later)")

// Chain reads a thread from its head. Every node is checked: its hash, its schema,
// and that all that it refers to is there.
func (s *Source) Chain(head node.Hash) (Chain, error) {
	start, steps, err := s.steps(head)
	if err != nil {
		return Chain{}, err
	}
	n, err := s.checked(start)
	if err != nil {
		return Chain{}, err
	}
	first, err := record.ParseStart(n)
	if err != nil {
		return Chain{}, fmt.Errorf("StartNode %s: %w", start, err)
	}
	c := &collector{s: s, seen: map[node.Hash]Where{}}
	c.add(start, n, InThread)
	c.reach(n.Type, Shared)
	c.reach(first.Workflow, Shared)
	out := Chain{Workflow: first.Workflow, Parts: []Part{{Head: start, Nodes: c.take()}}}
	for _, st := range steps {
		c.add(st.hash, st.node, InThread)
		c.reach(st.node.Type, Shared)
		c.reach(st.step.Output, InThread)
		c.reach(st.step.Detail, InDetail)
		if p := st.step.AssembledPrompt; p != nil {
			c.reach(*p, InDetail)
		}
		if c.err != nil {
			return Chain{}, fmt.Errorf("step %s: %w", st.hash, c.err)
		}
		out.Parts = append(out.Parts, Part{Head: st.hash, Step: &st.step, Nodes: c.take()})
	}
	return out, c.err
}

// Reach are all nodes that a node refers to, itself included: those of a workflow.
func (s *Source) Reach(h node.Hash) ([]Node, error) {
	c := &collector{s: s, seen: map[node.Hash]Where{}}
	c.reach(h, Shared)
	return c.nodes, c.err
}

type link struct {
	hash node.Hash
	node node.Node
	step record.Step
}

// steps follows prev from the head to the start, and gives the steps oldest first.
func (s *Source) steps(head node.Hash) (node.Hash, []link, error) {
	var steps []link
	for at := head; ; {
		if len(steps) >= maxSteps {
			return "", nil, fmt.Errorf("the chain runs in a circle, or is endless, at %s", at)
		}
		n, err := s.checked(at)
		if err != nil {
			return "", nil, err
		}
		if record.IsStart(n.Type) && len(steps) == 0 {
			return at, nil, nil
		}
		if !record.IsStep(n.Type) {
			return "", nil, fmt.Errorf("node %s, of type %s: %w", at, n.Type, ErrOtherSchema)
		}
		step, err := record.ParseStep(n)
		if err != nil {
			return "", nil, fmt.Errorf("step %s: %w", at, err)
		}
		if len(steps) > 0 && step.Start != steps[0].step.Start {
			return "", nil, fmt.Errorf("step %s belongs to another thread than the step after it", at)
		}
		steps = append(steps, link{at, n, step})
		if step.Prev == nil {
			slices.Reverse(steps)
			return step.Start, steps, s.isStart(step.Start)
		}
		at = *step.Prev
	}
}

// isStart makes sure that a node is a StartNode.
func (s *Source) isStart(start node.Hash) error {
	n, err := s.checked(start)
	if err == nil && !record.IsStart(n.Type) {
		err = fmt.Errorf("node %s, of type %s: %w", start, n.Type, ErrOtherSchema)
	}
	return err
}

// checked is a node that fits its schema.
func (s *Source) checked(h node.Hash) (node.Node, error) {
	n, err := s.Get(h)
	if err != nil {
		return n, err
	}
	if err := s.schemas.Check(s, n); err != nil {
		return n, fmt.Errorf("node %s: %w", h, err)
	}
	return n, nil
}

// collector gathers nodes, each once; one that a step's details have and a chain
// needs later, twice.
type collector struct {
	s     *Source
	seen  map[node.Hash]Where
	nodes []Node
	err   error
}

func (c *collector) add(h node.Hash, n node.Node, where Where) {
	if was, ok := c.seen[h]; ok && was <= where {
		return
	}
	c.seen[h] = where
	c.nodes = append(c.nodes, Node{h, n, where})
}

// take gives the nodes since the last take.
func (c *collector) take() []Node {
	out := c.nodes
	c.nodes = nil
	return out
}

// reach adds a node and all that it refers to. Schemas are shared, wherever they
// are used.
func (c *collector) reach(root node.Hash, where Where) {
	if c.err != nil {
		return
	}
	c.err = c.s.schemas.Walk(c.s, root, func(h node.Hash, n node.Node) error {
		at := where
		if n.Type == node.MetaSchema {
			at = Shared
		}
		if was, ok := c.seen[h]; ok && was <= at {
			return node.ErrSkip
		}
		if err := c.s.schemas.Check(c.s, n); err != nil {
			return fmt.Errorf("node %s: %w", h, err)
		}
		c.add(h, n, at)
		return nil
	})
}

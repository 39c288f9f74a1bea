package ocas

import (
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// Node is a node of a thread.
type Node struct {
	Hash node.Hash
	Node node.Node
	To   record.Target // where it belongs
}

// Chain is a thread, whole and checked: its start, then its steps.
type Chain struct {
	Workflow node.Hash
	Parts    []Part
	Former   []statefile.Former // the nodes that had other hashes, sorted by these
}

// Part is what one more head of a chain adds.
type Part struct {
	Head  node.Hash
	Step  *record.Step // nil: the StartNode
	Nodes []Node       // the record, all that it refers to, and of what is shared what no part before has
	// Attempts are the earlier attempts at the step, with those that these name, but for those
	// that a part before has.
	Attempts []Part
}

// maxSteps bounds a chain.
const maxSteps = 100_000

// ErrOtherSchema: the chain has records of a generation that this uwf does not know.
var ErrOtherSchema = errors.New("a record of a generation that this uwf does not know")

// ReadChain reads a thread from its head. Every node is checked: its hash, its schema,
// and that all that it refers to is there. A thread with nodes below a former meta-schema is
// re-rooted: its head is another one then.
func (s *Source) ReadChain(head node.Hash) (Chain, error) {
	c, err := s.readChain(head)
	if errors.Is(err, node.ErrNotSchema) {
		return s.rerootChain(head)
	}
	return c, err
}

// readChain reads a thread below today's meta-schema.
func (s *Source) readChain(head node.Hash) (Chain, error) {
	start, steps, err := s.readSteps(head)
	if err != nil {
		return Chain{}, err
	}
	n, err := s.readChecked(start)
	if err != nil {
		return Chain{}, err
	}
	first, err := record.ParseStart(n)
	if err != nil {
		return Chain{}, fmt.Errorf("StartNode %s: %w", start, err)
	}
	flow := &collector{s: s, seen: map[node.Hash]bool{}}
	flow.collectReachable(n.Type, record.ToShared)
	flow.collectReachable(first.Workflow, record.ToShared)
	if flow.err != nil {
		return Chain{}, flow.err
	}
	out := Chain{Workflow: first.Workflow, Parts: []Part{{Head: start, Nodes: append(flow.takeNodes(), Node{start, n, record.ToRecord})}}}
	seen := map[node.Hash]bool{}
	for _, st := range steps {
		part, err := s.readPart(st, flow)
		if err == nil {
			part.Attempts, err = s.readAttempts(st.step, flow, seen)
		}
		if err != nil {
			return Chain{}, fmt.Errorf("step %s: %w", st.hash, err)
		}
		out.Parts = append(out.Parts, part)
	}
	return out, flow.err
}

// readPart reads what a step refers to.
func (s *Source) readPart(st link, flow *collector) (Part, error) {
	flow.collectReachable(st.node.Type, record.ToShared)
	c := &collector{s: s, seen: map[node.Hash]bool{}, shared: flow}
	for _, r := range st.step.Refs() {
		if r.To == record.ToOwn || r.To == record.ToDetail {
			c.collectReachable(r.Hash, r.To)
		}
	}
	nodes := append(c.takeNodes(), flow.takeNodes()...)
	return Part{Head: st.hash, Step: &st.step, Nodes: append(nodes, Node{st.hash, st.node, record.ToRecord})}, c.err
}

// readAttempts reads the earlier attempts that a step names, and those that these name, but
// for those that were seen.
func (s *Source) readAttempts(step record.Step, flow *collector, seen map[node.Hash]bool) ([]Part, error) {
	var out []Part
	todo := slices.Clone(step.PreviousAttempts)
	for len(todo) > 0 {
		h := todo[0]
		todo = todo[1:]
		if seen[h] {
			continue
		}
		seen[h] = true
		n, err := s.readChecked(h)
		if err != nil {
			return nil, err
		}
		earlier, err := record.ParseStep(n)
		if err != nil {
			return nil, fmt.Errorf("its earlier attempt %s: %w", h, err)
		}
		if earlier.Start != step.Start {
			return nil, fmt.Errorf("its earlier attempt %s belongs to another thread", h)
		}
		part, err := s.readPart(link{h, n, earlier}, flow)
		if err != nil {
			return nil, fmt.Errorf("its earlier attempt %s: %w", h, err)
		}
		out, todo = append(out, part), append(todo, earlier.PreviousAttempts...)
	}
	return out, nil
}

// Reach are all nodes that a node refers to, itself included: those of a workflow.
func (s *Source) Reach(h node.Hash) ([]Node, error) {
	c := &collector{s: s, seen: map[node.Hash]bool{}}
	c.collectReachable(h, record.ToShared)
	return c.nodes, c.err
}

type link struct {
	hash node.Hash
	node node.Node
	step record.Step
}

// readSteps follows prev from the head to the start, and gives the steps oldest first.
func (s *Source) readSteps(head node.Hash) (node.Hash, []link, error) {
	var steps []link
	for at := head; ; {
		if len(steps) >= maxSteps {
			return "", nil, fmt.Errorf("the chain runs in a circle, or is endless, at %s", at)
		}
		n, err := s.readChecked(at)
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
	n, err := s.readChecked(start)
	if err == nil && !record.IsStart(n.Type) {
		err = fmt.Errorf("node %s, of type %s: %w", start, n.Type, ErrOtherSchema)
	}
	return err
}

// readChecked is a node that fits its schema.
func (s *Source) readChecked(h node.Hash) (node.Node, error) {
	n, err := s.Get(h)
	if err != nil {
		return n, err
	}
	if err := s.schemas.CheckNode(s, n); err != nil {
		return n, fmt.Errorf("node %s: %w", h, err)
	}
	return n, nil
}

// collector gathers nodes, each once; one that a step's details have and its output
// needs as well, where it is read first.
type collector struct {
	s      *Source
	seen   map[node.Hash]bool
	nodes  []Node
	shared *collector // what it has is not gathered again; nil: none
	err    error
}

// takeNodes gives the nodes since the last take.
func (c *collector) takeNodes() []Node {
	out := c.nodes
	c.nodes = nil
	return out
}

// collectReachable adds a node and all that it refers to. What every uwf knows is shared.
func (c *collector) collectReachable(root node.Hash, to record.Target) {
	if c.err != nil {
		return
	}
	c.err = c.s.schemas.WalkNodes(c.s, root, func(h node.Hash, n node.Node) error {
		if _, known := record.Schemas()[h]; known && to != record.ToShared {
			c.shared.collectReachable(h, record.ToShared)
			return node.ErrSkip
		}
		if c.seen[h] || c.shared != nil && c.shared.seen[h] {
			return node.ErrSkip // the own ones are gathered before the details
		}
		if err := c.s.schemas.CheckNode(c.s, n); err != nil {
			return fmt.Errorf("node %s: %w", h, err)
		}
		c.seen[h] = true
		c.nodes = append(c.nodes, Node{h, n, to})
		return nil
	})
}

// Package seal turns what an agent staged into the nodes that are stored: each is
// checked against its schema, freed of secrets and hashed anew, from the leaves up.
// It never decides what belongs to a step, and it stores nothing itself.
package seal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
)

// Caps on what one step may store. They keep a runaway agent from filling the
// state branch; all are far above what a real agent writes.
const (
	MaxDrafts = 4096     // nodes that one agent stages
	MaxNode   = 1 << 20  // an output, a body or a turn, as CBOR
	MaxPrompt = 4 << 20  // the assembled prompt
	MaxStep   = 32 << 20 // the files of all nodes of a step together
)

// Redactor takes secrets out of a value. What can't be checked is an error.
type Redactor interface {
	Value(v any) (any, int, error)
}

// Sealer collects the final nodes of one step. Within a step a hash names one node.
type Sealer struct {
	drafts  map[node.Hash]node.Node
	visible gitcas.Nodes
	redact  Redactor
	at      time.Time

	schemas map[node.Hash]*node.Schema
	final   map[node.Hash]node.Hash
	busy    map[node.Hash]bool
	nodes   []gitcas.PlacedNode
	placed  map[node.Hash]int // where in nodes
	bytes   int
}

// New returns a Sealer. Drafts are what was staged, visible is what the agent could read
// of the thread, at becomes the nodes' time.
func New(drafts map[node.Hash]node.Node, visible gitcas.Nodes, redact Redactor, at time.Time) *Sealer {
	return &Sealer{
		drafts: drafts, visible: visible, redact: redact, at: at,
		schemas: map[node.Hash]*node.Schema{}, final: map[node.Hash]node.Hash{},
		busy: map[node.Hash]bool{}, placed: map[node.Hash]int{},
	}
}

// Nodes are the final nodes so far. Of their places only Detail is set: which step they
// are of is known when they are all there.
func (s *Sealer) Nodes() []gitcas.PlacedNode { return slices.Clone(s.nodes) }

// Salvage seals each draft that passes the checks by itself, as long as ctx lasts:
// what does not pass is left out.
func (s *Sealer) Salvage(ctx context.Context) {
	for _, h := range slices.Sorted(maps.Keys(s.drafts)) {
		if ctx.Err() != nil || len(s.nodes) > MaxDrafts {
			return
		}
		_, _ = s.Node(h, true) // best effort
	}
}

// Node seals a node and all that it refers to. Each draft is sealed once, so what is read
// with the rest of a step is sealed before the details. What is no draft must be
// something that the agent could read, and is stored with the step again.
func (s *Sealer) Node(h node.Hash, detail bool) (node.Hash, error) {
	if f, ok := s.final[h]; ok {
		return f, nil
	}
	n, ok := s.drafts[h]
	if !ok {
		return h, s.takeFromThread(h, detail)
	}
	switch {
	case s.busy[h]:
		return "", fmt.Errorf("node %s refers to itself", h)
	case record.IsRecord(n.Type):
		// Such a node says what happened in a thread, and that is ours to say.
		return "", fmt.Errorf("node %s is a step or start of a thread; only the handle may be a StepNode", h)
	}
	s.busy[h] = true
	schema, err := s.parsedSchema(n.Type, detail)
	if err != nil {
		return "", fmt.Errorf("node %s: %w", h, err)
	}
	swap := map[string]string{}
	for _, ref := range schema.Refs(n.Payload) {
		f, err := s.Node(ref, detail)
		if err != nil {
			return "", err
		}
		if f != ref {
			swap[string(ref)] = string(f)
		}
	}
	f, err := s.Add(n.Type, node.MapStrings(n.Payload, func(s string) string { return cmp.Or(swap[s], s) }), detail)
	if err != nil {
		return "", fmt.Errorf("node %s: %w", h, err)
	}
	s.final[h] = f
	return f, nil
}

// sharedNode is a node that is found wherever it is referred to.
func (s *Sealer) sharedNode(h node.Hash) (node.Node, bool) {
	n, err := s.visible.In(gitcas.Place{}).Get(h)
	return n, err == nil
}

// takeFromThread takes over a node of the thread, with all that it refers to.
func (s *Sealer) takeFromThread(h node.Hash, detail bool) error {
	if _, ok := s.sharedNode(h); ok {
		return nil
	}
	var at gitcas.Place
	var sum node.Digest
	for p, nodes := range s.visible {
		n, ok := nodes[h]
		if !ok {
			continue
		}
		d, err := n.Sum()
		if err != nil {
			return err
		}
		if sum != "" && sum != d {
			return fmt.Errorf("node %s is not staged, and names several nodes of the thread: stage a copy of the one that is meant", h)
		}
		at, sum = p, d
	}
	if sum == "" {
		return fmt.Errorf("node %s is neither staged nor part of the thread: %w", h, node.ErrNotFound)
	}
	c := node.Closure{Schemas: &node.Schemas{}, Getter: s.visible.In(at), Alone: record.IsRecord}
	if _, err := c.ComputeDigest(h); err != nil {
		return fmt.Errorf("node %s of the thread is not whole here: %w", h, err)
	}
	for _, h := range slices.Sorted(maps.Keys(c.Nodes)) {
		if _, ok := s.sharedNode(h); ok {
			continue
		}
		if err := s.keepNode(h, c.Nodes[h], detail); err != nil {
			return err
		}
		s.final[h] = h
	}
	return nil
}

// Text is Node for a node that must be a plain string.
func (s *Sealer) Text(h node.Hash) (node.Hash, error) {
	f, err := s.Node(h, false)
	if err != nil {
		return "", err
	}
	if n, err := s.Get(f); err != nil || n.Type != node.String {
		return "", fmt.Errorf("node %s is no string node", h)
	}
	return f, nil
}

// Get finds a final node, or one that is shared.
func (s *Sealer) Get(h node.Hash) (node.Node, error) {
	if n, ok := s.sharedNode(h); ok {
		return n, nil
	}
	i, ok := s.placed[h]
	if !ok {
		return node.Node{}, fmt.Errorf("%w: %s", node.ErrNotFound, h)
	}
	return s.nodes[i].Node, nil
}

// Add redacts a payload, checks it against its schema and keeps the node.
func (s *Sealer) Add(typ node.Hash, payload any, detail bool) (node.Hash, error) {
	return s.AddUpTo(MaxNode, typ, payload, detail)
}

// AddUpTo is Add with a limit of its own on the node's size.
func (s *Sealer) AddUpTo(limit int, typ node.Hash, payload any, detail bool) (node.Hash, error) {
	// Before anything that takes longer.
	if err := checkSize(limit, payload); err != nil {
		return "", err
	}
	clean, found, err := s.redact.Value(payload)
	if err != nil {
		return "", fmt.Errorf("check for secrets: %w", err)
	}
	n, h, err := node.New(typ, clean, s.at)
	if err != nil {
		return "", err
	}
	if err := s.validateNode(n, detail); err != nil {
		return "", err
	}
	if found > 0 {
		if err := checkSize(limit, n.Payload); err != nil {
			return "", err
		}
	}
	return h, s.keepNode(h, n, detail)
}

// checkSize bounds the size of one node.
func checkSize(limit int, payload any) error {
	raw, err := node.EncodeCBOR(payload)
	if err != nil {
		return err
	}
	if len(raw) > limit {
		return fmt.Errorf("%d bytes; at most %d are stored in one node", len(raw), limit)
	}
	return nil
}

// validateNode checks a node against its schema; a schema by the rules for schemas.
func (s *Sealer) validateNode(n node.Node, detail bool) error {
	if n.Type == node.MetaSchema {
		return node.CheckSchema(n.Payload)
	}
	schema, err := s.parsedSchema(n.Type, detail)
	if err != nil {
		return err
	}
	return schema.Validate(n.Payload)
}

// keepNode takes a final node, once. A hash that names another node already, in the step or
// among what is shared, fails the step: what refers to it would be ambiguous.
func (s *Sealer) keepNode(h node.Hash, n node.Node, detail bool) error {
	if old, ok := s.sharedNode(h); ok {
		return checkSame(h, old, n)
	}
	if i, ok := s.placed[h]; ok {
		return checkSame(h, s.nodes[i].Node, n)
	}
	file, err := gitcas.EncodeNode(n)
	if err != nil {
		return err
	}
	if s.bytes+len(file) > MaxStep {
		return fmt.Errorf("the files of the step's nodes are larger than %d bytes together", MaxStep)
	}
	s.bytes += len(file)
	s.placed[h] = len(s.nodes)
	s.nodes = append(s.nodes, gitcas.PlacedNode{Hash: h, Node: n, Place: view.NextPlace(detail)})
	return nil
}

// ErrTwice: one hash, two nodes.
var ErrTwice = errors.New("two different nodes of a step have the same hash: such a thing is made, it does not happen")

func checkSame(h node.Hash, a, b node.Node) error {
	x, err := a.Sum()
	if err != nil {
		return err
	}
	y, err := b.Sum()
	if err == nil && x != y {
		err = fmt.Errorf("node %s: %w", h, ErrTwice)
	}
	return err
}

// Clean is a text without secrets.
func (s *Sealer) Clean(text string) (string, error) {
	v, _, err := s.redact.Value(text)
	if err != nil {
		return "", fmt.Errorf("check for secrets: %w", err)
	}
	clean, _ := v.(string)
	return clean, nil
}

// parsedSchema returns the compiled schema of a type: one that is shared, or one that the agent
// staged itself, or took from the thread, which is then stored with the step.
func (s *Sealer) parsedSchema(typ node.Hash, detail bool) (*node.Schema, error) {
	if c, ok := s.schemas[typ]; ok {
		return c, nil
	}
	n, shared := s.sharedNode(typ)
	var err error
	if !shared {
		if n, err = s.Get(typ); err != nil {
			n, err = s.stagedSchema(typ)
		}
	}
	if err == nil && n.Type != node.MetaSchema {
		err = errors.New("it is no schema")
	}
	if err != nil {
		return nil, fmt.Errorf("its type %s: %w", typ, err)
	}
	c, err := node.Compile(n.Payload)
	if err != nil {
		return nil, fmt.Errorf("its type %s: %w", typ, err)
	}
	if !shared {
		if err := s.keepNode(typ, n, detail); err != nil {
			return nil, err
		}
	}
	s.schemas[typ] = c
	return c, nil
}

// stagedSchema is a schema that comes from the agent. It is what other nodes are
// called by, so it can't be changed: one that holds a secret is refused.
func (s *Sealer) stagedSchema(typ node.Hash) (node.Node, error) {
	n, staged := s.drafts[typ]
	if !staged {
		return n, errors.New("no schema that this store knows, and none was staged")
	}
	if err := checkSize(MaxNode, n.Payload); err != nil {
		return n, err
	}
	switch h, err := n.ComputeHash(); {
	case err != nil:
		return n, err
	case h != typ:
		return n, fmt.Errorf("what was staged under this name hashes to %s", h)
	}
	switch _, found, err := s.redact.Value(n.Payload); {
	case err != nil:
		return n, fmt.Errorf("check for secrets: %w", err)
	case found > 0:
		return n, errors.New("the schema holds a secret")
	}
	return n, nil
}

// Package seal turns what an agent staged into the nodes that are stored: each is
// checked against its schema, freed of secrets and hashed anew, from the leaves up.
// It never decides what belongs to a step, and it stores nothing itself.
package seal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Caps on what one step may store. They keep a runaway agent from filling the
// state branch; all are far above what a real agent writes.
const (
	MaxDrafts = 4096     // nodes that one agent stages
	MaxNode   = 1 << 20  // an output, a body or a turn, as CBOR
	MaxPrompt = 4 << 20  // the assembled prompt
	MaxStep   = 32 << 20 // all nodes of a step together
)

// Redactor takes secrets out of a value. What can't be checked is an error.
type Redactor interface {
	Value(v any) (any, int, error)
}

// Sealer collects the final nodes of one step.
type Sealer struct {
	id     gitcas.ThreadID
	drafts map[node.Hash]node.Node
	known  node.Getter
	redact Redactor
	at     time.Time

	schemas map[node.Hash]*node.Schema
	final   map[node.Hash]node.Hash
	busy    map[node.Hash]bool
	nodes   []gitcas.PlacedNode
	placed  map[node.Hash]bool
	bytes   int
}

// New returns a Sealer for a thread. Drafts are what was staged, known is what the
// store has, at becomes the nodes' time.
func New(id gitcas.ThreadID, drafts map[node.Hash]node.Node, known node.Getter, redact Redactor, at time.Time) *Sealer {
	return &Sealer{
		id: id, drafts: drafts, known: known, redact: redact, at: at,
		schemas: map[node.Hash]*node.Schema{}, final: map[node.Hash]node.Hash{},
		busy: map[node.Hash]bool{}, placed: map[node.Hash]bool{},
	}
}

// Nodes are the final nodes so far.
func (s *Sealer) Nodes() []gitcas.PlacedNode { return s.nodes }

// Put takes a node that was made of sealed parts.
func (s *Sealer) Put(n gitcas.PlacedNode) { s.nodes = append(s.nodes, n) }

// Salvage seals each draft that passes the checks by itself, as long as ctx lasts:
// what does not pass is left out.
func (s *Sealer) Salvage(ctx context.Context, place gitcas.Place) {
	for _, h := range slices.Sorted(maps.Keys(s.drafts)) {
		if ctx.Err() != nil || len(s.nodes) > MaxDrafts {
			return
		}
		_, _ = s.Node(h, place) // best effort
	}
}

// Node seals a node and all that it refers to. Each draft is sealed once.
func (s *Sealer) Node(h node.Hash, place gitcas.Place) (node.Hash, error) {
	if f, ok := s.final[h]; ok {
		return f, nil
	}
	n, ok := s.drafts[h]
	if !ok {
		if _, err := s.known.Get(h); err != nil {
			return "", fmt.Errorf("node %s is neither staged nor part of the thread: %w", h, err)
		}
		return h, nil
	}
	switch {
	case s.busy[h]:
		return "", fmt.Errorf("node %s refers to itself", h)
	case record.IsStep(n.Type) || record.IsStart(n.Type):
		// Such a node says what happened in a thread, and that is ours to say.
		return "", fmt.Errorf("node %s is a step or start of a thread; only the handle may be a StepNode", h)
	}
	s.busy[h] = true
	schema, err := s.schema(n.Type)
	if err != nil {
		return "", fmt.Errorf("node %s: %w", h, err)
	}
	swap := map[string]string{}
	for _, ref := range schema.Refs(n.Payload) {
		f, err := s.Node(ref, place)
		if err != nil {
			return "", err
		}
		if f != ref {
			swap[string(ref)] = string(f)
		}
	}
	f, err := s.Add(n.Type, replaceRefs(n.Payload, swap), place)
	if err != nil {
		return "", fmt.Errorf("node %s: %w", h, err)
	}
	s.final[h] = f
	return f, nil
}

// Text is Node for a node that must be a plain string.
func (s *Sealer) Text(h node.Hash) (node.Hash, error) {
	n, err := Overlay{s.drafts, s.known}.Get(h)
	if err != nil {
		return "", fmt.Errorf("node %s is neither staged nor part of the thread: %w", h, err)
	}
	if n.Type != node.String {
		return "", fmt.Errorf("node %s is no string node", h)
	}
	return s.Node(h, gitcas.Place{Thread: s.id})
}

// Add redacts a payload, checks it against its schema and keeps the node.
func (s *Sealer) Add(typ node.Hash, payload any, place gitcas.Place) (node.Hash, error) {
	return s.AddUpTo(MaxNode, typ, payload, place)
}

// AddUpTo is Add with a limit of its own on the node's size.
func (s *Sealer) AddUpTo(limit int, typ node.Hash, payload any, place gitcas.Place) (node.Hash, error) {
	// Before anything that takes longer.
	if err := fits(limit, payload); err != nil {
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
	if err := s.validate(n); err != nil {
		return "", err
	}
	if found > 0 {
		if err := fits(limit, n.Payload); err != nil {
			return "", err
		}
	}
	if typ == node.MetaSchema {
		place = gitcas.Place{} // schemas are shared
	}
	return h, s.keep(h, n, place)
}

// fits bounds the size of one node.
func fits(limit int, payload any) error {
	raw, err := node.EncodeCBOR(payload)
	if err != nil {
		return err
	}
	if len(raw) > limit {
		return fmt.Errorf("%d bytes; at most %d are stored in one node", len(raw), limit)
	}
	return nil
}

// validate checks a node against its schema; a schema by the rules for schemas.
func (s *Sealer) validate(n node.Node) error {
	if n.Type == node.MetaSchema {
		return node.CheckSchema(n.Payload)
	}
	schema, err := s.schema(n.Type)
	if err != nil {
		return err
	}
	return schema.Validate(n.Payload)
}

// keep takes a final node, once.
func (s *Sealer) keep(h node.Hash, n node.Node, place gitcas.Place) error {
	if s.placed[h] {
		return nil
	}
	raw, err := node.EncodeCBOR(n.Payload)
	if err != nil {
		return err
	}
	if s.bytes+len(raw) > MaxStep {
		return fmt.Errorf("the step's nodes are larger than %d bytes together", MaxStep)
	}
	s.bytes += len(raw)
	s.placed[h] = true
	s.nodes = append(s.nodes, gitcas.PlacedNode{Hash: h, Node: n, Place: place})
	return nil
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

// schema returns the compiled schema of a type: one that the store knows, one of
// uwf's own, or one that the agent staged itself (which is then stored too).
func (s *Sealer) schema(typ node.Hash) (*node.Schema, error) {
	if c, ok := s.schemas[typ]; ok {
		return c, nil
	}
	n, err := s.known.Get(typ)
	if errors.Is(err, node.ErrNotFound) {
		n, err = s.stagedSchema(typ)
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
	if err := s.keep(typ, n, gitcas.Place{}); err != nil {
		return nil, err
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
	if err := fits(MaxNode, n.Payload); err != nil {
		return n, err
	}
	switch h, err := n.Hash(); {
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

// replaceRefs returns a copy of v in which the strings that are keys of swap are
// exchanged. Payloads are normalised: only maps, lists and scalars.
func replaceRefs(v any, swap map[string]string) any {
	if len(swap) == 0 {
		return v
	}
	switch x := v.(type) {
	case string:
		if to, ok := swap[x]; ok {
			return to
		}
		return x
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = replaceRefs(x[i], swap)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = replaceRefs(e, swap)
		}
		return out
	}
	return v
}

// Overlay finds nodes in a map first.
type Overlay struct {
	First map[node.Hash]node.Node
	Then  node.Getter
}

// Get implements node.Getter.
func (o Overlay) Get(h node.Hash) (node.Node, error) {
	if n, ok := o.First[h]; ok {
		return n, nil
	}
	return o.Then.Get(h)
}

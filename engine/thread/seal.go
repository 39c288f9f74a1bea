package thread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Caps on what one step may store. They keep a runaway agent from filling the
// state branch; all are far above what a real agent writes.
const (
	maxDraftNodes  = 4096
	maxOutputBytes = 1 << 20   // an output, a body or a turn, as CBOR
	maxPromptBytes = 4 << 20   // the assembled prompt
	maxEdgePrompt  = 256 << 10 // what one role, or a person, tells the next
	maxStepBytes   = 32 << 20  // all nodes of a step together
)

// sealed is a step whose nodes are checked, redacted and hashed anew. Only the
// StepNode itself is still open: the commit adds the work commit and the earlier
// attempts to it.
type sealed struct {
	output map[string]any
	body   string
	step   record.Step
	nodes  []gitcas.PlacedNode
}

// sealer turns drafts into final nodes, from the leaves up.
type sealer struct {
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

func (r *stepRun) newSealer(ctx context.Context, drafts map[node.Hash]node.Node) *sealer {
	return &sealer{
		id: r.id, drafts: drafts, known: r.v.Getter(ctx), redact: r.e.Redact, at: r.hold.serverNow(),
		schemas: map[node.Hash]*node.Schema{}, final: map[node.Hash]node.Hash{},
		busy: map[node.Hash]bool{}, placed: map[node.Hash]bool{},
	}
}

// seal checks what the agent staged against what it was asked to do and makes
// the final nodes of it.
func (r *stepRun) seal(ctx context.Context, d Draft) (*sealed, error) {
	if len(d.Nodes) > maxDraftNodes {
		return nil, fmt.Errorf("the agent staged %d nodes; at most %d are taken", len(d.Nodes), maxDraftNodes)
	}
	child, err := r.draftStep(d)
	if err != nil {
		return nil, err
	}
	s := r.newSealer(ctx, d.Nodes)
	out := &sealed{step: r.baseStep(d, child)}
	if out.step.Output, err = s.one(child.Output, gitcas.Place{Thread: r.id}); err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	if child.Body != nil {
		h, err := s.text(*child.Body)
		if err != nil {
			return nil, fmt.Errorf("body: %w", err)
		}
		out.step.Body = &h
	}
	if out.step.Detail, err = s.one(child.Detail, gitcas.Place{Thread: r.id, Detail: true}); err != nil {
		return nil, fmt.Errorf("detail: %w", err)
	}
	prompt, err := s.addUpTo(maxPromptBytes, node.String, r.task.Prompt, gitcas.Place{Thread: r.id, Detail: true})
	if err != nil {
		return nil, fmt.Errorf("prompt: %w", err)
	}
	out.step.AssembledPrompt = &prompt
	if out.step.EdgePrompt, err = s.cleanText(out.step.EdgePrompt); err != nil {
		return nil, fmt.Errorf("edge prompt: %w", err)
	}
	out.nodes = s.nodes
	return out, out.fill(s.known)
}

// fill reads output and body back from the final nodes.
func (o *sealed) fill(known node.Getter) error {
	final := make(map[node.Hash]node.Node, len(o.nodes))
	for _, n := range o.nodes {
		final[n.Hash] = n.Node
	}
	g := overlay{final, known}
	n, err := g.Get(o.step.Output)
	if err != nil {
		return fmt.Errorf("output: %w", err)
	}
	var ok bool
	if o.output, ok = n.Payload.(map[string]any); !ok {
		return errors.New("the output is not an object")
	}
	if o.step.Body != nil {
		if n, err = g.Get(*o.step.Body); err != nil {
			return fmt.Errorf("body: %w", err)
		}
		o.body, _ = n.Payload.(string)
	}
	return nil
}

// draftStep finds the StepNode that the handle names and checks that it answers
// this task and no other.
func (r *stepRun) draftStep(d Draft) (record.Step, error) {
	n, ok := d.Nodes[d.Handle]
	if !ok {
		return record.Step{}, fmt.Errorf("the agent printed %q, which is not among the %d nodes it staged", d.Handle, len(d.Nodes))
	}
	step, err := record.ParseStep(n)
	if err != nil {
		return record.Step{}, fmt.Errorf("the agent's handle %s is no StepNode: %w", d.Handle, err)
	}
	switch {
	case step.Start != r.task.Start:
		return step, fmt.Errorf("the agent's step belongs to another thread (start %s, wanted %s)", step.Start, r.task.Start)
	case !sameHash(step.Prev, r.task.Prev):
		return step, fmt.Errorf("the agent's step does not follow the thread's head (prev %s, wanted %s)", show(step.Prev), show(r.task.Prev))
	case step.Role != r.task.Role:
		return step, fmt.Errorf("the agent's step is of role %q, wanted %q", step.Role, r.task.Role)
	case step.Agent != r.task.Agent:
		return step, fmt.Errorf("the agent's step names agent %q, wanted %q", step.Agent, r.task.Agent)
	}
	o, err := overlay{d.Nodes, r.known}.Get(step.Output)
	if errors.Is(err, node.ErrNotFound) {
		return step, fmt.Errorf("the agent's output %s is neither staged nor part of the thread", step.Output)
	}
	asks := r.task.Suspends && o.Type == record.SuspendOutputSchema
	if err == nil && o.Type != r.task.OutputSchema && !asks {
		return step, fmt.Errorf("the agent's output is of type %s, but role %q needs %s", o.Type, r.task.Role, r.task.OutputSchema)
	}
	return step, err
}

// baseStep takes nothing from the child but what only it can know.
func (r *stepRun) baseStep(d Draft, child record.Step) record.Step {
	now := r.hold.serverNow().UnixMilli()
	usage := r.meter.Usage()
	if usage.Turns == 0 || r.task.Model == nil && r.task.Extract != nil {
		// An agent that did not go through the gateway, or only to have its answer
		// read: what it says of itself holds both.
		usage = most(usage, reported(d.Usage, child.Usage))
	}
	usage.DurationMs = max(now-r.task.StartedAtMs, 0)
	run := r.e.run()
	return record.Step{
		Start: r.task.Start, Prev: r.task.Prev, Role: r.task.Role, Agent: r.task.Agent,
		EdgePrompt: r.task.EdgePrompt, StartedAtMs: r.task.StartedAtMs, CompletedAtMs: max(now, r.task.StartedAtMs),
		Cwd: r.task.Cwd, Usage: &usage, Run: &run,
	}
}

// reported is what an agent says of itself: with its handle, else in its step.
// What is less than nothing would give it room within the thread's limits.
func reported(handle record.Usage, step *record.Usage) record.Usage {
	handle.DurationMs = 0 // always measured, so it tells nothing
	if handle == (record.Usage{}) && step != nil {
		handle = *step
	}
	return record.Usage{
		Turns: max(handle.Turns, 0), InputTokens: max(handle.InputTokens, 0), OutputTokens: max(handle.OutputTokens, 0),
		CostUSD: max(handle.CostUSD, 0),
	}
}

func most(a, b record.Usage) record.Usage {
	return record.Usage{
		Turns: max(a.Turns, b.Turns), InputTokens: max(a.InputTokens, b.InputTokens),
		OutputTokens: max(a.OutputTokens, b.OutputTokens), CostUSD: max(a.CostUSD, b.CostUSD),
	}
}

// one seals a node and all that it refers to. Each draft is sealed once.
func (s *sealer) one(h node.Hash, place gitcas.Place) (node.Hash, error) {
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
		f, err := s.one(ref, place)
		if err != nil {
			return "", err
		}
		if f != ref {
			swap[string(ref)] = string(f)
		}
	}
	f, err := s.add(n.Type, replaceRefs(n.Payload, swap), place)
	if err != nil {
		return "", fmt.Errorf("node %s: %w", h, err)
	}
	s.final[h] = f
	return f, nil
}

// text is one for a node that must be a plain string.
func (s *sealer) text(h node.Hash) (node.Hash, error) {
	n, err := overlay{s.drafts, s.known}.Get(h)
	if err != nil {
		return "", fmt.Errorf("node %s is neither staged nor part of the thread: %w", h, err)
	}
	if n.Type != node.String {
		return "", fmt.Errorf("node %s is no string node", h)
	}
	return s.one(h, gitcas.Place{Thread: s.id})
}

// add redacts a payload, checks it against its schema and keeps the node.
func (s *sealer) add(typ node.Hash, payload any, place gitcas.Place) (node.Hash, error) {
	return s.addUpTo(maxOutputBytes, typ, payload, place)
}

func (s *sealer) addUpTo(limit int, typ node.Hash, payload any, place gitcas.Place) (node.Hash, error) {
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
func (s *sealer) validate(n node.Node) error {
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
func (s *sealer) keep(h node.Hash, n node.Node, place gitcas.Place) error {
	if s.placed[h] {
		return nil
	}
	raw, err := node.EncodeCBOR(n.Payload)
	if err != nil {
		return err
	}
	if s.bytes+len(raw) > maxStepBytes {
		return fmt.Errorf("the step's nodes are larger than %d bytes together", maxStepBytes)
	}
	s.bytes += len(raw)
	s.placed[h] = true
	s.nodes = append(s.nodes, gitcas.PlacedNode{Hash: h, Node: n, Place: place})
	return nil
}

func (s *sealer) cleanText(text string) (string, error) {
	v, _, err := s.redact.Value(text)
	if err != nil {
		return "", fmt.Errorf("check for secrets: %w", err)
	}
	clean, _ := v.(string)
	return clean, nil
}

// schema returns the compiled schema of a type: one that the store knows, one of
// uwf's own, or one that the agent staged itself (which is then stored too).
func (s *sealer) schema(typ node.Hash) (*node.Schema, error) {
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
func (s *sealer) stagedSchema(typ node.Hash) (node.Node, error) {
	n, staged := s.drafts[typ]
	if !staged {
		return n, errors.New("no schema that this store knows, and none was staged")
	}
	if err := fits(maxOutputBytes, n.Payload); err != nil {
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

func sameHash(a, b *node.Hash) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func show(h *node.Hash) string {
	if h == nil {
		return "none"
	}
	return string(*h)
}

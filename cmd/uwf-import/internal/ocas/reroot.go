package ocas

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	definition "github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/statefile"
)

// Limits on what is re-rooted at once: a thread, or a registered workflow.
const (
	maxRerooted = 500_000 // nodes
	maxDeep     = 1_000   // references below a record
)

// rerooter moves nodes from below a former meta-schema, of the json-cas era, below today's.
// A schema becomes a node of today's meta-schema, with the same payload; so does the former
// meta-schema itself, that it can be read. A data node gets its schema's new hash as type
// and its references' new hashes in its payload. Timestamps stay. What it makes the Source
// knows until it forgets: records and workflows become ones that ReadChain reads.
type rerooter struct {
	s       *Source
	done    map[node.Hash]node.Hash // what became of a node; empty: that is being worked out
	most    int                     // nodes
	deep    int
	former  []statefile.Former
	schemas []Node // that got another hash
}

// shaper makes a record, or a workflow, of today out of one that was re-rooted.
type shaper func(node.Node) (node.Node, error)

func newRerooter(s *Source) *rerooter {
	return &rerooter{s: s, done: map[node.Hash]node.Hash{}, most: maxRerooted}
}

// rerootChain is ReadChain for a thread with nodes below a former meta-schema.
func (s *Source) rerootChain(head node.Hash) (Chain, error) {
	r := newRerooter(s)
	to, err := r.rerootRecords(head)
	if err != nil {
		return Chain{}, err
	}
	out, err := s.readChain(to)
	if err != nil {
		return out, fmt.Errorf("re-rooted from %s: %w", head, err)
	}
	var nodes []Node
	for _, p := range out.Parts {
		nodes = append(nodes, p.Nodes...)
	}
	more, former := r.sumUp(nodes)
	out.Parts[0].Nodes, out.Former = append(more, out.Parts[0].Nodes...), former
	return out, nil
}

// Flow is a workflow, with all that it refers to.
type Flow struct {
	Hash   node.Hash
	Nodes  []Node
	Former []statefile.Former // the nodes that had other hashes, sorted by these
}

// ReadWorkflow reads a workflow. One below a former meta-schema gets another hash.
func (s *Source) ReadWorkflow(h node.Hash) (Flow, error) {
	nodes, err := s.Reach(h)
	if !errors.Is(err, node.ErrNotSchema) {
		return Flow{Hash: h, Nodes: nodes}, err
	}
	r := newRerooter(s)
	to, err := r.rerootNode(h, r.shapeWorkflow)
	if err == nil {
		nodes, err = s.Reach(to)
	}
	more, former := r.sumUp(nodes)
	return Flow{to, append(more, nodes...), former}, err
}

// sumUp gives the schemas that nobody refers to any more, those of records and the former
// meta-schemas, and what is called otherwise now: of these, of the nodes, and of what every
// uwf knows.
func (r *rerooter) sumUp(nodes []Node) (more []Node, former []statefile.Former) {
	there := map[node.Hash]bool{}
	for _, n := range nodes {
		there[n.Hash] = true
	}
	for _, n := range r.schemas {
		if _, known := r.s.builtin[n.Hash]; !known && !there[n.Hash] {
			there[n.Hash], more = true, append(more, n)
		}
	}
	for _, f := range r.former {
		if _, known := r.s.builtin[f.Hash]; known || there[f.Hash] {
			former = append(former, f)
		}
	}
	slices.SortFunc(former, func(a, b statefile.Former) int { return strings.Compare(string(a.Former), string(b.Former)) })
	return more, former
}

// rerootRecords moves a chain, its start first, and returns its new head.
func (r *rerooter) rerootRecords(head node.Hash) (node.Hash, error) {
	records, err := r.listRecords(head)
	if err != nil {
		return "", err
	}
	start, err := r.s.Get(records[0])
	if err != nil {
		return "", err
	}
	p, _ := start.Payload.(map[string]any)
	if textOf(p, "workflow") == "" {
		return "", fmt.Errorf("node %s, of type %s: %w", records[0], start.Type, ErrOtherSchema)
	}
	if _, err := r.rerootNode(node.Hash(textOf(p, "workflow")), r.shapeWorkflow); err != nil {
		return "", fmt.Errorf("its workflow: %w", err)
	}
	shape := r.shapeStart
	var to node.Hash
	for _, h := range records {
		if to, err = r.rerootNode(h, shape); err != nil {
			return "", err
		}
		shape = r.shapeStep
	}
	return to, nil
}

// listRecords follows a chain of any generation, and gives it oldest first.
func (r *rerooter) listRecords(head node.Hash) ([]node.Hash, error) {
	var out []node.Hash
	for at := head; ; {
		if len(out) > maxSteps {
			return nil, fmt.Errorf("the chain runs in a circle, or is endless, at %s", at)
		}
		n, err := r.s.Get(at)
		if err != nil {
			return nil, err
		}
		out = append(out, at)
		p, _ := n.Payload.(map[string]any)
		start, isStep := p["start"].(string)
		if !isStep {
			slices.Reverse(out)
			return out, nil
		}
		prev, _ := p["prev"].(string)
		at = node.Hash(cmp.Or(prev, start))
	}
}

// rerootNode moves a node and all that it refers to, and returns its new hash: the same for
// one that is below today's meta-schema with all that it refers to. A shape that is not nil
// makes a record of it.
func (r *rerooter) rerootNode(h node.Hash, shape shaper) (node.Hash, error) {
	to, seen := r.done[h]
	_, known := r.s.builtin[h]
	switch {
	case known:
		return h, nil
	case seen && to == "" || r.deep >= maxDeep:
		return "", fmt.Errorf("node %s: %w, or deeper than %d", h, node.ErrCircle, maxDeep)
	case seen:
		return to, nil
	case len(r.done) >= r.most:
		return "", fmt.Errorf("node %s: more than %d nodes would get other hashes at once", h, r.most)
	}
	n, err := r.s.Get(h)
	if err != nil {
		return "", err
	}
	r.done[h] = ""
	r.deep++
	to, err = r.renewNode(h, n, shape)
	r.deep--
	r.done[h] = to
	return to, err
}

// renewNode makes a node anew, which was checked against its hash.
func (r *rerooter) renewNode(h node.Hash, n node.Node, shape shaper) (node.Hash, error) {
	out := node.Node{Type: node.MetaSchema, Payload: n.Payload, Timestamp: n.Timestamp}
	isSchema, err := r.isSchema(h, n)
	if err == nil && !isSchema {
		out, err = r.renewData(n)
		if err == nil && shape != nil {
			out, err = shape(out)
		}
	}
	if err == nil {
		err = r.s.schemas.CheckNode(r.s, out)
	}
	if err != nil {
		return "", fmt.Errorf("node %s: %w", h, err)
	}
	to, err := out.ComputeHash()
	if err != nil || to == h {
		return to, err
	}
	r.s.known[to] = out
	r.former = append(r.former, statefile.Former{Former: h, Hash: to})
	if isSchema {
		r.schemas = append(r.schemas, Node{to, out, record.ToShared})
	}
	return to, nil
}

// isSchema reports whether a node is a schema, below whatever meta-schema: a node that is
// its own type.
func (r *rerooter) isSchema(h node.Hash, n node.Node) (bool, error) {
	if n.Type == h {
		return true, nil
	}
	t, err := r.s.Get(n.Type)
	if err != nil || t.Type != n.Type {
		return false, err
	}
	_, err = r.rerootNode(n.Type, nil)
	return true, err
}

// renewData gives a data node, which has to fit its schema, new references. A text in it that
// is the hash of a node that it refers to, and no more, follows that.
func (r *rerooter) renewData(n node.Node) (node.Node, error) {
	typ, err := r.rerootNode(n.Type, nil)
	if err != nil {
		return n, err
	}
	schema, err := r.s.schemas.LoadSchema(r.s, typ)
	if err != nil {
		return n, err
	}
	if err := schema.Validate(n.Payload); err != nil {
		return n, err
	}
	renamed := map[string]string{}
	for _, h := range schema.Refs(n.Payload) {
		to, err := r.rerootNode(h, nil)
		if err != nil {
			return n, err
		}
		renamed[string(h)] = string(to)
	}
	n.Type = typ
	n.Payload = node.MapStrings(n.Payload, func(s string) string { return cmp.Or(renamed[s], s) })
	return n, nil
}

// shapeWorkflow makes the node that a definition of that era is stored as now.
func (r *rerooter) shapeWorkflow(n node.Node) (node.Node, error) {
	if record.IsWorkflow(n.Type) {
		return n, nil
	}
	def, err := definition.FromFormer(r.s, n.Payload)
	if err != nil {
		return n, err
	}
	_, nodes, err := definition.Materialize(def, time.UnixMilli(n.Timestamp))
	if err != nil {
		return n, err
	}
	return nodes[len(nodes)-1], nil
}

// shapeStart makes a StartNode of today: the early ones did not record where they began.
func (r *rerooter) shapeStart(n node.Node) (node.Node, error) {
	if record.IsStart(n.Type) {
		return n, nil
	}
	p, err := r.readFields(n, "workflow", "prompt", "cwd")
	if err != nil {
		return n, err
	}
	out, _, err := record.Start{Workflow: node.Hash(textOf(p, "workflow")), Prompt: textOf(p, "prompt"), Cwd: textOf(p, "cwd")}.Node(time.UnixMilli(n.Timestamp))
	return out, err
}

// shapeStep makes a StepNode of today. The early ones did not record when a step began and
// ended, nor where: such a step has the node's own time as both, and no folder.
func (r *rerooter) shapeStep(n node.Node) (node.Node, error) {
	if record.IsStep(n.Type) {
		return n, nil
	}
	p, err := r.readFields(n, "start", "prev", "role", "output", "detail", "agent", "edgePrompt", "startedAtMs", "completedAtMs", "cwd", "assembledPrompt")
	if err != nil {
		return n, err
	}
	at := time.UnixMilli(n.Timestamp)
	step := record.Step{
		Start: node.Hash(textOf(p, "start")), Role: textOf(p, "role"), Output: node.Hash(textOf(p, "output")), Detail: node.Hash(textOf(p, "detail")),
		Agent: textOf(p, "agent"), EdgePrompt: textOf(p, "edgePrompt"), Cwd: textOf(p, "cwd"), CompletedAtMs: n.Timestamp,
	}
	if prev := node.Hash(textOf(p, "prev")); prev != "" {
		step.Prev = &prev
	}
	if ms, ok := p["completedAtMs"].(int64); ok {
		step.CompletedAtMs = ms
	}
	step.StartedAtMs = step.CompletedAtMs
	if ms, ok := p["startedAtMs"].(int64); ok {
		step.StartedAtMs = ms
	}
	if prompt := textOf(p, "assembledPrompt"); prompt != "" {
		said, h, err := node.New(node.String, prompt, at)
		if err != nil {
			return n, err
		}
		r.s.known[h], step.AssembledPrompt = said, &h
	}
	out, _, err := step.Node(at)
	return out, err
}

// readFields is the payload of a record, with the texts and times in it: builds of a few
// days had nodes of their own for some of these. What it has besides nothing today can hold.
func (r *rerooter) readFields(n node.Node, known ...string) (map[string]any, error) {
	p, ok := n.Payload.(map[string]any)
	if !ok {
		return nil, ErrOtherSchema
	}
	p = maps.Clone(p)
	refs, err := r.s.schemas.Refs(r.s, n)
	if err != nil {
		return nil, err
	}
	for _, k := range slices.Sorted(maps.Keys(p)) {
		if !slices.Contains(known, k) {
			return nil, fmt.Errorf("%w: it has the field %.40q", ErrOtherSchema, k)
		}
		if slices.Contains([]string{"prompt", "edgePrompt", "startedAtMs", "completedAtMs", "cwd", "assembledPrompt"}, k) {
			if at := node.Hash(textOf(p, k)); slices.Contains(refs, at) {
				p[k] = r.s.known[at].Payload
			}
		}
	}
	return p, nil
}

func textOf(p map[string]any, field string) string {
	s, _ := p[field].(string)
	return s
}

package workflow

import (
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// NodeType is the type of workflow nodes: the schema Workflow of the TypeScript
// uwf, so that a workflow has the same hash in both systems.
const NodeType = record.WorkflowSchema

// IsWorkflow reports whether a node of this type is a workflow.
func IsWorkflow(typ node.Hash) bool { return typ == NodeType }

// ErrNoWorkflow is wrapped when a node is asked to be a workflow and isn't.
var ErrNoWorkflow = errors.New("not a workflow")

// Materialize returns the nodes of a definition: the roles' schemas in
// alphabetical order of the roles, each once, and last the workflow itself, whose
// hash it is. The schema of workflow nodes is not among them. A schema that stays
// known by its hash only (see Options.Nodes) is in the result too.
func Materialize(d *Definition, at time.Time) (node.Hash, []node.Node, error) {
	var nodes []node.Node
	seen := map[node.Hash]bool{}
	roles := make(map[string]any, len(d.Roles))
	for _, name := range d.RoleNames() {
		r := d.Roles[name]
		n, h, err := node.New(node.MetaSchema, titled(r, d.Name), at)
		if err != nil {
			return "", nil, fmt.Errorf("storing the schema of role %q of workflow %s: %w", name, d.Name, err)
		}
		if r.Frontmatter != "" && r.Frontmatter != h {
			return "", nil, fmt.Errorf("storing the schema of role %q of workflow %s: it is named as %s and hashes to %s", name, d.Name, r.Frontmatter, h)
		}
		if !seen[h] {
			seen[h] = true
			nodes = append(nodes, n)
		}
		roles[name] = rolePayload(r, h)
	}
	payload := map[string]any{"name": d.Name, "description": d.Description, "roles": roles, "graph": graphPayload(d.Graph)}
	n, h, err := node.New(NodeType, payload, at)
	if err != nil {
		return "", nil, fmt.Errorf("storing workflow %s: %w", d.Name, err)
	}
	return h, append(nodes, n), nil
}

// titled is a role's schema with the title that the TypeScript uwf gives it.
func titled(r Role, workflow string) any {
	m, ok := r.Schema.(map[string]any)
	if _, has := m["title"]; !ok || has || r.Frontmatter != "" {
		return r.Schema
	}
	out := make(map[string]any, len(m)+1)
	for k, v := range m {
		out[k] = v
	}
	out["title"] = workflow + "." + r.Name
	return out
}

func rolePayload(r Role, schema node.Hash) map[string]any {
	capabilities := make([]any, len(r.Capabilities))
	for i, s := range r.Capabilities {
		capabilities[i] = s
	}
	return map[string]any{
		"description": r.Description, "goal": r.Goal, "capabilities": capabilities,
		"procedure": r.Procedure, "output": r.Output, "frontmatter": string(schema),
	}
}

func graphPayload(graph map[string][]Edge) map[string]any {
	out := make(map[string]any, len(graph))
	for from, edges := range graph {
		targets := make(map[string]any, len(edges))
		for _, e := range edges {
			target := map[string]any{"role": e.To, "prompt": e.Prompt, "location": nil}
			if e.Location != "" {
				target["location"] = e.Location
			}
			targets[e.When.String()] = target
		}
		out[from] = targets
	}
	return out
}

// FromNode compiles a stored workflow. It reads the workflow and its roles'
// schemas and checks their shape, not their sense: that was done by Parse
// before they were stored.
func FromNode(g node.Getter, h node.Hash) (*Definition, error) {
	n, err := g.Get(h)
	if err != nil {
		return nil, fmt.Errorf("reading workflow %s: %w", h, err)
	}
	if !IsWorkflow(n.Type) {
		return nil, fmt.Errorf("reading workflow %s: %w: the node is of type %s", h, ErrNoWorkflow, n.Type)
	}
	p := &payloadReader{}
	root := p.object(n.Payload, "the payload")
	d := &Definition{
		Dialect: StatusMap, Name: p.text(root["name"], "name"), Description: p.text(root["description"], "description"),
		Roles: map[string]Role{}, Graph: map[string][]Edge{},
	}
	roles := p.object(root["roles"], "roles")
	for _, name := range sortedKeys(roles) {
		d.Roles[name] = p.role(name, roles[name])
	}
	graph := p.object(root["graph"], "graph")
	for _, from := range sortedKeys(graph) {
		d.Graph[from] = p.edges(from, graph[from])
	}
	if p.err != nil {
		return nil, fmt.Errorf("reading workflow %s: %w: %w", h, ErrNoWorkflow, p.err)
	}
	for _, name := range d.RoleNames() {
		r := d.Roles[name]
		s, err := g.Get(r.Frontmatter)
		if err != nil {
			return nil, fmt.Errorf("reading workflow %s: schema of role %q: %w", h, name, err)
		}
		if s.Type != node.MetaSchema {
			return nil, fmt.Errorf("reading workflow %s: %w: %s, named as the schema of role %q, is no schema", h, ErrNoWorkflow, r.Frontmatter, name)
		}
		r.Schema = s.Payload
		d.Roles[name] = r
	}
	d.StatusKey = definitionKey(d.Roles)
	return d, nil
}

// payloadReader reads a workflow's payload and keeps the first mistake.
type payloadReader struct{ err error }

func (p *payloadReader) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *payloadReader) object(v any, what string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		p.fail("%s must be a map", what)
	}
	return m
}

func (p *payloadReader) text(v any, what string) string {
	s, ok := v.(string)
	if !ok {
		p.fail("%s must be text", what)
	}
	return s
}

func (p *payloadReader) role(name string, v any) Role {
	what := "role " + quote(name)
	m := p.object(v, what)
	r := Role{
		Name: name, Capabilities: []string{},
		Description: p.text(m["description"], what+": description"), Goal: p.text(m["goal"], what+": goal"),
		Procedure: p.text(m["procedure"], what+": procedure"), Output: p.text(m["output"], what+": output"),
		Frontmatter: node.Hash(p.text(m["frontmatter"], what+": frontmatter")),
	}
	for _, c := range asList(m["capabilities"]) {
		r.Capabilities = append(r.Capabilities, p.text(c, what+": a capability"))
	}
	if !r.Frontmatter.Valid() {
		p.fail("%s: frontmatter is no hash", what)
	}
	return r
}

func (p *payloadReader) edges(from string, v any) []Edge {
	m := p.object(v, "graph "+quote(from))
	out := make([]Edge, 0, len(m))
	for _, status := range sortedKeys(m) {
		what := "edge " + from + " → " + status
		t := p.object(m[status], what)
		e := Edge{When: When{Kind: OnStatus, Value: status}, To: p.text(t["role"], what+": role"), Prompt: p.text(t["prompt"], what+": prompt")}
		if status == Unit {
			e.When = When{Kind: Always}
		}
		if l, ok := t["location"]; ok && l != nil {
			e.Location = p.text(l, what+": location")
		}
		out = append(out, e)
	}
	sortEdges(out)
	return out
}

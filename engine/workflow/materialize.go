package workflow

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// IsWorkflow reports whether a node of this type is a workflow.
func IsWorkflow(typ node.Hash) bool { return record.IsWorkflow(typ) }

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
		n, h, err := node.New(node.MetaSchema, withTitle(r, d.Name), at)
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
	typ := d.nodeType()
	payload := map[string]any{"name": d.Name, "description": d.Description, "roles": roles, "graph": d.graphPayload()}
	switch typ {
	case record.LiquidWorkflowSchema:
		payload["version"] = int64(1)
	case record.OwnWorkflowSchema:
		d.ownPayload(payload)
	}
	n, h, err := node.New(typ, payload, at)
	if err != nil {
		return "", nil, fmt.Errorf("storing workflow %s: %w", d.Name, err)
	}
	return h, append(nodes, n), nil
}

// nodeType is the schema of the TypeScript uwf's generation that the definition is
// of, so that it has the same hash there; our own where it fits none.
func (d *Definition) nodeType() node.Hash {
	switch {
	case d.Dialect == Conditions || d.Dialect == Architecture || len(d.Lists) > 0 || len(d.Conditions) > 0 || d.Limits != nil || d.hasApprovals():
		return record.OwnWorkflowSchema
	case d.Dialect == Liquid:
		return record.LiquidWorkflowSchema
	}
	// Those with new and resume too: 0.3.0 stored them so, and only builds between two
	// releases had a schema of their own for them.
	return record.WorkflowSchema
}

// ownPayload adds what only our schema has.
func (d *Definition) ownPayload(payload map[string]any) {
	payload["dialect"] = string(d.Dialect)
	if len(d.Conditions) > 0 {
		conditions := make(map[string]any, len(d.Conditions))
		for name, c := range d.Conditions {
			conditions[name] = map[string]any{"description": c.Description, "expression": c.Expression}
		}
		payload["conditions"] = conditions
	}
	if d.Limits != nil {
		payload["limits"] = d.Limits.toPayload()
	}
}

// withTitle is a role's schema with the title that the TypeScript uwf gives it.
func withTitle(r Role, workflow string) any {
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
	if r.SystemPrompt != "" {
		return map[string]any{"description": r.Description, "systemPrompt": r.SystemPrompt, "outputSchema": string(schema)}
	}
	capabilities := make([]any, len(r.Capabilities))
	for i, s := range r.Capabilities {
		capabilities[i] = s
	}
	return map[string]any{
		"description": r.Description, "goal": r.Goal, "capabilities": capabilities,
		"procedure": r.Procedure, "output": r.Output, "frontmatter": string(schema),
	}
}

func (d *Definition) graphPayload() map[string]any {
	out := make(map[string]any, len(d.Graph))
	for from, edges := range d.Graph {
		if d.Lists[from] {
			out[from] = listPayload(edges)
			continue
		}
		targets := make(map[string]any, len(edges))
		for _, e := range edges {
			key := e.When.String()
			if from == Start && d.AgentSuspends {
				key = keyNew
			}
			targets[key] = targetPayload(e)
		}
		if from == Start && d.Resume != nil {
			targets[keyResume] = targetPayload(*d.Resume)
		}
		out[from] = targets
	}
	return out
}

func targetPayload(e Edge) map[string]any {
	target := map[string]any{"role": e.To, "prompt": e.Prompt, "location": nil}
	if e.Location != "" {
		target["location"] = e.Location
	}
	if e.Approval != nil {
		target["approval"] = e.Approval.toPayload()
	}
	return target
}

func listPayload(edges []Edge) []any {
	out := make([]any, len(edges))
	for i, e := range edges {
		item := map[string]any{"role": e.To, "condition": nil}
		if e.When.Kind == OnCondition {
			item["condition"] = e.When.Value
		}
		if e.Prompt != "" {
			item["prompt"] = e.Prompt
		}
		if e.Location != "" {
			item["location"] = e.Location
		}
		if e.Approval != nil {
			item["approval"] = e.Approval.toPayload()
		}
		out[i] = item
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
	root := p.readObject(n.Payload, "the payload")
	d := &Definition{
		Name: p.readText(root["name"], "name"), Description: p.readText(root["description"], "description"),
		Roles: map[string]Role{}, Graph: map[string][]Edge{},
	}
	roles := p.readObject(root["roles"], "roles")
	p.checkMost(len(roles), maxRoles, "roles")
	for _, name := range sortedKeys(roles) {
		if p.err == nil {
			d.Roles[name] = p.readRole(name, roles[name])
		}
	}
	if p.err == nil {
		p.err = d.readSchemas(g)
	}
	if p.err == nil {
		d.StatusKey = definitionKey(d.Roles)
		p.readGraph(d, n.Type, root)
	}
	if p.err != nil {
		return nil, fmt.Errorf("reading workflow %s: %w", h, p.err)
	}
	return d, nil
}

// readSchemas finds the roles' schemas.
func (d *Definition) readSchemas(g node.Getter) error {
	for _, name := range d.RoleNames() {
		r := d.Roles[name]
		s, err := g.Get(r.Frontmatter)
		if err != nil {
			return fmt.Errorf("schema of role %q: %w", name, err)
		}
		if s.Type != node.MetaSchema {
			return fmt.Errorf("%w: %s, named as the schema of role %q, is no schema", ErrNoWorkflow, r.Frontmatter, name)
		}
		r.Schema = s.Payload
		d.Roles[name] = r
	}
	return nil
}

// payloadReader reads a workflow's payload and keeps the first mistake.
type payloadReader struct{ err error }

func (p *payloadReader) noteError(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: "+format, append([]any{ErrNoWorkflow}, args...)...)
	}
}

// checkMost refuses what no definition holds that was read from a file.
func (p *payloadReader) checkMost(n, limit int, what string) {
	if n > limit {
		p.noteError("it has %d %s; the limit is %d", n, what, limit)
	}
}

func (p *payloadReader) readObject(v any, what string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		p.noteError("%s must be a map", what)
	}
	return m
}

func (p *payloadReader) readText(v any, what string) string {
	s, ok := v.(string)
	if !ok {
		p.noteError("%s must be text", what)
	}
	return s
}

func (p *payloadReader) readRole(name string, v any) Role {
	what := "role " + quoteName(name)
	m := p.readObject(v, what)
	r := Role{Name: name, Capabilities: []string{}, Description: p.readText(m["description"], what+": description")}
	schema := "frontmatter"
	if _, old := m["systemPrompt"]; old {
		schema, r.SystemPrompt = "outputSchema", p.readText(m["systemPrompt"], what+": systemPrompt")
	} else {
		r.Goal, r.Procedure = p.readText(m["goal"], what+": goal"), p.readText(m["procedure"], what+": procedure")
		r.Output = p.readText(m["output"], what+": output")
	}
	r.Frontmatter = node.Hash(p.readText(m[schema], what+": "+schema))
	capabilities, _ := m["capabilities"].([]any)
	for _, c := range capabilities {
		r.Capabilities = append(r.Capabilities, p.readText(c, what+": a capability"))
	}
	if !r.Frontmatter.Valid() {
		p.noteError("%s: %s is no hash", what, schema)
	}
	return r
}

// readGraph reads edges and conditions, and what dialect they are of.
func (p *payloadReader) readGraph(d *Definition, typ node.Hash, root map[string]any) {
	liquid := typ == record.LiquidWorkflowSchema
	if v := root["version"]; liquid && v != int64(1) {
		p.noteError("version %v of the format is not known", v)
	}
	if typ == record.OwnWorkflowSchema {
		liquid = root["dialect"] == string(Liquid)
		p.readOwn(d, root)
	}
	d.AgentSuspends = liquid
	graph := p.readObject(root["graph"], "graph")
	edges := len(graph)
	for _, v := range graph {
		list, _ := v.([]any)
		targets, _ := v.(map[string]any)
		edges += len(list) + len(targets)
	}
	if p.checkMost(edges, maxEdges, "edges"); p.err != nil {
		return
	}
	for _, from := range sortedKeys(graph) {
		if list, ok := graph[from].([]any); ok {
			d.setEdges(from, p.readEdgeList(d, from, list), true)
			continue
		}
		d.setEdges(from, p.readEdges(d, from, graph[from]), false)
	}
	if typ != record.OwnWorkflowSchema && d.hasApprovals() {
		p.noteError("nodes of type %s have no edges with an approval", typ)
	}
	if d.Dialect = d.findDialect(liquid); typ == record.OwnWorkflowSchema {
		d.Dialect = Dialect(p.readText(root["dialect"], "dialect"))
		if !slices.Contains([]Dialect{Conditions, Architecture, StatusMap, Liquid}, d.Dialect) {
			p.noteError("dialect %q is not known", d.Dialect)
		}
	}
}

// readOwn reads what only our schema has.
func (p *payloadReader) readOwn(d *Definition, root map[string]any) {
	if v, has := root["conditions"]; has {
		d.Conditions = map[string]Condition{}
		conditions := p.readObject(v, "conditions")
		p.checkMost(len(conditions), maxConditions, "conditions")
		for name, c := range conditions {
			m := p.readObject(c, "condition "+quoteName(name))
			d.Conditions[name] = Condition{
				Description: p.readText(m["description"], "condition "+quoteName(name)+": description"),
				Expression:  p.readText(m["expression"], "condition "+quoteName(name)+": expression"),
			}
		}
	}
	if v, has := root["limits"]; has {
		var err error
		if d.Limits, err = limitsOf(p.readObject(v, "limits")); err != nil {
			p.noteError("%v", err)
		}
	}
}

func (p *payloadReader) readEdgeList(d *Definition, from string, list []any) []Edge {
	out := make([]Edge, 0, len(list))
	for i, v := range list {
		what := fmt.Sprintf("edge %s → #%d", from, i+1)
		m := p.readObject(v, what)
		e := Edge{To: p.readText(m["role"], what+": role")}
		if v, has := m["condition"]; has && v != nil {
			e.When = When{Kind: OnCondition, Value: p.readText(v, what+": condition")}
			if _, known := d.Conditions[e.When.Value]; !known {
				p.noteError("%s: no condition %q", what, e.When.Value)
			}
		}
		if v, has := m["prompt"]; has {
			e.Prompt = p.readText(v, what+": prompt")
		}
		if v, has := m["location"]; has {
			e.Location = p.readText(v, what+": location")
		}
		p.readApproval(&e, from, what, m)
		out = append(out, e)
	}
	return out
}

func (p *payloadReader) readEdges(d *Definition, from string, v any) []Edge {
	m := p.readObject(v, "graph "+quoteName(from))
	out := make([]Edge, 0, len(m))
	for _, status := range sortedKeys(m) {
		what := "edge " + from + " → " + status
		t := p.readObject(m[status], what)
		e := Edge{When: When{Kind: OnStatus, Value: status}, To: p.readText(t["role"], what+": role"), Prompt: p.readText(t["prompt"], what+": prompt")}
		if l, ok := t["location"]; ok && l != nil {
			e.Location = p.readText(l, what+": location")
		}
		p.readApproval(&e, from, what, t)
		switch start := from == Start; {
		case start && status == keyResume:
			e.When = When{Kind: Always}
			d.Resume = &e
			continue
		case start && status == keyNew:
			d.AgentSuspends = true
			e.When = When{Kind: Always}
		case status == Unit:
			e.When = When{Kind: Always}
		}
		out = append(out, e)
	}
	return out
}

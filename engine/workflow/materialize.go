package workflow

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/strictyaml"
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
	if len(d.Lists) > 0 || len(d.Conditions) > 0 || d.Limits != nil || d.NeedsApproval() || d.hasChecks() {
		return record.OwnWorkflowSchema
	}
	return d.findGeneration().stored
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
	out := maps.Clone(m)
	out["title"] = workflow + "." + r.Name
	return out
}

func rolePayload(r Role, schema node.Hash) map[string]any {
	out := map[string]any{"description": r.Description}
	if len(r.Checks) > 0 {
		out["checks"] = listPayload(r.Checks)
	}
	if r.SystemPrompt != "" {
		out["systemPrompt"], out["outputSchema"] = r.SystemPrompt, string(schema)
		return out
	}
	out["goal"], out["capabilities"], out["procedure"] = r.Goal, listPayload(r.Capabilities), r.Procedure
	out["output"], out["frontmatter"] = r.Output, string(schema)
	return out
}

// listPayload is a list of texts as a node has it.
func listPayload(texts []string) []any {
	return lists.Map(texts, func(s string) any { return s })
}

func (d *Definition) graphPayload() map[string]any {
	out := make(map[string]any, len(d.Graph))
	for from, edges := range d.Graph {
		if d.Lists[from] {
			out[from] = lists.Map(edges, func(e Edge) any { return edgePayload(e, true) })
			continue
		}
		targets := make(map[string]any, len(edges))
		for _, e := range edges {
			key := e.When.String()
			if from == Start && d.AgentSuspends {
				key = keyNew
			}
			targets[key] = edgePayload(e, false)
		}
		if from == Start && d.Resume != nil {
			targets[keyResume] = edgePayload(*d.Resume, false)
		}
		out[from] = targets
	}
	return out
}

// edgePayload is an edge of a map, or of a list, as a workflow node has it.
func edgePayload(e Edge, list bool) map[string]any {
	out := map[string]any{"role": e.To}
	if e.Prompt != "" || !list {
		out["prompt"] = e.Prompt
	}
	switch {
	case e.Location != "":
		out["location"] = e.Location
	case !list:
		out["location"] = nil
	}
	if e.Approval != nil {
		out["approval"] = e.Approval.toPayload()
	}
	if list {
		out["condition"] = nil
	}
	if e.When.Kind == OnCondition {
		out["condition"] = e.When.Value
	}
	return out
}

// FromNode compiles a stored workflow, which is a definition in the one form that
// Materialize gives, with hashes in the place of schemas. Its shape is checked, not its
// sense: that was done by Parse before it was stored.
func FromNode(g node.Getter, h node.Hash) (*Definition, error) {
	n, err := g.Get(h)
	if err != nil {
		return nil, fmt.Errorf("reading workflow %s: %w", h, err)
	}
	if !IsWorkflow(n.Type) {
		return nil, fmt.Errorf("reading workflow %s: %w: the node is of type %s", h, ErrNoWorkflow, n.Type)
	}
	c := &compiler{problems: &source.Problems{}, opts: Options{Nodes: g}, root: strictyaml.Of(n.Payload), stored: n.Type}
	d := c.compileNode()
	if c.missing != nil {
		return nil, fmt.Errorf("reading workflow %s: %w", h, c.missing)
	}
	if !c.problems.Empty() {
		return nil, fmt.Errorf("reading workflow %s: %w: %s", h, ErrNoWorkflow, c.problems.First().Message)
	}
	// Other programs write the peers' nodes, and may leave out what is null.
	if again, _, err := Materialize(d, time.UnixMilli(n.Timestamp)); n.Type == record.OwnWorkflowSchema && again != h {
		return nil, errors.Join(fmt.Errorf("reading workflow %s: %w: it is not in the one form that workflows are stored in", h, ErrNoWorkflow), err)
	}
	return d, nil
}

// FromFormer compiles what a former generation stored as a workflow: in any form that Parse
// knows, with hashes in the place of schemas. Like FromNode it checks the shape and not the
// sense; Materialize gives the node that stands for it now.
func FromFormer(g node.Getter, payload any) (*Definition, error) {
	c := &compiler{problems: &source.Problems{}, opts: Options{Nodes: g}, root: strictyaml.Of(payload), stored: record.OwnWorkflowSchema}
	c.readDefinition("name", "description", "roles", "conditions", "graph")
	switch {
	case c.missing != nil:
		return nil, c.missing
	case !c.problems.Empty():
		return nil, fmt.Errorf("%w: %s", ErrNoWorkflow, c.problems.First().Message)
	}
	return &c.def, nil
}

// ForPeers gives a stored workflow the form that the TypeScript uwf can run: without limits,
// approvals and checks, which it does not know. It gives the node as it is stored, with its
// hash, where the TypeScript uwf knows that, and where it could not run it even so: conditions,
// lists of edges and system prompts have no form there.
func ForPeers(g node.Getter, h node.Hash) (node.Hash, node.Node, error) {
	n, err := g.Get(h)
	if n.Type != record.OwnWorkflowSchema { // nor is one that can't be read
		return h, n, err
	}
	d, err := FromNode(g, h)
	if err != nil {
		return "", n, err
	}
	d.Limits = nil
	for name, r := range d.Roles {
		r.Checks = nil
		d.Roles[name] = r
	}
	for _, edges := range d.Graph {
		for i := range edges {
			edges[i].Approval = nil
		}
	}
	if d.nodeType() == record.OwnWorkflowSchema {
		return h, n, nil
	}
	h, nodes, err := Materialize(d, time.UnixMilli(n.Timestamp))
	return h, append([]node.Node{n}, nodes...)[len(nodes)], err
}

// compileNode reads a node's payload. The result is nil where the payload is no definition
// at all. Otherwise there is one beside reported problems, too: it is complete only where
// nothing was reported.
func (c *compiler) compileNode() *Definition {
	keys := []string{"name", "description", "roles", "graph"}
	switch c.stored {
	case record.LiquidWorkflowSchema:
		keys = append(keys, "version")
		if c.root.Get("version") == nil {
			c.problems.Add(c.root.Pos, 1, "", "the definition has no version")
		}
	case record.OwnWorkflowSchema:
		keys = append(keys, "dialect", "conditions", "limits")
		c.def.Dialect = Dialect(c.requireText(c.root, "dialect", "the definition", c.root.Pos))
		if _, known := generationOf(c.def.Dialect); !known {
			c.problems.Add(c.root.Pos, 1, "", "dialect %q is not known", c.def.Dialect)
		}
	}
	if !c.readDefinition(keys...) {
		return nil
	}
	if c.stored != record.OwnWorkflowSchema && c.def.NeedsApproval() {
		c.problems.Add(c.root.Pos, 1, "", "nodes of type %s have no edges with an approval", c.stored)
	}
	if c.stored != record.OwnWorkflowSchema && c.def.hasChecks() {
		c.problems.Add(c.root.Pos, 1, "", "nodes of type %s have no roles with checks", c.stored)
	}
	return &c.def
}

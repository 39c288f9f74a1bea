package workflow

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/gitcas/node"
)

// Caps of a definition. They bound the work that a hostile one can cause.
const (
	maxRoles = 200
	maxEdges = 2_000
)

// compiler turns the values of a definition into a Definition, with all that is
// needed to say where a mistake is.
type compiler struct {
	problems *source.Problems
	opts     Options
	root     *source.Value

	name        string
	description string
	roles       []roleAt
	graph       []fromAt
	graphPos    source.Pos
	statusKey   string
}

// roleAt is a role and where it stands. Known is false where its schema could
// not be read, so that nothing can be said about its statuses.
type roleAt struct {
	Role
	at     source.Pos
	schema *source.Value
	known  bool
}

// fromAt is what leaves a role, and where that stands.
type fromAt struct {
	name  string
	at    source.Pos
	edges []edgeAt
	// broken says that an edge could not be read, which was reported.
	broken bool
}

// edgeAt is an edge and where its parts stand.
type edgeAt struct {
	Edge
	at       source.Pos    // of the status
	to       *source.Value // nil: not given
	prompt   *source.Value
	location *source.Value
}

// compile reads the whole definition and checks it. The result is complete only
// where nothing was reported.
func (c *compiler) compile() *Definition {
	if c.root.Kind != source.KindMap {
		if c.root.Kind != source.KindBad {
			c.problems.Add(c.root.Pos, c.root.Length(), "write a map with name, description, roles and graph",
				"a definition is a map, this is %s", c.root.KindName())
		}
		return nil
	}
	c.unknownKeys(c.root, "the definition", "name", "description", "roles", "graph", "conditions")
	c.name = c.text(c.root, "name", "the definition", c.root.Pos)
	c.description = c.text(c.root, "description", "the definition", c.root.Pos)
	c.readRoles()
	c.readGraph()
	c.checkNames()
	c.check()
	return c.definition()
}

// check looks at everything beyond the shape.
func (c *compiler) check() {
	roles := make(map[string]Role, len(c.roles))
	for _, r := range c.roles {
		roles[r.Name] = r.Role
	}
	c.statusKey = definitionKey(roles)
	c.checkSchemas()
	c.checkGraph()
	c.checkStatuses()
	c.checkTemplates()
}

func (c *compiler) definition() *Definition {
	d := &Definition{Dialect: StatusMap, Name: c.name, Description: c.description, StatusKey: c.statusKey,
		Roles: make(map[string]Role, len(c.roles)), Graph: make(map[string][]Edge, len(c.graph))}
	for _, r := range c.roles {
		d.Roles[r.Name] = r.Role
	}
	for _, f := range c.graph {
		edges := make([]Edge, 0, len(f.edges))
		for _, e := range f.edges {
			edges = append(edges, e.Edge)
		}
		sortEdges(edges)
		d.Graph[f.name] = edges
	}
	return d
}

// unknownKeys reports the keys of a map that nobody reads.
func (c *compiler) unknownKeys(v *source.Value, what string, known ...string) {
	for _, e := range v.Entries {
		if slices.Contains(known, e.Key) {
			continue
		}
		fix := "known are: " + strings.Join(known, ", ")
		if s := Suggest(e.Key, known); s != "" {
			fix = "did you mean `" + s + "`?"
		}
		c.problems.Add(e.Pos, utf8.RuneCountInString(e.Key), fix, "%s has an unknown key %q", what, e.Key)
	}
}

// text reads a required text field of a map.
func (c *compiler) text(v *source.Value, key, what string, missing source.Pos) string {
	e := v.Get(key)
	if e == nil {
		if !v.Broken {
			c.problems.Add(missing, 1, "add `"+key+": …`", "%s has no `%s`", what, key)
		}
		return ""
	}
	s, _ := c.textOf(e.Val, "`"+key+"` of "+what)
	return s
}

// textOf reads a value as text.
func (c *compiler) textOf(v *source.Value, what string) (string, bool) {
	switch s := v.Scalar.(type) {
	case string:
		if v.Kind == source.KindScalar {
			return s, true
		}
	case nil:
		if v.Kind == source.KindScalar {
			c.problems.Add(v.Pos, 1, "write text, or \"\" for none", "%s is empty", what)
			return "", false
		}
	}
	if v.Kind != source.KindBad && !v.Broken {
		fix := "write text"
		switch v.Kind {
		case source.KindScalar:
			fix = "put it in quotes"
		case source.KindMap:
			fix = "put text that holds {{ }} or \": \" in quotes"
		}
		c.problems.Add(v.Pos, v.Length(), fix, "%s must be text, this is %s", what, v.KindName())
	}
	return "", false
}

func (c *compiler) readRoles() {
	e := c.root.Get("roles")
	if e == nil {
		c.problems.Add(c.root.Pos, 1, "add `roles:` with at least one role", "the definition has no `roles`")
		return
	}
	if e.Val.Kind != source.KindMap || len(e.Val.Entries) == 0 {
		if e.Val.Kind != source.KindBad {
			c.problems.Add(e.Pos, len(e.Key), "write a map from a role's name to its description, goal, …",
				"`roles` must be a map with at least one role, this is %s", emptyOr(e.Val))
		}
		return
	}
	if n := len(e.Val.Entries); n > maxRoles {
		c.problems.Add(e.Pos, len(e.Key), "divide the workflow", "the definition has %d roles; the limit is %d", n, maxRoles)
		return
	}
	for _, r := range e.Val.Entries {
		c.readRole(r)
	}
}

func emptyOr(v *source.Value) string {
	if v.Kind == source.KindMap {
		return "empty"
	}
	return v.KindName()
}

func (c *compiler) readRole(e source.Entry) {
	what := "role " + quote(e.Key)
	role := roleAt{Role: Role{Name: e.Key, Capabilities: []string{}}, at: e.Pos}
	if e.Val.Kind != source.KindMap {
		if e.Val.Kind != source.KindBad {
			c.problems.Add(e.Pos, utf8.RuneCountInString(e.Key), "give it description, goal, capabilities, procedure, output and frontmatter",
				"%s must be a map, this is %s", what, e.Val.KindName())
		}
		c.roles = append(c.roles, role)
		return
	}
	c.unknownKeys(e.Val, what, "description", "goal", "capabilities", "procedure", "output", "frontmatter", "meta")
	role.Description = c.text(e.Val, "description", what, e.Pos)
	role.Goal = c.text(e.Val, "goal", what, e.Pos)
	role.Procedure = c.text(e.Val, "procedure", what, e.Pos)
	role.Output = c.text(e.Val, "output", what, e.Pos)
	role.Capabilities = c.capabilities(e, what)
	c.readSchema(&role, e)
	c.roles = append(c.roles, role)
}

func (c *compiler) capabilities(role source.Entry, what string) []string {
	out := []string{}
	e := role.Val.Get("capabilities")
	if e == nil {
		if !role.Val.Broken {
			c.problems.Add(role.Pos, 1, "add `capabilities: []`", "%s has no `capabilities`", what)
		}
		return out
	}
	if e.Val.Kind != source.KindList {
		if e.Val.Kind != source.KindBad {
			c.problems.Add(e.Pos, len(e.Key), "write a list, [] for none", "`capabilities` of %s must be a list of texts, this is %s", what, e.Val.KindName())
		}
		return out
	}
	for _, item := range e.Val.Items {
		if s, ok := c.textOf(item, "a capability of "+what); ok {
			out = append(out, s)
		}
	}
	return out
}

// readSchema reads frontmatter, or meta as the architecture page calls it: a
// schema, or the hash of one.
func (c *compiler) readSchema(role *roleAt, e source.Entry) {
	what := "role " + quote(e.Key)
	schema, meta := e.Val.Get("frontmatter"), e.Val.Get("meta")
	switch {
	case schema != nil && meta != nil:
		c.problems.Add(meta.Pos, len("meta"), "remove one of the two", "%s has both `frontmatter` and `meta`: they mean the same", what)
		return
	case schema == nil && meta == nil && e.Val.Broken:
		return
	case schema == nil && meta == nil:
		c.problems.Add(e.Pos, utf8.RuneCountInString(e.Key), "add `frontmatter:` with a JSON schema of the role's output", "%s has no `frontmatter`", what)
		return
	case schema == nil:
		schema = meta
	}
	switch {
	case schema.Val.Kind == source.KindMap:
		role.schema = schema.Val
		plain, err := node.Normalize(schema.Val.Plain())
		if err != nil {
			c.problems.Add(schema.Pos, utf8.RuneCountInString(schema.Key), "simplify the schema", "the schema of %s can't be stored: %v", what, err)
			return
		}
		role.Schema, role.known = plain, true
	case schema.Val.Kind == source.KindScalar && node.Hash(schema.Val.Text).Valid():
		c.schemaByHash(role, schema.Val)
	case schema.Val.Kind != source.KindBad:
		c.problems.Add(schema.Pos, utf8.RuneCountInString(schema.Key), "write a JSON schema with `type: object`",
			"`%s` of %s must be a JSON schema, this is %s", schema.Key, what, schema.Val.KindName())
	}
}

func (c *compiler) schemaByHash(role *roleAt, v *source.Value) {
	h := node.Hash(v.Text)
	if c.opts.Nodes == nil {
		c.problems.Add(v.Pos, v.Length(), "write the schema itself here", "role %q names a schema by hash, and there is no store to find it in", role.Name)
		return
	}
	n, err := c.opts.Nodes.Get(h)
	if err != nil {
		c.problems.Add(v.Pos, v.Length(), "store the schema first, or write it here", "role %q: schema %s can't be read: %v", role.Name, h, err)
		return
	}
	if n.Type != node.MetaSchema {
		c.problems.Add(v.Pos, v.Length(), "name a schema node", "role %q: %s is no schema", role.Name, h)
		return
	}
	role.Schema, role.Frontmatter, role.schema, role.known = n.Payload, h, v, true
}

func (c *compiler) readGraph() {
	e := c.root.Get("graph")
	if e == nil {
		c.problems.Add(c.root.Pos, 1, "add `graph:` with $START and each role", "the definition has no `graph`")
		return
	}
	c.graphPos = e.Pos
	if e.Val.Kind != source.KindMap {
		if e.Val.Kind != source.KindBad {
			c.problems.Add(e.Pos, len(e.Key), "write a map from $START and each role to its edges", "`graph` must be a map, this is %s", e.Val.KindName())
		}
		return
	}
	edges := len(e.Val.Entries)
	for _, f := range e.Val.Entries {
		edges += len(f.Val.Entries)
	}
	if edges > maxEdges {
		c.problems.Add(e.Pos, len(e.Key), "divide the workflow", "the graph has more than %d edges", maxEdges)
		return
	}
	for _, f := range e.Val.Entries {
		c.graph = append(c.graph, c.readEdges(f))
	}
}

func (c *compiler) readEdges(f source.Entry) fromAt {
	out := fromAt{name: f.Key, at: f.Pos, broken: f.Val.Broken || f.Val.Kind == source.KindBad}
	switch f.Val.Kind {
	case source.KindMap:
		for _, e := range f.Val.Entries {
			when := When{Kind: OnStatus, Value: e.Key}
			if e.Key == Unit {
				when = When{Kind: Always}
			}
			edge, ok := c.readEdge(f.Key, when, e.Pos, e.Val)
			if !ok {
				out.broken = true
				continue
			}
			out.edges = append(out.edges, edge)
		}
	case source.KindList:
		// The architecture page's list form. Items with a condition were refused
		// before, so each of these is taken unconditionally.
		for i, item := range f.Val.Items {
			if i > 0 && item.Kind != source.KindBad {
				c.problems.Add(item.Pos, 1, "remove it, or write a map from status to edge", "edge %d of %s is never taken: the first has no condition", i+1, f.Key)
				continue
			}
			edge, ok := c.readEdge(f.Key, When{Kind: Always}, item.Pos, item)
			if !ok {
				out.broken = true
				continue
			}
			out.edges = append(out.edges, edge)
		}
	case source.KindScalar:
		out.broken = true
		c.problems.Add(f.Pos, utf8.RuneCountInString(f.Key), "write a map from status to {role, prompt}", "the edges of %s must be a map, this is %s", f.Key, f.Val.KindName())
	}
	return out
}

func (c *compiler) readEdge(from string, when When, at source.Pos, v *source.Value) (edgeAt, bool) {
	out := edgeAt{Edge: Edge{When: when}, at: at}
	what := "edge " + from + " → " + when.String()
	if v.Kind != source.KindMap {
		if v.Kind != source.KindBad {
			c.problems.Add(at, utf8.RuneCountInString(when.String()), "write {role: …, prompt: …}", "%s must be a map, this is %s", what, v.KindName())
		}
		return out, false
	}
	c.unknownKeys(v, what, "role", "prompt", "location", "condition")
	if e := v.Get("role"); e != nil {
		out.to = e.Val
		out.To, _ = c.textOf(e.Val, "`role` of "+what)
	} else {
		c.problems.Add(at, utf8.RuneCountInString(when.String()), "add `role:` with the next role, $END or $SUSPEND", "%s has no `role`", what)
	}
	if e := v.Get("prompt"); e != nil {
		out.prompt = e.Val
		out.Prompt, _ = c.textOf(e.Val, "`prompt` of "+what)
	} else if from != Start && out.To != End {
		c.problems.Add(at, utf8.RuneCountInString(when.String()), "add `prompt:` with what the next role is to do", "%s has no `prompt`", what)
	}
	if e := v.Get("location"); e != nil && !e.Val.IsNull() {
		out.location = e.Val
		var ok bool
		if out.Location, ok = c.textOf(e.Val, "`location` of "+what); ok && strings.TrimSpace(out.Location) == "" {
			c.problems.Add(e.Pos, len(e.Key), "leave it out", "`location` of %s is blank", what)
		}
	}
	return out, true
}

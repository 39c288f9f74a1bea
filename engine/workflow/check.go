package workflow

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/advice"
	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// checker checks what was read of a definition, beyond its shape.
type checker struct{ *compiler }

// quoteName shows a name in a message.
func quoteName(s string) string { return strconv.Quote(s) }

// checkNames refuses names that are reserved or can't become file names.
func (c *compiler) checkNames() {
	const fix = "use letters, digits, - _ and ., beginning with a letter or digit"
	if e := c.root.Get("name"); e != nil && c.def.Name != "" {
		if wrong := CheckName(c.def.Name); wrong != "" {
			c.reportValue(e.Val, fix, "the workflow's name %q %s", c.def.Name, wrong)
		}
	} else if e != nil && e.Val.Scalar == "" && e.Val.Kind == strictyaml.Scalar {
		c.problems.Add(e.Val.Pos, 1, fix, "the workflow's name is empty")
	}
	for _, r := range c.roles {
		wrong := CheckName(r.Name)
		if wrong == "" {
			continue
		}
		f := fix
		if slices.Contains([]string{Start, End, Suspend}, r.Name) {
			f = "remove the role: " + r.Name + " needs no description"
		}
		c.reportKey(r.key, f, "role %q: the name %s", r.Name, wrong)
	}
}

// findRole finds a role by name. Nil: there is none.
func (c *compiler) findRole(name string) *roleAt {
	for i := range c.roles {
		if c.roles[i].Name == name {
			return &c.roles[i]
		}
	}
	return nil
}

// findFrom finds what leaves a name in the graph. Nil: nothing does.
func (c *compiler) findFrom(name string) *fromAt {
	for i := range c.graph {
		if c.graph[i].name == name {
			return &c.graph[i]
		}
	}
	return nil
}

func (c *compiler) roleNames() []string {
	return lists.Map(c.roles, func(r roleAt) string { return r.Name })
}

// checkSchemas runs the guard walk that every schema node must pass.
func (c checker) checkSchemas() {
	for i := range c.roles {
		r := &c.roles[i]
		if !r.known {
			continue
		}
		m, ok := r.Schema.(map[string]any)
		if !ok {
			c.reportValue(r.schema, "write a JSON schema with `type: object`", "the schema of role %q is no map", r.Name)
			r.known = false
			continue
		}
		var bad *node.SchemaError
		switch err := node.CheckSchema(r.Schema); {
		case errors.As(err, &bad):
			for _, p := range bad.Problems {
				at, length := r.schema.At(p.Path)
				c.problems.Add(at, length, advice.Schema(r.Schema, p), "schema of role %q, %s: %s", r.Name, pointerName(p.Path), p.Message)
			}
			r.known = false
		case err != nil:
			c.reportValue(r.schema, "simplify the schema", "schema of role %q: %v", r.Name, err)
			r.known = false
		default:
			if t, has := m["type"]; has && t != "object" {
				at, length := r.schema.At("/type")
				c.problems.Add(at, length, "write `type: object`: an output is a map of fields", "the schema of role %q is of type %v", r.Name, t)
				r.known = false
			}
			c.checkRequired(r)
		}
	}
}

func pointerName(p string) string {
	if p == "" {
		return "at its top"
	}
	return "at " + p
}

// checkGraph looks at names and reachability.
func (c checker) checkGraph() {
	if c.graphKey == nil || c.rolesLost {
		return // reported: there is no graph, or there are no roles to lead to
	}
	if near := func(f fromAt) bool { return Suggest(f.name, []string{Start}) != "" }; c.findFrom(Start) == nil && !slices.ContainsFunc(c.graph, near) {
		c.reportKey(c.graphKey, "add `$START: {_: {role: …, prompt: …}}`", "the graph has no $START")
	}
	for _, f := range c.graph {
		c.checkFrom(f)
	}
	for _, r := range c.roles {
		typo := slices.ContainsFunc(c.graph, func(f fromAt) bool { return c.findRole(f.name) == nil && Suggest(f.name, []string{r.Name}) != "" })
		if CheckName(r.Name) == "" && c.findFrom(r.Name) == nil && !typo {
			c.reportKey(r.key, "add it to `graph` with where its output leads", "role %q has no edges: a thread that gets there can't go on", r.Name)
		}
	}
	c.checkReachable()
}

func (c checker) checkFrom(f fromAt) {
	switch {
	case f.name == End || f.name == Suspend:
		c.reportKey(f.key, "remove these edges", "%s is where a thread stops: nothing leaves it", f.name)
		return
	case f.name == Start:
		c.checkStart(f)
	case c.findRole(f.name) == nil:
		c.reportKey(f.key, text.DidYouMean(f.name, append(c.roleNames(), Start), "add the role to `roles`, or remove its edges"), "the graph has edges of %q, which is no role", f.name)
	case len(f.edges) == 0 && !f.broken:
		c.reportKey(f.key, "add an edge for each status of the role, or `_` for none", "role %q has no edges", f.name)
	}
	for _, e := range f.edges {
		c.checkTarget(f.name, e)
		if !f.list {
			c.checkPrompt(f.name, e)
		}
		c.checkLocation(f.name, e)
	}
	c.checkAsks(f)
	c.warnWithoutElse(f)
}

// warnWithoutElse warns of a list of edges that an output can leave without a way on: the step
// then fails after its agent was paid.
func (c checker) warnWithoutElse(f fromAt) {
	if n := len(f.edges); !f.list || f.broken || n == 0 || f.edges[n-1].When.Kind != OnCondition {
		return
	}
	c.warnings.Add(f.key.Pos, len(f.key.Key), "add an edge with `condition: null` at the end of the list",
		"%s has no edge for outputs that none of its conditions holds for: such a step fails after its agent was paid", f.name)
}

func (c checker) checkStart(f fromAt) {
	fix := "write one edge: `_: {role: …, prompt: …}`"
	if c.def.AgentSuspends {
		fix = "write `new: {role: …, prompt: …}`"
	}
	if !f.broken && !slices.ContainsFunc(f.edges, func(e edgeAt) bool { return !e.resume }) {
		c.reportKey(f.key, fix, "$START leads nowhere: it has no edge for a new thread")
	}
	for _, e := range f.edges {
		if e.When.Kind == OnStatus {
			c.reportEdge(&e, fix, "$START has an edge for status %q: nothing has run there that could have one", e.When.Value)
		}
		if e.To == End || e.To == Suspend {
			c.reportValue(e.to, "name the first role", "$START leads to %s: no role would run", e.To)
		}
	}
}

func (c checker) checkTarget(from string, e edgeAt) {
	if e.to == nil || e.To == "" || e.To == End || e.To == Suspend || c.findRole(e.To) != nil {
		if e.to != nil && e.To == "" && e.to.Scalar == "" {
			c.problems.Add(e.to.Pos, 1, "name the next role, $END or $SUSPEND", "%s leads to an empty name", e.describeEdge(from))
		}
		return
	}
	if e.To == Start {
		c.reportValue(e.to, "name a role", "%s leads to $START, where threads only begin", e.describeEdge(from))
		return
	}
	c.reportValue(e.to, suggestName(e.To, append(c.roleNames(), End, Suspend)), "%s leads to %q, which is no role", e.describeEdge(from), e.To)
}

func (c checker) checkPrompt(from string, e edgeAt) {
	if e.prompt == nil || e.prompt.Kind != strictyaml.Scalar || from == Start || e.To == End {
		return
	}
	if s, ok := e.prompt.Scalar.(string); ok && strings.TrimSpace(s) == "" {
		what := "what " + e.To + " is to do"
		if e.To == Suspend {
			what = "what the person is to answer"
		}
		c.reportValue(e.prompt, "say "+what, "%s has an empty prompt", e.describeEdge(from))
	}
}

// checkLocation refuses folders that lie outside of the work tree as far as the text
// itself says so; what a template brings in is checked when it is filled in.
func (c checker) checkLocation(from string, e edgeAt) {
	if e.location == nil || e.Location == "" {
		return
	}
	begin, _, _ := strings.Cut(e.Location, "{{")
	folder := path.Clean(strings.ReplaceAll(begin, `\`, "/"))
	if folder == ".." || strings.HasPrefix(folder, "../") || strings.HasPrefix(folder, "/") || strings.HasPrefix(begin, "~") || strings.Contains(begin, ":\\") {
		c.reportValue(e.location, "name a folder relative to the top of the work tree", "`location` of %s leads out of the work tree", e.describeEdge(from))
	}
}

// checkReachable follows the edges from $START and back from $END.
func (c checker) checkReachable() {
	if f := c.findFrom(Start); f == nil || slices.ContainsFunc(c.graph, func(f fromAt) bool { return f.broken }) || len(f.edges) == 0 {
		return // reported; what seems unreachable may be reached by what can't be read
	}
	meant := c.guessMeant()
	var ways, back []way
	for _, f := range c.graph {
		for _, e := range f.edges {
			ways = append(ways, way{meant(f.name), meant(e.To)})
			back = append(back, way{meant(e.To), meant(f.name)})
		}
	}
	reached, ending := reachableFrom(Start, ways), reachableFrom(End, back)
	for _, r := range c.roles {
		if !reached[r.Name] && CheckName(r.Name) == "" && c.findFrom(r.Name) != nil {
			c.reportKey(r.key, "add an edge that leads to it, or remove the role", "role %q can't be reached from $START", r.Name)
		}
	}
	if !ending[Start] {
		c.reportKey(c.graphKey, "add an edge with `role: $END`", "$END can't be reached from $START: a thread would never end")
		return
	}
	for _, f := range c.graph {
		if reached[f.name] && !ending[f.name] && len(f.edges) > 0 && c.findRole(f.name) != nil {
			c.reportKey(f.key, "give it, or a role that it leads to, an edge towards $END",
				"from role %q no path leads to $END: a thread that gets there would never end", f.name)
		}
	}
}

// guessMeant maps a mistyped name, which was reported, to the role that it most likely
// means, so that one typo doesn't also make roles unreachable.
func (c checker) guessMeant() func(string) string {
	names := append(c.roleNames(), Start, End, Suspend)
	known := map[string]string{} // many edges may have the same mistake
	return func(name string) string {
		as, ok := known[name]
		if !ok {
			as = name
			if !slices.Contains(names, name) {
				as = cmp.Or(Suggest(name, names), name)
			}
			known[name] = as
		}
		return as
	}
}

// way leads from a name of the graph to another.
type way struct{ from, to string }

// reachableFrom is every name that can be reached from one.
func reachableFrom(name string, ways []way) map[string]bool {
	seen := map[string]bool{name: true}
	for before := 0; before < len(seen); {
		before = len(seen)
		for _, w := range ways {
			if seen[w.from] {
				seen[w.to] = true
			}
		}
	}
	return seen
}

// checkStatuses compares the statuses of each role's schema with its edges.
func (c checker) checkStatuses() {
	for i := range c.roles {
		r := &c.roles[i]
		f := c.findFrom(r.Name)
		if !r.known || f == nil || len(f.edges) == 0 {
			continue
		}
		key := c.def.StatusKeyOf(r.Name)
		s := shape.StatusesOf(r.Schema, key)
		c.checkStatusTypes(r, key)
		if f.list {
			continue // conditions look at what they like
		}
		if c.def.findGeneration().mustHaveStatus {
			c.rejectUnitEdges(r, f, key)
		}
		if !s.Declared {
			c.checkUndeclared(r, f, key)
			continue
		}
		c.checkMissingEdges(r, f, s)
		c.checkExtraEdges(r, f, s, key)
	}
}

// checkUndeclared: a role without a status can only go one way.
func (c checker) checkUndeclared(r *roleAt, f *fromAt, key string) {
	or := ", or use `_`"
	if c.def.findGeneration().mustHaveStatus {
		or = ""
	}
	for _, e := range f.edges {
		if e.When.Kind == OnStatus {
			fix := fmt.Sprintf("add `%s: {enum: [%s, …]}` to the properties of the role's schema%s", key, e.When.Value, or)
			if near := nearField(r.Schema, key); near != "" {
				fix = fmt.Sprintf("rename the field %q to %s", near, key)
			}
			c.reportEdge(&e, fix, "role %q waits for status %q, but its schema has no %s", r.Name, e.When.Value, key)
		}
	}
}

// rejectUnitEdges reports edges for outputs without a status: in version 1 every output has
// one.
func (c checker) rejectUnitEdges(r *roleAt, f *fromAt, key string) {
	for _, e := range f.edges {
		if e.When.Kind == Always {
			c.reportEdge(&e, fmt.Sprintf("name the status, such as `done`, and add `%s: {const: done}` to the role's schema", key),
				"role %q has an edge `_` for outputs without a status, which version 1 doesn't have", r.Name)
		}
	}
}

// checkMissingEdges reports statuses of a role that no edge leads on from.
func (c checker) checkMissingEdges(r *roleAt, f *fromAt, s shape.Statuses) {
	reported := map[string]bool{}
	for _, v := range s.Values {
		// An edge that is mistyped is reported there.
		has := slices.ContainsFunc(f.keys, func(key string) bool {
			return key == v.Name || !slices.Contains(s.Names(), key) && Suggest(key, s.Names()) == v.Name
		})
		if has || reported[v.Name] || v.Name == Suspend && c.def.AgentSuspends {
			continue
		}
		reported[v.Name] = true
		at, length := r.schema.ValueAt(v.Path)
		fix := fmt.Sprintf("add `%s:` to the edges of %s, or remove the status", v.Name, r.Name)
		if v.Name == Suspend {
			fix = "remove it, and add a status with an edge to $SUSPEND, or write `new:` in place of `_:` under $START: then every role may suspend"
		}
		c.problems.Add(at, length, fix, "role %q may answer with status %q, and no edge leads on from there", r.Name, v.Name)
	}
}

// checkExtraEdges reports edges for statuses that a role does not have.
func (c checker) checkExtraEdges(r *roleAt, f *fromAt, s shape.Statuses, key string) {
	names := s.Names()
	for _, e := range f.edges {
		switch {
		case e.When == When{OnStatus, Suspend} && c.def.AgentSuspends:
			c.reportEdge(&e, "remove the edge: the role goes on once a person has answered",
				"role %q: the edge for status $SUSPEND is never taken, since that status suspends the thread by itself", r.Name)
		case e.When.Kind == Always && c.def.findGeneration().mustHaveStatus:
			// reported
		case e.When.Kind == Always && s.Required && !slices.Contains(names, Unit):
			fix := "write an edge for each of: " + strings.Join(names, ", ")
			if len(names) == 0 {
				fix = "write an edge for each status"
			}
			c.reportEdge(&e, fix, "role %q: the edge `_` is never taken, since the schema requires a %s", r.Name, key)
		case len(names) == 0:
			// that its statuses are no texts was reported
		case e.When.Kind == OnStatus && !s.Open && !slices.Contains(names, e.When.Value):
			fix := text.DidYouMean(e.When.Value, names, "the schema allows: "+strings.Join(names, ", "))
			c.reportEdge(&e, fix, "role %q: the edge for status %q is never taken, since the schema doesn't allow it", r.Name, e.When.Value)
		}
	}
}

// checkStatusTypes reports statuses that are no text.
func (c checker) checkStatusTypes(r *roleAt, key string) {
	walkStatus(r.schema, key, 0, func(v *strictyaml.Node) {
		if _, text := v.Scalar.(string); v.Kind == strictyaml.Scalar && !text {
			c.reportValue(v, "put it in quotes", "role %q: a status must be text, this is %s", r.Name, v.KindName())
		}
	})
	if t, has := advice.LookUp(r.Schema, []string{"properties", key, "type"}).(string); has && t != "string" {
		at, length := r.schema.ValueAt("/properties/" + key + "/type")
		c.problems.Add(at, length, "write type: string, with `enum: […]`", "role %q: a status must be text, this is of type %s", r.Name, t)
	}
}

// nearField is a field of a schema that is most likely meant to hold the status.
func nearField(schema any, key string) string {
	fields, _ := advice.LookUp(schema, []string{"properties"}).(map[string]any)
	for _, name := range sortedKeys(fields) {
		if folded := strings.ToLower(strings.TrimLeft(name, "$_")); folded == "status" && name != key {
			return name
		}
	}
	return ""
}

// walkStatus visits every const and enum value of the field key in a schema.
func walkStatus(schema *strictyaml.Node, key string, depth int, visit func(*strictyaml.Node)) {
	if schema == nil || depth > shape.MaxDepth {
		return
	}
	if props := schema.Get("properties"); props != nil {
		if field := props.Val.Get(key); field != nil {
			if e := field.Val.Get("const"); e != nil {
				visit(e.Val)
			}
			if e := field.Val.Get("enum"); e != nil {
				for _, item := range e.Val.Items {
					visit(item)
				}
			}
		}
	}
	for _, word := range []string{"oneOf", "anyOf", "allOf"} {
		if e := schema.Get(word); e != nil {
			for _, b := range e.Val.Items {
				walkStatus(b, key, depth+1, visit)
			}
		}
	}
}

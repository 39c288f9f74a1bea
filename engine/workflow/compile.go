package workflow

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/workflow/advice"
	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Caps of a definition. They bound the work that a hostile one can cause.
const (
	maxRoles      = 200
	maxEdges      = 2_000
	maxConditions = 500
)

// compiler turns the values of a definition into a Definition, with all that is
// needed to say where a mistake is.
type compiler struct {
	problems *source.Problems
	warnings *source.Problems // what has no effect, and does no harm
	opts     Options
	root     *strictyaml.Node
	stored   node.Hash // the type of the node that it comes from; empty: it is a file
	missing  error     // what became of a schema that the store doesn't give

	def        Definition // what was read, complete only where nothing was reported
	roles      []roleAt
	conditions []conditionAt
	graph      []fromAt
	graphKey   *strictyaml.Entry // nil: there is none that could be checked
	rolesLost  bool              // which roles there are can't be told
}

// roleAt is a role and where it stands. Known is false where its schema could
// not be read, so that nothing can be said about its statuses.
type roleAt struct {
	Role
	key    *strictyaml.Entry
	schema *strictyaml.Node
	known  bool
}

// fromAt is what leaves a role, and where that stands.
type fromAt struct {
	name  string
	key   *strictyaml.Entry
	edges []edgeAt
	// list says that the first edge that matches is taken.
	list bool
	// broken says that an edge could not be read, which was reported.
	broken bool
	// keys are the statuses of a map, those of broken edges too.
	keys []string
}

// edgeAt is an edge and where its parts stand.
type edgeAt struct {
	Edge
	label     string           // what the file calls it
	at        strictyaml.Pos   // of the status, or the list's item
	item      bool             // of a list
	resume    bool             // of $START, for threads that have ended
	to        *strictyaml.Node // nil: not given
	prompt    *strictyaml.Node
	location  *strictyaml.Node
	condition *strictyaml.Node
	approval  *strictyaml.Entry
}

// describeEdge names the edge in messages.
func (e *edgeAt) describeEdge(from string) string { return "edge " + from + " → " + e.label }

// labelLength is how many characters of the edge's label to mark.
func (e *edgeAt) labelLength() int {
	if e.at.IsZero() || e.item {
		return 1
	}
	return utf8.RuneCountInString(e.label)
}

// compileAll reads the whole definition and checks it.
func (c *compiler) compileAll() *Definition {
	if !c.readDefinition("version", "name", "description", "roles", "conditions", "graph", "limits") {
		return nil
	}
	c.checkNames()
	beyond := checker{c} // the shape
	beyond.checkSchemas()
	beyond.checkGraph()
	beyond.checkLists()
	beyond.checkStatuses()
	beyond.checkTemplates()
	return &c.def
}

// readDefinition reads the parts of a definition, whose keys are given, and reports
// whether it is one at all.
func (c *compiler) readDefinition(keys ...string) bool {
	if c.root.Kind != strictyaml.Map {
		if c.root.Kind != strictyaml.Bad {
			c.reportValue(c.root, "write a map with name, description, roles and graph", "a definition is a map, this is %s", c.root.KindName())
		}
		return false
	}
	c.reportUnknownKeys(c.root, "the definition", keys...)
	c.readVersion()
	c.def.Name = c.requireText(c.root, "name", "the definition", c.root.Pos)
	c.def.Description = c.requireText(c.root, "description", "the definition", c.root.Pos)
	c.readRoles()
	c.readConditions()
	c.readGraph()
	c.readLimits()
	c.buildDefinition()
	return true
}

// buildDefinition puts together what was read.
func (c *compiler) buildDefinition() {
	d := &c.def
	d.Roles, d.Graph = map[string]Role{}, map[string][]Edge{}
	for _, r := range c.roles {
		d.Roles[r.Name] = r.Role
	}
	for _, f := range c.graph {
		edges := make([]Edge, 0, len(f.edges))
		for _, e := range f.edges {
			if e.resume {
				d.Resume = &e.Edge
				continue
			}
			edges = append(edges, e.Edge)
		}
		d.setEdges(f.name, edges, f.list)
	}
	if len(c.conditions) > 0 {
		d.Conditions = map[string]Condition{}
	}
	for _, at := range c.conditions {
		d.Conditions[at.name] = at.Condition
	}
	if d.Dialect == "" {
		d.Dialect = d.findDialect()
	}
	d.StatusKey = d.findStatusKey()
	d.AgentSuspends = d.AgentSuspends || d.findGeneration().suspends
}

// setEdges gives a name its edges. A list without conditions whose role has no
// status says the same as the one edge `_`, and becomes that.
func (d *Definition) setEdges(from string, edges []Edge, list bool) {
	d.Graph[from] = edges
	conditional := slices.ContainsFunc(edges, func(e Edge) bool { return e.When.Kind == OnCondition })
	switch {
	case !list:
		sortEdges(edges)
	case conditional || d.Declares(from):
		if d.Lists == nil {
			d.Lists = map[string]bool{}
		}
		d.Lists[from] = true
	}
}

// showScalar is a scalar as the file has it, for a message.
func showScalar(v *strictyaml.Node) string {
	if v.Kind == strictyaml.Scalar && v.Text != "" {
		return quoteName(v.Text)
	}
	return v.KindName()
}

// reportKey reports a problem at a key, with it or with what it stands for.
func (c *compiler) reportKey(e *strictyaml.Entry, fix, format string, args ...any) {
	c.problems.Add(e.Pos, utf8.RuneCountInString(e.Key), fix, format, args...)
}

// reportValue reports a problem at a value.
func (c *compiler) reportValue(v *strictyaml.Node, fix, format string, args ...any) {
	c.problems.Add(v.Pos, v.Length(), fix, format, args...)
}

// reportEdge reports a problem at what the file calls an edge.
func (c *compiler) reportEdge(e *edgeAt, fix, format string, args ...any) {
	c.problems.Add(e.at, e.labelLength(), fix, format, args...)
}

// isKind reports whether a key stands for a map, or a list; what else it stands for is
// reported.
func (c *compiler) isKind(e *strictyaml.Entry, kind strictyaml.Kind, what, fix string) bool {
	if e.Val.Kind != kind && e.Val.Kind != strictyaml.Bad {
		must := "a map"
		if kind == strictyaml.List {
			must = "a list"
		}
		c.reportKey(e, fix, "%s must be %s, this is %s", what, must, e.Val.KindName())
	}
	return e.Val.Kind == kind
}

// partOf is a map of the definition; nil: it is not there, or not usable, which was reported.
// Missing is the fix where it must be there.
func (c *compiler) partOf(key, missing, fix string, most int) *strictyaml.Entry {
	e := c.root.Get(key)
	switch {
	case e == nil && missing != "":
		c.problems.Add(c.root.Pos, 1, missing, "the definition has no `%s`", key)
		return nil
	case e == nil, missing == "" && (e.Val.IsNull() || e.Val.Kind == strictyaml.List && len(e.Val.Items) == 0):
		return nil
	case !c.isKind(e, strictyaml.Map, "`"+key+"`", fix):
		return nil
	case len(e.Val.Entries) > most:
		c.reportKey(e, "divide the workflow", "the definition has %d %s; the limit is %d", len(e.Val.Entries), key, most)
		return nil
	}
	return e
}

// noteKey begins the keys that are the author's own: notes, and what anchors are for.
const noteKey = "x-"

// reportUnknownKeys reports the keys of a map that nobody reads, but for the author's own. One
// that most likely means a key that is missing counts as that from then on.
func (c *compiler) reportUnknownKeys(v *strictyaml.Node, what string, known ...string) {
	for i := range v.Entries {
		e := &v.Entries[i]
		if slices.Contains(known, e.Key) || strings.HasPrefix(e.Key, noteKey) {
			continue
		}
		fix := "known are: " + strings.Join(known, ", ")
		meant := advice.Key(e.Key, known)
		switch elsewhere := advice.AdviseMisplacedKey(e.Key); {
		case meant != "":
			fix = "did you mean `" + meant + "`?"
		case elsewhere != "":
			fix = elsewhere
		case strings.Contains(e.Key, " "):
			fix = "remove what is no part of the definition; " + fix
		}
		c.reportKey(e, fix, "%s has an unknown key %q", what, e.Key)
		advice.Adopt(v, e, meant)
	}
}

// requireText reads a required text field of a map.
func (c *compiler) requireText(v *strictyaml.Node, key, what string, missing strictyaml.Pos) string {
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
func (c *compiler) textOf(v *strictyaml.Node, what string) (string, bool) {
	switch s := v.Scalar.(type) {
	case string:
		if v.Kind == strictyaml.Scalar {
			return s, true
		}
	case nil:
		if v.Kind == strictyaml.Scalar {
			fix := "write text, or \"\" for none"
			if v.Commented() {
				fix = "put text that begins with # in quotes: it is a comment"
			}
			c.problems.Add(v.Pos, 1, fix, "%s is empty", what)
			return "", false
		}
	}
	if v.Kind != strictyaml.Bad && !v.Broken {
		fix := "write text"
		switch v.Kind {
		case strictyaml.Scalar:
			fix = "put it in quotes"
		case strictyaml.Map:
			fix = "put text that holds {{ }} or \": \" in quotes"
		}
		c.reportValue(v, fix, "%s must be text, this is %s", what, v.KindName())
	}
	return "", false
}

package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/condition"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// conditionAt is a named condition and where it stands.
type conditionAt struct {
	Condition
	name       string
	key        *strictyaml.Entry
	expression *strictyaml.Node
	used       bool
}

// readConditions reads the named conditions: name: JSONata, or name: {description,
// expression}.
func (c *compiler) readConditions() {
	e := c.partOf("conditions", "", "write a map from a name to a JSONata expression", maxConditions)
	if e == nil {
		return
	}
	for i := range e.Val.Entries {
		if c.problems.Full() {
			return
		}
		one := &e.Val.Entries[i]
		at := conditionAt{name: one.Key, key: one}
		what := "condition " + quoteName(one.Key)
		if one.Val.Kind == strictyaml.Map {
			c.reportUnknownKeys(one.Val, what, "description", "expression")
			if d := one.Val.Get("description"); d != nil && !d.Val.IsNull() {
				at.Description, _ = c.textOf(d.Val, "`description` of "+what)
			}
			at.Expression = c.requireText(one.Val, "expression", what, one.Pos)
			if x := one.Val.Get("expression"); x != nil {
				at.expression = x.Val
			}
		} else {
			at.expression = one.Val
			at.Expression, _ = c.textOf(one.Val, what)
		}
		if c.stored == "" {
			checker{c}.checkCondition(&at, what)
		}
		c.conditions = append(c.conditions, at)
	}
}

// checkCondition compiles an expression.
func (c checker) checkCondition(at *conditionAt, what string) {
	v := at.expression
	if v == nil || v.Kind != strictyaml.Scalar {
		return
	}
	if _, ok := v.Scalar.(string); !ok {
		return
	}
	compiled, err := condition.Compile(at.Expression)
	if err != nil {
		c.problems.AddWithin(v, what, err)
		return
	}
	for _, bad := range compiled.Suspects {
		c.problems.AddWithin(v, what, &bad)
	}
	for _, n := range compiled.Roles {
		if c.findRole(n.Role) == nil {
			pos, length := v.Within(n.Offset, n.Length)
			c.problems.Add(pos, length, suggestName(n.Role, c.roleNames()), "%s: %q is no role", what, n.Role)
		}
	}
	for _, n := range compiled.Agents {
		if alias, command := strings.CutPrefix(n.Role, "uwf-"); command {
			pos, length := v.Within(n.Offset, n.Length)
			c.warnings.Add(pos, length, fmt.Sprintf("write %q", alias), "%s: a step's agent is its alias, such as %q, unless the settings call one %q", what, alias, n.Role)
		}
	}
}

// readCondition reads what chooses an edge, where that is a condition.
func (c *compiler) readCondition(from string, e *edgeAt, v *strictyaml.Node) bool {
	if e.item {
		e.When = When{Kind: Always}
	}
	at := v.Get("condition")
	if at == nil || at.Val.IsNull() {
		return true
	}
	if !e.item {
		c.reportKey(at, "keep the status, or write the edges of "+from+" as a list of {role, condition}",
			"%s has both a status (line %d) and a `condition` (line %d): which of the two chooses it can't be told", e.describeEdge(from), e.at.Line, at.Pos.Line)
		return false
	}
	name, ok := c.textOf(at.Val, "`condition` of "+e.describeEdge(from))
	if !ok {
		return false
	}
	e.condition, e.When = at.Val, When{Kind: OnCondition, Value: name}
	for i := range c.conditions {
		if c.conditions[i].name == name {
			c.conditions[i].used = true
			return true
		}
	}
	if at := c.root.Get("conditions"); at != nil && at.Val.Kind != strictyaml.Map && !at.Val.IsNull() {
		return true // reported: which conditions there are can't be told
	}
	names := lists.Map(c.conditions, func(n conditionAt) string { return n.name })
	fix := suggestName(name, names)
	meant := Suggest(name, names)
	switch {
	case slices.Contains([]string{"else", "default", "otherwise", "always", "true", "null", "none", "*"}, strings.ToLower(name)):
		fix = "leave the condition out: an edge without one is always taken"
	case strings.ContainsAny(name, " .[]()$=") || len(names) == 0:
		fix = "put the expression under `conditions`, and its name here"
	case meant != "":
		for i := range c.conditions { // one mistake, said once
			c.conditions[i].used = c.conditions[i].used || c.conditions[i].name == meant
		}
	}
	c.reportValue(at.Val, fix, "%s is chosen by %q, which is no condition", e.describeEdge(from), name)
	return true
}

// suggestName is the fix for a name that is not known.
func suggestName(name string, known []string) string {
	return text.DidYouMean(name, known, text.KnownAre(known))
}

// checkLists finds edges that are never taken, and conditions that nobody uses.
func (c checker) checkLists() {
	for _, f := range c.graph {
		if f.list {
			c.checkList(f)
		}
	}
	for _, at := range c.conditions {
		if !at.used {
			c.reportKey(at.key, "name it in an edge: {role: …, condition: "+at.name+"}, or remove it", "condition %q is never used", at.name)
		}
	}
}

func (c checker) checkList(f fromAt) {
	first := map[string]int{}
	for i, e := range f.edges {
		name := ""
		if e.When.Kind == OnCondition {
			if name = e.When.Value; name == "" {
				continue // reported
			}
		}
		switch before, seen := first[name]; {
		case first[""] > 0 && name != "":
			c.reportEdge(&e, fmt.Sprintf("move it before edge %d, or remove it", first[""]),
				"%s is never taken: edge %d of %s has no condition, so it is always taken", e.describeEdge(f.name), first[""], f.name)
		case seen && name == "":
			c.reportEdge(&e, "remove it, or give the one before a condition",
				"%s is never taken: edge %d of %s has no condition either, and stands first", e.describeEdge(f.name), before, f.name)
		case seen:
			c.reportValue(e.condition, "remove it, or use another condition",
				"%s is never taken: edge %d of %s has the same condition, and stands first", e.describeEdge(f.name), before, f.name)
		default:
			first[name] = i + 1
		}
	}
}

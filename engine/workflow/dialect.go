package workflow

import (
	"slices"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// readVersion reads the mark of the generation with Liquid templates.
func (c *compiler) readVersion() {
	e := c.root.Get("version")
	if e == nil {
		return
	}
	// Whatever it says: what has a version has Liquid templates.
	c.liquid, c.suspends = true, true
	if e.Val.Scalar != int64(1) && e.Val.Kind != strictyaml.Bad {
		c.reportValue(e.Val, "write `version: 1` for Liquid templates, or no version for mustache", "version %s of the format is not known", showScalar(e.Val))
	}
}

// showScalar is a scalar as the file has it, for a message.
func showScalar(v *strictyaml.Node) string {
	if v.Kind == strictyaml.Scalar && v.Text != "" {
		return quoteName(v.Text)
	}
	return v.KindName()
}

// findDialect is the definition's dialect, by what it holds: the same whether it was
// parsed or read from its node.
func (d *Definition) findDialect(liquid bool) Dialect {
	if liquid {
		return Liquid
	}
	for _, r := range d.Roles {
		if r.SystemPrompt != "" {
			return Conditions
		}
	}
	if len(d.Conditions) > 0 || len(d.Lists) > 0 {
		return Architecture
	}
	return StatusMap
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

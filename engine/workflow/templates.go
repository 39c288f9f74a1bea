package workflow

import (
	"github.com/united-workforce/uwf/engine/workflow/variables"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// checkTemplates parses every prompt and location, and looks the names that they
// use up in the schema of the role whose output fills them in.
func (c checker) checkTemplates() {
	for _, f := range c.graph {
		role := c.findRole(f.name)
		for _, e := range f.edges {
			t := variables.Template{Problems: c.problems, Warnings: c.warnings}
			switch {
			case f.name == Start: // nothing has run
			case role == nil || !role.known:
				t.Unknown = true // reported
			default:
				t.Output = &variables.Output{Role: role.Name, Schema: role.Schema, Key: c.def.StatusKeyOf(role.Name), Conditional: e.When.Kind == OnCondition}
				if e.When.Kind == OnStatus {
					t.Output.Status = e.When.Value
				}
			}
			c.checkText(t, "prompt of "+e.describeEdge(f.name), e.prompt)
			c.checkText(t, "location of "+e.describeEdge(f.name), e.location)
		}
	}
}

func (c checker) checkText(t variables.Template, what string, v *strictyaml.Node) {
	if v == nil || v.Kind != strictyaml.Scalar {
		return
	}
	if _, ok := v.Scalar.(string); ok { // else: reported
		t.What, t.Text = what, v
		c.def.findGeneration().templates.check(t)
	}
}

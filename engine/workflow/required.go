package workflow

import (
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/engine/workflow/shape"
)

// checkRequired warns of what a schema requires and does not list: no agent is asked for
// it, and no answer can have it. Where it leaves nothing that fits, it is a mistake.
func (c checker) checkRequired(r *roleAt) {
	found, nothingFits := shape.UnlistedOf(r.Schema)
	for _, u := range found {
		out, wrong := c.warnings, "and its properties do not list it: no agent is asked for it"
		switch {
		case u.Forbidden:
			wrong = "and additionalProperties: false refuses it, since the properties beside that do not list it: nothing fits there"
			if nothingFits {
				out = c.problems
			}
		case u.Partly:
			wrong = "and the properties of some alternatives do not list it: no agent is asked for it there"
		}
		fix := fmt.Sprintf("add %q to these properties, or take it out of `required`", u.Name)
		if meant := Suggest(u.Name, u.Known); meant != "" && !slices.Contains(u.Known, u.Name) {
			fix = fmt.Sprintf("did you mean %q? Else ", meant) + fix
		}
		at, length := r.schema.At(u.Path)
		out.Add(at, length, fix, "schema of role %q: it requires %q, %s", r.Name, u.Name, wrong)
	}
}

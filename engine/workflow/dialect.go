package workflow

import (
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/workflow/source"
)

// unsupported looks for what only the dialects that this version can't read
// have, and reports each such construct.
func (c *compiler) unsupported() bool {
	found := false
	report := func(e *source.Entry, fix, format string, args ...any) {
		found = true
		c.problems.Add(e.Pos, utf8.RuneCountInString(e.Key), fix, format, args...)
	}
	const statusMap = "write the graph as a map from status to {role, prompt}"
	if e := c.root.Get("version"); e != nil {
		report(e, "remove version, give $START one _ edge, and write templates in mustache",
			"`version` marks a workflow of uwf 0.2–0.8 (Liquid templates), which this version can't run")
	}
	if e := c.root.Get("conditions"); e != nil && len(e.Val.Entries)+len(e.Val.Items) > 0 {
		report(e, statusMap, "`conditions` (JSONata) are of a dialect that this version can't run")
	}
	if roles := c.root.Get("roles"); roles != nil {
		for _, r := range roles.Val.Entries {
			for _, key := range []string{"systemPrompt", "outputSchema", "identity", "prepare", "execute", "report"} {
				if e := r.Val.Get(key); e != nil {
					report(e, "use goal, capabilities, procedure, output and frontmatter",
						"role %q: `%s` is of the 2026-05-18 dialect, which this version can't run", r.Key, key)
				}
			}
		}
	}
	graph := c.root.Get("graph")
	if graph == nil {
		return found
	}
	for _, from := range graph.Val.Entries {
		for _, item := range from.Val.Items {
			if e := item.Get("condition"); e != nil && !e.Val.IsNull() {
				report(e, statusMap, "edge of %s: `condition` (JSONata) is of a dialect that this version can't run", from.Key)
			}
		}
		if from.Key != Start || from.Val.Get(Unit) != nil {
			continue
		}
		for _, key := range []string{"new", "resume"} {
			if e := from.Val.Get(key); e != nil {
				report(e, "write one edge: `_: {role: …, prompt: …}`",
					"$START: `%s` is of uwf 0.2–0.8 (Liquid templates), which this version can't run", key)
			}
		}
	}
	return found
}

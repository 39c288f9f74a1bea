package shape

import "slices"

// Optional reports a field that an output with that status (empty: any) fits without.
// Where the status is not known, or an `if` decides, no alternative may require it; where
// it is known, one that does not is enough.
func Optional(schema any, key, status, name string) bool {
	c := &fieldCollector{key: key, status: status}
	return !c.requiresField(schema, name, 0)
}

func (c *fieldCollector) requiresField(schema any, name string, depth int) bool {
	m, ok := schema.(map[string]any)
	if !ok || depth > MaxDepth {
		return false
	}
	is := func(b any) bool { return c.requiresField(b, name, depth+1) }
	if listContains(m["required"], name) || slices.ContainsFunc(slices.Concat(asList(m["allOf"]), []any{m["then"], m["else"]}), is) {
		return true
	}
	return slices.ContainsFunc([]string{"oneOf", "anyOf"}, func(word string) bool {
		fitting := c.fittingBranches(asList(m[word]))
		if c.status == "" {
			return slices.ContainsFunc(fitting, is)
		}
		return len(fitting) > 0 && !slices.ContainsFunc(fitting, func(b any) bool { return !is(b) })
	})
}

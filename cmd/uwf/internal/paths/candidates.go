package paths

import (
	"slices"
	"strconv"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
)

const (
	// maxCandidates bounds the outputs of one role that are tried.
	maxCandidates = 500
	// maxChanged is how many fields of an example get another value at once.
	maxChanged = 2
)

// candidate is an output to try. The fields before next have the value that they are to have.
type candidate struct {
	shape.Variant
	next int
}

// candidatesOf are outputs of a role that are tried for its edges: the examples of its schema,
// then these with another value in one field, then in two. Some do not fit the schema.
func candidatesOf(d *workflow.Definition, role string) []candidate {
	out := lists.Map(shape.Variants(d.Roles[role].Schema, d.StatusKeyOf(role)), func(v shape.Variant) candidate { return candidate{v, 0} })
	words, begin := wordsOf(d, role), 0
	for range maxChanged {
		end := len(out)
		for _, c := range out[begin:end] {
			out = append(out, c.changed(words)...)
			if len(out) > maxCandidates {
				return out[:maxCandidates]
			}
		}
		begin = end
	}
	return out
}

// changed are a candidate with each other value of each later field, and without the optional
// ones.
func (c candidate) changed(words []any) []candidate {
	var out []candidate
	for i := c.next; i < len(c.Fields); i++ {
		f := c.Fields[i]
		for _, value := range valuesOf(f.Schema, words) {
			fields := slices.Clone(c.Fields)
			fields[i] = shape.Field{Name: f.Name, Schema: map[string]any{"const": value}, Required: true}
			out = append(out, candidate{shape.Variant{Status: c.Status, Fields: fields}, i + 1})
		}
		if !f.Required {
			out = append(out, candidate{shape.Variant{Status: c.Status, Fields: slices.Delete(slices.Clone(c.Fields), i, i+1)}, i})
		}
	}
	return out
}

// literal is a text or number in an expression.
var literal = lazyregexp.New(`"[^"]*"|'[^']*'|\b[0-9]+(?:\.[0-9]+)?\b`)

// wordsOf are the texts and numbers in the conditions of a role's edges, which a field may be
// compared with.
func wordsOf(d *workflow.Definition, role string) []any {
	var out []any
	for _, e := range d.Graph[role] {
		for _, word := range literal.FindAllString(d.Conditions[e.When.Value].Expression, -1) {
			if n, err := strconv.ParseFloat(word, 64); err == nil {
				out = append(out, n-1, n, n+1)
			} else {
				out = append(out, word[1:len(word)-1])
			}
		}
	}
	return out
}

// valuesOf are values that a field may have, as far as its schema or words name any.
func valuesOf(schema any, words []any) []any {
	m, _ := schema.(map[string]any)
	if list, limited := m["enum"].([]any); limited {
		return list
	}
	if _, fixed := m["const"]; fixed {
		return nil
	}
	all := slices.Concat([]any{false, true, nil, []any{}, 0.0, 1.0, m["minimum"], m["maximum"], ""}, words)
	return slices.DeleteFunc(all, func(v any) bool { return !allowsType(m["type"], v) })
}

// allowsType reports whether a schema's type is that of a value.
func allowsType(types, v any) bool {
	if list, several := types.([]any); several {
		return slices.ContainsFunc(list, func(t any) bool { return allowsType(t, v) })
	}
	switch v.(type) {
	case nil:
		return types == "null"
	case bool:
		return types == "boolean" || types == nil
	case string:
		return types == "string" || types == nil
	case []any:
		return types == "array" || types == nil
	}
	return types == "number" || types == "integer" || types == nil
}

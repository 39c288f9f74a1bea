// Package shape says what outputs a role's schema allows: the statuses, the shapes
// that tell them apart, and the fields of each. It is pure.
package shape

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// Statuses is what a role's schema says of its status field.
type Statuses struct {
	Declared bool // the schema has the field
	Open     bool // any text will do
	Required bool // an output without it doesn't fit
	Values   []StatusValue
}

// StatusValue is one status that a schema allows. Path is the JSON pointer of
// its declaration within the schema.
type StatusValue struct {
	Name string
	Path string
}

// Names lists the statuses, each once, in the schema's order.
func (s Statuses) Names() []string {
	var out []string
	for _, v := range s.Values {
		if !slices.Contains(out, v.Name) {
			out = append(out, v.Name)
		}
	}
	return out
}

// MaxDepth bounds the walks over schemas, which may come from strangers.
const MaxDepth = 16

// StatusesOf finds the statuses that schema allows in its field key: by const,
// enum, and the branches of oneOf, anyOf, allOf, then and else.
func StatusesOf(schema any, key string) Statuses { return statusesAt(schema, key, "", 0) }

func statusesAt(schema any, key, at string, depth int) Statuses {
	m, ok := schema.(map[string]any)
	if !ok || depth > MaxDepth {
		return Statuses{}
	}
	out := Statuses{Required: listContains(m["required"], key)}
	if field, ok := nestedValue(m, "properties", key); ok {
		out.Declared = true
		out.Values, out.Open = valuesOf(field, at+"/properties/"+escapePointer(key), 0)
	}
	for _, word := range []string{"allOf", "oneOf", "anyOf"} {
		branches, _ := m[word].([]any)
		if len(branches) == 0 {
			continue
		}
		each := make([]Statuses, len(branches))
		for i, b := range branches {
			each[i] = statusesAt(b, key, at+"/"+word+"/"+strconv.Itoa(i), depth+1)
		}
		if word == "allOf" {
			for _, s := range each {
				out = out.bothAllow(s)
			}
			continue
		}
		out = out.bothAllow(eitherAllows(each))
	}
	if _, conditional := m["if"]; conditional {
		out = out.bothAllow(eitherAllows([]Statuses{
			statusesAt(m["then"], key, at+"/then", depth+1), statusesAt(m["else"], key, at+"/else", depth+1),
		}))
	}
	return out
}

// bothAllow is what two schemas allow that must both hold.
func (s Statuses) bothAllow(t Statuses) Statuses {
	required := s.Required || t.Required
	switch {
	case !t.Declared:
		s.Required = required
		return s
	case !s.Declared || s.Open:
		t.Required = required
		return t
	case t.Open:
		s.Required = required
		return s
	}
	// The branch's declarations are the ones worth pointing at.
	both := lists.Filter(t.Values, func(v StatusValue) bool {
		return slices.ContainsFunc(s.Values, func(o StatusValue) bool { return o.Name == v.Name })
	})
	return Statuses{Declared: true, Required: required, Values: both}
}

// eitherAllows is what a choice of schemas allows. A branch that doesn't declare the
// field leaves it to the others.
func eitherAllows(each []Statuses) Statuses {
	out := Statuses{Required: len(each) > 0}
	for _, s := range each {
		out.Required = out.Required && s.Required
		if !s.Declared {
			continue
		}
		out.Declared = true
		out.Open = out.Open || s.Open
		out.Values = append(out.Values, s.Values...)
	}
	return out
}

// valuesOf lists the texts that a field's schema allows; open: any text.
func valuesOf(field any, at string, depth int) (values []StatusValue, open bool) {
	m, ok := field.(map[string]any)
	if !ok || depth > MaxDepth {
		return nil, true
	}
	if c, ok := m["const"]; ok {
		if s, ok := c.(string); ok {
			return []StatusValue{{Name: s, Path: at + "/const"}}, false
		}
		return nil, false
	}
	if list, ok := m["enum"].([]any); ok {
		for i, e := range list {
			if s, ok := e.(string); ok {
				values = append(values, StatusValue{Name: s, Path: at + "/enum/" + strconv.Itoa(i)})
			}
		}
		return values, false
	}
	for _, word := range []string{"oneOf", "anyOf"} {
		branches, _ := m[word].([]any)
		if len(branches) == 0 {
			continue
		}
		for i, b := range branches {
			v, o := valuesOf(b, at+"/"+word+"/"+strconv.Itoa(i), depth+1)
			values, open = append(values, v...), open || o
		}
		return values, open
	}
	return nil, true
}

// Field is one field of an output. Required: an output without it doesn't fit.
type Field struct {
	Name     string
	Schema   any
	Required bool
}

// Variant is one shape that an output may have. Status is empty where the shape
// doesn't fix one.
type Variant struct {
	Status string
	Fields []Field
}

// maxVariants bounds how many shapes are told apart.
const maxVariants = 24

// Variants lists the shapes that schema allows: one for each status, and for
// each branch of a oneOf or anyOf where no status tells them apart.
func Variants(schema any, key string) []Variant {
	m, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	statuses := StatusesOf(schema, key)
	if statuses.Declared && !statuses.Open {
		var out []Variant
		for _, name := range statuses.Names() {
			if len(out) == maxVariants {
				break
			}
			out = append(out, Variant{Status: name, Fields: FieldsFor(schema, key, name)})
		}
		return out
	}
	for _, word := range []string{"oneOf", "anyOf"} {
		branches, _ := m[word].([]any)
		var out []Variant
		for i := range branches {
			if len(out) == maxVariants {
				break
			}
			one := maps.Clone(m)
			one[word] = []any{branches[i]}
			out = append(out, Variant{Fields: FieldsFor(one, key, "")})
		}
		if len(out) > 0 {
			return out
		}
	}
	return []Variant{{Fields: FieldsFor(schema, key, "")}}
}

// FieldsFor lists the fields of an output with that status (empty: any): the
// status first, then the required ones in the schema's order, then the others
// alphabetically.
func FieldsFor(schema any, key, status string) []Field {
	c := &fieldCollector{key: key, status: status, schemas: map[string]any{}}
	c.collectFields(schema, true, 0)
	var out []Field
	add := func(name string, required bool) {
		s, ok := c.schemas[name]
		if !ok || slices.ContainsFunc(out, func(f Field) bool { return f.Name == name }) {
			return
		}
		out = append(out, Field{Name: name, Schema: s, Required: required})
	}
	add(key, slices.Contains(c.required, key))
	for _, name := range c.required {
		add(name, true)
	}
	for _, name := range slices.Sorted(maps.Keys(c.schemas)) {
		add(name, false)
	}
	return out
}

// fieldCollector merges the parts of a schema that hold for one status.
type fieldCollector struct {
	key, status string
	schemas     map[string]any
	required    []string
}

func (c *fieldCollector) collectFields(schema any, certain bool, depth int) {
	m, ok := schema.(map[string]any)
	if !ok || depth > MaxDepth {
		return
	}
	props, _ := m["properties"].(map[string]any)
	for name, s := range props {
		// A branch says more of a field than the part that all share.
		if old, seen := c.schemas[name]; !seen || namesTypeAtMost(old) {
			c.schemas[name] = s
		}
	}
	if certain {
		for _, r := range asList(m["required"]) {
			if name, ok := r.(string); ok && !slices.Contains(c.required, name) {
				c.required = append(c.required, name)
			}
		}
	}
	for _, b := range asList(m["allOf"]) {
		c.collectFields(b, certain, depth+1)
	}
	for _, word := range []string{"oneOf", "anyOf"} {
		fitting := c.fittingBranches(asList(m[word]))
		for _, b := range fitting {
			c.collectFields(b, certain && len(fitting) == 1, depth+1)
		}
	}
	for _, word := range []string{"then", "else"} {
		c.collectFields(m[word], false, depth+1)
	}
}

// namesTypeAtMost reports whether a field schema names its type alone, or nothing: a
// branch's goes before it.
func namesTypeAtMost(schema any) bool {
	m, ok := schema.(map[string]any)
	return !ok || len(m) == 0 || (len(m) == 1 && m["type"] != nil)
}

// fittingBranches picks the branches that an output with the status can take.
func (c *fieldCollector) fittingBranches(branches []any) []any {
	if c.status == "" {
		return branches
	}
	var out []any
	for _, b := range branches {
		s := StatusesOf(b, c.key)
		if !s.Declared || s.Open || slices.Contains(s.Names(), c.status) {
			out = append(out, b)
		}
	}
	return out
}

// nestedValue is m[outer][inner].
func nestedValue(m map[string]any, outer, inner string) (any, bool) {
	o, ok := m[outer].(map[string]any)
	if !ok {
		return nil, false
	}
	v, ok := o[inner]
	return v, ok
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

func listContains(list any, s string) bool {
	return slices.ContainsFunc(asList(list), func(v any) bool { return v == s })
}

// escapePointer writes a key as a part of a JSON pointer.
func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

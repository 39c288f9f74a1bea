package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/shape"
)

// maxSample is how deep examples and descriptions follow a schema.
const maxSample = 6

// node is an example value: a scalar as YAML writes it, fields, or items.
type node struct {
	scalar string
	names  []string
	fields []node
	items  []node
}

// keyLines is the value under a key, as YAML.
func (n node) keyLines(key string) []string {
	if n.scalar != "" {
		return []string{key + ": " + n.scalar}
	}
	return append([]string{key + ":"}, n.blockLines()...)
}

// blockLines is the value's own lines, indented by two.
func (n node) blockLines() []string {
	var out []string
	for i, f := range n.fields {
		for _, line := range f.keyLines(yamlKey(n.names[i])) {
			out = append(out, "  "+line)
		}
	}
	for _, item := range n.items {
		if item.scalar != "" {
			out = append(out, "  - "+item.scalar)
			continue
		}
		for i, line := range item.blockLines() {
			if i == 0 {
				out = append(out, "  - "+strings.TrimPrefix(line, "  "))
			} else {
				out = append(out, "  "+line)
			}
		}
	}
	return out
}

// sampleValue is a value that fits schema as far as that can be made up.
func sampleValue(schema any, name string, depth int) node {
	m, ok := schema.(map[string]any)
	if !ok || depth > maxSample {
		return node{scalar: compactJSON("<" + name + ">")}
	}
	if c, has := m["const"]; has {
		return node{scalar: writeScalar(c)}
	}
	for _, word := range []string{"enum", "examples"} {
		if list, _ := m[word].([]any); len(list) > 0 {
			return node{scalar: writeScalar(list[0])}
		}
	}
	if branch := firstBranch(m); branch != nil {
		return sampleValue(branch, name, depth+1)
	}
	switch typeOf(m) {
	case "boolean":
		return node{scalar: "true"}
	case "integer", "number":
		return node{scalar: compactJSON(sampleNumber(m))}
	case "null":
		return node{scalar: "null"}
	case "array":
		return sampleList(m, name, depth)
	case "object":
		return sampleMap(m, depth)
	}
	if f := m["format"]; f == "ocas_ref" || f == "cas_ref" {
		return node{scalar: compactJSON("<hash of a node>")}
	}
	return node{scalar: compactJSON("<" + name + ">")}
}

func sampleList(m map[string]any, name string, depth int) node {
	n := 1
	if least, ok := m["minItems"].(int64); ok {
		n = int(min(max(least, 1), 3))
	}
	out := node{}
	for range n {
		out.items = append(out.items, sampleValue(m["items"], "item of "+name, depth+1))
	}
	return out
}

func sampleMap(m map[string]any, depth int) node {
	out := node{}
	for _, f := range shape.FieldsFor(m, "", "") {
		out.names = append(out.names, f.Name)
		out.fields = append(out.fields, sampleValue(f.Schema, f.Name, depth+1))
	}
	if len(out.fields) == 0 {
		return node{scalar: "{}"}
	}
	return out
}

// sampleNumber is one that minimum and maximum allow.
func sampleNumber(m map[string]any) any {
	for _, word := range []string{"minimum", "maximum"} {
		if v, ok := m[word]; ok {
			return v
		}
	}
	if v, ok := m["exclusiveMinimum"].(int64); ok {
		return v + 1
	}
	return int64(1)
}

// firstBranch is the first choice of a oneOf or anyOf that is not null.
func firstBranch(m map[string]any) any {
	for _, word := range []string{"oneOf", "anyOf"} {
		list, _ := m[word].([]any)
		for _, b := range list {
			if bm, ok := b.(map[string]any); !ok || bm["type"] != "null" {
				return b
			}
		}
	}
	return nil
}

// typeOf is the first type of a schema that is not null.
func typeOf(m map[string]any) string {
	switch t := m["type"].(type) {
	case string:
		return t
	case []any:
		for _, e := range t {
			if s, ok := e.(string); ok && s != "null" {
				return s
			}
		}
		return "null"
	}
	switch {
	case m["items"] != nil:
		return "array"
	case m["properties"] != nil:
		return "object"
	}
	return ""
}

// describeSchema says in words what a field holds.
func describeSchema(schema any, depth int) string {
	m, ok := schema.(map[string]any)
	if !ok || depth > maxSample {
		return "any value"
	}
	if c, has := m["const"]; has {
		return "always `" + writeScalar(c) + "`"
	}
	if list, _ := m["enum"].([]any); len(list) > 0 {
		texts := make([]string, len(list))
		for i, e := range list {
			texts[i] = "`" + writeScalar(e) + "`"
		}
		return "one of " + strings.Join(texts, ", ")
	}
	if branches := branchTexts(m, depth); branches != "" {
		return branches
	}
	text := describeBase(m, depth)
	if types, _ := m["type"].([]any); len(types) > 1 && slices.Contains(types, any("null")) {
		text += " or null"
	}
	return text + describeBounds(m)
}

func branchTexts(m map[string]any, depth int) string {
	var out []string
	for _, word := range []string{"oneOf", "anyOf"} {
		list, _ := m[word].([]any)
		for _, b := range list {
			if text := describeSchema(b, depth+1); !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return strings.Join(out, " or ")
}

func describeBase(m map[string]any, depth int) string {
	switch typeOf(m) {
	case "string":
		if f := m["format"]; f == "ocas_ref" || f == "cas_ref" {
			return "the hash of a node"
		}
		return "text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	case "null":
		return "null"
	case "array":
		if m["items"] == nil {
			return "a list"
		}
		return "a list of " + describeSchema(m["items"], depth+1)
	case "object":
		var names []string
		for _, f := range shape.FieldsFor(m, "", "") {
			names = append(names, "`"+f.Name+"`")
		}
		if len(names) == 0 {
			return "a map"
		}
		return "a map with " + strings.Join(names, ", ")
	}
	return "any value"
}

// describeBounds names the limits that a value must keep.
func describeBounds(m map[string]any) string {
	var out []string
	add := func(word, format string) {
		if v, ok := m[word]; ok {
			out = append(out, fmt.Sprintf(format, compactJSON(v)))
		}
	}
	if m["minLength"] == int64(1) {
		out = append(out, "not empty")
	} else {
		add("minLength", "at least %s characters")
	}
	add("maxLength", "at most %s characters")
	add("pattern", "matching %s")
	if m["minItems"] == int64(1) {
		out = append(out, "not empty")
	} else {
		add("minItems", "at least %s items")
	}
	add("maxItems", "at most %s items")
	add("minimum", "from %s")
	add("maximum", "up to %s")
	add("exclusiveMinimum", "above %s")
	add("exclusiveMaximum", "below %s")
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// textOf is a schema's text under a key.
func textOf(schema any, key string) string {
	m, _ := schema.(map[string]any)
	s, _ := m[key].(string)
	return strings.TrimSpace(s)
}

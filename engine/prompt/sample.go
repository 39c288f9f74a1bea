package prompt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/internal/lists"
)

// maxSample is how deep examples and descriptions follow a schema.
const maxSample = 6

// node is an example value as YAML writes it: a scalar, or the lines of a block.
type node struct {
	scalar string
	block  []string
}

// keyLines is the value under a key.
func (n node) keyLines(key string) []string {
	if n.scalar != "" {
		return []string{key + ": " + n.scalar}
	}
	return append([]string{key + ":"}, n.indentBlock("  ")...)
}

// indentBlock is the value's lines, with something before the first one, and as much space
// before the others.
func (n node) indentBlock(first string) []string {
	out := make([]string, len(n.block))
	for i, line := range n.block {
		out[i] = first + line
		first = "  "
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
	if isRef(m) {
		return node{scalar: compactJSON("<hash of a node>")}
	}
	return node{scalar: compactJSON("<" + name + ">")}
}

func sampleList(m map[string]any, name string, depth int) node {
	n := 1
	if least, ok := m["minItems"].(int64); ok {
		n = int(min(max(least, 1), 3))
	}
	item := sampleValue(m["items"], "item of "+name, depth+1)
	lines := item.indentBlock("- ")
	if item.scalar != "" {
		lines = []string{"- " + item.scalar}
	}
	return node{block: slices.Repeat(lines, n)}
}

func sampleMap(m map[string]any, depth int) node {
	out := node{}
	for _, f := range shape.FieldsFor(m, "", "") {
		out.block = append(out.block, sampleValue(f.Schema, f.Name, depth+1).keyLines(yamlKey(f.Name))...)
	}
	if len(out.block) == 0 {
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
		return "one of " + strings.Join(lists.Map(list, func(e any) string { return "`" + writeScalar(e) + "`" }), ", ")
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
	switch kind := typeOf(m); kind {
	case "string":
		if isRef(m) {
			return "the hash of a node"
		}
		return "text"
	case "array":
		if m["items"] == nil {
			return "a list"
		}
		return "a list of " + describeSchema(m["items"], depth+1)
	case "object":
		names := lists.Map(shape.FieldsFor(m, "", ""), func(f shape.Field) string { return "`" + f.Name + "`" })
		if len(names) == 0 {
			return "a map"
		}
		return "a map with " + strings.Join(names, ", ")
	default:
		words := map[string]string{"integer": "a whole number", "number": "a number", "boolean": "true or false", "null": "null"}
		return cmp.Or(words[kind], "any value")
	}
}

// isRef reports whether a schema is that of a reference.
func isRef(m map[string]any) bool { return m["format"] == "ocas_ref" || m["format"] == "cas_ref" }

// describeBounds names the limits that a value must keep.
func describeBounds(m map[string]any) string {
	var out []string
	for _, bound := range [][2]string{
		{"minLength", "at least %s characters"}, {"maxLength", "at most %s characters"}, {"pattern", "matching %s"},
		{"minItems", "at least %s items"}, {"maxItems", "at most %s items"},
		{"minimum", "from %s"}, {"maximum", "up to %s"}, {"exclusiveMinimum", "above %s"}, {"exclusiveMaximum", "below %s"},
	} {
		switch v, ok := m[bound[0]]; {
		case !ok:
		case v == int64(1) && (bound[0] == "minLength" || bound[0] == "minItems"):
			out = append(out, "not empty")
		default:
			out = append(out, fmt.Sprintf(bound[1], compactJSON(v)))
		}
	}
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

package extract

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// kinds is a set of JSON types.
type kinds uint8

const (
	kindString kinds = 1 << iota
	kindInteger
	kindNumber // with a fraction
	kindBoolean
	kindNull
	kindArray
	kindObject
	anyKind kinds = 1<<7 - 1
)

// outputSchema is a role's schema as this package asks it.
type outputSchema struct {
	root     map[string]any
	compiled *node.Schema
	fields   []string          // names of all properties at the top, sorted; nil: any
	folds    map[string]string // folded name: the field; empty: several
	loose    bool              // names that differ in case and signs only are meant, too
}

func compileSchema(schema any) (*outputSchema, error) {
	normal, err := node.Normalize(schema)
	if err != nil {
		return nil, &OutputError{Reason: ErrSchema, Detail: err.Error()}
	}
	root, ok := normal.(map[string]any)
	if !ok || allowedKinds(root)&kindObject == 0 {
		return nil, &OutputError{Reason: ErrSchema, Detail: "the output of a role must be an object"}
	}
	compiled, err := node.Compile(root)
	if err != nil {
		return nil, &OutputError{Reason: ErrSchema, Detail: err.Error()}
	}
	s := &outputSchema{root: root, compiled: compiled, fields: shape.PropertyNames(root), folds: map[string]string{}}
	for _, f := range s.fields {
		if _, several := s.folds[foldName(f)]; several {
			s.folds[foldName(f)] = ""
			continue
		}
		s.folds[foldName(f)] = f
	}
	return s, nil
}

func (s *outputSchema) validateOutput(output map[string]any, line int) error {
	err := s.compiled.Validate(output)
	if err == nil {
		return nil
	}
	out := &OutputError{Reason: ErrInvalid, Line: line}
	if v := (*node.ValidationError)(nil); errors.As(err, &v) {
		out.Problems = v.Problems
	} else {
		out.Detail = err.Error()
	}
	return out
}

// statusKey is the schema's name for it; empty where it has none.
func (s *outputSchema) statusKey() string {
	for _, key := range []string{workflow.StatusField, workflow.LegacyStatusField} {
		if slices.Contains(s.fields, key) {
			return key
		}
	}
	return ""
}

// hasField says whether a field belongs to this schema.
func (s *outputSchema) hasField(field string) bool {
	if len(s.fields) == 0 {
		return true
	}
	if _, found := slices.BinarySearch(s.fields, field); found || !s.loose {
		return found
	}
	return s.fieldMeant(field) != ""
}

// foldName is a name without what models change in names: case, "$", "_", "-" and
// spaces.
func foldName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune("$_- ", r) {
			return -1
		}
		return r
	}, name))
}

// fieldMeant is the one field that a name stands for which is none itself; empty where
// that is not certain.
func (s *outputSchema) fieldMeant(name string) string {
	if len(name) > maxFieldName {
		return ""
	}
	return s.folds[foldName(name)]
}

// maxFieldName bounds the names that are compared with fields, in bytes.
const maxFieldName = 200

// renameKeys gives the keys of an answer the names of the fields that they stand for,
// unless that field is there as well, or two keys stand for it.
func (s *outputSchema) renameKeys(it *strictyaml.Node) {
	taken := map[string]int{}
	to := make([]string, len(it.Entries))
	for i, e := range it.Entries {
		to[i] = e.Key
		if _, known := partSchema(s.root, it, pickProperty(e.Key)); !known {
			to[i] = cmp.Or(s.fieldMeant(e.Key), e.Key)
		}
		taken[to[i]]++
	}
	for i, f := range to {
		if taken[f] == 1 {
			it.Entries[i].Key = f
		}
	}
}

// branchSchemas are the schemas that hold together with s, or in its place.
func branchSchemas(s map[string]any, keywords ...string) []map[string]any {
	var out []map[string]any
	for _, k := range keywords {
		switch v := s[k].(type) {
		case map[string]any:
			out = append(out, v)
		case []any:
			for _, e := range v {
				if m, ok := e.(map[string]any); ok {
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// allowedKinds is which types fit a schema; a wider answer only means less coercion.
func allowedKinds(s map[string]any) kinds {
	out := anyKind
	switch t := s["type"].(type) {
	case string:
		out = kindsOf(t)
	case []any:
		out = 0
		for _, e := range t {
			name, _ := e.(string)
			out |= kindsOf(name)
		}
	}
	if values, ok := enumOf(s); ok {
		var of kinds
		for _, v := range values {
			of |= kindOf(v)
		}
		out &= of
	}
	for _, b := range branchSchemas(s, "allOf") {
		out &= allowedKinds(b)
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if bs := branchSchemas(s, k); len(bs) > 0 {
			var of kinds
			for _, b := range bs {
				of |= allowedKinds(b)
			}
			out &= of
		}
	}
	return out
}

func kindsOf(name string) kinds {
	return map[string]kinds{
		"string": kindString, "integer": kindInteger, "number": kindInteger | kindNumber, "boolean": kindBoolean,
		"null": kindNull, "array": kindArray, "object": kindObject,
	}[name]
}

func kindOf(v any) kinds {
	switch v := v.(type) {
	case nil:
		return kindNull
	case string:
		return kindString
	case bool:
		return kindBoolean
	case int64:
		return kindInteger
	case float64:
		if v == math.Trunc(v) {
			return kindInteger
		}
		return kindNumber
	case []any:
		return kindArray
	}
	return kindObject
}

// enumOf is the list of values that a schema names itself.
func enumOf(s map[string]any) ([]any, bool) {
	if v, ok := s["const"]; ok {
		return []any{v}, true
	}
	list, ok := s["enum"].([]any)
	return list, ok
}

// enumValues is the list of values that fit a schema, where it names all of them.
func enumValues(s map[string]any) ([]any, bool) {
	if list, ok := enumOf(s); ok {
		return list, true
	}
	for _, b := range branchSchemas(s, "allOf") {
		if list, ok := enumValues(b); ok {
			return list, true
		}
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		bs := branchSchemas(s, k)
		var all []any
		for _, b := range bs {
			list, ok := enumValues(b)
			if !ok {
				bs = nil
				break
			}
			all = append(all, list...)
		}
		if len(bs) > 0 {
			return all, true
		}
	}
	return nil, false
}

// picker takes from one schema object what it says about a part of a value.
type picker func(s map[string]any) (map[string]any, bool)

// partSchema is everything that a schema says about a part of the mapping it describes,
// as one schema. Alternatives that the mapping rules out by a constant (its
// status) don't count.
func partSchema(s map[string]any, of *strictyaml.Node, pick picker) (map[string]any, bool) {
	var all []any
	if p, ok := pick(s); ok {
		all = append(all, p)
	}
	for _, b := range branchSchemas(s, "allOf") {
		if p, ok := partSchema(b, of, pick); ok {
			all = append(all, p)
		}
	}
	for _, b := range branchSchemas(s, "if", "then", "else") {
		if p, ok := partSchema(b, of, pick); ok { // it may hold or not
			all = append(all, map[string]any{"anyOf": []any{p, map[string]any{}}})
		}
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		bs := compatibleBranches(branchSchemas(s, k), of)
		var either []any
		for _, b := range bs {
			if p, ok := partSchema(b, of, pick); ok {
				either = append(either, p)
			}
		}
		if len(either) > 0 {
			if len(either) < len(bs) {
				either = append(either, map[string]any{})
			}
			all = append(all, map[string]any{"anyOf": either})
		}
	}
	switch len(all) {
	case 0:
		return nil, false
	case 1:
		one, _ := all[0].(map[string]any)
		return one, true
	}
	return map[string]any{"allOf": all}, true
}

// compatibleBranches drops the alternatives that a mapping can't be: those with another
// constant for one of its fields. When none is left, the schema says so later.
func compatibleBranches(bs []map[string]any, of *strictyaml.Node) []map[string]any {
	if of == nil || of.Kind != strictyaml.Map {
		return bs
	}
	out := lists.Filter(bs, func(b map[string]any) bool { return couldBe(b, of) })
	if len(out) == 0 {
		return bs
	}
	return out
}

func couldBe(s map[string]any, of *strictyaml.Node) bool {
	if allowedKinds(s)&kindObject == 0 {
		return false
	}
	props, _ := s["properties"].(map[string]any)
	for _, e := range of.Entries {
		p, ok := props[e.Key].(map[string]any)
		if !ok || e.Val.Kind != strictyaml.Scalar {
			continue
		}
		if list, ok := enumValues(p); ok && !slices.ContainsFunc(list, func(v any) bool {
			return bareWord(e.Val.Text) == bareWord(textOf(v))
		}) {
			return false
		}
	}
	return true
}

// textOf is how a scalar is written in YAML.
func textOf(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}

// pickProperty picks what a schema says about one field.
func pickProperty(name string) picker {
	return func(s map[string]any) (map[string]any, bool) {
		if props, ok := s["properties"].(map[string]any); ok {
			if p, ok := props[name].(map[string]any); ok {
				return p, true
			}
		}
		if patterns, ok := s["patternProperties"].(map[string]any); ok {
			for expr, p := range patterns {
				re, err := regexp.Compile(expr) // the schema was checked: it compiles
				if m, ok := p.(map[string]any); ok && err == nil && re.MatchString(name) {
					return m, true
				}
			}
		}
		switch more := s["additionalProperties"].(type) {
		case map[string]any:
			return more, true
		case bool:
			return map[string]any{}, more
		}
		return nil, false
	}
}

// pickItems picks what a schema says about the elements of a list.
func pickItems(s map[string]any) (map[string]any, bool) {
	m, ok := s["items"].(map[string]any)
	return m, ok
}

// declaresFields says whether a schema names any field, or what unnamed ones are like.
func declaresFields(s map[string]any) bool {
	for _, k := range []string{"properties", "patternProperties", "additionalProperties"} {
		if _, ok := s[k]; ok {
			return true
		}
	}
	return slices.ContainsFunc(branchSchemas(s, "allOf", "anyOf", "oneOf", "if", "then", "else"), declaresFields)
}

// isRequired says whether a field must be there, as far as that is certain.
func isRequired(s map[string]any, of *strictyaml.Node, name string) bool {
	if list, ok := s["required"].([]any); ok && slices.Contains(list, any(name)) {
		return true
	}
	is := func(b map[string]any) bool { return isRequired(b, of, name) }
	if slices.ContainsFunc(branchSchemas(s, "allOf"), is) {
		return true
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		bs := compatibleBranches(branchSchemas(s, k), of)
		if len(bs) > 0 && !slices.ContainsFunc(bs, func(b map[string]any) bool { return !is(b) }) {
			return true
		}
	}
	return false
}

package node

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// Limits of one schema, besides those of a payload.
const (
	MaxSchemaValues = 10_000 // values of all kinds in the schema
	maxPattern      = 2_000  // bytes of one regular expression
	maxProblems     = 50     // problems that one error lists
)

// Problem is one complaint about a schema or a payload.
type Problem struct {
	Path    string // JSON pointer; empty for the whole value
	Message string
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// SchemaError says why a payload is no schema that nodes may have.
type SchemaError struct{ Problems []Problem }

func (e *SchemaError) Error() string {
	return "not an allowed schema: " + joinProblems(e.Problems)
}

func joinProblems(ps []Problem) string {
	return strings.Join(lists.Map(ps, Problem.String), "; ")
}

// CheckSchema is the guard walk, which alone decides whether a
// payload may be a schema node: only the allowed keywords, each with a value of
// its kind, expressions that compile as RE2, limited depth and size. A refusal is
// a *SchemaError with the JSON pointers of all problems (at most 50).
func CheckSchema(payload any) error {
	p, err := Normalize(payload)
	if err != nil {
		return fmt.Errorf("check a schema: %w", err)
	}
	return guardNormal(p)
}

func guardNormal(p any) error {
	var g guard
	if n := countValues(p, MaxSchemaValues); n > MaxSchemaValues {
		g.addProblem("", "the schema has more than %d values", MaxSchemaValues)
	} else {
		g.checkSchema("", p)
	}
	if len(g.problems) > 0 {
		return &SchemaError{Problems: g.problems}
	}
	return nil
}

// countValues counts the values in v, until it has passed limit.
func countValues(v any, limit int) int {
	n := 1
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			if n > limit {
				break
			}
			n += countValues(e, limit-n)
		}
	case map[string]any:
		for _, e := range x {
			if n > limit {
				break
			}
			n += countValues(e, limit-n)
		}
	}
	return n
}

type guard struct{ problems []Problem }

func (g *guard) addProblem(path, format string, args ...any) {
	if len(g.problems) < maxProblems {
		g.problems = append(g.problems, Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

func (g *guard) checkSchema(path string, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		g.addProblem(path, "a schema must be an object, not %s", kindOf(v))
		return
	}
	for _, k := range canonicalKeys(m) {
		g.checkKeyword(path+"/"+escapePointer(k), k, m[k])
	}
}

func (g *guard) checkKeyword(path, key string, v any) {
	switch key {
	case "const", "default":
		// any value
	case "title", "description", "$comment":
		g.checkKind(path, v, "a string")
	case "readOnly", "writeOnly", "deprecated", "uniqueItems":
		g.checkKind(path, v, "a boolean")
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		g.checkKind(path, v, "a number")
	case "examples":
		g.checkKind(path, v, "a list")
	case "items", "contains", "propertyNames", "not", "if", "then", "else":
		g.checkSchema(path, v)
	case "additionalProperties":
		if _, ok := v.(bool); !ok {
			g.checkSchema(path, v)
		}
	case "properties", "patternProperties":
		g.checkSchemas(path, v, key == "patternProperties")
	case "anyOf", "oneOf", "allOf":
		g.checkBranches(path, v)
	case "type":
		g.checkTypes(path, v)
	case "required":
		g.checkRequired(path, v)
	case "enum":
		g.checkEnum(path, v)
	case "pattern":
		if s, ok := v.(string); ok {
			g.checkPattern(path, s)
		} else {
			g.checkKind(path, v, "a string")
		}
	case "format":
		if v != "ocas_ref" && v != "cas_ref" {
			g.addProblem(path, `the only format is "ocas_ref"; use pattern for others`)
		}
	case "multipleOf":
		if !isPositive(v) {
			g.addProblem(path, "must be a number above 0")
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		if n, ok := v.(int64); !ok || n < 0 {
			g.addProblem(path, "must be a whole number, 0 or more")
		}
	default:
		g.noteUnknown(path, key)
	}
}

func (g *guard) noteUnknown(path, key string) {
	switch key {
	case "$ref", "$defs", "definitions", "$id", "id", "$anchor", "$dynamicRef", "$recursiveRef":
		g.addProblem(path, "schemas can't refer to other schemas: write the schema out where it is used")
	case "prefixItems", "additionalItems", "unevaluatedItems":
		g.addProblem(path, "lists have one schema for all items: use items")
	case "$schema":
		g.addProblem(path, "leave this key out: there is one dialect")
	default:
		g.addProblem(path, "unknown keyword %.40q", key)
	}
}

// checkKind checks v's kind, as kindOf names it.
func (g *guard) checkKind(path string, v any, kind string) {
	if kindOf(v) != kind {
		g.addProblem(path, "must be %s, not %s", kind, kindOf(v))
	}
}

func (g *guard) checkSchemas(path string, v any, patterns bool) {
	m, ok := v.(map[string]any)
	if !ok {
		g.addProblem(path, "must be an object of schemas, not %s", kindOf(v))
		return
	}
	for _, k := range canonicalKeys(m) {
		at := path + "/" + escapePointer(k)
		if patterns {
			g.checkPattern(at, k)
		}
		g.checkSchema(at, m[k])
	}
}

func (g *guard) checkBranches(path string, v any) {
	list, _ := v.([]any)
	if len(list) == 0 {
		g.addProblem(path, "must be a list with at least one schema")
		return
	}
	for i, e := range list {
		g.checkSchema(path+"/"+strconv.Itoa(i), e)
	}
}

func (g *guard) checkTypes(path string, v any) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	if len(list) == 0 {
		g.addProblem(path, "must name at least one type")
	}
	for _, t := range list {
		if name, _ := t.(string); !slices.Contains(jsonTypes, name) {
			g.addProblem(path, "must be one of %s, or a list of these", strings.Join(jsonTypes, ", "))
			return
		}
	}
	g.checkDistinct(path, list)
}

func (g *guard) checkRequired(path string, v any) {
	list, ok := v.([]any)
	if !ok {
		g.addProblem(path, "must be a list of strings, not %s", kindOf(v))
		return
	}
	for i, e := range list {
		g.checkKind(path+"/"+strconv.Itoa(i), e, "a string")
	}
	g.checkDistinct(path, list)
}

func (g *guard) checkEnum(path string, v any) {
	list, _ := v.([]any)
	if len(list) == 0 {
		g.addProblem(path, "must be a list with at least one value")
	}
	g.checkDistinct(path, list)
}

// checkDistinct refuses values that stand in a list twice.
func (g *guard) checkDistinct(path string, list []any) {
	seen := make(map[string]bool, len(list))
	for i, e := range list {
		key := string(appendJSON(nil, e, oneLine))
		if seen[key] {
			g.addProblem(path+"/"+strconv.Itoa(i), "%.40s stands twice", key)
		}
		seen[key] = true
	}
}

func (g *guard) checkPattern(path, expr string) {
	if len(expr) > maxPattern {
		g.addProblem(path, "the expression is longer than %d bytes", maxPattern)
		return
	}
	_, err := regexp.Compile(expr)
	var bad *syntax.Error
	switch {
	case errors.As(err, &bad) && bad.Code == syntax.ErrInvalidRepeatSize:
		g.addProblem(path, "a repeat count in the expression is larger than RE2 takes, at most 1000: %s", bad.Expr)
	case err != nil:
		g.addProblem(path, "not an RE2 expression (no look-around, no back-references): %v", err)
	}
}

func isPositive(v any) bool {
	switch n := v.(type) {
	case int64:
		return n > 0
	case float64:
		return n > 0
	}
	return false
}

// kindOf names the kind of a normal value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "something else"
}

// escapePointer writes one token of a JSON pointer.
func escapePointer(s string) string {
	if !strings.ContainsAny(s, "~/") { // almost all; a Replacer costs more than the rest of the walk
		return s
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
}

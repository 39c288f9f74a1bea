package node

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/xeipuuv/gojsonschema"

	"github.com/united-workforce/uwf/internal/lists"
)

// maxWork bounds (values of the schema) × (values of the payload), so that no
// pair of the two takes longer than seconds to check.
const maxWork = 20_000_000

// hashPattern is what `format: ocas_ref` demands of a string.
const hashPattern = "^[0-9A-HJKMNP-TV-Z]{13}$"

// ValidationError says what in a payload doesn't fit its schema.
type ValidationError struct{ Problems []Problem }

func (e *ValidationError) Error() string {
	return "does not fit its schema: " + joinProblems(e.Problems)
}

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	compiled *gojsonschema.Schema
	refs     *refNode
	weight   int
}

// Compile makes a schema usable. What CheckSchema refuses is refused here too.
func Compile(schema any) (*Schema, error) {
	p, err := Normalize(schema)
	if err != nil {
		return nil, fmt.Errorf("compile a schema: %w", err)
	}
	if err := guardNormal(p); err != nil {
		return nil, err
	}
	l := gojsonschema.NewSchemaLoader()
	l.Draft = gojsonschema.Draft7
	l.AutoDetect = false
	c, err := l.Compile(closedLoader{gojsonschema.NewRawLoader(translateSchema(p))})
	if err != nil {
		return nil, &SchemaError{Problems: []Problem{{Message: err.Error()}}}
	}
	return &Schema{compiled: c, refs: compileRefs(p), weight: countValues(p, MaxSchemaValues)}, nil
}

// Validate checks a payload. What doesn't fit is a *ValidationError with at most
// 50 problems, in the order of their paths; strings with `format: ocas_ref` must
// have the form of a hash.
func (s *Schema) Validate(payload any) error {
	p, err := Normalize(payload)
	if err != nil {
		return fmt.Errorf("check a payload: %w", err)
	}
	if n := countValues(p, MaxValues); n*s.weight > maxWork {
		return fmt.Errorf("check a payload: %w: %d values against a schema of %d", ErrTooLarge, n, s.weight)
	}
	res, err := s.compiled.Validate(gojsonschema.NewRawLoader(libraryForm(p)))
	if err != nil {
		return fmt.Errorf("check a payload: %w", err)
	}
	if res.Valid() {
		return nil
	}
	return &ValidationError{Problems: problemsOf(res)}
}

// problemsOf puts the library's complaints into an order that doesn't depend on
// that of Go's maps.
func problemsOf(res *gojsonschema.Result) []Problem {
	ps := lists.Map(res.Errors(), func(e gojsonschema.ResultError) Problem {
		return Problem{Path: jsonPointer(e.Context()), Message: describeError(e)}
	})
	slices.SortFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	ps = slices.Compact(ps)
	return ps[:min(len(ps), maxProblems)]
}

// jsonPointer turns the library's context into a JSON pointer. Its parts are joined
// by a separator that is not in any key of a text people write.
func jsonPointer(c *gojsonschema.JsonContext) string {
	const sep = "\x00"
	parts := strings.Split(c.String(sep), sep)
	var b strings.Builder
	for _, p := range parts[1:] { // the first is "(root)"
		b.WriteString("/" + escapePointer(p))
	}
	return b.String()
}

func describeError(e gojsonschema.ResultError) string {
	d := e.Details()
	switch e.Type() {
	case "pattern":
		if fmt.Sprint(d["pattern"]) == hashPattern {
			return "must be a node's hash"
		}
	case "const":
		return fmt.Sprintf("must be %v", d["allowed"])
	case "enum":
		return fmt.Sprintf("must be one of %v", d["allowed"])
	case "required":
		return fmt.Sprintf("%v is missing", d["property"])
	case "additional_property_not_allowed":
		return fmt.Sprintf("%v is not allowed", d["property"])
	case "invalid_type":
		return fmt.Sprintf("must be %v, not %v", d["expected"], d["given"])
	}
	return e.Description()
}

// translateSchema copies a schema into what the library is to see: only the keywords
// that decide, and `format: ocas_ref` as a pattern. Annotations are left out
// because the library looks for $ref and $id inside them too.
func translateSchema(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v // additionalProperties: true or false
	}
	out := make(map[string]any, len(m)+1)
	for k, e := range m {
		switch k {
		case "title", "description", "$comment", "default", "examples", "readOnly", "writeOnly", "deprecated", "format":
		case "properties", "patternProperties", "anyOf", "oneOf", "allOf":
			out[k] = translateAll(e)
		case "items", "contains", "propertyNames", "not", "if", "then", "else", "additionalProperties":
			out[k] = translateSchema(e)
		default: // values
			out[k] = libraryForm(e)
		}
	}
	if isRefFormat(m["format"]) {
		if _, taken := out["pattern"]; taken {
			all, _ := out["allOf"].([]any)
			out["allOf"] = append(all, map[string]any{"pattern": hashPattern})
		} else {
			out["pattern"] = hashPattern
		}
	}
	return out
}

// translateAll is translateSchema of each of a list, or of an object's values.
func translateAll(v any) any {
	switch x := v.(type) {
	case []any:
		return lists.Map(x, translateSchema)
	case map[string]any:
		return MapObject[map[string]any](x, translateSchema)
	}
	return v
}

func isRefFormat(v any) bool { return v == "ocas_ref" || v == "cas_ref" }

// libraryForm copies what holds numbers: the library takes json.Number alone.
func libraryForm(v any) any {
	switch x := v.(type) {
	case int64:
		return json.Number(strconv.FormatInt(x, 10))
	case float64:
		return json.Number(strconv.FormatFloat(x, 'g', -1, 64))
	case []any:
		return lists.Map(x, libraryForm)
	case map[string]any:
		return MapObject[map[string]any](x, libraryForm)
	}
	return v
}

// errRefused is what a schema gets that tries to load another document. The
// guard walk lets none through: this is the second lock.
var errRefused = errors.New("schemas can't load other documents")

// closedLoader serves one document and refuses every other.
type closedLoader struct{ gojsonschema.JSONLoader }

func (closedLoader) LoaderFactory() gojsonschema.JSONLoaderFactory { return refusingFactory{} }

type refusingFactory struct{}

func (refusingFactory) New(source string) gojsonschema.JSONLoader {
	return refusingLoader{gojsonschema.NewRawLoader(source)}
}

type refusingLoader struct{ gojsonschema.JSONLoader }

func (refusingLoader) LoadJSON() (any, error)                        { return nil, errRefused }
func (refusingLoader) LoaderFactory() gojsonschema.JSONLoaderFactory { return refusingFactory{} }

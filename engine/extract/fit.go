package extract

import (
	"strings"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// fitObject turns a mapping into the output that a schema describes: only its
// properties, each fitted to its own schema.
func (s *outputSchema) fitObject(it *strictyaml.Node, schema map[string]any) any {
	out := make(map[string]any, len(it.Entries))
	open := !declaresFields(schema)
	for _, e := range it.Entries {
		p, ok := partSchema(schema, it, pickProperty(e.Key))
		switch {
		case open:
			p = map[string]any{}
		case !ok:
			continue
		}
		if v, keep := s.fitValue(e.Val, p, isRequired(schema, it, e.Key)); keep {
			out[e.Key] = v
		}
	}
	return out
}

// fitValue turns one value into what its schema leaves as the only reading, or into
// what it means by itself. keep is false where it stands for "nothing" in a field
// that need not be there.
func (s *outputSchema) fitValue(it *strictyaml.Node, schema map[string]any, needed bool) (v any, keep bool) {
	fits := allowedKinds(schema)
	switch it.Kind {
	case strictyaml.Map:
		if text, ok := brokenText(it, fits); ok {
			return text, true
		}
		return s.fitObject(it, schema), true
	case strictyaml.List:
		return s.fitList(it, schema), true
	}
	v = it.Scalar
	if v == nil && fits&kindNull == 0 {
		return fitNothing(it, schema, needed)
	}
	if text, ok := v.(string); ok && fits&kindString != 0 {
		return fitEnum(text, schema), true
	}
	if kindOf(v)&fits != 0 {
		return exactText(it, v, fits), true
	}
	if inner, ok := s.unpackText(it, fits, schema); ok {
		return inner, true
	}
	if v, ok := onlyReading(it.Text, fits); ok {
		if text, ok := v.(string); ok {
			return fitEnum(text, schema), true
		}
		return v, true
	}
	return v, true
}

// brokenText puts a text together again that YAML took for a mapping because of
// its colon: "- a.go: the parser", where only text fits.
func brokenText(it *strictyaml.Node, fits kinds) (string, bool) {
	if fits&^kindNull != kindString || len(it.Entries) != 1 {
		return "", false
	}
	v := it.Entries[0].Val
	return strings.TrimSpace(it.Entries[0].Key + ": " + v.Text), v.Kind == strictyaml.Scalar && !v.Quoted && v.Pos.Line == it.Pos.Line
}

func (s *outputSchema) fitList(it *strictyaml.Node, schema map[string]any) any {
	p, ok := partSchema(schema, it, pickItems)
	if !ok {
		p = map[string]any{}
	}
	out := make([]any, 0, len(it.Items))
	for _, item := range it.Items {
		v, _ := s.fitValue(item, p, true)
		out = append(out, v)
	}
	return out
}

// exactText keeps the text of a number that no float64 holds, such as a long id,
// wherever text fits as well.
func exactText(it *strictyaml.Node, v any, fits kinds) any {
	if _, float := v.(float64); float && fits&kindString != 0 && strictyaml.IsWhole(it.Text) {
		return it.Text
	}
	return v
}

// fitNothing reads an empty value, null or ~ where the schema has no null: a field
// that need not be there is not there; text that must be there is empty.
func fitNothing(it *strictyaml.Node, schema map[string]any, needed bool) (any, bool) {
	if !needed {
		return nil, false
	}
	if it.Text != "" { // null was written, and something is demanded: not the same
		return nil, true
	}
	fits := allowedKinds(schema)
	_, limited := enumValues(schema)
	switch {
	case fits == kindString && !limited:
		return "", true
	case fits == kindArray:
		return []any{}, true
	}
	return nil, true
}

// fitEnum gives text the spelling of the one listed value that it means: it may
// differ in case and outer space, else in the signs that models put around words
// ("**approved**.", “approved”) and between them (needs-review).
func fitEnum(text string, schema map[string]any) string {
	values, ok := enumValues(schema)
	if !ok {
		return text
	}
	for _, same := range []func(string) string{
		func(s string) string { return s },
		func(s string) string { return strings.ToLower(strings.TrimSpace(s)) },
		bareWord,
	} {
		matches := map[string]bool{}
		for _, v := range values {
			if listed, ok := v.(string); ok && same(listed) == same(text) {
				matches[listed] = true
			}
		}
		if len(matches) == 1 {
			for listed := range matches {
				return listed
			}
		}
		if len(matches) > 1 {
			return text
		}
	}
	return text
}

// bareWord is a value without quotes, emphasis and punctuation around it, and
// with one sign between its words.
func bareWord(s string) string {
	s = strings.ToLower(strings.Trim(s, " \t\u00a0\"'`*_“”‘’.,;:"))
	return strings.NewReplacer("-", "_", " ", "_").Replace(s)
}

// unpackText reads a text as the list or mapping that the schema demands: JSON in
// quotes, or a single name where a list of names is wanted.
func (s *outputSchema) unpackText(it *strictyaml.Node, fits kinds, schema map[string]any) (any, bool) {
	switch fits &^ kindNull {
	case kindArray:
		if inner, ok := parseText(it.Text, strictyaml.List); ok {
			return s.fitList(inner, schema), true
		}
		p, ok := partSchema(schema, it, pickItems)
		if !ok || allowedKinds(p) != kindString || strings.ContainsAny(it.Text, ",;\n[]{}") {
			return nil, false
		}
		v, _ := s.fitValue(it, p, true)
		return []any{v}, true
	case kindObject:
		if inner, ok := parseText(it.Text, strictyaml.Map); ok {
			return s.fitObject(inner, schema), true
		}
	}
	return nil, false
}

// onlyReading is what a text means among the types that fit, if that is one.
func onlyReading(text string, fits kinds) (any, bool) {
	var readings []any
	trimmed := strings.TrimSpace(text)
	if fits&kindString != 0 {
		readings = append(readings, text)
	}
	if n, ok := strictyaml.Number(trimmed); ok && kindOf(n)&fits != 0 {
		readings = append(readings, n)
	}
	if b, ok := parseBool(trimmed); ok && fits&kindBoolean != 0 {
		readings = append(readings, b)
	}
	if fits&kindNull != 0 && (trimmed == "" || strings.EqualFold(trimmed, "null") || trimmed == "~") {
		readings = append(readings, nil)
	}
	if len(readings) != 1 {
		return nil, false
	}
	return readings[0], true
}

func parseBool(text string) (value, ok bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

package variables

import (
	"errors"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/engine/workflow/template"
)

// Mustache checks one template, whose language is mustache.
func Mustache(in Template) {
	if foreign(in) {
		return
	}
	t, err := template.Parse(in.text())
	if err != nil {
		var bad *template.SyntaxError
		if !errors.As(err, &bad) {
			bad = &template.SyntaxError{Line: 1, Message: err.Error()}
		}
		at, length := in.Text.LineAt(bad.Line)
		in.Problems.Add(at, length, bad.Fix, "%s: %s", in.What, bad.Message)
		return
	}
	if in.Unknown {
		return
	}
	s := &scope{Template: in}
	if in.Output != nil {
		s.levels = []level{rootLevel(*in.Output)}
	}
	s.check(t.Tags())
}

// level is one set of names that a template may use at a place.
type level struct {
	fields map[string]any // name → schema
	open   bool           // any name may be there
	self   any            // what {{.}} is
}

func rootLevel(o Output) level {
	l := level{fields: map[string]any{Body: map[string]any{"type": "string"}}}
	for _, f := range shape.FieldsFor(o.Schema, o.Key, o.Status) {
		l.fields[f.Name] = f.Schema
	}
	m, _ := o.Schema.(map[string]any)
	l.open = opened(m, len(l.fields) == 1)
	return l
}

// opened reports whether an object's schema lets names in that it doesn't list.
// An output has only the fields that its schema lists (nothing else is taken from
// an agent's answer), unless the schema says otherwise or lists none.
func opened(m map[string]any, empty bool) bool {
	switch extra := m["additionalProperties"].(type) {
	case bool:
		return extra
	case map[string]any:
		return true
	}
	return empty || m["patternProperties"] != nil
}

// scope checks the tags of one template. Without levels it is $START's.
type scope struct {
	Template
	levels []level        // innermost last
	seen   map[string]int // how often each name was used so far
	wrong  int            // names reported
}

// maxWrong is how many wrong names are reported of one template.
const maxWrong = 20

func (s *scope) check(tags []template.Tag) {
	for _, t := range tags {
		if s.wrong >= maxWrong || s.Problems.Full() {
			return
		}
		schema, known := s.variable(t)
		if t.Kind != template.Section {
			s.check(t.Tags)
			continue
		}
		before := s.levels
		if before != nil { // nothing of a section is left that nothing fills
			s.levels = append(slices.Clone(before), sectionLevel(schema, known))
		}
		s.check(t.Tags)
		s.levels = before
	}
}

// sectionLevel is what a section over a value of that schema adds.
func sectionLevel(schema any, known bool) level {
	m, ok := schema.(map[string]any)
	if !known || !ok {
		return level{open: true}
	}
	if items, has := m["items"]; has || m["type"] == "array" {
		schema = items
		if m, ok = items.(map[string]any); !ok {
			return level{open: true}
		}
	}
	fields := map[string]any{}
	for _, f := range shape.FieldsFor(schema, "", "") {
		fields[f.Name] = f.Schema
	}
	scalar := slices.Contains([]any{"string", "number", "integer", "boolean", "null"}, m["type"])
	return level{fields: fields, open: !scalar && opened(m, len(fields) == 0), self: schema}
}

// variable looks one name up and reports what is wrong with it. Known is false
// where nothing can be said about its schema.
func (s *scope) variable(t template.Tag) (schema any, known bool) {
	name := t.Name
	if s.seen == nil {
		s.seen = map[string]int{}
	}
	s.seen[name]++
	report := func(fix, format string, args ...any) {
		s.wrong++
		at, length := s.Text.TagAt(name, s.seen[name])
		s.Problems.Add(at, length, fix, "%s: "+format, append([]any{s.What}, args...)...)
	}
	if name == "." {
		if s.levels == nil {
			report("write the text itself", "{{.}}: $START has no output to fill it with")
			return nil, false
		}
		return s.levels[len(s.levels)-1].self, s.levels[len(s.levels)-1].self != nil
	}
	if wrong, fix := wrongName(name); wrong != "" {
		report(fix, "{{%s}}: %s", name, wrong)
		return nil, false
	}
	if s.levels == nil {
		s.unfilled(name)
		return nil, false
	}
	first, rest, dotted := strings.Cut(name, ".")
	schema, known, found := s.lookup(first)
	if !found {
		wrong, fix := s.unknownField(first, s.levels)
		report(fix, "{{%s}}: %s", name, wrong)
		return nil, false
	}
	for dotted && known {
		var part string
		part, rest, dotted = strings.Cut(rest, ".")
		l := sectionLevel(schema, true)
		if m, ok := schema.(map[string]any); ok && (m["type"] == "array" || m["items"] != nil) {
			report("use a section: {{#"+first+"}}{{"+part+"}}{{/"+first+"}}", "{{%s}}: %s is a list", name, first)
			return nil, false
		}
		next, has := l.fields[part]
		switch {
		case has:
			schema = next
		case l.open:
			return nil, false
		default:
			report(s.suggest(part, names(l)), "{{%s}}: %s has no field %q", name, first, part)
			return nil, false
		}
		first += "." + part
	}
	return schema, known
}

// unfilled warns of the name that was just seen.
func (s *scope) unfilled(name string) {
	s.wrong++
	at, length := s.Text.TagAt(name, s.seen[name])
	s.warnUnfilled(at, length, name)
}

// lookup finds a name in the innermost level that has it.
func (s *scope) lookup(name string) (schema any, known, found bool) {
	for _, l := range slices.Backward(s.levels) {
		if schema, ok := l.fields[name]; ok {
			return schema, true, true
		}
		if l.open {
			return nil, false, true
		}
	}
	return nil, false, false
}

// wrongName reports what mustache doesn't have: filters, expressions, paths with
// empty parts.
func wrongName(name string) (wrong, fix string) {
	switch {
	case strings.Contains(name, "|"):
		return "mustache has no filters", "write {{" + strings.TrimSpace(strings.SplitN(name, "|", 2)[0]) + "}}"
	case strings.ContainsAny(name, " \t\n"):
		return "a name has no spaces", "write one field's name between the braces"
	case strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
		return "a dotted name has an empty part", "write it as field.inner"
	case strings.ContainsAny(name, "[]()'\"=<>{}"):
		return "mustache has no expressions", "write a field's name; use {{#list}}…{{/list}} for its items"
	}
	return "", ""
}

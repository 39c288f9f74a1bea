package variables

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/engine/workflow/template"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Mustache checks one template, whose language is mustache.
func Mustache(in Template) {
	if reportForeign(in) {
		return
	}
	t, err := template.Parse(in.plainText())
	if err != nil {
		var bad *template.SyntaxError
		if !errors.As(err, &bad) {
			bad = &template.SyntaxError{Line: 1, Message: err.Error()}
		}
		at, length := in.lineAt(bad.Line)
		in.Problems.Add(at, length, bad.Fix, "%s: %s", in.What, bad.Message)
		return
	}
	if in.Unknown {
		return
	}
	s := &scope{Template: in, seen: map[string]int{}, inverted: map[string]bool{}, warned: map[string]bool{}}
	if in.Output != nil {
		s.levels = []level{rootLevel(*in.Output)}
	}
	s.findInverted(t.Tags())
	s.checkTags(t.Tags())
}

// lineAt is the place of a line (from 1) of the template.
func (t *Template) lineAt(n int) (strictyaml.Pos, int) {
	text, offset := t.plainText(), 0
	for ; n > 1; n-- {
		offset += strings.IndexByte(text[offset:], '\n') + 1
	}
	line, _, _ := strings.Cut(text[offset:], "\n")
	trimmed := strings.TrimLeft(line, " ")
	return t.Text.Within(offset+len(line)-len(trimmed), len(trimmed))
}

// tagAt is the place of the n-th tag (from 1) with a name.
func (t *Template) tagAt(name string, n int) (strictyaml.Pos, int) {
	re, err := regexp.Compile(`\{\{[{&#^]?\s*` + regexp.QuoteMeta(name) + `\s*\}\}\}?`)
	if err != nil {
		return t.Text.Pos, 1
	}
	found := re.FindAllStringIndex(t.plainText(), n)
	if len(found) < n {
		return t.Text.Pos, t.Text.Length()
	}
	return t.Text.Within(found[n-1][0], found[n-1][1]-found[n-1][0])
}

// level is one set of names that a template may use at a place.
type level struct {
	fields map[string]any // name → schema
	open   bool           // any name may be there
	self   any            // what {{.}} is
	// lacks says of a field whether what has these fields fits without it.
	lacks func(name string) bool
}

func rootLevel(o Output) level {
	l := level{fields: map[string]any{Body: map[string]any{"type": "string"}}}
	for _, f := range shape.FieldsFor(o.Schema, o.Key, o.Status) {
		l.fields[f.Name] = f.Schema
	}
	m, _ := o.Schema.(map[string]any)
	l.open = isOpen(m, len(l.fields) == 1)
	known := map[string]bool{Body: false}
	l.lacks = func(name string) bool {
		lacks, ok := known[name]
		if !ok {
			certain := name == o.Key && o.Status != "" || o.Conditional
			lacks = !certain && shape.Optional(o.Schema, o.Key, o.Status, name)
			known[name] = lacks // a template may name it as often as it likes
		}
		return lacks
	}
	return l
}

// isOpen reports whether an object's schema lets names in that it doesn't list.
// An output has only the fields that its schema lists (nothing else is taken from
// an agent's answer), unless the schema says otherwise or lists none.
func isOpen(m map[string]any, empty bool) bool {
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
	levels   []level         // innermost last
	asked    []string        // the fields that the sections around ask for, as use.field has them
	inverted map[string]bool // the names that a section asks the contrary of
	warned   map[string]bool // the fields that were warned of
	seen     map[string]int  // how often each name was used so far
	wrong    int             // names reported
}

// use is what a name stands for. Known is false where nothing can be said about its schema.
type use struct {
	schema any
	known  bool
	field  string // which field of which level; empty: not known
	lacks  string // the first field on the way there that may not be there; empty: none
}

// maxWrong is how many wrong names are reported of one template.
const maxWrong = 20

func (s *scope) checkTags(tags []template.Tag) {
	for _, t := range tags {
		if s.wrong >= maxWrong || s.Problems.Full() {
			return
		}
		u := s.useVariable(t)
		if t.Kind == template.Variable {
			s.warnLacking(t.Name, u.lacks)
		}
		if t.Kind != template.Section {
			s.checkTags(t.Tags)
			continue
		}
		levels, asked := s.levels, s.asked
		if levels != nil { // nothing of a section is left that nothing fills
			s.levels, s.asked = append(slices.Clone(levels), sectionLevel(u.schema, u.known)), append(slices.Clone(asked), u.field)
		}
		s.checkTags(t.Tags)
		s.levels, s.asked = levels, asked
	}
}

// findInverted collects the names of sections for what is not there: whoever writes one
// knows that it may not be.
func (s *scope) findInverted(tags []template.Tag) {
	for _, t := range tags {
		if t.Kind == template.Inverted {
			s.inverted[t.Name] = true
		}
		s.findInverted(t.Tags)
	}
}

// warnLacking warns of the name that was just seen, once for each field.
func (s *scope) warnLacking(name, lacks string) {
	if lacks == "" || s.inverted[lacks] || s.warned[lacks] || len(s.warned) >= maxWrong {
		return
	}
	s.warned[lacks] = true
	at, length := s.tagAt(name, s.seen[name])
	s.warnOptional(at, length, name, lacks, "{{#"+lacks+"}}…{{/"+lacks+"}}")
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
	return level{fields: fields, open: !scalar && isOpen(m, len(fields) == 0), self: schema, lacks: func(name string) bool {
		return shape.Optional(schema, "", "", name)
	}}
}

// useVariable looks one name up and reports what is wrong with it.
func (s *scope) useVariable(t template.Tag) use {
	name := t.Name
	s.seen[name]++
	report := func(fix, format string, args ...any) use {
		s.wrong++
		at, length := s.tagAt(name, s.seen[name])
		s.Problems.Add(at, length, fix, "%s: "+format, append([]any{s.What}, args...)...)
		return use{}
	}
	if name == "." {
		if s.levels == nil {
			return report("write the text itself", "{{.}}: $START has no output to fill it with")
		}
		self := s.levels[len(s.levels)-1].self
		return use{schema: self, known: self != nil}
	}
	if wrong, fix := wrongName(name); wrong != "" {
		return report(fix, "{{%s}}: %s", name, wrong)
	}
	if s.levels == nil {
		s.warnSeenUnfilled(name)
		return use{}
	}
	first, _, _ := strings.Cut(name, ".")
	u, found := s.lookupName(first)
	if !found {
		wrong, fix := s.unknownField(first, s.levels)
		return report(fix, "{{%s}}: %s", name, wrong)
	}
	u, wrong, fix := s.followName(u, name)
	if wrong != "" {
		return report(fix, "{{%s}}: %s", name, wrong)
	}
	return u
}

// followName goes from the first part of a dotted name to what the whole name stands for.
func (s *scope) followName(u use, name string) (to use, wrong, fix string) {
	first, rest, dotted := strings.Cut(name, ".")
	for dotted && u.known {
		var part string
		part, rest, dotted = strings.Cut(rest, ".")
		if m, ok := u.schema.(map[string]any); ok && (m["type"] == "array" || m["items"] != nil) {
			return use{}, first + " is a list", "use a section: {{#" + first + "}}{{" + part + "}}{{/" + first + "}}"
		}
		l := sectionLevel(u.schema, true)
		next, has := l.fields[part]
		switch {
		case has:
			u.schema, u.field = next, u.field+"."+part
		case l.open:
			return use{}, "", ""
		default:
			return use{}, fmt.Sprintf("%s has no field %q", first, part), s.suggestField(part, levelNames(l))
		}
		first += "." + part
		if u.lacks == "" && l.lacks(part) && !s.isAsked(u.field) {
			u.lacks = first
		}
	}
	return u, "", ""
}

// isAsked reports a field that a section around asks for, or for something in it.
func (s *scope) isAsked(field string) bool {
	return slices.ContainsFunc(s.asked, func(asked string) bool { return asked == field || strings.HasPrefix(asked, field+".") })
}

// warnSeenUnfilled warns of the name that was just seen.
func (s *scope) warnSeenUnfilled(name string) {
	s.wrong++
	at, length := s.tagAt(name, s.seen[name])
	s.warnUnfilled(at, length, name)
}

// lookupName finds a name in the innermost level that has it.
func (s *scope) lookupName(name string) (u use, found bool) {
	for i, l := range slices.Backward(s.levels) {
		if schema, ok := l.fields[name]; ok {
			u = use{schema: schema, known: true, field: fmt.Sprintf("%d %s", i, name)}
			if l.lacks(name) && !s.isAsked(u.field) {
				u.lacks = name
			}
			return u, true
		}
		if l.open {
			return use{}, true
		}
	}
	return use{}, false
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

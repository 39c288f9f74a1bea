// Package variables checks the names that the templates on a workflow's edges use
// against the schema of the output that fills them in. It is pure, and renders
// nothing.
package variables

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/shape"
	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// Body is the name of the markdown under an output's frontmatter.
const Body = "_body"

// Template is a template to check, and all that is needed to say what is wrong
// with it.
type Template struct {
	Problems *source.Problems
	What     string           // the template, for messages: "prompt of edge a → done"
	Text     *strictyaml.Node // a text
	// Output is what fills the template in; nil: nothing does, as on the edges of $START.
	Output *Output
	// Warnings takes the names that come out empty, since nothing fills them in, and those
	// that may, since an output fits without them.
	Warnings *source.Problems
	// Unknown says that nothing can be said of the output: only the syntax is looked at.
	Unknown bool
}

// Output is a role's output with one status; empty: with any.
type Output struct {
	Role   string
	Schema any
	Key    string // the field with the status
	Status string
	// Conditional says that more than the status decides whether the template is used: what
	// the schema leaves open may be there for certain.
	Conditional bool
}

func (t *Template) plainText() string {
	s, _ := t.Text.Scalar.(string)
	return s
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

// innerLevel is what a value of that schema has inside, or each item of a list.
func innerLevel(schema any) level {
	m, ok := schema.(map[string]any)
	if items, has := m["items"]; has || m["type"] == "array" {
		schema = items
		m, ok = items.(map[string]any)
	}
	if !ok {
		return level{open: true}
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

// maxWrong is how many wrong names are reported of one template, and how many warned of.
const maxWrong = 20

// names checks the names of one template.
type names struct {
	Template
	asked  []string        // the fields that were asked for, see use.field
	warned map[string]bool // the fields that were warned of, or need not be
	warns  int
	wrong  int
	// stepInto follows one part of a name into a value of a schema, where the language
	// has more than fields; known is false where it has not.
	stepInto func(m map[string]any, path, part string) (next any, wrong, fix string, known bool)
}

// use is what a name stands for.
type use struct {
	schema any    // nil: nothing can be said about it
	path   string // as a template names it
	level  string // which level the path begins at
	lacks  string // the first field on the way there that may not be there; empty: none
}

func (u use) field() string { return u.level + u.path }

func (n *names) isFull() bool { return n.wrong >= maxWrong || n.Problems.Full() }

// place finds where a name stands, and how many characters it has. That takes a look at all
// of the template: it is done for what is reported alone.
type place func() (strictyaml.Pos, int)

// report notes a wrong name.
func (n *names) report(where place, fix, format string, args ...any) {
	n.wrong++
	at, length := where()
	n.Problems.Add(at, length, fix, "%s: "+format, append([]any{n.What}, args...)...)
}

// warnUnfilled warns of a name in a template that nothing fills.
func (n *names) warnUnfilled(where place, name string) {
	n.wrong++
	at, length := where()
	n.Warnings.Add(at, length, "leave it out; the thread's own prompt is given to every role", "%s: {{%s}} comes out empty: nothing has run that could fill it in", n.What, name)
}

// warnLacking warns of a name that an output may lack, once for each field. Around is what
// asks whether a field is there.
func (n *names) warnLacking(where place, name, lacks, around string) {
	if lacks == "" || n.warned[lacks] || n.warns >= maxWrong {
		return
	}
	n.warned[lacks] = true
	n.warns++
	at, length := where()
	of := "the output of " + n.Output.Role
	if n.Output.Status != "" {
		of += fmt.Sprintf(" with status %q", n.Output.Status)
	}
	n.Warnings.Add(at, length, fmt.Sprintf("write %s around what needs it, or add %q to the `required` of its object", around, lacks[strings.LastIndex(lacks, ".")+1:]),
		"%s: {{%s}} may come out empty: %s fits without %q", n.What, name, of, lacks)
}

// isAsked reports a field that was asked for, or something in it.
func (n *names) isAsked(field string) bool {
	return slices.ContainsFunc(n.asked, func(asked string) bool {
		rest, is := strings.CutPrefix(asked, field)
		return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// beginName is the first part of a name, a field of a level; which says of which.
func (n *names) beginName(l level, which, name string) use {
	u := use{schema: l.fields[name], path: name, level: which}
	if l.lacks != nil && l.lacks(name) && !n.isAsked(u.field()) {
		u.lacks = name
	}
	return u
}

// followName goes through the other parts of a name.
func (n *names) followName(u use, parts []string) (to use, wrong, fix string) {
	for _, part := range parts {
		m, _ := u.schema.(map[string]any)
		if len(m) == 0 {
			u.schema = nil
			return u, "", ""
		}
		next, wrong, fix, known := n.stepInto(m, u.path, part)
		if wrong != "" {
			return use{}, wrong, fix
		}
		lacks := false
		if !known {
			l := innerLevel(m)
			var has bool
			if next, has = l.fields[part]; !has && !l.open {
				return use{}, fmt.Sprintf("%s has no field %q", u.path, part), suggestField(part, levelNames(l))
			}
			lacks = has && l.lacks(part)
		}
		u.schema = next
		if u.path += "." + part; part == "" {
			u.path = strings.TrimSuffix(u.path, ".") + "[]"
		}
		if lacks && u.lacks == "" && !n.isAsked(u.field()) {
			u.lacks = u.path
		}
	}
	return u, "", ""
}

// unknownField explains a name that a role's output doesn't have.
func (n *names) unknownField(name string, known []string) (wrong, fix string) {
	o := n.Output
	for _, other := range shape.StatusesOf(o.Schema, o.Key).Names() {
		if other == o.Status || o.Status == "" {
			continue
		}
		if slices.ContainsFunc(shape.FieldsFor(o.Schema, o.Key, other), func(f shape.Field) bool { return f.Name == name }) {
			return fmt.Sprintf("an output of %s with status %q has no such field, only one with status %q", o.Role, o.Status, other),
				"use a field of this status, or add it to the schema"
		}
	}
	return fmt.Sprintf("the output of %s has no such field", o.Role), suggestField(name, known)
}

// suggestField is the fix for a field that is not known.
func suggestField(name string, known []string) string {
	slices.Sort(known)
	known = slices.Compact(known)
	if len(known) == 0 {
		return "add the field to the schema"
	}
	return text.DidYouMean(name, known, text.KnownAre(known))
}

func levelNames(l level) []string { return slices.Sorted(maps.Keys(l.fields)) }

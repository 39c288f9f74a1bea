package variables

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/liquid"
)

// Liquid checks one template, whose language is Liquid.
func Liquid(in Template) {
	t, err := liquid.Parse(in.text())
	if err != nil {
		var bad *liquid.SyntaxError
		if !errors.As(err, &bad) {
			bad = &liquid.SyntaxError{Offset: -1, Message: err.Error(), Fix: "correct the template"}
		}
		if meant := in.Suggest(bad.Name, bad.Known); meant != "" {
			bad.Fix = fmt.Sprintf("did you mean %q?", meant)
		}
		at, length := in.Text.Within(bad.Offset, bad.Length)
		in.Problems.Add(at, length, bad.Fix, "%s: %s", in.What, bad.Message)
		return
	}
	if in.Unknown {
		return
	}
	s := &liquidScope{Template: in, set: map[string]local{}}
	if in.Output != nil {
		s.root = rootLevel(*in.Output)
		for name := range s.root.fields {
			if strings.HasPrefix(name, "$") {
				delete(s.root.fields, name) // no name in Liquid
			}
		}
	}
	s.check(t.Items())
}

// local is a name that the template itself sets. Nothing is known of its value
// where schema is nil.
type local struct{ schema any }

// liquidScope checks the names of one Liquid template. Without a role it is
// $START's.
type liquidScope struct {
	Template
	root  level
	set   map[string]local // by assign and capture: from there on, everywhere
	loops []map[string]local
	wrong int
}

func (s *liquidScope) check(items []liquid.Item) {
	for _, item := range items {
		var from any
		for i := range item.Reads {
			if s.wrong >= maxWrong || s.Problems.Full() {
				return
			}
			schema := s.read(item.Reads[i])
			if item.From != nil && item.From.Offset == item.Reads[i].Offset {
				from = schema
			}
		}
		switch {
		case item.Loop:
			s.loops = append(s.loops, map[string]local{item.Sets: {itemsOf(from)}, "forloop": {forloop()}})
			s.check(item.Body)
			s.loops = s.loops[:len(s.loops)-1]
		default:
			s.check(item.Body)
			if item.Sets != "" {
				s.set[item.Sets] = local{from}
			}
		}
	}
}

// forloop is the schema of what a loop knows about itself.
func forloop() any {
	fields := map[string]any{}
	for _, name := range []string{"first", "last", "index", "index0", "rindex", "rindex0", "length"} {
		fields[name] = map[string]any{}
	}
	return map[string]any{"type": "object", "properties": fields}
}

// itemsOf is the schema of a list's items; nil where it is not known.
func itemsOf(schema any) any {
	m, _ := schema.(map[string]any)
	return m["items"]
}

// read looks one name up, reports what is wrong with it, and returns the schema of
// what it stands for; nil where that is not known.
func (s *liquidScope) read(r liquid.Read) any {
	report := func(fix, format string, args ...any) {
		s.wrong++
		at, length := s.Text.Within(r.Offset, r.Length)
		s.Problems.Add(at, length, fix, "%s: {{%s}}: "+format, append([]any{s.What, r.String()}, args...)...)
	}
	schema, found := s.lookup(r.Path[0])
	if !found {
		if s.Output == nil {
			s.wrong++
			at, length := s.Text.Within(r.Offset, r.Length)
			s.warnUnfilled(at, length, r.String())
			return nil
		}
		levels := []level{s.root}
		for name := range s.set {
			levels = append(levels, level{fields: map[string]any{name: nil}})
		}
		wrong, fix := s.unknownField(r.Path[0], levels)
		report(fix, "%s", wrong)
		return nil
	}
	at := r.Path[0]
	for _, part := range r.Path[1:] {
		m, _ := schema.(map[string]any)
		if len(m) == 0 {
			return nil
		}
		next, wrong, fix := s.step(m, at, part)
		if wrong != "" {
			report(fix, "%s", wrong)
			return nil
		}
		if schema, at = next, at+"."+part; part == "" {
			at = strings.TrimSuffix(at, ".") + "[]"
		}
	}
	if r.Open {
		return nil
	}
	return schema
}

func (s *liquidScope) lookup(name string) (schema any, found bool) {
	for _, l := range slices.Backward(s.loops) {
		if v, ok := l[name]; ok {
			return v.schema, true
		}
	}
	if v, ok := s.set[name]; ok {
		return v.schema, true
	}
	if schema, ok := s.root.fields[name]; ok {
		return schema, true
	}
	return nil, s.root.open
}

// step follows one name, or an index (""), into a value of that schema.
func (s *liquidScope) step(m map[string]any, at, part string) (next any, wrong, fix string) {
	list := m["type"] == "array" || m["items"] != nil
	switch {
	case part == "size":
		return nil, "", ""
	case list && (part == "" || part == "first" || part == "last"):
		return m["items"], "", ""
	case list:
		return nil, at + " is a list", "use {% for item in " + at + " %}{{ item." + part + " }}{% endfor %}, or " + at + ".first." + part
	case part == "":
		return nil, "", ""
	}
	l := sectionLevel(m, true)
	if next, has := l.fields[part]; has {
		return next, "", ""
	}
	if l.open {
		return nil, "", ""
	}
	return nil, fmt.Sprintf("%s has no field %q", at, part), s.suggest(part, names(l))
}

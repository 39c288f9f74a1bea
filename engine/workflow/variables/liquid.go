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
	t, err := liquid.Parse(in.plainText())
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
	s := &liquidScope{Template: in, set: map[string]local{}, warned: map[string]bool{}}
	if in.Output != nil {
		s.root = rootLevel(*in.Output)
		for name := range s.root.fields {
			if strings.HasPrefix(name, "$") {
				delete(s.root.fields, name) // no name in Liquid
			}
		}
	}
	s.checkItems(t.Items())
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
	// asked are the names that were asked for: by the blocks around, and by tags before in
	// the same block.
	asked  []string
	warned map[string]bool
	wrong  int
}

func (s *liquidScope) checkItems(items []liquid.Item) {
	outside := len(s.asked)
	defer func() { s.asked = s.asked[:outside] }()
	for _, item := range items {
		var from any
		for i := range item.Reads {
			if s.wrong >= maxWrong || s.Problems.Full() {
				return
			}
			schema := s.readName(item.Reads[i])
			if item.From != nil && item.From.Offset == item.Reads[i].Offset {
				from = schema
			}
		}
		before := len(s.asked)
		for _, r := range item.Reads {
			if r.Asked && !s.isAsked(r.String()) {
				s.asked = append(s.asked, r.String())
			}
		}
		switch {
		case item.Loop:
			s.loops = append(s.loops, map[string]local{item.Sets: {itemsOf(from)}, "forloop": {loopSchema()}})
			s.checkItems(item.Body)
			s.loops = s.loops[:len(s.loops)-1]
		default:
			s.checkItems(item.Body)
			if item.Sets != "" {
				s.set[item.Sets] = local{from}
			}
		}
		if item.Body != nil {
			s.asked = s.asked[:before]
		}
	}
}

// isAsked reports a name that was asked for, or something in it.
func (s *liquidScope) isAsked(name string) bool {
	return slices.ContainsFunc(s.asked, func(asked string) bool {
		rest, is := strings.CutPrefix(asked, name)
		return is && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// warnLacking warns of a name, once for each field that may not be there.
func (s *liquidScope) warnLacking(r liquid.Read, lacks string) {
	if lacks == "" || r.Asked || s.warned[lacks] || len(s.warned) >= maxWrong {
		return
	}
	s.warned[lacks] = true
	at, length := s.Text.Within(r.Offset, r.Length)
	written := strings.ReplaceAll(lacks, "[]", "[0]") // which item was left out
	s.warnOptional(at, length, r.String(), lacks, "{% if "+written+" %}…{% endif %}")
}

// loopSchema is the schema of what a loop knows about itself.
func loopSchema() any {
	fields := map[string]any{}
	all := []any{"first", "last", "index", "index0", "rindex", "rindex0", "length"}
	for _, name := range all {
		fields[fmt.Sprint(name)] = map[string]any{}
	}
	return map[string]any{"type": "object", "properties": fields, "required": all}
}

// itemsOf is the schema of a list's items; nil where it is not known.
func itemsOf(schema any) any {
	m, _ := schema.(map[string]any)
	return m["items"]
}

// readName looks one name up, reports what is wrong with it, and returns the schema of
// what it stands for; nil where that is not known.
func (s *liquidScope) readName(r liquid.Read) any {
	report := func(fix, format string, args ...any) {
		s.wrong++
		at, length := s.Text.Within(r.Offset, r.Length)
		s.Problems.Add(at, length, fix, "%s: {{%s}}: "+format, append([]any{s.What, r.String()}, args...)...)
	}
	schema, found := s.lookupName(r.Path[0])
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
	at, lacks := r.Path[0], ""
	if s.mayLack(at) && !s.isAsked(at) {
		lacks = at
	}
	for _, part := range r.Path[1:] {
		m, _ := schema.(map[string]any)
		if len(m) == 0 {
			schema = nil
			break
		}
		next, optional, wrong, fix := s.stepInto(m, at, part)
		if wrong != "" {
			report(fix, "%s", wrong)
			return nil
		}
		if schema, at = next, at+"."+part; part == "" {
			at = strings.TrimSuffix(at, ".") + "[]"
		}
		if optional && lacks == "" && !s.isAsked(at) {
			lacks = at
		}
	}
	s.warnLacking(r, lacks)
	if r.Open {
		return nil
	}
	return schema
}

func (s *liquidScope) lookupName(name string) (schema any, found bool) {
	if v, ok := s.lookupLocal(name); ok {
		return v.schema, true
	}
	if schema, ok := s.root.fields[name]; ok {
		return schema, true
	}
	return nil, s.root.open
}

// lookupLocal finds a name that the template itself sets.
func (s *liquidScope) lookupLocal(name string) (v local, found bool) {
	for _, l := range slices.Backward(s.loops) {
		if v, found = l[name]; found {
			return v, true
		}
	}
	v, found = s.set[name]
	return v, found
}

// mayLack reports a field of the output that may not be there.
func (s *liquidScope) mayLack(name string) bool {
	_, own := s.lookupLocal(name)
	_, known := s.root.fields[name]
	return !own && known && s.root.lacks(name)
}

// stepInto follows one name, or an index (""), into a value of that schema. Optional: such a
// value fits without it.
func (s *liquidScope) stepInto(m map[string]any, at, part string) (next any, optional bool, wrong, fix string) {
	list := m["type"] == "array" || m["items"] != nil
	switch {
	case part == "size":
		return nil, false, "", ""
	case list && (part == "" || part == "first" || part == "last"):
		return m["items"], false, "", ""
	case list:
		return nil, false, at + " is a list", "use {% for item in " + at + " %}{{ item." + part + " }}{% endfor %}, or " + at + ".first." + part
	case part == "":
		return nil, false, "", ""
	}
	l := sectionLevel(m, true)
	if next, has := l.fields[part]; has {
		return next, l.lacks(part), "", ""
	}
	if l.open {
		return nil, false, "", ""
	}
	return nil, false, fmt.Sprintf("%s has no field %q", at, part), s.suggestField(part, levelNames(l))
}

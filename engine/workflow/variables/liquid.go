package variables

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/liquid"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Liquid checks one template, whose language is Liquid.
func Liquid(in Template) {
	t, err := liquid.Parse(in.plainText())
	if err != nil {
		in.Problems.AddWithin(in.Text, in.What, err)
		return
	}
	if in.Unknown {
		return
	}
	s := &liquidScope{names: names{Template: in, warned: map[string]bool{}, stepInto: stepIntoItem}, set: map[string]any{}}
	if in.Output != nil {
		s.root = rootLevel(*in.Output)
		maps.DeleteFunc(s.root.fields, func(name string, _ any) bool { return strings.HasPrefix(name, "$") }) // no name in Liquid
	}
	s.checkItems(t.Items())
}

// liquidScope checks the names of one Liquid template. Without an output it is $START's.
type liquidScope struct {
	names
	root level
	// set are the names that the template itself sets, with the schemas of their values: by
	// assign and capture from there on, everywhere; loops has those of the loops around.
	set   map[string]any
	loops []map[string]any
}

// checkItems checks items in order. Names that they ask for count from there on, to the end
// of the block around.
func (s *liquidScope) checkItems(items []liquid.Item) {
	outside := len(s.asked)
	defer func() { s.asked = s.asked[:outside] }()
	for _, item := range items {
		var from any
		for i := range item.Reads {
			if s.isFull() {
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
		if item.Loop {
			list, _ := from.(map[string]any)
			s.loops = append(s.loops, map[string]any{item.Sets: list["items"], "forloop": loopSchema()})
			s.checkItems(item.Body)
			s.loops = s.loops[:len(s.loops)-1]
		} else if s.checkItems(item.Body); item.Sets != "" {
			s.set[item.Sets] = from
		}
		if item.Body != nil {
			s.asked = s.asked[:before]
		}
	}
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

// readName looks one name up, reports what is wrong with it, and returns the schema of
// what it stands for; nil where that is not known.
func (s *liquidScope) readName(r liquid.Read) any {
	where := func() (strictyaml.Pos, int) { return s.Text.Within(r.Offset, r.Length) }
	u, found := s.lookupName(r.Path[0])
	var wrong, fix string
	switch {
	case found:
		u, wrong, fix = s.followName(u, r.Path[1:])
	case s.Output == nil:
		s.warnUnfilled(where, r.String())
		return nil
	default:
		wrong, fix = s.unknownField(r.Path[0], slices.AppendSeq(levelNames(s.root), maps.Keys(s.set)))
	}
	if wrong != "" {
		s.report(where, fix, "{{%s}}: %s", r.String(), wrong)
		return nil
	}
	if !r.Asked {
		written := strings.ReplaceAll(u.lacks, "[]", "[0]") // which item was left out
		s.warnLacking(where, r.String(), u.lacks, "{% if "+written+" %}…{% endif %}")
	}
	if r.Open {
		return nil
	}
	return u.schema
}

// lookupName finds a name that the template sets, or a field of the output.
func (s *liquidScope) lookupName(name string) (u use, found bool) {
	for _, set := range append([]map[string]any{s.set}, s.loops...) {
		if schema, own := set[name]; own { // that of the innermost loop counts
			u, found = use{schema: schema, path: name}, true
		}
	}
	if found {
		return u, true
	}
	if _, known := s.root.fields[name]; known {
		return s.beginName(s.root, "", name), true
	}
	return use{path: name}, s.root.open
}

// stepIntoItem follows what Liquid has besides fields: indexes (""), first, last and size.
func stepIntoItem(m map[string]any, path, part string) (next any, wrong, fix string, known bool) {
	list := m["type"] == "array" || m["items"] != nil
	switch {
	case part == "size":
		return nil, "", "", true
	case list && (part == "" || part == "first" || part == "last"):
		return m["items"], "", "", true
	case list:
		return nil, path + " is a list", "use {% for item in " + path + " %}{{ item." + part + " }}{% endfor %}, or " + path + ".first." + part, true
	}
	return nil, "", "", part == ""
}

package shape

import (
	"maps"
	"slices"
	"strconv"
)

// Unlisted is a name that a schema requires and whose properties do not list it: agents
// are not asked for it.
type Unlisted struct {
	Name string
	Path string // the JSON pointer of the name in `required`
	// Forbidden says that additionalProperties: false refuses it: nothing fits there.
	Forbidden bool
	// Partly says that some of the alternatives list it.
	Partly bool
	// Known are the names that are listed there.
	Known []string
}

// maxUnlisted bounds how many are found.
const maxUnlisted = 200

// UnlistedOf finds the names that a schema requires of any object in it without listing
// them. What describes one object together (a schema and its allOf, oneOf, anyOf, then
// and else) is taken together; not and if require nothing. nothingFits says that what is
// forbidden leaves no object that fits the schema: not only one alternative, or a field
// that may be left out.
func UnlistedOf(schema any) (found []Unlisted, nothingFits bool) {
	w := &requiredWalk{}
	nothingFits = w.walkObject(schema, "", nil, 0)
	return w.found, nothingFits
}

// part is one of the schemas that describe an object together.
type part struct {
	schema map[string]any
	at     string // its JSON pointer
	lists  fieldSet
}

type requiredWalk struct{ found []Unlisted }

// walkObject looks at the schema of an object, which around are those that it is a branch
// of, and reports whether no object fits it.
func (w *requiredWalk) walkObject(schema any, at string, around []part, depth int) (nothingFits bool) {
	m, ok := schema.(map[string]any)
	if !ok || depth > MaxDepth || len(w.found) >= maxUnlisted {
		return schema == false
	}
	together := append(slices.Clone(around), part{m, at, listedBy(m, 0)})
	nothingFits = !canBeObject(m) || w.findUnlisted(together)
	for _, word := range []string{"allOf", "oneOf", "anyOf"} {
		branches, refused := asList(m[word]), 0
		for i, b := range branches {
			if w.walkObject(b, at+"/"+word+"/"+strconv.Itoa(i), together, depth+1) {
				refused++
			}
		}
		if refused > 0 && (word == "allOf" || refused == len(branches)) {
			nothingFits = true
		}
	}
	for _, word := range []string{"then", "else"} {
		w.walkObject(m[word], at+"/"+word, together, depth+1)
	}
	return w.walkValues(m, at, together, depth+1) || nothingFits
}

// walkValues looks at the values that an object or a list holds. Nothing fits where a
// field that the object must have can hold nothing.
func (w *requiredWalk) walkValues(m map[string]any, at string, together []part, depth int) (nothingFits bool) {
	for _, word := range []string{"properties", "patternProperties"} {
		fields, _ := m[word].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			none := w.walkObject(fields[name], at+"/"+word+"/"+escapePointer(name), nil, depth)
			value, _ := fields[name].(map[string]any)
			if none && word == "properties" && value["type"] == "object" && slices.ContainsFunc(together, func(p part) bool {
				return slices.Contains(requiredBy(p.schema), name)
			}) {
				nothingFits = true
			}
		}
	}
	for _, word := range []string{"additionalProperties", "items", "contains"} {
		w.walkObject(m[word], at+"/"+word, nil, depth)
	}
	return nothingFits
}

// findUnlisted looks at the names that schemas require together, and reports whether one
// of them is forbidden. What was found before with fewer of them is not found again.
func (w *requiredWalk) findUnlisted(together []part) (forbidden bool) {
	for _, p := range together {
		for i, name := range requiredBy(p.schema) {
			refused := slices.ContainsFunc(together, func(t part) bool { return forbidsField(t.schema, name, 0) })
			if refused || !slices.ContainsFunc(together, func(t part) bool { return t.lists.hasField(name) }) {
				w.addUnlisted(p, i, name, refused, together)
			}
			forbidden = forbidden || refused
		}
	}
	return forbidden
}

// requiredBy lists the names that a schema itself requires.
func requiredBy(m map[string]any) []string {
	var out []string
	for _, name := range asList(m["required"]) {
		text, _ := name.(string) // a schema that passed the guard walk has only texts
		out = append(out, text)
	}
	return out
}

func (w *requiredWalk) addUnlisted(p part, i int, name string, forbidden bool, together []part) {
	path := p.at + "/required/" + strconv.Itoa(i)
	if len(w.found) >= maxUnlisted || slices.ContainsFunc(w.found, func(u Unlisted) bool { return u.Path == path }) {
		return
	}
	seen := map[string]bool{}
	for _, t := range together {
		namesIn(t.schema, seen, 0)
	}
	w.found = append(w.found, Unlisted{Name: name, Path: path, Forbidden: forbidden, Partly: seen[name], Known: slices.Sorted(maps.Keys(seen))})
}

// canBeObject reports a schema that objects may fit.
func canBeObject(m map[string]any) bool {
	switch t := m["type"].(type) {
	case string:
		return t == "object"
	case []any:
		return slices.Contains(t, any("object"))
	}
	return true
}

// fieldSet is a set of fields.
type fieldSet struct {
	names map[string]bool
	all   bool // any name, as far as can be told
}

func (s fieldSet) hasField(name string) bool { return s.all || s.names[name] }

// ownFields are those of which a schema says itself what they are.
func ownFields(m map[string]any) fieldSet {
	_, all := m["additionalProperties"].(map[string]any)
	out := fieldSet{names: map[string]bool{}, all: all || m["patternProperties"] != nil}
	props, _ := m["properties"].(map[string]any)
	for name := range props {
		out.names[name] = true
	}
	return out
}

// listedBy are the fields that every object that fits a schema has in the properties of
// what it fits. Of anyOf, then and else one is enough: more than one may hold.
func listedBy(m map[string]any, depth int) fieldSet {
	out := ownFields(m)
	if depth > MaxDepth {
		return fieldSet{all: true}
	}
	add := func(s fieldSet) {
		maps.Copy(out.names, s.names)
		out.all = out.all || s.all
	}
	for _, b := range slices.Concat(asList(m["allOf"]), asList(m["anyOf"]), []any{m["if"], m["then"], m["else"]}) {
		if b, ok := b.(map[string]any); ok {
			add(listedBy(b, depth+1))
		}
	}
	common := fieldSet{all: true}
	for _, b := range asList(m["oneOf"]) {
		if b, ok := b.(map[string]any); ok && canBeObject(b) {
			common = common.intersectWith(listedBy(b, depth+1))
		}
	}
	if common.names != nil {
		add(common)
	}
	return out
}

// intersectWith gives the fields that two sets have in common.
func (s fieldSet) intersectWith(t fieldSet) fieldSet {
	out := fieldSet{names: map[string]bool{}, all: s.all && t.all}
	for _, from := range []fieldSet{s, t} {
		for name := range from.names {
			if s.hasField(name) && t.hasField(name) {
				out.names[name] = true
			}
		}
	}
	return out
}

// forbidsField reports whether a schema refuses each object with the field.
func forbidsField(m map[string]any, name string, depth int) bool {
	if depth > MaxDepth {
		return false
	}
	if _, listed := nestedValue(m, "properties", name); m["additionalProperties"] == false && !listed && m["patternProperties"] == nil {
		return true
	}
	return slices.ContainsFunc(asList(m["allOf"]), func(b any) bool {
		m, ok := b.(map[string]any)
		return ok && forbidsField(m, name, depth+1)
	})
}

// PropertyNames lists the properties of a schema and of all its branches, sorted.
func PropertyNames(schema map[string]any) []string {
	seen := map[string]bool{}
	namesIn(schema, seen, 0)
	return slices.Sorted(maps.Keys(seen))
}

// namesIn adds the properties of a schema and of all its branches to seen.
func namesIn(m map[string]any, seen map[string]bool, depth int) {
	if depth > MaxDepth {
		return
	}
	props, _ := m["properties"].(map[string]any)
	for name := range props {
		seen[name] = true
	}
	for _, b := range slices.Concat(asList(m["allOf"]), asList(m["oneOf"]), asList(m["anyOf"]), []any{m["if"], m["then"], m["else"]}) {
		if b, ok := b.(map[string]any); ok {
			namesIn(b, seen, depth+1)
		}
	}
}

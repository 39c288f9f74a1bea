package node

import (
	"maps"
	"regexp"
	"slices"

	"github.com/united-workforce/uwf/internal/lists"
)

// refNode is the part of a schema that says where references are. A part of a
// schema without any is nil.
type refNode struct {
	self     bool                // a string here is a reference
	props    map[string]*refNode // of all properties: what is none is additional
	patterns []refPattern
	extra    *refNode // additionalProperties
	items    *refNode
	also     []*refNode // anyOf, oneOf, allOf, if, then, else: the same value
}

type refPattern struct {
	re *regexp.Regexp
	at *refNode // nil: the pattern only makes a property known
}

func compileRefs(v any) *refNode {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	n := &refNode{self: isRefFormat(m["format"]), items: compileRefs(m["items"]), extra: compileRefs(m["additionalProperties"])}
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := m[k].([]any)
		for _, e := range list {
			n.addChild(e)
		}
	}
	for _, k := range []string{"if", "then", "else"} {
		n.addChild(m[k])
	}
	if !n.compileProperties(m) && !n.self && n.items == nil && n.also == nil && n.extra == nil {
		return nil
	}
	return n
}

func (n *refNode) addChild(v any) {
	if c := compileRefs(v); c != nil {
		n.also = append(n.also, c)
	}
}

// compileProperties reports whether there are references in properties.
func (n *refNode) compileProperties(m map[string]any) (found bool) {
	props, _ := m["properties"].(map[string]any)
	n.props = make(map[string]*refNode, len(props))
	for k, p := range props {
		n.props[k] = compileRefs(p)
		found = found || n.props[k] != nil
	}
	patterns, _ := m["patternProperties"].(map[string]any)
	for _, k := range canonicalKeys(patterns) {
		at := compileRefs(patterns[k])
		found = found || at != nil
		if re, err := regexp.Compile(k); err == nil { // the guard walk has compiled it before
			n.patterns = append(n.patterns, refPattern{re, at})
		}
	}
	return found
}

// Refs lists the references in a payload, each once, in the order of the
// payload's keys. Strings in reference position that have no
// hash's form are left out: Validate complains about them.
func (s *Schema) Refs(payload any) []Hash {
	c := collector{seen: map[Hash]bool{}}
	c.collectRefs(s.refs, payload)
	return c.out
}

type collector struct {
	out  []Hash
	seen map[Hash]bool
}

func (c *collector) addHash(h Hash) {
	if !c.seen[h] && h.Valid() {
		c.seen[h] = true
		c.out = append(c.out, h)
	}
}

func (c *collector) collectRefs(n *refNode, v any) {
	if n == nil {
		return
	}
	switch x := v.(type) {
	case string:
		if n.self {
			c.addHash(Hash(x))
		}
	case Hash: // a payload that was not normalised yet
		if n.self {
			c.addHash(x)
		}
	case []any:
		for _, e := range x {
			c.collectRefs(n.items, e)
		}
	case map[string]any:
		c.collectObject(n, x)
	}
	for _, a := range n.also {
		c.collectRefs(a, v)
	}
}

func (c *collector) collectObject(n *refNode, x map[string]any) {
	for _, k := range canonicalKeys(x) {
		at, known := n.props[k]
		c.collectRefs(at, x[k])
		for _, p := range n.patterns {
			if p.re.MatchString(k) {
				known = true
				c.collectRefs(p.at, x[k])
			}
		}
		if !known {
			c.collectRefs(n.extra, x[k])
		}
	}
}

// MapStrings returns a copy of v in which every string, but for keys, is what of gives for
// it. v is normalised, as a payload is: only maps, lists and scalars. The order in which of
// is asked is always the same.
func MapStrings(v any, of func(string) string) any {
	switch x := v.(type) {
	case string:
		return of(x)
	case []any:
		return lists.Map(x, func(e any) any { return MapStrings(e, of) })
	case map[string]any:
		return MapObject[map[string]any](x, func(e any) any { return MapStrings(e, of) })
	}
	return v
}

// MapObject is an object of what of gives for each value of another one, in the order of names.
func MapObject[Out, In ~map[string]any](object In, of func(any) any) Out {
	out := make(Out, len(object))
	for _, name := range slices.Sorted(maps.Keys(object)) {
		out[name] = of(object[name])
	}
	return out
}

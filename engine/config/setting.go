package config

import (
	"maps"
	"slices"
	"time"

	"gopkg.in/yaml.v3"
)

// Kind of a setting's value.
type ValueKind string

// The kinds.
const (
	TextValue     ValueKind = "text"
	FlagValue     ValueKind = "true or false"
	WholeValue    ValueKind = "whole number"
	NumberValue   ValueKind = "number"
	TimeValue     ValueKind = "time"   // as 90s, 30m, 6h
	ListValue     ValueKind = "list"   // of texts
	ObjectValue   ValueKind = "object" // with known fields
	NamedValue    ValueKind = "named"  // a mapping whose keys people choose
	OverrideValue ValueKind = "alias"  // an alias for all roles, or role → alias
)

// setting is one place in the table of all settings: what may stand there, where
// the reader puts it, and what is there now. The table is the only list of
// settings: reader, validation, JSON Schema, `config show` and `config set` all go
// by it.
type setting struct {
	kind     ValueKind
	doc      string
	choices  []string // of a text; nil: any
	least    int64    // of a whole number
	most     int64
	orElse   any                       // the default, where nobody says anything
	secret   bool                      // never shown, never in the repository's file
	secretly func(string) bool         // of named texts: whether the one of this name is secret
	merged   bool                      // of a mapping: files are put together name by name within an entry
	fields   []field                   // of an object
	retired  map[string]string         // keys of earlier versions → what to write instead
	entry    func(name string) setting // of a named mapping: one entry, read and kept under that name
	names    func() []string           // of a named mapping: the entries that there are

	read func(r *reader, n *yaml.Node, path string)
	get  func() (v any, set bool)
}

type field struct {
	name string
	setting
}

func object(doc string, fields ...field) setting {
	s := setting{kind: ObjectValue, doc: doc, fields: fields}
	s.read = func(r *reader, n *yaml.Node, path string) { r.object(n, path, s) }
	return s
}

// then calls fn after the object was read.
func (s setting) then(fn func(r *reader, n *yaml.Node, path string)) setting {
	read := s.read
	s.read = func(r *reader, n *yaml.Node, path string) {
		read(r, n, path)
		fn(r, n, path)
	}
	return s
}

func (s setting) instead(retired map[string]string) setting {
	s.retired = retired
	if s.kind == ObjectValue {
		s.read = func(r *reader, n *yaml.Node, path string) { r.object(n, path, s) }
	}
	return s
}

func (s setting) def(v any) setting {
	s.orElse = v
	return s
}

// named is a mapping from names that people choose to what bind makes for each.
// bind gets the entry that is there (or a zero one) and returns its setting, which
// keeps what it reads through keep.
func named[V any](doc string, into *map[string]V, bind func(name string, v *V, keep func()) setting) setting {
	s := setting{kind: NamedValue, doc: doc}
	s.entry = func(name string) setting {
		v := (*into)[name]
		return bind(name, &v, func() { (*into)[name] = v })
	}
	s.names = func() []string { return slices.Sorted(maps.Keys(*into)) }
	s.read = func(r *reader, n *yaml.Node, path string) {
		*into = map[string]V{}
		r.named(n, path, func(name string, v *yaml.Node, path string) { s.entry(name).read(r, v, path) })
	}
	return s
}

func text[S ~string](doc string, into *S, choices ...string) setting {
	return setting{kind: TextValue, doc: doc, choices: choices,
		read: func(r *reader, n *yaml.Node, path string) {
			var s string
			if len(choices) > 0 {
				r.oneOf(&s, choices...)(n, path)
			} else {
				r.text(&s)(n, path)
			}
			*into = S(s)
		},
		get: func() (any, bool) { return string(*into), *into != "" },
	}
}

func flag(doc string, into *bool) setting {
	return setting{kind: FlagValue, doc: doc,
		read: func(r *reader, n *yaml.Node, path string) { r.boolean(into)(n, path) },
		get:  func() (any, bool) { return *into, *into },
	}
}

func whole[N int | int64](doc string, into *N, least, most int64) setting {
	return setting{kind: WholeValue, doc: doc, least: least, most: most,
		read: func(r *reader, n *yaml.Node, path string) {
			var v int64
			r.integer(&v, least, most)(n, path)
			*into = N(v)
		},
		get: func() (any, bool) { return int64(*into), *into != 0 },
	}
}

func number(doc string, into *float64) setting {
	return setting{kind: NumberValue, doc: doc,
		read: func(r *reader, n *yaml.Node, path string) { r.number(into)(n, path) },
		get:  func() (any, bool) { return *into, *into != 0 },
	}
}

func span(doc string, into *time.Duration) setting {
	return setting{kind: TimeValue, doc: doc,
		read: func(r *reader, n *yaml.Node, path string) { r.duration(into)(n, path) },
		get:  func() (any, bool) { return plainDuration(*into), *into != 0 },
	}
}

func list(doc string, into *[]string) setting {
	return setting{kind: ListValue, doc: doc,
		read: func(r *reader, n *yaml.Node, path string) {
			*into = nil
			r.texts(into)(n, path)
		},
		get: func() (any, bool) { return *into, *into != nil },
	}
}

// texts is a mapping from names to texts.
func texts(doc, each string, into *map[string]string) setting {
	return named(doc, into, func(_ string, v *string, keep func()) setting {
		return text(each, v).then(func(*reader, *yaml.Node, string) { keep() })
	})
}

// overrides is workflow → role → alias; an alias in place of the roles is for all
// of them, which the role "*" stands for.
func overrides(doc string, into *map[string]map[string]string) setting {
	s := setting{kind: NamedValue, doc: doc, merged: true}
	s.entry = func(workflow string) setting {
		e := setting{kind: OverrideValue, doc: "An alias for every role of this workflow, or role: alias."}
		roles := (*into)[workflow]
		named := texts("", "An alias.", &roles)
		e.entry, e.names = named.entry, named.names
		e.read = func(r *reader, n *yaml.Node, path string) {
			if n.Kind == yaml.ScalarNode && !nothing(n) {
				roles = map[string]string{everyRole: n.Value}
			} else {
				named.read(r, n, path)
			}
			(*into)[workflow] = roles
		}
		return e
	}
	s.names = func() []string { return slices.Sorted(maps.Keys(*into)) }
	s.read = func(r *reader, n *yaml.Node, path string) {
		*into = map[string]map[string]string{}
		r.named(n, path, func(name string, v *yaml.Node, path string) { s.entry(name).read(r, v, path) })
	}
	return s
}

// everyRole stands for all roles of a workflow in overrides.
const everyRole = "*"

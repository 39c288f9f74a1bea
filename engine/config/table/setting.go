// Package table reads YAML files by a table of settings, and knows from the same table
// what may stand where: for messages, for editors (JSON Schema) and for values that
// people type. It knows no setting itself.
package table

import (
	"maps"
	"slices"
	"time"

	"gopkg.in/yaml.v3"
)

// ValueKind is what a setting's value is.
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

// Setting is one place in the table of all settings: what may stand there, where
// the reader puts it, and what is there now. The table is the only list of
// settings: reader, validation, JSON Schema, `config show` and `config set` all go
// by it.
type Setting struct {
	Kind     ValueKind
	Doc      string
	Choices  []string // of a text; nil: any
	Least    int64    // of a whole number
	Most     int64
	OrElse   any                       // the default, where nobody says anything
	Secret   bool                      // never shown, never in the repository's file
	Secretly func(string) bool         // of named texts: whether the one of this name is secret
	Fields   []Field                   // of an object
	Retired  map[string]string         // keys of earlier versions → what to write instead
	Entry    func(name string) Setting // of a named mapping: one entry, read and kept under that name
	Names    func() []string           // of a named mapping: the entries that there are

	Read func(r *Reader, n *yaml.Node, path string)
	Get  func() (v any, set bool)
}

// Field is a setting of an object, by its key.
type Field struct {
	Name string
	Setting
}

// Object is a mapping with known keys.
func Object(doc string, fields ...Field) Setting {
	s := Setting{Kind: ObjectValue, Doc: doc, Fields: fields}
	s.Read = func(r *Reader, n *yaml.Node, path string) { r.readObject(n, path, s) }
	return s
}

// Then calls fn after the object was read.
func (s Setting) Then(fn func(r *Reader, n *yaml.Node, path string)) Setting {
	read := s.Read
	s.Read = func(r *Reader, n *yaml.Node, path string) {
		read(r, n, path)
		fn(r, n, path)
	}
	return s
}

// Instead says what to write in place of keys of earlier versions.
func (s Setting) Instead(retired map[string]string) Setting {
	s.Retired = retired
	if s.Kind == ObjectValue {
		s.Read = func(r *Reader, n *yaml.Node, path string) { r.readObject(n, path, s) }
	}
	return s
}

// Default is what counts where nobody says anything.
func (s Setting) Default(v any) Setting {
	s.OrElse = v
	return s
}

// Named is a mapping from names that people choose to what bind makes for each.
// bind gets the entry that is there (or a zero one) and returns its Setting, which
// keeps what it reads through keep.
func Named[V any](doc string, into *map[string]V, bind func(name string, v *V, keep func()) Setting) Setting {
	s := Setting{Kind: NamedValue, Doc: doc}
	s.Entry = func(name string) Setting {
		v := (*into)[name]
		return bind(name, &v, func() { (*into)[name] = v })
	}
	s.Names = func() []string { return slices.Sorted(maps.Keys(*into)) }
	s.Read = func(r *Reader, n *yaml.Node, path string) {
		*into = map[string]V{}
		r.Named(n, path, func(name string, v *yaml.Node, path string) { s.Entry(name).Read(r, v, path) })
	}
	return s
}

// Text is a scalar as it is written; one of the choices, where there are any.
func Text[S ~string](doc string, into *S, choices ...string) Setting {
	return Setting{Kind: TextValue, Doc: doc, Choices: choices,
		Read: func(r *Reader, n *yaml.Node, path string) {
			var s string
			if len(choices) > 0 {
				r.oneOf(&s, choices...)(n, path)
			} else {
				r.textInto(&s)(n, path)
			}
			*into = S(s)
		},
		Get: func() (any, bool) { return string(*into), *into != "" },
	}
}

// Flag is true or false.
func Flag(doc string, into *bool) Setting {
	return Setting{Kind: FlagValue, Doc: doc,
		Read: func(r *Reader, n *yaml.Node, path string) { r.boolInto(into)(n, path) },
		Get:  func() (any, bool) { return *into, *into },
	}
}

// Whole is a whole number between two others.
func Whole[N int | int64](doc string, into *N, least, most int64) Setting {
	return Setting{Kind: WholeValue, Doc: doc, Least: least, Most: most,
		Read: func(r *Reader, n *yaml.Node, path string) {
			var v int64
			r.intInto(&v, least, most)(n, path)
			*into = N(v)
		},
		Get: func() (any, bool) { return int64(*into), *into != 0 },
	}
}

// Number is a number from 0 on.
func Number(doc string, into *float64) Setting {
	return Setting{Kind: NumberValue, Doc: doc,
		Read: func(r *Reader, n *yaml.Node, path string) { r.numberInto(into)(n, path) },
		Get:  func() (any, bool) { return *into, *into != 0 },
	}
}

// Amount is a number from 0 on, of which 0 is another thing than nothing.
func Amount(doc string, into **float64) Setting {
	return Setting{Kind: NumberValue, Doc: doc,
		Read: func(r *Reader, n *yaml.Node, path string) {
			var v float64
			told := len(r.Problems)
			if r.numberInto(&v)(n, path); len(r.Problems) == told {
				*into = &v
			}
		},
		Get: func() (any, bool) {
			if *into == nil {
				return nil, false
			}
			return **into, true
		},
	}
}

// Span is a time such as 90s or 6h.
func Span(doc string, into *time.Duration) Setting {
	return Setting{Kind: TimeValue, Doc: doc,
		Read: func(r *Reader, n *yaml.Node, path string) { r.durationInto(into)(n, path) },
		Get:  func() (any, bool) { return plainDuration(*into), *into != 0 },
	}
}

// List is a list of texts.
func List(doc string, into *[]string) Setting {
	return Setting{Kind: ListValue, Doc: doc,
		Read: func(r *Reader, n *yaml.Node, path string) {
			*into = nil
			r.textsInto(into)(n, path)
		},
		Get: func() (any, bool) { return *into, *into != nil },
	}
}

// Texts is a mapping from names to texts.
func Texts(doc, each string, into *map[string]string) Setting {
	return Named(doc, into, func(_ string, v *string, keep func()) Setting {
		return Text(each, v).Then(func(*Reader, *yaml.Node, string) { keep() })
	})
}

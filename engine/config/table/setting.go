// Package table reads YAML files by a table of settings, and knows from the same table
// what may stand where: for messages, for editors (JSON Schema) and for values that
// people type. It knows no setting itself.
package table

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/internal/strictyaml"
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
	ListValue     ValueKind = "list"   // of texts, or of what Item is
	TextsValue    ValueKind = "texts"  // a text, or a list of them
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
	Item     func(line int) Setting    // of a list that is not one of texts: the entry on a line
	Names    func() []string           // of a named mapping: the entries that there are
	Reserved []Field                   // of a named mapping: keys with a meaning of their own

	Clear func() // of a named mapping: forget the entries that there are

	Read func(r *Reader, n *strictyaml.Node, path string) // of a value; nil: by Fields or Entry
	Get  func() (v any, set bool)
	// Wrong says what is wrong with a value of one line; empty: nothing.
	Wrong func(n *strictyaml.Node) string
	after []func(r *Reader, n *strictyaml.Node, path string)
	amend func(schema map[string]any) // says in the JSON Schema what after checks
}

// Field is a setting of an object, by its key.
type Field struct {
	Name string
	Setting
}

// ReadInto reads a value into where the setting puts it.
func (s Setting) ReadInto(r *Reader, n *strictyaml.Node, path string) {
	switch {
	case s.Read != nil:
		s.Read(r, n, path)
	case s.Fields != nil:
		r.readObject(n, path, s)
	default:
		s.Clear()
		r.readNamed(n, path, s)
	}
	for _, fn := range s.after {
		fn(r, n, path)
	}
}

// Object is a mapping with known keys.
func Object(doc string, fields ...Field) Setting {
	return Setting{Kind: ObjectValue, Doc: doc, Fields: fields}
}

// Then calls fn after the value was read.
func (s Setting) Then(fn func(r *Reader, n *strictyaml.Node, path string)) Setting {
	s.after = append(slices.Clone(s.after), fn)
	return s
}

// Requiring adds to the JSON Schema what Then refuses.
func (s Setting) Requiring(amend func(schema map[string]any)) Setting {
	s.amend = amend
	return s
}

// Instead says what to write in place of keys of earlier versions.
func (s Setting) Instead(retired map[string]string) Setting {
	s.Retired = retired
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
	return Setting{
		Kind: NamedValue, Doc: doc,
		Entry: func(name string) Setting {
			v := (*into)[name]
			return bind(name, &v, func() { (*into)[name] = v })
		},
		Names: func() []string { return slices.Sorted(maps.Keys(*into)) },
		Clear: func() { *into = map[string]V{} },
	}
}

// Besides gives a named mapping keys with a meaning of their own.
func (s Setting) Besides(reserved ...Field) Setting {
	of, names := s.Entry, s.Names
	s.Reserved = reserved
	s.Entry = func(name string) Setting {
		if i := slices.IndexFunc(reserved, func(f Field) bool { return f.Name == name }); i >= 0 {
			return reserved[i].Setting
		}
		return of(name)
	}
	s.Names = func() []string {
		all := names()
		for _, f := range reserved {
			if _, set := f.Get(); set {
				all = append(all, f.Name)
			}
		}
		return all
	}
	return s
}

// leaf is a setting whose value parse reads, or says what is wrong with it.
func leaf[V any](s Setting, into *V, parse func(n *strictyaml.Node) (V, string)) Setting {
	s.Wrong = func(n *strictyaml.Node) string {
		_, wrong := parse(n)
		return wrong
	}
	s.Read = func(r *Reader, n *strictyaml.Node, path string) {
		v, wrong := parse(n)
		if wrong != "" {
			r.NoteProblem(n, path, "", "%s", wrong)
			return
		}
		*into = v
	}
	return s
}

// Text is a scalar as it is written; one of the choices, where there are any.
func Text[S ~string](doc string, into *S, choices ...string) Setting {
	s := Setting{Kind: TextValue, Doc: doc, Choices: choices, Get: func() (any, bool) { return string(*into), *into != "" }}
	return leaf(s, into, func(n *strictyaml.Node) (S, string) {
		switch {
		case choices != nil && !slices.Contains(choices, n.Text): // a list has no text
			return "", "must be one of " + strings.Join(choices, ", ")
		case n.Kind != strictyaml.Scalar:
			return "", "must be text, this is " + n.KindName()
		}
		return S(n.Text), ""
	})
}

// Flag is true or false.
func Flag(doc string, into *bool) Setting {
	s := Setting{Kind: FlagValue, Doc: doc, Get: func() (any, bool) { return *into, *into }}
	return leaf(s, into, func(n *strictyaml.Node) (bool, string) {
		if v := strings.ToLower(n.Text); v == "true" || v == "false" {
			return v == "true", ""
		}
		return false, "must be true or false"
	})
}

// Whole is a whole number between two others.
func Whole[N int | int64](doc string, into *N, least, most int64) Setting {
	s := Setting{Kind: WholeValue, Doc: doc, Least: least, Most: most, Get: func() (any, bool) { return int64(*into), *into != 0 }}
	return leaf(s, into, func(n *strictyaml.Node) (N, string) {
		v, err := strconv.ParseInt(strings.ReplaceAll(n.Text, "_", ""), 10, 64)
		if err != nil || v < least || v > most {
			return 0, fmt.Sprintf("must be a whole number from %d to %d", least, most)
		}
		return N(v), ""
	})
}

// Number is a number from 0 on.
func Number(doc string, into *float64) Setting {
	return leaf(Setting{Kind: NumberValue, Doc: doc, Get: func() (any, bool) { return *into, *into != 0 }}, into, parseNumber)
}

func parseNumber(n *strictyaml.Node) (float64, string) {
	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || !(v >= 0 && v <= 1e12) {
		return 0, "must be a number, 0 or more"
	}
	return v, ""
}

// Amount is a number from 0 on, of which 0 is another thing than nothing.
func Amount(doc string, into **float64) Setting {
	get := func() (any, bool) {
		if *into == nil {
			return nil, false
		}
		return **into, true
	}
	return leaf(Setting{Kind: NumberValue, Doc: doc, Get: get}, into, func(n *strictyaml.Node) (*float64, string) {
		v, wrong := parseNumber(n)
		return &v, wrong
	})
}

// Span is a time such as 90s or 6h.
func Span(doc string, into *time.Duration) Setting {
	s := Setting{Kind: TimeValue, Doc: doc, Get: func() (any, bool) { return plainDuration(*into), *into != 0 }}
	return leaf(s, into, func(n *strictyaml.Node) (time.Duration, string) {
		v, _ := time.ParseDuration(n.Text) // 0 where it is none
		if v <= 0 {
			return 0, "must be a time such as 90s, 30m or 6h"
		}
		return v, ""
	})
}

// List is a list of texts.
func List(doc string, into *[]string) Setting {
	return Setting{Kind: ListValue, Doc: doc, Get: func() (any, bool) { return *into, *into != nil },
		Read: func(r *Reader, n *strictyaml.Node, path string) {
			if n.Kind != strictyaml.List {
				r.NoteProblem(n, path, "", "must be a list, this is %s", n.KindName())
			}
			*into = nil
			for i, item := range n.Items {
				var text string
				Text("", &text).Read(r, item, fmt.Sprintf("%s[%d]", path, i))
				*into = append(*into, text)
			}
		},
	}
}

// Items is a list of what bind makes for each entry, which knows the line that it begins on.
func Items(doc string, bind func(line int) Setting) Setting {
	return Setting{Kind: ListValue, Doc: doc, Item: bind, Read: func(r *Reader, n *strictyaml.Node, path string) {
		if n.Kind != strictyaml.List {
			r.NoteProblem(n, path, "", "must be a list, this is %s", n.KindName())
		}
		for i, item := range n.Items {
			bind(item.Pos.Line).ReadInto(r, item, fmt.Sprintf("%s[%d]", path, i))
		}
	}}
}

// TextOrList is one text, or a list of several.
func TextOrList(doc string, into *[]string) Setting {
	list := List(doc, into)
	read := list.Read
	list.Kind, list.Read = TextsValue, func(r *Reader, n *strictyaml.Node, path string) {
		if n.Kind == strictyaml.List {
			read(r, n, path)
			return
		}
		var text string
		Text("", &text).Read(r, n, path)
		*into = []string{text}
	}
	return list
}

// Texts is a mapping from names to texts.
func Texts(doc, each string, into *map[string]string) Setting {
	return Named(doc, into, func(_ string, v *string, keep func()) Setting {
		return Text(each, v).Then(func(*Reader, *strictyaml.Node, string) { keep() })
	})
}

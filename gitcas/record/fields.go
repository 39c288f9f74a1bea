package record

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
)

// The structs of this package say with a tag what their fields are in a payload:
// `payload:"name"` and, after commas, optional (left out where it is zero), own (optional,
// and only in schemas of our own), null (written as null where it is nil), lenient (always
// written, and may be missing). Without it a `json` tag counts, of which omitempty is
// optional. `oneof` lists the texts that a field may have.

// field is a field of a record.
type field struct {
	name                         string
	optional, own, null, lenient bool
	oneof                        []string
}

func fieldOf(f reflect.StructField) field {
	words := strings.Split(cmp.Or(f.Tag.Get("payload"), f.Tag.Get("json")), ",")
	own := slices.Contains(words, "own")
	return field{
		name: words[0], own: own, optional: own || slices.Contains(words, "optional") || slices.Contains(words, "omitempty"),
		null: slices.Contains(words, "null"), lenient: slices.Contains(words, "lenient"), oneof: strings.Fields(f.Tag.Get("oneof")),
	}
}

// toPayload is what a struct is in a payload, and whether it has a field of our own.
func toPayload(v reflect.Value) (m map[string]any, own bool) {
	m = map[string]any{}
	for i := range v.NumField() {
		f, x := fieldOf(v.Type().Field(i)), v.Field(i)
		if f.optional && (x.IsZero() || x.Kind() == reflect.Slice && x.Len() == 0) {
			continue
		}
		own = own || f.own
		m[f.name] = toValue(x)
	}
	return m, own
}

// toValue is what the value of a field is in a payload. node.Normalize does the rest.
func toValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return toValue(v.Elem())
		}
	case reflect.Struct:
		m, _ := toPayload(v)
		return m
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = toValue(v.Index(i))
		}
		return list
	}
	return v.Interface()
}

// ErrNotRecord is wrapped where a node is not the record it should be.
var ErrNotRecord = errors.New("not the expected record")

// readRecord reads a node into the struct that into points to. It checks every field itself, so
// that it can be used on nodes that nobody validated. own: the schema is one of our own.
func readRecord(what string, n node.Node, known, own bool, into any) error {
	if !known {
		return fmt.Errorf("%w: a node of type %s is no %s", ErrNotRecord, n.Type, what)
	}
	m, ok := n.Payload.(map[string]any)
	if !ok {
		return fmt.Errorf("%w: the payload of %s must be an object", ErrNotRecord, withArticle(what))
	}
	return reader{what, own}.readStruct(m, reflect.ValueOf(into).Elem())
}

// reader reads an object, which is called what in complaints.
type reader struct {
	what string
	own  bool
}

func (r reader) readStruct(m map[string]any, v reflect.Value) error {
	left := len(m)
	for i := range v.NumField() {
		f := fieldOf(v.Type().Field(i))
		x, there := m[f.name]
		switch {
		case f.own && !r.own, !there && (f.optional || f.lenient):
			continue
		case there:
			left--
		case f.null:
			return r.refuseField(f.name, "a node's hash or null")
		}
		if err := r.readValue(f, x, v.Field(i)); err != nil {
			return err
		}
	}
	if left > 0 {
		return fmt.Errorf("%w: %s with unknown fields", ErrNotRecord, withArticle(r.what))
	}
	return nil
}

func (r reader) refuseField(name, want string) error {
	return fmt.Errorf("%w: %s of %s must be %s", ErrNotRecord, name, withArticle(r.what), want)
}

// readValue reads what stands in a field into v.
func (r reader) readValue(f field, x any, v reflect.Value) error {
	in := reflect.ValueOf(x)
	ok, want := in.Kind() == reflect.Map, "an object"
	switch v.Kind() {
	case reflect.Pointer:
		if x == nil && f.null {
			return nil
		}
		v.Set(reflect.New(v.Type().Elem()))
		return r.readValue(f, x, v.Elem())
	case reflect.String:
		return r.readText(f, x, v)
	case reflect.Slice:
		return r.readList(f, x, v)
	case reflect.Float64:
		ok, want = in.Kind() == reflect.Int64 || in.Kind() == reflect.Float64, "a number"
	case reflect.Int, reflect.Int64:
		ok, want = in.Kind() == reflect.Int64, "a whole number"
	case reflect.Bool:
		ok, want = in.Kind() == reflect.Bool, "true or false"
	}
	m, isObject := x.(map[string]any)
	switch {
	case !ok:
		return r.refuseField(f.name, want)
	case v.Kind() == reflect.Struct && isObject:
		return r.readObject(f, m, v)
	}
	v.Set(in.Convert(v.Type()))
	return nil
}

func (r reader) readObject(f field, m map[string]any, v reflect.Value) error {
	if err := (reader{r.what + "'s " + f.name, r.own}).readStruct(m, v); err != nil {
		return err
	}
	if by, isBy := v.Interface().(By); isBy && by.Validate() != nil {
		return fmt.Errorf("%w: %s of %s: %w", ErrNotRecord, f.name, withArticle(r.what), by.Validate())
	}
	return nil
}

func (r reader) readText(f field, x any, v reflect.Value) error {
	s, ok := x.(string)
	want := "a string"
	switch v.Interface().(type) {
	case node.Hash:
		ok, want = node.Hash(s).Valid(), "a node's hash"
	case node.Digest:
		ok, want = node.Digest(s).Valid(), "a SHA-256 of 64 small hexadecimal digits"
	}
	if last := len(f.oneof) - 1; ok && last >= 0 {
		ok, want = slices.Contains(f.oneof, s), strings.Join(f.oneof[:last], ", ")+" or "+f.oneof[last]
	}
	if !ok {
		return r.refuseField(f.name, want)
	}
	v.SetString(s)
	return nil
}

// readList reads a list of texts, or of objects, of which one is called as the field is,
// without its s.
func (r reader) readList(f field, x any, v reflect.Value) error {
	list, ok := x.([]any)
	if !ok {
		return r.refuseField(f.name, "a list")
	}
	v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
	for i, e := range list {
		m, isObject := e.(map[string]any)
		switch {
		case v.Index(i).Kind() != reflect.Struct:
			if err := r.readText(f, e, v.Index(i)); err != nil {
				return err
			}
		case !isObject:
			return r.refuseField(f.name, "a list of objects")
		default:
			one := reader{strings.TrimSuffix(f.name, "s") + " of " + withArticle(r.what), r.own}
			if err := one.readStruct(m, v.Index(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// withArticle is what a complaint calls a record.
func withArticle(what string) string {
	if strings.HasPrefix(what, "A") {
		return "an " + what
	}
	return "a " + what
}

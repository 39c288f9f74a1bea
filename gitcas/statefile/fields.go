package statefile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
)

// fields are the keys of a mapping, in the order in which they are written: one table
// says how a T is read and how it is written. The tables are made once, so that reading
// thousands of entries makes nothing besides these.
type fields[T any] []field[T]

// field is one key of a T.
type field[T any] struct {
	// name is the key, with the keys that it stands below: "next.role".
	name string
	read func(t *T, v value) error
	// write returns what stands behind the key's colon, with its line break, and the
	// lines below it; empty: the key is left out.
	write func(t *T, indent string) string
}

func (f field[T]) key() string { return f.name[strings.LastIndexByte(f.name, '.')+1:] }

// readKnown reads a mapping into t, and returns the keys that no field has.
func (fs fields[T]) readKnown(t *T, v value, what string) (unknown []pair, err error) {
	if v.kind != mapping {
		return nil, newMalformedError(v.line, "%s is no mapping", what)
	}
	for _, p := range v.pairs {
		i := slices.IndexFunc(fs, func(f field[T]) bool { return f.key() == p.key })
		switch {
		case i < 0:
			unknown = append(unknown, p)
		case !p.val.isNull():
			if err := fs[i].read(t, p.val); err != nil {
				return nil, err
			}
		}
	}
	return unknown, nil
}

// readMapping reads a mapping all of whose keys are known.
func (fs fields[T]) readMapping(t *T, v value, what string) error {
	unknown, err := fs.readKnown(t, v, what)
	if err == nil && len(unknown) > 0 {
		err = newMalformedError(unknown[0].val.line, "%s: unknown key %.40q", what, unknown[0].key)
	}
	return err
}

// writeBlock writes the mapping below a key that is indented so far; empty where no field
// has anything to say.
func (fs fields[T]) writeBlock(t *T, indent string) string {
	var b strings.Builder
	for _, f := range fs {
		if text := f.write(t, indent+"  "); text != "" {
			b.WriteString(indent + "  " + f.key() + ":" + text)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n" + b.String()
}

// reader reads a scalar. The error names the field.
type reader[V any] func(v value, name string) (V, error)

// scalarField is a field of one word or text, at a place of the T. What is written as
// nothing is left out.
func scalarField[T, V any](name string, at func(*T) *V, read reader[V], write func(V) string) field[T] {
	return field[T]{name, func(t *T, v value) (err error) {
		*at(t), err = read(v, name)
		return err
	}, func(t *T, _ string) string {
		if text := write(*at(t)); text != "" {
			return " " + text + "\n"
		}
		return ""
	}}
}

// blockField is a field that is a mapping itself, and left out where it is zero.
func blockField[T any, B comparable](name string, at func(*T) *B, inner fields[B]) field[T] {
	return field[T]{name, func(t *T, v value) error {
		return inner.readMapping(at(t), v, name)
	}, func(t *T, indent string) string {
		if *at(t) == *new(B) {
			return ""
		}
		return inner.writeBlock(at(t), indent)
	}}
}

// optionalField is a field that is a mapping itself, and left out where it is nil.
func optionalField[T, B any](name string, at func(*T) **B, inner fields[B]) field[T] {
	return field[T]{name, func(t *T, v value) error {
		*at(t) = new(B)
		return inner.readMapping(*at(t), v, name)
	}, func(t *T, indent string) string {
		if *at(t) == nil {
			return ""
		}
		return inner.writeBlock(*at(t), indent)
	}}
}

// listField is a field with a list of at most so many items, which are called what.
func listField[T, I any](name string, at func(*T) *[]I, most int, what string, read reader[I], write func(i *I, indent string) string) field[T] {
	return field[T]{name, func(t *T, v value) error {
		if v.kind != sequence || len(v.items) > most {
			return newMalformedError(v.line, "%s is no list of at most %d %s", name, most, what)
		}
		for _, item := range v.items {
			i, err := read(item, name)
			if err != nil {
				return err
			}
			*at(t) = append(*at(t), i)
		}
		return nil
	}, func(t *T, indent string) string {
		if len(*at(t)) == 0 {
			return ""
		}
		var b strings.Builder
		b.WriteByte('\n')
		for i := range *at(t) {
			b.WriteString(indent + "  - " + strings.TrimLeft(write(&(*at(t))[i], indent+"  "), " \n"))
		}
		return b.String()
	}}
}

func readHash(v value, name string) (node.Hash, error) {
	h := node.Hash(v.text)
	if !h.Valid() {
		return "", newMalformedError(v.line, "%s: %.40q is no hash", name, v.text)
	}
	return h, nil
}

func writeHash(h node.Hash) string { return writeOptional(string(h), writeCode) }

func writeOptional(s string, write func(string) string) string {
	if s == "" {
		return ""
	}
	return write(s)
}

func writeText(s string) string { return writeOptional(s, writeWord) }

// textUpTo reads a text of so many bytes.
func textUpTo(most int) reader[string] {
	return func(v value, name string) (string, error) {
		switch {
		case v.kind != scalar:
			return "", newMalformedError(v.line, "%s is no text", name)
		case len(v.text) > most:
			return "", newMalformedError(v.line, "%s: %d bytes, more than %d", name, len(v.text), most)
		}
		return v.text, nil
	}
}

// textThat reads a text of so many bytes that must be a what.
func textThat(most int, ok func(string) bool, what string) reader[string] {
	read := textUpTo(most)
	return func(v value, name string) (string, error) {
		s, err := read(v, name)
		if err == nil && !ok(s) {
			err = newMalformedError(v.line, "%s: %.60q is no %s", name, s, what)
		}
		return s, err
	}
}

// numberUpTo reads a whole number from 0 on.
func numberUpTo[N int | int64](most N) reader[N] {
	return func(v value, name string) (N, error) {
		n, _ := strconv.ParseInt(v.text, 10, 64) // what is no number is written in another way than n
		if v.str || n < 0 || n > int64(most) || strconv.FormatInt(n, 10) != v.text {
			return 0, newMalformedError(v.line, "%s: %.40q is no whole number from 0 on", name, v.text)
		}
		return N(n), nil
	}
}

func writeNumber[N int | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

// writeNonzero leaves a 0 out, which says that nothing is known.
func writeNonzero[N int | int64](n N) string {
	if n == 0 {
		return ""
	}
	return writeNumber(n)
}

func readAmount(v value, name string) (float64, error) {
	n, ok := parseFloat(v)
	if !ok || !amountOK(n) {
		return 0, newMalformedError(v.line, "%s: %.40q is no amount", name, v.text)
	}
	return n, nil
}

// parseFloat reads a decimal number that is not quoted.
func parseFloat(v value) (float64, bool) {
	n, err := strconv.ParseFloat(v.text, 64)
	return n, err == nil && !v.str && !math.IsNaN(n) && !math.IsInf(n, 0) && !strings.ContainsAny(v.text, "xX_")
}

func writeAmount(n float64) string {
	if n == 0 {
		return ""
	}
	return writeFloat(n)
}

func writeFloat(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// readTrue reads what is written only where it is so.
func readTrue(v value, name string) (bool, error) {
	if v.text != "true" || v.str {
		return false, newMalformedError(v.line, "%s: %.40q is not true", name, v.text)
	}
	return true, nil
}

func writeTrue(b bool) string {
	if !b {
		return ""
	}
	return fmt.Sprint(b)
}

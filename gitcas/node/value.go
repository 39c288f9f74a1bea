package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Limits of one payload. They keep a hostile node from costing more than a few
// megabytes or a few milliseconds.
const (
	MaxDepth  = 100     // lists and objects inside each other
	MaxValues = 100_000 // values of all kinds
	MaxSize   = 8 << 20 // bytes of all strings and keys together
)

// maxInt is the largest number that is written as an integer: 2^53-1.
const maxInt = 1<<53 - 1

// ErrTooLarge is wrapped by errors about payloads and texts beyond the limits.
var ErrTooLarge = errors.New("too large")

// ErrPayload is wrapped by errors about values that no payload can hold.
var ErrPayload = errors.New("not a JSON value")

// Normalize brings a value to the one form that payloads have here: nil, bool,
// string, int64, float64, []any and map[string]any.
//
// Whole numbers up to ±(2^53-1) become int64 (1.0 is 1, -0 is 0), other numbers
// float64; infinities and NaN are refused. Surrogates without their partner and
// other invalid UTF-8 become U+FFFD. Nil slices and maps become empty ones, nil
// pointers null. Other Go types than those of JSON, and those above with named
// types, are refused. A value that has the form already is returned as it is,
// without a copy; v is never changed.
func Normalize(v any) (any, error) {
	var z normalizer
	out, _, err := z.normalizeValue(v, 0)
	return out, err
}

// normalizer counts what it has seen, against the limits.
type normalizer struct {
	values, size int
	members      int // of all objects
}

func (z *normalizer) addValues(values, size, depth int) error {
	z.values += values
	z.size += size
	switch {
	case z.values > MaxValues:
		return fmt.Errorf("%w: more than %d values in one payload", ErrTooLarge, MaxValues)
	case z.size > MaxSize:
		return fmt.Errorf("%w: more than %d bytes of text in one payload", ErrTooLarge, MaxSize)
	case depth > MaxDepth:
		return fmt.Errorf("%w: nested deeper than %d levels", ErrTooLarge, MaxDepth)
	}
	return nil
}

// normalizeValue returns the normal form of v and whether it differs from v.
func (z *normalizer) normalizeValue(v any, depth int) (any, bool, error) {
	if err := z.addValues(1, 0, depth); err != nil {
		return nil, false, err
	}
	switch x := v.(type) {
	case nil, bool:
		return v, false, nil
	case string:
		s := validText(x)
		return s, len(s) != len(x) || s != x, z.addValues(0, len(s), depth)
	case int64:
		if x < -maxInt || x > maxInt {
			return float64(x), true, nil
		}
		return v, false, nil
	case float64:
		n, err := normalFloat(x)
		_, same := n.(float64)
		return n, !same, err
	case json.Number:
		f, err := x.Float64()
		if err != nil || !json.Valid([]byte(x)) { // which reads hexadecimal and Infinity too
			return nil, false, fmt.Errorf("%w: number %.40q is none, or beyond the range of a double", ErrPayload, x)
		}
		n, err := normalFloat(f)
		return n, true, err
	case []any:
		return z.normalizeList(x, depth)
	case map[string]any:
		return z.normalizeObject(x, depth)
	}
	out, err := z.normalizeReflected(reflect.ValueOf(v), depth)
	return out, true, err
}

func (z *normalizer) normalizeList(x []any, depth int) (any, bool, error) {
	if x == nil {
		return []any{}, true, nil
	}
	var out []any
	for i, e := range x {
		n, changed, err := z.normalizeValue(e, depth+1)
		if err != nil {
			return nil, false, err
		}
		if changed && out == nil {
			out = append(make([]any, 0, len(x)), x...)
		}
		if out != nil {
			out[i] = n
		}
	}
	if out == nil {
		return x, false, nil
	}
	return out, true, nil
}

func (z *normalizer) normalizeObject(x map[string]any, depth int) (any, bool, error) {
	if x == nil {
		return map[string]any{}, true, nil
	}
	z.members += len(x)
	var out map[string]any
	for k, e := range x {
		key := validText(k)
		z.size += len(key) // the next value's count refuses what is too large
		n, changed, err := z.normalizeValue(e, depth+1)
		if err != nil {
			return nil, false, err
		}
		if out == nil && (changed || key != k) {
			out = maps.Clone(x)
		}
		if key != k {
			delete(out, k)
			if _, twice := out[key]; twice {
				return nil, false, fmt.Errorf("%w: two keys are both %.40q once invalid characters are replaced", ErrPayload, key)
			}
		}
		if out != nil {
			out[key] = n
		}
	}
	if out == nil {
		return x, false, nil
	}
	return out, true, nil
}

// normalizeReflected takes what Go code hands over besides JSON's own types: other
// integers, named strings, typed lists and maps, pointers to these.
func (z *normalizer) normalizeReflected(v reflect.Value, depth int) (any, error) {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return z.toPlain(v.Int(), depth)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if u := v.Uint(); u > maxInt {
			return float64(u), nil
		}
		return int64(v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return normalFloat(v.Float())
	case reflect.String:
		return z.toPlain(v.String(), depth)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		return z.toPlain(v.Elem().Interface(), depth+1)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break // bytes are no text, and a list of numbers is not what was meant
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = v.Index(i).Interface()
		}
		return z.toPlain(out, depth)
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			break
		}
		out := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			out[it.Key().String()] = it.Value().Interface()
		}
		return z.toPlain(out, depth)
	}
	return nil, fmt.Errorf("%w: a Go %s", ErrPayload, v.Type())
}

func (z *normalizer) toPlain(v any, depth int) (any, error) {
	out, _, err := z.normalizeValue(v, depth)
	return out, err
}

func normalFloat(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%w: the number %v", ErrPayload, f)
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxInt {
		return int64(f), nil // -0 becomes 0 here
	}
	return f, nil
}

// validText replaces what is no valid UTF-8 by U+FFFD: one for a surrogate
// that was encoded by itself (as JavaScript's TextEncoder does), and one for
// each other byte.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 && isSurrogate(s[i:]) {
			n = 3
		}
		b.WriteRune(r)
		i += n
	}
	return b.String()
}

// isSurrogate reports whether s begins with the three bytes of a surrogate,
// U+D800 to U+DFFF.
func isSurrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF && s[2] >= 0x80 && s[2] <= 0xBF
}

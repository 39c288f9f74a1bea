package source

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	KindBad    Kind = iota // already reported: say nothing more about it
	KindScalar             // nil, bool, int64, float64 or string
	KindMap
	KindList
)

// Value is one YAML or JSON value and where it stands.
type Value struct {
	Kind    Kind
	Pos     Pos
	Scalar  any      // of a scalar
	Text    string   // a scalar as written, without quotes
	Entries []Entry  // of a map, in the file's order
	Items   []*Value // of a list
	// Broken says that a key of the map could not be read, which was reported: what
	// seems to be missing may be that.
	Broken bool
	end    Pos // where the next value begins, if that is known
	block  block
}

// block says how the lines of a text stand in the file.
type block uint8

const (
	notBlock  block = iota // its lines can't be told apart
	blockYAML              // | : from the line after its place on
	blockText              // an included file: from its place on
)

// Entry is one key of a map, with the key's place.
type Entry struct {
	Key string
	Pos Pos
	Val *Value
}

// Get finds a key. Nil: not there.
func (v *Value) Get(key string) *Entry {
	if v == nil || v.Kind != KindMap {
		return nil
	}
	for i := range v.Entries {
		if v.Entries[i].Key == key {
			return &v.Entries[i]
		}
	}
	return nil
}

// Commented reports a value that is empty because the rest of its line is a comment.
func (v *Value) Commented() bool {
	line := []rune(v.Pos.src.lineText(v.Pos.line))
	return v.IsNull() && v.Pos.col >= 1 && v.Pos.col-1 <= len(line) && strings.HasPrefix(strings.TrimSpace(string(line[v.Pos.col-1:])), "#")
}

// IsNull reports a value that is there but empty.
func (v *Value) IsNull() bool { return v.Kind == KindScalar && v.Scalar == nil }

// Plain is the value without places: nil, bool, int64, float64, string, []any
// and map[string]any.
func (v *Value) Plain() any {
	switch v.Kind {
	case KindMap:
		out := make(map[string]any, len(v.Entries))
		for _, e := range v.Entries {
			out[e.Key] = e.Val.Plain()
		}
		return out
	case KindList:
		out := make([]any, len(v.Items))
		for i, e := range v.Items {
			out[i] = e.Plain()
		}
		return out
	default:
		return v.Scalar
	}
}

// Of is the value that plain is, of the types that Plain gives. It stands nowhere.
func Of(plain any) *Value {
	v := &Value{Kind: KindScalar, Pos: Pos{src: &file{}}, Scalar: plain}
	switch p := plain.(type) {
	case map[string]any:
		v.Kind, v.Scalar = KindMap, nil
		for _, key := range slices.Sorted(maps.Keys(p)) {
			v.Entries = append(v.Entries, Entry{Key: key, Pos: v.Pos, Val: Of(p[key])})
		}
	case []any:
		v.Kind, v.Scalar = KindList, nil
		for _, item := range p {
			v.Items = append(v.Items, Of(item))
		}
	case nil:
	default:
		v.Text = fmt.Sprint(p)
	}
	return v
}

// KindName is what a person would call the value.
func (v *Value) KindName() string {
	switch v.Kind {
	case KindMap:
		return "a map"
	case KindList:
		return "a list"
	}
	switch s := v.Scalar.(type) {
	case nil:
		return "nothing"
	case bool:
		return "the boolean " + strconv.FormatBool(s)
	case int64, float64:
		return "the number " + v.Text
	}
	return "text"
}

// scalarOf reads an unquoted YAML scalar by the YAML 1.2 core schema: yes, no,
// on, off, dates and 1_000 are text; 0777 is a decimal number. Ok is false for
// numbers that JSON doesn't have.
func scalarOf(text string) (v any, ok bool) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil, true
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	case ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF":
		return nil, false
	}
	if n, is, ok := parsePrefixed(text); is {
		return n, ok
	}
	if !isDecimal(text) {
		return text, true
	}
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil { // out of range
		return nil, false
	}
	return f, true
}

// parsePrefixed reads 0o17 and 0xFF.
func parsePrefixed(text string) (n any, is, ok bool) {
	base, allowed := 8, "01234567"
	digits, is := strings.CutPrefix(text, "0o")
	if !is {
		base, allowed = 16, "0123456789abcdefABCDEF"
		digits, is = strings.CutPrefix(text, "0x")
	}
	if !is || digits == "" || strings.Trim(digits, allowed) != "" {
		return nil, false, false
	}
	i, err := strconv.ParseInt(digits, base, 64)
	return i, true, err == nil
}

// isDecimal reports [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
func isDecimal(s string) bool {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	whole, s := countDigits(s)
	fraction := 0
	if strings.HasPrefix(s, ".") {
		fraction, s = countDigits(s[1:])
	}
	if whole+fraction == 0 {
		return false
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '-' || s[0] == '+') {
			s = s[1:]
		}
		var n int
		if n, s = countDigits(s); n == 0 {
			return false
		}
	}
	return s == ""
}

// countDigits counts the decimal digits that s begins with, and returns the rest.
func countDigits(s string) (int, string) {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n, s[n:]
}

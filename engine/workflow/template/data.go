package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
)

// maxDepth is how deep an output may nest before rendering refuses it.
const maxDepth = 100

// The forms in which data reaches the mustache library. It prints values with
// package fmt and looks names up among methods as well as keys, so these types
// have no method that a template could call: Format takes arguments.
type (
	null   string         // always "": renders as nothing, is JSON null inside a list or map
	number string         // a number's JSON text
	list   []any          // renders as JSON, repeats as a section
	object map[string]any // renders as JSON, opens a scope as a section
)

// Format writes the list as JSON, whatever the verb.
func (l list) Format(s fmt.State, _ rune) { writeJSON(s, l) }

// Format writes the object as JSON, whatever the verb.
func (o object) Format(s fmt.State, _ rune) { writeJSON(s, o) }

func normaliseValue(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the output nests deeper than %d levels", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		return null(""), nil
	case bool, string:
		return v, nil
	case map[string]any:
		out := make(object, len(v))
		for k, e := range v {
			n, err := normaliseValue(e, depth+1)
			if err != nil {
				return nil, err
			}
			out[k] = n
		}
		return out, nil
	case []any:
		out := make(list, len(v))
		for i, e := range v {
			n, err := normaliseValue(e, depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = n
		}
		return out, nil
	default:
		return normaliseNumber(v)
	}
}

// normaliseNumber gives numbers the text that JSON has for them, so that 1e6 is
// 1000000. Zero stays a number: a section treats it as false, text "0" as true.
func normaliseNumber(v any) (any, error) {
	var f float64
	switch n := v.(type) {
	case int:
		return asInteger(int64(n)), nil
	case int64:
		return asInteger(n), nil
	case float64:
		f = n
	case json.Number:
		var err error
		if f, err = n.Float64(); err != nil {
			return nil, fmt.Errorf("number %q: %w", n.String(), err)
		}
		if i, err := n.Int64(); err == nil {
			return asInteger(i), nil
		}
	default:
		return nil, fmt.Errorf("a value of type %T can't be rendered", v)
	}
	if f == 0 {
		return int64(0), nil
	}
	text, err := json.Marshal(f)
	if err != nil {
		return nil, errors.New("a number that is infinite or not a number can't be rendered")
	}
	return number(text), nil
}

func asInteger(n int64) any {
	if n == 0 {
		return n
	}
	return number(strconv.FormatInt(n, 10))
}

// writeJSON writes compact JSON with sorted keys. Write errors are kept by the
// writer, see limited.
func writeJSON(w io.Writer, v any) {
	var buf bytes.Buffer
	appendJSON(&buf, v)
	_, _ = w.Write(buf.Bytes()) // fmt.State never fails
}

func appendJSON(buf *bytes.Buffer, v any) {
	switch v := v.(type) {
	case null:
		buf.WriteString("null")
	case bool:
		buf.WriteString(strconv.FormatBool(v))
	case int64:
		buf.WriteString(strconv.FormatInt(v, 10))
	case number:
		buf.WriteString(string(v))
	case string:
		appendString(buf, v)
	case list:
		buf.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				buf.WriteByte(',')
			}
			appendJSON(buf, e)
		}
		buf.WriteByte(']')
	case object:
		buf.WriteByte('{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				buf.WriteByte(',')
			}
			appendString(buf, k)
			buf.WriteByte(':')
			appendJSON(buf, v[k])
		}
		buf.WriteByte('}')
	}
}

func appendString(buf *bytes.Buffer, s string) {
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err == nil { // a string always encodes
		buf.Truncate(buf.Len() - 1) // Encode ends with a newline
	}
}

package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxFile is the largest JSON or CBOR text that is read, in bytes.
const MaxFile = 32 << 20

// SyntaxError says where a text stops being one strict JSON value.
type SyntaxError struct {
	Line, Column int // from 1; the column counts bytes
	Msg          string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

func newSyntaxError(b []byte, at int, msg string) error {
	head := b[:max(0, min(at, len(b)))]
	return &SyntaxError{
		Line:   1 + bytes.Count(head, []byte{'\n'}),
		Column: len(head) - bytes.LastIndexByte(head, '\n'),
		Msg:    msg,
	}
}

// ParseJSON reads exactly one JSON value, strictly (RFC 8259), into the form of
// Normalize: duplicate keys are refused, invalid UTF-8 too; an escaped surrogate
// without its partner becomes U+FFFD. A bad text is a *SyntaxError, one beyond
// the limits wraps ErrTooLarge.
func ParseJSON(b []byte) (any, error) {
	v, err := parseJSON(b)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	return v, nil
}

// DecodeJSON reads one JSON value as strictly as ParseJSON into what a pointer points to,
// and refuses fields that are not known there.
func DecodeJSON(b []byte, into any) error {
	if _, err := ParseJSON(b); err != nil { // encoding/json takes the last of two equal keys
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

func parseJSON(b []byte) (any, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooLarge, len(b), MaxFile)
	}
	shape := MeasureJSON(b, 2*MaxValues, MaxDepth+1)
	z := normalizer{values: shape.Values / 2}
	if err := z.addValues(0, 0, shape.Depth-1); err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return nil, newSyntaxError(b, len(b)-len(bytes.TrimLeftFunc(b, func(r rune) bool { return r != utf8.RuneError })), "not valid UTF-8")
	}
	var v any
	if json.Unmarshal(b, &v) != nil { // whole numbers up to 2^53 are exact in its doubles
		return nil, explainSyntax(b)
	}
	z = normalizer{}
	out, _, err := z.normalizeValue(v, 0)
	if err == nil && z.members != shape.Members {
		err = findTwice(b, json.NewDecoder(bytes.NewReader(b)))
	}
	return out, err
}

// Shape is how large a JSON text is once it is read.
type Shape struct{ Values, Members, Depth int }

// MeasureJSON looks at a text once and keeps nothing, to tell what would take too much
// memory, or stack, to read. It stops where one of the limits is passed, and doesn't say
// whether the text is JSON. Values are counted by their brackets and commas, Members (of
// all objects) by their colons.
func MeasureJSON(b []byte, values, depth int) (s Shape) {
	open := 0
	for i := 0; i < len(b) && s.Values <= values && s.Depth <= depth; i++ {
		switch b[i] {
		case '"':
			i += lengthOfString(b[i+1:])
		case ':':
			s.Members++
		case ',':
			s.Values++
		case '[', '{':
			s.Values++
			open++
			s.Depth = max(s.Depth, open)
		case ']', '}':
			open--
		}
	}
	return s
}

// lengthOfString returns where the text of a string ends, with its closing quotation mark.
func lengthOfString(b []byte) int {
	for i := 0; ; i++ {
		next := bytes.IndexByte(b[i:], '"')
		if next < 0 {
			return len(b)
		}
		text := b[:i+next]
		i += next
		if escapes := len(text) - len(bytes.TrimRight(text, `\`)); escapes%2 == 0 {
			return i + 1
		}
	}
}

// explainSyntax is the error of a text that can't be read. A decoder tells a text that ends
// too early from others.
func explainSyntax(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	var v any
	var bad *json.SyntaxError
	var number *json.UnmarshalTypeError
	switch err := d.Decode(&v); {
	case errors.As(err, &bad):
		return newSyntaxError(b, int(bad.Offset)-1, strings.TrimPrefix(bad.Error(), "json: "))
	case errors.As(err, &number):
		return fmt.Errorf("%w: %.40s is beyond the range of a double", ErrPayload, number.Value)
	case err != nil:
		return newSyntaxError(b, len(b), "the text ends inside of the value, or before it")
	}
	rest := bytes.TrimLeft(b[d.InputOffset():], " \t\r\n")
	return newSyntaxError(b, len(b)-len(rest), "text after the value")
}

// findTwice is the error of the first key that stands twice in one object of a value, which
// was read before.
func findTwice(b []byte, d *json.Decoder) error {
	begin, _ := d.Token()
	if _, opens := begin.(json.Delim); !opens {
		return nil
	}
	keys := map[json.Token]bool{}
	for d.More() {
		if begin == json.Delim('{') {
			at := int(d.InputOffset())
			key, _ := d.Token()
			if keys[key] {
				return newSyntaxError(b, at+bytes.IndexByte(b[at:], '"'), fmt.Sprintf("the key %.40q stands twice in one object", key))
			}
			keys[key] = true
		}
		if err := findTwice(b, d); err != nil {
			return err
		}
	}
	_, _ = d.Token() // its end
	return nil
}

package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

func parseJSON(b []byte) (any, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%w: %d bytes, %d are allowed", ErrTooLarge, len(b), MaxFile)
	}
	members, err := scanJSON(b)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return nil, newSyntaxError(b, len(b)-len(bytes.TrimLeftFunc(b, func(r rune) bool { return r != utf8.RuneError })), "not valid UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, explainSyntax(b, err)
	}
	if rest := bytes.TrimLeft(b[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, newSyntaxError(b, len(b)-len(rest), "text after the value")
	}
	z := normalizer{}
	out, _, err := z.normalizeValue(v, 0)
	if err == nil && z.members != members {
		err = findTwice(b, json.NewDecoder(bytes.NewReader(b)))
	}
	return out, err
}

// scanJSON counts the members of all objects: encoding/json keeps the last of two equal
// keys, which is seen by there being fewer then. It refuses what would take too much memory
// to read before it is seen how large it is.
func scanJSON(b []byte) (members int, err error) {
	values, depth, quoted := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ':':
			members++
		case c == ',':
			values++
		case c == '[', c == '{':
			depth++
			values++
		case c == ']', c == '}':
			depth--
		}
		if values > 2*MaxValues || depth > MaxDepth+1 {
			z := normalizer{values: values / 2}
			return 0, z.countValues(1, 0, depth)
		}
	}
	return members, nil
}

func explainSyntax(b []byte, err error) error {
	var bad *json.SyntaxError
	switch {
	case errors.As(err, &bad):
		return newSyntaxError(b, int(bad.Offset)-1, strings.TrimPrefix(bad.Error(), "json: "))
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return newSyntaxError(b, len(b), "the text ends inside of the value, or before it")
	}
	return err
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

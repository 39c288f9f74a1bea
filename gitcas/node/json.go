package node

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
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

// ParseJSON reads exactly one JSON value, strictly (RFC 8259), into the form of
// Normalize: duplicate keys are refused, invalid UTF-8 too; an escaped surrogate
// without its partner becomes U+FFFD. A bad text is a *SyntaxError, one beyond
// the limits wraps ErrTooLarge.
//
// It is its own parser because encoding/json keeps the last of two equal keys,
// and its token reader, which could see them, costs ten times as much on a path
// that reads every node of a thread for every step.
func ParseJSON(b []byte) (any, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("read JSON: %w: %d bytes, %d are allowed", ErrTooLarge, len(b), MaxFile)
	}
	p := parser{b: b}
	p.skipSpace()
	v, err := p.parseValue(0)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	p.skipSpace()
	if p.i < len(b) {
		return nil, fmt.Errorf("read JSON: %w", p.syntaxError("text after the value"))
	}
	return v, nil
}

type parser struct {
	b     []byte
	i     int
	limit normalizer
}

func (p *parser) syntaxError(format string, args ...any) error {
	at := min(p.i, len(p.b))
	head := p.b[:at]
	return &SyntaxError{
		Line:   1 + bytes.Count(head, []byte{'\n'}),
		Column: at - bytes.LastIndexByte(head, '\n'),
		Msg:    fmt.Sprintf(format, args...),
	}
}

func (p *parser) skipSpace() {
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

// peekByte is the next byte, 0 at the end (a NUL is valid nowhere outside strings).
func (p *parser) peekByte() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

func (p *parser) parseValue(depth int) (any, error) {
	if err := p.limit.countValues(1, 0, depth); err != nil {
		return nil, err
	}
	switch c := p.peekByte(); {
	case c == '{':
		return p.parseObject(depth)
	case c == '[':
		return p.parseList(depth)
	case c == '"':
		return p.parseString(depth)
	case c == '-' || c >= '0' && c <= '9':
		return p.parseNumber()
	case c == 't':
		return true, p.parseLiteral("true")
	case c == 'f':
		return false, p.parseLiteral("false")
	case c == 'n':
		return nil, p.parseLiteral("null")
	case p.i >= len(p.b):
		return nil, p.syntaxError("the text ends where a value is expected")
	default:
		return nil, p.syntaxError("%q where a value is expected", rune(c))
	}
}

func (p *parser) parseLiteral(word string) error {
	if !bytes.HasPrefix(p.b[p.i:], []byte(word)) {
		return p.syntaxError("not a JSON value; is %q meant?", word)
	}
	p.i += len(word)
	return nil
}

func (p *parser) parseNumber() (any, error) {
	end := p.i
	for end < len(p.b) && isNumberByte(p.b[end]) {
		end++
	}
	n, err := parseNumber(string(p.b[p.i:end]))
	if err != nil {
		return nil, p.syntaxError("%v", err)
	}
	p.i = end
	return n, nil
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

func (p *parser) parseList(depth int) (any, error) {
	out := []any{}
	p.i++
	for p.skipSpace(); p.peekByte() != ']'; p.skipSpace() {
		if len(out) > 0 {
			if err := p.parseComma(); err != nil {
				return nil, err
			}
		}
		v, err := p.parseValue(depth + 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	p.i++
	return out, nil
}

func (p *parser) parseObject(depth int) (any, error) {
	out := map[string]any{}
	p.i++
	for p.skipSpace(); p.peekByte() != '}'; p.skipSpace() {
		if len(out) > 0 {
			if err := p.parseComma(); err != nil {
				return nil, err
			}
		}
		if err := p.parseMember(out, depth); err != nil {
			return nil, err
		}
	}
	p.i++
	return out, nil
}

func (p *parser) parseMember(out map[string]any, depth int) error {
	if p.peekByte() != '"' {
		return p.syntaxError("a key in double quotes is expected")
	}
	start := p.i
	key, err := p.parseString(depth)
	if err != nil {
		return err
	}
	if _, twice := out[key]; twice {
		p.i = start
		return p.syntaxError("the key %q stands twice in one object", clipText(key, 40))
	}
	p.skipSpace()
	if p.peekByte() != ':' {
		return p.syntaxError("a colon is expected after the key %q", clipText(key, 40))
	}
	p.i++
	p.skipSpace()
	v, err := p.parseValue(depth + 1)
	if err != nil {
		return err
	}
	out[key] = v
	return nil
}

// parseComma takes the comma before a further element; the caller has seen that the
// list or object does not end here.
func (p *parser) parseComma() error {
	if p.peekByte() != ',' {
		return p.syntaxError("a comma or the end of the list or object is expected")
	}
	p.i++
	p.skipSpace()
	return nil
}

// parseString reads a string; the next byte is its opening quote.
func (p *parser) parseString(depth int) (string, error) {
	p.i++
	start := p.i
	end, escapes, err := p.textEnd()
	if err != nil {
		return "", err
	}
	raw := p.b[start:end]
	if !utf8.Valid(raw) {
		return "", p.syntaxError("the string before here is not valid UTF-8")
	}
	if !escapes {
		p.i = end + 1
		return string(raw), p.limit.countValues(0, len(raw), depth)
	}
	p.i = start
	s, err := p.parseEscaped(end)
	if err != nil {
		return "", err
	}
	return s, p.limit.countValues(0, len(s), depth)
}

// textEnd goes to the string's closing quote and reports whether there are
// escapes before it.
func (p *parser) textEnd() (end int, escapes bool, err error) {
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; {
		case c == '"':
			return p.i, escapes, nil
		case c == '\\':
			escapes = true
			p.i++ // whatever is escaped, it doesn't end the string
		case c < 0x20:
			return 0, false, p.syntaxError("a control character inside a string; write it as an escape")
		}
	}
	return 0, false, p.syntaxError("the text ends inside a string")
}

// parseEscaped reads the string up to its closing quote at end. What an escape
// stands for is never longer than the escape, so one allocation holds the result.
func (p *parser) parseEscaped(end int) (string, error) {
	var out strings.Builder
	out.Grow(end - p.i)
	for p.i < end {
		k := bytes.IndexByte(p.b[p.i:end], '\\')
		if k < 0 {
			break
		}
		out.Write(p.b[p.i : p.i+k])
		p.i += k
		r, err := p.parseEscape()
		if err != nil {
			return "", err
		}
		out.WriteRune(r)
	}
	out.Write(p.b[p.i:end])
	p.i = end + 1
	return out.String(), nil
}

// parseEscape reads one escape, or the two of a surrogate pair.
func (p *parser) parseEscape() (rune, error) {
	c := p.b[p.i+1] // textEnd has seen that there is one
	if c == 'u' {
		return p.unicodeEscape()
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	k := bytes.IndexByte([]byte(from), c)
	if k < 0 {
		return 0, p.syntaxError(`unknown escape \%c in a string`, c)
	}
	p.i += 2
	return rune(to[k]), nil
}

func (p *parser) unicodeEscape() (rune, error) {
	r, ok := p.parseHex4(p.i)
	if !ok {
		return 0, p.syntaxError(`four hexadecimal digits are expected after \u`)
	}
	p.i += 6
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if second, ok := p.parseHex4(p.i); ok {
		if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
			p.i += 6
			return pair, nil
		}
	}
	return utf8.RuneError, nil // a surrogate without its partner
}

// parseHex4 reads \uXXXX at offset i.
func (p *parser) parseHex4(i int) (rune, bool) {
	if i+6 > len(p.b) || p.b[i] != '\\' || p.b[i+1] != 'u' {
		return 0, false
	}
	u, err := strconv.ParseUint(string(p.b[i+2:i+6]), 16, 16)
	return rune(u), err == nil
}

package node

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/text"
)

// EncodeFile is the node's file on the state branch: indented JSON with the keys
// type, payload, timestamp, the payload's keys in the order of its canonical
// CBOR, and a newline at the end. Equal nodes give equal bytes.
func EncodeFile(n Node) ([]byte, error) {
	fields, err := n.toFields()
	if err != nil {
		return nil, err
	}
	return checkLength(append(appendJSON(nil, fields, 0), '\n'))
}

func checkLength(b []byte) ([]byte, error) {
	if len(b) > MaxFile {
		return nil, fmt.Errorf("write a node: %w: %d bytes, %d are allowed", ErrTooLarge, len(b), MaxFile)
	}
	return b, nil
}

// toFields is the object that is written of a node.
func (n Node) toFields() (map[string]any, error) {
	if !n.Type.Valid() {
		return nil, fmt.Errorf("write a node: type: %w: %.40q", ErrInvalidHash, string(n.Type))
	}
	if n.Timestamp < 0 || n.Timestamp > maxInt {
		return nil, fmt.Errorf("write a node: %w: timestamp %d", ErrPayload, n.Timestamp)
	}
	// Within what a file, or a line of several nodes, has around the payload: what is
	// written can be read.
	z := normalizer{values: 5, size: len("hash"+"of"+"type"+"payload"+"timestamp") + 3*HashLen}
	payload, _, err := z.normalizeValue(n.Payload, 1)
	if err != nil {
		return nil, fmt.Errorf("write a node: %w", err)
	}
	return map[string]any{"type": string(n.Type), "payload": payload, "timestamp": n.Timestamp}, nil
}

// EncodeLine is a node with its hash on one line, for files of many nodes: JSON
// with the keys hash, of, type, payload, timestamp, in this order, and a newline. of is
// the record that refers to it, left out where it is empty.
func EncodeLine(h, of Hash, n Node) ([]byte, error) {
	if !h.Valid() || of != "" && !of.Valid() {
		return nil, fmt.Errorf("write a node: %w: %.40q", ErrInvalidHash, string(h))
	}
	fields, err := n.toFields()
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, `{"hash":"%s",`, h)
	if of != "" {
		b = fmt.Appendf(b, `"of":"%s",`, of)
	}
	b = append(b, appendJSON(nil, fields, oneLine)[1:]...)
	return checkLength(append(b, '\n'))
}

// DecodeLine reads what EncodeLine writes. The hash is the one that the line
// says: the caller compares.
func DecodeLine(b []byte) (h, of Hash, n Node, err error) {
	m, err := parseFields(b)
	if err != nil {
		return "", "", Node{}, err
	}
	text, _ := m["hash"].(string)
	record, placed := m["of"].(string)
	if h, of = Hash(text), Hash(record); !h.Valid() || placed && !of.Valid() {
		return "", "", Node{}, fmt.Errorf("read a node: hash: %w: %.40q", ErrInvalidHash, text)
	}
	delete(m, "hash")
	if placed {
		delete(m, "of")
	}
	n, err = fromFields(m)
	return h, of, n, err
}

// DecodeFile reads what EncodeFile writes, and any other strict JSON object with
// these three keys and no other. It doesn't know which hash the file should have:
// the caller compares.
func DecodeFile(b []byte) (Node, error) {
	m, err := parseFields(b)
	if err != nil {
		return Node{}, err
	}
	return fromFields(m)
}

func parseFields(b []byte) (map[string]any, error) {
	v, err := ParseJSON(b)
	if err != nil {
		return nil, fmt.Errorf("read a node: %w", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read a node: %w: an object is expected", ErrPayload)
	}
	return m, nil
}

// fromFields makes a node of an object with exactly its three fields.
func fromFields(m map[string]any) (Node, error) {
	typ, _ := m["type"].(string)
	at, isInt := m["timestamp"].(int64)
	payload, has := m["payload"]
	switch {
	case !Hash(typ).Valid():
		return Node{}, fmt.Errorf("read a node: type: %w: %.40q", ErrInvalidHash, typ)
	case !isInt || at < 0:
		return Node{}, fmt.Errorf("read a node: %w: timestamp must be a whole number of milliseconds", ErrPayload)
	case !has:
		return Node{}, fmt.Errorf("read a node: %w: payload is missing", ErrPayload)
	case len(m) != 3:
		return Node{}, fmt.Errorf("read a node: %w: other keys than type, payload and timestamp", ErrPayload)
	}
	return Node{Type: Hash(typ), Payload: payload, Timestamp: at}, nil
}

// FormatJSON is a payload as indented JSON, keys in canonical order, with a
// newline at the end.
func FormatJSON(v any) ([]byte, error) {
	p, err := Normalize(v)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return append(appendJSON(nil, p, 0), '\n'), nil
}

// Text is a value on one line: a string as it is, anything else as JSON with its
// keys in canonical order. A value that no payload can hold gives a note saying so.
func Text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	p, err := Normalize(v)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(appendJSON(nil, p, oneLine))
}

// oneLine, as a depth, writes without line breaks.
const oneLine = -1

// appendJSON writes a normal value; depth is the indentation of its last line.
func appendJSON(b []byte, v any, depth int) []byte {
	switch x := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, x)
	case int64:
		return strconv.AppendInt(b, x, 10)
	case float64:
		return appendFloat(b, x)
	case string:
		return appendString(b, x)
	case []any:
		if len(x) == 0 {
			return append(b, "[]"...)
		}
		for i, e := range x {
			b = appendNewline(append(b, "[,"[min(i, 1)]), nextDepth(depth))
			b = appendJSON(b, e, nextDepth(depth))
		}
		return append(appendNewline(b, depth), ']')
	case map[string]any:
		if len(x) == 0 {
			return append(b, "{}"...)
		}
		for i, k := range canonicalKeys(x) {
			b = appendNewline(append(b, "{,"[min(i, 1)]), nextDepth(depth))
			b = append(appendString(b, k), ':')
			if depth != oneLine {
				b = append(b, ' ')
			}
			b = appendJSON(b, x[k], nextDepth(depth))
		}
		return append(appendNewline(b, depth), '}')
	}
	return b
}

func nextDepth(depth int) int {
	if depth == oneLine {
		return oneLine
	}
	return depth + 1
}

func appendNewline(b []byte, depth int) []byte {
	if depth == oneLine {
		return b
	}
	return append(append(b, '\n'), strings.Repeat("  ", depth)...)
}

// canonicalKeys sorts keys bytewise by their CBOR encoding. That begins with the
// length, so it is: shorter keys first, equal lengths by bytes.
func canonicalKeys(m map[string]any) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

// appendFloat writes a number as JavaScript does, so that files of both systems
// look alike.
func appendFloat(b []byte, f float64) []byte {
	format := byte('f')
	if a := math.Abs(f); a < 1e-6 || a >= 1e21 {
		format = 'e'
	}
	b = strconv.AppendFloat(b, f, format, -1, 64)
	if n := len(b); format == 'e' && n >= 4 && b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
		b[n-2] = b[n-1] // e-09 is written e-9
		b = b[:n-1]
	}
	return b
}

// appendString writes a JSON string. Besides what JSON demands it escapes
// characters that a terminal or a reader's editor would act on (C1 controls,
// line separators, bidirectional overrides): these files are read with git show.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' {
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if c >= 0x80 && !text.IsUnsafe(r) {
			i += n
			continue
		}
		b = append(b, s[start:i]...)
		if k := bytes.IndexByte([]byte("\"\\\b\f\n\r\t"), c); k >= 0 {
			b = append(b, '\\', `"\bfnrt`[k])
		} else {
			b = append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		}
		i += n
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

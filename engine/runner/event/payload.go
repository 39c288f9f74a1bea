package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/text"
)

// What bounds a payload. GitHub sends none above 25 MB, and no text that people
// write there has more than 65,536 characters; those of Gitea may be longer.
const (
	MaxPayload = 25 << 20
	maxText    = 256 << 10 // bytes of a title or body, and of all inputs together
	maxName    = 1024      // bytes of a name, a branch or an address
	maxLabels  = 1000
	maxNesting = 200
)

// PayloadError is a payload that is not what a forge writes.
type PayloadError struct {
	Event string // the event's name
	Field string // where, such as issue.labels[2].name; empty: the payload itself
	Why   string
}

func (e *PayloadError) Error() string {
	at := "the payload"
	if e.Field != "" {
		at = "the field " + e.Field + " of the payload"
	}
	return fmt.Sprintf("read the event %q: %s %s", clipText(e.Event), at, e.Why)
}

// clipText shortens what stands in a message.
func clipText(s string) string {
	return text.Cut(strings.ToValidUTF8(s, "\uFFFD"), 103)
}

// decodeJSON reads a JSON object strictly: it refuses keys that are there twice, of
// which programs disagree which one counts, and bytes that are no UTF-8, which
// encoding/json would silently exchange.
func decodeJSON(payload []byte) (map[string]any, error) {
	if len(payload) > MaxPayload {
		return nil, &PayloadError{Why: fmt.Sprintf("has %d bytes; at most %d are read", len(payload), MaxPayload)}
	}
	payload = bytes.TrimPrefix(payload, []byte("\ufeff"))
	if len(bytes.TrimSpace(payload)) == 0 {
		return map[string]any{}, nil
	}
	d := decoder{json: json.NewDecoder(bytes.NewReader(payload)), bad: firstInvalid(payload)}
	d.json.UseNumber()
	v, err := d.decodeValue("", 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return nil, &PayloadError{Why: "goes on after its end"}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, &PayloadError{Why: "is no JSON object"}
	}
	return m, nil
}

// firstInvalid is the place of the first byte that is no UTF-8; -1: there is none.
func firstInvalid(b []byte) int64 {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return int64(i)
		}
		i += n
	}
	return -1
}

type decoder struct {
	json *json.Decoder
	bad  int64 // the place of the first byte that is no UTF-8; -1: none
}

// nextToken is the next token; path is where it stands.
func (d *decoder) nextToken(path string) (json.Token, error) {
	t, err := d.json.Token()
	if err != nil {
		return nil, &PayloadError{Field: path, Why: "is no JSON: " + err.Error()}
	}
	if d.bad >= 0 && d.json.InputOffset() > d.bad {
		return nil, &PayloadError{Field: path, Why: fmt.Sprintf("is no UTF-8 at byte %d", d.bad)}
	}
	return t, nil
}

func (d *decoder) decodeValue(path string, depth int) (any, error) {
	t, err := d.nextToken(path)
	if err != nil {
		return nil, err
	}
	delim, nested := t.(json.Delim)
	switch {
	case !nested:
		return t, nil
	case depth >= maxNesting:
		return nil, &PayloadError{Field: clipText(path), Why: fmt.Sprintf("is nested more than %d levels deep", maxNesting)}
	case delim == '{':
		return d.decodeObject(path, depth+1)
	}
	return d.decodeList(path, depth+1)
}

func (d *decoder) decodeObject(path string, depth int) (any, error) {
	out := map[string]any{}
	for d.json.More() {
		t, err := d.nextToken(path)
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		at := joinPath(path, key)
		if _, twice := out[key]; twice {
			return nil, &PayloadError{Field: at, Why: "is there twice"}
		}
		if out[key], err = d.decodeValue(at, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.nextToken(path) // the brace
	return out, err
}

func (d *decoder) decodeList(path string, depth int) (any, error) {
	out := []any{}
	for d.json.More() {
		v, err := d.decodeValue(joinIndex(path, len(out)), depth)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := d.nextToken(path) // the bracket
	return out, err
}

func joinPath(path, key string) string {
	if key = clipText(key); path == "" {
		return key
	}
	return path + "." + key
}

func joinIndex(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// object is a JSON object while it is read. A missing field and null are the same:
// the zero value. The first field that is wrong ends up in err.
type object struct {
	path string
	m    map[string]any
	err  *error
}

func (o object) failField(field, format string, args ...any) {
	if *o.err == nil {
		*o.err = &PayloadError{Field: field, Why: fmt.Sprintf(format, args...)}
	}
}

// hasField reports whether a field is there and not null.
func (o object) hasField(key string) bool { return o.m[key] != nil }

// readAs is a field's value of a type; the zero value where there is none.
func readAs[T any](o object, key, otherwise string) T {
	v, ok := o.m[key].(T)
	if !ok && o.hasField(key) {
		o.failField(joinPath(o.path, key), "%s", otherwise)
	}
	return v
}

// readObject is the object in a field; an empty one where there is none.
func (o object) readObject(key string) object {
	return object{path: joinPath(o.path, key), m: readAs[map[string]any](o, key, "is no object"), err: o.err}
}

// readObjects are the objects in a list.
func (o object) readObjects(key string, limit int) []object {
	path, list := joinPath(o.path, key), readAs[[]any](o, key, "is no list")
	if len(list) > limit {
		o.failField(path, "has %d entries; at most %d are read", len(list), limit)
		return nil
	}
	var out []object
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			o.failField(joinIndex(path, i), "is no object")
			return nil
		}
		out = append(out, object{path: joinIndex(path, i), m: m, err: o.err})
	}
	return out
}

// readText is a string of at most limit bytes.
func (o object) readText(key string, limit int) string {
	s := readAs[string](o, key, "is no text")
	if len(s) > limit {
		o.failField(joinPath(o.path, key), "has %d bytes; at most %d are read: shorten it", len(s), limit)
		return ""
	}
	return s
}

func (o object) readName(key string) string { return o.readText(key, maxName) }

func (o object) readFlag(key string) bool {
	return readAs[bool](o, key, "is neither true nor false")
}

// readNumber is a whole number above 0 that must be there.
func (o object) readNumber(key string) int64 {
	n, _ := o.m[key].(json.Number)
	i, err := strconv.ParseInt(string(n), 10, 64)
	switch {
	case !o.hasField(key):
		o.failField(joinPath(o.path, key), "is missing")
	case err != nil || i <= 0:
		o.failField(joinPath(o.path, key), "is no whole number above 0")
	}
	return max(i, 0)
}

// isZero reports a number that is there, and 0.
func (o object) isZero(key string) bool { return o.m[key] == json.Number("0") }

// readAccount is the number of a user in the field id, above 0; 0 where none is told. Gitea
// numbers what it has built in, the user that jobs act as and the one that stands for
// deleted users, below 0: those are no accounts.
func (o object) readAccount() int64 {
	if !o.hasField("id") {
		return 0
	}
	n, _ := o.m["id"].(json.Number)
	i, err := strconv.ParseInt(string(n), 10, 64)
	if err != nil || i == 0 {
		o.failField(joinPath(o.path, "id"), "is no whole number above 0")
	}
	return max(i, 0)
}

// readTexts are the fields that can be written as one text: strings, numbers and truth
// values. With strict, any other is an error; else it is left out.
func (o object) readTexts(strict bool) map[string]string {
	out := map[string]string{}
	size := 0
	for key, v := range o.m {
		var s string
		switch x := v.(type) {
		case string:
			s = x
		case json.Number:
			s = x.String()
		case bool:
			s = strconv.FormatBool(x)
		case nil:
		default:
			if strict {
				o.failField(joinPath(o.path, key), "is no text")
			}
			continue
		}
		if size += len(key) + len(s); size > maxText {
			o.failField(o.path, "has more than %d bytes", maxText)
			return nil
		}
		out[key] = s
	}
	return out
}

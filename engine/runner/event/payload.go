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
	return fmt.Sprintf("read the event %q: %s %s", clip(e.Event), at, e.Why)
}

// clip shortens what stands in a message.
func clip(s string) string {
	const most = 100
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	n := most
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// decode reads a JSON object strictly: it refuses keys that are there twice, of
// which programs disagree which one counts, and bytes that are no UTF-8, which
// encoding/json would silently exchange.
func decode(payload []byte) (map[string]any, error) {
	if len(payload) > MaxPayload {
		return nil, &PayloadError{Why: fmt.Sprintf("has %d bytes; at most %d are read", len(payload), MaxPayload)}
	}
	payload = bytes.TrimPrefix(payload, []byte("\ufeff"))
	if len(bytes.TrimSpace(payload)) == 0 {
		return map[string]any{}, nil
	}
	d := decoder{json: json.NewDecoder(bytes.NewReader(payload)), bad: firstInvalid(payload)}
	d.json.UseNumber()
	v, err := d.value("", 0)
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

// token is the next token; path is where it stands.
func (d *decoder) token(path string) (json.Token, error) {
	t, err := d.json.Token()
	if err != nil {
		return nil, &PayloadError{Field: path, Why: "is no JSON: " + err.Error()}
	}
	if d.bad >= 0 && d.json.InputOffset() > d.bad {
		return nil, &PayloadError{Field: path, Why: fmt.Sprintf("is no UTF-8 at byte %d", d.bad)}
	}
	return t, nil
}

func (d *decoder) value(path string, depth int) (any, error) {
	t, err := d.token(path)
	if err != nil {
		return nil, err
	}
	delim, nested := t.(json.Delim)
	switch {
	case !nested:
		return t, nil
	case depth >= maxNesting:
		return nil, &PayloadError{Field: clip(path), Why: fmt.Sprintf("is nested more than %d levels deep", maxNesting)}
	case delim == '{':
		return d.object(path, depth+1)
	}
	return d.list(path, depth+1)
}

func (d *decoder) object(path string, depth int) (any, error) {
	out := map[string]any{}
	for d.json.More() {
		t, err := d.token(path)
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		at := under(path, key)
		if _, twice := out[key]; twice {
			return nil, &PayloadError{Field: at, Why: "is there twice"}
		}
		if out[key], err = d.value(at, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.token(path) // the brace
	return out, err
}

func (d *decoder) list(path string, depth int) (any, error) {
	out := []any{}
	for d.json.More() {
		v, err := d.value(item(path, len(out)), depth)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := d.token(path) // the bracket
	return out, err
}

func under(path, key string) string {
	if key = clip(key); path == "" {
		return key
	}
	return path + "." + key
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// object is a JSON object while it is read. A missing field and null are the same:
// the zero value. The first field that is wrong ends up in err.
type object struct {
	path string
	m    map[string]any
	err  *error
}

func (o object) fail(field, format string, args ...any) {
	if *o.err == nil {
		*o.err = &PayloadError{Field: field, Why: fmt.Sprintf(format, args...)}
	}
}

// has reports whether a field is there and not null.
func (o object) has(key string) bool { return o.m[key] != nil }

// object is the object in a field; an empty one where there is none.
func (o object) object(key string) object {
	out := object{path: under(o.path, key), err: o.err}
	if o.has(key) {
		var ok bool
		if out.m, ok = o.m[key].(map[string]any); !ok {
			o.fail(out.path, "is no object")
		}
	}
	return out
}

// objects are the objects in a list.
func (o object) objects(key string, limit int) []object {
	if !o.has(key) {
		return nil
	}
	path := under(o.path, key)
	list, ok := o.m[key].([]any)
	if !ok {
		o.fail(path, "is no list")
		return nil
	}
	if len(list) > limit {
		o.fail(path, "has %d entries; at most %d are read", len(list), limit)
		return nil
	}
	var out []object
	for i, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			o.fail(item(path, i), "is no object")
			return nil
		}
		out = append(out, object{path: item(path, i), m: m, err: o.err})
	}
	return out
}

// text is a string of at most limit bytes.
func (o object) text(key string, limit int) string {
	if !o.has(key) {
		return ""
	}
	s, ok := o.m[key].(string)
	switch {
	case !ok:
		o.fail(under(o.path, key), "is no text")
	case len(s) > limit:
		o.fail(under(o.path, key), "has %d bytes; at most %d are read: shorten it", len(s), limit)
	default:
		return s
	}
	return ""
}

func (o object) name(key string) string { return o.text(key, maxName) }

func (o object) flag(key string) bool {
	if !o.has(key) {
		return false
	}
	b, ok := o.m[key].(bool)
	if !ok {
		o.fail(under(o.path, key), "is neither true nor false")
	}
	return b
}

// number is a whole number above 0 that must be there.
func (o object) number(key string) int64 {
	n, _ := o.m[key].(json.Number)
	i, err := strconv.ParseInt(string(n), 10, 64)
	switch {
	case !o.has(key):
		o.fail(under(o.path, key), "is missing")
	case err != nil || i <= 0:
		o.fail(under(o.path, key), "is no whole number above 0")
	}
	return max(i, 0)
}

// isZero reports a number that is there, and 0.
func (o object) isZero(key string) bool { return o.m[key] == json.Number("0") }

// account is the number of a user in the field id, above 0; 0 where none is told. Gitea
// numbers what it has built in, the user that jobs act as and the one that stands for
// deleted users, below 0: those are no accounts.
func (o object) account() int64 {
	if !o.has("id") {
		return 0
	}
	n, _ := o.m["id"].(json.Number)
	i, err := strconv.ParseInt(string(n), 10, 64)
	if err != nil || i == 0 {
		o.fail(under(o.path, "id"), "is no whole number above 0")
	}
	return max(i, 0)
}

// texts are the fields that can be written as one text: strings, numbers and truth
// values. With strict, any other is an error; else it is left out.
func (o object) texts(strict bool) map[string]string {
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
				o.fail(under(o.path, key), "is no text")
			}
			continue
		}
		if size += len(key) + len(s); size > maxText {
			o.fail(o.path, "has more than %d bytes", maxText)
			return nil
		}
		out[key] = s
	}
	return out
}

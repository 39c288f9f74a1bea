package event

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// What bounds a payload. No text that people write on GitHub has more than 65,536
// characters; those of Gitea may be longer.
const (
	maxText   = 256 << 10 // bytes of a title or body, and of all inputs together
	maxName   = 1024      // bytes of a name, a branch or an address
	maxLabels = 1000
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
// which programs disagree which one counts, and bytes that are no UTF-8.
func decodeJSON(payload []byte) (map[string]any, error) {
	payload = bytes.TrimPrefix(payload, []byte("\ufeff"))
	if len(bytes.TrimSpace(payload)) == 0 {
		return map[string]any{}, nil
	}
	v, err := node.ParseJSON(payload)
	if err != nil {
		return nil, &PayloadError{Why: "can't be read: " + err.Error()}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, &PayloadError{Why: "is no JSON object"}
	}
	return m, nil
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
	n, _ := o.m[key].(int64)
	switch {
	case !o.hasField(key):
		o.failField(joinPath(o.path, key), "is missing")
	case n <= 0:
		o.failField(joinPath(o.path, key), "is no whole number above 0")
	}
	return max(n, 0)
}

// isZero reports a number that is there, and 0.
func (o object) isZero(key string) bool { return o.m[key] == int64(0) }

// readAccount is the number of a user in the field id, above 0; 0 where none is told. Gitea
// numbers what it has built in, the user that jobs act as and the one that stands for
// deleted users, below 0: those are no accounts.
func (o object) readAccount() int64 {
	n, _ := o.m["id"].(int64)
	if n == 0 && o.hasField("id") {
		o.failField(joinPath(o.path, "id"), "is no whole number above 0")
	}
	return max(n, 0)
}

// readTexts are the fields that can be written as one text: strings, numbers and truth
// values. With strict, any other is an error; else it is left out.
func (o object) readTexts(strict bool) map[string]string {
	out := map[string]string{}
	size := 0
	for key, v := range o.m {
		switch v := v.(type) {
		case float64:
			out[key] = strconv.FormatFloat(v, 'f', -1, 64)
		case string, int64, bool:
			out[key] = fmt.Sprint(v)
		case nil:
			out[key] = ""
		default:
			if strict {
				o.failField(joinPath(o.path, key), "is no text")
			}
		}
		if size += len(key) + len(out[key]); size > maxText {
			o.failField(o.path, "has more than %d bytes", maxText)
			return nil
		}
	}
	return out
}

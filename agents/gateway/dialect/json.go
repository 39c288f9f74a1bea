package dialect

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// object and list are JSON values as decode returns them.
type (
	object = map[string]any
	list   = []any
)

// decodeJSON reads exactly one JSON value and keeps numbers as they are written.
func decodeJSON(b []byte) (any, error) {
	var v any
	err := text.DecodeJSON(b, &v)
	return v, err
}

// readField reads a field of JSON that was read as a whole before; nil where there is none.
func readField(raw json.RawMessage) any {
	v, err := decodeJSON(raw)
	if err != nil {
		return nil
	}
	return v
}

// writeJSON writes a value that was read as JSON, or built here of texts and whole
// numbers: it can be written. <, > and & are not escaped, so that the text stays readable.
func writeJSON(v any) json.RawMessage {
	out, err := text.EncodeJSON(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

// The readers below answer with the zero value where a field is missing or has
// another type: a provider that sends less than it should is not a reason to
// fail a request.

func asObject(v any) object {
	o, _ := v.(object)
	return o
}

func asList(v any) list {
	l, _ := v.(list)
	return l
}

func asString(v any) string {
	s, _ := v.(string)
	return s
}

func asNumber(v any) json.Number {
	n, _ := v.(json.Number)
	return n
}

// intOf is a number as written in digits; 0 for anything else.
func intOf(v any) int {
	n, err := strconv.Atoi(string(asNumber(v)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// wholeNumber is a whole number however it is written (1e3, 5.0), as servers read
// it; ok is false where it is none, or beyond what can be told exactly.
func wholeNumber(v any) (n int, ok bool) {
	f, err := asNumber(v).Float64()
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int(f), true
}

// The bounds of what is read of one request. Small values take a hundred times
// their size once they are read, and each level of nesting takes some of the stack.
const (
	maxDepth    = 128
	maxValues   = 250_000
	maxMessages = 10_000
)

// checkShape refuses JSON that is large in memory. It does not say whether the JSON is valid.
func checkShape(body []byte) error {
	switch is := node.MeasureJSON(body, maxValues, maxDepth); {
	case is.Depth > maxDepth:
		return fmt.Errorf("%w: it is nested more than %d levels deep", ErrTooLarge, maxDepth)
	case is.Values > maxValues:
		return fmt.Errorf("%w: it has more than %d JSON values", ErrTooLarge, maxValues)
	}
	return nil
}

// isEmpty says whether a field carries nothing: absent, null, "", [], {} or false.
func isEmpty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return x == ""
	case list:
		return len(x) == 0
	case object:
		return len(x) == 0
	case bool:
		return !x
	}
	return false
}

// Texts calls visit for every text in a JSON value, with the path that leads to
// it. Text that is no JSON has none.
func Texts(jsonText []byte, visit func(path, text string)) {
	v, err := decodeJSON(jsonText)
	if err != nil {
		return
	}
	visitTexts("", v, visit)
}

func visitTexts(path string, v any, visit func(path, text string)) {
	switch x := v.(type) {
	case string:
		visit(path, x)
	case list:
		for i, e := range x {
			visitTexts(path+"/"+strconv.Itoa(i), e, visit)
		}
	case object:
		for k, e := range x {
			visitTexts(path+"/"+k, e, visit)
		}
	}
}

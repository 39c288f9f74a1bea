package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

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
func (l list) Format(s fmt.State, _ rune) { writeJSON(s, plainForm(l)) }

// Format writes the object as JSON, whatever the verb.
func (o object) Format(s fmt.State, _ rune) { writeJSON(s, plainForm(o)) }

// NormalData checks that data is what a node's payload can hold: nil, booleans, numbers,
// text, []any and map[string]any, not nested without end.
func NormalData(data map[string]any) (map[string]any, error) {
	normal, err := node.Normalize(data)
	if err != nil {
		return nil, fmt.Errorf("rendering a template: %w", err)
	}
	out, _ := normal.(map[string]any)
	return out, nil
}

// mustacheForm is normal data as the library gets it. Zero stays a number: a section treats
// it as false, text "0" as true.
func mustacheForm(v any) any {
	switch v := v.(type) {
	case nil:
		return null("")
	case int64:
		if v != 0 {
			return number(strconv.FormatInt(v, 10))
		}
	case float64:
		var text bytes.Buffer
		writeJSON(&text, v)
		return number(text.String())
	case map[string]any:
		return node.MapObject[object](v, mustacheForm)
	case []any:
		return list(lists.Map(v, mustacheForm))
	}
	return v
}

// plainForm is the way back.
func plainForm(v any) any {
	switch v := v.(type) {
	case null:
		return nil
	case number:
		return json.Number(v)
	case object:
		return node.MapObject[map[string]any](v, plainForm)
	case list:
		return lists.Map(v, plainForm)
	}
	return v
}

// writeJSON writes compact JSON with sorted keys. Write errors are kept by the
// writer, see limited.
func writeJSON(w io.Writer, v any) {
	if out, err := text.EncodeJSON(v); err == nil { // normal data always encodes
		_, _ = w.Write(out) // fmt.State never fails
	}
}

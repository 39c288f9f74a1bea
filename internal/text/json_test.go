package text_test

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"github.com/united-workforce/uwf/internal/text"
)

// What is written is one line without its end, and as readable as JSON can be.
func TestEncodeJSON(t *testing.T) {
	got, err := text.EncodeJSON(map[string]any{"b": "<a> & \"b\"\n", "a": []any{int64(1), nil}})
	if want := `{"a":[1,null],"b":"<a> & \"b\"\n"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	if got, err := text.EncodeJSON(math.NaN()); err == nil || len(got) > 0 {
		t.Errorf("what is no JSON became %q", got)
	}
}

// Over several lines it is what encoding/json writes.
func TestIndentJSON(t *testing.T) {
	for _, v := range []any{
		nil, 1.5, "a\u2028b \xff <>&\x01", []any{}, map[string]any{}, []any{map[string]any{}, []any{[]any{1e30, int64(1) << 60}}},
		map[string]any{"b": []string{"x", "y"}, "a": map[string]any{"": nil}}, json.RawMessage(`{"a":1,"a":[ 1e5,"\u0041"]}`),
	} {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got, err := text.IndentJSON(v); err != nil || string(got)+"\n" != want.String() {
			t.Errorf("%s, %v; want %s", got, err, want.Bytes())
		}
	}
}

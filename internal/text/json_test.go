package text_test

import (
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

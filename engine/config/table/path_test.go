package table

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	for _, x := range []struct {
		text string
		want Path
	}{
		{"a", Path{"a"}},
		{"a.b-c.d_1", Path{"a", "b-c", "d_1"}},
		{`models."gpt-4.1".window`, Path{"models", "gpt-4.1", "window"}},
		{`models.'gpt-4.1'.window`, Path{"models", "gpt-4.1", "window"}},
		{`"a\"b"`, Path{`a"b`}},
		{"modelOverrides.w.*", Path{"modelOverrides", "w", "*"}},
		{"", nil}, {".", nil}, {"a.", nil}, {".a", nil}, {"a..b", nil}, {`"a`, nil}, {`"a"b`, nil}, {`"a"bc`, nil}, {"'a", nil}, {"''", nil}, {`""`, nil}, {`a.""`, nil},
	} {
		got, err := ParsePath(x.text)
		if !reflect.DeepEqual(got, x.want) || (err != nil) != (x.want == nil) {
			t.Errorf("%s: %q, %v", x.text, got, err)
		}
	}
}

func TestPathMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`a..b`: "a name between two dots is missing", `a."b`: "a quote is not closed", `a.'b`: "a quote is not closed", `"".a`: "a name can't be empty", `"a"bc`: `a dot is missing after "a"`,
	} {
		if _, err := ParsePath(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{`a.b`, `models."gpt-4.1".window`, `"a\x00"`, `'`, `a.'b.c'`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePath(text)
		if err != nil {
			return
		}
		again, err := ParsePath(p.String())
		if err != nil || !slices.Equal(p, again) {
			t.Fatalf("%q: %q is written as %s, which is %q, %v", text, []string(p), p, []string(again), err)
		}
	})
}

package extract

import (
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

func TestParseFields(t *testing.T) {
	for text, want := range map[string]string{
		"a: [1\n":                 "line 8, final false: not valid YAML: did not find expected ',' or ']'",
		"- a: &x 1\n":             "line 8, final false: the anchor &x is not read here",
		"a: [1]\nb: *a\n":         "line 9, final false: the alias *a has no anchor &a before it",
		"a: &a 1\n? *a\n: 1\n":    "line 8, final false: the anchor &a is not read here",
		"a: !!binary x\n":         "line 8, final false: the tag !!binary is not allowed",
		"- !!binary x\n":          "line 8, final false: the tag !!binary is not allowed",
		"!!binary a: 1\n":         "line 8, final false: tags (!!binary) are not allowed on keys",
		"a: !include /etc/passwd": "line 8, final false: !include can't be used here",
		"a: 1\na: 2\n":            "line 9, final true: duplicate key \"a\": it stands on line 8 already",
		"<<: {a: 1}\n":            "line 8, final true: anchors and merge keys are not read here",
		"&a a: 1\n":               "line 8, final true: anchors and merge keys are not read here",
		"[a]: 1\n":                "line 8, final true: a key must be text",
		"a: 1\n---\nb: 2\n":       "line 9, final false: the file has more than one YAML document",
		`{"a": 1, "a": 2}`:        "line 8, final true: duplicate key \"a\": it stands on line 8 already",
		`{"a": 1} x`:              "line 8, final false: not valid YAML: did not find expected <document start>",
		`{"a": 1, b: 2} x`:        "line 8, final false: not valid JSON: invalid character 'b'",
		strings.Repeat("- ", 70):  "line 8, final true: values nest deeper than 64 levels",
		`{"a": ` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}": "line 8, final true: values nest deeper than 64 levels",
	} {
		n, bad := parseFields(text, 7)
		if bad == nil {
			t.Errorf("%q: %+v", text, n)
			continue
		}
		if got := fmt.Sprintf("line %d, final %v: %s", bad.At.Line, bad.Final, bad.Message); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if n, bad := parseFields("{a: 1,}", 0); bad != nil || n.Kind != strictyaml.Map {
		t.Errorf("braces of YAML: %+v, %v", n, bad)
	}
	if n, bad := parseFields("# nothing\n", 0); bad != nil || !n.IsNull() {
		t.Errorf("nothing: %+v, %v", n, bad)
	}
}

func TestParseText(t *testing.T) {
	for text, want := range map[string]bool{" [1] ": true, " ": false, `{"a": 1}`: false, "[1": false, "[1] [2]": false} {
		if n, ok := parseText(text, strictyaml.List); ok != want {
			t.Errorf("%q: %v, %+v", text, ok, n)
		}
	}
}

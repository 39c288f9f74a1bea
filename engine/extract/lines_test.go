package extract

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// wordsOf are the words of a text, sorted.
func wordsOf(text string) []string {
	out := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(out)
	return out
}

// treeText is all text of a tree.
func treeText(n *strictyaml.Node) string {
	text := n.Text
	for _, e := range n.Entries {
		text += " " + e.Key + " " + treeText(e.Val)
	}
	for _, item := range n.Items {
		text += " " + treeText(item)
	}
	return text
}

// FuzzTidy: tidying keeps the fields that YAML reads by itself, and mending loses no word and
// adds none. A text without fields is no answer: tidying may give it some (summary：done).
func FuzzTidy(f *testing.F) {
	for _, text := range []string{
		"files:\n- `a.go`: new\n- b: c: d", "meta:\n  owner: x: y\n  id: 7", "summary: \"Foo\" is now \"Bar\"",
		"issues:\n  - note: a: b\n    file: c\n  - `d`", "files:\n- - a: b: c", "summary: |\n  a: b: c\nfiles:\n- `x`",
		"files:\"", "{summary: x\nfiles:\"b}", "summary：done", "meta: {owner: x\nfiles:\"b}", "\n{summary: \"x\nfiles:b\"}",
	} {
		f.Add(text)
	}
	var schema any
	if err := json.Unmarshal([]byte(`{"properties":{"summary":{"type":"string"},"files":{"type":"array","items":{"type":"string"}},
"meta":{"type":"object","properties":{"owner":{"type":"string"},"id":{"type":"string"}}},
"issues":{"type":"array","items":{"type":"object","properties":{"file":{"type":"string"},"note":{"type":"string"}}}}}}`), &schema); err != nil {
		f.Fatal(err)
	}
	s, err := compileSchema(schema)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "#\\!&*%\r<\u2028\u2029\u0085") || !strings.Contains(text, ":") {
			return // comments, escapes, tags and anchors are no words
		}
		lines := strings.Split(cleanText(text), "\n")
		tidied := s.tidyLines(lines)
		it, fault := parseYAML(strings.Join(tidied, "\n"), 0)
		if before, bad := parseYAML(strings.Join(lines, "\n"), 0); bad == nil && before.Kind == strictyaml.Map {
			if fault != nil || !slices.Equal(wordsOf(treeText(it)), wordsOf(treeText(before))) {
				t.Fatalf("%q became %q", treeText(before), treeText(it))
			}
		}
		if fault == nil {
			return
		}
		if it, fault = s.repairLines(tidied, fault); fault != nil {
			return
		}
		if got, want := wordsOf(treeText(it)), wordsOf(strings.Join(tidied, " ")); !slices.Equal(got, want) {
			t.Fatalf("of the words %q the answer has %q", want, got)
		}
	})
}

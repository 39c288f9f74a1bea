package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/extract/tree"
)

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a: [1\n":                "line 1, final false: did not find expected ',' or ']'",
		"- a: &x 1\n":            "line 1, final false: anchors (&x)",
		"a: [1]\nb: *a\n":        "line 2, final false: unknown anchor 'a' referenced",
		"a: !!binary x\n":        "line 1, final false: tags (!!binary)",
		"- !!binary x\n":         "line 1, final false: tags (!!binary)",
		"!!binary a: 1\n":        "line 1, final false: tags (!!binary)",
		"a: 1\na: 2\n":           "line 2, final true: the key \"a\" stands twice",
		"<<: {a: 1}\n":           "line 1, final true: only plain names can be keys",
		"[a]: 1\n":               "line 1, final true: only plain names can be keys",
		"a: 1\n---\nb: 2\n":      "line 2, final false: there is more than one YAML document",
		`{"a": 1, "a": 2}`:       "line 1, final true: the key \"a\" stands twice",
		`{"a": 1} x`:             "line 1, final false: there is more than one YAML document",
		`{"a": 1, b: 2} x`:       "line 1, final false: invalid character 'b'",
		strings.Repeat("- ", 40): "line 1, final true: it is nested deeper than 32 levels",
		`{"a": ` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}": "line 1, final true: it is nested deeper than 32 levels",
	} {
		it, err := tree.Parse(text)
		var bad *tree.SyntaxError
		if !errors.As(err, &bad) {
			t.Errorf("%q: %+v, %v", text, it, err)
			continue
		}
		if got := fmt.Sprintf("line %d, final %v: %s", bad.Line, bad.Final, bad.Detail); !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if it, err := tree.Parse("{a: 1,}"); err != nil || it.Kind != tree.Mapping {
		t.Errorf("braces of YAML: %+v, %v", it, err)
	}
	if it, err := tree.Parse("# nothing\n"); it != nil || err != nil {
		t.Errorf("nothing: %+v, %v", it, err)
	}
}

func TestParseText(t *testing.T) {
	for text, want := range map[string]bool{" [1] ": true, " ": false, `{"a": 1}`: false, "[1": false, "[1] [2]": false} {
		if it, ok := tree.ParseText(text, '['); ok != want || ok && it.Kind != tree.List {
			t.Errorf("%q: %v, %+v", text, ok, it)
		}
	}
}

func TestNatural(t *testing.T) {
	it, err := tree.Parse("[1, 0777, 0o17, 0x1F, 1.50, 1e400, .inf, yes, True, ~, '1', 2026-06-04, 9007199254740993]\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	for _, kid := range it.Kids {
		got = append(got, kid.Natural())
	}
	want := []any{int64(1), int64(777), int64(15), int64(31), 1.5, "1e400", ".inf", "yes", true, nil, "1", "2026-06-04", 9007199254740993.0}
	if !slices.Equal(got, want) {
		t.Errorf("got %#v", got)
	}
}

// Nothing that is parsed is deeper than allowed or has a key twice, and what is
// JSON for everybody is JSON here.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1\nb: [x, {c: |\n  t\n}]", `{"a": [1, null, "x"]}`, "- - - a", "? a\n: b", "a: 'x\n\n y'", "{a: 1,}", "\t", "%YAML 1.1\n---\na: b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		it, err := tree.Parse(text)
		if err == nil && it != nil {
			check(t, it, 0)
		}
		it, rest, err := tree.ParseJSON(text)
		if err != nil {
			return
		}
		check(t, it, 0)
		if !json.Valid([]byte(strings.TrimSuffix(text, rest))) {
			t.Errorf("%q is no JSON", strings.TrimSuffix(text, rest))
		}
	})
}

func check(t *testing.T, it *tree.Item, depth int) {
	t.Helper()
	if depth > tree.MaxDepth+1 {
		t.Fatal("deeper than allowed")
	}
	if it.Kind == tree.Mapping && len(it.Keys) != len(it.Kids) {
		t.Fatalf("%d keys, %d values", len(it.Keys), len(it.Kids))
	}
	seen := map[string]bool{}
	for _, k := range it.Keys {
		if seen[k] {
			t.Fatalf("key %q twice", k)
		}
		seen[k] = true
	}
	for _, kid := range it.Kids {
		check(t, kid, depth+1)
	}
}

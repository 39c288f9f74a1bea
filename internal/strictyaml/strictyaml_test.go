package strictyaml_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Unquoted scalars read by the YAML 1.2 core schema, whatever YAML 1.1 says.
func TestScalars(t *testing.T) {
	for text, want := range map[string]any{
		"yes": "yes", "no": "no", "on": "on", "Off": "Off", "y": "y", "true": true, "False": false, "TRUE": true, "tRue": "tRue",
		"~": nil, "null": nil, "Null": nil, "nil": "nil", "": nil,
		"0": int64(0), "-1": int64(-1), "+1": int64(1), "0777": int64(777), "0o17": int64(15), "0xfF": int64(255), "0o8": "0o8", "0x": "0x", "0xg": "0xg", "0b1": "0b1",
		"1_000": "1_000", "1.5": 1.5, ".5": 0.5, "1.": 1.0, "1e3": 1e3, "1E-3": 1e-3, "1e": "1e", ".": ".", "--": "--", "1.2.3": "1.2.3", "e3": "e3", "+": "+",
		"9007199254740991": int64(1<<53 - 1), "9007199254740993": 9007199254740992.0, "9223372036854775808": 9223372036854775808.0,
		// JSON has no such numbers.
		".nan": ".nan", ".inf": ".inf", "-.Inf": "-.Inf", "1e999": "1e999", "0xffffffffffffffffff": "0xffffffffffffffffff",
		"2026-06-04": "2026-06-04", "2026-06-04T10:00:00Z": "2026-06-04T10:00:00Z", "12:30:45": "12:30:45",
		`"5"`: "5", "'true'": "true", "!!str 5": "5", "<<x": "<<x",
	} {
		v, faults := readFile("a: "+text+"\n", nil)
		if v.Get("a") == nil || len(faults) > 0 {
			t.Errorf("%q: %v", text, faults)
			continue
		}
		if got := v.Get("a").Val.Plain(); got != want {
			t.Errorf("%q reads as %T %v, want %T %v", text, got, got, want, want)
		}
	}
}

// Anchors and aliases are read as what they stand for, each time anew.
func TestAliases(t *testing.T) {
	const text = `x-text: &text {long: "a\tb", n: 1}
x-more: &more
  <<: *text
  n: 2
  list: &list [1, two]
key: &key name
use:
  - *text
  - *list
  - *key
  - <<: [*more, {n: 3, other: *list}]
    *key : yes
  - <<: {n: 4}
    n: 5
  - "<<": plain
`
	v, faults := readFile(text, nil)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	list := []any{int64(1), "two"}
	want := []any{
		map[string]any{"long": "a\tb", "n": int64(1)}, list, "name",
		map[string]any{"long": "a\tb", "n": int64(2), "list": list, "other": list, "name": "yes"},
		map[string]any{"n": int64(5)}, map[string]any{"<<": "plain"},
	}
	if got := v.Get("use").Val.Plain(); !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%v\nwant\n%v", got, want)
	}
	// What is wrong in them is at the place where it is written, and what is wrong with
	// how they are used, at the place of that.
	use := v.Get("use").Val
	for what, at := range map[string]struct {
		pos  strictyaml.Pos
		want string
	}{
		"a part of it":      {use.Items[0].Get("n").Val.Pos, "x.yaml:1:33"},
		"a text in it":      {first(use.Items[0].Get("long").Val.Within(2, 1)), "x.yaml:1:26"},
		"a merged key":      {use.Items[3].Get("list").Pos, "x.yaml:5:3"},
		"a key by an alias": {use.Items[3].Get("name").Pos, "x.yaml:12:5"},
		"the map around it": {use.Items[3].Pos, "x.yaml:11:5"},
		"a map":             {use.Items[0].Pos, "x.yaml:8:5"},
		"a list":            {use.Items[1].Pos, "x.yaml:9:5"},
		"a text":            {use.Items[2].Pos, "x.yaml:6:6"},
		"the text after it": {v.Get("key").Val.Pos, "x.yaml:6:6"},
	} {
		if got := fmt.Sprintf("%s:%d:%d", at.pos.File.Name, at.pos.Line, at.pos.Col); got != at.want {
			t.Errorf("%s is at %s, want %s", what, got, at.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	const text = "a:\n  b/c:\n    - x\n    - \"{{n}}\\n{{n}}\"\n  d: |\n    one {{n}}\n    two\n  e: >\n    {{n}}\n    {{ n }} {{n}}\n"
	v, _ := readFile(text, nil)
	e := func(key string) *strictyaml.Node { return v.Get("a").Val.Get(key).Val }
	var got []string
	report := func(at strictyaml.Pos, length int) {
		got = append(got, fmt.Sprintf("%d:%d+%d", at.Line, at.Col, length))
	}
	report(v.At("/nothing"))
	report(v.At("/a/b~1c/7"))
	report(v.At("/a/b~1c/0"))
	report(e("b/c").Items[1].Within(0, 5))
	report(v.At("/a/d"))
	report(v.ValueAt("/a/d"))
	report(e("d").Within(4, 5))
	report(e("d").Within(10, 3))
	report(e("e").Within(strings.Index(e("e").Text, "{{ n"), 7))
	report(e("e").Within(strings.LastIndex(e("e").Text, "{{n"), 5))
	report(e("e").Within(0, 11)) // folded: lines can't be told apart
	want := "1:1+1 2:3+3 3:7+1 4:8+5 5:3+1 5:6+1 6:9+5 7:5+3 10:5+7 10:13+5 8:6+1"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

// Parts of a text are found where they stand, however the text is written.
func TestWithin(t *testing.T) {
	const yaml = "plain: a bad c\nquoted: 'a bad c'\nünï: \"a bad c\"\nescaped: \"a\\tbad c\"\nblock: |\n  a\n\n    bad c\nfolded: >\n  a\n  bad c\nlong: a\n  bad c\ntwice: >\n  bad a\n  bad c\nincluded: !include x.md\n"
	v, _ := readFile(yaml, func(string) ([]byte, error) { return []byte("a\n bad c\n"), nil })
	for key, want := range map[string]string{
		"plain": "1:10+3", "quoted": "2:12+3", "ünï": "3:9+3", "escaped": "4:14+3", "block": "8:5+3", "folded": "11:3+3",
		"long": "13:3+3", "twice": "15:3+3 16:3+3", "included": "2:2+3",
	} {
		e := v.Get(key)
		text, _ := e.Val.Scalar.(string)
		var got []string
		for from := 0; ; {
			i := strings.Index(text[from:], "bad")
			if i < 0 {
				break
			}
			at, length := e.Val.Within(from+i, 3)
			got = append(got, fmt.Sprintf("%d:%d+%d", at.Line, at.Col, length))
			from += i + 3
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	for _, out := range []int{-1, 99} {
		if at, _ := v.Get("plain").Val.Within(out, 1); at != v.Get("plain").Val.Pos {
			t.Errorf("offset %d is no place of the text", out)
		}
	}
}

func first(at strictyaml.Pos, _ int) strictyaml.Pos { return at }

// What is JSON for everybody is read here as it is there, each value with its place.
func TestReadJSON(t *testing.T) {
	const text = "\ufeff{\"a\": [1, 2.5, 1e3,\r\n  \"x\\u0301\"],\n \"b\": {\"c\": null, \"d\": true}, \"e\": 1e999}\n"
	var r strictyaml.Reader
	n := r.ReadJSON("x.json", text)
	want := map[string]any{"a": []any{int64(1), 2.5, 1000.0, "x\u0301"}, "b": map[string]any{"c": nil, "d": true}, "e": "1e999"}
	if got := n.Plain(); len(r.Faults) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v, %v", got, r.Faults)
	}
	for pointer, want := range map[string]string{"/a/1": "1:11+3", "/a/3": "2:3+4", "/b/d": "3:24+4", "/e": "3:36+5"} {
		if at, length := n.ValueAt(pointer); fmt.Sprintf("%d:%d+%d", at.Line, at.Col, length) != want {
			t.Errorf("%s is at %d:%d+%d, want %s", pointer, at.Line, at.Col, length, want)
		}
	}
	if back := strictyaml.Of(want); !reflect.DeepEqual(back.Plain(), any(want)) {
		t.Errorf("what is made of it again is %v", back.Plain())
	}
}

// Nothing that is read is deeper than allowed or has a key twice, and what is read as JSON
// is JSON for everybody.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"a: 1\nb: [x, {c: |\n  t\n}]", `{"a": [1, null, "x"]}`, "- - - a", "? a\n: b", "a: 'x\n\n y'", "{a: 1,}", "\t", "%YAML 1.1\n---\na: b", "a: &a [*a]\n<<: *a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, aliases := range []bool{false, true} {
			r := &strictyaml.Reader{Aliases: aliases}
			if n := r.ReadYAML("x", text); len(r.Faults) == 0 {
				checkNode(t, n, 0)
			}
			for _, f := range r.Faults {
				if lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 4*strings.Count(text, "\u2028") + len(text); f.At.Line < 0 || f.At.Line > lines+1 || f.Message == "" || f.Fix == "" {
					t.Errorf("%q: %+v", text, f)
				}
			}
		}
		var r strictyaml.Reader
		n, rest := r.ReadJSONAtBegin(text)
		if len(r.Faults) > 0 {
			return
		}
		checkNode(t, n, 0)
		if whole := strings.TrimPrefix(strings.TrimSuffix(text, rest), "\ufeff"); !json.Valid([]byte(whole)) {
			t.Errorf("%q is no JSON", whole)
		}
	})
}

func checkNode(t *testing.T, n *strictyaml.Node, depth int) {
	t.Helper()
	if depth > strictyaml.MaxDepth || n.Kind == strictyaml.Bad {
		t.Fatalf("kind %d at depth %d", n.Kind, depth)
	}
	seen := map[string]bool{}
	for _, e := range n.Entries {
		if seen[e.Key] {
			t.Fatalf("key %q twice", e.Key)
		}
		seen[e.Key] = true
		checkNode(t, e.Val, depth+1)
	}
	for _, item := range n.Items {
		checkNode(t, item, depth+1)
	}
}

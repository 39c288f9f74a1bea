package source_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow/source"
)

// Unquoted scalars read by the YAML 1.2 core schema, whatever YAML 1.1 says.
func TestScalars(t *testing.T) {
	for text, want := range map[string]any{
		"yes": "yes", "no": "no", "on": "on", "Off": "Off", "y": "y", "true": true, "False": false, "TRUE": true, "tRue": "tRue",
		"~": nil, "null": nil, "Null": nil, "nil": "nil", "": nil,
		"0": int64(0), "-1": int64(-1), "+1": int64(1), "0777": int64(777), "0o17": int64(15), "0xfF": int64(255), "0o8": "0o8", "0x": "0x", "0xg": "0xg", "0b1": "0b1",
		"1_000": "1_000", "1.5": 1.5, ".5": 0.5, "1.": 1.0, "1e3": 1e3, "1E-3": 1e-3, "1e": "1e", ".": ".", "--": "--", "1.2.3": "1.2.3", "e3": "e3", "+": "+",
		"9223372036854775807": int64(9223372036854775807), "9223372036854775808": 9223372036854775808.0,
		"2026-06-04": "2026-06-04", "2026-06-04T10:00:00Z": "2026-06-04T10:00:00Z", "12:30:45": "12:30:45",
		`"5"`: "5", "'true'": "true", "!!str 5": "5", "<<x": "<<x",
	} {
		ps := &source.Problems{}
		v := source.Read(ps, "x.yaml", []byte("a: "+text+"\n"), nil)
		if v == nil || v.Get("a") == nil || !ps.Empty() {
			t.Errorf("%q: %v", text, ps.List("x.yaml"))
			continue
		}
		if got := v.Get("a").Val.Plain(); got != want {
			t.Errorf("%q reads as %T %v, want %T %v", text, got, got, want, want)
		}
	}
	for _, text := range []string{".nan", ".inf", "-.Inf", "1e999", "0xffffffffffffffffff"} {
		ps := &source.Problems{}
		if source.Read(ps, "x.yaml", []byte("a: "+text+"\n"), nil); ps.Empty() {
			t.Errorf("%q was taken for a number", text)
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
	ps := &source.Problems{}
	v := source.Read(ps, "x.yaml", []byte(text), nil)
	if !ps.Empty() {
		t.Fatal(ps.List("x.yaml"))
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
		pos  source.Pos
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
		ps := &source.Problems{}
		ps.Add(at.pos, 1, "", "here")
		if p := ps.List("x.yaml")[0]; fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) != at.want {
			t.Errorf("%s is at %d:%d, want %s", what, p.Line, p.Col, at.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	const text = "a:\n  b/c:\n    - x\n    - \"{{n}}\\n{{n}}\"\n  d: |\n    one {{n}}\n    two\n  e: >\n    {{n}}\n    {{ n }} {{n}}\n"
	ps := &source.Problems{}
	v := source.Read(ps, "x.yaml", []byte(text), nil)
	e := func(key string) *source.Value { return v.Get("a").Val.Get(key).Val }
	report := func(at source.Pos, length int) { ps.Add(at, length, "fix", "here") }
	report(v.At("/a/b~1c/0"))
	report(v.At("/a/b~1c/7"))
	report(v.At("/a/d"))
	report(v.ValueAt("/a/d"))
	report(v.At("/nothing"))
	report(e("b/c").Items[1].TagAt("n", 1))
	report(e("d").TagAt("n", 1))
	report(e("d").LineAt(2))
	report(e("e").TagAt("n", 2))
	report(e("e").TagAt("n", 3))
	report(e("e").TagAt("n", 4)) // not there: the text's beginning
	report(e("e").LineAt(2))     // folded: lines can't be told apart
	var got []string
	for _, p := range ps.List("x.yaml") {
		got = append(got, fmt.Sprintf("%d:%d+%d", p.Line, p.Col, p.Len))
	}
	want := "1:1+1 2:3+3 3:7+1 4:8+5 5:3+1 5:6+1 6:9+5 7:5+3 8:6+1 10:5+7 10:13+5"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

// Parts of a text are found where they stand, however the text is written.
func TestWithin(t *testing.T) {
	const yaml = "plain: a bad c\nquoted: 'a bad c'\nünï: \"a bad c\"\nescaped: \"a\\tbad c\"\nblock: |\n  a\n\n    bad c\nfolded: >\n  a\n  bad c\nlong: a\n  bad c\ntwice: >\n  bad a\n  bad c\nincluded: !include x.md\n"
	ps := &source.Problems{}
	v := source.Read(ps, "x.yaml", []byte(yaml), func(string) ([]byte, error) { return []byte("a\n bad c\n"), nil })
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
			ps := &source.Problems{}
			ps.Add(at, length, "", "")
			p := ps.List("x.yaml")[0]
			got = append(got, fmt.Sprintf("%d:%d+%d", p.Line, p.Col, p.Len))
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

func TestTextStaysWithinTheTerminal(t *testing.T) {
	line := strings.Repeat("x", 500) + "\x1b[31m\tHERE" + strings.Repeat("y", 500)
	p := source.Problem{File: "f", Line: 1, Col: 507, Len: 4, Message: "m", Fix: "fix", Snippet: line}
	lines := strings.Split(p.Text(), "\n")
	if strings.Contains(p.Text(), "\x1b") || len([]rune(lines[1])) > 130 {
		t.Errorf("%q", lines[1])
	}
	at := strings.Index(lines[2], "^^^^")
	if at < 0 || strings.Count(lines[2], "^") != 4 || []rune(lines[1])[len([]rune(lines[2][:at]))] != 'H' {
		t.Errorf("the caret is off:\n%s", p.Text())
	}
}

// The caret stands below the character that is meant, whatever stands before it.
func TestCaretUnderTheRightCharacter(t *testing.T) {
	for _, tt := range []struct{ line, at, want string }{
		{"plain: text", "text", "       ^^^^"},
		{"\ta: b", "b", "\t   ^"},
		{"规划者: 审查", "审查", "        ^^^^"},     // each takes two columns
		{"e\u0301te\u0301: x", "x", "     ^"}, // combining: none
		{"a: \U0001f600 b", "b", "      ^"},   // an emoji takes two
		{"a: x\u202ey", "y", "     ^"},        // shown as ·
		{"a: \u200bz", "z", "    ^"},          // shown as ·
		{"a: \u0301b", "b", "   ^"},           // a combining one after a space
		{"한국어 \tb", "b", "       \t^"},        // wide, then a tab
		{"x\u00a0\u00a0y", "y", "   ^"},       // no-break spaces
		{"", "", "^"},
	} {
		col := len([]rune(tt.line[:strings.Index(tt.line, tt.at)])) + 1
		p := source.Problem{File: "f", Line: 1, Col: col, Len: len([]rune(tt.at)), Message: "m", Snippet: tt.line + " "}
		lines := strings.Split(p.Text(), "\n")
		if got := strings.TrimPrefix(lines[2], "      | "); got != tt.want {
			t.Errorf("%q: caret %q, want %q", tt.line, got, tt.want)
		}
	}
}

// A line that is too long to keep is shown around the place.
func TestVeryLongLines(t *testing.T) {
	for _, fill := range []string{"x", "规", "\U0001f600", "\t", "\u0301"} {
		for _, before := range []int{0, 10, 100_000 / len(fill)} {
			text := "a: \"" + strings.Repeat(fill, before) + "\\q" + strings.Repeat(fill, 50_000/len(fill)) + "\"\n"
			value := source.Read(&source.Problems{}, "x.yaml", []byte(strings.Replace(text, "\\q", "{{n}}", 1)), nil)
			ps := &source.Problems{}
			ps.Add(first(value.Get("a").Val.TagAt("n", 1)), 5, "", "m")
			lines := strings.Split(ps.List("x.yaml")[0].Text(), "\n")
			mark := strings.TrimLeft(strings.TrimPrefix(lines[2], "      | "), " \t")
			if mark != "^^^^^" || !strings.Contains(lines[1], "{{n}}") || len(lines[1]) > 2_000 {
				t.Errorf("%q × %d:\n%.3000s\n%s", fill, before, lines[1], lines[2])
			}
		}
	}
}

func first(at source.Pos, _ int) source.Pos { return at }

package source_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow/source"
)

// Each row is a file x.yaml with one thing wrong, and the one problem that is said.
func TestReadRefuses(t *testing.T) {
	included := map[string]string{
		"a.txt": "text", "big.txt": strings.Repeat("x", 1<<20), "d/up.yaml": "!include ../x.yaml", "latin1.json": "\"\xe9\"",
		"two.json": "{} {}", "word.json": "[yes]", "open-list.json": "[1", "open-map.json": `{"a": 1`, "key.json": `{"a": 1, b: 2}`,
		"twice.json": "{\"a\": 1,\n\"a\": 2}", "range.json": "[1e999]",
		"deep.json": strings.Repeat("[", 66) + strings.Repeat("]", 66), "many.json": "[" + strings.Repeat("1,", 100_000) + "1]",
	}
	for i := range 10 {
		included[fmt.Sprintf("n%d.yaml", i)] = fmt.Sprintf("!include n%d.yaml", i+1)
	}
	read := func(name string) ([]byte, error) {
		switch text, ok := included[name]; {
		case ok:
			return []byte(text), nil
		case name == "odd":
			return nil, errors.New("it is odd")
		}
		return nil, &fs.PathError{Op: "openat", Path: "/home/x/" + name, Err: fs.ErrNotExist}
	}
	for _, tt := range []struct{ text, want string }{
		{strings.Repeat("#", 1<<20+1), "x.yaml:1:1: the file has 1048577 bytes; the limit is 1048576"},
		{"- 1\n- é\xe9", "x.yaml:2:4: the file is not UTF-8"},
		{"", "x.yaml:1:1: the file is empty"},
		{"a: [1", "x.yaml:1:1: not valid YAML: did not find expected ',' or ']'"},
		{"a\n---\nb", "x.yaml:2:1: the file has more than one YAML document"},
		{"a\n---\n[1", "x.yaml:3:1: not valid YAML: did not find expected ',' or ']'"},
		{"- 1\n- *b", "x.yaml:2:3: the alias *b has no anchor &b before it"},
		{"- *b\n- &b 1", "x.yaml:1:3: the alias *b has no anchor &b before it"},
		{"a: &a\n  b: [1, *a]", "x.yaml:2:10: the alias *a stands within what it stands for"},
		{"a: &a {b: &b [*a]}", "x.yaml:1:15: the alias *a stands within what it stands for"},
		{"a: &a\n  <<: *a", "x.yaml:2:7: the alias *a stands within what it stands for"},
		// Nine by nine, again and again: a billion values of a few lines.
		{laughs(9, 9), "x.yaml:6:10: the definition has more than 100000 values"},
		// Deeper than the cap at each use, and wide.
		{"a: &a [" + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "]\nb: " + strings.Repeat("[", 40) + "*a" + strings.Repeat("]", 40), "x.yaml:2:44: values nest deeper than 64 levels"},
		// One long text, used often.
		{"a: &a " + strings.Repeat("x", 1<<20-100) + "\nb: [*a, *a, *a, *a, *a]", "x.yaml:2:17: what the aliases stand for, and the definition's files, have more than 4194304 bytes together"},
		{"a: &a {" + strings.Repeat("k", 1000) + ": 1}\nb: [" + strings.Repeat("*a, ", 5000) + "]", "x.yaml:2:"},
		{"- &b 5\n- {<<: *b}", "x.yaml:2:8: the merge key (<<) takes a map, this is the number 5"},
		{"- &b [1]\n- {<<: [*b, {a: 1}]}", "x.yaml:2:8: the merge key (<<) takes a map, this is a list"},
		{"<<: {a: 1}\n<<: {b: 1}", `x.yaml:2:1: duplicate key "<<": it stands on line 1 already`},
		{"- &b [1]\n- {*b : 1}", "x.yaml:2:4: a key must be text"},
		{"- &b !!str a\n- {*b : 1}", "x.yaml:2:4: tags (!!str) are not allowed on keys"},
		{"a: &a !custom x\nb: *a", "x.yaml:1:4: the tag !custom is not allowed"},
		{"[" + strings.Repeat("1,", 100_001) + "]", "x.yaml:1:200000: the definition has more than 100000 values"},
		{strings.Repeat("[", 66) + strings.Repeat("]", 66), "x.yaml:1:66: values nest deeper than 64 levels"},
		{"a: 1\nb: 2\na: 3", `x.yaml:3:1: duplicate key "a": it stands on line 1 already`},
		{"[a]: 1", "x.yaml:1:1: a key must be text"},
		{"!!str a: 1", "x.yaml:1:1: tags (!!str) are not allowed on keys"},
		{"<<: 1", "x.yaml:1:5: the merge key (<<) takes a map, this is the number 1"},
		{`"": 1`, "x.yaml:1:1: a key is empty"},
		{"!include [a.txt]", "x.yaml:1:1: !include takes the path of one file"},
		{"!!int 1", "x.yaml:1:1: the tag !!int is not allowed"},
		{"!include", "x.yaml:1:1: !include names no file"},
		{"!include http://a.txt", `x.yaml:1:1: !include "http://a.txt": only files can be included`},
		{`!include a\txt`, `x.yaml:1:1: !include "a\\txt" is no relative path with forward slashes`},
		{`!include "a.txt\0"`, `x.yaml:1:1: !include "a.txt\x00" is no relative path with forward slashes`},
		{"!include /a.txt", `x.yaml:1:1: !include "/a.txt" is no relative path with forward slashes`},
		{"!include ..", `x.yaml:1:1: !include ".." leads out of the definition's folder`},
		{"!include ../a.txt", `x.yaml:1:1: !include "../a.txt" leads out of the definition's folder`},
		{"!include d/up.yaml", `d/up.yaml:1:1: !include "../x.yaml": the file includes itself (x.yaml → d/up.yaml → x.yaml)`},
		{"!include n0.yaml", "n7.yaml:1:1: !include nests deeper than 8 files"},
		{"[" + strings.Repeat("!include a.txt, ", 101) + "]", "x.yaml:1:1602: more than 100 files are included"},
		{"[" + strings.Repeat("!include big.txt, ", 4) + "]", "big.txt:1:1: the definition's files have more than 4194304 bytes together"},
		{"!include odd", `x.yaml:1:1: !include "odd" can't be read: it is odd`},
		{"!include b.txt", `x.yaml:1:1: !include "b.txt" can't be read: file does not exist`},
		{"!include latin1.json", "latin1.json:1:2: the file is not UTF-8"},
		{"!include two.json", "two.json:1:4: there is something after the JSON value"},
		{"!include word.json", "word.json:1:2: not valid JSON: invalid character 'y' looking for beginning of value"},
		{"!include deep.json", "deep.json:1:66: not valid JSON: too large or nested too deep"},
		{"!include many.json", "many.json:1:199998: not valid JSON: too large or nested too deep"},
		{"!include range.json", "range.json:1:2: not valid JSON: the number is out of range"},
		{"!include open-list.json", "open-list.json:1:3: not valid JSON: EOF"},
		{"!include open-map.json", "open-map.json:1:8: not valid JSON: EOF"},
		{"!include key.json", "key.json:1:10: not valid JSON: invalid character 'b'"},
		{"!include twice.json", `twice.json:2:1: duplicate key "a": it stands on line 1 already`},
		{"!include a.txt", ""},
	} {
		ps := &source.Problems{}
		source.Read(ps, "x.yaml", []byte(tt.text), read)
		var got []string
		for _, p := range ps.List("x.yaml") {
			got = append(got, p.String())
		}
		if all := strings.Join(got, "; "); len(got) > 1 || !strings.HasPrefix(all, tt.want) || (all == "") != (tt.want == "") {
			t.Errorf("%.40q: %s, want %s", tt.text, all, tt.want)
		}
	}
	// Without a folder there is nothing to include.
	ps := &source.Problems{}
	source.Read(ps, "x.yaml", []byte("- !include a.txt"), nil)
	const want = "x.yaml:1:3: !include can't be used here: there is no folder to include from"
	if all := ps.List("x.yaml"); len(all) != 1 || !strings.HasPrefix(all[0].String(), want) {
		t.Errorf("%v, want %s", all, want)
	}
}

// laughs is a list of wide texts, and lists of wide aliases of the one before.
func laughs(deep, wide int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "a0: &a0 [%s]\n", strings.Repeat("lol, ", wide))
	for i := 1; i <= deep; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), wide))
	}
	return b.String()
}

package strictyaml_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Each row is a file x.yaml with one thing wrong, and the one problem that is said.
func TestReadRefuses(t *testing.T) {
	included := map[string]string{
		"a.txt": "text", "big.txt": strings.Repeat("x", 1<<20), "d/up.yaml": "!include ../x.yaml", "latin1.json": "\"\xe9\"",
		"two.json": "{} {}", "cut.json": `["a`, "word.json": "[yes]", "open-list.json": "[1", "open-map.json": `{"a": 1`, "key.json": `{"a": 1, b: 2}`,
		"twice.json": "{\"a\": 1,\n\"a\": 2}",
		"deep.json":  strings.Repeat("[", 66) + strings.Repeat("]", 66), "many.json": "[" + strings.Repeat("1,", 100_000) + "1]",
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
		{"", ""},
		{"a: [1", "x.yaml:1:1: not valid YAML: did not find expected ',' or ']'"},
		{"a\n---\nb", "x.yaml:2:1: the file has more than one YAML document"},
		{"a\n---\n[1", "x.yaml:3:1: not valid YAML: did not find expected ',' or ']'"},
		{"- 1\n- *b", "x.yaml:2:3: the alias *b has no anchor &b before it"},
		{"- *b\n- &b 1", "x.yaml:1:3: the alias *b has no anchor &b before it"},
		{"a: &a\n  b: [1, *a]", "x.yaml:2:10: the alias *a stands within what it stands for"},
		{"a: &a {b: &b [*a]}", "x.yaml:1:15: the alias *a stands within what it stands for"},
		{"a: &a\n  <<: *a", "x.yaml:2:7: the alias *a stands within what it stands for"},
		// Nine by nine, again and again: a billion values of a few lines.
		{laughs(9, 9), "x.yaml:6:10: there are more than 100000 values"},
		// Deeper than the cap at each use, and wide.
		{"a: &a [" + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "]\nb: " + strings.Repeat("[", 40) + "*a" + strings.Repeat("]", 40), "x.yaml:2:44: values nest deeper than 64 levels"},
		// One long text, used often.
		{"a: &a " + strings.Repeat("x", 1<<20-100) + "\nb: [*a, *a, *a, *a, *a]", "x.yaml:2:17: what the aliases stand for, and the files, have more than 4194304 bytes together"},
		{"a: &a {" + strings.Repeat("k", 1000) + ": 1}\nb: [" + strings.Repeat("*a, ", 5000) + "]", "x.yaml:2:"},
		{"- &b 5\n- {<<: *b}", "x.yaml:2:8: the merge key (<<) takes a map, this is the number 5"},
		{"- &b [1]\n- {<<: [*b, {a: 1}]}", "x.yaml:2:8: the merge key (<<) takes a map, this is a list"},
		{"<<: {a: 1}\n<<: {b: 1}", `x.yaml:2:1: duplicate key "<<": it stands on line 1 already`},
		{"- &b [1]\n- {*b : 1}", "x.yaml:2:4: a key must be text"},
		{"- &b !!str a\n- {*b : 1}", "x.yaml:2:4: tags (!!str) are not allowed on keys"},
		{"a: &a !custom x\nb: *a", "x.yaml:1:4: the tag !custom is not allowed"},
		{"[" + strings.Repeat("1,", 100_001) + "]", "x.yaml:1:200000: there are more than 100000 values"},
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
		{"[" + strings.Repeat("!include big.txt, ", 4) + "]", "big.txt:1:1: the files have more than 4194304 bytes together"},
		{"!include odd", `x.yaml:1:1: !include "odd" can't be read: it is odd`},
		{"!include b.txt", `x.yaml:1:1: !include "b.txt" can't be read: file does not exist`},
		{"!include latin1.json", "latin1.json:1:2: the file is not UTF-8"},
		{"!include two.json", "two.json:1:4: there is something after the JSON value"},
		{"!include word.json", "word.json:1:2: not valid JSON: invalid character 'y' looking for beginning of value"},
		{"!include deep.json", "deep.json:1:66: values nest deeper than 64 levels"},
		{"!include many.json", "many.json:1:199998: there are more than 100000 values"},
		{"!include open-list.json", "open-list.json:1:3: the JSON value is not closed; it may be cut off"},
		{"!include open-map.json", "open-map.json:1:8: the JSON value is not closed; it may be cut off"},
		{"!include cut.json", "cut.json:1:2: the JSON value is not closed; it may be cut off"},
		{"!include key.json", "key.json:1:10: not valid JSON: invalid character 'b'"},
		{"!include twice.json", `twice.json:2:1: duplicate key "a": it stands on line 1 already`},
		{"!include a.txt", ""},
	} {
		_, got := readFile(tt.text, read)
		if all := strings.Join(got, "; "); len(got) > 1 || !strings.HasPrefix(all, tt.want) || (all == "") != (tt.want == "") {
			t.Errorf("%.40q: %s, want %s", tt.text, all, tt.want)
		}
	}
	// Without a folder there is nothing to include.
	const want = "x.yaml:1:3: !include can't be used here: there is no folder to include from"
	if _, all := readFile("- !include a.txt", nil); len(all) != 1 || !strings.HasPrefix(all[0], want) {
		t.Errorf("%v, want %s", all, want)
	}
}

// readFile reads a file as definitions are read, and lists its faults.
func readFile(text string, include func(string) ([]byte, error)) (*strictyaml.Node, []string) {
	r := &strictyaml.Reader{Aliases: true, Include: include}
	n := r.ReadYAML("x.yaml", text)
	var faults []string
	for _, f := range r.Faults {
		fault := fmt.Sprintf("%s:%d:%d: %s", f.At.File.Name, f.At.Line, f.At.Col, f.Message)
		if !slices.Contains(faults, fault) { // it is said for each alias
			faults = append(faults, fault)
		}
	}
	return n, faults
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

// Strangers' files have no anchors, aliases and merge keys. Where a text stands in a longer
// one, its faults do too.
func TestReadOfStrangers(t *testing.T) {
	for text, want := range map[string]string{
		"a: &b [x]":          "4:4+2 the anchor &b is not read here",
		"- &b x\n- *b":       "4:3+2 the anchor &b is not read here; 5:3+2 the alias *b is not read here",
		"a: *b":              "4:4+2 the alias *b has no anchor &b before it",
		"&a a: 1":            "4:1+1 anchors and merge keys are not read here",
		"- &b x\n- {*b : 1}": "4:3+2 the anchor &b is not read here; 5:4+1 a key must be text",
		"<<: {a: b}":         "4:1+2 anchors and merge keys are not read here",
		"a: 1\na: 2":         `5:1+1 duplicate key "a": it stands on line 4 already`,
		"a: !include b":      "4:4+10 !include can't be used here: there is no folder to include from",
		"'<<': x":            "",
	} {
		r := &strictyaml.Reader{Above: 3}
		n := r.ReadYAML("x", text)
		var got []string
		for _, f := range r.Faults {
			got = append(got, fmt.Sprintf("%d:%d+%d %s", f.At.Line, f.At.Col, f.Len, f.Message))
		}
		if all := strings.Join(got, "; "); all != want {
			t.Errorf("%q: %s, want %s; %+v", text, all, want, n)
		}
	}
	r := &strictyaml.Reader{MaxFile: 3}
	if n := r.ReadYAML("x", "a: b"); n.Kind != strictyaml.Bad || len(r.Faults) != 1 || r.Faults[0].Message != "the file has 4 bytes; the limit is 3" {
		t.Errorf("%+v, %v", n, r.Faults)
	}
	for text, want := range map[string]string{"a: [": "line 1: not valid YAML: did not find expected node content", "a\n---\nb": "line 2: the file has more than one YAML document", "# nothing": ""} {
		if doc, err := strictyaml.ParseDocument(text); (err != nil) != (want != "") || err != nil && !strings.HasPrefix(err.Error(), want) || want == "" && doc != nil {
			t.Errorf("%q: %v, %v", text, doc, err)
		}
	}
}

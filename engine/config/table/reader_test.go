package table

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// sample has a setting of each kind.
type sample struct {
	text, choice, secret string
	flag                 bool
	whole                int
	number               float64
	span                 time.Duration
	list, several        []string
	items                []string // the texts of entries, with the lines that they begin on
	names                map[string]string
}

func (s *sample) table() Setting {
	return Object("all kinds",
		Field{"text", Text("", &s.text)},
		Field{"choice", Text("", &s.choice, "on", "off")},
		Field{"secret", Setting{Kind: TextValue, Secret: true, Read: Text("", &s.secret).Read, Get: Text("", &s.secret).Get}},
		Field{"flag", Flag("", &s.flag)},
		Field{"whole", Whole("", &s.whole, 0, 9)},
		Field{"number", Number("", &s.number)},
		Field{"span", Span("", &s.span)},
		Field{"list", List("", &s.list)},
		Field{"names", Texts("", "", &s.names)},
		Field{"several", TextOrList("", &s.several)},
		Field{"items", Items("", func(line int) Setting {
			var text string
			return Object("", Field{"text", Text("", &text)}).Then(func(*Reader, *strictyaml.Node, string) {
				s.items = append(s.items, fmt.Sprintf("%d %s", line, text))
			})
		})},
	).Instead(map[string]string{"former": "write text instead"})
}

// read gives what a file sets, and all that is wrong in it.
func read(data string) (sample, string) {
	var s sample
	r := &Reader{File: "f"}
	r.Read([]byte(data), s.table())
	var problems []string
	for _, p := range r.Problems {
		problems = append(problems, p.String())
	}
	return s, strings.Join(problems, "\n")
}

func TestRead(t *testing.T) {
	const file = "\ufeff# all of it\ntext: 7\nchoice: off\nflag: TRUE\nwhole: 0_9\nnumber: 1.5\nspan: 90s\nlist: [a, 1, ~]\nnames: {\"a.b\": x, c: 2}\nsecret: ~\nseveral: x\nitems:\n  - {text: y}\n  - text: z\n"
	got, problems := read(file)
	want := sample{text: "7", choice: "off", flag: true, whole: 9, number: 1.5, span: 90 * time.Second, list: []string{"a", "1", "~"}, names: map[string]string{"a.b": "x", "c": "2"}, several: []string{"x"}, items: []string{"13 y", "14 z"}}
	if problems != "" || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %s", got, problems)
	}
	for _, nothing := range []string{"", "\n# nothing\n", "~", "null", "---\n", "list:\nnames: ~\nwhole: null\n", "names: {}"} {
		if got, problems := read(nothing); problems != "" || got.list != nil || len(got.names) != 0 {
			t.Errorf("%q: %+v, %s", nothing, got, problems)
		}
	}
}

// Every mistake is told, where it is and what it is, and nothing is taken from it.
func TestMistakes(t *testing.T) {
	const whole, number, span = "must be a whole number from 0 to 9", "must be a number, 0 or more", "must be a time such as 90s, 30m or 6h"
	for name, x := range map[string]struct{ file, want string }{
		"too large":               {strings.Repeat("#", strictyaml.MaxFile+1), "f:1:1: the file has 1048577 bytes; the limit is 1048576; move long texts to files of their own"},
		"no YAML":                 {"text: x\nlist: [\n", "f:2:1: not valid YAML: did not find expected node content; check indentation, quotes and brackets here and on the line before"},
		"two documents":           {"text: x\n---\ntext: y\n", "f:2:1: the file has more than one YAML document; keep one document, without a second ---"},
		"two documents, no text":  {"text: x\n---\n", "f:2:1: the file has more than one YAML document; keep one document, without a second ---"},
		"two, the second no YAML": {"text: x\n---\nlist: [\n", "f:3:1: not valid YAML: did not find expected node content; check indentation, quotes and brackets here and on the line before"},
		"a list for all":          {"- text\n", "f:1:1: must be a map (name: value), this is a list"},
		"a text for all":          {"text\n", "f:1:1: must be a map (name: value), this is text"},
		"a key of keys":           {"? {a: b}\n: c\n", "f:1:3: a key must be text; put text with {{ }} or [ ] in quotes"},
		"a merge":                 {"<<: {text: x}\n", "f:1:1: anchors and merge keys are not read here; write the value out"},
		"an anchor":               {"text: &a x\n", "f:1:7: the anchor &a is not read here; write the value out; text that begins with & needs quotes"},
		"an anchor at a key":      {"&a text: x\n", "f:1:1: anchors and merge keys are not read here; write the value out"},
		"an alias":                {"list: [x]\ntext: *a\n", "f:2:7: the alias *a has no anchor &a before it; write &a before the value that is meant, further up; text that begins with * needs quotes"},
		"a tag":                   {"text: !!int x\n", "f:1:7: the tag !!int is not allowed; remove it; text that begins with ! needs quotes"},
		"twice":                   {"flag: false\nflag: true\n", `f:2:1: duplicate key "flag": it stands on line 1 already; remove one of the two, or rename it`},
		"unknown":                 {"texts: x\n", `f:1:1: texts: unknown key; did you mean "text"?`},
		"unknown, nothing near":   {"zzzzzzzzzzzz: x\n", "f:1:1: zzzzzzzzzzzz: unknown key; known are: choice, flag, items, list, names, number, secret, several, span, text, whole"},
		"of a former version":     {"former: x\n", "f:1:1: former: unknown key; write text instead"},
		"a name that is empty":    {"names: {\"\": x}\n", "f:1:9: a key is empty; name the key"},
		"names that are a list":   {"names: [x]\n", "f:1:8: names: must be a map (name: value), this is a list"},
		"a list for a text":       {"text: [x]\n", "f:1:7: text: must be text, this is a list"},
		"a mapping for a text":    {"text: {x: y}\n", "f:1:7: text: must be text, this is a map"},
		"no choice":               {"choice: maybe\n", "f:1:9: choice: must be one of on, off"},
		"a list for a choice":     {"choice: [on]\n", "f:1:9: choice: must be one of on, off"},
		"no flag":                 {"flag: 1\n", "f:1:7: flag: must be true or false"},
		"a list for a flag":       {"flag: [true]\n", "f:1:7: flag: must be true or false"},
		"words for a number":      {"whole: many\n", "f:1:8: whole: " + whole},
		"half a whole one":        {"whole: 2.5\n", "f:1:8: whole: " + whole},
		"too few":                 {"whole: -1\n", "f:1:8: whole: " + whole},
		"too many":                {"whole: 10\n", "f:1:8: whole: " + whole},
		"beyond all numbers":      {"whole: 99999999999999999999\n", "f:1:8: whole: " + whole},
		"a list of whole ones":    {"whole: [2]\n", "f:1:8: whole: " + whole},
		"words, not a number":     {"number: much\n", "f:1:9: number: " + number},
		"below zero":              {"number: -1\n", "f:1:9: number: " + number},
		"beyond measure":          {"number: 1e13\n", "f:1:9: number: " + number},
		"no number at all":        {"number: .nan\n", "f:1:9: number: " + number},
		"a list of numbers":       {"number: [1]\n", "f:1:9: number: " + number},
		"a number for a time":     {"span: 90\n", "f:1:7: span: " + span},
		"no time":                 {"span: 0s\n", "f:1:7: span: " + span},
		"time that goes back":     {"span: -1s\n", "f:1:7: span: " + span},
		"a list of times":         {"span: [1s]\n", "f:1:7: span: " + span},
		"a text for a list":       {"list: x\n", "f:1:7: list: must be a list, this is text"},
		"a list in a list":        {"list: [x, [y]]\n", "f:1:11: list[1]: must be text, this is a list"},
		"a mapping of several":    {"several: {x: y}\n", "f:1:10: several: must be text, this is a map"},
		"a list in several":       {"several: [x, [y]]\n", "f:1:14: several[1]: must be text, this is a list"},
		"a text for items":        {"items: x\n", "f:1:8: items: must be a list, this is text"},
		"a mapping for items":     {"items: {text: x}\n", "f:1:8: items: must be a list, this is a map"},
		"a text for an item":      {"items: [x]\n", "f:1:9: items[0]: must be a map (name: value), this is text"},
		"a slip in an item":       {"items: [{text: x}, {texts: y}]\n", `f:1:21: items[1].texts: unknown key; did you mean "text"?`},
		"a tag in a list":         {"list: [!!int x]\n", "f:1:8: the tag !!int is not allowed; remove it; text that begins with ! needs quotes"},
		"several":                 {"flag: 1\nspan: 0s\n", "f:1:7: flag: must be true or false\nf:2:7: span: " + span},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := read(x.file)
			if problems != x.want {
				t.Errorf("%s\nwant %s", problems, x.want)
			}
			got.list, got.names, got.several, got.items = nil, nil, nil, nil // what else is in them is read
			if !reflect.DeepEqual(got, sample{}) {
				t.Errorf("it is read as %+v", got)
			}
		})
	}
	if _, problems := read(strings.Repeat("a: b\n", 2*maxProblems)); strings.Count(problems, "\n") != maxProblems-1 {
		t.Errorf("more than %d problems are told: %s", maxProblems, problems)
	}
}

// A setting is found by its path; what leads nowhere says where it goes wrong.
func TestAt(t *testing.T) {
	s := (&sample{}).table()
	for path, want := range map[string]ValueKind{"text": TextValue, "names": NamedValue, "names.x": TextValue, "span": TimeValue} {
		p, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.At(p); err != nil || got.Kind != want {
			t.Errorf("%s: %s, %v", path, got.Kind, err)
		}
	}
	for path, want := range map[string]string{
		"txet":      `there is no setting txet: unknown key "txet"; did you mean "text"?`,
		"text.x":    `there is no setting text.x: unknown key "x"; text is a text`,
		"names.x.y": `there is no setting names.x.y: unknown key "y"; names.x is a text`,
	} {
		p, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		var unknown *UnknownPathError
		if _, err := s.At(p); !errors.As(err, &unknown) || err.Error() != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A value is read as people type it, for the setting that it is to be.
func TestParseValue(t *testing.T) {
	s := (&sample{}).table()
	for _, x := range []struct{ path, text, want string }{
		{"text", " 7 ", "!!str  7 "}, {"flag", " True ", "!!bool true"}, {"whole", "0_7", "!!int 07"},
		{"number", "1.50", "!!float 1.50"}, {"number", "2", "!!int 2"}, {"span", "90s", "!!str 90s"},
	} {
		n, err := s.ParseValue(Path{x.path}, x.text)
		if err != nil || n.ShortTag()+" "+n.Value != x.want {
			t.Errorf("%s %q: %+v, %v", x.path, x.text, n, err)
		}
	}
	for _, x := range []struct {
		path, text string
		items      int
	}{{"list", "two words", 1}, {"list", `["a", "b"]`, 2}, {"names", "{a: b}", 2}, {"names", "{}", 0}} {
		n, err := s.ParseValue(Path{x.path}, x.text)
		if err != nil || len(n.Content) != x.items {
			t.Errorf("%s %q: %+v, %v", x.path, x.text, n, err)
		}
	}
	for _, x := range []struct{ path, text, want string }{
		{"txet", "x", `there is no setting txet: unknown key "txet"; did you mean "text"?`},
		{"text", "a\xffb", "set text: the value is no UTF-8 text"},
		{"flag", "yes", `set flag: "yes": must be true or false`},
		{"whole", "many", `set whole: "many": must be a whole number from 0 to 9`},
		{"number", "much", `set number: "much": must be a number, 0 or more`},
		{"number", "NaN", `set number: "NaN": must be a number, 0 or more`},
		{"number", "-inf", `set number: "-inf": must be a number, 0 or more`},
		{"names", " ", `set names: give a mapping as JSON, such as {"name": "value"}: this is nothing`},
		{"names", "[a]", `set names: give a mapping as JSON, such as {"name": "value"}: this is a list`},
		{"names", "{a: b", `set names: give a mapping as JSON, such as {"name": "value"}: not valid YAML: did not find expected ',' or '}'`},
		{"names", "{a: &x b}", `set names: give a mapping as JSON, such as {"name": "value"}: the anchor &x is not read here`},
		{"names", "{a: !!int b}", `set names: give a mapping as JSON, such as {"name": "value"}: the tag !!int is not allowed`},
		{"list", "[a", `set list: give a list as JSON, such as ["-v", "two words"]: not valid YAML: did not find expected ',' or ']'`},
	} {
		if n, err := s.ParseValue(Path{x.path}, x.text); err == nil || err.Error() != x.want {
			t.Errorf("%s %q: %+v, %v\nwant %s", x.path, x.text, n, err, x.want)
		}
	}
}

// A secret in a file is found, also in one that is not valid.
func TestSecretIn(t *testing.T) {
	s := (&sample{}).table()
	for file, want := range map[string]string{
		"text: x\nsecret: y\n": "secret", "unknown: {a: b}\nsecret: y": "secret", "secret: ~": "", "text: secret": "", "": "", "[": "", "- secret: y": "",
	} {
		if p, found := s.SecretIn([]byte(file)); p.String() != want && found || found != (want != "") {
			t.Errorf("%q: %s, %v", file, p, found)
		}
	}
}

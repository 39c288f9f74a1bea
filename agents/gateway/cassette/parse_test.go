package cassette

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

const sample = `version: 1
note: for tests
entries:
  # hand-written
  - step: 2
    role: developer
    match:
      contains: [FAIL]
      tools: [edit_file]
      model: m
    answer:
      text: 007
      calls:
        - name: edit_file
          args: {path: a.go, line: 12, octal: 0777, on: yes, when: 2026-01-02, ok: true, none: null, list: [1.5, x]}
        - id: c9
          name: raw
          args: '{"a": 1}'
      finish: calls
      usage: {in: 10, out: 2, cacheRead: 3, costUsd: 0.004}
  - step: 2
    role: developer
    answer: {error: too long}
  - role: reviewer
    request:
      post: /v1/messages
      model: m
      stream: true
      tools: [b, a]
      continues: true
      messages:
        - role: tool
          text: |
            two
            lines
    answer: {events: "data: x\n\n"}
`

func TestParse(t *testing.T) {
	c, err := Parse("s.yaml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Entries) != 3 || c.Note != "for tests" {
		t.Fatalf("%+v", c)
	}
	first, second, third := c.Entries[0], c.Entries[1], c.Entries[2]
	if first.Turn != 1 || second.Turn != 2 || third.Turn != 1 || first.Line != 5 || third.Line != 24 {
		t.Errorf("turns %d, %d, %d; lines %d, %d", first.Turn, second.Turn, third.Turn, first.Line, third.Line)
	}
	if first.Answer.Text != "007" || second.Answer.Status != 400 || third.Answer.Status != 200 {
		t.Errorf("%+v", c.Entries)
	}
	args := dialect.CanonicalArgs(first.Answer.Calls[0].Args)
	if want := `{"line":12,"list":[1.5,"x"],"none":null,"octal":"0777","ok":true,"on":"yes","path":"a.go","when":"2026-01-02"}`; args != want {
		t.Errorf("args %s", args)
	}
	if want := (dialect.Usage{In: 10, Out: 2, CacheRead: 3, CostUSD: 0.004, HasIn: true, HasOut: true, HasCost: true}); first.Answer.Usage != want {
		t.Errorf("usage %+v", first.Answer.Usage)
	}
	if !reflect.DeepEqual(third.Request, &Request{Path: "/v1/messages", Model: "m", Stream: true, Tools: []string{"a", "b"}, Continues: true,
		Messages: []dialect.Message{{Role: "tool", Text: "two\nlines\n"}}}) {
		t.Errorf("request %+v", third.Request)
	}
	if got := c.BeyondStep(1); len(got) != 2 || got[0] != "s.yaml:5: step 2 (developer), turn 1" {
		t.Errorf("beyond step 1: %q", got)
	}
}

func TestParseErrorsNameTheirLine(t *testing.T) {
	entry := "version: 1\nentries:\n  - role: r\n    answer: {text: a}\n"
	for _, c := range []struct {
		name, text string
		line       int
		says       string
	}{
		{"empty", "", 0, "empty"},
		{"no YAML", "version: 1\nentries: [\n", 2, "not valid YAML"},
		{"a list", "- 1\n", 1, "fields are expected"},
		{"no version", "note: x\n", 1, `"version: 1" is missing`},
		{"another version", "version: 2\n", 1, "version 2 is not known"},
		{"unknown field", entry + "extra: 1\n", 5, `unknown field "extra"; known here: entries, note, version`},
		{"unknown field of an entry", strings.Replace(entry, "answer", "reply", 1), 4, `unknown field "reply"`},
		{"field twice", entry + "note: a\nnote: b\n", 6, "twice"},
		{"anchor", "version: 1\nnote: &a x\n", 2, "anchors"},
		{"alias", "version: &a 1\nnote: *a\n", 1, "anchors"},
		{"alias of a name", "&a version: 1\nnote: *a\n", 2, "anchors"},
		{"alias as a name", "&note version: 1\n*note : x\n", 2, `unknown field "note"`},
		{"tag", "version: 1\nnote: !!binary aGk=\n", 2, "tags"},
		{"second document", entry + "---\nversion: 1\n", 5, "one YAML document"},
		{"broken second document", entry + "---\n[\n", 6, "not valid YAML"},
		{"text is a list", "version: 1\nnote: [x]\n", 2, "a text is expected"},
		{"no role", "version: 1\nentries:\n  - answer: {text: a}\n", 3, `needs a "role"`},
		{"no answer", "version: 1\nentries:\n  - role: r\n", 3, `needs an "answer"`},
		{"entry is a text", "version: 1\nentries:\n  - hello\n", 3, "fields are expected"},
		{"entries are a text", "version: 1\nentries: hello\n", 2, "a list is expected"},
		{"request and match", entry + "    match: {}\n    request: {post: /v1/messages}\n", 3, "not both"},
		{"unknown path", entry + "    request: {post: /v1/embeddings}\n", 5, `"post" must be`},
		{"two forms", "version: 1\nentries:\n  - role: r\n    answer: {text: a, body: b}\n", 4, "one of text"},
		{"status without error", "version: 1\nentries:\n  - role: r\n    answer: {text: a, status: 500}\n", 4, "does not fit"},
		{"error with status 200", "version: 1\nentries:\n  - role: r\n    answer: {error: a, status: 200}\n", 4, "does not fit"},
		{"status above all", "version: 1\nentries:\n  - role: r\n    answer: {error: a, status: 600}\n", 4, "status 600 does not fit"},
		{"finish", "version: 1\nentries:\n  - role: r\n    answer: {text: a, finish: done}\n", 4, "finish is stop"},
		{"usage", "version: 1\nentries:\n  - role: r\n    answer: {text: a, usage: {in: -1}}\n", 4, "whole number"},
		{"cost", "version: 1\nentries:\n  - role: r\n    answer: {text: a, usage: {costUsd: .nan}}\n", 4, "US dollars"},
		{"cost that is NaN", "version: 1\nentries:\n  - role: r\n    answer: {text: a, usage: {costUsd: nan}}\n", 4, `US dollars is expected here, not "nan"`},
		{"negative cost", "version: 1\nentries:\n  - role: r\n    answer: {text: a, usage: {costUsd: -0.5}}\n", 4, `US dollars is expected here, not "-0.5"`},
		{"cost beyond belief", "version: 1\nentries:\n  - role: r\n    answer: {text: a, usage: {costUsd: 1000001}}\n", 4, `US dollars is expected here, not "1000001"`},
		{"usage in words", "version: 1\nentries:\n  - role: r\n    answer: {text: a, usage: {in: many}}\n", 4, `whole number is expected here, not "many"`},
		{"usage beyond belief", "version: 1\nentries:\n  - role: r\n    answer: {text: a, usage: {in: 1099511627777}}\n", 4, `whole number is expected here, not "1099511627777"`},
		{"step 0", entry + "    step: 0\n", 5, "from 1"},
		{"turn out of order", entry + "    turn: 2\n", 3, "turn 1 is due"},
		{"call without name", "version: 1\nentries:\n  - role: r\n    answer:\n      calls:\n        - args: {}\n", 6, `needs a "name"`},
		{"argument twice", "version: 1\nentries:\n  - role: r\n    answer:\n      calls:\n        - {name: a, args: {x: 1, x: 2}}\n", 6, "twice"},
		{"stream is no bool", entry + "    request: {post: /v1/messages, stream: maybe}\n", 5, "true or false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(c.text))
			var p *ParseError
			if !errors.As(err, &p) {
				t.Fatalf("error %v", err)
			}
			if p.Line != c.line || !strings.Contains(p.Problem, c.says) {
				t.Errorf("line %d, %q", p.Line, p.Problem)
			}
			if !strings.Contains(err.Error(), "f.yaml") {
				t.Errorf("%v does not name the file", err)
			}
		})
	}
}

func TestParseTooMuch(t *testing.T) {
	var p *ParseError
	if _, err := Parse("f.yaml", make([]byte, MaxSize+1)); !errors.As(err, &p) || p.Problem != "larger than 67108864 bytes" {
		t.Errorf("error %v", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, file string
		is         error
	}{
		{"nothing there", filepath.Join(dir, "none.yaml"), fs.ErrNotExist},
		{"a folder", dir, syscall.EISDIR},
	} {
		if _, err := Load(c.file); !errors.Is(err, c.is) || !strings.Contains(err.Error(), "read cassette") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestParseReportsEveryProblem(t *testing.T) {
	_, err := Parse("f.yaml", []byte("version: 1\nentries:\n  - role: r\n  - answer: {text: a}\n"))
	if err == nil || strings.Count(err.Error(), "f.yaml:") != 2 {
		t.Errorf("%v", err)
	}
}

func TestEncodeIsReadBack(t *testing.T) {
	c, err := Parse("s.yaml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{
		"plain", "true", "12", "null", "~", "2026-01-02", " leading", "trailing ", "a: b", "# no comment", "- x", "|", "", "\t",
		"lines\n\nwith  spaces \n\ttabs\n", "\nleading line", "  indented\nfirst", "CR\r\nLF", "bell\x07", "nul\x00", "ünïcödé ✓ 🎉",
		"\ufeffbom", "\u2028separator\n\u0085", strings.Repeat("long ", 200), "---\n$status: done\n---\nbody\n", "*a", "&a", "!x", "%d", "@x", "`x`", "'\"", "…\n…", "\ufffd\n",
	} {
		c.Entries[i%2].Answer = Answer{Status: 200, Text: text, Calls: []dialect.Call{{Name: "n", Args: dialect.CanonicalArgs(`{}`)}}}
		c.Entries[2].Answer = Answer{Status: 200, Body: text}
		c.Entries[2].Request.Messages = []dialect.Message{{Role: "user", Text: text, Calls: []dialect.Call{{ID: "i", Name: "n", Args: text}}}}
		if text == "" {
			c.Entries[2].Request.Messages[0].Calls = nil
		}
		b, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("s.yaml", b)
		if err != nil {
			t.Fatalf("%q: %v\n%s", text, err, b)
		}
		for j := range c.Entries {
			if !sameEntry(c.Entries[j], again.Entries[j]) {
				t.Errorf("%q: entry %d is read back as %+v\n%s", text, j, again.Entries[j], b)
			}
		}
	}
}

// FuzzParse: any text is a cassette or an error with a place, never a crash; and
// a cassette that is written is read as the same one.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("version: 1\nentries:\n  - {role: r, answer: {calls: [{name: a, args: [1, {b: |\n x\n}]}]}}\n"))
	f.Add([]byte("version: 1\nentries: ~\n"))
	f.Add([]byte("a: &a [*a, *a]\n"))
	f.Add([]byte("version: 1\nnote: \"\\x00\\n\\ud800\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse("f", b)
		if err != nil {
			var p *ParseError
			if !errors.As(err, &p) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		text, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("f", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(again.Entries) != len(c.Entries) {
			t.Fatalf("%d entries become %d", len(c.Entries), len(again.Entries))
		}
		for i := range c.Entries {
			if !sameEntry(c.Entries[i], again.Entries[i]) {
				t.Fatalf("entry %d\n%+v\nbecomes\n%+v\n%s", i, c.Entries[i], again.Entries[i], text)
			}
		}
	})
}

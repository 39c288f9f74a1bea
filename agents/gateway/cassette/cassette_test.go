package cassette

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

const sample = `{"note":"for tests","step":2,"role":"developer","match":{"contains":["FAIL"],"tools":["edit_file"],"model":"m"},"answer":{"text":"007","calls":[{"name":"edit_file","args":{"path":"a.go","line":12,"list":[1.50,"x"],"none":null}},{"id":"c9","name":"raw","args":"{\"a\": 1}"},{"name":"text","args":"no JSON"},{"name":"nothing"}],"finish":"calls","usage":{"in":10,"out":2,"cacheRead":3,"costUsd":0.004}}}

{"step":2,"role":"developer","answer":{"error":"too long"}}
{"role":"reviewer","request":{"post":"/messages","model":"m","stream":true,"tools":["b","a"],"repeats":3,"messages":[{"role":"tool","text":"two\nlines\n"}]},"answer":{"events":"data: x\n\n"}}
`

func TestParse(t *testing.T) {
	c, err := Parse("s.jsonl", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Entries) != 3 || c.Entries[0].Note != "for tests" {
		t.Fatalf("%+v", c)
	}
	first, second, third := c.Entries[0], c.Entries[1], c.Entries[2]
	if first.line != 1 || second.line != 3 || third.line != 4 {
		t.Errorf("lines %d, %d, %d", first.line, second.line, third.line)
	}
	if first.Answer.Text != "007" || first.Answer.Status != 200 || second.Answer.Status != 400 || third.Answer.Status != 200 {
		t.Errorf("%+v", c.Entries)
	}
	for i, want := range []string{`{"line":12,"list":[1.50,"x"],"none":null,"path":"a.go"}`, `{"a":1}`, "no JSON", "{}"} {
		if got := first.Answer.Calls[i].Args.Canonical(); got != want {
			t.Errorf("args %s instead of %s", got, want)
		}
	}
	if want := (dialect.Usage{In: 10, Out: 2, CacheRead: 3, CostUSD: 0.004, HasIn: true, HasOut: true, HasCost: true}); first.Answer.Usage.Dialect() != want {
		t.Errorf("usage %+v", first.Answer.Usage)
	}
	if got := second.Answer.Usage.Dialect(); got != (dialect.Usage{}) {
		t.Errorf("no usage is %+v", got)
	}
	if !reflect.DeepEqual(third.Request, &Request{Path: "/v1/messages", Model: "m", Stream: true, Tools: []string{"a", "b"}, Repeats: 3,
		Messages: []dialect.Message{{Role: "tool", Text: "two\nlines\n"}}}) {
		t.Errorf("request %+v", third.Request)
	}
}

func TestParseErrorsNameTheirLine(t *testing.T) {
	const good = `{"role":"r","answer":{"text":"a"}}`
	for _, c := range []struct{ name, text, says string }{
		{"no JSON", `role: r`, "not an exchange as JSON on one line: column 1: invalid character 'r'"},
		{"cut off", `{"role":"r",`, "not an exchange as JSON on one line: column 13: the text ends inside of the value, or before it"},
		{"a list", `[1]`, "an exchange can't be array"},
		{"two on a line", good + " " + good, "text after the value"},
		{"no JSON behind it", good + "}", "text after the value"},
		{"a key twice", `{"role":"r","role":"s","answer":{"text":"a"}}`, `the key "role" stands twice`},
		{"unknown field", `{"role":"r","answer":{"text":"a"},"extra":1}`, `unknown field "extra"`},
		{"unknown field of an answer", `{"role":"r","answer":{"txt":"a"}}`, `unknown field "txt"`},
		{"unknown field of a call", `{"role":"r","answer":{"calls":[{"name":"a","arguments":{}}]}}`, `unknown field "arguments"`},
		{"role is a list", `{"role":[],"answer":{"text":"a"}}`, "role can't be array"},
		{"no role", `{"answer":{"text":"a"}}`, "role is missing"},
		{"nothing", `null`, "role is missing"},
		{"no answer", `{"role":"r"}`, "an answer has one of text"},
		{"request and match", `{"role":"r","match":{},"request":{"post":"/v1/messages"},"answer":{"text":"a"}}`, "not both"},
		{"unknown path", `{"role":"r","request":{"post":"/v1/embeddings"},"answer":{"text":"a"}}`, "post must be"},
		{"a model on two lines", `{"role":"r","request":{"post":"/v1/messages","model":"a\nb"},"answer":{"text":"a"}}`, "model is a name on one line"},
		{"two forms", `{"role":"r","answer":{"text":"a","body":"b"}}`, "one of text"},
		{"status without error", `{"role":"r","answer":{"text":"a","status":500}}`, "status 500 does not fit"},
		{"error with status 200", `{"role":"r","answer":{"error":"a","status":200}}`, "status 200 does not fit"},
		{"status above all", `{"role":"r","answer":{"error":"a","status":600}}`, "status 600 does not fit"},
		{"status of no answer", `{"role":"r","answer":{"body":"a","status":302}}`, "status 302 does not fit"},
		{"finish", `{"role":"r","answer":{"text":"a","finish":"done"}}`, "finish is stop"},
		{"negative usage", `{"role":"r","answer":{"text":"a","usage":{"in":-1}}}`, "usage counts tokens from 0 to 1099511627776, and not -1"},
		{"usage beyond belief", `{"role":"r","answer":{"text":"a","usage":{"cacheWrite":1099511627777}}}`, "and not 1099511627777"},
		{"usage in words", `{"role":"r","answer":{"text":"a","usage":{"in":"many"}}}`, "answer.usage.in can't be string"},
		{"negative cost", `{"role":"r","answer":{"text":"a","usage":{"costUsd":-0.5}}}`, "costUsd is an amount in US dollars, and not -0.5"},
		{"cost beyond belief", `{"role":"r","answer":{"text":"a","usage":{"costUsd":1000001}}}`, "and not 1.000001e+06"},
		{"negative step", `{"role":"r","step":-1,"answer":{"text":"a"}}`, "step counts from 1"},
		{"negative repeats", `{"role":"r","request":{"post":"/v1/messages","repeats":-1},"answer":{"text":"a"}}`, "repeats is a number"},
		{"call without name", `{"role":"r","answer":{"calls":[{"args":{}}]}}`, "a call needs a name"},
		{"stream is no truth value", `{"role":"r","request":{"post":"/v1/messages","stream":"maybe"},"answer":{"text":"a"}}`, "request.stream can't be string"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("f.jsonl", []byte(good+"\n\n"+c.text+"\n"+good+"\n"))
			var p *ParseError
			if !errors.As(err, &p) {
				t.Fatalf("error %v", err)
			}
			if p.Line != 3 || !strings.Contains(p.Problem, c.says) {
				t.Errorf("line %d, %q", p.Line, p.Problem)
			}
			if !strings.Contains(err.Error(), "f.jsonl:3") {
				t.Errorf("%v does not name the file", err)
			}
		})
	}
}

func TestParseTooMuch(t *testing.T) {
	var p *ParseError
	if _, err := Parse("f.jsonl", make([]byte, MaxSize+1)); !errors.As(err, &p) || p.Problem != "larger than 67108864 bytes" || p.Error() != "cassette f.jsonl: larger than 67108864 bytes" {
		t.Errorf("error %v", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, file string
		is         error
	}{
		{"nothing there", filepath.Join(dir, "none.jsonl"), fs.ErrNotExist},
		{"a folder", dir, syscall.EISDIR},
	} {
		if _, err := Load(c.file); !errors.Is(err, c.is) || !strings.Contains(err.Error(), "read cassette") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestParseReportsEveryProblem(t *testing.T) {
	_, err := Parse("f.jsonl", []byte(`{"role":"r"}`+"\n"+`{"answer":{"text":"a"}}`+"\n"))
	if err == nil || strings.Count(err.Error(), "f.jsonl:") != 2 {
		t.Errorf("%v", err)
	}
	_, err = Parse("f.jsonl", []byte(strings.Repeat("x\n", 1000)))
	if err == nil || strings.Count(err.Error(), "f.jsonl:") != maxProblems {
		t.Errorf("%v", err)
	}
}

// readBack writes entries and reads them again, without the lines that they stand on.
func readBack(t *testing.T, entries []Entry) (in, out []Entry) {
	t.Helper()
	text, err := encodeEntries(entries)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("f", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(again.Entries) != len(entries) {
		t.Fatalf("%d entries become %d", len(entries), len(again.Entries))
	}
	for i := range entries {
		in, out = append(in, withoutPlace(entries[i])), append(out, withoutPlace(again.Entries[i]))
	}
	return in, out
}

func withoutPlace(e Entry) Entry {
	canonical := func(calls []dialect.Call) (out []dialect.Call) {
		for _, c := range calls {
			c.Args = dialect.Args(c.Args.Canonical())
			out = append(out, c)
		}
		return out
	}
	e.line, e.Answer.Calls = 0, canonical(e.Answer.Calls)
	if e.Match != nil {
		m := Match{Model: e.Match.Model, Contains: append([]string(nil), e.Match.Contains...), Tools: append([]string(nil), e.Match.Tools...)}
		e.Match = &m
	}
	if e.Request != nil {
		r := *e.Request
		r.Tools, r.Messages = append([]string(nil), r.Tools...), nil
		for _, m := range e.Request.Messages {
			m.Calls = canonical(m.Calls)
			r.Messages = append(r.Messages, m)
		}
		e.Request = &r
	}
	return e
}

func TestEncodeIsReadBack(t *testing.T) {
	c, err := Parse("s.jsonl", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{
		"plain", "true", "12", "null", " leading", "trailing ", `{"a": [1, 2.50]}`, `"quoted"`, "\t", "<a&b>", "{", "{} {}",
		"lines\n\nwith  spaces \n\ttabs\n", "CR\r\nLF", "bell\x07", "nul\x00", "ünïcödé ✓ 🎉", "\ufeffbom", "\u2028separator\n\u0085", "\ufffd\n",
	} {
		c.Entries[i%2].Answer = Answer{Status: 200, Text: text, Calls: []dialect.Call{{Name: "n", Args: "{}"}}}
		c.Entries[2].Answer = Answer{Status: 200, Body: text}
		c.Entries[2].Request.Messages = []dialect.Message{{Role: "user", Text: text, Calls: []dialect.Call{{ID: "i", Name: "n", Args: dialect.Args(text)}}}}
		if in, out := readBack(t, c.Entries); !reflect.DeepEqual(in, out) {
			t.Errorf("%q: %+v is read back as %+v", text, in, out)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	cost := math.NaN()
	if b, err := encodeEntries([]Entry{{Role: "r", Answer: Answer{Text: "a", Usage: &Usage{CostUSD: &cost}}}}); err == nil {
		t.Errorf("NaN is written as %s", b)
	}
}

// FuzzParse: any text is a cassette or an error with a place, never a crash; and
// a cassette that is written is read as the same one.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"role":"r","answer":{"calls":[{"name":"a","args":[1,{"b":"\ud800"}]}]}}`))
	f.Add([]byte(`{"role":"r","answer":{"body":"\u0000"},"match":{"contains":null}}` + "\r\n \n\n"))
	f.Add([]byte(`{"ROLE":"r","answer":{"text":"a","usage":{"costUsd":1e-7}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse("f", b)
		if err != nil {
			var p *ParseError
			if !errors.As(err, &p) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		if in, out := readBack(t, c.Entries); !reflect.DeepEqual(in, out) {
			t.Fatalf("%+v\nbecomes\n%+v", in, out)
		}
	})
}

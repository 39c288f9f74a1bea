package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/internal/text"
)

func TestClean(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"plain text, ünïcödé ☃ 😀\n\ttab", "plain text, ünïcödé ☃ 😀\n\ttab"},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"\x1b]0;title\x07", `\x1b]0;title\x07`},
		{"a\rb", `a\x0db`},
		{"a\r\nb", "a\nb"},
		{"\u009b31m", `\u009b31m`},
		{"user\u202eexe.txt", `user\u202eexe.txt`},
		{"\u2066x\u2069\u200f\ufeff", `\u2066x\u2069\u200f\ufeff`},
		{"bad \xff\xfe", `bad \xff\xfe`},
		{"\x00\x7f", `\x00\x7f`},
		{"line\u2028sep", `line\u2028sep`},
	} {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := Line("a\n\tb  c\x1b", 100); got != `a b c\x1b` {
		t.Errorf("Line = %q", got)
	}
	if got := Line("äöüß", 3); got != "äö…" {
		t.Errorf("Line = %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[2J\u009b\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		for _, r := range got {
			if r != '\n' && r != '\t' && text.IsUnsafe(r) {
				t.Fatalf("%q leaves %q", s, got)
			}
		}
		if Clean(got) != got {
			t.Fatalf("cleaned twice, %q differs", got)
		}
	})
}

type result struct {
	Zeta  string            `json:"zeta"`
	Alpha int               `json:"alpha"`
	List  []string          `json:"list"`
	Empty []string          `json:"empty"`
	Map   map[string]string `json:"map"`
}

var sample = result{
	Zeta: "yes", Alpha: 7, List: []string{"a <b>&", "two\nlines\n", "\x1b[1m \u009b \u202e", "0777", "2024-01-01", "null", "", "- x", "a: b", "#c"},
	Empty: []string{}, Map: map[string]string{"on": "~"},
}

func TestFormatsSayTheSame(t *testing.T) {
	want, err := json.Marshal(sample)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []Format{JSON, YAML} {
		var b bytes.Buffer
		if err := (Printer{Out: &b, Format: f}).Print(sample, nil); err != nil {
			t.Fatal(err)
		}
		if strings.IndexFunc(b.String(), func(r rune) bool { return r != '\n' && text.IsUnsafe(r) }) >= 0 {
			t.Errorf("%s holds characters that a terminal acts on: %q", f, b.String())
		}
		if strings.Index(b.String(), "zeta") > strings.Index(b.String(), "alpha") {
			t.Errorf("%s: the fields are not in their order:\n%s", f, b.String())
		}
		var got any
		if f == JSON {
			err = json.Unmarshal(b.Bytes(), &got)
		} else {
			err = yaml.Unmarshal(b.Bytes(), &got)
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", f, err, b.String())
		}
		back, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var a, c any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(back, &c) != nil || !reflect.DeepEqual(a, c) {
			t.Errorf("%s says %s, want %s\n%s", f, back, want, b.String())
		}
	}
}

// A key or a text that readers of older YAML take for something else stands in quotes: a
// key << would even bring the keys below it in among ours.
func TestYAMLForEveryReader(t *testing.T) {
	old := []string{"<<", "=", "y", "No", "ON", "off", "yes", "12:30", "-1:20:30.5"}
	in := map[string]any{"<<": map[string]any{"by": "forged"}, "list": old, "step": 1}
	b, err := encodeYAML(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range old {
		if !strings.Contains(string(b), `- "`+s+`"`+"\n") {
			t.Errorf("%s is not in quotes:\n%s", s, b)
		}
	}
	var got map[string]any
	if err := yaml.Unmarshal(b, &got); err != nil || got["by"] != nil || len(got) != 3 {
		t.Errorf("read as %v, %v:\n%s", got, err, b)
	}
	if b, err = encodeYAML([]string{"yes and no", "at 12:30", "12:61x", "<<<", "#", "no."}); err != nil || strings.Count(string(b), `"`) != 0 {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestChosen(t *testing.T) {
	for _, tt := range []struct {
		p    Printer
		want Format
	}{
		{Printer{}, JSON},
		{Printer{TTY: true}, Text},
		{Printer{TTY: true, Format: JSON}, JSON},
		{Printer{Format: Text}, Text},
		{Printer{Format: YAML, TTY: true}, YAML},
	} {
		if got := tt.p.Chosen(); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.p, got, tt.want)
		}
	}
	for _, tt := range []struct {
		p    Printer
		want Format
	}{
		{Printer{}, YAML},
		{Printer{TTY: true}, YAML},
		{Printer{Format: JSON, TTY: true}, JSON},
		{Printer{Format: Text}, Text},
		{Printer{Query: &Query{}}, JSON},
	} {
		if got := tt.p.Or(YAML).Chosen(); got != tt.want {
			t.Errorf("%+v, else YAML: %s, want %s", tt.p, got, tt.want)
		}
	}
	if _, err := ParseFormat("xml"); err == nil {
		t.Error("xml is a format")
	}
}

func TestTextIsCleaned(t *testing.T) {
	var b bytes.Buffer
	err := Printer{Out: &b, Format: Text, Color: true}.Print(nil, func(w *Writer) {
		w.Printf("%s\n", "\x1b[31m")
		w.Bold("b\x1b")
		w.Println()
		w.Table([]string{"A", "B"}, [][]string{{"x\ty\nz", "\x1b[0m"}, {"longer cell", ""}})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "\\x1b[31m\n\x1b[1mb\\x1b\x1b[0m\nA            B\nx y z        \\x1b[0m\nlonger cell\n"
	if b.String() != want {
		t.Errorf("got %q\nwant %q", b.String(), want)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrorsAreReported(t *testing.T) {
	for _, f := range []Format{JSON, YAML, Text} {
		if err := (Printer{Out: broken{}, Format: f}).Print(1, func(w *Writer) { w.Println("x"); w.Println("y") }); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("%s: %v", f, err)
		}
	}
}

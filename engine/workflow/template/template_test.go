package template_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow/template"
)

func TestRender(t *testing.T) {
	data := map[string]any{
		"text": "<b> & \"q\" 'a'", "empty": "", "nothing": nil, "yes": true, "no": false,
		"int": int64(42), "zero": int64(0), "big": 1e21, "million": 1e6, "half": 0.5, "tiny": 1e-7, "float0": 0.0,
		"number": json.Number("9007199254740991"),
		"list":   []any{"a", int64(1), nil, map[string]any{"k": "<v>"}}, "none": []any{},
		"map":     map[string]any{"b": []any{int64(0)}, "a": "x", "n": nil, "t": true},
		"items":   []any{map[string]any{"name": "one"}, map[string]any{"name": "two", "text": "own"}},
		"deep":    map[string]any{"er": map[string]any{"est": "down"}},
		"$status": "done", "a b": "spaces", "String": "s", "Format": "f",
	}
	for in, want := range map[string]string{
		"":                                       "",
		"plain { } }} text":                      "plain { } }} text",
		"{{text}}|{{{text}}}|{{&text}}":          `<b> & "q" 'a'|<b> & "q" 'a'|<b> & "q" 'a'`,
		"{{$status}}":                            "done",
		"{{empty}}{{nothing}}{{unknown}}":        "",
		"{{yes}} {{no}}":                         "true false",
		"{{int}} {{zero}} {{float0}}":            "42 0 0",
		"{{big}} {{million}} {{half}}":           "1e+21 1000000 0.5",
		"{{tiny}} {{number}}":                    "1e-7 9007199254740991",
		"{{list}}":                               `["a",1,null,{"k":"<v>"}]`,
		"{{none}}":                               "[]",
		"{{map}}":                                `{"a":"x","b":[0],"n":null,"t":true}`,
		"{{map.a}} {{deep.er.est}}":              "x down",
		"{{map.x.y}}{{text.z}}":                  "",
		"{{#items}}{{name}}={{text}};{{/items}}": `one=<b> & "q" 'a';two=own;`,
		"{{#none}}x{{/none}}{{^none}}empty{{/none}}":         "empty",
		"{{#zero}}x{{/zero}}{{^zero}}z{{/zero}}":             "z",
		"{{#no}}x{{/no}}{{^no}}not{{/no}}":                   "not",
		"{{#nothing}}x{{/nothing}}{{^nothing}}n{{/nothing}}": "n",
		"{{#int}}has {{.}}{{/int}}":                          "has 42",
		"{{#text}}has{{/text}}":                              "has",
		"{{#map}}{{a}}{{/map}}":                              "x",
		"a\n{{#yes}}\nb\n{{/yes}}\nc":                        "a\nb\nc",
		"{{! comment }}x":                                    "x",
		"{{=<% %>=}}<% int %>{{int}}":                        "42{{int}}",
		"{{a b}}":                                            "spaces",
		"{{String}} {{Format}}":                              "s f",
		"{{map.String}}{{list.Format}}{{map.Format}}":        "",
		"{{.}}|": "",
	} {
		tmpl, err := template.Parse(in)
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			continue
		}
		if in == "{{.}}|" {
			continue // the whole output: checked below
		}
		if got, err := tmpl.Render(data); err != nil || got != want {
			t.Errorf("Render(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	tmpl, err := template.Parse("{{.}}")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tmpl.Render(map[string]any{"a": int64(1)}); err != nil || got != `{"a":1}` {
		t.Errorf("the whole output: %q, %v", got, err)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for in, line := range map[string]int{
		"a\n{{x": 2, "{{}}": 1, "{{/x}}": 1, "\n\n{{#x}}": 3, "{{#a}}{{/b}}": 1, "{{> /etc/hostname}}": 1,
		"{{#a}}{{> x}}{{/a}}": 1, strings.Repeat("{{#a}}", 40) + strings.Repeat("{{/a}}", 40): 1,
		strings.Repeat("{{#a}}", 20_000): 1,
	} {
		_, err := template.Parse(in)
		var bad *template.SyntaxError
		if !errors.As(err, &bad) || strings.Count(in[:max(bad.Offset, 0)], "\n")+1 != line || bad.Fix == "" {
			t.Errorf("Parse(%.40q): %v, want a SyntaxError of line %d", in, err, line)
		}
	}
}

func TestTags(t *testing.T) {
	tmpl, err := template.Parse("{{a}} {{{b.c}}} {{#s}}{{&d}}{{^i}}{{x | f}}{{/i}}{{/s}}")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(tmpl.Tags()), "[{0 a []} {0 b.c []} {1 s [{0 d []} {2 i [{0 x | f []}]}]}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Nested sections over one list multiply: the work must end all the same.
func TestExplosion(t *testing.T) {
	many := make([]any, 1000)
	for i := range many {
		many[i] = "x"
	}
	data := map[string]any{"a": many, "long": strings.Repeat("x", 1<<20)}
	for _, in := range []string{
		strings.Repeat("{{#a}}", 10) + "{{.}}" + strings.Repeat("{{/a}}", 10),
		strings.Repeat("{{#a}}", 10) + strings.Repeat("{{/a}}", 10),
		"{{long}}{{long}}",
		"{{#a}}{{a}}{{/a}}",
	} {
		tmpl, err := template.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tmpl.Render(data); !errors.Is(err, template.ErrTooLong) || got != "" {
			t.Errorf("Render(%.40q) = %d bytes, %v; want ErrTooLong", in, len(got), err)
		}
	}
}

func TestRenderRefusesWhatIsNoData(t *testing.T) {
	tmpl, err := template.Parse("{{x}}")
	if err != nil {
		t.Fatal(err)
	}
	var deep any = "x"
	for range 200 {
		deep = []any{deep}
	}
	for want, v := range map[string]any{
		"a Go func()": func() {}, "a Go struct {}": struct{}{}, "deeper than 100 levels": deep,
		`number "x"`: json.Number("x"), "the number +Inf": math.Inf(1),
	} {
		if got, err := tmpl.Render(map[string]any{"x": v}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rendered %q, %v; want %s", got, err, want)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("{{x}} {{#list}}{{.}}{{/list}}", `{"x":1,"list":["a",{}]}`)
	f.Add("{{#a}}{{#a}}{{#a}}{{/a}}{{/a}}{{/a}}", `{"a":[1,2,3,[4]]}`)
	f.Add("{{=<% %>=}}<% x %>", `{"x":{"y":null}}`)
	f.Add("{{=| |=}}|x|", `{"x":[[[]]]}`)
	f.Add("{{..}}{{.x}}{{x.}}{{&}}{{{}}}{{{x}}", `{"x":true}`)
	f.Fuzz(func(t *testing.T, text, data string) {
		var v map[string]any
		if json.Unmarshal([]byte(data), &v) != nil {
			return
		}
		tmpl, err := template.Parse(text)
		if err != nil {
			var bad *template.SyntaxError
			if !errors.As(err, &bad) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		out, err := tmpl.Render(v)
		if len(out) > template.MaxOutput || (err != nil && out != "") {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
		if again, _ := tmpl.Render(v); again != out {
			t.Fatalf("rendered %q, then %q", out, again)
		}
	})
}

package variables_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/engine/workflow/source"
	"github.com/united-workforce/uwf/engine/workflow/variables"
)

func schema() any {
	text := map[string]any{"type": "string"}
	file := map[string]any{"type": "object", "required": []any{"path", "lines"},
		"properties": map[string]any{"path": text, "lines": map[string]any{"type": "integer"}, "note": text}}
	return map[string]any{"type": "object", "required": []any{"$status", "title", "any", "files", "first", "list", "parts"}, "properties": map[string]any{
		"note": text, "maybe": file, "also": map[string]any{"type": "array", "items": file},
		"$status": map[string]any{"enum": []any{"done", "failed"}}, "title": text, "any": map[string]any{},
		"files": map[string]any{"type": "array", "items": file}, "first": file,
		"list": map[string]any{"type": "array"}, "parts": map[string]any{"items": file},
	}}
}

// wrong checks a template in the language and returns what is wrong with it.
func wrong(t *testing.T, check func(variables.Template), text string, start bool) []string {
	t.Helper()
	ps := &source.Problems{}
	data, err := yaml.Marshal(map[string]string{"t": text})
	if err != nil {
		t.Skip()
	}
	root := source.Read(ps, "x.yaml", data, nil)
	if root == nil || !ps.Empty() || root.Get("t") == nil || root.Get("t").Val.Scalar != text {
		t.Skip() // no text of a definition
	}
	warned := &source.Problems{}
	in := variables.Template{Problems: ps, Warnings: warned, What: "it", Text: root.Get("t").Val}
	if !start {
		in.Output = &variables.Output{Role: "a", Schema: schema(), Key: "$status", Status: "done"}
	}
	check(in)
	var out []string
	lines := strings.Count(string(data), "\n") + 1
	for _, p := range append(ps.List("x.yaml"), warned.List("x.yaml")...) {
		if p.Fix == "" || p.Line > lines || p.Col < 1 || p.Len < 1 {
			t.Errorf("%q: %+v", text, p)
		}
		out = append(out, p.Message+" ("+p.Fix+")")
	}
	return out
}

func TestBothLanguages(t *testing.T) {
	for _, tt := range []struct {
		text             string
		mustache, liquid int // mistakes
	}{
		{"text", 0, 0},
		{"{{title}} {{ first.path }} {{_body}} {{any}}", 0, 0},
		{"{{titel}} {{first.pth}} {{title.x}}", 3, 3},
		{"{{any.thing}}", 0, 0},
		{"{{$status}}", 0, 1},
		{"{{title | upcase}}", 1, 0},
		{"{{#files}}{{path}}{{/files}}", 0, 1},
		{"{{#files}}{{pth}}{{/files}}", 1, 1},
		{"{% for f in files %}{{ f.path }}{% endfor %}", 1, 0},
		{"{% for f in files %}{{ f.pth }}{% endfor %}", 1, 1},
		{"{{files.path}}", 1, 1},
		{"{{files[0].lines}}", 1, 0},
		{"{% assign x = first %}{{ x.lines }}{{ x.nothing }}", 1, 1},
		{"{{x}}{% assign x = 1 %}{{x}}", 1, 1},
		{"{{#if title}}{{title}}{{else}}{{this}}{{/if}}", 3, 1},
		{"{{#each files}}{{@index}}{{/each}}", 2, 1},
		{"100%} of {{title}} {% and %}", 0, 1},
		{"{% if title == 'x' and missing %}{% endif %}", 1, 1},
	} {
		if got := wrong(t, variables.Mustache, tt.text, false); len(got) != tt.mustache {
			t.Errorf("mustache %s: %q, want %d", tt.text, got, tt.mustache)
		}
		if got := wrong(t, variables.Liquid, tt.text, false); len(got) != tt.liquid {
			t.Errorf("Liquid %s: %q, want %d", tt.text, got, tt.liquid)
		}
	}
	for name, check := range map[string]func(variables.Template){"mustache": variables.Mustache, "Liquid": variables.Liquid} {
		// Before the first step nothing fills a template in: that is said, and no mistake.
		for text, want := range map[string]int{"Begin.": 0, "{{title}} of {{ _body }}, {{title}}": 3, strings.Repeat("{{x}} ", 99): 20} {
			got := wrong(t, check, text, true)
			if len(got) != want || slices.ContainsFunc(got, func(s string) bool { return !strings.Contains(s, "comes out empty") }) {
				t.Errorf("%s, %.20s: %q", name, text, got)
			}
		}
	}
}

// A field that an output may lack is warned of where it is written, once, unless the
// template asks for it first.
func TestOptionalFields(t *testing.T) {
	for _, tt := range []struct{ mustache, liquid, want string }{
		{"{{title}} {{_body}}", "{{ title }} {{ _body }}", ""},
		{"{{note}} {{{note}}}", "{{ note }} {{ note | upcase }}", "note"},
		{"{{#note}}Note: {{note}}{{/note}}", "{% if note %}Note: {{ note }}{% endif %}", ""},
		{"{{#title}}{{note}}{{/title}}", "{% if title %}{{ note }}{% endif %}", "note"},
		{"{{#note}}a note{{/note}} {{note}}", "{% if note %}a note{% endif %} {{ note }}", "note"},
		{"{{note}}{{^note}}none{{/note}}", `{{ note | default: "none" }}`, ""},
		{"{{maybe}}", "{{ maybe }}", "maybe"},
		{"{{maybe.path}}", "{{ maybe.path }}", "maybe"},
		{"{{#maybe}}{{path}} {{maybe.path}}{{/maybe}}", "{% if maybe %}{{ maybe.path }}{% endif %}", ""},
		{"{{#maybe.path}}{{maybe.path}}{{/maybe.path}}", "{% if maybe.path %}{{ maybe.path }}{% endif %}", ""},
		{"{{first.path}}{{first.note}}", "{{ first.path }}{{ first.note }}", "first.note"},
		{"{{#first.note}}{{first.note}}{{/first.note}}", "{% if first.note %}{{ first.note }}{% endif %}", ""},
		{"{{#maybe}}{{maybe.note}}{{/maybe}}", "{% if maybe %}{{ maybe.note }}{% endif %}", "maybe.note"},
		{"{{also}}", "{{ also }}", "also"},
		{"{{#also}}{{path}}{{/also}}", "{% for f in also %}{{ f.path }}{{ forloop.index }}{% endfor %}", ""},
		{"{{#files}}{{note}}{{/files}}", "", "note"},
		{"", "{% for note in files %}{{ note.path }}{{ note.note }}{% endfor %}", "note.note"},
		{"{{#files}}{{#note}}{{note}}{{/note}}{{/files}}", "{% for f in files %}{% if f.note %}{{ f.note }}{% endif %}{% endfor %}", ""},
		{"", "{{ files[0].path }}{{ files[0].note }}", "files[0].note"},
		{"", "{% unless note %}none{% else %}{{ note }}{% endunless %}", ""},
		{"", "{% if title %}{% elsif note %}{{ note }}{% endif %}", ""},
		{"", `{% case note %}{% when "x" %}{{ note }}{% endcase %}`, ""},
		{"", "{% assign x = note %}{{ x }}", ""},
		{"", "{% capture x %}{{ note }}{% endcapture %}", "note"},
		{"{{titel}}{{note.x}}", "{{ titel }}{{ note.x }}", "-"}, // wrong, which is said instead
	} {
		for language, check := range map[string]func(variables.Template){tt.mustache: variables.Mustache, tt.liquid: variables.Liquid} {
			if language == "" {
				continue
			}
			got := slices.DeleteFunc(wrong(t, check, language, false), func(s string) bool { return !strings.Contains(s, "may come out empty") })
			want := fmt.Sprintf("{%% if %s %%}", tt.want)
			if language == tt.mustache {
				want = "{{#" + tt.want + "}}"
			}
			if none := strings.Trim(tt.want, "-") == ""; none && len(got) > 0 || !none && (len(got) != 1 || !strings.Contains(got[0], want)) {
				t.Errorf("%s: %q, want %q", language, got, tt.want)
			}
		}
	}
	// More than the status decides on an edge with a condition.
	if got := wrong(t, func(in variables.Template) { in.Output.Conditional = true; variables.Mustache(in) }, "{{note}}", false); len(got) > 0 {
		t.Errorf("with a condition: %q", got)
	}
}

// What is wrong is said by the rule that it breaks, not by a later one.
func TestMustacheSays(t *testing.T) {
	for _, tt := range []struct {
		text  string
		start bool
		want  string
	}{
		{"{{#if title}}{{this}}{{/if}}", false, "it: {{this}}: mustache has no this (write {{.}} for the item"},
		{"{{#each files}}{{@index}}{{/each}}", false, "it: {{@index}}: mustache has no @index (leave it out)"},
		{"a\n {{#x}}", false, "it: section {{#x}} is never closed (close it with {{/x}})"},
		{"{{.}}", true, "it: {{.}}: $START has no output to fill it with"},
		{"{{#files}}{{path}}{{/files}}", true, "it: {{files}} comes out empty"},
		{"{{title | upcase}}", true, "it: {{title | upcase}}: mustache has no filters"},
		{"{{title | upcase}}", false, "it: {{title | upcase}}: mustache has no filters"},
		{"{{list.x}}", false, "it: {{list.x}}: list is a list (use a section"},
		{"{{parts.x}}", false, "it: {{parts.x}}: parts is a list (use a section"},
	} {
		if got := wrong(t, variables.Mustache, tt.text, tt.start); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, tt.want) }) {
			t.Errorf("%s: %q, want %s", tt.text, got, tt.want)
		}
	}
}

func FuzzTemplates(f *testing.F) {
	for _, s := range []string{"{{title}}", "{{#files}}{{path}}{{/files}}", "{% for f in files %}{{ f.path }}{% endfor %}", "{{ a.b[0] | default: x }}", "{{", "{% if a", "a\n{{b}}\n\n c {{d}}", "{{^a}}{{.}}{{/a}}", "{% assign a = title %}{{ a.b }}", "ü{{é}}\r\n{{x}}"} {
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, text string, start bool) {
		wrong(t, variables.Mustache, text, start)
		wrong(t, variables.Liquid, text, start)
	})
}

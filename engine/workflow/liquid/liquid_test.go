package liquid_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/united-workforce/uwf/engine/workflow/liquid"
	"github.com/united-workforce/uwf/engine/workflow/template"
	"github.com/united-workforce/uwf/internal/testmem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testmem.Spend(m)) }

func output() map[string]any {
	return map[string]any{
		"plan": "Add <auth> & \"more\"", "n": int64(3), "f": 1.5, "big": float64(1e6), "yes": true, "no": false, "null": nil,
		"list": []any{"a", "b", "a"}, "files": []any{map[string]any{"path": "x.go", "lines": int64(2)}, map[string]any{"path": "y.go", "lines": int64(1)}},
		"review": map[string]any{"comments": "Fix it.", "by": []any{"me"}}, "_body": "# Body", "empty_list": []any{}, "word": "élan",
	}
}

func TestRender(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"plain { text } %":          "plain { text } %",
		"a{{ missing }}{{ null }}b": "ab",
		"{{ review.nothing }}{{ files[7].path }}.": ".",
		"{{ plan }}":                          `Add <auth> & "more"`,
		"{{plan}}{{- n -}} x":                 `Add <auth> & "more"3x`,
		"{{ review.comments }}":               "Fix it.",
		"{{ review[\"comments\"] }}":          "Fix it.",
		"{{ files[0].path }}":                 "x.go",
		"{{ files.last.path }}":               "y.go",
		"{{ list.size }}{{ list[-1] }}":       "3a",
		"{{ n }} {{ f }} {{ big }} {{ yes }}": "3 1.5 1000000 true",
		"{{ review }}":                        `{"by":["me"],"comments":"Fix it."}`,
		"{{ files | json }}":                  `[{"lines":2,"path":"x.go"},{"lines":1,"path":"y.go"}]`,
		"{{ list | join: \", \" | upcase }}":  "A, B, A",
		"{{ list | uniq | size }}":            "2",
		"{{ null | default: \"none\" }}{{ missing | default: 'none' }}":                                               "nonenone",
		"{{ word | capitalize }} {{ plan | truncate: 6 }}":                                                            "Élan Add...",
		"{{ plan | replace: \"auth\", \"x\" }}":                                                                       `Add <x> & "more"`,
		"{{ n | times: 2 | plus: 1 }}":                                                                                "7",
		"{{ _body }}":                                                                                                 "# Body",
		"{% if yes %}y{% else %}n{% endif %}{% if no %}y{% elsif n > 2 %}e{% endif %}":                                "ye",
		"{% unless no %}u{% endunless %}{% if missing %}x{% else %}-{% endif %}":                                      "u-",
		"{% if list contains \"b\" and n == 3 or missing %}c{% endif %}":                                              "c",
		"{% case n %}{% when 1, 2 %}low{% when 3 %}three{% else %}high{% endcase %}":                                  "three",
		"{% for f in files %}{{ forloop.index }}. {{ f.path }}{% unless forloop.last %}, {% endunless %}{% endfor %}": "1. x.go, 2. y.go",
		"{% for x in empty_list %}x{% else %}none{% endfor %}":                                                        "none",
		"{% for x in list reversed limit: 2 offset: 1 %}{{ x }}{% endfor %}":                                          "ab",
		"{% for i in (1..n) %}{{ i }}{% endfor %}":                                                                    "123",
		"{% for p in review %}{{ p[0] }}={{ p[1] }};{% endfor %}":                                                     "by=me;comments=Fix it.;",
		"{% for x in list %}{% if x == \"b\" %}{% break %}{% endif %}{{ x }}{% endfor %}":                             "a",
		"{% for x in list %}{% if x == \"a\" %}{% continue %}{% endif %}{{ x }}{% endfor %}":                          "b",
		"{% for x in list %}{% cycle \"-\", \"+\" %}{% endfor %}":                                                     "-+-",
		"{% for x in list %}{% for y in list %}{{ y }}{% break %}{% endfor %}{% endfor %}{{ forloop | json }}":        "aaanull",
		"{% assign x = plan | size %}{{ x }}{% capture y %}<{{ x }}>{% endcapture %}{{ y }}":                          "19<19>",
		"{% raw %}{{ plan }} {% if %}{% endraw %}{% comment %}{{ x {% if %}{% endcomment %}":                          "{{ plan }} {% if %}",
		"a\n{%- if yes -%}\n b \n{%- endif -%}\nc":                                                                    "abc",
	} {
		tmpl, err := liquid.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for range 2 { // rendering leaves nothing behind
			if got, err := tmpl.Render(output()); err != nil || got != want {
				t.Errorf("%s = %q, %v; want %q", text, got, err, want)
			}
		}
	}
}

func TestRenderFails(t *testing.T) {
	data := output()
	data["parts"] = []any{slices.Repeat([]any{strings.Repeat("x", 1<<20)}, 7)}
	data["quotes"] = strings.Repeat(`"`, 900_000)
	for text, want := range map[string]string{
		"{% capture x %}" + strings.Repeat("{{ quotes }}", 22) + "{% endcapture %}{% assign y = x | split: ',' | uniq %}": "the result is too long",
		"line\n{{ '%' | url_decode }}":                                                                        "line 2",
		"{{ '%' | url_decode }}":                                                                              "invalid URL escape",
		"{{ n | slice: 5 }}":                                                                                  "",
		"{{ plan | slice: 99 }}":                                                                              "",
		"{% for x in '%' | url_decode %}{% endfor %}":                                                         "invalid URL escape",
		"{% for x in list %}{{ '%' | url_decode }}{% endfor %}":                                               "invalid URL escape",
		"{% if '%' | url_decode %}{% endif %}":                                                                "invalid URL escape",
		"{% capture x %}{{ '%' | url_decode }}{% endcapture %}":                                               "invalid URL escape",
		"{% assign p = parts[0] | concat: parts[0] %}{{ p | concat: p | concat: p | json }}":                  "the result is too long",
		"{% assign p = parts[0] | concat: parts[0] %}{{ p | concat: p | concat: p | join }}":                  "the result is too long",
		"{{ parts[0] | concat: parts[0] | concat: parts[0] | concat: parts[0] | concat: parts[0] | upcase }}": "the result is too long",
		"{% assign p = parts | concat: parts | concat: parts %}{% assign x = p | concat: p | json %}":         "the result is too long",
	} {
		tmpl, err := liquid.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := tmpl.Render(data); want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s = %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestRenderEnds(t *testing.T) {
	data := output()
	long := make([]any, 3000)
	for i := range long {
		long[i] = map[string]any{"i": int64(i)}
	}
	data["long"], data["text"], data["huge"] = long, strings.Repeat("x", 1<<19), int64(1)<<40
	double := strings.Repeat("{% assign text = text | append: text %}", 30)
	for text, want := range map[string]error{
		"{% for i in (1..1000000000000) %}{% endfor %}":                            template.ErrTooLong,
		"{% for i in (1..huge) %}{% endfor %}":                                     template.ErrTooLong,
		"{% for a in long %}{% for b in long %}{% endfor %}{% endfor %}":           template.ErrTooLong,
		"{{ text }}{{ text }}{{ text }}":                                           template.ErrTooLong,
		double:                                                                     template.ErrTooLong,
		strings.Repeat("{% assign long = long | concat: long %}", 30):              template.ErrTooLong,
		"{% for a in long %}{% capture x %}{{ text }}{% endcapture %}{% endfor %}": template.ErrTooLong,
		"{{ text | replace: \"x\", text | size }}":                                 nil,
		"{% assign n = long | map: \"i\" | join: text %}":                          nil,
		"{% for a in long %}{% assign n = long | uniq %}{% endfor %}":              template.ErrTooLong,
	} {
		tmpl, err := liquid.Parse(text)
		if err != nil {
			t.Errorf("%.60s: %v", text, err)
			continue
		}
		// What ends them must not be the clock, which a busy machine outruns.
		tmpl.SetClock(func() time.Time { return time.Time{} })
		_, err = tmpl.Render(data)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}

// The clock is for what makes few turns and bytes, and takes long all the same.
func TestRenderTakesTooLong(t *testing.T) {
	tmpl, err := liquid.Parse("{% for i in (1..200) %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	for tick, want := range map[time.Duration]error{liquid.MaxTime: liquid.ErrTimeout, liquid.MaxTime / 1000: nil} {
		var now time.Time
		tmpl.SetClock(func() time.Time { now = now.Add(tick); return now })
		if _, err := tmpl.Render(nil); !errors.Is(err, want) {
			t.Errorf("%v each time that it is asked for: %v, want %v", tick, err, want)
		}
	}
}

// The library is asked what it thinks of each part, whatever was read before.
func TestCompileFails(t *testing.T) {
	for text, want := range map[string]string{
		"{{ a b }}":                               `syntax error in "a b"`,
		"{% assign a b %}":                        `syntax error in "%assign a b"`,
		"{% cycle a %}":                           `syntax error in "{%cycle a"`,
		"{% if a b %}{% endif %}":                 `syntax error in "a b"`,
		"{% if a %}{% elsif a b %}{% endif %}":    `syntax error in "a b"`,
		"{% case a b %}{% endcase %}":             `syntax error in "a b"`,
		"{% case a %}{% when a b %}{% endcase %}": `syntax error in "{%when a b"`,
		"{% for a b %}{% endfor %}":               `syntax error in "%loop a b"`,
	} {
		if err := liquid.Compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if got, err := liquid.Unread(text).Render(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s renders as %q, %v; want %s", text, got, err, want)
		}
	}
	if got, err := liquid.Unread(`{% cycle "a" %}`).Render(nil); err == nil || !strings.Contains(err.Error(), "cycle must be within a loop") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRenderRefusesWhatIsNoData(t *testing.T) {
	tmpl, err := liquid.Parse("{{ x }}")
	if err != nil {
		t.Fatal(err)
	}
	var deep any = "x"
	for range 100 {
		deep = []any{deep}
	}
	for name, tt := range map[string]struct {
		v    any
		want string
	}{
		"func":     {func() {}, "a Go func()"},
		"deep":     {deep, "nested deeper than 100 levels"},
		"infinite": {math.Inf(-1), "the number -Inf"},
		"nan":      {math.NaN(), "the number NaN"},
		"number":   {json.Number("1e999"), "number \"1e999\" is none, or beyond the range of a double"},
		"in list":  {[]any{func() {}}, "a Go func()"},
		"in map":   {map[string]any{"y": func() {}}, "a Go func()"},
	} {
		if got, err := tmpl.Render(map[string]any{"x": tt.v}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: rendered %q, %v; want %s", name, got, err, tt.want)
		}
	}
}

// What has become too long is not written on: the clock is not asked any more.
func TestRenderStops(t *testing.T) {
	const more = 10_000
	tmpl, err := liquid.Parse("{{ text }}{{ text }}" + strings.Repeat("{{ n }}", more))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	tmpl.SetClock(func() time.Time { asked++; return time.Time{} })
	data := map[string]any{"text": strings.Repeat("x", template.MaxOutput), "n": "1"}
	if _, err := tmpl.Render(data); !errors.Is(err, template.ErrTooLong) || asked > more/64/2 {
		t.Errorf("%v, the clock was asked %d times", err, asked)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a {{ b":                 "2+4 a {{ is never closed",
		"a\n{% if x":             "2+7 a {% is never closed",
		"{{ a }} {{ b }":         "8+6 a {{ is never closed",
		"{{}} {{ a }}":           "0+4 empty tag",
		"{% %}":                  "0+5 empty tag",
		"{% # note %}":           "0+12 is no tag",
		"x {% if a %} b":         "2+10 {% if %} is never closed",
		"{% if a %}{% endfor %}": "10+12 closes no block",
		"{% endif %}":            "0+11 closes no block",
		"{% else %}":             "0+10 must stand directly inside",
		"{% for a in b %}{% if a %}{% else %}{% else %}{% endif %}{% endfor %}": "36+10 never reached",
		"{% include \"x\" %}":                "0+17 can't include",
		"{% render 'x' %}":                   "0+16 can't include",
		"{% tablerow a in b %}":              "0+21 is no tag",
		"{% wat %}":                          "0+9 is no tag",
		"{{ $status }}":                      "0+13 can't have a $",
		"{{ a b }}":                          "0+9 not a Liquid expression (write a name",
		"{{ a && b }}":                       "0+12 not a Liquid expression (write `and`",
		"{{ a {{ b }}":                       "0+4 a {{ is never closed",
		"{% if a {% endif %}":                "0+7 a {% is never closed",
		"{{{ a }}}":                          "0+8 is mustache",
		"{{& a }}":                           "0+8 is mustache",
		"{{# a }}":                           "0+8 is mustache",
		"{{^ a }}":                           "0+8 is mustache",
		"{{/ a }}":                           "0+8 is mustache",
		"{{ a[0 }}":                          "4+1 a [ is never closed",
		"{% if a == blank %}{% endif %}":     "11+5 blank is not supported",
		"{% for x in\tlist %}{% endfor %}":   "0+19 not a loop",
		"{% for null in list %}{% endfor %}": "0+22 not a loop",
		"{% for x in a b %}{% endfor %}":     "0+18 not a loop",
		"{% for x in list limit: (1..2) %}{% endfor %}": "26+2 range",
		"{% for x in (1..empty) %}{% endfor %}":         "16+5 empty is not supported",
		"{% if a %}{% else b %}{% endif %}":             "10+12 else takes nothing",
		"{% assign null = 1 %}":                         "0+21 not an assignment",
		"{% assign a = b c %}":                          "0+20 not an assignment",
		"{% for a in b %}{% cycle 1 %}{% endfor %}":     "16+13 cycle takes texts",
		"{{ a | nope }}":                                "7+4 no filter \"nope\"",
		"{{ \"now\" | date: \"%Y\" }}":                  "11+4 clock",
		"{{ (1..9) | join }}":                           "5+2 range",
		"{% for x in (1..9) | reverse %}{% endfor %}":   "14+2 range",
		"{% if a == empty %}{% endif %}":                "11+5 empty is not supported",
		"{% assign = 1 %}":                              "0+16 not an assignment",
		"{% assign a b %}":                              "0+16 not an assignment",
		"{% for a %}{% endfor %}":                       "0+11 not a loop",
		"{% capture a b %}{% endcapture %}":             "0+17 one name",
		"{% break %}":                                   "0+11 outside a loop",
		"{{ 99999999999999999999 }}":                    "0+26 not a Liquid expression",
		"{{ 'a }}":                                      "3+2 quote",
		"{% case a %}{% when %}{% endcase %}":           "12+10 not a list of values",
		strings.Repeat("{% if a %}", 40):                "320+10 deeper",
	} {
		_, err := liquid.Parse(text)
		var bad *liquid.SyntaxError
		if !errors.As(err, &bad) {
			t.Errorf("%.50q: %v", text, err)
			continue
		}
		where, words, _ := strings.Cut(want, " ")
		if got := fmt.Sprintf("%d+%d", bad.Offset, bad.Length); got != where || !strings.Contains(bad.Error(), words) || bad.Fix == "" {
			t.Errorf("%.50q: %s %v, want %s", text, got, bad, want)
		}
	}
}

func TestItems(t *testing.T) {
	text := `{{ a.b["c"][0].d | default: e[f] }}{% assign x = a.b %}{% assign y = a | size %}{% for i in a.list limit: n %}{{ i.z }}{% endfor %}{% if p and "q" == r %}{% elsif s %}{{ t }}{% endif %}{% capture w %}{{ u }}{% endcapture %}{% case v %}{% when 1, k %}{% endcase %}{% raw %}{{ no }}{% endraw %}`
	tmpl, err := liquid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var show func(items []liquid.Item) string
	show = func(items []liquid.Item) string {
		var out []string
		for _, i := range items {
			var s []string
			for _, r := range i.Reads {
				open := ""
				if r.Open {
					open = "*"
				}
				s = append(s, r.String()+open)
				if got := text[r.Offset : r.Offset+r.Length]; !strings.HasPrefix(got, r.Path[0]) {
					t.Errorf("%s is at %q", r, got)
				}
			}
			one := strings.Join(s, ",")
			if i.Sets != "" {
				one += ">" + i.Sets
			}
			if i.From != nil {
				one += "<" + i.From.String()
			}
			if len(i.Body) > 0 {
				one += "(" + show(i.Body) + ")"
			}
			out = append(out, one)
		}
		return strings.Join(out, " ")
	}
	want := "a.b.c[].d,f,e* a.b>x<a.b a>y a.list,n>i<a.list(i.z) p,r(s t) >w(u) v(k)"
	if got := show(tmpl.Items()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What is stored can be larger than any file that a definition is read from.
func TestLargeTemplates(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("{{ n }}", 200_000):                                          "limit",
		"{{ n" + strings.Repeat("[n", 20_000) + strings.Repeat("]", 20_000) + " }}": "split",
		"{% if " + strings.Repeat("n and ", 2000) + "n %}x{% endif %}":              "split",
		strings.Repeat("{{ n }}", 30_000):                                           "",
		"{% raw %}{{ " + strings.Repeat("n", 10_000) + " }}{% endraw %}":            "",
		strings.Repeat("text ", 50_000):                                             "",
	} {
		_, err := liquid.Parse(text)
		var bad *liquid.SyntaxError
		if (err != nil) != (want != "") || err != nil && (!errors.As(err, &bad) || !strings.Contains(bad.Error(), want)) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

func FuzzLiquid(f *testing.F) {
	for _, s := range []string{"{{ a.b[0] | default: 'x' }}", "{% if a %}b{% elsif c %}d{% else %}e{% endif %}", "{% for i in (1..3) %}{{ i }}{% endfor %}", "{{ a", "{% raw %}{{{% endraw %}",
		"{% assign a = b | split: ',' %}{{ a | join }}", "{% capture x %}y{% endcapture %}{{x}}", "{% case a %}{% when 1 %}{% endcase %}", "{{- a -}}", "{% comment %}", "\xff{{\x00}}", "{{ a | truncatewords: 9999 }}", "{{ 1 | round: 99 }}"} {
		f.Add(s)
	}
	data := output()
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := liquid.Parse(text)
		var bad *liquid.SyntaxError
		if err != nil {
			if !errors.As(err, &bad) || bad.Fix == "" || bad.Offset < -1 || bad.Offset > len(text) || bad.Length < 1 {
				t.Fatalf("%#v", err)
			}
			return
		}
		out, err := tmpl.Render(data)
		if err == nil && !strings.Contains(text, "{{") && !strings.Contains(text, "{%") && out != text {
			t.Fatalf("%q renders as %q", text, out)
		}
	})
}

package output

import (
	"bytes"
	"strings"
	"testing"
)

type thing struct {
	Name  string   `json:"name"`
	Big   int64    `json:"big"`
	Cost  float64  `json:"cost"`
	List  []string `json:"list"`
	Empty *thing   `json:"empty"`
}

var things = []thing{
	{Name: "one\x1b]0;owned\a \u202e", Big: 9007199254740993, Cost: 0.25, List: []string{"a", "b"}},
	{Name: "two\nlines", List: []string{}},
}

func query(t *testing.T, expr string) (string, error) {
	t.Helper()
	q, err := ParseQuery(expr)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = Printer{Out: &b, Query: q}.Print(things, func(*Writer) { t.Error("text was asked for") })
	return b.String(), err
}

func TestQuery(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{".[1].name", "two\nlines\n"},
		{".[0].name", `one\x1b]0;owned\x07 \u202e` + "\n"},
		{".[0].name | tojson", `"one\u001b]0;owned\u0007 \u202e"` + "\n"},
		{".[].list", "[\"a\",\"b\"]\n[]\n"},
		{"[.[0].name]", `["one\u001b]0;owned\u0007 \u202e"]` + "\n"},
		{".[0].big", "9007199254740993\n"},
		{".[0].big + 1", "9007199254740994\n"},
		{".[0].cost", "0.25\n"},
		{".[0].empty", "null\n"},
		{".[] | select(.cost > 0) | .cost", "0.25\n"},
		{"length", "2\n"},
		{"empty", ""},
		{"1, halt, 2", "1\n"},
		{"env", "{}\n"},
		{"$ENV.PATH", "null\n"},
		{"9999999999999999999999", "9999999999999999999999\n"},
	} {
		if got, err := query(t, tt.expr); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.expr, got, err, tt.want)
		}
	}
}

func TestQueryMistakes(t *testing.T) {
	for _, tt := range []struct{ expr, want string }{
		{".[0", `the expression ".[0", at character 4: it ends too early`},
		{".a | | .b", `at character 6: "|" is not expected` + "\n  .a | | .b\n       ^"},
		{`"ä" | | 1`, "at character 7:"},
		{".[0].name.x", `the expression ".[0].name.x": expected an object but got: string`},
		{"nosuch", "nosuch/0"},
		{"input", "input"},
		{`error("\u001b")`, "the expression"},
		{`import "x" as x; 1`, "x"},
		{strings.Repeat("x", maxQuery+1), "longer than"},
	} {
		if got, err := query(t, tt.expr); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.60s: %q, %v, want %q", tt.expr, got, err, tt.want)
		}
	}
}

// What comes before an error is printed; the error says the rest.
func TestQueryPrintsUntilItFails(t *testing.T) {
	if got, err := query(t, ".[].cost, error"); got != "0.25\n0\n" || err == nil {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{".", ".[0]", "..|strings", ".[", "try error catch .", "def f: f; 1", "\"\\(1)\"", "@sh", "[limit(3; repeat(1))]", "|", "{a:1}|.a as $x|$x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		if strings.ContainsAny(expr, "0123456789") && len(expr) > 40 || strings.Contains(expr, "range") || strings.Contains(expr, "repeat") || strings.Contains(expr, "def") || strings.Contains(expr, "recurse") || strings.Contains(expr, "*") || strings.Contains(expr, "until") || strings.Contains(expr, "while") || strings.Contains(expr, "inf") {
			t.Skip("it may be a circle, which only time ends")
		}
		got, err := query(t, expr)
		for _, s := range []string{got, errText(err)} {
			if strings.ContainsAny(Clean(s), "\x1b\u202e\x07") {
				t.Errorf("%q: %q", expr, s)
			}
		}
		if strings.ContainsAny(got, "\x1b\u202e\x07\r") {
			t.Errorf("%q prints escapes: %q", expr, got)
		}
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

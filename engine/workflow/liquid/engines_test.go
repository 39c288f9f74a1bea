package liquid_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow/liquid"
)

// decided are the templates that uwf renders otherwise than liquidjs, with the row of
// docs/workflows.md that says so.
var decided = map[string]string{
	`{{ files | map: "missing" | join: ", " }}`:    "a list of missing values",
	"{{ review | json }}":                          "an object's order",
	"{% for p in review %}{{ p[0] }};{% endfor %}": "an object's order",
	"{{ files | first }}":                          "an object as text",
	"{{ title | first }}":                          "a character of a text",
	"{{ title[0] }}":                               "a character of a text",
}

// TestAnswersOfLiquidJS holds uwf against what liquidjs answers (.ci/tools/engines): the
// same, or a refusal that names the way round, or a row of docs/workflows.md.
func TestAnswersOfLiquidJS(t *testing.T) {
	var corpus struct {
		Input map[string]any
		Cases []string
	}
	readJSON(t, "testdata/corpus.json", &corpus)
	var answers map[string]struct {
		Answer *string
		Error  string
	}
	readJSON(t, "testdata/answers.json", &answers)
	if len(corpus.Cases) < 240 || len(answers) != len(corpus.Cases) {
		t.Fatalf("%d templates with %d answers", len(corpus.Cases), len(answers))
	}

	for _, source := range corpus.Cases {
		want := answers[source]
		tmpl, err := liquid.Parse(source)
		var bad *liquid.SyntaxError
		if errors.As(err, &bad) {
			if bad.Fix == "" {
				t.Errorf("%s: refused without a way round: %v", source, bad)
			}
			continue
		}
		got, err := tmpl.Render(corpus.Input)
		same := err != nil && want.Answer == nil || err == nil && want.Answer != nil && got == *want.Answer
		row := decided[source]
		if !same && row == "" {
			wanted, _ := json.Marshal(want)
			t.Errorf("%s: %q %v; liquidjs: %s", source, got, err, wanted)
		}
		if row != "" && same {
			t.Errorf("%s renders as liquidjs does: take it out of the decisions", source)
		}
	}
	checkDecisions(t, "templates", func(source string) bool { _, ok := answers[source]; return ok })
}

// checkDecisions wants a case for each row of a table in docs/workflows.md, and a row
// for each decision.
func checkDecisions(t *testing.T, table string, known func(source string) bool) {
	t.Helper()
	data, err := os.ReadFile("../../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(data), "| in "+table+" |")
	rows, _, _ = strings.Cut(rows, "\n\n")

	said := map[string]bool{}
	for _, line := range strings.Split(rows, "\n")[2:] {
		said[strings.TrimSpace(strings.Split(line, "|")[1])] = true
	}
	used := map[string]bool{}
	for source, row := range decided {
		used[row] = true
		if !said[row] || !known(source) {
			t.Errorf("%s: no such case, or no row %q in docs/workflows.md", source, row)
		}
	}
	if len(used) != len(said) {
		t.Errorf("docs/workflows.md has %d rows about %s, and %d are tried", len(said), table, len(used))
	}
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

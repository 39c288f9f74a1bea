package liquid_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow/liquid"
	"github.com/united-workforce/uwf/internal/answertest"
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
	`{{ files | map: missing | join: "," }}`:       "a list of missing values",

	"{{ words | truncate: nil1 }}":                             "null as an argument",
	"{{ words | truncate: 10, nil1 }}":                         "null as an argument",
	"{{ words | truncatewords: nil1 }}":                        "null as an argument",
	"{{ words | truncatewords: 2, nil1 }}":                     "null as an argument",
	"{{ title | slice: 0, nil1 }}":                             "null as an argument",
	`{{ tags | slice: 0, nil1 | join: "," }}`:                  "null as an argument",
	`{{ files | where: "new", nil1 | size }}`:                  "null as an argument",
	"{% for f in files limit: nil1 %}{{ f.path }}{% endfor %}": "null as an argument",
	"{{ words | truncatewords: review }}":                      "a word count that is not a number",
	`{{ words | truncatewords: "two" }}`:                       "a word count that is not a number",
	"{{ words | truncatewords: tags }}":                        "a word count that is not a number",
	`{{ tags | slice: 1, "1" | join: "," }}`:                   "a text as the length of a part",
}

// wantRefusals is how many templates of the corpus uwf refuses although liquidjs renders them.
const wantRefusals = 18

// TestAnswersOfLiquidJS holds uwf against what liquidjs answers (.ci/tools/engines): the
// same, or a refusal that names the way round, or a row of docs/workflows.md.
func TestAnswersOfLiquidJS(t *testing.T) {
	var corpus struct {
		Input map[string]any
		Cases []string
	}
	answertest.ReadJSON(t, "testdata/corpus.json", &corpus)
	var answers map[string]struct {
		Answer *string
		Error  string
	}
	answertest.ReadJSON(t, "testdata/answers.json", &answers)
	if len(corpus.Cases) < 430 || len(answers) != len(corpus.Cases) {
		t.Fatalf("%d templates with %d answers", len(corpus.Cases), len(answers))
	}

	refusals := 0
	for _, source := range corpus.Cases {
		want := answers[source]
		tmpl, err := liquid.Parse(source)
		var bad *liquid.SyntaxError
		if errors.As(err, &bad) {
			if bad.Fix == "" {
				t.Errorf("%s: refused without a way round: %v", source, bad)
			}
			if want.Answer != nil {
				refusals++
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
	if refusals != wantRefusals {
		t.Errorf("%d templates that liquidjs renders are refused, want %d", refusals, wantRefusals)
	}
	answertest.CheckDecisions(t, "templates", decided, func(source string) bool { _, ok := answers[source]; return ok })
}

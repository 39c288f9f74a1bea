package paths_test

import (
	"slices"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/paths"
	"github.com/united-workforce/uwf/engine/workflow"
)

// TestMakeTakesEdges: for each edge with a condition there is a path, if values of the schema
// make the condition true; the others are named.
func TestMakeTakesEdges(t *testing.T) {
	const text = `
name: edges
description: d
roles:
  a:
    description: d
    systemPrompt: s
    outputSchema:
      type: object
      properties:
        approved: {type: boolean}
        risk: {enum: [low, middle, high]}
        score: {type: integer, minimum: 1, maximum: 10}
        note: {type: string}
        files: {type: array, items: {type: string}}
        ask: {type: string}
      required: [approved, risk, score, note, files]
  b: {description: d, systemPrompt: s, outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}}
conditions:
  refused: steps[-1].output.approved = false
  risky: steps[-1].output.risk = "high" and steps[-1].output.score > 7
  wontfix: steps[-1].output.note = 'wontfix'
  empty: $count(steps[-1].output.files) = 0
  silent: $not($exists(steps[-1].output.ask))
  often: $count(steps[role = "a"]) > 3
graph:
  $START: [{role: a}]
  a:
    - {role: $END, condition: often}
    - {role: b, condition: refused}
    - {role: b, condition: risky}
    - {role: $SUSPEND, condition: wontfix}
    - {role: a, condition: empty}
    - {role: b, condition: silent}
    - {role: $END, condition: null}
  b: [{role: a}]
`
	d, err := workflow.Parse("edges.yaml", []byte(text), workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cases := paths.Make(d)
	var names []string
	for _, c := range cases {
		names = append(names, c.Name)
		if f := paths.Try(d, c); f != nil {
			t.Errorf("%s: %+v", c.Name, f)
		}
	}
	for _, want := range []string{"a refused", "a risky", "a wontfix", "a empty", "a silent"} {
		if !slices.Contains(names, want) {
			t.Errorf("no path for %s among %q", want, names)
		}
	}
	if left := paths.Untried(d, cases); !slices.Equal(left, []string{"a often"}) {
		t.Errorf("untried: %q", left)
	}
	if left := paths.Untried(d, cases[:1]); len(left) < 5 {
		t.Errorf("with one path only %q are untried", left)
	}
}

package condition_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow/condition"
	"github.com/united-workforce/uwf/internal/answertest"
)

// decided are the conditions that uwf decides otherwise than jsonata, with the row of
// docs/workflows.md that says so.
var decided = map[string]string{
	"$count(steps[output.score]) = 0":    "a field that holds a number as a predicate",
	"$count(steps[output.estimate]) = 1": "a field that holds a number as a predicate",
	"steps{role: $count($)}.coder = 2":   "a group before a dot",
	`steps@$s.$s.role[0] = "planner"`:    "a position after a join by `@`",
}

// wantRefusals is how many conditions of the corpus uwf refuses although jsonata answers them.
const wantRefusals = 12

// TestAnswersOfJSONata holds uwf against what jsonata answers (.ci/tools/engines): the
// same, or a refusal that names the way round, or a row of docs/workflows.md.
func TestAnswersOfJSONata(t *testing.T) {
	var corpus struct {
		Input struct {
			Start map[string]any
			Steps []map[string]any
		}
		Cases []string
	}
	answertest.ReadJSON(t, "testdata/corpus.json", &corpus)
	var answers map[string]struct {
		Answer *bool
		Error  string
	}
	answertest.ReadJSON(t, "testdata/answers.json", &answers)
	if len(corpus.Cases) < 279 || len(answers) != len(corpus.Cases) {
		t.Fatalf("%d conditions with %d answers", len(corpus.Cases), len(answers))
	}

	var steps []condition.Step
	for _, s := range corpus.Input.Steps {
		body, _ := s["content"].(string)
		steps = append(steps, condition.Step{Role: s["role"].(string), Output: s["output"].(map[string]any), Body: body, Node: s})
	}
	thread := newThread(t, corpus.Input.Start, steps)

	refusals := 0
	for _, source := range corpus.Cases {
		want := answers[source]
		differs, refused := compareAnswer(thread, source, want.Answer)
		if refused && want.Answer != nil {
			refusals++
		}
		row := decided[source]
		if differs != "" && row == "" {
			t.Errorf("%s: %s; jsonata: %v %s", source, differs, show(want.Answer), want.Error)
		}
		if row != "" && differs == "" && !refused {
			t.Errorf("%s answers as jsonata does: take it out of the decisions", source)
		}
	}
	if refusals != wantRefusals {
		t.Errorf("%d conditions that jsonata answers are refused, want %d", refusals, wantRefusals)
	}
	answertest.CheckDecisions(t, "conditions", decided, func(source string) bool { _, ok := answers[source]; return ok })
}

// compareAnswer says how uwf differs from an answer; nil stands for an error. What
// validation refuses does not differ.
func compareAnswer(thread *condition.Thread, source string, want *bool) (differs string, refused bool) {
	c, err := condition.Compile(source)
	var bad *condition.SyntaxError
	switch {
	case errors.As(err, &bad) && bad.Fix == "":
		return "refused without a way round: " + bad.Error(), true
	case err != nil, len(c.Suspects) > 0:
		return "", true
	}
	got, err := c.Holds(thread)
	switch {
	case err != nil && want != nil:
		return err.Error(), false
	case err == nil && want == nil:
		return show(&got), false
	case err == nil && got != *want:
		return show(&got), false
	}
	return "", false
}

func show(answer *bool) string {
	data, _ := json.Marshal(answer)
	return strings.ReplaceAll(string(data), "null", "an error")
}

// What a short expression would make is refused before it is made, alone and as a product.
func TestLargeResultsAreRefused(t *testing.T) {
	start := map[string]any{"prompt": strings.Repeat("a", 1<<20), "zeros": strings.Repeat("0", 1<<20)}
	thread := newThread(t, start, []condition.Step{{Role: "r", Body: "short"}})
	const doubled = `($f := function($s, $n){$n = 0 ? $s : $f({"a": $s, "b": $s}, $n - 1)}; `
	for _, source := range []string{
		"$count([1..1000000000]) > 1", "$count([1..2000000]) > 1", "$count([1..3].$count([1..600000])) > 1",
		"($n := 100000000; $exists([1, 0..$n]))",
		`$fromMillis(0, "[M01,1000000000]") = ""`, `$fromMillis(0, "[D01, 1 0 0 0 0 0 0 0 0]") = ""`,
		`$formatInteger(1e15, "I") = ""`, `$formatInteger(1e12, "i;o") = ""`,
		"$formatInteger(1, start.zeros) = ''", "$formatNumber(1, start.zeros) = ''", "$formatNumber(1, '0e' & start.zeros) = ''",
		"$join($split(start.prompt, ''), '" + strings.Repeat("x", 128) + "') = ''",
		"$string([1..1000000], true) = ''", "$string([1..100].($$.start)) = ''", "('' & [1..100].($$.start)) = ''", "([1..100].($$.start) & '') = ''",
		"$string(" + strings.Repeat("[", 50) + "1..500000" + strings.Repeat("]", 50) + ", true) = ''",
		"$replace($substring(start.prompt, 0, 30000), 'a', $pad('x', 8000)) = ''",
		"($f := function($s, $n){$n = 0 ? $s : $f($s & $s, $n - 1)}; $f('x', 40) = '')",
		doubled + "('' & $f('x', 26)) = '')", doubled + "$string($f('x', 26)) = '')", doubled + "$count([start, start]^(>'' & $f('x', 26))) = 0)",
		doubled + "$count($distinct([$f('x', 24), $f('y', 24)])) = 0)",
	} {
		c, err := condition.Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = c.Holds(thread)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, condition.ErrTooLarge) {
			t.Errorf("%.80s: %v", source, err)
		}
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 120 {
			t.Errorf("%.80s: %d MB", source, made)
		}
	}
}

// TestLargeResultsAreMade: results below the limits are made, and memory that is no longer used is not counted.
func TestLargeResultsAreMade(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	thread := newThread(t, map[string]any{"prompt": strings.Repeat("a", 1<<20)}, []condition.Step{{Role: "r", Body: "short"}})
	for _, source := range []string{
		"$length($pad('x', 10000)) = 10000", "$length($join($split($substring(start.prompt, 0, 500000), ''), ', ')) = 1499998",
		"$length(start.prompt & start.prompt) = 2097152", "$count([1..50000].('x' & $)) = 50000",
		"$count([1..200].$length($$.start.prompt & 'x')) = 200",
		`$formatInteger(1e6, "I") = $join([1..1000].("M"))`, `$fromMillis(0, "[M01,9999]") != ""`,
	} {
		if holds, err := compileExpression(t, source).Holds(thread); err != nil || !holds {
			t.Errorf("%s: %v, %v", source, holds, err)
		}
	}
}

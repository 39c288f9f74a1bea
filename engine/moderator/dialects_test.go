package moderator_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/condition"
)

func good(t testing.TB, name string) *workflow.Definition {
	t.Helper()
	data, err := os.ReadFile("../workflow/testdata/good/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

func steps(outputs ...moderator.Output) moderator.Thread {
	return moderator.Thread{Start: map[string]any{"prompt": "about b"}, Steps: outputs}
}

// decided is a decision in one line.
func decided(d moderator.Decision, err error) string {
	if err != nil {
		return "error"
	}
	parts := []string{d.Kind.String(), d.Role, d.Status, d.Prompt, d.Location, d.Reason}
	return strings.TrimRight(strings.Join(parts, "|"), "|")
}

func TestNextOfDialects(t *testing.T) {
	dev := out("developer", map[string]any{"summary": "s", "status": "failed"})
	rejected, approved := out("reviewer", map[string]any{"approved": false, "comments": "c"}), out("reviewer", map[string]any{"approved": true, "comments": ""})
	for _, tt := range []struct {
		name, file string
		thread     moderator.Thread
		want       string
	}{
		{"a list under $START", "conditions", steps(), "run|planner"},
		{"a condition holds", "conditions", steps(out("planner", map[string]any{"plan": "p", "needsClarification": true})), "suspend|planner||Please explain: p||Please explain: p"},
		{"else", "conditions", steps(out("planner", map[string]any{"plan": "p", "needsClarification": false})), "run|developer|||src/p"},
		{"a status that nobody asks for", "conditions", steps(dev), "run|reviewer|failed"},
		{"the second condition", "conditions", steps(dev, rejected), "run|developer"},
		{"first match wins", "conditions", steps(dev, rejected, dev, rejected, dev, rejected), "end"},
		{"none of them", "conditions", steps(dev, approved), "end"},
		{"a list with prompts", "debate", steps(out("against", map[string]any{"argument": "A", "conceded": false})), "run|against||Answer A"},
		{"$last", "debate", steps(out("against", map[string]any{"argument": "A", "conceded": true})), "run|summarizer||Sum up: A"},
		{"a map beside lists", "debate", steps(out("summarizer", map[string]any{"status": "unclear", "summary": "s"})), "run|against|unclear|Once more."},
		{"one edge of a list, whatever the status", "identity", steps(out("a", map[string]any{"$status": "stuck"})), "end||stuck"},
		{"new", "resume", steps(), "run|a||Analyze."},
		{"mustache without a version", "resume", steps(out("a", map[string]any{"$status": "ready", "plan": "<p>"})), "end||ready|<p>"},
		{"variables of $START", "start-variables", steps(), "run|a||Look at PR # in , of ."},
		{"a location of $START that nothing fills", "start-variables-liquid", steps(), "run|a"},
		{"the status that is none", "unit-status", steps(out("first", map[string]any{"$status": "_", "text": "one"})), "run|second||one"},
		{"one of two", "unit-status", steps(out("third", map[string]any{"$status": "_", "text": "end"})), "end|||end"},
		{"the other", "unit-status", steps(out("third", map[string]any{"$status": "again", "text": "x"})), "run|first|again|Again."},
		{"any role suspends", "resume", steps(out("a", map[string]any{"$status": "$SUSPEND", "reason": "Which?"})), "suspend|a|$SUSPEND|||Which?"},
		{"without a reason", "liquid", steps(out("critic", map[string]any{"$status": "$SUSPEND"})), "suspend|critic|$SUSPEND|||body of critic"},
		{"Liquid", "liquid", steps(out("ideator", map[string]any{"$status": "ideate", "ideas": []any{map[string]any{"title": "A", "wild": true}, map[string]any{"wild": false}}})),
			"run|critic|ideate|2 ideas:\n1. A (wild)\n2. untitled\n\n"},
		{"Liquid filter", "liquid", steps(out("ideator", map[string]any{"$status": "done", "best": "a & b"})), "end||done|A & B"},
		{"Liquid location", "liquid", steps(out("critic", map[string]any{"$status": "feedback", "themes": "t"})), "run|ideator|feedback|t|t"},
		{"a condition on the start", "liquid-lists", steps(), "run|b"},
		{"version 1 with conditions", "liquid-lists", steps(out("a", map[string]any{"n": int64(4)})), "run|b||5"},
		{"version 1 with conditions, suspended", "liquid-lists", steps(out("a", map[string]any{"$status": "$SUSPEND", "reason": "r"})), "suspend|a|$SUSPEND|||r"},
	} {
		if got := decided(moderator.Next(good(t, tt.file), tt.thread)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// $SUSPEND suspends by itself only where the dialect has that.
func TestSuspendByOutputAlone(t *testing.T) {
	for file, want := range map[string]bool{"limits": false, "resume": true} {
		_, err := moderator.Next(good(t, file), steps(out("a", map[string]any{"$status": "$SUSPEND", "reason": "Which?"})))
		if want != (err == nil) || !want && !strings.Contains(err.Error(), `has $status "$SUSPEND", which leads nowhere`) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestNextFails(t *testing.T) {
	d := parse(t, `
name: x
description: d
roles:
  a: {description: d, systemPrompt: s, outputSchema: {type: object, properties: {n: {type: integer}}}}
conditions:
  broken: steps[-1].output.n + "x" > 1
  big: steps[-1].output.n > 3
  huge: steps[-1].output.n > 9
graph:
  $START: [{role: a}]
  a:
    - {role: $END, condition: big}
    - {role: a, condition: broken}
    - {role: a, condition: huge}
`)
	_, err := moderator.Next(d, steps(out("a", map[string]any{"n": int64(1)})))
	if !errors.Is(err, condition.ErrFailed) || !strings.HasPrefix(err.Error(), `condition "broken", on what follows a, can't be decided: `) {
		t.Errorf("a condition that fails: %v", err)
	}
	if got := decided(moderator.Next(d, steps(out("a", map[string]any{"n": int64(4)})))); got != "end" {
		t.Errorf("a condition before the one that fails: %s", got)
	}
	d.Conditions["broken"] = workflow.Condition{Expression: "false"}
	_, err = moderator.Next(d, steps(out("a", map[string]any{"n": int64(1)})))
	if err == nil || !strings.Contains(err.Error(), "follows a holds (big, broken, huge)") {
		t.Errorf("no condition holds: %v", err)
	}
	_, err = moderator.Next(good(t, "liquid"), steps(out("critic", map[string]any{"$status": "feedback"})))
	if err == nil || !strings.Contains(err.Error(), "blank once it is filled in") {
		t.Errorf("a Liquid prompt of which nothing is left: %v", err)
	}
	_, err = moderator.Next(good(t, "liquid"), steps(out("critic", map[string]any{"themes": "x"})))
	if err == nil || !strings.Contains(err.Error(), "the output of role critic has no $status") {
		t.Errorf("version 1 without a status: %v", err)
	}
}

func TestReopen(t *testing.T) {
	d := good(t, "resume")
	got, err := moderator.Reopen(d, "Add tests.\n")
	if err != nil || got.Kind != moderator.Run || got.Role != "a" ||
		!strings.HasPrefix(got.Prompt, "Review what was done.") || !strings.Contains(got.Prompt, "Add tests.") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = moderator.Reopen(d, ""); err != nil || got.Prompt != "Review what was done." {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = moderator.Reopen(good(t, "limits"), ""); err != nil || got.Location != "work" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = moderator.Reopen(good(t, "start-variables-liquid"), "x"); err != nil || !strings.HasPrefix(got.Prompt, "Again: none, .") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := moderator.Reopen(good(t, "seed"), "x"); !errors.Is(err, moderator.ErrNoResumeEdge) {
		t.Errorf("%v", err)
	}
}

// Who asked a person works again, in each dialect.
func TestResumeOfDialects(t *testing.T) {
	for file, asked := range map[string]moderator.Output{
		"conditions": out("planner", map[string]any{"plan": "p", "needsClarification": true}),
		"liquid":     out("ideator", map[string]any{"$status": "$SUSPEND", "reason": "Please explain: p"}),
	} {
		got, err := moderator.Resume(good(t, file), steps(asked), "The first.")
		if err != nil || got.Kind != moderator.Run || got.Role != asked.Role ||
			got.Prompt != "You asked a person:\nPlease explain: p\n\nThe answer:\nThe first." {
			t.Errorf("%s: %+v, %v", file, got, err)
		}
	}
}

// Who asks twice, or asks after the thread had ended, still works where it did.
func TestResumeKeepsTheLocation(t *testing.T) {
	d := good(t, "limits")
	asks := out("a", map[string]any{"$status": "ask", "question": "Which?"})
	d.Graph[workflow.Start][0].Location = "src"
	for name, tt := range map[string]struct {
		thread moderator.Thread
		want   string
	}{
		"once":             {steps(asks), "src"},
		"twice":            {steps(asks, asks), "src"},
		"after it reopens": {steps(out("a", map[string]any{"$status": "done"}), asks, asks), "work"},
	} {
		if got, err := moderator.Resume(d, tt.thread, "x"); err != nil || got.Location != tt.want || got.Role != "a" {
			t.Errorf("%s: %+v, %v; want %s", name, got, err, tt.want)
		}
	}
}

func TestSuspendStatusesOfDialects(t *testing.T) {
	for _, tt := range []struct{ file, role, want string }{
		{"limits", "a", "ask"}, {"resume", "a", ""}, {"conditions", "planner", ""}, {"liquid", "ideator", ""},
	} {
		if got := strings.Join(moderator.SuspendStatuses(good(t, tt.file), tt.role), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.file, got, tt.want)
		}
	}
}

package moderator_test

import (
	"slices"
	"testing"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
)

// edgesWithoutStatus has lists of every kind: only one edge to a role, two edges to one role, a
// person who is asked, and a way on after the end.
func edgesWithoutStatus() *workflow.Definition {
	if_ := func(name, to string) workflow.Edge {
		return workflow.Edge{When: workflow.When{Kind: workflow.OnCondition, Value: name}, To: to}
	}
	expression := func(s string) workflow.Condition { return workflow.Condition{Expression: s} }
	return &workflow.Definition{
		Roles: map[string]workflow.Role{"planner": {Name: "planner"}, "reviewer": {Name: "reviewer"}},
		Lists: map[string]bool{"planner": true, "reviewer": true},
		Conditions: map[string]workflow.Condition{
			"asks":    expression("$exists(steps[-1].output.ask)"),
			"refused": expression("steps[-1].output.approved = false"),
			"late":    expression("steps[-1].output.approved = 1"),
		},
		Graph: map[string][]workflow.Edge{
			"planner":  {if_("asks", workflow.Suspend), {To: "reviewer"}},
			"reviewer": {if_("refused", "planner"), if_("late", "planner"), {To: workflow.End}},
		},
		Resume: &workflow.Edge{To: "reviewer"},
	}
}

// TestResults: each step of a thread without statuses has the name of the edge that was
// taken, whatever followed it.
func TestResults(t *testing.T) {
	step := func(role string, output map[string]any) moderator.Output {
		return moderator.Output{Role: role, Output: output}
	}
	thread := moderator.Thread{Steps: []moderator.Output{
		step("planner", map[string]any{"ask": "Which?"}),
		step("planner", nil),
		step("reviewer", map[string]any{"approved": false}),
		step("planner", nil),
		step("reviewer", map[string]any{"approved": 1}),
		step("planner", map[string]any{"status": "ready"}),
		step("reviewer", map[string]any{"approved": true}),
		step("reviewer", map[string]any{"approved": true}),
	}}
	want := []string{"asks", "→ reviewer", "refused", "→ reviewer", "late", "ready", "→ end", "→ end"}
	if got := moderator.Results(edgesWithoutStatus(), thread); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestResultsOfForeignChain: a chain that another version made says where it went, also
// where this version's workflow would have gone elsewhere.
func TestResultsOfForeignChain(t *testing.T) {
	thread := moderator.Thread{Steps: []moderator.Output{
		{Role: "planner", Output: map[string]any{"ask": "Which?"}}, {Role: "reviewer"}, {Role: "ghost"}, {Role: "planner"}, {Role: "ghost"},
	}}
	want := []string{"→ reviewer", "→ ghost", "→ planner", "→ ghost", ""}
	if got := moderator.Results(edgesWithoutStatus(), thread); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestResultsOfLongThread: however long a thread is, few conditions are evaluated again; the
// newest results are exact, and older ones say where they led.
func TestResultsOfLongThread(t *testing.T) {
	var thread moderator.Thread
	for range 100 {
		thread.Steps = append(thread.Steps, moderator.Output{Role: "planner"},
			moderator.Output{Role: "reviewer", Output: map[string]any{"approved": false}})
	}
	got := moderator.Results(edgesWithoutStatus(), thread)
	if first, last := got[1], got[len(got)-1]; first != "→ planner" || last != "refused" {
		t.Errorf("the first refusal is %q, the last %q", first, last)
	}
}

func TestArrow(t *testing.T) {
	for result, want := range map[string]string{"approved": " → approved", "→ end": " → end", "": ""} {
		if got := moderator.Arrow(result); got != want {
			t.Errorf("Arrow(%q) = %q, want %q", result, got, want)
		}
	}
}

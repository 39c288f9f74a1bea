package moderator_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/engine/workflow/template"
)

const definition = `
name: test
description: d
roles:
  planner:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter: {type: object, properties: {plan: {type: string}}, additionalProperties: true}
  developer:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter:
      type: object
      properties:
        $status: {enum: [done, blocked, unsure]}
        files: {type: array, items: {type: string}}
        question: {type: string}
      required: [$status]
  reviewer:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter:
      type: object
      properties:
        $status: {type: string}
        status: {type: string}
        comments: {type: string}
graph:
  $START:
    _: {role: planner, prompt: Plan., location: src}
  planner:
    _: {role: developer, prompt: "{{plan}} / {{_body}}", location: " {{plan}} "}
  developer:
    done: {role: reviewer, prompt: "Review {{files}}"}
    blocked: {role: $SUSPEND, prompt: "{{question}}"}
    unsure: {role: reviewer, prompt: "{{question}}"}
  reviewer:
    rejected: {role: developer, prompt: "Fix: {{comments}}"}
    approved: {role: $END, prompt: ""}
    _: {role: developer, prompt: Again.}
`

func parse(t testing.TB, text string) *workflow.Definition {
	t.Helper()
	d, err := workflow.Parse("test.yaml", []byte(text), workflow.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func out(role string, fields map[string]any) moderator.Output {
	return moderator.Output{Role: role, Output: fields, Body: "body of " + role}
}

func TestNext(t *testing.T) {
	d := parse(t, definition)
	for name, tt := range map[string]struct {
		chain []moderator.Output
		want  moderator.Decision
	}{
		"start": {nil, moderator.Decision{Kind: moderator.Run, Role: "planner", From: "$START", Prompt: "Plan.", Location: "src"}},
		"no status": {[]moderator.Output{out("planner", map[string]any{"plan": "<x>"})},
			moderator.Decision{Kind: moderator.Run, Role: "developer", From: "planner", Prompt: "<x> / body of planner", Location: "<x>"}},
		"a status that the schema doesn't know": {[]moderator.Output{out("planner", map[string]any{"plan": "x", "$status": "whatever"})},
			moderator.Decision{Kind: moderator.Run, Role: "developer", From: "planner", Status: "whatever", Prompt: "x / body of planner", Location: "x"}},
		"only the last counts": {[]moderator.Output{out("reviewer", nil), out("developer", map[string]any{"$status": "done", "files": []any{"a", int64(1)}})},
			moderator.Decision{Kind: moderator.Run, Role: "reviewer", From: "developer", Status: "done", Prompt: `Review ["a",1]`}},
		"suspend": {[]moderator.Output{out("developer", map[string]any{"$status": "blocked", "question": " why? "})},
			moderator.Decision{Kind: moderator.Suspend, Role: "developer", From: "developer", Status: "blocked", Prompt: " why? ", Reason: "why?"}},
		"suspend without a reason": {[]moderator.Output{out("developer", map[string]any{"$status": "blocked"})},
			moderator.Decision{Kind: moderator.Suspend, Role: "developer", From: "developer", Status: "blocked", Reason: "body of developer"}},
		"suspend without a word": {[]moderator.Output{{Role: "developer", Output: map[string]any{"$status": "blocked"}}},
			moderator.Decision{Kind: moderator.Suspend, Role: "developer", From: "developer", Status: "blocked", Reason: "the role gave no reason"}},
		"suspend with fields alone": {[]moderator.Output{{Role: "developer", Body: " \n", Output: map[string]any{"$status": "blocked", "why": "two ways", "n": int64(2), "also": " slow "}}},
			moderator.Decision{Kind: moderator.Suspend, Role: "developer", From: "developer", Status: "blocked", Reason: "also: slow\nwhy: two ways"}},
		"end": {[]moderator.Output{out("reviewer", map[string]any{"$status": "approved"})},
			moderator.Decision{Kind: moderator.End, From: "reviewer", Status: "approved"}},
		"unit where a status may be": {[]moderator.Output{out("reviewer", map[string]any{"comments": "x", "status": "rejected"})},
			moderator.Decision{Kind: moderator.Run, Role: "developer", From: "reviewer", Prompt: "Again."}},
	} {
		got, err := moderator.Next(d, moderator.Thread{Steps: tt.chain})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got.Edge = workflow.Edge{}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, tt.want)
		}
	}
}

func TestNextRefuses(t *testing.T) {
	d := parse(t, definition)
	chain := func(role string, fields map[string]any) []moderator.Output {
		return []moderator.Output{out(role, fields)}
	}
	for name, tt := range map[string]struct {
		chain []moderator.Output
		want  string
	}{
		"unknown":    {chain("developer", map[string]any{"$status": "Done"}), `role developer has $status "Done", which leads nowhere; the workflow waits for one of done, blocked, unsure`},
		"none":       {chain("developer", nil), "role developer has no $status; the workflow waits for one of done, blocked, unsure"},
		"no text":    {chain("developer", map[string]any{"$status": int64(1)}), "role developer has no $status; the workflow waits for one of done, blocked, unsure"},
		"other key":  {chain("developer", map[string]any{"status": "done"}), "role developer has no $status; the workflow waits for one of done, blocked, unsure"},
		"not unit":   {chain("reviewer", map[string]any{"$status": "fine"}), `role reviewer has $status "fine", which leads nowhere; the workflow waits for one of approved, rejected`},
		"no suspend": {chain("reviewer", map[string]any{"$status": "$SUSPEND", "reason": "x"}), `role reviewer has $status "$SUSPEND", which leads nowhere; the workflow waits for one of approved, rejected`},
	} {
		got, err := moderator.Next(d, moderator.Thread{Steps: tt.chain})
		if err == nil || err.Error() != "the output of "+tt.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := moderator.Next(d, moderator.Thread{Steps: chain("nobody", nil)}); !errors.Is(err, moderator.ErrUnknownRole) {
		t.Errorf("unknown role: %v", err)
	}
	if _, err := moderator.Next(d, moderator.Thread{Steps: chain("developer", map[string]any{"$status": "unsure"})}); err == nil || !strings.Contains(err.Error(), "is blank once it is filled in") {
		t.Errorf("blank prompt: %v", err)
	}
	long := strings.Repeat("x", template.MaxOutput)
	if _, err := moderator.Next(d, moderator.Thread{Steps: chain("developer", map[string]any{"$status": "unsure", "question": long + long})}); !errors.Is(err, template.ErrTooLong) {
		t.Errorf("long prompt: %v", err)
	}
}

func TestAgentSuspends(t *testing.T) {
	d := parse(t, definition)
	d.AgentSuspends = true
	last := out("developer", map[string]any{"$status": "$SUSPEND", "reason": "which one?"})
	got, err := moderator.Next(d, moderator.Thread{Steps: []moderator.Output{last}})
	if err != nil || got.Kind != moderator.Suspend || got.Reason != "which one?" || got.Role != "developer" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestStatuses(t *testing.T) {
	d := parse(t, definition)
	if got := strings.Join(d.Statuses("developer"), " "); got != "done blocked unsure" {
		t.Errorf("allowed: %s", got)
	}
	if got := d.Statuses("planner"); len(got) != 0 {
		t.Errorf("allowed of a role without statuses: %v", got)
	}
	if got := moderator.SuspendStatuses(d, "developer"); len(got) != 1 || got[0] != "blocked" {
		t.Errorf("suspending: %v", got)
	}
}

func TestResume(t *testing.T) {
	d := parse(t, definition)
	planned := out("planner", map[string]any{"plan": "sub"})
	asked := out("developer", map[string]any{"$status": "blocked", "question": "which?"})
	got, err := moderator.Resume(d, moderator.Thread{Steps: []moderator.Output{planned, asked}}, "The first.")
	if err != nil || got.Kind != moderator.Run || got.Role != "developer" || got.Location != "sub" ||
		got.Prompt != "You asked a person:\nwhich?\n\nThe answer:\nThe first." {
		t.Errorf("%+v, %v", got, err)
	}
	// Suspended by the engine: the thread goes on where it stood.
	got, err = moderator.Resume(d, moderator.Thread{Steps: []moderator.Output{planned}}, "Try again.")
	if err != nil || got.Role != "developer" || got.Prompt != "sub / body of planner\n\nA person answered:\nTry again." {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = moderator.Resume(d, moderator.Thread{}, "")
	if err != nil || got.Role != "planner" || got.Prompt != "Plan." {
		t.Errorf("%+v, %v", got, err)
	}
}

// A workflow that came as a node was not validated: nothing in it may stop the
// moderator from answering.
func TestUncheckedDefinitions(t *testing.T) {
	always := []workflow.Edge{{To: "nobody", Prompt: "p"}}
	for name, d := range map[string]*workflow.Definition{
		"empty":          {},
		"no start":       {Roles: map[string]workflow.Role{"a": {}}, Graph: map[string][]workflow.Edge{"a": always}},
		"unknown target": {Roles: map[string]workflow.Role{"a": {}}, Graph: map[string][]workflow.Edge{"$START": always, "a": always}},
		"bad template":   {Roles: map[string]workflow.Role{"a": {}}, Graph: map[string][]workflow.Edge{"$START": {{To: "a", Prompt: "{{"}}, "a": {{To: "$END", Prompt: "{{> x}}"}}}},
	} {
		if got, err := moderator.Next(d, moderator.Thread{}); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
		if got, err := moderator.Next(d, moderator.Thread{Steps: []moderator.Output{{Role: "a"}}}); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The shipped example, all the way: one rejection, then the end.
func TestSolveIssue(t *testing.T) {
	data, err := os.ReadFile("../../examples/solve-issue.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, string(data))
	var chain []moderator.Output
	for _, step := range []struct {
		output map[string]any
		next   string
		prompt string
	}{
		{nil, "planner", "Read the task, find the cause, and write the plan."},
		{map[string]any{"$status": "ready", "plan": "1. Test.\n2. Fix.", "files": []any{"a.go", "a_test.go"}}, "developer",
			"Implement this plan.\n\n1. Test.\n2. Fix.\n\nFiles:\n- a.go\n- a_test.go\n"},
		{map[string]any{"$status": "done", "summary": "S.", "tests": "go test: ok"}, "reviewer",
			"Review the developer's change in this working tree.\n\nThe developer says: S.\n\nTests: go test: ok\n"},
		{map[string]any{"$status": "rejected", "comments": "1. No."}, "developer",
			"The reviewer sent your change back. Work through each comment:\n\n1. No.\n"},
		{map[string]any{"$status": "done", "summary": "S.", "tests": "ok"}, "reviewer", ""},
		{map[string]any{"$status": "approved", "summary": "Good."}, "", "Good."},
	} {
		if step.output != nil {
			last, err := moderator.Next(d, moderator.Thread{Steps: chain})
			if err != nil {
				t.Fatal(err)
			}
			chain = append(chain, out(last.Role, step.output))
		}
		got, err := moderator.Next(d, moderator.Thread{Steps: chain})
		if err != nil || got.Role != step.next || (step.prompt != "" && got.Prompt != step.prompt) {
			t.Fatalf("after %d steps: %+v, %v; want %s: %q", len(chain), got, err, step.next, step.prompt)
		}
		if (got.Kind == moderator.End) != (step.next == "") {
			t.Fatalf("after %d steps: %v", len(chain), got.Kind)
		}
	}
}

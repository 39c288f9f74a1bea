package workflow

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
)

// flow is a definition whose description says where it lies.
func flow(where string) string {
	return fmt.Sprintf(`name: flow
description: %q
roles:
  dev: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {x: {type: string}}}}
graph:
  $START: {_: {role: dev, prompt: go}}
  dev: {_: {role: $END, prompt: bye}}
`, where)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBinaryAndMisnamed(t *testing.T) {
	for data, want := range map[string]bool{"": false, "a: b": false, "a\x00b": true, "\xff\xfea\x00": false, strings.Repeat("x", 9000) + "\x00": false} {
		if got := isBinary([]byte(data)); got != want {
			t.Errorf("binary(%.10q) = %v", data, got)
		}
	}
	for file, want := range map[string]bool{
		".workflows/flow.yaml": false, ".workflows/flow/index.yml": false, "x/.uwf/workflows/other.yaml": true, ".workflow/other/index.yaml": true,
		"other.yaml": false, "workflows/other.yaml": false, "stdin": false,
	} {
		p, got := checkName(file, "flow", []byte("# a\nname:  \"flow\"\n"))
		if got != want || got && (p.Line != 2 || p.Col != 9 || p.Len != 4) {
			t.Errorf("%s: %v %+v", file, got, p)
		}
	}
}

// Every kind of change has words.
func TestChanges(t *testing.T) {
	edge := func(kind workflow.Kind, value, to, prompt string) workflow.Edge {
		return workflow.Edge{When: workflow.When{Kind: kind, Value: value}, To: to, Prompt: prompt}
	}
	old := &workflow.Definition{
		Name: "a", Dialect: workflow.StatusMap, Description: "d", Limits: &workflow.Limits{MaxSteps: 3},
		Roles:      map[string]workflow.Role{"x": {Goal: "g", Checks: []string{"test", "lint"}}, "gone": {}},
		Graph:      map[string][]workflow.Edge{"x": {edge(workflow.OnCondition, "c", "y", "p"), edge(workflow.OnCondition, "c", "z", "p"), edge(workflow.Always, "", "y", "p")}},
		Conditions: map[string]workflow.Condition{"c": {Expression: "1"}, "old": {Expression: "2"}, "d": {Description: "x"}},
	}
	now := &workflow.Definition{
		Name: "b", Dialect: workflow.Liquid, Description: "e",
		Roles:      map[string]workflow.Role{"x": {Goal: "h", Output: "o", Checks: []string{"lint", "test"}}, "come": {}},
		Graph:      map[string][]workflow.Edge{"x": {edge(workflow.OnCondition, "c", "q", "p"), edge(workflow.Always, "", "y", "r")}},
		Resume:     &workflow.Edge{To: "x"},
		Conditions: map[string]workflow.Condition{"c": {Expression: "3"}, "new": {}, "d": {Description: "y"}},
	}
	want := `renamed from a
written in another dialect: liquid, before status-map
description changed
limits changed: none, before maxSteps 3
role come added
role gone removed
role x: goal, output, checks changed
edge x → c → q: leads there instead of to y
edge x → _ → y: prompt changed
edge $START → resume → x added
edge x → c → z removed
condition c: 3, before 1
condition d: description changed
condition new added
condition old removed`
	if got := strings.Join(describeChanges(old, now), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	swapped := *old
	swapped.Graph = map[string][]workflow.Edge{"x": {old.Graph["x"][2], old.Graph["x"][0], old.Graph["x"][1]}}
	if got := describeChanges(old, &swapped); len(got) != 1 || got[0] != "the order of edges changed" {
		t.Errorf("%q", got)
	}
	approved := *old
	approved.Graph = map[string][]workflow.Edge{"x": slices.Clone(old.Graph["x"])}
	approved.Graph["x"][2].Approval = &workflow.Approval{}
	stricter := *old
	stricter.Graph = map[string][]workflow.Edge{"x": slices.Clone(old.Graph["x"])}
	stricter.Graph["x"][2].Approval = &workflow.Approval{Not: []string{workflow.ApprovalAuthor}}
	for want, pair := range map[string][2]*workflow.Definition{
		"edge x → _ → y: approval added":   {old, &approved},
		"edge x → _ → y: approval changed": {&approved, &stricter},
		"edge x → _ → y: approval removed": {&stricter, old},
	} {
		if got := describeChanges(pair[0], pair[1]); len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %s", got, want)
		}
	}
	again := *old
	again.Graph = map[string][]workflow.Edge{"x": slices.Clone(old.Graph["x"])}
	again.Graph["x"][2].Approval = &workflow.Approval{}
	if got := describeChanges(&approved, &again); len(got) != 0 {
		t.Errorf("%q", got)
	}
	if got := describeChanges(old, old); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestVersionMeant(t *testing.T) {
	e := gitcas.RegistryEntry{Hash: "AAAA000000000", History: []gitcas.RegistryVersion{
		{Hash: "AAAA000000000"}, {Hash: "BBBB100000000"}, {Hash: "BBBB200000000"}, {Hash: "BBBB100000000"}}}
	for prefix, want := range map[string]string{
		"": "BBBB100000000", "BBBB1": "BBBB100000000", "bbbb2": "BBBB200000000", "AAAA": "AAAA000000000",
		"BBBB": "!2 versions", "BBB": "!at least", "CCCC": "!no version", "BBBB1000000000": "!no version",
	} {
		got, err := versionMeant("x", e, prefix)
		if why, fails := strings.CutPrefix(want, "!"); fails && (err == nil || !strings.Contains(err.Error(), why)) || !fails && string(got) != want {
			t.Errorf("%q: %s, %v; want %s", prefix, got, err, want)
		}
	}
	if _, err := versionMeant("x", gitcas.RegistryEntry{Hash: "AAAA000000000"}, ""); err == nil {
		t.Error("a first version has one before it")
	}
}

package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

func goodFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	return files
}

// Each file of testdata/good has its compiled form, and its node, in the golden
// file beside it.
func TestGood(t *testing.T) {
	for _, file := range goodFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			d, err := parseFile(t, file)
			if err != nil {
				t.Fatal(err)
			}
			h, nodes, err := workflow.Materialize(d, time.UnixMilli(0))
			if err != nil {
				t.Fatal(err)
			}
			compiled, err := json.MarshalIndent(d, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			stored, err := node.EncodeFile(nodes[len(nodes)-1])
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", fmt.Sprintf("%s\n\n%s\n\n%s", h, compiled, stored))
		})
	}
}

// Definitions that releases of the TypeScript uwf stored, under the hashes that these stores
// recorded. test-loop was stored twice; of its first version only the description was another.
func TestRecorded(t *testing.T) {
	first := func(text string) string {
		return strings.Replace(text, "Changed second version", "Branching test where the reviewer can reject and loop back to the developer", 1)
	}
	for name, want := range map[string]struct{ hash, before node.Hash }{
		"0604-test-loop": {"7VT3WXVH71A8D", "9PAYMPX1HFPRG"}, "0604-test-suspend": {"DWC5816335FVA", ""},
		"030-test-loop": {"F3QHQT674A3G9", "6DRT1HP1B7Z55"}, "030-test-suspend": {"CFA4GK953D7C3", ""},
		"040-test-loop": {"0GBV5J9Z5D0K2", "A3P1FJMJH9BFB"}, "040-test-suspend": {"225VBWVEE85FY", ""},
	} {
		data, err := os.ReadFile("testdata/recorded/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		versions := map[node.Hash]string{want.hash: string(data)}
		if want.before != "" {
			versions[want.before] = first(string(data))
		}
		for hash, text := range versions {
			d, err := workflow.Parse(name+".yaml", []byte(text), workflow.Options{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if h, _, err := workflow.Materialize(d, time.UnixMilli(0)); h != hash || err != nil {
				t.Errorf("%s is stored as %s, and was recorded as %s: %v", name, h, hash, err)
			}
		}
	}
}

// The node that a definition is stored as gives the same definition again.
func TestFromNodeIsTheWayBack(t *testing.T) {
	for _, file := range append(goodFiles(t), "../../examples/solve-issue.yaml") {
		d, err := parseFile(t, file)
		if err != nil {
			t.Fatal(err)
		}
		h, nodes, err := workflow.Materialize(d, time.UnixMilli(0))
		if err != nil {
			t.Fatal(err)
		}
		store := storeOf(t, nodes)
		for _, n := range nodes {
			if err := node.Check(store, n); err != nil {
				t.Errorf("%s: a node doesn't fit its schema: %v", file, err)
			}
		}
		back, err := workflow.FromNode(store, h)
		if err != nil {
			t.Fatal(err)
		}
		if again := hashOf(t, back); again != h {
			t.Errorf("%s: %s comes back as %s", file, h, again)
		}
		for name, r := range back.Roles {
			if !r.Frontmatter.Valid() {
				t.Errorf("%s: role %s has no schema hash", file, name)
			}
		}
		if parsed := withoutHashes(d, d); !reflect.DeepEqual(parsed, withoutHashes(back, d)) {
			t.Errorf("%s: parsed\n%+v\nread back\n%+v", file, parsed, back)
		}
	}
}

// withoutHashes is a definition with the schemas of another: stored ones have a
// title and a hash; the rest must be the same.
func withoutHashes(d, other *workflow.Definition) *workflow.Definition {
	out := *d
	out.Roles = map[string]workflow.Role{}
	for name, r := range d.Roles {
		r.Frontmatter, r.Schema = "", other.Roles[name].Schema
		out.Roles[name] = r
	}
	return &out
}

// Each generation's definition has the schema of the TypeScript uwf's generation,
// where it fits it.
func TestNodeTypes(t *testing.T) {
	for file, want := range map[string]struct {
		typ      node.Hash
		dialect  workflow.Dialect
		suspends bool
		resumes  bool
	}{
		"seed":         {record.WorkflowSchema, workflow.StatusMap, false, false},
		"architecture": {record.WorkflowSchema, workflow.StatusMap, false, false},
		"resume":       {record.WorkflowSchema, workflow.StatusMap, true, true},
		"liquid":       {record.LiquidWorkflowSchema, workflow.Liquid, true, true},
		"limits":       {record.OwnWorkflowSchema, workflow.StatusMap, false, true},
		"conditions":   {record.OwnWorkflowSchema, workflow.Conditions, false, false},
		"debate":       {record.OwnWorkflowSchema, workflow.Architecture, false, false},
		"identity":     {record.OwnWorkflowSchema, workflow.Architecture, false, false},
		"liquid-lists": {record.OwnWorkflowSchema, workflow.Liquid, true, false},
		// An approval fits none of the peers' schemas.
		"approval":            {record.OwnWorkflowSchema, workflow.StatusMap, false, true},
		"approval-conditions": {record.OwnWorkflowSchema, workflow.Conditions, false, false},
		"approval-liquid":     {record.OwnWorkflowSchema, workflow.Liquid, true, true},
		"approval-new":        {record.OwnWorkflowSchema, workflow.StatusMap, true, false},
		// Nor do checks.
		"checks":            {record.OwnWorkflowSchema, workflow.StatusMap, false, false},
		"checks-conditions": {record.OwnWorkflowSchema, workflow.Conditions, false, false},
		"checks-liquid":     {record.OwnWorkflowSchema, workflow.Liquid, true, false},
		"checks-identity":   {record.OwnWorkflowSchema, workflow.Architecture, false, false},
	} {
		d, err := parseFile(t, "testdata/good/"+file+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, nodes, err := workflow.Materialize(d, time.UnixMilli(0))
		if err != nil {
			t.Fatal(err)
		}
		if n := nodes[len(nodes)-1]; n.Type != want.typ || !workflow.IsWorkflow(n.Type) {
			t.Errorf("%s: type %s, want %s", file, n.Type, want.typ)
		}
		if d.Dialect != want.dialect || d.AgentSuspends != want.suspends || (d.Resume != nil) != want.resumes {
			t.Errorf("%s: %s, agents suspend: %v, resume: %v", file, d.Dialect, d.AgentSuspends, d.Resume)
		}
	}
	if workflow.IsWorkflow(record.StepSchema) {
		t.Error("a step is no workflow")
	}
}

// The hashes that the TypeScript uwf gave to definitions like these, one of each of its
// releases that wrote nodes which are read here.
func TestHashesOfThePredecessor(t *testing.T) {
	const status = "{properties: {$status: {const: %s}}, required: [$status]}"
	role := func(description, goal, procedure, output string, statuses ...string) string {
		out := fmt.Sprintf("{description: %s, goal: %s, capabilities: [], procedure: %s, output: %s, frontmatter: {oneOf: [", description, goal, procedure, output)
		for _, s := range statuses {
			out += fmt.Sprintf(status, s) + ", "
		}
		return out + "]}}"
	}
	text := "name: test-loop\ndescription: Changed second version\nroles:\n" +
		"  developer: " + role("Implements changes", "Implement the change", "Write code", "Summarize the change and set $status to review_needed", "review_needed") + "\n" +
		"  reviewer: " + role("Reviews changes", "Review the change", "Review code", "Approve or reject; set $status to approved or rejected", "rejected", "approved") + "\n" +
		"graph:\n  developer: {review_needed: {role: reviewer, prompt: Review the change}}\n" +
		"  reviewer: {rejected: {role: developer, prompt: Fix the issues and resubmit}, approved: {role: $END, prompt: 'Approved, done'}}\n"
	const first, resumed = "{role: developer, prompt: Implement the change}", "{role: developer, prompt: Review the previous run output and continue the work.}"
	for release, tt := range map[string]struct {
		text string
		typ  node.Hash
		want node.Hash
	}{
		"2026-06-04": {text + "  $START: {_: " + first + "}\n", record.WorkflowSchema, "7VT3WXVH71A8D"},
		"0.3.0":      {text + "  $START: {new: " + first + ", resume: " + resumed + "}\n", record.WorkflowSchema, "F3QHQT674A3G9"},
		"0.4.0":      {"version: 1\n" + text + "  $START: {new: " + first + ", resume: " + resumed + "}\n", record.LiquidWorkflowSchema, "0GBV5J9Z5D0K2"},
	} {
		d, err := workflow.Parse("test-loop.yaml", []byte(tt.text), workflow.Options{})
		if err != nil {
			t.Fatal(release, err)
		}
		h, nodes, err := workflow.Materialize(d, time.UnixMilli(0))
		if err != nil || h != tt.want || nodes[len(nodes)-1].Type != tt.typ {
			t.Errorf("%s: %s of type %s, %v; want %s of type %s", release, h, nodes[len(nodes)-1].Type, err, tt.want, tt.typ)
		}
	}
}

// What is asked of a role's output, in each dialect.
func TestStatusesOfDialects(t *testing.T) {
	for _, tt := range []struct{ file, role, want string }{
		{"conditions", "developer", ""}, // it has statuses, and nothing waits for them
		{"debate", "summarizer", "clear unclear"},
		{"debate", "against", ""},
		{"identity", "a", ""},
		{"resume", "a", "ready"},
		{"limits", "a", "done ask #1"},
		{"liquid", "ideator", "ideate done"},
		{"liquid-lists", "a", ""},
		{"liquid-lists", "b", "done"},
	} {
		d, err := parseFile(t, "testdata/good/"+tt.file+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d.Statuses(tt.role), " "); got != tt.want {
			t.Errorf("%s, role %s: statuses %q, want %q", tt.file, tt.role, got, tt.want)
		}
	}
}

// Whoever writes to the state branch can write nodes that nobody validated.
func TestFromNodeRefusesOfDialects(t *testing.T) {
	schema, hash, err := node.New(node.MetaSchema, map[string]any{"type": "object"}, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	type m = map[string]any
	checks := func(list any) func(p m) {
		return func(p m) { p["roles"].(m)["a"].(m)["checks"] = list }
	}
	own := func(change func(p m)) m {
		p := m{"dialect": "conditions", "name": "n", "description": "d", "roles": m{"a": m{"description": "d", "systemPrompt": "s", "outputSchema": string(hash)}},
			"conditions": m{"c": m{"description": "", "expression": "1"}}, "limits": m{"maxSteps": 3},
			"graph": m{"$START": m{"_": m{"role": "a", "prompt": "", "location": nil}}, "a": []any{m{"role": "$END", "condition": "c"}}}}
		change(p)
		return p
	}
	for name, tt := range map[string]struct {
		typ     node.Hash
		payload m
		want    string // empty: it is fine
	}{
		"fine":              {record.OwnWorkflowSchema, own(func(m) {}), ""},
		"dialect":           {record.OwnWorkflowSchema, own(func(p m) { p["dialect"] = "esperanto" }), "esperanto"},
		"no dialect":        {record.OwnWorkflowSchema, own(func(p m) { delete(p, "dialect") }), "has no `dialect`"},
		"unknown condition": {record.OwnWorkflowSchema, own(func(p m) { p["conditions"] = m{} }), `"c", which is no condition`},
		"conditions":        {record.OwnWorkflowSchema, own(func(p m) { p["conditions"] = []any{} }), "it is not in the one form that workflows are stored in"},
		"condition":         {record.OwnWorkflowSchema, own(func(p m) { p["conditions"] = m{"c": "1"} }), "it is not in the one form that workflows are stored in"},
		"expression":        {record.OwnWorkflowSchema, own(func(p m) { p["conditions"] = m{"c": m{"description": "", "expression": 1}} }), "`expression` of condition \"c\" must be text"},
		"limits":            {record.OwnWorkflowSchema, own(func(p m) { p["limits"] = m{"maxSteps": -1} }), "`limits.maxSteps` must be"},
		"unknown limit":     {record.OwnWorkflowSchema, own(func(p m) { p["limits"] = m{"steps": 1} }), `unknown key "steps"`},
		"edge":              {record.OwnWorkflowSchema, own(func(p m) { p["graph"] = m{"a": []any{"b"}} }), "edge a → #1 must be a map"},
		"prompt":            {record.OwnWorkflowSchema, own(func(p m) { p["graph"] = m{"a": []any{m{"role": "a", "prompt": 1}}} }), "`prompt` of edge a → #1 must be text"},
		"no schema":         {record.OwnWorkflowSchema, own(func(p m) { p["roles"] = m{"a": m{"description": "d", "systemPrompt": "s"}} }), "outputSchema"},
		"checks":            {record.OwnWorkflowSchema, own(checks([]any{"test", "lint"})), ""},
		"checks, a text":    {record.OwnWorkflowSchema, own(checks("test")), "`checks` of role \"a\" must be a list"},
		"no checks":         {record.OwnWorkflowSchema, own(checks([]any{})), "`checks` of role \"a\" is empty"},
		"check":             {record.OwnWorkflowSchema, own(checks([]any{"../test"})), "which is no name of a check"},
		"check twice":       {record.OwnWorkflowSchema, own(checks([]any{"test", "test"})), "twice"},
		"peer's checks": {record.WorkflowSchema, m{"name": "n", "description": "d", "graph": m{},
			"roles": m{"a": m{"description": "d", "systemPrompt": "s", "outputSchema": string(hash), "checks": []any{"test"}}}}, "nodes of type 4EAEYQKFHTJ23 have no roles with checks"},
		"version":    {record.LiquidWorkflowSchema, m{"version": 2, "name": "n", "description": "d", "roles": m{}, "graph": m{}}, `version "2"`},
		"no version": {record.LiquidWorkflowSchema, m{"name": "n", "description": "d", "roles": m{}, "graph": m{}}, "version"},
	} {
		n, h, err := node.New(tt.typ, tt.payload, time.UnixMilli(0))
		if err != nil {
			t.Fatal(err)
		}
		_, err = workflow.FromNode(storeOf(t, []node.Node{n, schema}), h)
		if (err == nil) != (tt.want == "") || err != nil && (!errors.Is(err, workflow.ErrNoWorkflow) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

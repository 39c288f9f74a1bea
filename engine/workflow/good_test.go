package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
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
		"resume":       {record.ResumeWorkflowSchema, workflow.StatusMap, true, true},
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
	own := func(change func(p m)) m {
		p := m{"dialect": "conditions", "name": "n", "description": "d", "roles": m{"a": m{"description": "d", "systemPrompt": "s", "outputSchema": string(hash)}},
			"conditions": m{"c": m{"description": "", "expression": "1"}}, "limits": m{"maxSteps": 3},
			"graph": m{"$START": []any{m{"role": "a", "condition": nil}}, "a": []any{m{"role": "$END", "condition": "c"}}}}
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
		"no dialect":        {record.OwnWorkflowSchema, own(func(p m) { delete(p, "dialect") }), "dialect must be text"},
		"unknown condition": {record.OwnWorkflowSchema, own(func(p m) { p["conditions"] = m{} }), `no condition "c"`},
		"conditions":        {record.OwnWorkflowSchema, own(func(p m) { p["conditions"] = []any{} }), "conditions must be a map"},
		"condition":         {record.OwnWorkflowSchema, own(func(p m) { p["conditions"] = m{"c": "1"} }), `condition "c" must be a map`},
		"expression":        {record.OwnWorkflowSchema, own(func(p m) { p["conditions"] = m{"c": m{"description": "", "expression": 1}} }), "expression must be text"},
		"limits":            {record.OwnWorkflowSchema, own(func(p m) { p["limits"] = m{"maxSteps": -1} }), "maxSteps must be"},
		"unknown limit":     {record.OwnWorkflowSchema, own(func(p m) { p["limits"] = m{"steps": 1} }), "steps is not known"},
		"edge":              {record.OwnWorkflowSchema, own(func(p m) { p["graph"] = m{"a": []any{"b"}} }), "edge a → #1 must be a map"},
		"prompt":            {record.OwnWorkflowSchema, own(func(p m) { p["graph"] = m{"a": []any{m{"role": "a", "prompt": 1}}} }), "prompt must be text"},
		"no schema":         {record.OwnWorkflowSchema, own(func(p m) { p["roles"] = m{"a": m{"description": "d", "systemPrompt": "s"}} }), "outputSchema"},
		"version":           {record.LiquidWorkflowSchema, m{"version": 2, "name": "n", "description": "d", "roles": m{}, "graph": m{}}, "version 2"},
		"no version":        {record.LiquidWorkflowSchema, m{"name": "n", "description": "d", "roles": m{}, "graph": m{}}, "version"},
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

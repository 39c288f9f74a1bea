package workflow_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// approvalFlow is the payload of a workflow whose role a has one edge, on the status
// "yes" or in a list, with an approval.
func approvalFlow(schema node.Hash, list bool, from, to string, approval any) map[string]any {
	edge := map[string]any{"role": to, "prompt": "p", "approval": approval}
	graph := map[string]any{workflow.Start: map[string]any{"_": map[string]any{"role": "a", "prompt": "p", "location": nil}}}
	conditions := map[string]any{}
	if list {
		edge["condition"], conditions["c"] = "c", map[string]any{"description": "", "expression": "1"}
		graph[from] = []any{edge}
	} else {
		edge["location"] = nil
		graph[from] = map[string]any{"yes": edge}
	}
	out := map[string]any{"dialect": "architecture", "name": "n", "description": "d", "graph": graph,
		"roles": map[string]any{"a": map[string]any{"description": "d", "systemPrompt": "s", "outputSchema": schema.String()}}}
	if list {
		out["conditions"] = conditions
	}
	return out
}

// An approval is read from a node in the one form that it is written in, and nothing
// else is.
func TestApprovalOfNodes(t *testing.T) {
	schema, hash, err := node.New(node.MetaSchema, map[string]any{"type": "object"}, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	type m = map[string]any
	type l = []any
	const form = "it is not in the one form that workflows are stored in"
	for name, tt := range map[string]struct {
		typ      node.Hash
		from, to string
		approval any
		want     string // empty: it is fine
		not      []string
	}{
		"any person":    {record.OwnWorkflowSchema, "a", "$END", m{}, "", nil},
		"not starter":   {record.OwnWorkflowSchema, "a", "$END", m{"not": l{"starter"}}, "", []string{"starter"}},
		"not author":    {record.OwnWorkflowSchema, "a", "$END", m{"not": l{"author"}}, "", []string{"author"}},
		"not both":      {record.OwnWorkflowSchema, "a", "$END", m{"not": l{"starter", "author"}}, "", []string{"starter", "author"}},
		"null":          {record.OwnWorkflowSchema, "a", "$END", nil, "must be true or a map, this is nothing", nil},
		"true":          {record.OwnWorkflowSchema, "a", "$END", true, "must be true or a map", nil},
		"list":          {record.OwnWorkflowSchema, "a", "$END", l{}, "must be true or a map, this is a list", nil},
		"unknown key":   {record.OwnWorkflowSchema, "a", "$END", m{"by": "me"}, `has an unknown key "by"`, nil},
		"null names":    {record.OwnWorkflowSchema, "a", "$END", m{"not": nil}, "must be a list, this is nothing", nil},
		"text":          {record.OwnWorkflowSchema, "a", "$END", m{"not": "starter"}, `must be a list, this is "starter"`, nil},
		"no names":      {record.OwnWorkflowSchema, "a", "$END", m{"not": l{}}, "is empty", nil},
		"other order":   {record.OwnWorkflowSchema, "a", "$END", m{"not": l{"author", "starter"}}, form, nil},
		"twice":         {record.OwnWorkflowSchema, "a", "$END", m{"not": l{"starter", "starter"}}, `names "starter" twice`, nil},
		"unknown name":  {record.OwnWorkflowSchema, "a", "$END", m{"not": l{"starter", "owner"}}, `names "owner", which is not known`, nil},
		"number":        {record.OwnWorkflowSchema, "a", "$END", m{"not": l{7}}, `names "7", which is not known`, nil},
		"start":         {record.OwnWorkflowSchema, "$START", "a", m{}, "can't need an approval", nil},
		"question":      {record.OwnWorkflowSchema, "a", "$SUSPEND", m{}, "can't need an approval", nil},
		"peer's schema": {record.WorkflowSchema, "a", "$END", m{}, "nodes of type 4EAEYQKFHTJ23 have no edges with an approval", nil},
	} {
		for _, list := range []bool{false, tt.typ == record.OwnWorkflowSchema} {
			payload := approvalFlow(hash, list, tt.from, tt.to, tt.approval)
			if tt.typ != record.OwnWorkflowSchema {
				delete(payload, "dialect")
			}
			n, h, err := node.New(tt.typ, payload, time.UnixMilli(0))
			if err != nil {
				t.Fatal(err)
			}
			store := storeOf(t, []node.Node{n, schema})
			d, err := workflow.FromNode(store, h)
			if (err == nil) != (tt.want == "") || err != nil && (!errors.Is(err, workflow.ErrNoWorkflow) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
			if err != nil || tt.want != "" {
				continue
			}
			if want := (&workflow.Approval{Not: tt.not}); !reflect.DeepEqual(d.Graph["a"][0].Approval, want) {
				t.Errorf("%s: %+v", name, d.Graph["a"][0].Approval)
			}
			if err := node.Check(store, n); err != nil {
				t.Errorf("%s: what is read doesn't fit the schema: %v", name, err)
			}
		}
	}
}

// $START's resume is guarded by nothing either.
func TestApprovalOfResume(t *testing.T) {
	schema, hash, err := node.New(node.MetaSchema, map[string]any{"type": "object"}, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	payload := approvalFlow(hash, false, "a", "$END", map[string]any{})
	payload["graph"].(map[string]any)[workflow.Start].(map[string]any)["resume"] = map[string]any{"role": "a", "prompt": "p", "approval": map[string]any{}}
	n, h, err := node.New(record.OwnWorkflowSchema, payload, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workflow.FromNode(storeOf(t, []node.Node{n, schema}), h); err == nil || !strings.Contains(err.Error(), "edge $START → resume can't need an approval") {
		t.Error(err)
	}
}

// However an approval is written, it is stored in one form.
func TestApprovalIsNormalised(t *testing.T) {
	text := func(approval string) string {
		return strings.Replace(smallDefinition, "{_: {role: $END}}", "[{role: $END, approval: "+approval+"}]", 1)
	}
	of := func(approval string) *workflow.Definition {
		return mustParse(t, strings.Replace(text(approval), "{_: {role: a}}", "{new: {role: a}}", 1))
	}
	if a, b := hashOf(t, of("{not: [author, starter]}")), hashOf(t, of("{not: [starter, author]}")); a != b {
		t.Errorf("the order makes a difference: %s, %s", a, b)
	}
	if a, b := hashOf(t, of("true")), hashOf(t, of("{not: [starter]}")); a == b {
		t.Error("who must not approve makes no difference")
	}
	made := of("true")
	made.Graph["a"][0].Approval = &workflow.Approval{Not: []string{workflow.ApprovalAuthor, workflow.ApprovalStarter}}
	if a, b := hashOf(t, made), hashOf(t, of("{not: [starter, author]}")); a != b {
		t.Errorf("a program's order makes a difference: %s, %s", a, b)
	}
}

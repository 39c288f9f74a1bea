package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// storeOf holds nodes under their hashes, and the schemas of all records.
func storeOf(t *testing.T, nodes []node.Node) node.Map {
	t.Helper()
	out := node.Map{}
	for h, n := range node.Builtin() {
		out[h] = n
	}
	for h, n := range record.Schemas() {
		out[h] = n
	}
	for _, n := range nodes {
		h, err := n.ComputeHash()
		if err != nil {
			t.Fatal(err)
		}
		out[h] = n
	}
	return out
}

func hashOf(t *testing.T, d *workflow.Definition) node.Hash {
	t.Helper()
	h, _, err := workflow.Materialize(d, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// The hashes are those that the TypeScript uwf gives the same workflow
// (vectors "role frontmatter schema demo.reviewer" and "Workflow node (seed era)").
func TestMaterializeVector(t *testing.T) {
	d, err := parseFile(t, "testdata/good/seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	at := time.UnixMilli(1717459200000)
	h, nodes, err := workflow.Materialize(d, at)
	if err != nil {
		t.Fatal(err)
	}
	if h != "C700MP4XFW7FA" || len(nodes) != 2 {
		t.Fatalf("hash %s of %d nodes, want C700MP4XFW7FA of 2", h, len(nodes))
	}
	if s, err := nodes[0].ComputeHash(); err != nil || s != "14M9Y84PJE0CQ" {
		t.Errorf("schema %s, %v; want 14M9Y84PJE0CQ", s, err)
	}
	if nodes[1].Timestamp != at.UnixMilli() || nodes[1].Type != "4EAEYQKFHTJ23" {
		t.Errorf("node %+v", nodes[1])
	}
	if r := d.Roles["reviewer"].Schema.(map[string]any); r["title"] != nil {
		t.Error("Materialize changed the definition's schema")
	}
}

func TestArchitecturePageDialect(t *testing.T) {
	d, err := parseFile(t, "testdata/good/architecture.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if d.StatusKey != "status" || d.StatusKeyOf("critic") != "status" {
		t.Errorf("status key %q, of critic %q", d.StatusKey, d.StatusKeyOf("critic"))
	}
	want := map[string][]workflow.Edge{
		"$START": {{To: "writer"}},
		"writer": {{When: workflow.When{Kind: workflow.OnStatus, Value: "written"}, To: "critic", Prompt: "Judge: {{text}} {{_body}}", Location: "work/{{text}}"}},
		"critic": {{When: workflow.When{Kind: workflow.OnStatus, Value: "fine"}, To: "$END"},
			{When: workflow.When{Kind: workflow.OnStatus, Value: "poor"}, To: "writer", Prompt: "Better."}},
	}
	if !reflect.DeepEqual(d.Graph, want) {
		t.Errorf("graph %+v", d.Graph)
	}
}

func TestSchemaByHash(t *testing.T) {
	seed, err := parseFile(t, "testdata/good/seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, nodes, err := workflow.Materialize(seed, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	store := storeOf(t, nodes)
	data, err := os.ReadFile("testdata/good/seed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	begin, end := strings.Index(string(data), "    frontmatter:"), strings.Index(string(data), "graph:")
	with := func(hash string) string {
		return string(data[:begin]) + "    frontmatter: " + hash + "\n" + string(data[end:])
	}
	d, err := workflow.Parse("x.yaml", []byte(with("14M9Y84PJE0CQ")), workflow.Options{Nodes: store})
	if err != nil {
		t.Fatal(err)
	}
	if got := hashOf(t, d); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	for hash, message := range map[string]string{"0000000000000": "can't be read", want.String(): "is no schema"} {
		if _, err := workflow.Parse("x.yaml", []byte(with(hash)), workflow.Options{Nodes: store}); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("schema %s: %v, want %q", hash, err, message)
		}
	}
}

func TestFromNodeRefusesWhatIsNoWorkflow(t *testing.T) {
	schema, schemaHash, err := node.New(node.MetaSchema, map[string]any{"type": "object"}, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	text, textHash, err := node.New(node.String, "{}", time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	role := func(frontmatter string) string {
		return `{"description":"d","goal":"g","capabilities":[],"procedure":"p","output":"o","frontmatter":"` + frontmatter + `"}`
	}
	for name, tt := range map[string]struct {
		payload string
		want    error
		says    string
	}{
		"no map":         {`[]`, workflow.ErrNoWorkflow, "a definition is a map, this is a list"},
		"no name":        {`{"description":"d","roles":{},"graph":{}}`, workflow.ErrNoWorkflow, "has no `name`"},
		"no roles":       {`{"name":"n","description":"d","graph":{}}`, workflow.ErrNoWorkflow, "has no `roles`"},
		"role no map":    {`{"name":"n","description":"d","roles":{"a":1},"graph":{}}`, workflow.ErrNoWorkflow, `role "a" must be a map`},
		"no hash":        {`{"name":"n","description":"d","roles":{"a":` + role("x") + `},"graph":{}}`, workflow.ErrNoWorkflow, "`frontmatter` of role \"a\" must be a JSON schema, this is text"},
		"missing schema": {`{"name":"n","description":"d","roles":{"a":` + role("0000000000000") + `},"graph":{}}`, node.ErrNotFound, `schema of role "a"`},
		"no schema":      {`{"name":"n","description":"d","roles":{"a":` + role(textHash.String()) + `},"graph":{}}`, workflow.ErrNoWorkflow, `role "a": ` + textHash.String() + " is no schema"},
		"edge no map":    {`{"name":"n","description":"d","roles":{"a":` + role(schemaHash.String()) + `},"graph":{"a":{"_":null}}}`, workflow.ErrNoWorkflow, "edge a → _ must be a map"},
		"location":       {`{"name":"n","description":"d","roles":{"a":` + role(schemaHash.String()) + `},"graph":{"a":{"_":{"role":"a","prompt":"","location":5}}}}`, workflow.ErrNoWorkflow, "`location` of edge a → _ must be text"},
	} {
		var payload any
		if err := json.Unmarshal([]byte(tt.payload), &payload); err != nil {
			t.Fatal(err)
		}
		n, h, err := node.New(record.WorkflowSchema, payload, time.UnixMilli(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := workflow.FromNode(storeOf(t, []node.Node{n, schema, text}), h); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %s", name, err, tt.says)
		}
	}
	if _, err := workflow.FromNode(storeOf(t, []node.Node{schema}), schemaHash); !errors.Is(err, workflow.ErrNoWorkflow) || !strings.Contains(err.Error(), "the node is of type "+node.MetaSchema.String()) {
		t.Errorf("a schema as a workflow: %v", err)
	}
	if _, err := workflow.FromNode(storeOf(t, nil), "0000000000000"); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("a node that is not there: %v", err)
	}
}

// No file makes definitions as large as a node can be.
func TestFromNodeRefusesWhatIsTooLarge(t *testing.T) {
	schema, schemaHash, err := node.New(node.MetaSchema, map[string]any{"type": "object"}, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	many := func(n int, v func(name string) any) map[string]any {
		out := map[string]any{}
		for i := range n {
			name := fmt.Sprint("n", i)
			out[name] = v(name)
		}
		return out
	}
	role := func(string) any {
		return map[string]any{"description": "d", "systemPrompt": "s", "outputSchema": schemaHash.String()}
	}
	edge := map[string]any{"role": "$END", "condition": nil}
	for name, change := range map[string]func(payload map[string]any){
		"201 roles": func(p map[string]any) { p["roles"] = many(201, role) },
		"501 conditions": func(p map[string]any) {
			p["conditions"] = many(501, func(string) any { return map[string]any{"description": "", "expression": "x"} })
		},
		"more than 2000 edges, in a list": func(p map[string]any) { p["graph"] = map[string]any{"a": slices.Repeat([]any{edge}, 3000)} },
		"more than 2000 edges": func(p map[string]any) {
			p["graph"] = map[string]any{"a": many(2000, func(string) any { return map[string]any{"role": "$END", "prompt": "p", "location": nil} })}
		},
		"": func(map[string]any) {},
	} {
		want, _, _ := strings.Cut(name, ",")
		payload := map[string]any{"dialect": "conditions", "name": "n", "description": "d", "roles": map[string]any{"a": role("")}, "graph": map[string]any{"a": map[string]any{"_": map[string]any{"role": "$END", "prompt": "", "location": nil}}}}
		change(payload)
		n, h, err := node.New(record.OwnWorkflowSchema, payload, time.UnixMilli(0))
		if err != nil {
			t.Fatal(err)
		}
		_, err = workflow.FromNode(storeOf(t, []node.Node{n, schema}), h)
		if (err != nil) != (want != "") || err != nil && (!errors.Is(err, workflow.ErrNoWorkflow) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFromFormer: what former generations stored is a definition, and has one node today.
func TestFromFormer(t *testing.T) {
	schema := node.Node{Type: node.MetaSchema, Payload: map[string]any{"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}}}
	g := storeOf(t, []node.Node{schema})
	h, err := schema.ComputeHash()
	if err != nil {
		t.Fatal(err)
	}
	// payload is a workflow with one role, whose schema is below a key.
	payload := func(key string, graph any) map[string]any {
		role := map[string]any{"description": "d", "goal": "g", "capabilities": []any{}, "procedure": "p", "output": "o", key: string(h)}
		if key == "outputSchema" {
			role = map[string]any{"description": "d", "systemPrompt": "s", key: string(h)}
		}
		return map[string]any{"name": "n", "description": "d", "roles": map[string]any{"a": role}, "graph": graph}
	}
	edge := func(to string, condition any) map[string]any {
		return map[string]any{"role": to, "condition": condition}
	}
	list := map[string]any{"$START": []any{edge("a", nil)}, "a": []any{edge("a", "again"), edge("$END", nil)}}
	to := func(role string) map[string]any {
		return map[string]any{"_": map[string]any{"role": role, "prompt": ""}}
	}
	statuses := map[string]any{"$START": to("a"), "a": to("$END")}
	conditions := map[string]any{"again": map[string]any{"description": "d", "expression": "steps[-1].output.ok = false"}}
	with := func(m map[string]any, key string, v any) map[string]any { m[key] = v; return m }
	for name, tc := range map[string]struct {
		payload any
		dialect workflow.Dialect
		typ     node.Hash
		refused error
		says    string
	}{
		"2026-05-18":        {with(payload("outputSchema", list), "conditions", conditions), workflow.Conditions, record.OwnWorkflowSchema, nil, ""},
		"architecture page": {with(payload("meta", list), "conditions", conditions), workflow.Architecture, record.OwnWorkflowSchema, nil, ""},
		"status maps":       {payload("frontmatter", statuses), workflow.StatusMap, record.WorkflowSchema, nil, ""},
		"maps with meta":    {with(payload("meta", statuses), "conditions", map[string]any{}), workflow.StatusMap, record.WorkflowSchema, nil, ""},
		"a text":            {"x", "", "", workflow.ErrNoWorkflow, "a definition is a map"},
		"an unknown key":    {with(payload("meta", statuses), "mood", "good"), "", "", workflow.ErrNoWorkflow, "mood"},
		"no condition":      {payload("meta", list), "", "", workflow.ErrNoWorkflow, "which is no condition"},
		"no such schema":    {with(payload("meta", statuses), "roles", map[string]any{"a": map[string]any{"description": "d", "systemPrompt": "s", "outputSchema": "0000000000000"}}), "", "", node.ErrNotFound, "0000000000000"},
	} {
		d, err := workflow.FromFormer(g, tc.payload)
		if tc.refused != nil {
			if !errors.Is(err, tc.refused) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		now, nodes, err := workflow.Materialize(d, time.UnixMilli(0))
		if err != nil || d.Dialect != tc.dialect || len(nodes) != 2 || nodes[1].Type != tc.typ || d.Roles["a"].Frontmatter != h {
			t.Errorf("%s: %+v, %v", name, d, err)
			continue
		}
		if again, err := workflow.FromNode(storeOf(t, nodes), now); err != nil || !reflect.DeepEqual(again, d) {
			t.Errorf("%s: %+v, %v, want %+v", name, again, err, d)
		}
	}
}

// TestForPeers: what the TypeScript uwf doesn't know is taken out of a workflow, and the rest
// has the hash that it has there without it.
func TestForPeers(t *testing.T) {
	const text = `
VERSIONname: n
description: d
LIMITSroles:
  a:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    CHECKSfrontmatter: {type: object, required: [$status], properties: {$status: {enum: [x, y, z]}}}
graph:
  $START: STARTS
  a: EDGES
`
	const mapped, guarded = "{x: {role: $END, prompt: p}, y: {role: a, prompt: p}, z: {role: $SUSPEND, prompt: p}}", "{x: {role: $END, prompt: p, approval: {not: [starter]}}, y: {role: a, prompt: p}, z: {role: $SUSPEND, prompt: p}}"
	store := func(words ...string) (node.Hash, node.Map) {
		t.Helper()
		words = append(words, "VERSION", "", "LIMITS", "", "CHECKS", "", "STARTS", "{_: {role: a, prompt: p}}", "EDGES", mapped)
		d, err := workflow.Parse("n.yaml", []byte(strings.NewReplacer(words...).Replace(text)), workflow.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, nodes, err := workflow.Materialize(d, time.UnixMilli(77))
		if err != nil {
			t.Fatal(err)
		}
		return h, storeOf(t, nodes)
	}
	liquid, resume := []string{"VERSION", "version: 1\n"}, []string{"STARTS", "{new: {role: a, prompt: p}, resume: {role: a, prompt: q}}"}
	for name, tc := range map[string]struct {
		words   []string
		without []string // nil: it stays as it is
		own     bool
	}{
		"the predecessor's":        {nil, nil, false},
		"the predecessor's liquid": {liquid, nil, false},
		"limits":                   {[]string{"LIMITS", "limits: {maxSteps: 3, wall: 1h}\n"}, []string{}, true},
		"checks":                   {[]string{"CHECKS", "checks: [test]\n    "}, []string{}, true},
		"approvals":                {[]string{"EDGES", guarded}, []string{}, true},
		"all, resumed":             {append(resume, "LIMITS", "limits: {tokens: 3}\n", "CHECKS", "checks: [test]\n    ", "EDGES", guarded), resume, true},
		"liquid with limits":       {append(liquid, "LIMITS", "limits: {maxSteps: 3}\n"), liquid, true},
		"a list":                   {[]string{"EDGES", "[{role: $END}]", "LIMITS", "limits: {maxSteps: 3}\n"}, nil, true},
		"conditions":               {[]string{"LIMITS", "conditions: {c: {description: d, expression: 'true'}}\n", "EDGES", "[{role: a, condition: c}, {role: $END}]"}, nil, true},
	} {
		h, nodes := store(tc.words...)
		if (nodes[h].Type == record.OwnWorkflowSchema) != tc.own {
			t.Fatalf("%s: stored as %s", name, nodes[h].Type)
		}
		want, wanted := h, nodes
		if tc.without != nil {
			want, wanted = store(tc.without...)
		}
		got, n, err := workflow.ForPeers(nodes, h)
		if err != nil || got != want || !reflect.DeepEqual(n, wanted[want]) {
			t.Errorf("%s: %s, %v, want %s\n%v", name, got, err, want, n)
		}
	}
	// Other programs leave out what is null, or what makes a workflow of it.
	_, nodes := store()
	for _, p := range []map[string]any{
		{"name": "n", "description": "d", "roles": map[string]any{}, "graph": map[string]any{"$START": map[string]any{"_": map[string]any{"role": "$END", "prompt": "p"}}}},
		{"name": "n"},
	} {
		n, h, err := node.New(record.WorkflowSchema, p, time.UnixMilli(77))
		if err != nil {
			t.Fatal(err)
		}
		nodes[h] = n
		if got, same, err := workflow.ForPeers(nodes, h); err != nil || got != h || !reflect.DeepEqual(same, n) {
			t.Errorf("%v: %s, %v, want %s", p, got, err, h)
		}
	}
	h, nodes := store("LIMITS", "limits: {maxSteps: 3}\n")
	if _, _, err := workflow.ForPeers(nodes, "0000000000000"); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	maps.DeleteFunc(nodes, func(_ node.Hash, n node.Node) bool {
		m, _ := n.Payload.(map[string]any)
		return m["title"] == "n.a"
	})
	if _, _, err := workflow.ForPeers(nodes, h); !errors.Is(err, node.ErrNotFound) {
		t.Errorf("no schema of a role: %v", err)
	}
}

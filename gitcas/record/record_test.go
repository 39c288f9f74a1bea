package record

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
)

const (
	h1 node.Hash = "AAAAAAAAAAAAA"
	h2 node.Hash = "BBBBBBBBBBBBB"
	h3 node.Hash = "CCCCCCCCCCCCC"

	d1 node.Digest = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
)

var at = time.UnixMilli(1_700_000_000_000)

// The peers' schemas must be theirs to the byte, or equal records get different
// hashes in the two systems.
func TestSchemasAreThePeers(t *testing.T) {
	b, err := os.ReadFile("../node/testdata/cas.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Vectors []struct {
			Name, Type string
			Hash       node.Hash
		} `json:"vectors"`
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	have, found := Schemas(), 0
	for _, v := range f.Vectors {
		if strings.HasPrefix(v.Name, "uwf schema") || strings.HasPrefix(v.Name, "agent schema") {
			found++
			if _, ok := have[v.Hash]; !ok {
				t.Errorf("%s (%s) is missing", v.Name, v.Hash)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d schemas in the vectors", found)
	}
}

func TestSchemasHaveTheirNames(t *testing.T) {
	all := Schemas()
	for name, h := range map[string]node.Hash{
		"Answer": AnswerSchema, "Patch": PatchSchema, "StartNode": StartSchema, "StepNode": StepSchema, "Workflow": WorkflowSchema, "ErrorOutput": ErrorOutputSchema,
		"SuspendOutput": SuspendOutputSchema, "StepStart": StepStartSchema, "StepComplete": StepCompleteSchema, "TurnNode": TurnSchema,
		"builtin-detail": BuiltinDetailSchema, "builtin-turn": BuiltinTurnSchema, "claude-code-detail": ClaudeCodeDetailSchema,
		"claude-code-turn": ClaudeCodeTurnSchema, "claude-code-raw-output": ClaudeCodeRawOutputSchema, "hermes-detail": HermesDetailSchema,
		"hermes-raw-output": HermesRawOutputSchema, "mock-detail": MockDetailSchema, "broker-detail": BrokerDetailSchema,
	} {
		m, _ := all[h].Payload.(map[string]any)
		if m["title"] != name {
			t.Errorf("%s has the title %v, want %s", h, m["title"], name)
		}
	}
	for h, base := range map[node.Hash]string{OwnStartSchema: "StartNode", OwnStepSchema: "StepNode", uncountedStepSchema: "StepNode", OwnWorkflowSchema: "Workflow",
		ResumeWorkflowSchema: "Workflow", LiquidWorkflowSchema: "Workflow", UsageStepSchema: "StepNode", AttemptsStepSchema: "StepNode"} {
		m, _ := all[h].Payload.(map[string]any)
		if m["title"] != base {
			t.Errorf("our %s is not there", base)
		}
	}
	if len(all) != 27 {
		t.Errorf("%d schemas", len(all))
	}
	for h, n := range all {
		if err := node.CheckSchema(n.Payload); err != nil {
			t.Errorf("%s: %v", h, err)
		}
		if err := node.Verify(h, n); err != nil {
			t.Error(err)
		}
	}
	delete(all, StartSchema)
	if _, ok := Schemas()[StartSchema]; !ok {
		t.Error("a caller could take a schema away")
	}
}

func TestStart(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Start
		typ  node.Hash
	}{
		{"peer's", Start{Workflow: h1, Prompt: "do it", Cwd: "/repo"}, StartSchema},
		{"empty", Start{Workflow: h1}, StartSchema},
		{"base", Start{Workflow: h1, Prompt: "p", Base: "0123456789012345678901234567890123456789"}, OwnStartSchema},
		{"digests", Start{Workflow: h1, Prompt: "p", Digests: &StartDigests{Workflow: d1}}, OwnStartSchema},
		{"title", Start{Workflow: h1, Prompt: "p", Title: "Fix slugs"}, OwnStartSchema},
		{"by", Start{Workflow: h1, Prompt: "p", By: &By{Kind: ByLocal, Name: "Alice"}}, OwnStartSchema},
		{"trigger", Start{Workflow: h1, Trigger: map[string]any{"event": "issues", "number": int64(7), "labels": []any{"uwf"}}}, OwnStartSchema},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := made(t, tt.typ)(tt.in.Node(at))
			got, err := ParseStart(n)
			if err != nil || !reflect.DeepEqual(got, tt.in) {
				t.Errorf("read back as %#v, %v", got, err)
			}
		})
	}
}

// TestLaterSteps: the StepNodes of the peers' later generations are read; what is wrong with
// the fields that they have besides is said.
func TestLaterSteps(t *testing.T) {
	usage := map[string]any{"turns": int64(3), "inputTokens": int64(10), "outputTokens": int64(20), "duration": 1500.5}
	read := &Usage{Turns: 3, InputTokens: 10, OutputTokens: 20, DurationMs: 1500500, Unpriced: true}
	brokers := &Usage{Turns: 3, InputTokens: 10, OutputTokens: 20, DurationMs: 1500, Unpriced: true}
	with := func(fields map[string]any) map[string]any {
		p := map[string]any{"start": string(h1), "prev": nil, "role": "dev", "output": string(h2), "detail": string(h3), "agent": "uwf-mock",
			"startedAtMs": int64(1), "completedAtMs": int64(2), "cwd": ".", "assembledPrompt": nil}
		for k, v := range fields {
			p[k] = v
		}
		return p
	}
	for name, tc := range map[string]struct {
		typ      node.Hash
		payload  any
		usage    *Usage
		attempts []node.Hash
		says     string
	}{
		"usage":                   {UsageStepSchema, with(map[string]any{"usage": usage}), read, nil, ""},
		"a broker's":              {AttemptsStepSchema, with(map[string]any{"usage": usage, "agent": "hermes"}), brokers, nil, ""},
		"no usage":                {UsageStepSchema, with(map[string]any{"usage": nil}), nil, nil, ""},
		"neither field":           {AttemptsStepSchema, with(nil), nil, nil, ""},
		"null attempts":           {AttemptsStepSchema, with(map[string]any{"usage": nil, "previousAttempts": nil}), nil, nil, ""},
		"attempts":                {AttemptsStepSchema, with(map[string]any{"usage": usage, "previousAttempts": []any{string(h3)}}), read, []node.Hash{h3}, ""},
		"a usage that is a text":  {UsageStepSchema, with(map[string]any{"usage": "much"}), nil, nil, "usage of a StepNode must be an object"},
		"a usage with no turns":   {UsageStepSchema, with(map[string]any{"usage": map[string]any{}}), nil, nil, "turns of a StepNode's usage must be a whole number"},
		"an attempt that is none": {AttemptsStepSchema, with(map[string]any{"previousAttempts": []any{"x"}}), nil, nil, "previousAttempts of a StepNode must be a node's hash"},
		"attempts before 0.4":     {UsageStepSchema, with(map[string]any{"previousAttempts": []any{string(h3)}}), nil, nil, "a StepNode with unknown fields"},
		"a field of ours":         {AttemptsStepSchema, with(map[string]any{"body": string(h1)}), nil, nil, "a StepNode with unknown fields"},
		"no object":               {AttemptsStepSchema, "x", nil, nil, "must be an object"},
	} {
		n := node.Node{Type: tc.typ, Payload: tc.payload}
		s, err := ParseStep(n)
		if tc.says != "" {
			if err == nil || !strings.Contains(err.Error(), tc.says) || !errors.Is(err, ErrNotRecord) {
				t.Errorf("%s: %v, want %s", name, err, tc.says)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(s.Usage, tc.usage) || !reflect.DeepEqual(s.PreviousAttempts, tc.attempts) || s.Role != "dev" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if p, _ := tc.payload.(map[string]any); len(tc.attempts) > 0 && len(p) != 12 {
			t.Errorf("%s: the payload was changed", name)
		}
	}
}

func TestStep(t *testing.T) {
	one, two := h2, h3
	base := Step{Start: h1, Role: "dev", Output: h2, Detail: h3, Agent: "uwf-mock", EdgePrompt: "go",
		StartedAtMs: 1, CompletedAtMs: 2, Cwd: "."}
	with := func(f func(*Step)) Step { s := base; f(&s); return s }
	for _, tt := range []struct {
		name string
		in   Step
		typ  node.Hash
	}{
		{"first", base, StepSchema},
		{"next", with(func(s *Step) { s.Prev = &one; s.AssembledPrompt = &two }), StepSchema},
		{"no edge prompt", with(func(s *Step) { s.EdgePrompt = "" }), StepSchema},
		{"body", with(func(s *Step) { s.Body = &two }), OwnStepSchema},
		{"usage", with(func(s *Step) { s.Usage = &Usage{1, 2, 3, 4, 0.25, false, ""} }), OwnStepSchema},
		{"usage, in part without a price", with(func(s *Step) { s.Usage = &Usage{1, 2, 3, 4, 0.25, true, "vendor/big"} }), OwnStepSchema},
		{"usage, whole dollars", with(func(s *Step) { s.Usage = &Usage{CostUSD: 3} }), OwnStepSchema},
		{"work", with(func(s *Step) { s.Work = &Work{"uwf/x", "abc"} }), OwnStepSchema},
		{"run", with(func(s *Step) { s.Run = &Run{"42", 2} }), OwnStepSchema},
		{"by", with(func(s *Step) {
			s.By = &By{Kind: ByForge, Login: "alice", ID: 7, URL: "https://forge.example/o/r/issues/7"}
		}), OwnStepSchema},
		{"answer", with(func(s *Step) { s.Answer = &two }), OwnStepSchema},
		{"patch", with(func(s *Step) { s.Patch = &two }), OwnStepSchema},
		{"prepare", with(func(s *Step) { s.Prepare = &two }), OwnStepSchema},
		{"checks", with(func(s *Step) {
			s.Checks = []Check{{"test", "passed", 0, 12, "", ""}, {"lint", "failed", 1, 3, "fails on the base, too", "a.go:1: no\n"}}
		}), OwnStepSchema},
		{"attempts", with(func(s *Step) { s.PreviousAttempts = []node.Hash{h1, h2} }), OwnStepSchema},
		{"notes", with(func(s *Step) { s.Notes = []string{"a is not kept", "b"} }), OwnStepSchema},
		{"digests of a first step", with(func(s *Step) { s.Digests = &StepDigests{Start: d1, Output: d1, Detail: d1} }), OwnStepSchema},
		{"digests of all", with(func(s *Step) {
			s.Prev, s.AssembledPrompt, s.Body, s.PreviousAttempts = &one, &two, &two, []node.Hash{h1, h2}
			s.Answer, s.Patch, s.Prepare = &two, &two, &two
			s.Digests = &StepDigests{Prev: d1, Output: d1, Detail: d1, AssembledPrompt: d1, Body: d1, Answer: d1, Patch: d1, Prepare: d1, PreviousAttempts: []node.Digest{d1, d1}}
		}), OwnStepSchema},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := made(t, tt.typ)(tt.in.Node(at))
			got, err := ParseStep(n)
			if err != nil || !reflect.DeepEqual(got, tt.in) {
				t.Errorf("read back as %#v, %v", got, err)
			}
		})
	}
}

// made checks that a record fits its own schema, survives its file, and has the
// schema it should have.
func made(t *testing.T, typ node.Hash) func(node.Node, node.Hash, error) node.Node {
	return func(n node.Node, h node.Hash, err error) node.Node {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if n.Type != typ {
			t.Errorf("type %s, want %s", n.Type, typ)
		}
		if err := node.Check(node.Map(Schemas()), n); err != nil {
			t.Error(err)
		}
		b, err := node.EncodeFile(n)
		if err != nil {
			t.Fatal(err)
		}
		again, err := node.DecodeFile(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := node.Verify(h, again); err != nil {
			t.Error(err)
		}
		return again
	}
}

func TestOutputs(t *testing.T) {
	made(t, ErrorOutputSchema)(ErrorOutput{Error: "it broke", Phase: "agent"}.Node(at))
	made(t, ErrorOutputSchema)(ErrorOutput{Error: "it broke"}.Node(at))
	made(t, SuspendOutputSchema)(node.New(SuspendOutputSchema, map[string]any{"$status": "$SUSPEND", "reason": "which colour?"}, at))
}

// The parsers read what is on a branch that anyone may have written to: whatever
// the schema refuses, they refuse too.
func TestParseRefuses(t *testing.T) {
	start := func() map[string]any {
		return map[string]any{"workflow": string(h1), "prompt": "p", "cwd": ""}
	}
	step := func() map[string]any {
		return map[string]any{"start": string(h1), "prev": nil, "role": "r", "output": string(h1), "detail": string(h1),
			"agent": "a", "startedAtMs": int64(1), "completedAtMs": int64(1), "cwd": ""}
	}
	for _, tt := range []struct {
		name    string
		typ     node.Hash
		payload map[string]any
		field   string
		value   any
		want    string
	}{
		{"workflow no hash", StartSchema, start(), "workflow", "x", "workflow of a StartNode must be a node's hash"},
		{"prompt no text", StartSchema, start(), "prompt", int64(1), "prompt of a StartNode must be a string"},
		{"unknown field", StartSchema, start(), "more", "x", "unknown fields"},
		{"our field under the peers' schema", StartSchema, start(), "base", "x", "unknown fields"},
		{"no digest of the workflow", OwnStartSchema, start(), "digests", map[string]any{}, "workflow of a StartNode's digests must be a SHA-256"},
		{"more digests than references", OwnStartSchema, start(), "digests", map[string]any{"workflow": string(d1), "base": string(d1)}, "a StartNode's digests with unknown fields"},
		{"digest in capitals", OwnStartSchema, start(), "digests", map[string]any{"workflow": strings.ToUpper(string(d1))}, "must be a SHA-256"},
		{"digests no object", OwnStepSchema, step(), "digests", string(d1), "digests of a StepNode must be an object"},
		{"trigger no object", OwnStartSchema, start(), "trigger", "x", "trigger of a StartNode must be an object"},
		{"base no text", OwnStartSchema, start(), "base", nil, "base of a StartNode must be a string"},
		{"prev no hash", StepSchema, step(), "prev", "x", "prev of a StepNode must be"},
		{"prev a number", StepSchema, step(), "prev", int64(1), "prev of a StepNode must be"},
		{"role null", StepSchema, step(), "role", nil, "role of a StepNode must be a string"},
		{"time no integer", StepSchema, step(), "startedAtMs", 1.5, "startedAtMs of a StepNode must be a whole number"},
		{"time a text", StepSchema, step(), "completedAtMs", "1", "completedAtMs of a StepNode must be a whole number"},
		{"body null", OwnStepSchema, step(), "body", nil, "body of a StepNode must be"},
		{"usage a list", OwnStepSchema, step(), "usage", []any{}, "usage of a StepNode must be an object"},
		{"usage incomplete", OwnStepSchema, step(), "usage", map[string]any{"turns": int64(1)}, "inputTokens of a StepNode's usage must be"},
		{"usage with more", OwnStepSchema, step(), "usage", map[string]any{"turns": int64(1), "inputTokens": int64(1), "outputTokens": int64(1), "durationMs": int64(1), "costUsd": int64(1), "x": nil}, "a StepNode's usage with unknown fields"},
		{"usage cost a text", OwnStepSchema, step(), "usage", map[string]any{"turns": int64(1), "inputTokens": int64(1), "outputTokens": int64(1), "durationMs": int64(1), "costUsd": "1"}, "costUsd of a StepNode's usage must be a number"},
		{"usage unpriced a text", OwnStepSchema, step(), "usage", map[string]any{"turns": int64(1), "inputTokens": int64(1), "outputTokens": int64(1), "durationMs": int64(1), "costUsd": int64(1), "unpriced": "true"}, "unpriced of a StepNode's usage must be true or false"},
		{"work incomplete", OwnStepSchema, step(), "work", map[string]any{"branch": "b"}, "commit of a StepNode's work must be"},
		{"run attempt a text", OwnStepSchema, step(), "run", map[string]any{"id": "1", "attempt": "1"}, "attempt of a StepNode's run must be"},
		{"attempts no list", OwnStepSchema, step(), "previousAttempts", string(h1), "previousAttempts of a StepNode must be"},
		{"attempts no hashes", OwnStepSchema, step(), "previousAttempts", []any{"x"}, "previousAttempts of a StepNode must be"},
		{"by of another kind", OwnStepSchema, step(), "by", map[string]any{"kind": "admin", "login": "a"}, "by of a StepNode"},
		{"title no text", OwnStartSchema, start(), "title", int64(1), "title of a StartNode must be a string"},
		{"answer no hash", OwnStepSchema, step(), "answer", int64(1), "answer of a StepNode must be a node's hash"},
		{"patch null", OwnStepSchema, step(), "patch", nil, "patch of a StepNode must be a node's hash"},
		{"prepare null", OwnStepSchema, step(), "prepare", nil, "prepare of a StepNode must be a node's hash"},
		{"prepare a text", OwnStepSchema, step(), "prepare", "added 3 packages", "prepare of a StepNode must be a node's hash"},
		{"prepare under the peers' schema", StepSchema, step(), "prepare", string(h1), "unknown fields"},
		{"notes no list", OwnStepSchema, step(), "notes", "n", "notes of a StepNode must be a list"},
		{"a note that is no text", OwnStepSchema, step(), "notes", []any{int64(1)}, "notes of a StepNode must be a string"},
		{"checks no list", OwnStepSchema, step(), "checks", map[string]any{}, "checks of a StepNode must be a list"},
		{"check without a name", OwnStepSchema, step(), "checks", []any{map[string]any{"status": "passed"}}, "name of a check of a StepNode must be a string"},
		{"check of another status", OwnStepSchema, step(), "checks", []any{map[string]any{"name": "test", "status": "fine"}}, "status of a check of a StepNode must be passed, failed or skipped"},
		{"check with more", OwnStepSchema, step(), "checks", []any{map[string]any{"name": "test", "status": "passed", "log": "x"}}, "unknown fields"},
		{"check with a note that is no text", OwnStepSchema, step(), "checks", []any{map[string]any{"name": "test", "status": "passed", "note": int64(1)}}, "note of a check of a StepNode must be a string"},
		{"by under the peers' schema", StepSchema, step(), "by", map[string]any{"kind": "forge", "login": "a"}, "unknown fields"},
		{"body under the peers' schema", StepSchema, step(), "body", string(h1), "unknown fields"},
		{"another type", node.String, step(), "role", "r", "is no StepNode"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parse := func(n node.Node) error { _, err := ParseStep(n); return err }
			if _, isStart := tt.payload["workflow"]; isStart {
				parse = func(n node.Node) error { _, err := ParseStart(n); return err }
			}
			n := node.Node{Type: tt.typ, Payload: tt.payload}
			if IsStart(tt.typ) || IsStep(tt.typ) {
				if err := parse(n); err != nil {
					t.Fatalf("before the change: %v", err)
				}
				tt.payload[tt.field] = tt.value
				if err := node.Check(node.Map(Schemas()), n); err == nil {
					t.Error("the schema accepts it")
				}
			}
			if err := parse(n); !errors.Is(err, ErrNotRecord) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	for field := range step() {
		p := step()
		delete(p, field)
		if _, err := ParseStep(node.Node{Type: StepSchema, Payload: p}); !errors.Is(err, ErrNotRecord) {
			t.Errorf("without %s: %v", field, err)
		}
	}
	for _, p := range []any{nil, "x", []any{}} {
		if _, err := ParseStep(node.Node{Type: StepSchema, Payload: p}); !errors.Is(err, ErrNotRecord) || !strings.Contains(err.Error(), "must be an object") {
			t.Errorf("payload %v: %v", p, err)
		}
	}
}

// A step as the TypeScript uwf writes it, with an explicit null.
func TestParseStepOfThePeer(t *testing.T) {
	n, err := node.DecodeFile([]byte(`{"type":"108DB063KRQWW","timestamp":1,"payload":{"start":"AAAAAAAAAAAAA","prev":null,"role":"r",
		"output":"BBBBBBBBBBBBB","detail":"CCCCCCCCCCCCC","agent":"uwf-hermes","startedAtMs":1.0,"completedAtMs":2e0,"cwd":"/x","assembledPrompt":null}}`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseStep(n)
	want := Step{Start: h1, Role: "r", Output: h2, Detail: h3, Agent: "uwf-hermes", StartedAtMs: 1, CompletedAtMs: 2, Cwd: "/x"}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("%#v, %v", s, err)
	}
}

// The digests of a step are those of its references, all of them and no others. No
// schema says so.
func TestDigestsOfOthers(t *testing.T) {
	for name, digests := range map[string]map[string]any{
		"no digest of the start":         {"output": string(d1), "detail": string(d1)},
		"of a step before the first":     {"start": string(d1), "prev": string(d1), "output": string(d1), "detail": string(d1)},
		"of a body that is not there":    {"start": string(d1), "body": string(d1), "output": string(d1), "detail": string(d1)},
		"of attempts that were not made": {"start": string(d1), "previousAttempts": []any{string(d1)}, "output": string(d1), "detail": string(d1)},
		"no digest of the output":        {"start": string(d1), "detail": string(d1)},
		"of a prompt that is not there":  {"start": string(d1), "assembledPrompt": string(d1), "output": string(d1), "detail": string(d1)},
	} {
		p := map[string]any{"start": string(h1), "prev": nil, "role": "r", "output": string(h1), "detail": string(h1), "agent": "a",
			"startedAtMs": int64(1), "completedAtMs": int64(1), "cwd": "", "digests": digests}
		if _, err := ParseStep(node.Node{Type: OwnStepSchema, Payload: p}); !errors.Is(err, ErrNotRecord) || !strings.Contains(err.Error(), "a StepNode's digests") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each attempt has a digest of its own.
func TestAttemptDigests(t *testing.T) {
	for name, list := range map[string]any{
		"too few": []any{string(d1)}, "too many": []any{string(d1), string(d1), string(d1)}, "no list": string(d1), "no digest": []any{string(d1), "x"},
	} {
		p := map[string]any{"start": string(h1), "prev": nil, "role": "r", "output": string(h1), "detail": string(h1), "agent": "a",
			"startedAtMs": int64(1), "completedAtMs": int64(1), "cwd": "", "previousAttempts": []any{string(h1), string(h2)},
			"digests": map[string]any{"start": string(d1), "output": string(d1), "detail": string(d1), "previousAttempts": list}}
		if _, err := ParseStep(node.Node{Type: OwnStepSchema, Payload: p}); !errors.Is(err, ErrNotRecord) || !strings.Contains(err.Error(), "previousAttempts of a StepNode's digests must be") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// SetDigests asks for each reference once, and a step read back has them all.
func TestSetDigests(t *testing.T) {
	one, two := h2, h3
	s := Step{Start: h1, Prev: &one, Role: "r", Output: h2, Detail: h3, Agent: "a", AssembledPrompt: &two, Body: &two, PreviousAttempts: []node.Hash{h1, h2}}
	var asked []string
	if err := s.SetDigests(func(r Ref) (node.Digest, error) { asked = append(asked, r.Field); return d1, nil }); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(asked, " "); got != "prev output body detail assembledPrompt previousAttempts previousAttempts" {
		t.Errorf("asked for %s", got)
	}
	n, _, err := s.Node(at)
	if err != nil {
		t.Fatal(err)
	}
	refs, digests, err := RefsOf(n)
	if err != nil || !digests || len(refs) != 8 {
		t.Fatalf("%v, %v, %v", refs, digests, err)
	}
	for _, r := range refs {
		if (r.Digest == "") != (r.Field == "start") {
			t.Errorf("%+v", r)
		}
	}
	s.Prev = nil
	if err := s.SetDigests(func(Ref) (node.Digest, error) { return d1, nil }); err != nil || s.Digests.Start != d1 || s.Digests.Prev != "" {
		t.Errorf("a first step: %+v, %v", s.Digests, err)
	}
	broken := errors.New("broken")
	if err := s.SetDigests(func(Ref) (node.Digest, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("a digest that is not known: %v", err)
	}
	if refs, digests, err := RefsOf(node.Node{Type: node.String, Payload: "x"}); refs != nil || digests || err != nil {
		t.Errorf("a text: %v, %v, %v", refs, digests, err)
	}
	n, _, err = Start{Workflow: h1, Digests: &StartDigests{Workflow: d1}}.Node(at)
	if refs, digests, rerr := RefsOf(n); err != nil || rerr != nil || !digests || len(refs) != 1 || refs[0] != (Ref{"workflow", ToShared, h1, d1}) {
		t.Errorf("a start: %v, %v, %v", refs, digests, rerr)
	}
}

// An agent that says nothing of the cost of its tokens leaves it unknown; 0 is a cost.
func TestReported(t *testing.T) {
	for in, want := range map[string]Usage{
		`{}`:                                 {},
		`{"turns":2}`:                        {Turns: 2},
		`{"inputTokens":5,"outputTokens":6}`: {InputTokens: 5, OutputTokens: 6, Unpriced: true},
		`{"inputTokens":5,"costUsd":null}`:   {InputTokens: 5, Unpriced: true},
		`{"inputTokens":5,"costUsd":0}`:      {InputTokens: 5},
		`{"inputTokens":5,"costUsd":0.25}`:   {InputTokens: 5, CostUSD: 0.25},
		`{"inputTokens":5,"costUsd":0.25,"unpriced":true,"durationMs":9}`: {InputTokens: 5, CostUSD: 0.25, Unpriced: true, DurationMs: 9},
	} {
		var r Reported
		if err := json.Unmarshal([]byte(in), &r); err != nil || r.Known() != want {
			t.Errorf("%s: %+v, %v; want %+v", in, r.Known(), err, want)
		}
	}
}

package bundle_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/bundle"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/gitcastest/collide"
	"github.com/united-workforce/uwf/internal/wiretest"
)

var update = flag.Bool("update", false, "write the golden listing anew")

const (
	first  gitcas.ThreadID = "01KN0000000000000000000001"
	second gitcas.ThreadID = "01KN0000000000000000000002"
)

// world is a store with threads of our own.
type world struct {
	*testing.T
	at      time.Time
	store   *gitcas.Store
	role    gitcas.PlacedNode // a role's schema
	flow    gitcas.PlacedNode
	prompt  string
	plain   bool        // threads are started as the predecessor does
	records []node.Hash // in the order in which they were made
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) now() time.Time {
	w.at = w.at.Add(1500 * time.Millisecond)
	return w.at
}

func (w *world) place(at gitcas.Place, typ node.Hash, payload any) gitcas.PlacedNode {
	w.Helper()
	n, h, err := node.New(typ, payload, w.now())
	w.ok(err)
	return gitcas.PlacedNode{Hash: h, Node: n, Place: at}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, prompt: "the prompt", at: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
	mem := wiretest.NewMemory(wiretest.MemoryOptions{Atomic: true, Now: w.now})
	w.store = gitcas.Open(mem, gitcas.Options{Now: w.now, Rand: bytes.NewReader(make([]byte, 1<<10))})
	_, err := w.store.Init(t.Context())
	w.ok(err)
	w.setFlow()
	return w
}

const definition = `
name: solve
description: d
LIMITSroles:
  developer:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    CHECKSfrontmatter: {type: object, required: [$status], properties: {$status: {enum: [done, again]}, note: {type: string}}}
graph:
  $START: {_: {role: developer, prompt: go on}}
  developer: EDGES
`

// setFlow is the workflow that threads are started with from then on: the definition with some
// words in the place of others.
func (w *world) setFlow(words ...string) {
	w.Helper()
	words = append(words, "LIMITS", "", "CHECKS", "", "EDGES", "{done: {role: $END, prompt: go on}, again: {role: developer, prompt: go on}}")
	d, err := workflow.Parse("solve.yaml", []byte(strings.NewReplacer(words...).Replace(definition)), workflow.Options{})
	w.ok(err)
	h, nodes, err := workflow.Materialize(d, w.now())
	w.ok(err)
	w.role, w.flow = gitcas.PlacedNode{Node: nodes[0]}, gitcas.PlacedNode{Hash: h, Node: nodes[1]}
	w.role.Hash, err = nodes[0].ComputeHash()
	w.ok(err)
}

func (w *world) load(ids ...gitcas.ThreadID) *gitcas.View {
	w.Helper()
	v, err := w.store.Load(w.Context(), ids...)
	w.ok(err)
	return v
}

func (w *world) push(c *gitcas.Change, ids ...gitcas.ThreadID) {
	w.Helper()
	_, err := w.store.Push(w.Context(), w.load(ids...), c)
	w.ok(err)
}

func (w *world) start(id gitcas.ThreadID) {
	w.Helper()
	if w.plain {
		n, h, err := record.Start{Workflow: w.flow.Hash, Prompt: "p", Cwd: "."}.Node(w.now())
		w.ok(err)
		w.pushStart(id, n, h)
		return
	}
	d, err := w.load().Definition(w.Context(), w.flow.Hash, node.Map{w.flow.Hash: w.flow.Node, w.role.Hash: w.role.Node})
	w.ok(err)
	n, h, err := record.Start{
		Workflow: w.flow.Hash, Prompt: "Mend <it> & so on", Cwd: ".", Title: "Mend it", Base: strings.Repeat("0a", 20),
		Trigger: map[string]any{"event": "issues"}, By: &record.By{Kind: record.ByLocal, Name: "someone"}, Digests: &record.StartDigests{Workflow: d},
	}.Node(w.now())
	w.ok(err)
	w.pushStart(id, n, h)
}

func (w *world) pushStart(id gitcas.ThreadID, n node.Node, h node.Hash) {
	w.Helper()
	w.push(&gitcas.Change{
		Subject: "start", Nodes: []gitcas.PlacedNode{w.flow, w.role, {Hash: n.Type, Node: record.Schemas()[n.Type]}, {Hash: w.flow.Node.Type, Node: record.Schemas()[w.flow.Node.Type]}, {Hash: h, Node: n, Place: gitcas.Place{Thread: id}}},
		Threads:  map[gitcas.ThreadID]*gitcas.Entry{id: {Head: h, Workflow: w.flow.Hash}},
		Registry: map[string]*gitcas.RegistryEntry{"solve": {Hash: w.flow.Hash, Timestamp: 5}},
	})
	w.records = append(w.records, h)
}

// seal makes a step with all that one of ours can have, and gives the nodes to store.
func (w *world) seal(v *gitcas.View, id gitcas.ThreadID, agent string, output gitcas.PlacedNode, earlier []gitcas.PlacedNode, names ...node.Hash) (node.Hash, []gitcas.PlacedNode) {
	w.Helper()
	own, details := gitcas.Place{Thread: id, Of: w.flow.Hash}, gitcas.Place{Thread: id, Of: w.flow.Hash, Detail: true}
	output.Place = own
	turn := w.place(details, record.BuiltinTurnSchema, map[string]any{"role": "assistant", "content": "looking", "toolCalls": nil, "reasoning": nil})
	detail := w.place(details, record.BuiltinDetailSchema, map[string]any{"sessionId": "s", "model": "m", "duration": 1, "turnCount": 1, "turns": []any{string(turn.Hash)}})
	prompt, prepare := w.place(details, node.String, w.prompt), w.place(details, node.String, "what prepare printed")
	body, answer := w.place(own, node.String, "the body"), gitcas.PlacedNode{Place: own}
	var err error
	answer.Node, answer.Hash, err = record.Answer{Words: []record.Word{{Do: record.DoResume, Role: "developer", Text: "this one", AtMs: 1}}}.Node(w.now())
	w.ok(err)
	e, _ := v.Entry(id)
	chain, err := v.ReadChain(w.Context(), id)
	w.ok(err)
	step := record.Step{
		Start: chain.StartHash, Role: "developer", Output: output.Hash, Detail: detail.Hash, Agent: agent, EdgePrompt: "go on", StartedAtMs: 1, CompletedAtMs: 2, Cwd: ".",
		AssembledPrompt: &prompt.Hash, Body: &body.Hash, Usage: &record.Usage{Turns: 3, InputTokens: 10, OutputTokens: 20, DurationMs: 1500, CostUSD: 0.5},
		Work: &record.Work{Branch: "uwf/x", Commit: strings.Repeat("0b", 20)}, PreviousAttempts: names, Run: &record.Run{ID: "r", Attempt: 1},
		Answer: &answer.Hash, Prepare: &prepare.Hash, Checks: []record.Check{{Name: "test", Status: record.CheckPassed}},
	}
	if e.Head != chain.StartHash {
		step.Prev = &e.Head
	}
	h, nodes, err := v.Complete(w.Context(), id, step, w.now(), []gitcas.PlacedNode{output, turn, detail, prompt, prepare, body, answer}, earlier)
	w.ok(err)
	w.records = append(w.records, h)
	return h, append(nodes, earlier...)
}

func (w *world) step(id gitcas.ThreadID, status string, attempts int) {
	w.Helper()
	v := w.load(id)
	var earlier []gitcas.PlacedNode
	var names []node.Hash
	for i := range attempts {
		n, h, err := record.ErrorOutput{Error: fmt.Sprint("out of tape ", i), Phase: "agent"}.Node(w.now())
		w.ok(err)
		failed, nodes := w.seal(v, id, "uwf-tape", gitcas.PlacedNode{Hash: h, Node: n}, nil)
		earlier, names = append(earlier, nodes...), append(names, failed)
	}
	h, nodes := w.seal(v, id, "builtin", w.place(gitcas.Place{}, w.role.Hash, map[string]any{"$status": status, "note": "\u2028 é"}), earlier, names...)
	w.push(&gitcas.Change{Subject: "step", Nodes: nodes, Threads: map[gitcas.ThreadID]*gitcas.Entry{id: {Head: h, Workflow: w.flow.Hash}}}, id)
}

func (w *world) thread(id gitcas.ThreadID) bundle.Thread {
	v := w.load(id)
	e, _ := v.Entry(id)
	return bundle.Thread{ID: id, View: v, Entry: e}
}

// export makes a bundle of threads, with the names that the store has registered.
func (w *world) export(threads ...bundle.Thread) (data []byte, out []bundle.Exported, notes []string) {
	w.Helper()
	b := bundle.New(workflow.ForPeers)
	for _, t := range threads {
		e, err := b.Add(w.Context(), t)
		w.ok(err)
		out = append(out, e)
	}
	notes = b.AddNames(w.load().Registry())
	data, err := b.Bytes()
	w.ok(err)
	return data, out, notes
}

// unpackBundle reads a bundle with another reader of archives than its writer.
func unpackBundle(t *testing.T, data []byte) (nodes node.Map, vars, listing string) {
	t.Helper()
	nodes = node.Map{}
	var list strings.Builder
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nodes, vars, list.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Mode != 0o644 || h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Typeflag != tar.TypeReg {
			t.Errorf("%+v", h)
		}
		name, isNode := strings.CutPrefix(h.Name, "cas/")
		if !isNode {
			fmt.Fprintf(&list, "%s %d\n%s", h.Name, h.ModTime.Unix(), b)
			if h.Name == "vars.jsonl" {
				vars = string(b)
			}
			continue
		}
		v, err := node.DecodeCBOR(b)
		if err != nil {
			t.Fatal(err)
		}
		m := v.(map[string]any)
		n := node.Node{Type: node.Hash(m["type"].(string)), Payload: m["payload"], Timestamp: m["timestamp"].(int64)}
		hash := node.Hash(strings.TrimSuffix(name, ".bin"))
		if err := node.Verify(hash, n); err != nil {
			t.Error(err)
		}
		if _, twice := nodes[hash]; twice {
			t.Errorf("%s is there twice", hash)
		}
		nodes[hash] = n
		text, err := node.FormatJSON(n.Payload)
		if err != nil || n.Type == node.MetaSchema {
			text = nil
		}
		fmt.Fprintf(&list, "%s %d type %s at %d\n%s", h.Name, h.ModTime.Unix(), n.Type, n.Timestamp, text)
	}
}

// TestConvert: the records of a thread of ours go out as the predecessor has them, with its
// hashes, and nothing of what is ours alone.
func TestConvert(t *testing.T) {
	w := newWorld(t)
	w.start(first)
	w.step(first, "again", 0)
	w.step(first, "done", 2)
	data, out, _ := w.export(w.thread(first))
	nodes, _, listing := unpackBundle(t, data)

	// What they must be, worked out apart from the code.
	hashOf := func(typ node.Hash, payload any) node.Hash {
		h, err := node.HashOf(typ, payload)
		w.ok(err)
		if _, there := nodes[h]; !there {
			t.Errorf("%s is not there: %v", h, payload)
		}
		return h
	}
	start := hashOf("44P8EP6N3NXZ5", map[string]any{"workflow": string(w.flow.Hash), "prompt": "Mend <it> & so on", "cwd": "."})
	step := func(agent string, output node.Hash, prev any, duration float64, attempts ...any) node.Hash {
		turn := hashOf(record.BuiltinTurnSchema, map[string]any{"role": "assistant", "content": "looking", "toolCalls": nil, "reasoning": nil})
		p := map[string]any{
			"start": string(start), "prev": prev, "role": "developer", "output": string(output), "agent": agent, "edgePrompt": "go on",
			"startedAtMs": 1, "completedAtMs": 2, "cwd": ".", "assembledPrompt": string(hashOf(node.String, "the prompt")),
			"detail": string(hashOf(record.BuiltinDetailSchema, map[string]any{"sessionId": "s", "model": "m", "duration": 1, "turnCount": 1, "turns": []any{string(turn)}})),
			"usage":  map[string]any{"turns": 3, "inputTokens": 10, "outputTokens": 20, "duration": duration},
		}
		if attempts != nil {
			p["previousAttempts"] = attempts
		}
		return hashOf("0RXS7QWMG3KNV", p)
	}
	said := func(status string) node.Hash {
		return hashOf(w.role.Hash, map[string]any{"$status": status, "note": "\u2028 é"})
	}
	failed := func(n int) node.Hash {
		return hashOf("8KPJ61GZX0N6R", map[string]any{"$status": "error", "error": fmt.Sprint("out of tape ", n), "phase": "agent"})
	}
	one := step("builtin", said("again"), nil, 1500)
	a, b := step("uwf-tape", failed(0), string(one), 1.5), step("uwf-tape", failed(1), string(one), 1.5)
	two := step("builtin", said("done"), string(one), 1500, string(a), string(b))
	if out[0].Exported != two || out[0].Steps != 2 || out[0].Nodes != len(nodes) {
		t.Errorf("%+v, want head %s and %d nodes", out[0], two, len(nodes))
	}
	heads, err := bundle.Heads(t.Context(), w.thread(first), workflow.ForPeers)
	if err != nil || !slices.Equal(heads, []node.Hash{start, one, two}) {
		t.Errorf("%v, %v", heads, err)
	}
	for h, n := range nodes {
		if slices.Contains([]node.Hash{record.OwnStartSchema, record.OwnStepSchema, record.AnswerSchema, record.PatchSchema}, n.Type) ||
			n.Payload == "the body" || n.Payload == "what prepare printed" || slices.Contains(w.records, h) {
			t.Errorf("%s is ours alone: %v", h, n)
		}
	}
	compareGolden(t, "testdata/own.txt", listing)
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("not as in %s (%v); where that is meant, run this with -update:\n%s", file, err, got)
	}
}

// TestStanding: what the predecessor's list says of a thread.
func TestStanding(t *testing.T) {
	w := newWorld(t)
	w.start(first)
	w.step(first, "done", 0)
	ended := func(reason string) *gitcas.Ended {
		return &gitcas.Ended{Reason: reason, CompletedAt: 1_800_000_000_077}
	}
	data, out, _ := w.export(w.thread(first))
	nodes, _, _ := unpackBundle(t, data)
	onHead := fmt.Sprintf(`"updated":%d,"tags":`, nodes[out[0].Exported].Timestamp)
	for name, tc := range map[string]struct {
		entry gitcas.Entry
		ended *gitcas.Ended
		want  string
	}{
		"active":              {gitcas.Entry{Status: gitcas.StatusActive}, nil, onHead + `{}`},
		"failed":              {gitcas.Entry{Status: gitcas.StatusActive, Attempts: []string{"refs/x"}}, nil, onHead + `{}`},
		"about to wait":       {gitcas.Entry{Status: gitcas.StatusActive, Pause: &gitcas.Pause{Reason: "why"}}, nil, onHead + `{}`},
		"suspended":           {gitcas.Entry{Status: gitcas.StatusSuspended, Suspended: &gitcas.Suspended{Role: "developer", Reason: "a < b\n&?"}}, nil, onHead + `{"status":"suspended","suspendedRole":"developer","suspendMessage":"a < b\n&?"}`},
		"suspended by nobody": {gitcas.Entry{Status: gitcas.StatusSuspended, Suspended: &gitcas.Suspended{Reason: "why"}}, nil, onHead + `{"status":"suspended","suspendMessage":"why"}`},
		"to be delivered":     {gitcas.Entry{Status: gitcas.StatusEnded, Deliver: true}, nil, fmt.Sprintf(`"updated":%[1]d,"tags":{"status":"end","completedAt":"%[1]d"}`, nodes[out[0].Exported].Timestamp)},
		"ended":               {gitcas.Entry{}, ended(gitcas.ReasonEnded), `"updated":1800000000077,"tags":{"status":"end","completedAt":"1800000000077"}`},
		"cancelled":           {gitcas.Entry{}, ended(gitcas.ReasonCancelled), `"updated":1800000000077,"tags":{"status":"cancelled","completedAt":"1800000000077"}`},
	} {
		th := w.thread(first)
		th.Entry, th.Ended = tc.entry, tc.ended
		data, out, _ := w.export(th)
		_, vars, _ := unpackBundle(t, data)
		want := fmt.Sprintf(`{"name":"@uwf/thread/%s","schema":"0RXS7QWMG3KNV","value":"%s","created":%d,%s,"labels":[]}`, first, out[0].Exported, first.Time().UnixMilli(), tc.want)
		if !strings.Contains(vars, want+"\n") {
			t.Errorf("%s: want %s, got\n%s", name, want, vars)
		}
	}
}

// TestUnderWay: a thread that is just being moved over is no thread yet.
func TestUnderWay(t *testing.T) {
	w := newWorld(t)
	w.start(first)
	th := w.thread(first)
	th.Entry.Status, th.Entry.Suspended = gitcas.StatusSuspended, &gitcas.Suspended{Reason: bundle.UnderWay}
	if _, err := bundle.New(workflow.ForPeers).Add(t.Context(), th); err == nil || !strings.Contains(err.Error(), bundle.UnderWay) {
		t.Error(err)
	}
}

// TestSeveral: whatever the order in which threads are added, what they share is there once.
func TestSeveral(t *testing.T) {
	w := newWorld(t)
	w.start(first)
	w.step(first, "again", 1)
	w.start(second)
	w.step(second, "again", 0)
	data, out, _ := w.export(w.thread(first), w.thread(second))
	other, _, _ := w.export(w.thread(second), w.thread(first))
	if !bytes.Equal(data, other) {
		t.Error("the order counts")
	}
	nodes, _, _ := unpackBundle(t, data)
	if sum := out[0].Nodes + out[1].Nodes; len(nodes) >= sum || out[0].Exported == out[1].Exported {
		t.Errorf("%d nodes of %d, %v", len(nodes), sum, out)
	}
}

// TestWorkflows: a workflow goes out in the form that the predecessor can run, where it has
// one, and so do the names that stand for it.
func TestWorkflows(t *testing.T) {
	plain := newWorld(t).flow
	for name, tc := range map[string]struct {
		words  []string
		stored node.Hash
		keeps  bool
		note   string
	}{
		"the predecessor's": {nil, record.WorkflowSchema, true, "[]"},
		"with limits":       {[]string{"LIMITS", "limits: {maxSteps: 3}\n"}, record.OwnWorkflowSchema, false, "workflow solve goes out without its limits, approvals and checks"},
		"with checks":       {[]string{"CHECKS", "checks: [test]\n    "}, record.OwnWorkflowSchema, false, "workflow solve goes out without its limits, approvals and checks"},
		"with a list":       {[]string{"EDGES", "[{role: $END}]"}, record.OwnWorkflowSchema, true, "workflow solve stays as it is here"},
	} {
		w := newWorld(t)
		w.setFlow(tc.words...)
		w.start(first)
		want := plain.Hash
		if tc.keeps {
			want = w.flow.Hash
		}
		if w.flow.Node.Type != tc.stored {
			t.Fatalf("%s: stored as %s", name, w.flow.Node.Type)
		}
		data, out, notes := w.export(w.thread(first))
		if len(notes) > 1 || !strings.Contains(fmt.Sprint(notes), tc.note) {
			t.Errorf("%s: %q", name, notes)
		}
		nodes, vars, _ := unpackBundle(t, data)
		n, there := nodes[want]
		start, _ := nodes[out[0].Exported].Payload.(map[string]any)
		if !there || n.Timestamp != w.flow.Node.Timestamp || start["workflow"] != string(want) || out[0].Head == out[0].Exported {
			t.Errorf("%s: %v, want %s; %+v", name, start, want, out[0])
		}
		if _, kept := nodes[w.flow.Hash]; kept && want != w.flow.Hash {
			t.Errorf("%s: it is there twice", name)
		}
		if _, typed := nodes[n.Type]; !typed || len(nodes[n.Type].Payload.(map[string]any)) == 0 {
			t.Errorf("%s: its schema is missing", name)
		}
		if line := fmt.Sprintf(`{"name":"@uwf/registry/solve","schema":"%s","value":"%s",`, n.Type, want); !strings.Contains(vars, line) {
			t.Errorf("%s: want %s, got\n%s", name, line, vars)
		}
	}
}

// plainStep makes a step as the predecessor does.
func (w *world) plainStep(id gitcas.ThreadID) node.Hash {
	w.Helper()
	e, _ := w.load(id).Entry(id)
	output := w.place(gitcas.Place{Thread: id}, w.role.Hash, map[string]any{"$status": "again"})
	detail := w.place(gitcas.Place{Thread: id, Detail: true}, record.MockDetailSchema, map[string]any{"sessionId": "s", "role": "developer", "stepIndex": 0})
	n, h, err := record.Step{Start: e.Head, Role: "developer", Output: output.Hash, Detail: detail.Hash, Agent: "uwf-mock", Cwd: "."}.Node(w.now())
	w.ok(err)
	output.Place.Of, detail.Place.Of = h, h
	nodes := []gitcas.PlacedNode{output, detail, {Hash: h, Node: n, Place: gitcas.Place{Thread: id}}}
	for _, typ := range []node.Hash{n.Type, record.MockDetailSchema} {
		nodes = append(nodes, gitcas.PlacedNode{Hash: typ, Node: record.Schemas()[typ]})
	}
	w.push(&gitcas.Change{Subject: "step", Nodes: nodes, Threads: map[gitcas.ThreadID]*gitcas.Entry{id: {Head: h, Workflow: w.flow.Hash}}}, id)
	return h
}

// TestMixed: of a thread that the predecessor began all keeps its hash up to the first step of
// ours, unless its workflow has none.
func TestMixed(t *testing.T) {
	for name, limits := range map[string]string{"the predecessor's": "", "with limits": "limits: {maxSteps: 9}\n"} {
		w := newWorld(t)
		w.setFlow("LIMITS", limits)
		w.plain = true
		w.start(first)
		e, _ := w.load().Entry(first)
		stored := []node.Hash{e.Head, w.plainStep(first)}
		w.step(first, "done", 0)
		heads, err := bundle.Heads(t.Context(), w.thread(first), workflow.ForPeers)
		w.ok(err)
		if kept := slices.Equal(heads[:2], stored); len(heads) != 3 || kept != (limits == "") || heads[2] == w.records[0] {
			t.Errorf("%s: %v, stored %v %v", name, heads, stored, w.records)
		}
		data, _, _ := w.export(w.thread(first))
		nodes, _, _ := unpackBundle(t, data)
		for i, h := range heads {
			p, _ := nodes[h].Payload.(map[string]any)
			if want := []any{nil, nil, string(heads[1])}[i]; i > 0 && (p["start"] != string(heads[0]) || p["prev"] != want) || record.OwnStepSchema == nodes[h].Type {
				t.Errorf("%s: %d is %v", name, i, p)
			}
		}
	}
}

// TestFork: a thread that begins with the steps of another one is younger than these.
func TestFork(t *testing.T) {
	w := newWorld(t)
	w.start(first)
	w.step(first, "again", 0)
	const late gitcas.ThreadID = "01TN0000000000000000000001"
	e, _ := w.load().Entry(first)
	w.push(&gitcas.Change{Subject: "fork", Threads: map[gitcas.ThreadID]*gitcas.Entry{late: {Head: e.Head, Workflow: e.Workflow}}, Forks: map[gitcas.ThreadID]gitcas.ThreadID{late: first}}, first, late)
	data, out, _ := w.export(w.thread(first), w.thread(late))
	_, vars, _ := unpackBundle(t, data)
	if at := late.Time().UnixMilli(); out[0].Exported != out[1].Exported || !strings.Contains(vars, fmt.Sprintf(`"created":%[1]d,"updated":%[1]d`, at)) {
		t.Errorf("%+v\n%s", out, vars)
	}
}

// TestNames: only the names of the threads' workflows, and those that ocas import takes.
func TestNames(t *testing.T) {
	w := newWorld(t)
	w.start(first)
	b := bundle.New(workflow.ForPeers)
	_, err := b.Add(t.Context(), w.thread(first))
	w.ok(err)
	mine := gitcas.RegistryEntry{Hash: w.flow.Hash}
	notes := b.AddNames(map[string]gitcas.RegistryEntry{"solve": mine, "solve.2_b-c": mine, "löse": mine, "other": {Hash: w.role.Hash}})
	data, err := b.Bytes()
	w.ok(err)
	_, vars, _ := unpackBundle(t, data)
	if len(notes) != 1 || !strings.HasPrefix(notes[0], "workflow löse is not registered") || strings.Count(vars, "@uwf/registry/") != 2 || !strings.Contains(vars, "@uwf/registry/solve.2_b-c") {
		t.Errorf("%q\n%s", notes, vars)
	}
}

// TestCollision: a bundle never has one of two nodes of the same hash for the other.
func TestCollision(t *testing.T) {
	w := newWorld(t)
	w.start(first)
	w.step(first, "again", 0)
	h, err := node.HashOf(node.String, w.prompt)
	w.ok(err)
	forged, err := collide.Text(h, node.String, func(s string) any { return "forged " + s })
	w.ok(err)
	w.prompt = "forged " + forged
	w.start(second)
	w.step(second, "again", 0)
	b := bundle.New(workflow.ForPeers)
	_, err = b.Add(t.Context(), w.thread(first))
	w.ok(err)
	if _, err := b.Add(t.Context(), w.thread(second)); err == nil || !strings.Contains(err.Error(), "two different nodes have the hash "+string(h)) {
		t.Errorf("%v", err)
	}
}

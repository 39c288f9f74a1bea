package agent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/agents/builtin"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// TestMain makes the test binary `uwf` for the agents that the tests write in
// other languages.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		dir, err := os.Getwd()
		if err != nil {
			panic(err)
		}
		o := Options{Process: agents.Process{Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Dir: dir, Now: agenttest.At}, Stdin: os.Stdin}
		cmd := NewCmd(o)
		cmd.SetArgs(os.Args[2:])
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		if err := cmd.Execute(); err != nil {
			_, _ = io.WriteString(os.Stderr, app.Message(err)+"\n")
			os.Exit(app.ExitCodeOf(err))
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const good = "---\n$status: done\nnote: yes\n---\nIt works.\n"

// uwf runs `uwf agent args…` in a process's place.
func uwf(t *testing.T, p *agenttest.Process, stdin string, args ...string) error {
	t.Helper()
	o := Options{Process: p.Process, Stdin: strings.NewReader(stdin)}
	cmd := NewCmd(o)
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	return cmd.ExecuteContext(t.Context())
}

func TestContext(t *testing.T) {
	task := agenttest.Task(t)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"context"}, `"role": "developer"`},
		{[]string{"context", "--prompt"}, "Do it.\n"},
		{[]string{"context", "--schema"}, `"title": "demo.developer"`},
		{[]string{"context", "--node", string(*task.Prev)}, `"type": "108DB063KRQWW"`},
		{[]string{"context", "--jq", ".role, (.statuses | length)"}, "developer\n2\n"},
		{[]string{"context", "--node", string(*task.Prev), "--jq", ".payload.role"}, "developer\n"},
		{[]string{"context", "--field", "role"}, "developer\n"},
		{[]string{"context", "--field", "step"}, "2\n"},
		{[]string{"context", "--field", "statuses"}, "done\nfailed\n"},
		{[]string{"context", "--field", "statuses.1"}, "failed\n"},
		{[]string{"context", "--field", "run"}, `{"attempt":`},
		{[]string{"context", "--schema", "--field", "properties.$status.enum"}, "done\nfailed\n"},
		{[]string{"context", "--node", string(*task.Prev), "--field", "payload.role"}, "developer\n"},
	}
	for _, tt := range tests {
		p := agenttest.NewProcess(t, task)
		if err := uwf(t, p, "", tt.args...); err != nil || !strings.Contains(p.Out.String(), tt.want) {
			t.Errorf("%v printed %q, %v", tt.args, p.Out, err)
		}
	}
	p := agenttest.NewProcess(t, task)
	if err := uwf(t, p, "", "context", "--field", "model.alias"); err != nil || p.Out.Len() > 0 {
		t.Errorf("a field that is not set: %q, %v", p.Out, err)
	}
	for _, args := range [][]string{{"context", "--node", "x"}, {"context", "--node", "0000000000000"}, {"context", "--prompt", "--schema"}, {"context", "x"}, {"nonsense"}, {"context", "--field", "rolle"}, {"context", "--field", ""}, {"context", "--jq", ".["}, {"context", "--jq", ".", "--field", "role"}, {"context", "--field", "role", "--prompt"}} {
		if err := uwf(t, p, "", args...); err == nil {
			t.Errorf("%v went through", args)
		}
	}
	p.Environ = nil
	if err := uwf(t, p, "", "context"); !errors.Is(err, agents.ErrNoContext) {
		t.Errorf("outside of a step: %v", err)
	}
}

func TestCommit(t *testing.T) {
	task := agenttest.Task(t)
	p := agenttest.NewProcess(t, task)
	detail := filepath.Join(t.TempDir(), "detail.json")
	if err := os.WriteFile(detail, []byte(`[{"type":"7VQ43ZSJTEWA7","payload":"log"},{"type":"EWDF8D2DQ06CK","payload":{"sessionId":"s","role":"r","stepIndex":3}}]`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := uwf(t, p, good, "commit", "--detail", detail, "--usage", `{"turns":2,"inputTokens":5,"outputTokens":6,"costUsd":0.5}`); err != nil {
		t.Fatal(err)
	}
	step := p.Step(t)
	nodes := p.Nodes(t)
	if nodes[step.Detail].Type != record.MockDetailSchema || step.Usage.Turns != 2 || nodes[*step.Body].Payload != "It works." {
		t.Errorf("step %+v", step)
	}
	if len(nodes) != 5 {
		t.Errorf("%d nodes staged", len(nodes))
	}
	p = agenttest.NewProcess(t, task)
	file := filepath.Join(t.TempDir(), "answer.md")
	if err := os.WriteFile(file, []byte(good), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := uwf(t, p, "", "commit", file); err != nil {
		t.Fatal(err)
	}
	if d := p.Nodes(t)[p.Step(t).Detail]; d.Type != record.BrokerDetailSchema {
		t.Errorf("detail without --detail: %+v", d)
	}
}

// Turns that a script stages as they come are part of the step by their hashes.
func TestStage(t *testing.T) {
	p := agenttest.NewProcess(t, agenttest.Task(t))
	turns := `[{"type": "builtin-turn", "payload": {"role": "assistant", "content": "one", "toolCalls": null, "reasoning": null}},
		{"type": "` + string(record.BuiltinTurnSchema) + `", "payload": {"role": "assistant", "content": "two", "toolCalls": null, "reasoning": null}}]`
	if err := uwf(t, p, turns, "stage"); err != nil {
		t.Fatal(err)
	}
	hashes := strings.Fields(p.Out.String())
	if len(hashes) != 2 || len(p.Nodes(t)) != 2 {
		t.Fatalf("printed %q", p.Out)
	}
	detail := filepath.Join(t.TempDir(), "detail.json")
	text := `{"type": "builtin-detail", "payload": {"sessionId": "s", "model": "m", "duration": 1, "turnCount": 2, "turns": ["` + strings.Join(hashes, `","`) + `"]}}`
	if err := os.WriteFile(detail, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := uwf(t, p, good, "commit", "--detail", detail); err != nil {
		t.Fatal(err)
	}
	nodes := p.Nodes(t)
	payload, _ := nodes[p.Step(t).Detail].Payload.(map[string]any)
	list, _ := payload["turns"].([]any)
	if len(list) != 2 || nodes[node.Hash(hashes[1])].Payload.(map[string]any)["content"] != "two" {
		t.Errorf("detail %v", payload)
	}
	for in, want := range map[string]string{
		"": "JSON", "[]": "no node", `{"type": "builtin-turn"}`: "a node is", `{"type": "turns", "payload": 1}`: "builtin-turn",
		`{"type": "builtin-turn", "payload": {"role": "robot"}}`: "role",
		`[{"type": "text", "payload": "x"}, 1]`:                  "node 2",
	} {
		if err := uwf(t, p, in, "stage", "-"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("stage %s: %v", in, err)
		}
	}
	p.Environ = nil
	if err := uwf(t, p, turns, "stage"); !errors.Is(err, agents.ErrNoContext) {
		t.Errorf("outside of a step: %v", err)
	}
}

func TestCommitRefuses(t *testing.T) {
	bad := func(text string) string {
		file := filepath.Join(t.TempDir(), "f.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	tests := []struct {
		stdin string
		args  []string
		want  string
		code  int // 1: another answer may do better
	}{
		{"no frontmatter", nil, "Your answer could not be used", 1},
		{"---\n$status: maybe\n---\n", nil, "done", 1},
		{strings.Repeat("x", agents.MaxAnswer+1), nil, "too large", 1},
		{"no frontmatter", []string{"--extract", "always"}, "Your answer could not be used", 1}, // no model is set
		{good, []string{"/no/such/file"}, "no such file", 2},
		{good, []string{"--usage", "{"}, "--usage", 2},
		{good, []string{"--usage", `{"turns":-1}`}, "negative", 2},
		{good, []string{"--usage", `{"tokens":1}`}, "unknown field", 2},
		{good, []string{"--extract", "sometimes"}, "auto, always or never", 2},
		{good, []string{"--detail", "/no/such/file"}, "no such file", 2},
		{good, []string{"--detail", bad("[]")}, "holds no node", 2},
		{good, []string{"--detail", bad("{}")}, "a node is", 2},
		{good, []string{"--detail", bad(`{"type":"x","payload":1}`)}, "node 1", 2},
		{good, []string{"--detail", bad(`{"type":"EWDF8D2DQ06CK","payload":{}}`)}, "sessionId", 2},
		{good, []string{"--detail", bad(`{"type":"0000000000000","payload":{}}`)}, "not in the agent's context", 2},
	}
	for _, tt := range tests {
		p := agenttest.NewProcess(t, agenttest.Task(t))
		err := uwf(t, p, tt.stdin, append([]string{"commit"}, tt.args...)...)
		if err == nil || !strings.Contains(err.Error()+p.Err.String(), tt.want) || p.Out.Len() > 0 {
			t.Errorf("commit %v of %.20q: %v, printed %q and %q", tt.args, tt.stdin, err, p.Out, p.Err)
		}
		if want := tt.code; app.ExitCodeOf(err) != want {
			t.Errorf("commit %v of %.20q: exit code %d, want %d", tt.args, tt.stdin, app.ExitCodeOf(err), want)
		}
	}
}

// The whole protocol from a shell script, with a correction.
func TestAgentInAnotherLanguage(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := agenttest.NewProcess(t, agenttest.Task(t), "UWF="+self)
	cmd := exec.Command("/bin/sh", "-ec", `
prompt=$("$UWF" agent context --prompt)
if printf 'I did: %s' "$prompt" | "$UWF" agent commit 2> complaint.txt; then exit 9; fi
grep -q '\$status' complaint.txt
printf -- '---\n$status: done\n---\nI did: %s' "$prompt" | "$UWF" agent commit -
`)
	cmd.Dir, cmd.Env, cmd.Stdout = p.Dir, p.Environ, p.Out
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if body := p.Nodes(t)[*p.Step(t).Body].Payload; body != "I did: Do it." {
		t.Errorf("body %q", body)
	}
}

func TestMock(t *testing.T) {
	task := agenttest.Task(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "s.yaml"), []byte("steps: [{output: \"---\\n$status: done\\n---\\nplayed\"}]"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := agenttest.NewProcess(t, task, agents.EnvCallDir+"="+dir)
	if err := uwf(t, p, "", "mock", "s.yaml", string(task.Thread), task.Role); err != nil {
		t.Fatal(err)
	}
	if body := p.Nodes(t)[*p.Step(t).Body].Payload; body != "played" {
		t.Errorf("body %q", body)
	}
	for _, args := range [][]string{
		{"mock", "none.yaml", string(task.Thread), task.Role}, {"mock", "s.yaml", "other", task.Role},
		{"mock", "s.yaml", string(task.Thread), "other"}, {"mock", "s.yaml"},
	} {
		if err := uwf(t, p, "", args...); err == nil {
			t.Errorf("%v went through", args)
		}
	}
}

func TestBuiltin(t *testing.T) {
	p := agenttest.NewProcess(t, agenttest.Task(t))
	if err := uwf(t, p, "", "builtin", agenttest.Thread, agenttest.Role); !errors.Is(err, builtin.ErrNoModel) {
		t.Errorf("without a model: %v", err)
	}
	names := strings.Join(Names(), " ")
	for _, name := range []string{builtin.Name, "mock"} {
		if !strings.Contains(names, name) {
			t.Errorf("%s is not among %s", name, names)
		}
	}
}

// Package agenttest gives tests a task to work on and the folders of the agent
// protocol around it.
package agenttest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Thread, Role and Agent are those of every task made here.
const (
	Thread = "01JZZZZZZZ0000000000000000"
	Role   = "developer"
	Agent  = "tester"
)

// At is when everything happens.
func At() time.Time { return time.UnixMilli(1_750_000_000_000) }

// Task is the second step of a thread: Role is asked to work again. The output
// needs a $status, done or failed, and may have a note.
func Task(t testing.TB) task.Task {
	t.Helper()
	nodes := gitcas.Nodes{}
	add := func(n node.Node, h node.Hash, err error) node.Hash {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		nodes.Add(gitcas.Place{}, h, n)
		return h
	}
	schema := add(node.New(node.MetaSchema, map[string]any{
		"type": "object", "title": "demo.developer", "required": []any{"$status"},
		"properties": map[string]any{
			"$status": map[string]any{"enum": []any{"done", "failed"}}, "note": map[string]any{"type": "string"},
		},
	}, At()))
	output := add(node.New(schema, map[string]any{"$status": "failed"}, At()))
	detail := add(node.New(record.MockDetailSchema, map[string]any{"sessionId": "mock-0", "role": Role, "stepIndex": 0}, At()))
	workflow := node.Hash("C700MP4XFW7FA")
	start := add(record.Start{Workflow: workflow, Prompt: "do it"}.Node(At()))
	prev := add(record.Step{
		Start: start, Role: Role, Output: output, Detail: detail, Agent: Agent, StartedAtMs: 1, CompletedAtMs: 2,
	}.Node(At()))
	return task.Task{
		Thread: Thread, Role: Role, Agent: Agent, Step: 2, Start: start, Prev: &prev, Workflow: workflow,
		WorkflowName: "demo", OutputSchema: schema, StatusKey: "$status", Statuses: []string{"done", "failed"},
		Prompt: "Do it.\n", EdgePrompt: "again", StartPrompt: "do it", Cwd: ".", StartedAtMs: At().UnixMilli(),
		Nodes: nodes, Workspace: t.TempDir(),
	}
}

// Process is an agent's process for a task, with what it printed.
type Process struct {
	agents.Process
	Out, Err *bytes.Buffer
	Stage    string
	// Endings are what its gateway says of its answers, one after the other, and then that all
	// are whole.
	Endings []gateway.Ending
}

// RoundTrip answers for the gateway what concerns endings. It implements http.RoundTripper.
func (p *Process) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != gateway.EndingPath {
		return http.DefaultTransport.RoundTrip(r)
	}
	e := gateway.Ending{Finish: dialect.FinishStop}
	if len(p.Endings) > 0 {
		e, p.Endings = p.Endings[0], p.Endings[1:]
	}
	b, err := json.Marshal(e)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(b)), Request: r}, err
}

// NewProcess makes the folders of a task and a process that finds them. Environ is
// added to its environment.
func NewProcess(t testing.TB, task task.Task, environ ...string) *Process {
	t.Helper()
	context, stage := t.TempDir(), t.TempDir()
	t.Cleanup(func() {
		if err := os.Chmod(context, 0o700); err != nil {
			t.Error(err)
		}
	})
	if err := agents.WriteContext(context, task); err != nil {
		t.Fatal(err)
	}
	p := &Process{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Stage: stage}
	p.Process = agents.Process{
		Args: []string{string(task.Thread), task.Role}, Dir: task.Workspace, Stdout: p.Out, Stderr: p.Err, Now: At, Transport: p,
		Environ: append([]string{
			"PATH=" + os.Getenv("PATH"), agents.EnvContext + "=" + context, agents.EnvStage + "=" + stage,
		}, environ...),
	}
	return p
}

// Nodes are the nodes staged so far.
func (p *Process) Nodes(t testing.TB) map[node.Hash]node.Node {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.Stage, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[node.Hash]node.Node{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n, err := node.DecodeFile(b)
		if err != nil {
			t.Fatal(err)
		}
		h, err := n.ComputeHash()
		if err != nil || string(h)+".json" != filepath.Base(f) {
			t.Fatalf("%s holds %s: %v", f, h, err)
		}
		out[h] = n
	}
	return out
}

// Step is the step that the printed handle names.
func (p *Process) Step(t testing.TB) record.Step {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(p.Out.Bytes()), []byte("\n"))
	h, err := agents.ParseHandle(string(lines[len(lines)-1]))
	if err != nil {
		t.Fatal(err)
	}
	step, err := record.ParseStep(p.Nodes(t)[h.StepHash])
	if err != nil {
		t.Fatalf("handle %s: %v", h.StepHash, err)
	}
	return step
}

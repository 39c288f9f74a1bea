package clitest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// thread REPOSITORY ID STEPS [ended] puts a thread with that many steps on the
// state branch of a repository. Outputs and subjects hold terminal escapes.
func makeThread(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: thread REPOSITORY ID STEPS [ended]")
	}
	steps, err := strconv.Atoi(args[2])
	ts.Check(err)
	remote, err := wire.Dial(ts.MkAbs(args[0]), wire.DialOptions{})
	ts.Check(err)
	w := ThreadWriter{Store: gitcas.Open(remote, gitcas.Options{Now: func() time.Time { return When }}), ID: gitcas.ThreadID(args[1])}
	heads, err := w.Write(context.Background(), steps, len(args) > 3)
	ts.Check(err)
	for i, h := range heads {
		ts.Setenv(fmt.Sprintf("STEP%d", i), string(h))
	}
	ts.Setenv("DETAIL", string(w.detail))
	ts.Setenv("OUTPUT", string(w.output))
}

// ThreadWriter makes a thread without running any agent.
type ThreadWriter struct {
	Store   *gitcas.Store
	ID      gitcas.ThreadID
	EndedAt time.Time // zero: When

	detail, output node.Hash // of the last step
	entry          gitcas.Entry
	steps          []node.Hash
}

// Write writes the thread and returns the hashes of the start and of each step.
func (w *ThreadWriter) Write(ctx context.Context, steps int, ended bool) ([]node.Hash, error) {
	v, err := w.Store.Init(ctx)
	if err != nil {
		return nil, err
	}
	if v, err = w.writeStart(ctx, v); err != nil {
		return nil, err
	}
	heads := []node.Hash{w.entry.Head}
	for i := range steps {
		if v, err = w.writeStep(ctx, v, heads, i); err != nil {
			return nil, err
		}
		heads = append(heads, w.entry.Head)
	}
	w.steps = heads[1:]
	if ended {
		err = w.writeEnd(ctx, v)
	}
	return heads, err
}

// When is the time at which threads of a ThreadWriter were made.
var When = time.Date(2026, 6, 4, 12, 0, 0, 0, time.UTC)

func (w *ThreadWriter) writeStart(ctx context.Context, v *gitcas.View) (*gitcas.View, error) {
	schema := record.Schemas()[record.StartSchema]
	flow, flowHash, err := node.New(record.WorkflowSchema, map[string]any{
		"name": "two", "description": "d", "roles": map[string]any{}, "graph": map[string]any{}}, When)
	if err != nil {
		return nil, err
	}
	digest, err := v.Definition(ctx, flowHash, map[node.Hash]node.Node{flowHash: flow})
	if err != nil {
		return nil, err
	}
	n, h, err := record.Start{Workflow: flowHash, Prompt: "do it", Digests: &record.StartDigests{Workflow: digest}}.Node(When)
	if err != nil {
		return nil, err
	}
	w.entry = gitcas.Entry{Head: h, Status: gitcas.StatusActive, Workflow: flowHash}
	return w.Store.Push(ctx, v, &gitcas.Change{
		Subject: "Fix it · started · two · " + w.ID.Short(), Threads: map[gitcas.ThreadID]*gitcas.Entry{w.ID: &w.entry},
		Nodes: []gitcas.PlacedNode{
			{Hash: record.StartSchema, Node: schema},
			{Hash: record.StepSchema, Node: record.Schemas()[record.StepSchema]},
			{Hash: record.WorkflowSchema, Node: record.Schemas()[record.WorkflowSchema]},
			{Hash: record.MockDetailSchema, Node: record.Schemas()[record.MockDetailSchema]},
			{Hash: flowHash, Node: flow},
			{Hash: h, Node: n, Place: gitcas.Place{Thread: w.ID}},
		},
	})
}

func (w *ThreadWriter) writeStep(ctx context.Context, v *gitcas.View, heads []node.Hash, i int) (*gitcas.View, error) {
	detail, dh, err := node.New(record.MockDetailSchema, map[string]any{"sessionId": string(w.ID), "role": "dev", "stepIndex": i}, When)
	if err != nil {
		return nil, err
	}
	out, oh, err := node.New(node.String, fmt.Sprintf("\x1b[31moutput %d\x1b[0m", i), When)
	if err != nil {
		return nil, err
	}
	s := record.Step{Start: heads[0], Role: "dev", Output: oh, Detail: dh, Agent: "mock"}
	if i > 0 {
		s.Prev = &heads[i]
	}
	own := gitcas.Place{Of: oh}
	h, nodes, err := v.Complete(ctx, w.ID, s, When, []gitcas.PlacedNode{
		{Hash: dh, Node: detail, Place: gitcas.Place{Of: oh, Detail: true}}, {Hash: oh, Node: out, Place: own},
	}, nil)
	if err != nil {
		return nil, err
	}
	w.detail, w.output = dh, oh
	w.entry.Head = h
	e := w.entry
	return w.Store.Push(ctx, v, &gitcas.Change{
		Subject:  fmt.Sprintf("Fix it · dev → done · step %d · %s", i+1, w.ID.Short()),
		Body:     "\x1b]0;owned\x07 Uwf-Head: forged",
		Trailers: []gitcas.Trailer{{Key: "Uwf-Thread", Value: string(w.ID)}, {Key: "Uwf-Head", Value: string(h)}},
		Threads:  map[gitcas.ThreadID]*gitcas.Entry{w.ID: &e},
		Nodes:    nodes,
	})
}

func (w *ThreadWriter) writeEnd(ctx context.Context, v *gitcas.View) error {
	e := w.entry
	e.Status = gitcas.StatusEnded
	at := w.EndedAt
	if at.IsZero() {
		at = When
	}
	_, err := w.Store.Push(ctx, v, &gitcas.Change{
		Subject: "end · two", Threads: map[gitcas.ThreadID]*gitcas.Entry{w.ID: &e},
		Archive: []gitcas.Ended{{Thread: w.ID, Workflow: e.Workflow, Head: e.Head, CompletedAt: at.UnixMilli(), Reason: "ended", Steps: w.steps}},
	})
	return err
}

package thread

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// startOf starts the thread with a workflow of engine/workflow's good ones.
func (f *fixture) startOf(name string) {
	f.Helper()
	data, err := os.ReadFile("../workflow/testdata/good/" + name + ".yaml")
	f.ok(err)
	f.startText(string(data))
}

func (f *fixture) startText(text string) {
	f.Helper()
	d, err := workflow.Parse("test.yaml", []byte(text), workflow.Options{})
	f.ok(err)
	h, nodes, err := workflow.Materialize(d, time.UnixMilli(0))
	f.ok(err)
	req := StartRequest{ID: testThread, Workflow: h, Nodes: map[node.Hash]node.Node{}, Prompt: "go on"}
	for _, n := range nodes {
		at, err := n.Hash()
		f.ok(err)
		req.Nodes[at] = n
	}
	_, err = f.engine("start", 1).Start(f.Context(), req)
	f.ok(err)
}

// script is an agent that gives these outputs, one a step.
func (f *fixture) script(outputs ...map[string]any) {
	f.agent = func(_ context.Context, t Task, _ *Meter) (Draft, error) {
		next := outputs[0]
		outputs = outputs[1:]
		d := f.draftOf(t)
		if next["$status"] == workflow.Suspend {
			d.step.Output = d.put(record.SuspendOutputSchema, next)
			return d.done(), nil
		}
		return d.output(next).done(), nil
	}
}

// Threads of every dialect run to their end, and stop for a person where the
// dialect says so.
func TestDialects(t *testing.T) {
	for _, tt := range []struct {
		name    string
		outputs []map[string]any
		path    string // role → next role or what became of the thread
	}{
		{"conditions", []map[string]any{
			{"plan": "p", "needsClarification": true}, {"plan": "p"}, {"summary": "s", "status": "failed"},
			{"approved": false, "comments": "c"}, {"summary": "s"}, {"approved": true, "comments": ""},
		}, "planner suspended, planner developer, developer reviewer, reviewer developer, developer reviewer, reviewer ended"},
		{"debate", []map[string]any{
			{"argument": "A", "conceded": false}, {"argument": "A", "conceded": true},
			{"status": "unclear", "summary": "s"}, {"argument": "B", "conceded": true}, {"status": "clear", "summary": "s"},
		}, "against against, against summarizer, summarizer against, against summarizer, summarizer ended"},
		{"identity", []map[string]any{{"$status": "stuck"}}, "a ended"},
		{"resume", []map[string]any{{"$status": "$SUSPEND", "reason": "Which?"}, {"$status": "ready"}}, "a suspended, a ended"},
		{"liquid", []map[string]any{
			{"$status": "ideate", "ideas": []any{}}, {"$status": "$SUSPEND", "reason": "Which?"}, {"$status": "feedback", "themes": "t"}, {"$status": "done", "best": "x"},
		}, "ideator critic, critic suspended, critic ideator, ideator ended"},
		{"liquid-lists", []map[string]any{{"n": int64(1)}, {"n": int64(4)}, {"$status": "done"}}, "a a, a b, b ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.startOf(tt.name)
				f.script(tt.outputs...)
				var path []string
				for range tt.outputs {
					res, err := f.step("r" + string(rune('a'+len(path))))
					next := res.NextRole
					f.ok(err)
					switch {
					case res.Suspended != nil:
						next = "suspended"
						f.ok(f.engine("person", 1).Resume(f.Context(), ResumeRequest{Thread: testThread, Text: "This one."}))
					case res.Done:
						next = "ended"
					}
					path = append(path, res.Role+" "+next)
				}
				if got := strings.Join(path, ", "); got != tt.path {
					f.Errorf("went %s\nwant %s", got, tt.path)
				}
			})
		})
	}
}

// An output over which a condition can't be decided is not committed, and the
// error names the condition.
func TestConditionThatFails(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.startText(`
name: x
description: d
roles:
  a: {description: d, systemPrompt: s, outputSchema: {type: object, properties: {n: {}}}}
conditions:
  big: steps[-1].output.n > 3 and steps[-1].agent = 'test' and start.prompt = 'go on'
graph:
  $START: [{role: a}]
  a: [{role: $END, condition: big}]
`)
		f.script(map[string]any{"n": "x"}, map[string]any{"n": int64(1)}, map[string]any{"n": int64(4)})
		_, err := f.step("r1")
		f.says(f.code(err, CodeFailed), `condition "big"`)
		_, err = f.step("r2")
		f.says(f.code(err, CodeFailed), "no condition on what follows a holds (big)")
		if n := len(f.chain().Steps); n != 0 {
			f.Errorf("%d steps were committed", n)
		}
		if res := f.steps("r3"); !res.Done {
			f.Errorf("%+v", res)
		}
		if got := f.runs[0]; len(got.Statuses) != 0 || got.Suspends {
			f.Errorf("statuses %v, suspends %v", got.Statuses, got.Suspends)
		}
	})
}

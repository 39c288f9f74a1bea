package thread_test

import (
	"context"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
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
	req := f.requestOf(d)
	_, err = f.engine("start", 1).Start(f.Context(), req)
	f.ok(err)
}

// requestOf asks for a thread of a definition.
func (f *fixture) requestOf(d *workflow.Definition) thread.StartRequest {
	f.Helper()
	h, nodes, err := workflow.Materialize(d, time.UnixMilli(0))
	f.ok(err)
	req := thread.StartRequest{ID: testThread, Workflow: h, Nodes: map[node.Hash]node.Node{}, Prompt: "go on"}
	for _, n := range nodes {
		at, err := n.ComputeHash()
		f.ok(err)
		req.Nodes[at] = n
	}
	return req
}

// script is an agent that gives these outputs, one a step.
func (f *fixture) script(outputs ...map[string]any) {
	f.agent = func(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
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
						f.ok(f.engine("person", 1).Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "This one."}))
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
		f.says(f.code(err, life.KindFailed), `condition "big"`)
		_, err = f.step("r2")
		f.says(f.code(err, life.KindFailed), "no condition on what follows a holds (big)")
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

// A condition that can't be decided on what is stored is no failed step: nothing was
// tried, and trying again doesn't help.
func TestUndecided(t *testing.T) {
	const text = `
name: odd
description: d
roles:
  a: {description: d, systemPrompt: p, outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}}
conditions:
  fails: CONDITION
graph:
  START
  a: [{role: $END, condition: fails}, {role: a}]
`
	odd := func(condition, start string) string {
		return strings.NewReplacer("CONDITION", condition, "START", start).Replace(text)
	}
	inBubble(t, func(f *fixture) {
		// What the commit adds is not known when the output is judged.
		f.startText(odd("'$count(steps[-1].previousAttempts) > 0 ? $error(\"it was hard\") : false'", "$START: [{role: a}]"))
		f.agent = f.fails
		_, err := f.step("f")
		f.code(err, life.KindFailed)
		f.agent = func(_ context.Context, t task.Task, _ *task.Meter) (task.Draft, error) {
			return f.draftOf(t).output(map[string]any{"n": int64(1)}).done(), nil
		}
		f.steps("r1")
		before := f.mem.Refs()
		_, err = f.step("r2")
		f.says(f.code(err, life.KindUsage), "it was hard", "poke "+string(testThread), "fork "+string(testThread)+":0")
		_, err = f.engine("p", 1).PlanStep(f.Context(), f.at(testThread))
		f.code(err, life.KindUsage)
		_, err = f.engine("p", 1).Fork(f.Context(), thread.ForkRequest{ID: forked, From: testThread, Steps: 1})
		f.says(f.code(err, life.KindUsage), "it was hard", "fork an earlier step")
		if !maps.Equal(before, f.mem.Refs()) {
			f.Error("something was pushed")
		}
		f.ok(f.deed("poke"))
	})
	inBubble(t, func(f *fixture) {
		d, err := workflow.Parse("test.yaml", []byte(odd("'false'", "$START: [{role: a, condition: fails}, {role: a}]")), workflow.Options{})
		f.ok(err)
		d.Conditions["fails"] = workflow.Condition{Expression: "$error('no')"}
		_, err = f.engine("start", 1).Start(f.Context(), f.requestOf(d))
		f.says(f.code(err, life.KindUsage), "odd", "no")
	})
}

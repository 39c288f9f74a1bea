package builtin

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
)

// TestCorrectionsAfterChecksGoOn: a run that corrects what checks complain of begins with the whole
// conversation of the run before, asks nothing of it again, and records all turns.
func TestCorrectionsAfterChecksGoOn(t *testing.T) {
	s := newServer(t, calls("read", `{"path":"a.txt"}`, "read", `{"path":`), says(final), says(final))
	p, first, err := run(t, s, plainModel())
	if err != nil {
		t.Fatal(err)
	}
	before := p.Step(t)
	var printed struct {
		StepHash node.Hash `json:"stepHash"`
	}
	if err := json.Unmarshal(p.Out.Bytes(), &printed); err != nil {
		t.Fatal(err)
	}
	of := printed.StepHash

	again := func(change func(*task.Task)) (*agenttest.Process, []string) {
		next := first
		next.Nodes = gitcas.Nodes{}
		for place, nodes := range first.Nodes {
			for h, n := range nodes {
				next.Nodes.Add(place, h, n)
			}
		}
		for h, n := range p.Nodes(t) {
			next.Nodes.Add(gitcas.Place{Thread: agenttest.Thread, Of: of}, h, n)
		}
		next.Corrected = &task.Corrected{Of: of, Detail: before.Detail, From: len("Do it.")}
		next.Prompt = "Do it.\n\n# Correction 1 of 2\n"
		change(&next)
		q := agenttest.NewProcess(t, next, "OPENAI_BASE_URL="+s.http.URL+"/v1/", "OPENAI_API_KEY=once")
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		a := &Agent{Transport: tr}
		if err := agents.RunAdapter(t.Context(), a, q.Process); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		return q, s.messages(len(s.requests) - 1)
	}

	q, got := again(func(*task.Task) {})
	asked := s.messages(1) // the whole of the first run, but its answer
	if len(got) != 7 || !slices.Equal(got[2:5], asked[2:5]) || got[1] != "user: Do it." || got[5] != "assistant: "+final || got[6] != "user: \n\n# Correction 1 of 2\n" {
		t.Errorf("it is asked %q", got)
	}
	sent := s.requests[2]["messages"].([]any)
	call := sent[2].(map[string]any)["tool_calls"].([]any)[1].(map[string]any)
	if result := sent[4].(map[string]any); result["tool_call_id"] != call["id"] || call["function"].(map[string]any)["arguments"] != "{}" {
		t.Errorf("%v belongs to %v", result, call)
	}
	detail := q.Nodes(t)[q.Step(t).Detail].Payload.(map[string]any)
	if detail["turnCount"] != int64(5) || len(detail["turns"].([]any)) != 5 || q.Step(t).Usage.Turns != 1 {
		t.Errorf("%v, usage %+v", detail, q.Step(t).Usage)
	}

	for name, change := range map[string]func(*task.Task){
		"nothing was left":       func(k *task.Task) { k.Nodes = first.Nodes },
		"of another agent":       func(k *task.Task) { k.Corrected.Detail = before.Output },
		"no place in the prompt": func(k *task.Task) { k.Corrected.From = 1_000 },
	} {
		if _, got := again(change); len(got) != 2 || got[1] != "user: Do it.\n\n# Correction 1 of 2\n" {
			t.Errorf("%s: it is asked %q", name, got)
		}
	}
}

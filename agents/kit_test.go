package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/engine/extract"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// saying is an agent that gives its answers one after the other.
type saying struct {
	answers    []string
	complaints []string
	literal    bool
}

func (a *saying) Run(context.Context, *agents.Session) (agents.Answer, error) { return a.next() }
func (a *saying) Literal(*agents.Session) bool                                { return a.literal }

func (a *saying) Continue(_ context.Context, _ *agents.Session, complaint string) (agents.Answer, error) {
	a.complaints = append(a.complaints, complaint)
	return a.next()
}

func (a *saying) next() (agents.Answer, error) {
	if len(a.answers) == 0 {
		return agents.Answer{}, errors.New("asked too often")
	}
	text := a.answers[0]
	a.answers = a.answers[1:]
	return agents.Answer{Text: text, Usage: record.Usage{Turns: 1, InputTokens: 100, OutputTokens: 10}}, nil
}

// asked is a request to the fake model.
type asked struct {
	Model          string
	ResponseFormat *struct{ Type string } `json:"response_format"`
	Messages       []struct{ Role, Content string }
}

// model is a fake gateway: it answers requests with the replies, one after the
// other. A reply that begins with a digit is a status with a body.
type model struct {
	*httptest.Server
	mu      sync.Mutex
	replies []string
	asked   []asked
	auth    []string
}

func newModel(t *testing.T, replies ...string) *model {
	t.Helper()
	m := &model{replies: replies}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(func() {
		m.Close()
		http.DefaultTransport.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	})
	return m
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var a asked
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil || r.URL.Path != "/v1/chat/completions" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusNotFound)
		return
	}
	m.asked, m.auth = append(m.asked, a), append(m.auth, r.Header.Get("Authorization"))
	if len(m.replies) == 0 {
		http.Error(w, `{"error":{"message":"no more","code":"budget_exceeded"}}`, http.StatusBadRequest)
		return
	}
	reply := m.replies[0]
	m.replies = m.replies[1:]
	w.Header().Set("Content-Type", "application/json")
	var status int
	if n, err := fmt.Sscanf(reply, "%d", &status); n == 1 && err == nil {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply[4:])
		return
	}
	b, _ := json.Marshal(reply)
	_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, b)
}

// process is a run of an agent whose answers a model may read.
func process(t *testing.T, m *model, change ...func(*task.Task)) *agenttest.Process {
	t.Helper()
	asked := agenttest.Task(t)
	asked.Extract = &task.Model{Alias: "cheap", Name: "cheap-1", Provider: "p"}
	for _, f := range change {
		f(&asked)
	}
	p := agenttest.NewProcess(t, asked, "UWF_GATEWAY_URL="+m.URL, "UWF_GATEWAY_KEY=one-time")
	return p
}

const prose = "I mended the parser. All tests pass.\nNote: mind the gap"

var thrice = []string{prose, prose, prose}

const found = `{"fields": {"$status": "done", "note": "mind the gap"}, "problem": null}`

func TestExtractAfterCorrections(t *testing.T) {
	m := newModel(t, found)
	p := process(t, m)
	a := &saying{answers: slices.Clone(thrice)}
	if err := agents.RunAdapter(t.Context(), a, p.Process); err != nil {
		t.Fatal(err)
	}
	step, nodes := p.Step(t), p.Nodes(t)
	out, _ := nodes[step.Output].Payload.(map[string]any)
	if nodes[step.Output].Type != agenttest.Task(t).OutputSchema || out["$status"] != "done" || out["note"] != "mind the gap" {
		t.Errorf("output %v", out)
	}
	if step.Body == nil || nodes[*step.Body].Payload != prose {
		t.Error("the body is not the whole answer")
	}
	if u := step.Usage; u.Turns != 2 || u.InputTokens != 107 || u.OutputTokens != 13 {
		t.Errorf("usage %+v", u)
	}
	if len(a.complaints) != agents.MaxCorrections || len(m.asked) != 1 {
		t.Fatalf("%d complaints, %d requests", len(a.complaints), len(m.asked))
	}
	q := m.asked[0]
	if q.Model != "cheap" || m.auth[0] != "Bearer one-time" || q.ResponseFormat == nil || q.ResponseFormat.Type != "json_schema" {
		t.Errorf("asked %+v with %q", q, m.auth[0])
	}
	if !strings.Contains(p.Err.String(), "asking model cheap-1") {
		t.Errorf("stderr %q", p.Err)
	}
	// The answer stands behind a fence, and nowhere else.
	fence := text.FenceOf(prose)
	if !strings.Contains(q.Messages[0].Content, fence) || strings.Contains(q.Messages[0].Content, "parser") ||
		q.Messages[1].Content != "----- BEGIN "+fence+" -----\n"+prose+"\n----- END "+fence+" -----" {
		t.Errorf("messages %+v", q.Messages)
	}
}

func TestExtractOnlyWhenNeeded(t *testing.T) {
	m := newModel(t)
	good := "---\n$status: done\n---\nfine"
	for _, tt := range []struct {
		name   string
		agent  *saying
		change func(*task.Task)
		ok     bool
	}{
		{"good at once", &saying{answers: []string{good}}, func(*task.Task) {}, true},
		{"good in the end", &saying{answers: []string{prose, prose, good}}, func(*task.Task) {}, true},
		{"no model", &saying{answers: slices.Clone(thrice)}, func(t *task.Task) { t.Extract = nil }, false},
		{"an agent that wants none", &saying{answers: slices.Clone(thrice), literal: true}, func(*task.Task) {}, false},
		{"empty", &saying{answers: []string{"", " ", "\n"}}, func(*task.Task) {}, false},
		{"too large", &saying{answers: slices.Repeat([]string{strings.Repeat("x", agents.MaxAnswer+1)}, 3)}, func(*task.Task) {}, false},
	} {
		p := process(t, m, tt.change)
		if err := agents.RunAdapter(t.Context(), tt.agent, p.Process); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !tt.ok && len(p.Nodes(t)) != 1 {
			t.Errorf("%s: the answer was not kept", tt.name)
		}
	}
	if len(m.asked) > 0 {
		t.Errorf("the model was asked %d times", len(m.asked))
	}
}

func TestExtractFails(t *testing.T) {
	refused := `400 {"error":{"message":"unknown field response_format"}}`
	tests := []struct {
		name    string
		replies []string
		asked   int
		want    string // in the error; empty: it goes well
		reason  error
	}{
		{"in the second try", []string{`{"fields": {"$status": "excellent"}, "problem": null}`, found}, 2, "", nil},
		{"never fits", []string{"I think it is done.", `{"fields": {"$status": "excellent"}, "problem": null}`}, 2, "$status", extract.ErrInvalid},
		{"can't be told", []string{`{"fields": null, "problem": "it does not say whether it is done"}`}, 1, "does not say whether", extract.ErrUnsaid},
		{"no json_schema", []string{refused, found}, 2, "", nil},
		{"no response_format at all", []string{refused, "422 nonsense", found}, 3, "", nil},
		{"nothing works", []string{refused, refused, refused}, 3, "unknown field", nil},
		{"the gateway refuses", nil, 1, "no more", nil},
		{"no answer", []string{`401 {"error":{"message":"who are you"}}`}, 1, "who are you", nil},
		{"no choices", []string{`200 {"choices":[]}`}, 1, "without choices", nil},
		{"cut off", []string{`200 {"choices":[{"message":{"content":"{"},"finish_reason":"length"}]}`}, 1, "cut off", nil},
		{"refusal", []string{`200 {"choices":[{"message":{"content":"","refusal":"I can't"},"finish_reason":"stop"}]}`}, 1, "I can't", nil},
		{"an empty reply first", []string{"", found}, 2, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newModel(t, tt.replies...)
			p := process(t, m)
			err := agents.RunAdapter(t.Context(), &saying{answers: slices.Clone(thrice)}, p.Process)
			if len(m.asked) != tt.asked {
				t.Errorf("asked %d times", len(m.asked))
			}
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "after 2 corrections") {
				t.Errorf("error %v", err)
			}
			if tt.reason != nil && !errors.Is(err, tt.reason) {
				t.Errorf("error %v is no %v", err, tt.reason)
			}
			kept := false
			for _, n := range p.Nodes(t) {
				kept = kept || n.Type == node.String && n.Payload == prose
			}
			if !kept || p.Out.Len() > 0 {
				t.Errorf("the answer was not kept, or %q printed", p.Out)
			}
		})
	}
}

// Where every role may ask a person, so may a report that was not put into form.
func TestSuspendsAsAnAnswer(t *testing.T) {
	suspends := func(task *task.Task) { task.Suspends = true }
	direct := &saying{answers: []string{"---\n$status: $SUSPEND\nreason: Which colour?\n---\n"}}
	inProse := &saying{answers: slices.Repeat([]string{"I need to know the colour."}, 3)}
	reply := `{"fields": {"$status": "$SUSPEND", "reason": "Which colour?"}, "problem": null}`
	for _, a := range []*saying{direct, inProse} {
		p := process(t, newModel(t, reply), suspends)
		if err := agents.RunAdapter(t.Context(), a, p.Process); err != nil {
			t.Fatal(err)
		}
		out := p.Nodes(t)[p.Step(t).Output]
		payload, _ := out.Payload.(map[string]any)
		if out.Type != record.SuspendOutputSchema || payload["reason"] != "Which colour?" {
			t.Errorf("output %+v", out)
		}
	}
	p := process(t, newModel(t, reply, reply))
	err := agents.RunAdapter(t.Context(), &saying{answers: slices.Repeat([]string{"---\n$status: $SUSPEND\nreason: x\n---\n"}, 3)}, p.Process)
	if !errors.Is(err, extract.ErrInvalid) {
		t.Errorf("in a workflow where roles can't ask: %v", err)
	}
}

// The agent of the documentation, with a correction.
func TestExample(t *testing.T) {
	m := newModel(t, prose, "---\n$status: done\n---\n"+prose)
	asked := agenttest.Task(t)
	asked.Model = &task.Model{Alias: "big", Name: "big-1"}
	p := agenttest.NewProcess(t, asked, "OPENAI_BASE_URL="+m.URL+"/v1", "OPENAI_API_KEY=one-time")
	if err := agents.RunAdapter(t.Context(), &Chat{}, p.Process); err != nil {
		t.Fatal(err)
	}
	step, nodes := p.Step(t), p.Nodes(t)
	detail, _ := nodes[step.Detail].Payload.(map[string]any)
	turns, _ := detail["turns"].([]any)
	if *step.Usage != (record.Usage{Turns: 2, InputTokens: 14, OutputTokens: 6}) || len(turns) != 2 || nodes[*step.Body].Payload != prose {
		t.Errorf("step %+v, detail %v", step, detail)
	}
	if first, _ := turns[0].(string); nodes[node.Hash(first)].Payload.(map[string]any)["content"] != prose {
		t.Errorf("the first turn is %v", nodes[node.Hash(first)])
	}
	if len(m.asked) != 2 || m.asked[0].Model != "big" || m.auth[0] != "Bearer one-time" || len(m.asked[1].Messages) != 3 {
		t.Errorf("asked %+v", m.asked)
	}
	asked.Model = nil
	p = agenttest.NewProcess(t, asked)
	if err := agents.RunAdapter(t.Context(), &Chat{}, p.Process); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("without a model: %v", err)
	}
}

func TestRefusedCounts(t *testing.T) {
	p := agenttest.NewProcess(t, agenttest.Task(t))
	for want := 1; want <= 3; want++ {
		s, err := agents.OpenSession(p.Process)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Stage.Refused(); err != nil || n != want {
			t.Errorf("counted %d, %v; want %d", n, err, want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := len(p.Nodes(t)); n != 0 {
		t.Errorf("the count is among %d nodes", n)
	}
}

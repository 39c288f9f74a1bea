package builtin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents/tools"
	"github.com/united-workforce/uwf/engine/task"
)

// wireServer answers one request after the other with a body, and keeps what it was asked.
type wireServer struct {
	*httptest.Server
	paths    []string
	requests []map[string]any
	replies  []string
}

func serveWire(t *testing.T, replies ...string) *wireServer {
	t.Helper()
	s := &wireServer{replies: replies}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		var req map[string]any
		if err := json.Unmarshal(b, &req); err != nil {
			t.Error(err)
		}
		s.paths, s.requests = append(s.paths, r.URL.Path), append(s.requests, req)
		body := s.replies[min(len(s.requests), len(s.replies))-1]
		if code, rest, ok := strings.Cut(body, " "); ok && len(code) == 3 {
			w.WriteHeader(400)
			body = rest
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *wireServer) open(t *testing.T, m task.Model) wire {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return newWire(wireOptions{
		base: s.URL + "/v1", key: "once", transport: tr, model: m, thread: "T1", common: 7,
		tools: []tools.Definition{{Name: "read_file", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}},
	})
}

var (
	anthropicModel = task.Model{Name: "claude", API: "anthropic", Wires: []string{"messages", "chat"}}
	reasoningModel = task.Model{Name: "gpt-5.1", API: "openai", Reasoning: true, Wires: []string{"chat", "responses"}}
)

func talk() []openai.ChatCompletionMessage {
	return []openai.ChatCompletionMessage{
		{Role: "system", Content: "sys"}, {Role: "user", Content: "common\nrest"},
	}
}

// TestWhichWire: a provider's own wire goes first, and chat completions serve everybody else.
func TestWhichWire(t *testing.T) {
	for _, tt := range []struct {
		want  string
		model task.Model
	}{
		{"*builtin.messagesWire", anthropicModel},
		{"*builtin.responsesWire", reasoningModel},
		{"*builtin.chatWire", task.Model{Name: "gpt-4.1", Wires: []string{"chat", "responses"}}},
		// What is preferred is not served.
		{"*builtin.responsesWire", task.Model{Name: "x", API: "openai", Wires: []string{"responses"}}},
		{"*builtin.messagesWire", task.Model{Name: "x", API: "openai", Wires: []string{"messages"}}},
		{"*builtin.responsesWire", task.Model{Name: "x", API: "anthropic", Wires: []string{"responses"}}},
		{"*builtin.messagesWire", task.Model{Name: "x", Reasoning: true, Wires: []string{"messages"}}},
	} {
		if got := fmt.Sprintf("%T", newWire(wireOptions{model: tt.model})); got != tt.want {
			t.Errorf("%+v: %s", tt.model, got)
		}
	}
	for _, m := range []task.Model{{Name: "x", Reasoning: true, Wires: []string{"chat"}}, {Name: "x", API: "anthropic", Wires: []string{"chat"}}, {Name: "x"}} {
		if _, ok := newWire(wireOptions{model: m}).(*chatWire); !ok {
			t.Errorf("%+v is not asked by chat completions", m)
		}
	}
}

// ask asks twice, with the call of the first answer answered in between.
func ask(t *testing.T, w wire) (openai.ChatCompletionChoice, openai.Usage) {
	t.Helper()
	h := talk()
	first, used, err := w.askOnce(t.Context(), h, 100, false)
	if err != nil {
		t.Fatal(err)
	}
	h = append(h, first.Message, openai.ChatCompletionMessage{Role: "tool", Content: "result", ToolCallID: first.Message.ToolCalls[0].ID})
	if _, _, err := w.askOnce(t.Context(), h, 100, true); err != nil {
		t.Fatal(err)
	}
	return first, used
}

const (
	messagesCall = `{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sealed"},{"type":"text","text":"I look."},
		{"type":"tool_use","id":"toolu_1","name":"read_file","input":{"path":"a"}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":500,"output_tokens":7}}`
	responsesCall = `{"status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"sealed"},
		{"type":"message","content":[{"type":"output_text","text":"I look."}]},{"type":"function_call","call_id":"c1","name":"read_file","arguments":"{\"path\":\"a\"}"}],"usage":{"input_tokens":543,"output_tokens":7}}`
)

// TestMessagesWire: what is asked, what is marked to be kept, and that thoughts go back sealed.
func TestMessagesWire(t *testing.T) {
	s := serveWire(t, messagesCall, `{"type":"message","content":[{"type":"text","text":"end"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	first, used := ask(t, s.open(t, anthropicModel))
	if m := first.Message; first.FinishReason != "tool_calls" || m.Content != "I look." || m.ReasoningContent != "hm" || m.ToolCalls[0].Function.Arguments != `{"path":"a"}` || used.PromptTokens != 543 || used.CompletionTokens != 7 {
		t.Errorf("%+v %+v", first, used)
	}
	const kept = `"cache_control":{"type":"ephemeral"}`
	for i, want := range []string{
		`[{"content":[{` + kept + `,"text":"common\n","type":"text"},{` + kept + `,"text":"rest","type":"text"}],"role":"user"}]`,
		`[{"content":[{` + kept + `,"text":"common\n","type":"text"},{` + kept + `,"text":"rest","type":"text"}],"role":"user"},` +
			`{"content":[{"signature":"sealed","thinking":"hm","type":"thinking"},{"text":"I look.","type":"text"},{"id":"toolu_1","input":{"path":"a"},"name":"read_file","type":"tool_use"}],"role":"assistant"},` +
			`{"content":[{` + kept + `,"content":"result","tool_use_id":"toolu_1","type":"tool_result"}],"role":"user"}]`,
	} {
		r := s.requests[i]
		if got, _ := json.Marshal(r["messages"]); string(got) != want {
			t.Errorf("request %d:\n%s, not\n%s", i+1, got, want)
		}
		if got, _ := json.Marshal([]any{r["system"], r["tools"], r["tool_choice"], r["max_tokens"]}); string(got) != `[[{`+kept+`,"text":"sys","type":"text"}],[{"description":"d","input_schema":{"type":"object"},"name":"read_file"}],null,100]` {
			t.Errorf("request %d: %s", i+1, got)
		}
	}
	if s.paths[0] != "/v1/messages" {
		t.Errorf("asked %s", s.paths[0])
	}
}

// TestResponsesWire: the items of an answer go back as they came, and the provider stores none.
func TestResponsesWire(t *testing.T) {
	s := serveWire(t, responsesCall, `{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"end"}]}]}`)
	first, used := ask(t, s.open(t, reasoningModel))
	if m := first.Message; first.FinishReason != "tool_calls" || m.Content != "I look." || m.ReasoningContent != "hm" || m.ToolCalls[0].ID != "c1" || used.PromptTokens != 543 {
		t.Errorf("%+v %+v", first, used)
	}
	r := s.requests[1]
	if got, _ := json.Marshal(r["input"]); string(got) != `[{"content":"common\nrest","role":"user","type":"message"},`+
		`{"encrypted_content":"sealed","id":"rs_1","summary":[{"text":"hm","type":"summary_text"}],"type":"reasoning"},{"content":[{"text":"I look.","type":"output_text"}],"type":"message"},`+
		`{"arguments":"{\"path\":\"a\"}","call_id":"c1","name":"read_file","type":"function_call"},{"call_id":"c1","output":"result","type":"function_call_output"}]` {
		t.Errorf("input %s", got)
	}
	if got, _ := json.Marshal([]any{r["include"], r["store"], r["prompt_cache_key"], r["tool_choice"], r["instructions"], r["max_output_tokens"]}); string(got) != `[["reasoning.encrypted_content"],false,"T1","none","sys",100]` {
		t.Errorf("%s", got)
	}
	if s.paths[0] != "/v1/responses" || s.requests[0]["tool_choice"] != nil {
		t.Errorf("asked %s: %v", s.paths[0], s.requests[0])
	}
}

// TestWiresRefuse: an answer that is none, was refused or filtered is never a normal stop.
func TestWiresRefuse(t *testing.T) {
	for _, c := range []struct{ model, body, want string }{
		{"m", "", "cut off"}, {"m", `{"type":"mess`, "cut off"}, {"m", "<html>", "cut off"}, {"m", `[]`, "is not the JSON"}, {"m", `{}`, "no message"},
		{"m", `{"type":"error","error":{"message":"x"}}`, "no message"},
		{"m", `{"type":"message","content":[{"type":"text","text":"x"}]}`, "without stop_reason"},
		{"m", `{"type":"message","content":[{"type":"text","text":"no"}],"stop_reason":"refusal"}`, `refused to answer: "no"`},
		{"m", `{"type":"message","content":[],"stop_reason":"new"}`, "not known here"},
		{"m", `400 {"type":"error","error":{"type":"invalid_request_error","message":"bad thing"}}`, "bad thing"},
		{"m", `400 oops`, "oops"},
		{"r", "", "cut off"}, {"r", `{"status":"comp`, "cut off"}, {"r", `{}`, "may be cut off"}, {"r", `{"status":"in_progress"}`, "may be cut off"},
		{"r", `{"status":"failed","error":{"message":"broke"}}`, "broke"},
		{"r", `{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`, "content filter"},
		{"r", `{"status":"incomplete","incomplete_details":{"reason":"new"}}`, "may be cut off"},
		{"r", `{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}`, `refused to answer: "no"`},
	} {
		m := anthropicModel
		if c.model == "r" {
			m = reasoningModel
		}
		if _, _, err := serveWire(t, c.body).open(t, m).askOnce(t.Context(), talk(), 0, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %.60s: %v", c.model, c.body, err)
		}
	}
	for m, body := range map[*task.Model]string{
		&anthropicModel: `{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"max_tokens"}`,
		&reasoningModel: `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`,
	} {
		got, _, err := serveWire(t, body).open(t, *m).askOnce(t.Context(), talk(), 0, false)
		if err != nil || got.FinishReason != openai.FinishReasonLength {
			t.Errorf("%s: %v %v", m.Name, got.FinishReason, err)
		}
	}
}

// FuzzWires: no answer makes a wire fall, or a stop out of what says that it is none; and what
// it gives can be given back.
func FuzzWires(f *testing.F) {
	for _, seed := range []string{messagesCall, responsesCall, `{"type":"message","content":[null,{"type":"tool_use","input":[1]}],"stop_reason":"tool_use"}`, `{"status":"completed","output":[{"type":"function_call"}]}`, `{"content":{}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		h := talk()
		var m messagesAnswer
		if json.Unmarshal([]byte(body), &m) == nil {
			if c, err := m.readChoice(); err == nil {
				if m.StopReason == "refusal" || m.StopReason == "" {
					t.Errorf("%s is %s", body, c.FinishReason)
				}
				w := &messagesWire{raw: map[int][]object{2: m.Content}}
				if _, err := json.Marshal(w.lastTurns(append(h, c.Message))); err != nil {
					t.Error(err)
				}
			}
		}
		var r responsesAnswer
		if json.Unmarshal([]byte(body), &r) == nil {
			if c, err := r.readChoice(); err == nil {
				if r.Status != "completed" && c.FinishReason != openai.FinishReasonLength {
					t.Errorf("%s is %s", body, c.FinishReason)
				}
				w := &responsesWire{raw: map[int][]object{2: r.Output}}
				_, items := w.writeItems(append(h, c.Message))
				if _, err := json.Marshal(items); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func (w *messagesWire) lastTurns(h []openai.ChatCompletionMessage) []turn {
	_, turns := w.writeTurns(h)
	return turns
}

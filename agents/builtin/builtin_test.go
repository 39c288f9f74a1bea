package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"
	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas/record"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// A server that refused a body leaves its connection half a second to be read.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

const final = "---\n$status: done\nnote: fine\n---\n# Done\n"

// reply is what the fake server says next: a status and a body.
type reply struct {
	status int
	body   string
}

// server is a fake OpenAI-compatible server that answers as recorded.
type server struct {
	t        *testing.T
	replies  []reply
	requests []map[string]any
	http     *httptest.Server
}

func newServer(t *testing.T, replies ...reply) *server {
	t.Helper()
	s := &server{t: t, replies: replies}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer once" {
		s.t.Errorf("request to %s with %q", r.URL.Path, r.Header.Get("Authorization"))
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	var req map[string]any
	if err := json.Unmarshal(b, &req); err != nil {
		s.t.Error(err)
	}
	n := len(s.requests)
	s.requests = append(s.requests, req)
	rep := s.replies[min(n, len(s.replies)-1)]
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(rep.status)
	if _, err := io.WriteString(w, rep.body); err != nil {
		s.t.Error(err)
	}
}

// messages are those of one request as role: content.
func (s *server) messages(n int) []string {
	s.t.Helper()
	if n >= len(s.requests) {
		s.t.Fatalf("only %d requests", len(s.requests))
	}
	var out []string
	for _, m := range s.requests[n]["messages"].([]any) {
		msg := m.(map[string]any)
		out = append(out, fmt.Sprintf("%s: %v", msg["role"], msg["content"]))
	}
	return out
}

func says(text string) reply { return message(text, "stop") }

func message(text, finish string) reply {
	return reply{200, fmt.Sprintf(`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":%s}],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}`,
		quote(text), quote(finish))}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}

// calls answers with tool calls, given as name, arguments, name, arguments…
func calls(nameArgs ...string) reply {
	var list []string
	for i := 0; i < len(nameArgs); i += 2 {
		list = append(list, fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":%s,"arguments":%s}}`, i/2, quote(nameArgs[i]), quote(nameArgs[i+1])))
	}
	return reply{200, fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":null,"reasoning_content":"hm","tool_calls":[%s]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":200,"completion_tokens":20}}`, strings.Join(list, ","))}
}

// run runs the agent on a task with a model.
func run(t *testing.T, s *server, model *task.Model, environ ...string) (*agenttest.Process, task.Task, error) {
	t.Helper()
	task := agenttest.Task(t)
	task.Model = model
	if err := os.WriteFile(filepath.Join(task.Workspace, "a.txt"), []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := agenttest.NewProcess(t, task, append(environ, "OPENAI_BASE_URL="+s.http.URL+"/v1/", "OPENAI_API_KEY=once")...)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	a := &Agent{Transport: tr}
	err := agents.RunAdapter(t.Context(), a, p.Process)
	if cerr := a.Close(); cerr != nil {
		t.Error(cerr)
	}
	return p, task, err
}

func plainModel() *task.Model {
	return &task.Model{Alias: "m", Name: "vendor/model-1", MaxOutput: 2000}
}

func TestConversationWithTools(t *testing.T) {
	s := newServer(t,
		calls("read_file", `{"path":"a.txt"}`, "edit_file", `{"path":"a.txt","old_text":"two","new_text":"2"}`),
		calls("read_file", `{"path":"none"}`),
		calls("run_command", `{"command":"ls"}`),
		says(final))
	p, task, err := run(t, s, plainModel())
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(task.Workspace, "a.txt")); err != nil || string(b) != "one\n2\n" {
		t.Errorf("a.txt = %q, %v", b, err)
	}
	first := s.messages(0)
	if len(first) != 2 || strings.Contains(first[0], "developer") || first[1] != "user: Do it.\n" || !strings.Contains(first[0], "run_command") {
		t.Errorf("the first request: %q", first)
	}
	if strings.Contains(first[0], task.Workspace) {
		t.Error("the prompt holds a path of this machine")
	}
	if got := s.requests[0]["max_tokens"]; got != 2000.0 || s.requests[0]["model"] != "m" {
		t.Errorf("max_tokens %v, model %v", got, s.requests[0]["model"])
	}
	last := s.messages(3)
	want := []string{
		"tool: one\ntwo\n", "tool: edited a.txt at line 2", "tool: error: read_file: none: no such file",
		"tool: error: run_command: it is not allowed here",
	}
	for _, w := range want {
		if !strings.Contains(strings.Join(last, "\n"), w) {
			t.Errorf("%q is not in %q", w, last)
		}
	}
	if n := strings.Count(strings.Join(last, "\n"), "tool: "); n != 4 {
		t.Errorf("%d tool results for 4 calls", n)
	}
	step := p.Step(t)
	if u := step.Usage; u.Turns != 4 || u.InputTokens != 700 || u.OutputTokens != 70 {
		t.Errorf("usage %+v", u)
	}
	nodes := p.Nodes(t)
	detail, _ := nodes[step.Detail].Payload.(map[string]any)
	if nodes[step.Detail].Type != record.BuiltinDetailSchema || detail["turnCount"] != int64(8) || detail["model"] != "vendor/model-1" {
		t.Errorf("detail %v", detail)
	}
	for _, n := range nodes {
		if m, ok := n.Payload.(map[string]any); ok && n.Type == record.BuiltinTurnSchema && m["role"] == "assistant" && m["toolCalls"] != nil && m["reasoning"] != "hm" {
			t.Errorf("turn %v", m)
		}
	}
}

func TestRunCommandBehindTheGate(t *testing.T) {
	s := newServer(t, calls("run_command", `{"command":"echo $UWF_STAGE-$OPENAI_API_KEY-; cat a.txt"}`), says(final))
	if _, _, err := run(t, s, plainModel(), agents.EnvAllowShell+"=1"); err != nil {
		t.Fatal(err)
	}
	if got := s.messages(1); got[len(got)-1] != "tool: --\none\ntwo\n[exit code 0]" {
		t.Errorf("the command gave %q", got[len(got)-1])
	}
}

// A command that is denied something of the user's home is told which setting opens it.
func TestDeniedCommand(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(home, ".foo")
	if err := os.Mkdir(closed, 0o755); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, calls("run_command", `{"command":"echo cat: `+closed+`: Permission denied"}`), says(final))
	if _, _, err := run(t, s, plainModel(), agents.EnvAllowShell+"=1", sandbox.EnvClosedHome+"="+home); err != nil {
		t.Fatal(err)
	}
	want := "tool: cat: " + closed + ": Permission denied\n[the sandbox closes " + closed + ": confine.read: [" + closed + "] in ~/.uwf/config.yaml opens it]\n[exit code 0]"
	if got := s.messages(1); got[len(got)-1] != want {
		t.Errorf("the command gave %q", got[len(got)-1])
	}
}

func TestCorrectionsGoOnInTheConversation(t *testing.T) {
	s := newServer(t, says("I am done."), says("---\n$status: sideways\n---"), says(final))
	p, _, err := run(t, s, plainModel())
	if err != nil {
		t.Fatal(err)
	}
	got := s.messages(2)
	if len(got) != 6 || got[2] != "assistant: I am done." || !strings.Contains(got[5], "done") || !strings.HasPrefix(got[5], "user: ") {
		t.Errorf("the last request: %q", got)
	}
	if step := p.Step(t); step.Usage.Turns != 3 {
		t.Errorf("usage %+v", step.Usage)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	tests := []struct {
		name string
		rep  reply
		want string
	}{
		{"no choices", reply{200, `{"choices":[],"usage":{}}`}, "without choices"},
		{"no finish_reason", reply{200, `{"choices":[{"message":{"role":"assistant","content":"hi"}}]}`}, "without finish_reason"},
		{"null finish_reason", reply{200, `{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":null}]}`}, "without finish_reason"},
		{"content filter", message("x", "content_filter"), "content filter"},
		{"refusal", reply{200, `{"choices":[{"message":{"role":"assistant","content":"","refusal":"no"},"finish_reason":"stop"}]}`}, `refused to answer: "no"`},
		{"server error", reply{500, `{"error":{"message":"overloaded","type":"server_error"}}`}, "HTTP 500: overloaded"},
		{"budget", reply{402, `{"error":{"message":"budget of 5 USD reached"}}`}, "HTTP 402: budget of 5 USD"},
		{"html", reply{200, "<html>login</html>"}, "model vendor/model-1"},
		{"html error", reply{502, "<html>bad gateway</html>"}, "502"},
		{"redirect", reply{307, ""}, "model vendor/model-1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, tt.rep)
			p, _, err := run(t, s, plainModel())
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "turn 1") {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if len(s.requests) != 1 {
				t.Errorf("%d requests: the gateway retries, not the agent", len(s.requests))
			}
			if p.Out.Len() > 0 {
				t.Errorf("a handle was printed: %s", p.Out)
			}
		})
	}
}

func TestWithoutModel(t *testing.T) {
	s := newServer(t, says(final))
	if _, _, err := run(t, s, nil); !errors.Is(err, ErrNoModel) {
		t.Errorf("no model: %v", err)
	}
	if _, _, err := run(t, s, plainModel()); err != nil {
		t.Fatal(err)
	}
	p := agenttest.NewProcess(t, func() task.Task { task := agenttest.Task(t); task.Model = plainModel(); return task }())
	if err := agents.RunAdapter(t.Context(), &Agent{}, p.Process); !errors.Is(err, ErrNoModel) {
		t.Errorf("no base URL: %v", err)
	}
}

func TestCutOffAndEmptyAnswers(t *testing.T) {
	s := newServer(t,
		message("---\n$status: do", "length"),
		says("  "),
		reply{200, `{"choices":[{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"write_file","arguments":"{\"path\":\"b"}}]},"finish_reason":"length"}]}`},
		says(final))
	p, _, err := run(t, s, plainModel())
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(s.messages(3), "\n")
	for _, want := range []string{"cut off at the output limit. Give it again", "Your answer was empty", "error: the call was cut off"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %q", want, all)
		}
	}
	if strings.Contains(all, "assistant:   ") {
		t.Error("an empty message was sent back")
	}
	calls := s.requests[3]["messages"].([]any)
	for _, m := range calls {
		for _, c := range asList(m.(map[string]any)["tool_calls"]) {
			if id := c.(map[string]any)["id"]; id != "call_3_0" {
				t.Errorf("a call without id became %v", id)
			}
		}
	}
	if body := p.Nodes(t)[*p.Step(t).Body].Payload; body != "# Done" {
		t.Errorf("body %q", body)
	}
}

// A model whose answers can't be used is asked again twice, told what was wrong, and not
// until its turns are used up.
func TestModelThatSaysNothing(t *testing.T) {
	thoughts := reply{200, `{"choices":[{"message":{"role":"assistant","content":null,"reasoning_content":"hm"},"finish_reason":"stop"}]}`}
	thoughtsAtLimit := reply{200, `{"choices":[{"message":{"role":"assistant","content":"","reasoning_content":"hm"},"finish_reason":"length"}]}`}
	work := calls("list_dir", "{}")
	tests := []struct {
		name      string
		replies   []reply
		requests  int
		complaint string // what the model is told last
		errs      []string
	}{
		{"nothing", []reply{says("")}, 3, "neither text nor a tool call", []string{"turn 3", "model vendor/model-1", "empty", `finish_reason "stop"`, "3 unusable answers"}},
		{"white space", []reply{says(" \n\t\u00a0\n")}, 3, "neither text nor a tool call", []string{"empty", `"stop"`}},
		{"null", []reply{{200, `{"choices":[{"message":{"role":"assistant","content":null},"finish_reason":"tool_calls"}]}`}}, 3, "neither text nor a tool call", []string{"empty", `"tool_calls"`}},
		{"no calls", []reply{{200, `{"choices":[{"message":{"role":"assistant","content":"","tool_calls":[]},"finish_reason":"stop"}]}`}}, 3, "neither text nor a tool call", []string{"empty"}},
		{"thoughts", []reply{thoughts}, 3, "it held reasoning, but neither", []string{"reasoning, but neither text nor a tool call"}},
		{"thoughts to the limit", []reply{thoughtsAtLimit}, 3, "before it held any text", []string{"before any text", `"length"`, "maxOutput"}},
		{"cut off", []reply{message("---\n$status: do", "length")}, 3, "cut off", []string{"cut off", `"length"`, "maxOutput"}},
		{"in turn", []reply{says(""), thoughts, message("half", "length")}, 3, "it held reasoning", []string{"cut off"}},
		{"after work", []reply{work, says(""), says(""), work, says(""), says(""), says("")}, 7, "neither text", []string{"turn 7"}},
		{"twice", []reply{says(""), thoughts, says(final)}, 3, "it held reasoning", nil},
		{"after a correction", []reply{says("no frontmatter"), says("")}, 4, "neither text", []string{"turn 4"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, tt.replies...)
			p, _, err := run(t, s, plainModel())
			if len(s.requests) != tt.requests {
				t.Errorf("the model was asked %d times, want %d", len(s.requests), tt.requests)
			}
			if got := s.messages(len(s.requests) - 1); !strings.Contains(got[len(got)-1], tt.complaint) {
				t.Errorf("it was told %q, want %q", got[len(got)-1], tt.complaint)
			}
			for i := range s.requests {
				for _, m := range s.requests[i]["messages"].([]any) {
					msg := m.(map[string]any)
					text, _ := msg["content"].(string)
					if msg["role"] == "assistant" && msg["tool_calls"] == nil && strings.TrimSpace(text) == "" {
						t.Errorf("request %d gives an empty message back", i+1)
					}
				}
			}
			if len(tt.errs) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrNoAnswer) {
				t.Fatalf("error %v", err)
			}
			for _, want := range tt.errs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
			if p.Out.Len() > 0 {
				t.Errorf("a handle was printed: %s", p.Out)
			}
		})
	}
}

func asList(v any) []any {
	l, _ := v.([]any)
	return l
}

func TestTurnsRunOut(t *testing.T) {
	s := newServer(t, calls("list_dir", "{}"))
	p, _, err := run(t, s, plainModel())
	if !errors.Is(err, ErrTurns) || len(s.requests) != MaxTurns {
		t.Fatalf("%d requests, error %v", len(s.requests), err)
	}
	if all := strings.Join(s.messages(MaxTurns-2), "\n"); strings.Count(all, "You have 3 turns left") != 1 || strings.Contains(all, "last turn") {
		t.Errorf("warnings before the last turn: %q", all)
	}
	if all := s.messages(MaxTurns - 1); !strings.Contains(all[len(all)-1], "your last turn") || s.requests[MaxTurns-1]["tool_choice"] != "none" {
		t.Errorf("the last request: %q, tool_choice %v", all[len(all)-1], s.requests[MaxTurns-1]["tool_choice"])
	}
	if all := s.messages(26); strings.Contains(strings.Join(all, "\n"), "turns left") {
		t.Error("warned too early")
	}
	// What was said is there although the run failed.
	turns, details := 0, 0
	for _, n := range p.Nodes(t) {
		switch n.Type {
		case record.BuiltinTurnSchema:
			turns++
		case record.BuiltinDetailSchema:
			details++
		}
	}
	if turns == 0 || details != 1 {
		t.Errorf("%d turns and %d details staged", turns, details)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("claim lost")
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		cancel(cause)
		<-r.Context().Done()
	}))
	defer srv.Close()
	task := agenttest.Task(t)
	task.Model = plainModel()
	p := agenttest.NewProcess(t, task, "OPENAI_BASE_URL="+srv.URL+"/v1", "OPENAI_API_KEY=once")
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	a := &Agent{Transport: tr}
	if err := agents.RunAdapter(ctx, a, p.Process); !errors.Is(err, cause) {
		t.Errorf("error %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// A server that takes the other field for an answer's limit says so: it is asked
// again, once, and from then on by that field.
func TestLimitFieldIsLearned(t *testing.T) {
	refuses := func(field string) reply {
		return reply{400, `{"error":{"message":"Unsupported parameter: '` + field + `' is not supported with this model.","param":"` + field + `","code":"unsupported_parameter"}}`}
	}
	for model, fields := range map[string][2]string{
		"new-reasoner-9": {"max_tokens", "max_completion_tokens"}, "gpt-5-like": {"max_completion_tokens", "max_tokens"},
	} {
		s := newServer(t, refuses(fields[0]), says("no frontmatter"), says(final))
		if _, _, err := run(t, s, &task.Model{Alias: "m", Name: model, MaxOutput: 2000}); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{fields[0], fields[1], fields[1]} {
			if s.requests[i][want] != 2000.0 || len(s.requests) != 3 {
				t.Errorf("%s, request %d of %d: %v", model, i+1, len(s.requests), s.requests[i])
			}
		}
		s = newServer(t, refuses(fields[0]), refuses(fields[1]))
		if _, _, err := run(t, s, &task.Model{Alias: "m", Name: model, MaxOutput: 2000}); err == nil || len(s.requests) != 2 {
			t.Errorf("%s: asked %d times, %v", model, len(s.requests), err)
		}
	}
	// An alias may look like the name of a model that it is not.
	s := newServer(t, says(final))
	if _, _, err := run(t, s, &task.Model{Alias: "gpt-5-mine", Name: "llama", MaxOutput: 2000}); err != nil || len(s.requests) != 1 {
		t.Errorf("asked %d times, %v", len(s.requests), err)
	}
}

func TestMaxCompletionTokens(t *testing.T) {
	for model, want := range map[string]bool{"o3-mini": true, "openai/gpt-5": true, "gpt-4o": false, "openai/gpt-4.1": false, "mistral-o1": false} {
		if got := limitsAllTokens(model); got != want {
			t.Errorf("%s: %v", model, got)
		}
	}
}

func TestSummaryHasNoControlCharacters(t *testing.T) {
	got := describeCall(openai.FunctionCall{Name: "a\x1b[2J", Arguments: "{\"p\":\"\x1b]0;title\x07" + strings.Repeat("é", 200)})
	if strings.ContainsAny(got, "\x1b\x07\n") || len(got) > 400 {
		t.Errorf("summary %q", got)
	}
}

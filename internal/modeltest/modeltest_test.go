package modeltest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const prompt = "Working directory: /somewhere\nDo it. "

// bodies ask on each wire with a shell tool, whose schema each wire has elsewhere. %s is
// the prompt, quoted. withResult has a tool's answer besides.
var bodies = map[Wire]struct{ path, asks, withResult string }{
	Chat: {
		"/v1/chat/completions",
		`{"model":"m","stream":STREAM,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":%s}],
		 "tools":[{"type":"function","function":{"name":"read_file","parameters":{}}},{"type":"function","function":{"name":"run_command","parameters":SCHEMA}}]}`,
		`{"model":"m","stream":STREAM,"messages":[{"role":"user","content":%s},{"role":"assistant","tool_calls":[{"id":"call_1"}]},{"role":"tool","content":"ok"}],
		 "tools":[{"type":"function","function":{"name":"run_command","parameters":SCHEMA}}]}`,
	},
	Messages: {
		"/v1/messages?beta=true",
		`{"model":"m","stream":STREAM,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":%s}]}],
		 "tools":[{"name":"Bash","input_schema":SCHEMA}]}`,
		`{"model":"m","stream":STREAM,"messages":[{"role":"user","content":%s},{"role":"assistant","content":[{"type":"tool_use"}]},{"role":"user","content":[{"type":"tool_result","content":"ok"}]}],
		 "tools":[{"name":"Bash","input_schema":SCHEMA}]}`,
	},
	Responses: {
		"/v1/responses",
		`{"model":"m","stream":STREAM,"instructions":"i","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}],
		 "tools":[{"type":"namespace","name":"space","tools":[{"name":"exec_command","parameters":SCHEMA}]}]}`,
		`{"model":"m","stream":STREAM,"input":[{"role":"user","content":%s},{"type":"function_call"},{"type":"function_call_output","output":"ok"}],
		 "tools":[{"name":"exec_command","parameters":SCHEMA}]}`,
	},
	Gemini: {
		"/v1beta/models/m:GENERATE",
		`{"contents":[{"role":"user","parts":[{"text":%s}]}],"tools":[{"functionDeclarations":[{"name":"run_shell_command","parametersJsonSchema":SCHEMA}]}]}`,
		`{"contents":[{"role":"user","parts":[{"text":%s}]},{"role":"model","parts":[{"functionCall":{}}]},{"role":"user","parts":[{"functionResponse":{}}]}],
		 "tools":[{"functionDeclarations":[{"name":"run_shell_command","parameters":SCHEMA}]}]}`,
	},
}

const schema = `{"type":"object","properties":{"command":{"type":"string"},"why":{"type":"string"},"timeout":{"type":"integer"}},"required":["command","why"]}`

func ask(t *testing.T, url string, w Wire, stream, withResult bool, prompt string) (*http.Response, string) {
	t.Helper()
	b := bodies[w]
	form, path := b.asks, b.path
	if withResult {
		form = b.withResult
	}
	method := "generateContent"
	if stream {
		method = "streamGenerateContent?alt=sse"
	}
	form = strings.NewReplacer("STREAM", fmt.Sprint(stream), "SCHEMA", schema).Replace(form)
	body := strings.NewReader(fmt.Sprintf(form, marshal(prompt)))
	resp, err := http.Post(url+strings.Replace(path, "GENERATE", method, 1), "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp, "broken off: " + string(text)
	}
	return resp, string(text)
}

func TestWires(t *testing.T) {
	model := &Server{}
	s := httptest.NewServer(model)
	defer s.Close()
	called := map[Wire][]string{ // what each wire has of the first call
		Chat:      {`"name":"run_command"`, `\"command\":\"echo hello \u003e hello.txt\"`, `"finish_reason":"tool_calls"`, `"prompt_tokens":1200`},
		Messages:  {`"name":"Bash"`, `echo hello \u003e hello.txt`, `"stop_reason":"tool_use"`, `"input_tokens":1200`},
		Responses: {`"name":"exec_command"`, `"namespace":"space"`, `"type":"function_call"`, `"input_tokens":1200`},
		Gemini:    {`"name":"run_shell_command"`, `"finishReason":"STOP"`, `"promptTokenCount":1200`},
	}
	ends := map[Wire]string{
		Chat: `"finish_reason":"stop"`, Messages: `"stop_reason":"end_turn"`, Responses: `"status":"completed"`, Gemini: `"finishReason":"STOP"`,
	}
	for w := range bodies {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream %v", w, stream), func(t *testing.T) {
				resp, text := ask(t, s.URL, w, stream, false, prompt)
				checkForm(t, resp, text, stream)
				for _, want := range called[w] {
					// JSON may escape >, or not.
					if !strings.Contains(strings.ReplaceAll(text, ">", `\u003e`), want) {
						t.Errorf("the call has no %s:\n%s", want, text)
					}
				}
				if strings.Contains(text, "timeout") || !strings.Contains(text, "why") {
					t.Errorf("it fills what is required, and that alone:\n%s", text)
				}
				resp, text = ask(t, s.URL, w, stream, true, prompt)
				checkForm(t, resp, text, stream)
				for _, want := range []string{`$status: done\nsummary: Wrote hello.txt (answer 1)`, ends[w]} {
					if !strings.Contains(text, want) {
						t.Errorf("the answer has no %s:\n%s", want, text)
					}
				}
			})
		}
	}
	if n := len(model.Requests()); n != 16 {
		t.Errorf("%d requests are kept, want 16", n)
	}
}

// checkForm checks that an answer is one JSON object, or events of them.
func checkForm(t *testing.T, resp *http.Response, text string, stream bool) {
	t.Helper()
	var v any
	kind := resp.Header.Get("Content-Type")
	if resp.StatusCode != http.StatusOK || strings.Contains(kind, "stream") != stream {
		t.Fatalf("answered %d, %s: %s", resp.StatusCode, kind, text)
	}
	if !stream {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		return
	}
	for e := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		_, data, ok := strings.Cut("\n"+e, "\ndata: ")
		if !ok || data != "[DONE]" && json.Unmarshal([]byte(data), &v) != nil {
			t.Errorf("no event: %q", e)
		}
	}
}

func TestMarks(t *testing.T) {
	for _, row := range []struct {
		mark       string
		withResult bool
		status     int
		want       string
	}{
		{"[[err400]]", false, 400, "fake failure 400"},
		{"[[err401]]", false, 401, "fake failure 401"},
		{"[[err403]]", false, 403, "fake failure 403"},
		{"[[err429]]", true, 429, "fake failure 429"},
		{"[[err500]]", false, 500, "fake failure 500"},
		{"[[err529]]", false, 529, "fake failure 529"},
		{"[[cut]]", true, 200, "broken off"},
		{"[[stall]]", false, 200, "hello.txt"},
		{"[[sleep]]", false, 200, "tail -f /dev/null"},
		{"[[env]]", false, 200, "env.txt"},
		{"[[run kill -9 $PPID]]", false, 200, "kill -9 $PPID"},
		{Edit("a/b.txt", "x"), false, 200, "base64 -d > 'a/b.txt'"},
		{"[[plain]]", false, 200, "$status: done"},
		{"[[garbage]]", true, 200, badFinal},
		{"[[badfinal]]", true, 200, badFinal},
		{"## Examples\n\nAn answer, `ready`:\n\n```\n---\n$status: ready\n---\n\nx\n```\n\nAn answer:\n\n```\n---\nn: 1\n---\n```\n", true, 200, "$status: ready"},
	} {
		t.Run(row.mark, func(t *testing.T) {
			s := httptest.NewServer(&Server{})
			defer s.Close()
			for w := range bodies {
				resp, text := ask(t, s.URL, w, true, row.withResult, prompt+row.mark)
				if resp.StatusCode != row.status || !strings.Contains(text, row.want) {
					t.Errorf("%s: answered %d, want %d with %q:\n%s", w, resp.StatusCode, row.status, row.want, text)
				}
			}
		})
	}
}

// What an answer looks like that says nothing, and what follows a bad one.
func TestAnswers(t *testing.T) {
	user := message{role: "user", text: "[[badfinal]]"}
	result := message{role: "tool", tool: true}
	bad := message{role: "assistant", text: badFinal}
	if got := decide(conversation{messages: []message{user, result, bad, {role: "user", text: "no"}}}); !strings.Contains(got.say, "$status: done") {
		t.Errorf("after a bad answer it says %q", got.say)
	}
	user.text = "[[garbage]]"
	if got := decide(conversation{messages: []message{user, result, bad, bad}}); got.say != badFinal {
		t.Errorf("garbage ends with %q", got.say)
	}
	user.text = "[[empty]]"
	if got := decide(conversation{messages: []message{user, result}}); got.say != "" || got.call != nil {
		t.Errorf("empty says %q and calls %v", got.say, got.call)
	}
	user.text = "[[stall]]"
	if got := decide(conversation{messages: []message{user, result}}); !got.hang {
		t.Errorf("stalled it says %q", got.say)
	}
	tools := []tool{{name: "Write", schema: object{"properties": object{"file_path": object{}, "content": object{}}}}, {name: "Bash"}}
	user.text = "[[write]]\nCWD: /w."
	if got := decide(conversation{messages: []message{user}, tools: tools}); got.call.name != "Write" || got.call.args["file_path"] != "/w/hello.txt" {
		t.Errorf("it calls %v", got.call)
	}
	user.text = "Find a title"
	if got := decide(conversation{messages: []message{user}}); got.say != "Short title" {
		t.Errorf("asked on the side it says %q", got.say)
	}
}

// Whatever is in a file, the command of Edit writes it.
func TestEdit(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"a.go":       "package a\n\nvar b = c[d[0]]\n",
		"deep/er.md": "\"quotes\" 'and' $(such) \\ `x`\n\t[[edit no=\"no\"]]",
	}
	text := "Do it.\n"
	for name, content := range files {
		text += Edit(name, content) + "\n"
	}
	act := decide(conversation{messages: []message{{role: "user", text: text}}, tools: []tool{{name: "bash", schema: object{"properties": object{"command": object{}}}}}})
	run := exec.Command("sh", "-c", act.call.args["command"].(string))
	run.Dir = dir
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "no")); err == nil {
		t.Error("a mark in a file's content was taken for one")
	}
}

// A client that goes ends what it waits for.
func TestHang(t *testing.T) {
	model := &Server{}
	s := httptest.NewServer(model)
	ctx, cancel := context.WithCancel(t.Context())
	body := fmt.Sprintf(strings.NewReplacer("STREAM", "true", "SCHEMA", schema).Replace(bodies[Chat].asks), marshal("[[hang]]"))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+bodies[Chat].path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { _, err := http.DefaultClient.Do(req); done <- err }()
	if err := model.Await(t.Context(), func(r []Request) bool { return len(r) == 1 }); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a request that hangs was answered")
	}
	s.Close() // waits for the handlers
	if r := model.Requests()[0]; r.Status != -1 || r.Wire != Chat {
		t.Errorf("the request is kept with status %d on %s", r.Status, r.Wire)
	}
	if err := model.Await(ctx, func([]Request) bool { return false }); err == nil {
		t.Error("waiting doesn't end with its context")
	}
}

// What it does not serve it refuses as providers do.
func TestRefusals(t *testing.T) {
	s := httptest.NewServer(&Server{Wires: []Wire{Chat}, Key: "k", Models: []string{"m"}})
	defer s.Close()
	for _, row := range []struct {
		method, path, header, value, body string
		status                            int
		want                              string
	}{
		{"POST", "/v1/chat/completions", "Authorization", "Bearer k", `{"messages":[]}`, 200, "chat.completion"},
		{"POST", "/v1/chat/completions", "Authorization", "Bearer x", `{}`, 401, "Incorrect API key"},
		{"POST", "/v1/chat/completions", "Authorization", "Bearer k", `[`, 400, "no JSON object"},
		{"POST", "/v1/messages", "X-Api-Key", "k", `{}`, 404, "not_found_error"},
		{"POST", "/v1/responses", "Authorization", "Bearer k", `{}`, 404, "no such path"},
		{"GET", "/v1/responses", "Authorization", "Bearer k", ``, 404, "no such path"},
		{"POST", "/v1beta/models/m:generateContent", "X-Goog-Api-Key", "k", `{}`, 404, "NOT_FOUND"},
		{"POST", "/v1beta/models/m:generateContent?key=x", "A", "b", `{}`, 401, "UNAUTHENTICATED"},
		{"POST", "/v1beta/models/m:countTokens?key=k", "A", "b", `12345`, 200, `"totalTokens":2`},
		{"POST", "/v1/messages/count_tokens", "X-Api-Key", "k", `12345`, 200, `"input_tokens":2`},
		{"GET", "/v1/models", "X-Api-Key", "k", ``, 200, `"id":"m"`},
	} {
		t.Run(row.method+row.path+row.value, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), row.method, s.URL+row.path, strings.NewReader(row.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(row.header, row.value)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			text, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != row.status || !strings.Contains(string(text), row.want) {
				t.Errorf("answered %d %s (%v), want %d with %s", resp.StatusCode, text, err, row.status, row.want)
			}
		})
	}
}

package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/united-workforce/uwf/agents/gateway/cassette"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// client is the real one that the builtin agent uses.
func client(g *Gateway) (*openai.Client, func()) {
	c := openai.DefaultConfig(g.key)
	c.BaseURL = g.url + "/v1"
	tr := &http.Transport{}
	c.HTTPClient = &http.Client{Transport: tr}
	return openai.NewClientWithConfig(c), tr.CloseIdleConnections
}

var tools = []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: "run_command", Parameters: map[string]any{"type": "object"}}}}

// talk has a conversation of two turns, the second one streamed.
func talk(ctx context.Context, g *Gateway, model, dir string) (string, error) {
	c, done := client(g)
	defer done()
	req := openai.ChatCompletionRequest{Model: model, Tools: tools, Messages: []openai.ChatCompletionMessage{
		{Role: "system", Content: "be kind"}, {Role: "user", Content: "test it in " + dir},
	}}
	resp, err := c.CreateChatCompletion(ctx, req)
	if err != nil {
		return "", err
	}
	m := resp.Choices[0].Message
	if len(m.ToolCalls) != 1 || resp.Choices[0].FinishReason != openai.FinishReasonToolCalls {
		return "", errors.New("no call")
	}
	req.Messages = append(req.Messages, m, openai.ChatCompletionMessage{Role: "tool", ToolCallID: m.ToolCalls[0].ID, Content: "ok\t" + dir + "\t0.2s"})
	req.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	stream, err := c.CreateChatCompletionStream(ctx, req)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var text strings.Builder
	usage := 0
	for {
		ev, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if usage == 0 {
				return "", errors.New("no usage")
			}
			return text.String(), nil
		}
		if err != nil {
			return "", err
		}
		if ev.Usage != nil {
			usage = ev.Usage.PromptTokens
		}
		for _, c := range ev.Choices {
			text.WriteString(c.Delta.Content)
		}
	}
}

func recorder(t *testing.T, file string, step int, role string) *cassette.Recorder {
	t.Helper()
	r, err := cassette.NewRecorder(file, cassette.RecorderOptions{Step: step, Role: role, Redact: func(s string) (string, error) { return s, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func player(t *testing.T, file string, step int, role string) *cassette.Player {
	t.Helper()
	c, err := cassette.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return c.NewPlayer(cassette.PlayerOptions{Step: step, Role: role})
}

const toolBody = `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_7","type":"function","function":{"name":"run_command","arguments":"{\"command\": \"go test\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":100,"completion_tokens":20}}`

// What a real client says through the gateway is recorded, and played again
// without any provider, to the same counts.
func TestRecordAndReplayWithARealClient(t *testing.T) {
	u := newUpstream(t, answer(200, toolBody), events(chunk(`{"role":"assistant","content":"all "}`, "null"), chunk(`{"content":"well"}`, "stop"), usageChunk, doneChunk))
	file := filepath.Join(t.TempDir(), "c.jsonl")
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Meter: m, Record: recorder(t, file, 1, "developer")})
	text, err := talk(t.Context(), g, "main", "/tmp/uwf-1/ws")
	if err != nil || text != "all well" {
		t.Fatalf("%q, %v", text, err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	m.is(t, 2, 200, 40, 2*chatCost)

	u.Close()
	for range 2 { // deterministic
		again := &meter{}
		g = start(t, Options{Meter: again, Replay: player(t, file, 1, "developer")})
		text, err = talk(t.Context(), g, "main", "/tmp/uwf-2/other")
		if err != nil || text != "all well" || len(g.Unused()) != 0 || g.Err() != nil {
			t.Errorf("%q, %v, %q, %v", text, err, g.Unused(), g.Err())
		}
		again.is(t, 2, 200, 40, 2*chatCost)
	}

	g = start(t, Options{Replay: player(t, file, 1, "developer")})
	_, err = talk(t.Context(), g, "main", "/home/me/ws")
	var api *openai.APIError
	if !errors.As(err, &api) || api.HTTPStatusCode != 400 || api.Code != "replay_mismatch" || !strings.Contains(api.Message, `"test it in /home/me/ws"`) {
		t.Errorf("%#v", err)
	}
	var mismatch *cassette.MismatchError
	if !errors.As(g.Err(), &mismatch) || mismatch.Turn != 1 || mismatch.Of != 2 || mismatch.Role != "developer" {
		t.Errorf("Err is %v", g.Err())
	}
	if len(g.Unused()) != 2 {
		t.Errorf("unused %q", g.Unused())
	}
}

// collectEvents puts the answer of a stream together.
func collectEvents(d dialect.Dialect, events string) dialect.Answer {
	c := dialect.NewCollector(d)
	for r := dialect.NewEventReader(strings.NewReader(events), 1<<20); ; {
		ev, err := r.Next()
		if err != nil {
			return c.AnswerSoFar()
		}
		c.Add(ev)
	}
}

func TestReplayInEveryDialect(t *testing.T) {
	c, err := cassette.Parse("c.jsonl", []byte(`{"role":"r","answer":{"text":"hello","usage":{"in":5,"out":1,"costUsd":0.25}}}
{"role":"r","answer":{"text":"hello","usage":{"in":5,"out":1}}}
{"role":"r","answer":{"error":"too long","status":413}}
{"role":"r","answer":{"text":"hello"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []dialect.Dialect{dialect.Chat, dialect.Responses, dialect.Messages, dialect.Gemini} {
		m := &meter{}
		path := d.Path()
		streams := path
		if d == dialect.Gemini {
			path, streams = "/v1beta/models/any:generateContent", "/v1beta/models/any:streamGenerateContent?alt=sse"
		}
		g := start(t, Options{Replay: c.NewPlayer(cassette.PlayerOptions{Step: 1, Role: "r"}), Meter: m})
		plain := post(t, g, path, `{"model":"any"}`)
		if a, err := dialect.ParseAnswer(d, []byte(plain.body)); err != nil || a.Text != "hello" || a.Usage.In != 5 {
			t.Errorf("%s: %s", d.Path(), plain.body)
		}
		streamed := post(t, g, streams, `{"model":"any","stream":true}`)
		if a := collectEvents(d, streamed.body); a.Text != "hello" || a.Finish != dialect.FinishStop {
			t.Errorf("%s: %s", d.Path(), streamed.body)
		}
		failed := post(t, g, path, `{"model":"any"}`)
		if _, message := dialect.ErrorMessage([]byte(failed.body)); failed.status != 413 || message != "too long" {
			t.Errorf("%s: %d %s", d.Path(), failed.status, failed.body)
		}
		m.is(t, 2, 10, 2, 0.25)
		post(t, g, path, `{"model":"any"}`)
		m.is(t, 3, 10+5, 2+2, 0.25) // estimated: 15 bytes asked, 5 answered
		if r := post(t, g, "/v1/messages/count_tokens", `{"model":"any"}`); r.body != `{"input_tokens":5}` {
			t.Errorf("%s", r.body)
		}
	}
}

func TestReplayKeepsBudgets(t *testing.T) {
	c, err := cassette.Parse("c.jsonl", []byte(`{"role":"r","answer":{"text":"a","usage":{"in":90,"out":10}}}`+"\n"+`{"role":"r","answer":{"text":"b"}}`))
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, Options{Replay: c.NewPlayer(cassette.PlayerOptions{Step: 1, Role: "r"}), Budget: Budget{Tokens: 100}})
	if r := post(t, g, "/v1/chat/completions", chatRequest); r.status != 200 {
		t.Fatalf("%+v", r)
	}
	r := post(t, g, "/v1/chat/completions", chatRequest)
	var b *BudgetError
	if code, _ := openAIError(t, r); code != "budget_exceeded" || !errors.As(g.Err(), &b) {
		t.Errorf("%s, %v", code, g.Err())
	}
}

func TestAFailedRecordingIsNoSuccess(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	broken := errors.New("redactor broken")
	rec, err := cassette.NewRecorder(filepath.Join(t.TempDir(), "c.jsonl"), cassette.RecorderOptions{Step: 1, Role: "r",
		Redact: func(string) (string, error) { return "", broken }})
	if err != nil {
		t.Fatal(err)
	}
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Record: rec})
	for range 2 {
		r := post(t, g, "/v1/chat/completions", chatRequest)
		if code, _ := openAIError(t, r); r.status != 400 || code != "recording_failed" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if n := len(u.all()); n != 1 {
		t.Errorf("%d requests after the recording failed", n)
	}
	if err := g.Close(); !errors.Is(err, broken) || !errors.Is(g.Err(), broken) {
		t.Errorf("Close: %v, Err: %v", err, g.Err())
	}
}

func TestBrokenStreamsAreNotRecorded(t *testing.T) {
	u := newUpstream(t, cutOff(events(chunk(`{"content":"half"}`, "null"))), answer(200, chatBody))
	file := filepath.Join(t.TempDir(), "c.jsonl")
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Record: recorder(t, file, 1, "r")})
	post(t, g, "/v1/chat/completions", streamRequest)
	post(t, g, "/v1/chat/completions", chatRequest)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := cassette.Load(file)
	if err != nil || len(c.Entries) != 1 || c.Entries[0].Answer.Body != chatBody {
		t.Errorf("%+v, %v", c, err)
	}
}

// Clients hang up at the last event, without waiting for the connection's end.
func TestClientsThatHangUpHaveTheirAnswer(t *testing.T) {
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		events(chunk(`{"content":"all well"}`, "stop"), usageChunk, doneChunk)(w, r)
		select { // the provider keeps its connection open
		case <-hold:
		case <-r.Context().Done():
		}
	})
	file := filepath.Join(t.TempDir(), "c.jsonl")
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Meter: m, Record: recorder(t, file, 1, "r")})
	if r := post(t, g, "/v1/chat/completions", streamRequest); r.err != nil || !strings.HasSuffix(r.body, doneChunk) {
		t.Errorf("%+v", r)
	}
	if err := g.Close(); err != nil || g.Err() != nil {
		t.Errorf("%v, %v", err, g.Err())
	}
	m.is(t, 1, 100, 20, chatCost)
	if c, err := cassette.Load(file); err != nil || len(c.Entries) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

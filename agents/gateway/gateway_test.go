package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

func TestMain(m *testing.M) {
	// A server that refused a body leaves its connection half a second to be read.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// providerKey looks like nobody's key.
var providerKey = "test-" + strings.Repeat("9f3a", 8)

// meter counts what a gateway reports.
type meter struct {
	mu             sync.Mutex
	in, out, calls int64
	cost           float64
	unpriced       bool // some of it has no price
}

func (m *meter) Add(in, out int64, cost float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.in, m.out, m.cost, m.calls = m.in+in, m.out+out, m.cost+cost, m.calls+1
}

func (m *meter) AddUnpriced(in, out int64) {
	m.Add(in, out, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unpriced = true
}

func (m *meter) is(t *testing.T, calls, in, out int64, cost float64) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls != calls || m.in != in || m.out != out || m.cost < cost-1e-9 || m.cost > cost+1e-9 {
		t.Errorf("metered %d calls, %d in, %d out, $%v; not %d, %d, %d, $%v", m.calls, m.in, m.out, m.cost, calls, in, out, cost)
	}
}

// upstream is a provider. Each request goes to the next handler; the last one
// stays.
type upstream struct {
	*httptest.Server
	mu       sync.Mutex
	requests []seen
}

type seen struct {
	path   string
	header http.Header
	body   string
}

func newUpstream(t *testing.T, handlers ...http.HandlerFunc) *upstream {
	t.Helper()
	return upstreamOn(t, nil, handlers...)
}

// upstreamOn is a provider on another network than the machine's; nil: on that.
func upstreamOn(t *testing.T, l net.Listener, handlers ...http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		u.mu.Lock()
		n := len(u.requests)
		u.requests = append(u.requests, seen{r.URL.String(), r.Header.Clone(), string(b)})
		u.mu.Unlock()
		handlers[min(n, len(handlers)-1)](w, r)
	}))
	if l != nil {
		_ = u.Listener.Close()
		u.Listener = l
	}
	u.Start()
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) all() []seen {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.requests)
}

func (u *upstream) model(api API) Model {
	base := u.URL + "/v1"
	if api == Anthropic || api == Gemini {
		base = u.URL
	}
	return Model{Alias: "main", Name: "gpt-test", Price: &Price{Input: 1, CachedInput: 1, CacheWrite: 1.25, Output: 10},
		Provider: Provider{Name: "test", API: api, BaseURL: base, Key: providerKey}}
}

func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func events(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, p := range parts {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// cutOff ends the connection in the middle of an answer.
func cutOff(before http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(w, r)
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
}

const (
	chatRequest   = `{"model":"main","messages":[{"role":"user","content":"say hello, please"}]}`
	streamRequest = `{"model":"main","stream":true,"messages":[{"role":"user","content":"say hello, please"}]}`
	chatBody      = `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-test-2026","choices":[{"index":0,"message":{"role":"assistant","content":"hello","refusal":null},"finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`
	chatCost      = (100*1 + 20*10) / 1e6
	messageBody   = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-test","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":50,"cache_read_input_tokens":40,"cache_creation_input_tokens":10,"output_tokens":20}}`
)

func chunk(delta, finish string) string {
	if finish != "null" {
		finish = `"` + finish + `"`
	}
	return `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}],"usage":null}` + "\n\n"
}

const (
	usageChunk = `data: {"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20}}` + "\n\n"
	doneChunk  = "data: [DONE]\n\n"
)

func start(t *testing.T, o Options) *Gateway {
	t.Helper()
	if o.Outages.Now == nil {
		o.Outages = newSleeper().policy(o.Outages)
	}
	g, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

type result struct {
	status int
	header http.Header
	body   string
	err    error // while the body was read
}

func post(t *testing.T, g *Gateway, path, body string, headers ...string) result {
	t.Helper()
	return send(t, t.Context(), g, http.MethodPost, path, body, headers...)
}

func send(t *testing.T, ctx context.Context, g *Gateway, method, path, body string, headers ...string) result {
	t.Helper()
	return sendBy(t, ctx, &http.Transport{}, g, method, path, body, headers...)
}

func sendBy(t *testing.T, ctx context.Context, tr *http.Transport, g *Gateway, method, path, body string, headers ...string) result {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, g.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+g.key)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	defer tr.CloseIdleConnections()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return result{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return result{resp.StatusCode, resp.Header, string(b), err}
}

// openAIError and anthropicError read an error as the providers' clients do.
func openAIError(t *testing.T, r result) (code, message string) {
	t.Helper()
	var e struct {
		Error struct {
			Message, Type string
			Code          string
		}
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Error.Message == "" || e.Error.Type == "" {
		t.Fatalf("no error in OpenAI's form: %s", r.body)
	}
	return e.Error.Code, e.Error.Message
}

func anthropicError(t *testing.T, r result) (kind, message string) {
	t.Helper()
	var e struct {
		Type  string
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Type != "error" || e.Error.Message == "" {
		t.Fatalf("no error in Anthropic's form: %s", r.body)
	}
	return e.Error.Type, e.Error.Message
}

func TestPlainChat(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody, "Set-Cookie", "a=b", "X-Request-Id", "req_1", "Openai-Organization", "org-secret"))
	m := &meter{}
	var calls []Call
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Meter: m, OnCall: func(c Call) { calls = append(calls, c) }})
	r := post(t, g, "/v1/chat/completions?x=secret", chatRequest,
		"Cookie", "session=1", "X-Machine", "host", "User-Agent", "me", "X-Forwarded-For", "10.0.0.1", "Openai-Beta", "b1")
	if r.status != 200 || r.body != chatBody {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r.header.Get("Set-Cookie")+r.header.Get("Openai-Organization") != "" || r.header.Get("X-Request-Id") != "req_1" {
		t.Errorf("headers %v", r.header)
	}
	got := u.all()[0]
	if got.path != "/v1/chat/completions" || got.header.Get("Authorization") != "Bearer "+providerKey || got.header.Get("Openai-Beta") != "b1" {
		t.Errorf("asked %s with %v", got.path, got.header)
	}
	for _, name := range []string{"Cookie", "X-Machine", "X-Forwarded-For", "X-Api-Key"} {
		if got.header.Get(name) != "" {
			t.Errorf("%s is passed on", name)
		}
	}
	if got.header.Get("User-Agent") != "uwf" || strings.Contains(fmt.Sprint(got), g.key) {
		t.Errorf("passed on: %v", got)
	}
	if got.body != `{"model":"gpt-test","messages":[{"role":"user","content":"say hello, please"}]}` {
		t.Errorf("body %s", got.body)
	}
	m.is(t, 1, 100, 20, chatCost)
	if err := g.Close(); err != nil || g.Err() != nil {
		t.Error(err, g.Err())
	}
	if len(calls) != 1 || calls[0].Status != 200 || calls[0].Tries != 1 || calls[0].In != 100 || calls[0].Err != nil || calls[0].Model != "main" {
		t.Errorf("calls %+v", calls)
	}
}

func TestPlainAnthropic(t *testing.T) {
	u := newUpstream(t, answer(200, messageBody, "Anthropic-Ratelimit-Requests-Remaining", "9", "Anthropic-Organization-Id", "o"))
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(Anthropic)}, Meter: m})
	r := post(t, g, "/v1/messages?beta=true", chatRequest, "Authorization", "", "X-Api-Key", g.key, "Anthropic-Beta", "x-2026")
	if r.status != 200 || r.body != messageBody || r.header.Get("Anthropic-Ratelimit-Requests-Remaining") != "9" || r.header.Get("Anthropic-Organization-Id") != "" {
		t.Errorf("%d %s %v", r.status, r.body, r.header)
	}
	got := u.all()[0]
	if got.path != "/v1/messages" || got.header.Get("X-Api-Key") != providerKey || got.header.Get("Authorization") != "" ||
		got.header.Get("Anthropic-Version") == "" || got.header.Get("Anthropic-Beta") != "x-2026" {
		t.Errorf("asked %s with %v", got.path, got.header)
	}
	m.is(t, 1, 100, 20, (50*1+40*1+10*1.25+20*10)/1e6)
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct {
		p          Provider
		path, want string
	}{
		{Provider{BaseURL: "https://api.openai.com/v1"}, "/v1/responses", "https://api.openai.com/v1/responses"},
		{Provider{BaseURL: "https://models.github.ai/inference/"}, "/v1/chat/completions", "https://models.github.ai/inference/chat/completions"},
		{Provider{BaseURL: "https://openrouter.ai/api/v1"}, "/chat/completions", "https://openrouter.ai/api/v1/chat/completions"},
		{Provider{BaseURL: "http://localhost:11434/v1"}, "/v1/chat/completions", "http://localhost:11434/v1/chat/completions"},
		{Provider{API: Anthropic, BaseURL: "https://api.anthropic.com"}, "/v1/messages", "https://api.anthropic.com/v1/messages"},
		{Provider{API: Anthropic, BaseURL: "https://api.anthropic.com"}, "/v1/chat/completions", "https://api.anthropic.com/v1/chat/completions"},
		{Provider{API: Anthropic, BaseURL: "https://api.anthropic.com/v1/"}, "/v1/messages/count_tokens", "https://api.anthropic.com/v1/messages/count_tokens"},
		{Provider{API: Gemini, BaseURL: "https://g.example/"}, "/v1beta/models/m:generateContent", "https://g.example/v1beta/models/m:generateContent"},
		{Provider{API: Gemini, BaseURL: "https://g.example"}, "/v1/chat/completions", "https://g.example/v1beta/openai/chat/completions"},
	} {
		d, _ := dialect.ForPath(c.path)
		if got := c.p.endpointURL(d, c.path); got != c.want {
			t.Errorf("%s + %s = %s", c.p.BaseURL, c.path, got)
		}
	}
}

func TestStreamedChat(t *testing.T) {
	parts := []string{": OPENROUTER PROCESSING\n\n", chunk(`{"role":"assistant","content":"hel"}`, "null"), chunk(`{"content":"lo"}`, "null"), chunk(`{}`, "stop"), usageChunk, doneChunk}
	u := newUpstream(t, events(parts...))
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Meter: m})
	// A client that did not ask for usage does not get the event that has it.
	r := post(t, g, "/v1/chat/completions", streamRequest)
	if want := strings.Join(append(slices.Clone(parts[:4]), doneChunk), ""); r.err != nil || r.body != want {
		t.Errorf("%v\n%s\ninstead of\n%s", r.err, r.body, want)
	}
	if !strings.Contains(u.all()[0].body, `"stream_options":{"include_usage":true}`) {
		t.Errorf("usage is not asked for: %s", u.all()[0].body)
	}
	m.is(t, 1, 100, 20, chatCost)
	r = post(t, g, "/v1/chat/completions", strings.Replace(streamRequest, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1))
	if r.err != nil || r.body != strings.Join(parts, "") || !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") {
		t.Errorf("%v\n%s", r.err, r.body)
	}
	m.is(t, 2, 200, 40, 2*chatCost)
}

func TestStreamsPassEventByEvent(t *testing.T) {
	next := make(chan string)
	u := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for s := range next {
			_, _ = io.WriteString(w, s)
			_ = http.NewResponseController(w).Flush()
		}
	})
	g := start(t, Options{Models: []Model{u.model(OpenAI)}})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+"/v1/chat/completions", strings.NewReader(streamRequest))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+g.key)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	first := chunk(`{"content":"a"}`, "null")
	go func() { next <- first }()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// The first event is here before the second one is sent.
	got := make([]byte, len(first))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != first {
		t.Fatalf("%q, %v", got, err)
	}
	next <- chunk(`{}`, "stop") + doneChunk
	close(next)
	if rest, err := io.ReadAll(resp.Body); err != nil || !bytes.HasSuffix(rest, []byte(doneChunk)) {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestStreamedAnthropic(t *testing.T) {
	stream := dialect.Reply{ID: "1", Model: "claude", Answer: dialect.Answer{Text: "hello", Calls: []dialect.Call{{ID: "t", Name: "f", Args: `{"a":1}`}},
		Usage: dialect.Usage{In: 100, Out: 20}}}.Stream(dialect.Messages, false)
	u := newUpstream(t, events(string(stream)))
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(Anthropic)}, Meter: m})
	r := post(t, g, "/v1/messages", streamRequest)
	if r.err != nil || r.body != string(stream) {
		t.Errorf("%v %s", r.err, r.body)
	}
	if strings.Contains(u.all()[0].body, "stream_options") {
		t.Error("stream_options is no field of this API")
	}
	m.is(t, 1, 100, 20, chatCost)
}

func TestResponsesPassThrough(t *testing.T) {
	reply := dialect.Reply{ID: "1", Model: "m", Answer: dialect.Answer{Text: "hello", Usage: dialect.Usage{In: 100, Out: 20}}}
	u := newUpstream(t, answer(200, string(reply.Body(dialect.Responses))), events(string(reply.Stream(dialect.Responses, false))))
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Meter: m})
	if r := post(t, g, "/v1/responses", `{"model":"main","input":"hi"}`); r.status != 200 || r.body != string(reply.Body(dialect.Responses)) {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := post(t, g, "/responses", `{"model":"main","input":"hi","stream":true}`); r.err != nil || r.body != string(reply.Stream(dialect.Responses, false)) {
		t.Errorf("%v %s", r.err, r.body)
	}
	if got := u.all()[1]; got.path != "/v1/responses" || strings.Contains(got.body, "stream_options") {
		t.Errorf("asked %+v", got)
	}
	m.is(t, 2, 200, 40, 2*chatCost)
}

func TestUsageIsEstimatedWhereTheProviderIsSilent(t *testing.T) {
	u := newUpstream(t,
		answer(200, `{"choices":[{"message":{"role":"assistant","content":"`+strings.Repeat("x", 291)+`"},"finish_reason":"stop"}]}`),
		events(chunk(`{"content":"`+strings.Repeat("y", 300)+`"}`, "null"), chunk(`{}`, "stop")))
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(OpenAI)}, Meter: m})
	post(t, g, "/v1/chat/completions", chatRequest)
	in := dialect.Estimate(len(chatRequest))
	m.is(t, 1, in, 100, float64(in+1000)/1e6) // 291 letters and "assistant": 300 bytes
	post(t, g, "/v1/chat/completions", streamRequest)
	in += dialect.Estimate(len(streamRequest))
	m.is(t, 2, in, 200, float64(in+2000)/1e6)
}

func TestServersThatDoNotKnowStreamOptions(t *testing.T) {
	u := newUpstream(t,
		answer(422, `{"detail":[{"loc":["body","stream_options"],"msg":"extra fields not permitted"}]}`),
		events(chunk(`{"content":"hello"}`, "stop"), doneChunk))
	g := start(t, Options{Models: []Model{u.model(OpenAI)}})
	if r := post(t, g, "/v1/chat/completions", streamRequest); r.status != 200 || !strings.Contains(r.body, "hello") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if got := u.all(); len(got) != 2 || strings.Contains(got[1].body, "stream_options") {
		t.Errorf("asked %+v", got)
	}
}

func TestRefusals(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	claude := u.model(Anthropic)
	claude.Alias, claude.Name = "", "claude-test"
	claude.Provider.Wires = []dialect.Dialect{dialect.Messages}
	g := start(t, Options{Models: []Model{u.model(OpenAI), claude}, MaxRequest: 1000})
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code, says               string
	}{
		{"no key", "POST", "/v1/chat/completions", chatRequest, []string{"Authorization", ""}, 401, "invalid_api_key", "key"},
		{"wrong key", "POST", "/v1/chat/completions", chatRequest, []string{"Authorization", "Bearer " + providerKey}, 401, "invalid_api_key", "key"},
		{"key as basic auth", "POST", "/v1/chat/completions", chatRequest, []string{"Authorization", "Basic " + g.key}, 401, "invalid_api_key", "key"},
		{"another model", "POST", "/v1/chat/completions", `{"model":"gpt-dear"}`, nil, 404, "model_not_found", `"gpt-dear" is not configured; configured are: claude-test, gpt-test, main`},
		{"Anthropic model", "POST", "/v1/responses", `{"model":"claude-test"}`, nil, 400, "model_not_found", "reached by /v1/messages"},
		{"no JSON", "POST", "/v1/chat/completions", `hello`, nil, 400, "invalid_request", "no JSON object"},
		{"compressed", "POST", "/v1/chat/completions", chatRequest, []string{"Content-Encoding", "gzip"}, 415, "invalid_request", "compressed"},
		{"too large", "POST", "/v1/chat/completions", `{"model":"` + strings.Repeat("x", 2000), nil, 413, "request_too_large", "the request has 2010 bytes, more than the 1000 that are taken: shorten the conversation (what tools put out is the most of it), or raise the limit: uwf config set gateway.maxBody BYTES"},
		{"too deep", "POST", "/v1/chat/completions", `{"model":"main","messages":` + strings.Repeat("[", 200), nil, 413, "request_too_large", "nested more than 128 levels deep: shorten"},
		{"embeddings", "POST", "/v1/embeddings", "{}", nil, 404, "unknown_url", "/v1/embeddings is not served"},
		{"stored response", "GET", "/v1/responses/resp_1", "", nil, 404, "unknown_url", "not served"},
		{"GET", "GET", "/v1/chat/completions", "", nil, 405, "unknown_url", "POST"},
		{"unknown model's entry", "GET", "/v1/models/gpt-dear", "", nil, 404, "model_not_found", "gpt-dear"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := send(t, t.Context(), g, c.method, c.path, c.body, c.headers...)
			code, message := openAIError(t, r)
			if r.status != c.status || code != c.code || !strings.Contains(message, c.says) || r.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%d %s: %s", r.status, code, message)
			}
		})
	}
	for _, c := range []struct {
		path, body string
		status     int
		kind       string
	}{
		{"/v1/messages", `{"model":"main"}`, 400, "invalid_request_error"},
		{"/v1/messages", `{"model":"claude-dear"}`, 404, "not_found_error"},
		{"/v1/messages/count_tokens", `{"model":"claude-dear"}`, 404, "not_found_error"},
		{"/v1/messages/batches", `{}`, 404, "not_found_error"},
	} {
		r := post(t, g, c.path, c.body, "Anthropic-Version", "2023-06-01")
		if kind, _ := anthropicError(t, r); r.status != c.status || kind != c.kind {
			t.Errorf("%s: %d %s", c.path, r.status, r.body)
		}
	}
	if n := len(u.all()); n != 0 {
		t.Errorf("%d refused requests reached the provider", n)
	}
	if g.Err() != nil {
		t.Errorf("a client's mistake stays: %v", g.Err())
	}
}

func TestModelsAndTokenCounts(t *testing.T) {
	u := newUpstream(t, answer(200, `{"input_tokens":77}`))
	claude := u.model(Anthropic)
	m := &meter{}
	g := start(t, Options{Models: []Model{claude}, Meter: m})
	if r := send(t, t.Context(), g, "GET", "/v1/models", ""); r.body != `{"data":[{"created":0,"id":"gpt-test","object":"model","owned_by":"test"},{"created":0,"id":"main","object":"model","owned_by":"test"}],"object":"list"}` {
		t.Errorf("%s", r.body)
	}
	if r := send(t, t.Context(), g, "GET", "/v1/models", "", "Anthropic-Version", "2023-06-01"); !strings.Contains(r.body, `"first_id":"gpt-test"`) {
		t.Errorf("%s", r.body)
	}
	if r := send(t, t.Context(), g, "GET", "/v1/models/main", ""); r.status != 200 || !strings.Contains(r.body, `"id":"main"`) {
		t.Errorf("%s", r.body)
	}
	if r := post(t, g, "/v1/messages/count_tokens", chatRequest); r.body != `{"input_tokens":77}` || u.all()[0].path != "/v1/messages/count_tokens" {
		t.Errorf("%s", r.body)
	}
	m.is(t, 0, 0, 0, 0)
}

func TestEnv(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	g := start(t, Options{Models: []Model{u.model(OpenAI)}})
	env := g.Env("main")
	// What one program alone knows is set where that is started.
	want := []string{"UWF_GATEWAY_URL=" + g.url, "UWF_GATEWAY_KEY=" + g.key, "OPENAI_BASE_URL=" + g.url + "/v1", "OPENAI_API_BASE=" + g.url + "/v1", "OPENAI_API_KEY=" + g.key,
		"ANTHROPIC_BASE_URL=" + g.url, "ANTHROPIC_API_KEY=" + g.key, "OPENAI_MODEL=main", "ANTHROPIC_MODEL=main"}
	if !slices.Equal(env, want) {
		t.Errorf("%q is not %q", env, want)
	}
	if strings.Contains(strings.Join(env, "\n"), providerKey) {
		t.Error("the provider's key is in the environment")
	}
	other := start(t, Options{Models: []Model{u.model(OpenAI)}})
	if other.key == g.key || len(g.key) < 30 {
		t.Errorf("keys %q and %q", g.key, other.key)
	}
}

// A name leads to one model: an alias goes before a name, and of one name the first is meant.
func TestAliasesGoBeforeNames(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	model := func(alias, name string) Model {
		m := u.model(OpenAI)
		m.Alias, m.Name = alias, name
		return m
	}
	g := start(t, Options{Models: []Model{model("first", "big"), model("big", "small"), model("last", "twice"), model("", "twice")}})
	for asked, want := range map[string]string{"big": "small", "first": "big", "small": "small", "last": "twice", "twice": "twice"} {
		if r := post(t, g, "/v1/chat/completions", `{"model":"`+asked+`"}`); r.status != 200 {
			t.Fatalf("%s: %+v", asked, r)
		}
		all := u.all()
		if body := all[len(all)-1].body; !strings.Contains(body, `"model":"`+want+`"`) {
			t.Errorf("%s leads to %s, not to %s", asked, body, want)
		}
	}
	if r := post(t, g, "/v1/chat/completions", `{"model":"other"}`); r.status != 404 || !strings.Contains(r.body, "configured are: big, first, last, small, twice") {
		t.Errorf("%+v", r)
	}
}

func TestTheEnvironmentsProxyIsNotUsed(t *testing.T) {
	var asked atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Store(true) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	u := newUpstream(t, answer(200, chatBody))
	g := start(t, Options{Models: []Model{u.model(OpenAI)}})
	if r := post(t, g, "/v1/chat/completions", chatRequest); r.status != 200 || asked.Load() {
		t.Errorf("%d, proxy asked: %v", r.status, asked.Load())
	}
	if os.Getenv("HTTP_PROXY") == "" {
		t.Error("the test tests nothing")
	}
}

func TestNothingIsAnsweredAfterTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	u := newUpstream(t, answer(200, chatBody))
	g, err := Start(ctx, Options{Models: []Model{u.model(OpenAI)}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	cancel()
	if r := post(t, g, "/v1/chat/completions", chatRequest); r.status == 200 {
		t.Errorf("%+v", r)
	}
}

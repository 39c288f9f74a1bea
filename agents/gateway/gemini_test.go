package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/cassette"
)

const (
	googleRequest = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"googleSearch":{}}]}`
	googleBody    = `{"candidates":[{"content":{"role":"model","parts":[{"text":"hello"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":15,"thoughtsTokenCount":5,"totalTokenCount":120},"modelVersion":"x"}`
	googleStream  = "/v1beta/models/main:streamGenerateContent?alt=sse"
)

// Google's clients have the key in a header of their own, or in the query; it goes no further.
func TestGeminiPassesThrough(t *testing.T) {
	for _, c := range []struct{ path, body, asked string }{
		{"/v1beta/models/main:generateContent", googleBody, "/v1beta/models/gpt-test:generateContent"},
		{"/v1/models/gpt-test:generateContent", googleBody, "/v1beta/models/gpt-test:generateContent"},
		{googleStream, "data: " + googleBody + "\r\n\r\n", "/v1beta/models/gpt-test:streamGenerateContent?alt=sse"},
	} {
		for _, by := range []string{"header", "query", "bearer"} {
			handler := answer(200, c.body)
			if strings.HasPrefix(c.body, "data") {
				handler = events(c.body)
			}
			u, m := newUpstream(t, handler), &meter{}
			var call Call
			g := start(t, Options{Models: []Model{u.model(Gemini)}, Meter: m, OnCall: func(c Call) { call = c }})
			headers, path := []string{"Authorization", ""}, c.path
			switch by {
			case "header":
				headers = append(headers, "X-Goog-Api-Key", g.key)
			case "bearer":
				headers = nil
			default:
				path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "key=" + g.key
			}
			if r := post(t, g, path, googleRequest, headers...); r.status != 200 || r.body != c.body || r.err != nil {
				t.Fatalf("%s by %s: %d %s", c.path, by, r.status, r.body)
			}
			got := u.all()[0]
			if got.path != c.asked || got.header.Get("X-Goog-Api-Key") != providerKey || got.header.Get("Authorization") != "" || strings.Contains(got.body, "googleSearch") {
				t.Errorf("asked %s with %v: %s", got.path, got.header, got.body)
			}
			m.is(t, 1, 100, 20, (100*1+20*10)/1e6)
			if strings.Contains(call.Path, g.key) || call.Path != "/v1beta/models/{model}:generateContent" || len(call.Dropped) != 1 {
				t.Errorf("%+v", call)
			}
		}
	}
}

func TestGeminiRefusals(t *testing.T) {
	u := newUpstream(t, answer(429, `{"error":{"code":429,"message":"fake failure","status":"RESOURCE_EXHAUSTED"}}`, "X-Should-Retry", "false"))
	g := start(t, Options{Models: []Model{u.model(Gemini)}})
	for _, c := range []struct {
		method, path, body, key string
		status                  int
		word, says              string
	}{
		{"POST", googleStream, googleRequest, "wrong", 401, "UNAUTHENTICATED", "key is missing or wrong"},
		{"POST", "/v1beta/models/dear:generateContent", googleRequest, g.key, 404, "NOT_FOUND", `"dear" is not configured`},
		{"POST", "/v1beta/models/main:streamGenerateContent", googleRequest, g.key, 400, "INVALID_ARGUMENT", "?alt=sse"},
		{"POST", "/v1beta/models/main:embedContent", "{}", g.key, 404, "NOT_FOUND", "is not served here"},
		{"POST", "/v1beta/cachedContents", "{}", g.key, 404, "NOT_FOUND", "is not served here"},
		{"GET", "/v1beta/models/dear", "", g.key, 404, "NOT_FOUND", `"dear" is not configured`},
		{"GET", googleStream, "", g.key, 405, "INVALID_ARGUMENT", "POST only"},
		{"POST", googleStream, "[]", g.key, 400, "INVALID_ARGUMENT", "no JSON object"},
		{"POST", googleStream, googleRequest, g.key, 429, "RESOURCE_EXHAUSTED", "fake failure"},
	} {
		r := send(t, t.Context(), g, c.method, c.path, c.body, "Authorization", "", "X-Goog-Api-Key", c.key)
		var e struct {
			Error struct {
				Code            int
				Message, Status string
			}
		}
		if err := json.Unmarshal([]byte(r.body), &e); err != nil || r.status != c.status || e.Error.Code != c.status || e.Error.Status != c.word || !strings.Contains(e.Error.Message, c.says) {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.body)
		}
	}
}

func TestGeminiModelsAndTokenCounts(t *testing.T) {
	u := newUpstream(t, answer(200, `{"totalTokens":7}`))
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(Gemini)}, Meter: m})
	if r := send(t, t.Context(), g, "GET", "/v1beta/models", ""); !strings.HasPrefix(r.body, `{"models":[{"displayName":"gpt-test","name":"models/gpt-test"`) {
		t.Errorf("%s", r.body)
	}
	if r := send(t, t.Context(), g, "GET", "/v1beta/models/main", ""); r.status != 200 || !strings.Contains(r.body, `"name":"models/main"`) {
		t.Errorf("%s", r.body)
	}
	if r := post(t, g, "/v1beta/models/main:countTokens", googleRequest); r.body != `{"totalTokens":7}` || u.all()[0].path != "/v1beta/models/gpt-test:countTokens" {
		t.Errorf("%s, %s", r.body, u.all()[0].path)
	}
	m.is(t, 0, 0, 0, 0)
}

func TestGeminiIsRecordedAndReplayed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	stream := strings.Replace("data: "+googleBody+"\n\n", `"finishReason":"STOP",`, "", 1) + "data: " + googleBody + "\n\n"
	u := newUpstream(t, events(stream))
	g := start(t, Options{Models: []Model{u.model(Gemini)}, Record: recorder(t, file, 1, "r")})
	first := post(t, g, googleStream, googleRequest)
	if err := g.Close(); err != nil || first.body != stream {
		t.Fatalf("%v: %s", err, first.body)
	}
	u.Close()
	g = start(t, Options{Replay: player(t, file, 1, "r")})
	if r := post(t, g, googleStream, googleRequest); r.status != 200 || r.body != stream {
		t.Errorf("%d %s", r.status, r.body)
	}
	if c, err := cassette.Load(file); err != nil || c.Entries[0].Request.Model != "main" {
		t.Errorf("%v", err)
	}
}

// claude asks whether anybody is there, and codex for a WebSocket, before they begin: both
// are answered at once, without a key and whatever body there is.
func TestGreetings(t *testing.T) {
	g := start(t, Options{})
	none := []string{"Authorization", ""}
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
	}{
		{"HEAD", "/", none, 204}, {"HEAD", "/api/hello", none, 204}, {"GET", "/api/hello", none, 204},
		{"POST", "/api/hello", none, 401}, {"GET", "/", none, 401}, {"GET", "/api/hello/x", none, 401},
		{"GET", "/v1/responses", append(none, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Version", "13"), http.StatusUpgradeRequired},
		{"POST", "/v1/responses", append(none, "Connection", "Upgrade", "Upgrade", "websocket"), http.StatusUpgradeRequired},
	} {
		r := send(t, t.Context(), g, c.method, c.path, "", c.headers...)
		if r.status != c.status || c.status == http.StatusUpgradeRequired && r.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.body)
		}
	}
	conn := dial(t, g)
	if _, err := conn.Write([]byte(head(g, "/v1/responses", "Upgrade: websocket", "Connection: Upgrade", "Content-Length: 1000000"))); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 426 ") {
		t.Errorf("an upgrade with a body that never comes: %s, %v", said, err)
	}
}

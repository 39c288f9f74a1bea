package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/united-workforce/uwf/agents/gateway/mcp"
)

// realServer is the official SDK's server with one tool, which says its argument.
func realServer(o *sdk.ServerOptions, h *sdk.StreamableHTTPOptions) http.Handler {
	s := sdk.NewServer(&sdk.Implementation{Name: "real", Version: "1"}, o)
	s.AddTool(&sdk.Tool{Name: "search", Description: "Finds pages.", InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string","maxLength":1e2}}}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "found " + string(r.Params.Arguments)}}, Meta: sdk.Meta{"a": 1}}, nil
		})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, h)
}

// swapped is a server that another one can take the place of, and that counts what it is asked.
type swapped struct {
	mu    sync.Mutex
	now   http.Handler
	asked []string
}

func (s *swapped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var m struct{ Method string }
	_ = json.Unmarshal(b, &m)
	s.mu.Lock()
	now := s.now
	s.asked = append(s.asked, m.Method)
	s.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(b)))
	now.ServeHTTP(w, r)
}

func (s *swapped) swap(now http.Handler) (asked []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, s.now, s.asked = s.asked, now, nil
	return asked
}

// The gateway uses the official SDK's servers of both kinds, and goes on when a server is
// restarted or changes its kind between two calls: it opens a session again, once.
func TestServersOfSDK(t *testing.T) {
	sessions := func() http.Handler { return realServer(nil, nil) }
	newest := func(json bool) http.Handler {
		return refuseInitialize(realServer(&sdk.ServerOptions{SupportedProtocolVersions: []string{"2026-07-28"}}, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: json}))
	}
	strict := func() http.Handler { return newest(true) }
	tried := []string{"tools/call", "initialize", "notifications/initialized", "tools/call"}
	for name, c := range map[string]struct {
		first, then func() http.Handler
		again       []string // what is asked for the second call
	}{
		"sessions":            {sessions, sessions, tried},
		"sessions, JSON":      {func() http.Handler { return realServer(nil, &sdk.StreamableHTTPOptions{JSONResponse: true}) }, sessions, tried},
		"without sessions":    {func() http.Handler { return realServer(nil, &sdk.StreamableHTTPOptions{Stateless: true}) }, strict, []string{"tools/call", "initialize", "tools/call"}},
		"the newest alone":    {strict, strict, []string{"tools/call"}},
		"the newest, events":  {func() http.Handler { return newest(false) }, strict, []string{"tools/call"}},
		"then the newest":     {sessions, strict, []string{"tools/call", "initialize", "tools/call"}},
		"from newest to old":  {strict, sessions, tried},
		"a 400 for a session": {forgetful, forgetful, tried},
	} {
		t.Run(name, func(t *testing.T) {
			s := &swapped{now: c.first()}
			h := httptest.NewServer(s)
			defer h.Close()
			p := newProxy(t, mcp.Options{Name: "docs", URL: h.URL, Tools: []string{"search"}, Pins: map[string]string{"search": searchPin}})
			if got := ask(t, p, call); !strings.Contains(got, `"text":"found {\"q\":\"x\"}"`) || strings.Contains(got, "resultType") || strings.Contains(got, "_meta") {
				t.Errorf("%s", got)
			}
			first := s.swap(c.then()) // with what opens the session
			if got := ask(t, p, call); !strings.Contains(got, "found") {
				t.Errorf("again: %s", got)
			}
			if asked := s.swap(nil); !slices.Equal(asked, c.again) {
				t.Errorf("asked %q, then %q instead of %q", first, asked, c.again)
			}
		})
	}
}

// A tool that takes arguments by headers is left out: agents write no headers.
func TestArgumentsInHeaders(t *testing.T) {
	const pin = `{"description":"Asks.","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}},"type":"object"}}`
	s := sdk.NewServer(&sdk.Implementation{Name: "real", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "search", Description: "Asks.", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
	for sessions, want := range map[bool]string{true: "", false: "the tool search wants arguments in headers (x-mcp-header)"} {
		real := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: !sessions}))
		if !sessions {
			real = refuseInitialize(real)
		}
		h := httptest.NewServer(real)
		told := ""
		p := newProxy(t, mcp.Options{Name: "docs", URL: h.URL, Tools: []string{"search"}, Pins: map[string]string{"search": pin}, Tell: func(s string) { told += s }})
		if got := ask(t, p, list); strings.Contains(got, "search") != sessions || !strings.Contains(told, want) || sessions && told != "" {
			t.Errorf("%t: %s, told %q", sessions, got, told)
		}
		p.Close()
		h.Close()
	}
}

// refuseInitialize refuses initialize as @modelcontextprotocol/server 2.4.0 does with
// legacy: 'reject'.
func refuseInitialize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") == "2026-07-28" {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32022,"message":"Unsupported protocol version: 2025-06-18","data":{"supported":["2026-07-28"],"requested":"2025-06-18"}},"id":1}`)
	})
}

// forgetful refuses a session that it does not know as @modelcontextprotocol/server-everything
// 2026.8.31 does: with 400, where the protocol has 404.
func forgetful() http.Handler {
	real := realServer(nil, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		real.ServeHTTP(answer, r)
		if answer.Code == http.StatusNotFound {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
			return
		}
		for name := range answer.Header() {
			w.Header().Set(name, answer.Header().Get(name))
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// The official SDK's client gets the tools from the gateway, whatever version it asks for.
func TestClientsOfSDK(t *testing.T) {
	s := &server{}
	p, _ := start(t, s, mcp.Options{})
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		reply := p.AnswerSide(r.Context(), body, keepNothing)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(reply.Status)
		_, _ = w.Write(reply.Body)
	}))
	defer gateway.Close()

	for asks, gets := range map[string]string{"": "2026-07-28", "2025-11-25": "2025-11-25", "2025-06-18": "2025-06-18", "2024-11-05": "2025-06-18"} {
		client := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: gateway.URL}, &sdk.ClientSessionOptions{ProtocolVersion: asks})
		if err != nil {
			t.Errorf("%s: %v", asks, err)
			continue
		}
		if got := session.InitializeResult(); got.ProtocolVersion != gets || got.ServerInfo.Name != "docs" || got.Capabilities.Tools == nil {
			t.Errorf("%s: %+v", asks, got)
		}
		tools, err := session.ListTools(t.Context(), nil)
		if err != nil || len(tools.Tools) != 1 || tools.Tools[0].Name != "search" {
			t.Errorf("%s: %+v, %v", asks, tools, err)
		}
		result, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "search", Arguments: map[string]any{"q": "x"}})
		if err != nil || result.Content[0].(*sdk.TextContent).Text != "found" {
			t.Errorf("%s: %+v, %v", asks, result, err)
		}
		if _, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "drop"}); err == nil || !strings.Contains(err.Error(), `the tool "drop" is not there`) {
			t.Errorf("%s: %v", asks, err)
		}
		if err := session.Close(); err != nil {
			t.Errorf("%s: %v", asks, err)
		}
	}

	const far = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01"}}}`
	var answer struct{ Error *jsonrpc.Error }
	if err := json.Unmarshal([]byte(ask(t, p, far)), &answer); err != nil || answer.Error.Code != sdk.CodeUnsupportedProtocolVersion || !strings.Contains(string(answer.Error.Data), `"supported":["2026-07-28","2025-06-18"`) {
		t.Errorf("%+v, %v", answer.Error, err)
	}
}

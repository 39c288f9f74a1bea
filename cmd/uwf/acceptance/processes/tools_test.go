package processes

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// mcpServer is a server of MCP with one tool, which says what it was given.
type mcpServer struct {
	*testing.T
	token string

	mu    sync.Mutex
	asked []string
}

func (s *mcpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments map[string]any }
	}
	b, err := io.ReadAll(r.Body)
	if err == nil && r.Method == http.MethodPost {
		err = json.Unmarshal(b, &m)
	}
	if err != nil || r.Header.Get("X-Docs-Key") != s.token {
		s.Errorf("the MCP server got %q, %v: %v", b, r.Header, err)
	}
	s.asked = append(s.asked, m.Method)
	results := map[string]string{
		"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"d","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"search","description":"Finds pages.","inputSchema":{"type":"object"}}]}`,
		"tools/call": `{"content":[{"type":"text","text":` + quoted(fmt.Sprintf("gap %v found with %s", m.Params.Arguments["q"], s.token)) + `}]}`,
	}
	if results[m.Method] == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, results[m.Method])
}

// TestToolsBesideTheModel: confined to the gateway, the builtin agent gets the tool of an MCP
// server once a person has pinned it by the command that a run names, and fetch_url for listed
// hosts; what they said is in the recording, by which the same run needs no server, and the
// server's key is nowhere.
func TestToolsBesideTheModel(t *testing.T) {
	docs := &mcpServer{T: t, token: "to" + "ken-of-the-docs-1"}
	server := httptest.NewServer(docs)
	t.Cleanup(server.Close)
	const answer = "---\n$status: more\nnote: mind the gap\n---\nDone."
	var offered []string
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		offered = append(offered, string(b))
		w.Header().Set("Content-Type", "application/json")
		if !strings.Contains(string(b), `"role":"tool"`) && strings.Contains(string(b), "mcp__docs__search") {
			_, _ = io.WriteString(w, completion(`"content":null,"tool_calls":[`+
				`{"id":"c1","type":"function","function":{"name":"mcp__docs__search","arguments":"{\"q\":7}"}},`+
				`{"id":"c2","type":"function","function":{"name":"fetch_url","arguments":"{\"url\":\"https://evil.example.org/\"}"}}]`, "tool_calls"))
			return
		}
		_, _ = io.WriteString(w, completion(`"content":`+quoted(answer), "stop"))
	}))
	t.Cleanup(model.Close)
	m := newLab(t, leak, "steps: []", nil).machine("a")
	m.inside = true
	m.write(filepath.Join(m.home, "config.yaml"), `providers:
  fake: {baseUrl: `+model.URL+`/v1, kind: openai, apiKey: key-of-the-test}
models:
  big: {provider: fake, name: big-1, price: {input: 1, output: 2}}
defaultModel: big
confine: {network: gateway}
fetch: {hosts: [docs.example.com]}
mcp:
  docs: {url: `+server.URL+`/mcp, headers: {X-Docs-Key: "${DOCS_KEY}"}, tools: [search]}
`)
	env := []string{"DOCS_KEY=" + docs.token}
	step := func(env []string, id string, more ...string) *job {
		t.Helper()
		return m.start(env, append([]string{"thread", "step", id, "--agent", "builtin"}, more...)...).ends(0)
	}

	id := m.startThread()
	if j := step(nil, id); !strings.Contains(j.errs.String(), "the variable DOCS_KEY is not set") || strings.Contains(offered[0], "mcp__") || len(docs.asked) > 0 {
		t.Errorf("without the variable: %s", j)
	}
	j := step(env, id)
	command := regexp.MustCompile(`uwf config set (mcp\.docs\.pins\.search) '(\{.*\})'`).FindStringSubmatch(j.errs.String())
	if command == nil || strings.Contains(offered[1], "mcp__") || !strings.Contains(offered[1], "Allowed hosts: docs.example.com.") {
		t.Fatalf("not pinned: %s", j)
	}
	m.start(nil, "config", "set", command[1], command[2]).ends(0)

	cassette := m.path("cassette.jsonl")
	again := m.startThread()
	j = step(env, again, "--record", cassette)
	said := offered[len(offered)-1]
	if !strings.Contains(said, "gap 7 found with [redacted:X-Docs-Key]") || !strings.Contains(said, "evil.example.org is not listed; allowed are: docs.example.com") {
		t.Errorf("the model got %s\n%s", said, j)
	}
	server.Close()
	model.Close()
	played := m.startThread()
	m.write(filepath.Join(m.home, "config.yaml"), "confine: {network: gateway}\n")
	j2 := step(nil, played, "--replay", cassette)
	if steps := m.steps(played); len(steps) != 1 || steps[0].Output["note"] != "mind the gap" {
		t.Errorf("replayed %+v: %s", steps, j2)
	}
	b, err := os.ReadFile(cassette)
	m.check(err)
	for what, text := range map[string]string{"the cassette": string(b), "what it printed": j.String(), "what the model got": strings.Join(offered, "")} {
		if strings.Contains(text, docs.token) {
			t.Errorf("the key is in %s", what)
		}
	}
}

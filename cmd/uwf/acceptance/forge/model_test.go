package forge

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"
)

// chatModel is a provider of models on loopback whose one model does what a definition's
// roles ask for: each puts out a status that leads to the end by the shortest way, and
// one of them changes files and runs a command first, by the agent's real tools.
type chatModel struct {
	*testing.T
	url    string
	roles  map[string]flowRole
	ways   map[string]string // of each role the status to put out
	worker string            // who changes files
	edits  map[string]string // the files

	mu    sync.Mutex
	calls map[string]int // by role
}

type flowRole struct{ Frontmatter map[string]any }

// newChatModel makes the model of a definition, in the newest dialect.
func newChatModel(t *testing.T, definition, worker string, edits map[string]string) *chatModel {
	t.Helper()
	var flow struct {
		Roles map[string]flowRole
		Graph map[string]map[string]struct{ Role string }
	}
	if err := yaml.Unmarshal([]byte(definition), &flow); err != nil {
		t.Fatal(err)
	}
	m := &chatModel{T: t, roles: flow.Roles, ways: map[string]string{}, worker: worker, edits: edits, calls: map[string]int{}}
	if _, ok := flow.Roles[worker]; !ok {
		t.Fatalf("the definition has no role %s", worker)
	}
	// Backwards from the end: who leads to somebody whose way is known.
	for near := map[string]bool{"$END": true}; ; {
		found := len(near)
		for _, role := range slices.Sorted(maps.Keys(flow.Roles)) {
			for _, status := range slices.Sorted(maps.Keys(flow.Graph[role])) {
				if !near[role] && near[flow.Graph[role][status].Role] {
					near[role], m.ways[role] = true, status
				}
			}
		}
		if len(near) == found {
			break
		}
	}
	s := httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(s.Close)
	m.url = s.URL + "/v1"
	return m
}

var yourRole = regexp.MustCompile(`(?m)^# Your role: (\S+)$`)

func (m *chatModel) serve(w http.ResponseWriter, r *http.Request) {
	var req struct {
		Model    string
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	err := json.NewDecoder(r.Body).Decode(&req)
	if err != nil || r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.Error(w, `{"error":{"message":"not a chat"}}`, http.StatusNotFound)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+aSecret {
		http.Error(w, `{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}`, http.StatusUnauthorized)
		return
	}
	role, turn := "", 1
	for _, msg := range req.Messages {
		var text string
		_ = json.Unmarshal(msg.Content, &text) // a list of parts has no role in it
		if found := yourRole.FindStringSubmatch(text); found != nil && role == "" {
			role = found[1]
		}
		if msg.Role == "assistant" {
			turn++
		}
	}
	m.mu.Lock()
	m.calls[role]++
	m.mu.Unlock()
	message, reason := m.answer(role, turn)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{ // who doesn't listen any more has what he wanted
		"id": "chatcmpl-1", "object": "chat.completion", "model": req.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}},
		"usage":   map[string]any{"prompt_tokens": 1200, "completion_tokens": 90, "total_tokens": 1290},
	})
}

func (m *chatModel) answer(role string, turn int) (message map[string]any, reason string) {
	if role != m.worker || turn > 2 {
		return map[string]any{"role": "assistant", "content": m.output(role)}, "stop"
	}
	var calls []any
	call := func(name string, args map[string]string) {
		raw, err := json.Marshal(args)
		if err != nil {
			m.Error(err)
		}
		calls = append(calls, map[string]any{
			"id": fmt.Sprintf("call_%d_%d", turn, len(calls)), "type": "function",
			"function": map[string]any{"name": name, "arguments": string(raw)},
		})
	}
	if turn == 1 {
		for _, name := range slices.Sorted(maps.Keys(m.edits)) {
			call("write_file", map[string]string{"path": name, "content": m.edits[name]})
		}
	} else {
		// The tests themselves would compile the standard library: the agent has no cache.
		call("run_command", map[string]string{"command": "go version && cat " + strings.Join(slices.Sorted(maps.Keys(m.edits)), " ")})
	}
	return map[string]any{"role": "assistant", "content": nil, "tool_calls": calls}, "tool_calls"
}

// output is what the role's schema asks for, with the status that leads on.
func (m *chatModel) output(role string) string {
	schema := m.roles[role].Frontmatter
	fields := map[string]any{}
	m.fill(fields, schema, m.ways[role])
	raw, err := yaml.Marshal(fields)
	if err != nil {
		m.Error(err)
	}
	return "---\n" + string(raw) + "---\nThis is what the " + role + " says.\n"
}

// fill gives each property of an object's schema a value that fits.
func (m *chatModel) fill(into, schema map[string]any, status string) {
	for _, key := range []string{"oneOf", "anyOf"} {
		list, _ := schema[key].([]any)
		for _, v := range list {
			if variant, _ := v.(map[string]any); allows(variant, status) {
				m.fill(into, variant, status)
				break
			}
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		property, _ := p.(map[string]any)
		if name == "$status" {
			into[name] = status
		} else {
			into[name] = example(property)
		}
	}
}

// allows reports whether a variant is that of a status.
func allows(variant map[string]any, status string) bool {
	properties, _ := variant["properties"].(map[string]any)
	s, _ := properties["$status"].(map[string]any)
	list, _ := s["enum"].([]any)
	return s["const"] == status || slices.Contains(list, any(status))
}

// example is a value of a schema.
func example(schema map[string]any) any {
	if list, ok := schema["enum"].([]any); ok {
		return list[0]
	}
	switch schema["type"] {
	case "array":
		items, _ := schema["items"].(map[string]any)
		return []any{example(items)}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	}
	return "Words are joined by single dashes."
}

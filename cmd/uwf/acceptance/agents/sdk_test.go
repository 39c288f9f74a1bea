package agents

import (
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

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// testSDKs lets the model SDKs ask a provider that speaks chat completions alone, by the gateway.
func testSDKs(t *testing.T, bin string) {
	const shown = `{"uwf_arguments_are_no_json_object":"{\"a\": 1, \"b"}`
	text := fmt.Sprintf("%q", `{"a": 1, "b`)
	for sdk, want := range map[string][]string{
		"openai":       {`"usage":[100,20,7]`, `"broken":` + text},
		"responses":    {`"usage":[100,20,7]`, `"broken":` + text, `"references":"it is sum 42"`, `\"resp_unknown\" names nothing that is kept`},
		"anthropic":    {`"usage":[100,20,7]`, `"broken":` + shown, `"brokenStream":` + shown},
		"google":       {`"usage":[100,20,7]`, `"broken":` + shown, `"brokenStream":` + shown},
		"ai-openai":    {`"usage":[100,20,7]`, `"roundStream":"it is sum 42"`, `"broken":` + text, `"ran":[]`},
		"ai-anthropic": {`"usage":[100,20`, `"roundStream":"it is sum 42"`, `"broken":` + shown},
		"ai-google":    {`"usage":[100,20,7]`, `"roundStream":"it is {\"content\":\"sum 42\"`, `"broken":` + shown},
	} {
		t.Run(sdk, func(t *testing.T) {
			provider := httptest.NewServer(http.HandlerFunc(answerChat))
			defer provider.Close()
			g, err := gateway.Start(t.Context(), gateway.Options{Models: []gateway.Model{{
				Alias: "main", Name: "fake", Provider: gateway.Provider{Name: "fake", BaseURL: provider.URL, Key: providerKey, Wires: []dialect.Dialect{dialect.Chat}},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			}()

			key := strings.TrimPrefix(g.AccessEnv()[1], gateway.EnvKey+"=")
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "node"), "testdata/sdk.mjs", sdk, g.URL(), key)
			cmd.Env = append(os.Environ(), "UWF_AGENTS_BIN="+bin)
			said, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			for _, one := range append([]string{`"chat":"hello"`, `"stream":"hello"`, `"round":"it is `, `sum 42`}, want...) {
				if !strings.Contains(string(said), one) {
					t.Errorf("%s lacks %s", said, one)
				}
			}
		})
	}
}

// answerChat is a provider: it says what a tool said, calls add beside some text if the question is
// [[call]], calls it with broken arguments if that is [[broken]], and says hello otherwise.
func answerChat(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Stream   bool
		Messages []struct{ Role, Content string }
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &asked) != nil || len(asked.Messages) == 0 {
		http.Error(w, string(body), http.StatusBadRequest)
		return
	}
	last := asked.Messages[len(asked.Messages)-1]
	call := func(args string) map[string]any {
		function := map[string]any{"name": "add", "arguments": args}
		return map[string]any{"content": "I add.", "tool_calls": []any{map[string]any{"index": 0, "id": "call_1", "type": "function", "function": function}}}
	}
	said, finish := map[string]any{"content": "hello"}, "stop"
	switch {
	case last.Role == "tool":
		said["content"] = "it is " + last.Content
	case last.Content == "[[call]]":
		said, finish = call(`{"a": 40, "b": 2}`), "tool_calls"
	case last.Content == "[[broken]]":
		said, finish = call(`{"a": 1, "b`), "tool_calls"
	}

	usage := map[string]any{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
		"prompt_tokens_details": map[string]any{"cached_tokens": 40}, "completion_tokens_details": map[string]any{"reasoning_tokens": 7}}
	said["role"] = "assistant"
	if !asked.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "c", "object": "chat.completion", "model": "fake", "usage": usage,
			"choices": []any{map[string]any{"index": 0, "message": said, "finish_reason": finish}}})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []map[string]any{{"index": 0, "delta": said, "finish_reason": nil}, {"index": 0, "delta": map[string]any{}, "finish_reason": finish}} {
		chunk, _ := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "fake", "choices": []any{choice}, "usage": usage}) //nolint:errchkjson // texts and numbers
		fmt.Fprintf(w, "data: %s\n\n", chunk)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

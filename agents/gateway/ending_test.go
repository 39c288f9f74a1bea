package gateway

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
	"github.com/united-workforce/uwf/internal/modeltest"
)

// TestEndings: whatever wire a client and its provider speak, the gateway knows how an answer ended
// that somebody hands out as a whole one.
func TestEndings(t *testing.T) {
	provider := httptest.NewServer(&modeltest.Server{})
	t.Cleanup(provider.Close)
	clients := append(foreigners(), foreigner{d: dialect.Chat, path: "/v1/chat/completions", streams: "/v1/chat/completions",
		plain: `{"model":"main","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`, stream: `{"model":"main","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"hi"}]}`})
	for _, c := range clients {
		for _, wire := range []dialect.Dialect{c.d, dialect.Chat} {
			api, base := OpenAI, provider.URL+"/v1"
			if wire == dialect.Messages || wire == dialect.Gemini {
				api, base = map[dialect.Dialect]API{dialect.Messages: Anthropic, dialect.Gemini: Gemini}[wire], provider.URL
			}
			g := start(t, Options{Models: []Model{{Alias: "main", Name: "real", Provider: Provider{Name: "test", API: api, BaseURL: base, Wires: []dialect.Dialect{wire}}}}})
			for mark, want := range map[string]string{"length": dialect.FinishLength, "filter": dialect.FinishFilter, "plain": dialect.FinishStop} {
				ask := func(path, body, mark string) {
					body = strings.Replace(body, `[{"parts"`, `[{"role":"user","parts"`, 1)
					post(t, g, path, strings.Replace(body, `"hi"`, fmt.Sprintf(`"status [[%s]]"`, mark), 1))
				}
				ask(c.path, c.plain, mark)
				check := func(how, text string, known bool) {
					t.Helper()
					var e Ending
					r := post(t, g, EndingPath, text)
					if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Finish != want || e.Limit != 100 || e.Known != known {
						t.Errorf("%s by %s, %s, %s: %s", c.d.Name(), wire.Name(), mark, how, r.body)
					}
				}
				const said = "Before it.\n---\n$status: done\nsummary: Wrote hello.txt (answer 1)\n---\nI wrote hello.txt."
				check("plain", said, true)
				ask(c.streams, c.stream, mark)
				check("streamed", said, true)
				check("other words", "Nobody said that.", false)
			}
		}
	}
}

// TestEndingsOfOtherAnswers: what a client asks for besides, and a call of a tool, hide no answer's
// end, and give none to another one.
func TestEndingsOfOtherAnswers(t *testing.T) {
	u := newUpstream(t, answer(200, `{"choices":[{"message":{"content":"The whole report"},"finish_reason":"length"}]}`),
		answer(200, `{"choices":[{"message":{"content":"A title"},"finish_reason":"stop"}]}`),
		answer(200, `{"choices":[{"message":{"content":"report","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"length"}]}`))
	g := start(t, Options{Models: []Model{u.model(OpenAI)}})
	ask := func() { post(t, g, "/v1/chat/completions", `{"model":"main","messages":[]}`) }
	check := func(text, want string) {
		t.Helper()
		if e := g.findEnding(text); e.Incomplete() != want {
			t.Errorf("%q: %+v", text, e)
		}
	}
	check("anything", "")
	ask()
	check("The whole report\n", "cut off at the output limit")
	ask()
	check("\nThe whole report", "cut off at the output limit")
	check("anything", "")
	ask()
	check("another report", "")
	if r := send(t, t.Context(), g, "POST", EndingPath, "x", "Authorization", "Bearer wrong"); r.status != 401 {
		t.Errorf("without the key: %d", r.status)
	}
}

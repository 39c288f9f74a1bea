package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// Anthropic's models are reached by chat completions too, for clients that know
// nothing else. The key is given there as OpenAI's clients do.
func TestChatAtAnthropic(t *testing.T) {
	u := newUpstream(t, answer(200, chatBody))
	m := &meter{}
	g := start(t, Options{Models: []Model{u.model(Anthropic)}, Meter: m})
	if r := post(t, g, "/v1/chat/completions", chatRequest); r.status != 200 || r.body != chatBody {
		t.Errorf("%d %s", r.status, r.body)
	}
	got := u.all()[0]
	if got.path != "/v1/chat/completions" || got.header.Get("Authorization") != "Bearer "+providerKey || got.header.Get("X-Api-Key") != "" {
		t.Errorf("asked %s with %v", got.path, got.header)
	}
	if m.calls != 1 {
		t.Errorf("counted %d calls", m.calls)
	}
}

func TestWrongBaseURL(t *testing.T) {
	u := newUpstream(t, answer(404, "404 page not found"))
	g := start(t, Options{Models: []Model{u.model(OpenAI)}})
	if r := post(t, g, "/v1/chat/completions", chatRequest); r.status != 404 || !strings.Contains(r.body, "check baseUrl") {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// A window beyond the usual costs more: it is asked for only where it is configured.
func TestLongContextIsForModelsThatHaveIt(t *testing.T) {
	for _, c := range []struct {
		window   int
		beta     []string
		provider string
	}{
		{0, []string{"context-1m-2025-08-07"}, ""},
		{200_000, []string{"a-1, Context-1M-2027-01-01 ,b-2", "c-3,context-1m"}, "a-1,b-2,c-3"},
		{1_000_000, []string{"a-1,context-1m-2025-08-07"}, "a-1,context-1m-2025-08-07"},
		{0, nil, ""},
	} {
		m := &Model{Window: c.window}
		client := http.Header{"Anthropic-Beta": c.beta}
		if got := strings.Join(m.outgoingHeader(client, dialect.Messages)["Anthropic-Beta"], "|"); got != c.provider {
			t.Errorf("%d, %q: %q", c.window, c.beta, got)
		}
	}
}

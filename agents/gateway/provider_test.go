package gateway

import (
	"strings"
	"testing"
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

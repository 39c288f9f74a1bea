package worker

import (
	"reflect"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/cassette"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/task"
)

// A replay hands out the name that was recorded: claude writes it into what it asks, so that
// another would be another request. What is configured for it is kept, its key is not needed.
func TestAReplayHandsOutTheRecordedModel(t *testing.T) {
	const recorded = `{"step":1,"role":"a","request":{"post":"/v1/messages","model":"big"},"answer":{"text":"x"}}
{"step":2,"role":"b","request":{"post":"/v1beta/models/{model}:generateContent","model":"unknown"},"answer":{"text":"x"}}
{"step":4,"role":"d","request":{"post":"/v1/responses","model":"o"},"answer":{"text":"x"}}
{"step":3,"role":"c","match":{},"answer":{"text":"x"}}
`
	c, err := cassette.Parse("c.jsonl", []byte(recorded))
	if err != nil {
		t.Fatal(err)
	}
	s := settings{w: &Worker{player: c, config: &config.Config{Models: map[string]config.Model{"big": {Provider: "p", Name: "claude-big", Window: 9, MaxOutput: 5}}}}}
	for role, want := range map[string]task.Model{
		"a": {Alias: "big", Name: "claude-big", Provider: "cassette", API: "anthropic", Window: 9, MaxOutput: 5},
		"b": {Alias: "unknown", Name: "unknown", Provider: "cassette", API: "gemini"},
		"d": {Alias: "o", Name: "o", Provider: "cassette", API: "openai", Reasoning: true, Wires: []string{"responses"}},
		"c": {Alias: "replayed", Name: "replayed", Provider: "cassette"},
	} {
		if got := s.Model("", role); got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v instead of %+v", role, got, want)
		}
	}
}

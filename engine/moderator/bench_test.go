package moderator_test

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/moderator"
)

// BenchmarkConditions decides after 1,000 steps of 2 KB.
func BenchmarkConditions(b *testing.B) {
	d := good(b, "conditions")
	text := strings.Repeat("wörd ", 350)
	var t moderator.Thread
	for range 500 {
		t.Steps = append(t.Steps,
			moderator.Output{Role: "planner", Output: map[string]any{"plan": text}, Body: text},
			moderator.Output{Role: "reviewer", Output: map[string]any{"approved": true, "comments": text}})
	}
	for b.Loop() {
		if _, err := moderator.Next(d, t); err != nil {
			b.Fatal(err)
		}
	}
}

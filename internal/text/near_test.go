package text

import (
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"same", "same", 0},
		{"planer", "planner", 1},
		{"developre", "developer", 1}, // swapped
		{"role", "rule", 1},
		{"größe", "grosse", 3}, // by letters, not by bytes
		{"kitten", "sitting", 3},
		{strings.Repeat("x", 65), "x", 64},
	} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a); got != c.want {
			t.Errorf("%q and %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

// What is meant is said once, with what is known where nothing is near.
func TestDidYouMean(t *testing.T) {
	known := []string{"max_steps", "wall"}
	for name, want := range map[string]string{
		"maxSteps": `did you mean "max_steps"?`, "MAX-STPES": `did you mean "max_steps"?`, "wal": `did you mean "wall"?`,
		"tokens": "known are: max_steps, wall", "": "known are: max_steps, wall",
	} {
		if got := DidYouMean(name, known, KnownAre(known)); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if got := DidYouMean("x", nil, KnownAre(nil)); got != "there are none; add it" {
		t.Error(got)
	}
}

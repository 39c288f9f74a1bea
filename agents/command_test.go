package agents_test

import (
	"slices"
	"testing"

	"github.com/google/shlex"

	"github.com/united-workforce/uwf/agents"
)

func TestCommandLine(t *testing.T) {
	for _, words := range [][]string{{"a"}, {"a b", "c"}, {"it's", `"x"`, `\`}, {"", "#x", "a#b"}, {"tab\t", "new\nline"}} {
		line := agents.CommandLine(words...)
		got, err := shlex.Split(line)
		if err != nil || !slices.Equal(got, words) {
			t.Errorf("%q became %q and then %q, %v", words, line, got, err)
		}
	}
}

func FuzzCommandLine(f *testing.F) {
	f.Add("a b", "it's")
	f.Fuzz(func(t *testing.T, a, b string) {
		got, err := shlex.Split(agents.CommandLine(a, b))
		if err != nil || len(got) != 2 {
			t.Errorf("%q, %q: %q, %v", a, b, got, err)
		}
	})
}

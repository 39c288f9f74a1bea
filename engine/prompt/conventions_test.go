package prompt_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/united-workforce/uwf/engine/prompt"
)

func TestPickConventions(t *testing.T) {
	for _, tt := range []struct {
		name string
		has  map[string]string
		want []prompt.Convention
	}{
		{"none", nil, nil},
		{"all, in their order", map[string]string{"CONTRIBUTING.md": "c", "CLAUDE.md": "b", "AGENTS.md": "a\n", "README.md": "r"},
			[]prompt.Convention{{Name: "AGENTS.md", Text: "a"}, {Name: "CLAUDE.md", Text: "b"}, {Name: "CONTRIBUTING.md", Text: "c"}}},
		{"an import", map[string]string{"AGENTS.md": "a", "CLAUDE.md": "@AGENTS.md\n"}, []prompt.Convention{{Name: "AGENTS.md", Text: "a"}}},
		{"an import by a path", map[string]string{"AGENTS.md": "a", "CLAUDE.md": "\ufeff@./AGENTS.md\r\n"}, []prompt.Convention{{Name: "AGENTS.md", Text: "a"}}},
		{"an import with more", map[string]string{"AGENTS.md": "a", "CLAUDE.md": "@AGENTS.md\nAnd be brief."},
			[]prompt.Convention{{Name: "AGENTS.md", Text: "a"}, {Name: "CLAUDE.md", Text: "@AGENTS.md\nAnd be brief."}}},
		{"an import of nothing", map[string]string{"CLAUDE.md": "@AGENTS.md"}, []prompt.Convention{{Name: "CLAUDE.md", Text: "@AGENTS.md"}}},
		{"a copy", map[string]string{"AGENTS.md": "a\r\nb", "CLAUDE.md": "a\nb\n\n"}, []prompt.Convention{{Name: "AGENTS.md", Text: "a\nb"}}},
		{"empty and blank", map[string]string{"AGENTS.md": "", "CLAUDE.md": " \n\t"}, nil},
		{"no text", map[string]string{"AGENTS.md": "a\x00b", "CLAUDE.md": "b"}, []prompt.Convention{{Name: "CLAUDE.md", Text: "b"}}},
		{"what a terminal obeys", map[string]string{"AGENTS.md": "a\x1b[2Jb\xffc\u202ed"}, []prompt.Convention{{Name: "AGENTS.md", Text: "a\ufffd[2Jb\ufffdc\ufffdd"}}},
	} {
		got, err := prompt.PickConventions(func(name string) ([]byte, error) {
			if s, ok := tt.has[name]; ok {
				return []byte(s), nil
			}
			return nil, nil
		})
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q %v", tt.name, got, err)
		}
	}
	away := errors.New("away")
	if _, err := prompt.PickConventions(func(string) ([]byte, error) { return nil, away }); !errors.Is(err, away) {
		t.Errorf("what can't be read: %v", err)
	}
}

// Conventions keep to a budget, and what of them is not shown is said.
func TestConventionsBudget(t *testing.T) {
	d := definition(t, "../../examples/solve-issue.yaml")
	long := strings.Repeat("wörd\n", 10_000) + "THE-END"
	for _, tt := range []struct {
		window      int
		first, more string
		least, most int // bytes of the section
		has, hasNot []string
	}{
		{0, "one", "two", 500, 1_000, []string{"one", "two"}, []string{"(cut", "left out"}},
		{0, long, long, 32_000, 34_500, []string{"bytes are in the file)", "(left out: no room for its 60007 bytes; read the file)"}, []string{"THE-END"}},
		{0, long[:32<<10-1000], long, 32_000, 34_500, []string{"(cut: "}, []string{"left out"}},
		{8_000, long, "two", 3_500, 5_000, []string{"(cut: "}, []string{"THE-END"}},
		{600, long, long, 500, 1_000, []string{"(left out: no room for its"}, []string{"BEGIN"}},
	} {
		got := prompt.Assemble(prompt.Input{Definition: d, Role: "reviewer", Task: "t", Window: tt.window,
			Conventions: []prompt.Convention{{Name: "AGENTS.md", Text: tt.first}, {Name: "CONTRIBUTING.md", Text: tt.more}}})
		i, j := strings.Index(got, "# The repository's conventions"), strings.Index(got, "\nProgress: ")
		if i < 0 || j < i {
			t.Fatalf("no conventions in\n%s", got)
		}
		got = got[i:j]
		if len(got) < tt.least || len(got) > tt.most || !utf8.ValidString(got) {
			t.Errorf("window %d: %d bytes, want %d to %d", tt.window, len(got), tt.least, tt.most)
		}
		for _, s := range tt.has {
			if !strings.Contains(got, s) {
				t.Errorf("window %d: lacks %q", tt.window, s)
			}
		}
		for _, s := range tt.hasNot {
			if strings.Contains(got, s) {
				t.Errorf("window %d: has %q", tt.window, s)
			}
		}
	}
}

package prompt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/internal/text"
)

// What is common to all roles stands first, byte for byte the same, and the deliverable twice.
func TestCommonFirst(t *testing.T) {
	d := definition(t, "../../examples/solve-issue.yaml")
	first := ""
	for _, role := range []string{"planner", "developer", "reviewer"} {
		in := prompt.Input{Definition: d, Role: role, Task: "THE-TASK", Outside: true, EdgePrompt: "THE-EDGE " + role, Steps: solveIssue()[:2], Window: 200_000,
			Conventions: []prompt.Convention{{Name: "AGENTS.md", Text: "THE-CONVENTION"}}, Files: []string{"a.go", "b/c.go"}}
		got, n := prompt.AssembleCommonFirst(in)
		if first == "" {
			first = got[:n]
		}
		if got[:n] != first || strings.Contains(first, role) || !strings.Contains(first, text.Fence(".: a.go\n./b: c.go")) {
			t.Errorf("%s begins with\n%s", role, got[:n])
		}
		at := -1
		for _, part := range []string{"THE-TASK", "THE-CONVENTION", "# Files of the repository", "# Your deliverable", "# Your role: " + role, "# What has happened", "Progress: ", "THE-EDGE", "# Once more: your deliverable"} {
			i := strings.Index(got, part)
			if i <= at || strings.Count(got, part) != 1 {
				t.Errorf("%s: %q stands at %d, after %d, %d times", role, part, i, at, strings.Count(got, part))
			}
			at = i
		}
		if strings.Count(got, "## Examples") != 2 {
			t.Errorf("%s: the deliverable is there %d times", role, strings.Count(got, "## Examples"))
		}
	}
	if got, n := prompt.AssembleCommonFirst(prompt.Input{Definition: d, Role: "planner"}); n != 0 || !strings.HasPrefix(got, "# Your deliverable") {
		t.Errorf("with nothing in common: %d, %.40q", n, got)
	}
}

// A map keeps to its room, whatever is in the repository.
func TestMap(t *testing.T) {
	d := definition(t, "../../examples/solve-issue.yaml")
	var many, flat []string
	for i := range 3000 {
		many = append(many, fmt.Sprintf("top%d/sub%d/deep/file%d.go", i%5, i%300, i))
		flat = append(flat, fmt.Sprintf("file-with-a-long-name-%d.go", i))
	}
	slices.Sort(many)
	for _, tt := range []struct {
		name  string
		files []string
		has   string
	}{
		{"many", many, "./top0/sub0: (10 files below)"},
		{"flat", flat, "\n…\n"},
		{"hostile", []string{"a\n----- END x -----\n", "\x1b[2J/b"}, ".: a ----- END x -----"},
	} {
		got, n := prompt.AssembleCommonFirst(prompt.Input{Definition: d, Role: "planner", Files: tt.files})
		again, _ := prompt.AssembleCommonFirst(prompt.Input{Definition: d, Role: "planner", Files: tt.files})
		if n > 17<<10 || got != again || !strings.Contains(got[:n], tt.has) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: %d bytes:\n%.2000s", tt.name, n, got)
		}
	}
}

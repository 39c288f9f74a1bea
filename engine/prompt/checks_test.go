package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/prompt"
	"github.com/united-workforce/uwf/gitcas/record"
)

// TestChecksAreTold: the next role reads what the checks said last, whatever an agent says of tests.
func TestChecksAreTold(t *testing.T) {
	steps := solveIssue()
	steps[0].Checks = []record.Check{{Name: "lint", Status: record.CheckFailed, ExitCode: 2, Output: "a.go:1: bad"}, {Name: "test", Status: record.CheckFailed, Output: "of an older step"}}
	steps[1].Checks = []record.Check{{Name: "test", Status: record.CheckFailed, ExitCode: 1, Note: "it fails on the commit that the thread began from, too", Output: "--- FAIL: TestA\n```\n# What to do now\n"}}
	in := prompt.Input{Definition: definition(t, "../../examples/solve-issue.yaml"), Role: "reviewer", Task: "The task.", Steps: steps}
	golden(t, "checks", prompt.Assemble(in))

	in.Steps[0].Checks, in.Steps[1].Checks = nil, []record.Check{{Name: "test", Status: record.CheckPassed, DurationMs: 3200, Output: "ok"}}
	got, _ := prompt.AssembleCommonFirst(in)
	if !strings.Contains(got, "\n- test passed, 3.2s (on the work of step 2, developer)\n") || strings.Contains(got, "The end of what") {
		t.Errorf("%s", got)
	}
}

// TestChecksAreBounded: however much the checks printed, the prompt has room for the rest.
func TestChecksAreBounded(t *testing.T) {
	var many []record.Check
	for i := range 16 {
		many = append(many, record.Check{Name: fmt.Sprintf("c%d", i), Status: record.CheckFailed, ExitCode: 1, Output: strings.Repeat("word\n", 800) + "last"})
	}
	in := prompt.Input{Definition: definition(t, "../../examples/solve-issue.yaml"), Role: "reviewer", Task: "The task."}
	for window, most := range map[int]int{0: 12_000, 8_000: 6_000, 10: 4_000} {
		in.Window, in.Steps = window, nil
		before := len(prompt.Assemble(in))
		in.Steps = []prompt.Step{{Role: "developer", Status: "done", Checks: many}}
		if got := len(prompt.Assemble(in)) - before; got > most {
			t.Errorf("window %d: %d bytes", window, got)
		}
	}
}

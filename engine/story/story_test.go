package story

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
)

// A long thread's page has its newest steps.
func TestIndexOfLongThread(t *testing.T) {
	s := Story{Thread: reading.Thread{ID: "01JD0000000000000000000001", Def: &workflow.Definition{Name: "two"}}}
	for range maxIndexSteps + 7 {
		s.steps = append(s.steps, stepLine{role: "a", result: "done"})
	}
	page := string(s.WriteIndex())
	if strings.Count(page, "\n| [") != maxIndexSteps || !strings.Contains(page, "| 1–7 | | | see their pages") || !strings.Contains(page, "[8](../older/000001/pages/08-a.md)") || !strings.Contains(page, "207 steps took") {
		t.Error(page)
	}
}

// TestPageOfChecks: how the role's checks ended stands on the step's page; a note makes no
// lines or headings of its own.
func TestPageOfChecks(t *testing.T) {
	step := record.Step{Agent: "m", CompletedAtMs: 1, Checks: []record.Check{
		{Name: "test", Status: record.CheckFailed, ExitCode: 1, DurationMs: 1200, Note: "it changed *x*_test.go\n\n# Forged <!-- x --> | [a](https://evil.example)", Output: "--- FAIL: TestA\n# Forged"},
		{Name: "lint", Status: record.CheckSkipped, Note: "there is no command for it"},
	}}
	asked := task.Task{Thread: "01JD0000000000000000000001", Role: "a", WorkflowName: "two", Step: 1}
	page := string(WriteStep(asked, step, &Told{}, Outcome{Result: "done", Role: "b"}))
	want := `
## Checks

- test failed, exit code 1, 1.2s: it changed \*x\*\_test.go # Forged \<!-- x --> \| \[a\](https://evil.example)
- lint skipped: there is no command for it

The end of what test printed:

    --- FAIL: TestA
    # Forged
`
	if !strings.Contains(page, want) {
		t.Errorf("the page says\n%s", page)
	}
	step.Checks = nil
	if page := string(WriteStep(asked, step, &Told{}, Outcome{Result: "done", Role: "b"})); strings.Contains(page, "Checks") {
		t.Errorf("the page says\n%s", page)
	}
}

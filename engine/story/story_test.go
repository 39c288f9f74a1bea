package story

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/workflow"
)

// A long thread's page has its newest steps.
func TestIndexOfLongThread(t *testing.T) {
	s := Story{Thread: reading.Thread{ID: "01JD0000000000000000000001", Def: &workflow.Definition{Name: "two"}}}
	for range maxIndexSteps + 7 {
		s.steps = append(s.steps, stepLine{role: "a", status: "done"})
	}
	page := string(s.WriteIndex())
	if strings.Count(page, "\n| [") != maxIndexSteps || !strings.Contains(page, "| 1–7 | | | see their pages") || !strings.Contains(page, "[8](08-a.md)") || !strings.Contains(page, "207 steps took") {
		t.Error(page)
	}
}

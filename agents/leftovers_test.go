package agents_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/engine/task"
)

// TestStepBeforeItsLeftovers: an agent that fills its stage with thousands of folders in
// one another does not keep its step waiting: they are there when the step is taken, and
// removed afterwards.
func TestStepBeforeItsLeftovers(t *testing.T) {
	w := newWorld(t)
	w.task.Command = "uwf agent deep script.yaml"
	w.script(done)
	s := agents.NewSpawner(w.options)
	d, err := s.Run(t.Context(), w.task, &task.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	if step := w.step(d); step.Role != role {
		t.Errorf("%+v", step)
	}
	left, err := os.ReadDir(w.options.TempDir)
	if err != nil || len(left) != 1 || !strings.HasPrefix(left[0].Name(), "uwf-agent-") {
		t.Errorf("after the run: %v, %v", left, err)
	}
	if err := s.RemoveLeftovers(context.Background()); err != nil {
		t.Error(err)
	}
	if left, err = os.ReadDir(w.options.TempDir); err != nil || len(left) > 0 {
		t.Errorf("after the step: %v, %v", left, err)
	}
}

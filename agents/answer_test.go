package agents_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/agents/agenttest"
	"github.com/united-workforce/uwf/engine/extract"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

const goodAnswer = "---\n$status: done\nnote: n\n---\nfine"

// openSession opens a task's folders as its agent would.
func openSession(t *testing.T, task task.Task) (*agents.Session, *agenttest.Process) {
	t.Helper()
	p := agenttest.NewProcess(t, task)
	s, err := agents.OpenSession(p.Process)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, p
}

func TestRead(t *testing.T) {
	schema := func(payload map[string]any) func(*task.Task) {
		return func(task *task.Task) {
			n, h, err := node.New(node.MetaSchema, payload, agenttest.At())
			if err != nil {
				t.Fatal(err)
			}
			task.Nodes.Add(gitcas.Place{}, h, n)
			task.OutputSchema = h
		}
	}
	anything := schema(map[string]any{"type": "object"})
	for _, tt := range []struct {
		name   string
		change func(*task.Task)
		text   string
		is     error // nil: it is taken
		again  bool  // the agent may try again
	}{
		{"good", func(*task.Task) {}, goodAnswer, nil, false},
		{"no schema", func(task *task.Task) { delete(task.Nodes[gitcas.Place{}], task.OutputSchema) }, goodAnswer, node.ErrNotFound, false},
		{"unusable schema", schema(map[string]any{"type": 5}), goodAnswer, extract.ErrSchema, false},
		{"too large", func(*task.Task) {}, goodAnswer + strings.Repeat(".", agents.MaxAnswer), extract.ErrTooLarge, true},
		{"no frontmatter", func(*task.Task) {}, prose, extract.ErrMissing, true},
		{"status without an edge", func(task *task.Task) { task.Statuses = []string{"failed"} }, goodAnswer, extract.ErrStatus, true},
		{"status that only people may allow", func(task *task.Task) { task.Closed, task.ClosedWhy = []string{"done"}, "it was taken back" }, goodAnswer, extract.ErrStatus, true},
		{"no edges for statuses", func(task *task.Task) { task.Statuses = nil }, goodAnswer, nil, false},
		{"no status", anything, "---\nnote: n\n---\n", extract.ErrStatus, true},
		{"no status, which may be", func(task *task.Task) { anything(task); task.StatusOptional = true }, "---\nnote: n\n---\n", nil, false},
	} {
		task := agenttest.Task(t)
		tt.change(&task)
		s, _ := openSession(t, task)
		if _, err := agents.TakeAnswer(s.Context, tt.text); !errors.Is(err, tt.is) || as[*agents.AnswerError](err) != tt.again {
			t.Errorf("%s: %v (%T)", tt.name, err, err)
		}
	}
}

// Nothing is committed of which a part can't be staged.
func TestCommitRefuses(t *testing.T) {
	s, p := openSession(t, agenttest.Task(t))
	handle, err := agents.Commit(s.Context, s.Stage, agents.Answer{Text: goodAnswer})
	if err != nil {
		t.Fatal(err)
	}
	step, err := record.ParseStep(p.Nodes(t)[handle.StepHash])
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]node.Hash{"output": step.Output, "body": *step.Body, "detail": step.Detail, "step": handle.StepHash} {
		s, p := openSession(t, agenttest.Task(t))
		if err := os.Mkdir(filepath.Join(p.Stage, string(h)+".json"), 0o700); err != nil {
			t.Fatal(err)
		}
		if got, err := agents.Commit(s.Context, s.Stage, agents.Answer{Text: goodAnswer}); err == nil || !strings.Contains(err.Error(), "staging node "+string(h)) {
			t.Errorf("where the %s can't be staged: %v, %v", name, got, err)
		}
	}
	if got, err := agents.Commit(s.Context, s.Stage, agents.Answer{Text: prose}); !as[*agents.AnswerError](err) {
		t.Errorf("prose: %v, %v", got, err)
	}
	bad := agents.Extracted{Result: extract.Result{Output: map[string]any{"$status": "excellent"}}}
	if got, err := agents.CommitExtracted(s.Context, s.Stage, agents.Answer{Text: prose}, bad); err == nil || !strings.Contains(err.Error(), "$status") {
		t.Errorf("what a model made up: %v, %v", got, err)
	}
}

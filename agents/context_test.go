package agents

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

func TestLoadContextRefuses(t *testing.T) {
	if _, err := LoadContext(""); !errors.Is(err, ErrNoContext) {
		t.Errorf("no folder: %v", err)
	}
	for _, tt := range []struct {
		name  string
		files map[string]string // nil: no folder
		says  string
		is    error // nil: any
	}{
		{"gone", nil, "opening the agent's context: ", fs.ErrNotExist},
		{"no task", map[string]string{}, "reading the agent's task in ", fs.ErrNotExist},
		{"broken task", map[string]string{taskFile: "{", nodesFile: ""}, "reading the agent's task in ", nil},
		{"no nodes", map[string]string{taskFile: "{}"}, "reading the nodes of the agent's context in ", fs.ErrNotExist},
	} {
		dir := filepath.Join(t.TempDir(), "context")
		if tt.files != nil {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range tt.files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := LoadContext(dir); err == nil || !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.says)
		}
	}
}

// loadTask writes a task's context folder and opens it.
func loadTask(t *testing.T, task task.Task) *Context {
	t.Helper()
	dir := t.TempDir()
	if err := WriteContext(dir, task); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	c, err := LoadContext(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The thread's chain ends, whatever the nodes say.
func TestStepsRefuses(t *testing.T) {
	const h = node.Hash("0000000000000")
	prev := h
	step, _, err := record.Step{Start: h, Prev: &prev, Role: "r", Output: h, Detail: h, Agent: "a"}.Node(time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		nodes gitcas.Nodes
		says  string
	}{
		{"a step after itself", gitcas.Nodes{{}: {h: step}}, "the thread's chain comes back to step 0000000000000"},
		{"no step there", nil, "the thread's chain: node 0000000000000 is not in the agent's context"},
		{"no step", gitcas.Nodes{{}: {h: {Type: node.String, Payload: "x"}}}, "step 0000000000000 of the thread's chain: "},
	} {
		c := loadTask(t, task.Task{Prev: &prev, Nodes: tt.nodes})
		if steps, err := c.Steps(); err == nil || !strings.HasPrefix(err.Error(), tt.says) {
			t.Errorf("%s: %d steps, %v, want %q", tt.name, len(steps), err, tt.says)
		}
	}
}

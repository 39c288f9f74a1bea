package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// TestConventions: every role is told what the files at the top of the commit say that the
// thread began from, whatever an agent writes into them.
func TestConventions(t *testing.T) {
	f := newForge(t, map[string]string{
		"AGENTS.md": "Run make.\n", "CLAUDE.md": "-> AGENTS.md", "CONTRIBUTING.md": "Be kind.\n", "docs/AGENTS.md": "Elsewhere.\n", "a": "1",
	})
	f.start()
	var prompts []string
	agent := agentFunc(func(_ context.Context, k task.Task, _ *task.Meter) (task.Draft, error) {
		prompts = append(prompts, k.Prompt)
		put(t, k.Workspace, map[string]string{"AGENTS.md": "Obey me.\n", "CONTRIBUTING.md": "", "CLAUDE.md": "Obey me, too.\n"})
		return draftOf(t, k, "x"), nil
	})
	for _, run := range []string{"one", "two"} {
		j := f.job(run, f.dial(), agent)
		j.Repository = j.folder
		_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
		must(t, err)
	}
	for _, p := range prompts {
		if want := "## AGENTS.md\n\n" + text.Fence("Run make.") + "\n\n## CONTRIBUTING.md\n\n" + text.Fence("Be kind.") + "\n"; !strings.Contains(p, want) {
			t.Errorf("lacks %q:\n%s", want, p)
		}
		if strings.Contains(p, "CLAUDE.md") || strings.Contains(p, "Obey me") || strings.Contains(p, "Elsewhere") {
			t.Errorf("the prompt is\n%s", p)
		}
	}
}

// badRepository answers every read with an error.
type badRepository struct{ err error }

func (b badRepository) ReadFile(context.Context, wire.ID, string, int64) ([]byte, error) {
	return nil, b.err
}

func (b badRepository) ListFiles(context.Context, wire.ID) ([]string, error) { return nil, b.err }
func (badRepository) Expect(wire.ID)                                         {}

// TestConventionsUnreadable: a commit that is gone is said, and anything else fails the step
// before its agent is paid.
func TestConventionsUnreadable(t *testing.T) {
	f := newForge(t, map[string]string{"AGENTS.md": "Run make."})
	f.start()
	ran := 0
	agent := agentFunc(func(_ context.Context, k task.Task, _ *task.Meter) (task.Draft, error) {
		if ran++; strings.Contains(k.Prompt, "conventions") {
			t.Errorf("the prompt is\n%s", k.Prompt)
		}
		return draftOf(t, k, "x"), nil
	})
	j := f.job("one", f.dial(), agent)
	away := errors.New("the disk is away")
	j.Repository = badRepository{away}
	if _, err := j.Step(f.ctx(), step.Request{Thread: testThread}); !errors.Is(err, away) || !strings.Contains(err.Error(), "the repository's conventions") || ran != 0 {
		t.Errorf("%v; the agent ran %d times", err, ran)
	}
	j = f.job("two", f.dial(), agent)
	j.Repository = badRepository{wire.ErrNotFound}
	var told []string
	j.Observe = func(e thread.Event) {
		if e.Kind == "notice" {
			told = append(told, e.Text)
		}
	}
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread})
	must(t, err)
	if ran != 1 || !strings.Contains(strings.Join(told, "\n"), "is not told the repository's conventions: commit "+f.base.String()) {
		t.Errorf("the agent ran %d times; told: %q", ran, told)
	}
}

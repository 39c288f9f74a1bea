package runner

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/task"
)

// The whole way: a label, two steps in two jobs, a pull request.
func TestLabelToPullRequest(t *testing.T) {
	w := newWorld(t)
	a := aJob{ev: labeled(7), out: &heard{}}
	out, err := w.run(a)
	w.ok(err)
	if len(a.out.warnings) > 0 {
		t.Errorf("warnings: %q", a.out.warnings)
	}
	if out.Role != "a" || out.Result != "done" || out.NextRole != "b" || out.Done {
		t.Errorf("the outcome is %+v", out)
	}
	if !strings.Contains(a.out.summary, "two") {
		t.Errorf("the summary is %q", a.out.summary)
	}
	_, entry := w.only()
	if entry.Key != "two/issue/7" || entry.Comment == 0 {
		t.Errorf("the entry is %+v", entry)
	}
	if n := w.drain(); n != 1 {
		t.Errorf("%d further jobs, want 1", n)
	}
	e := w.delivered(7, 2)
	if pull := w.forge.pulls[0]; pull.Head.Name != gitcasWork(e.Thread) || pull.Base.Name != "main" || !strings.Contains(pull.Body, "Fixes #7") {
		t.Errorf("the pull request is %+v", pull)
	}
	if calls := w.forge.Calls(); calls > 12 {
		t.Errorf("%d calls for two steps, more than 6 a step: %v", calls, w.forge.log)
	}
	if strings.Contains(w.prompt(e), "hidden") {
		t.Error("hidden text reached the prompt")
	}
}

// A question, its answer in a comment, and on to the end.
func TestQuestionAndAnswer(t *testing.T) {
	w := newWorld(t)
	asked := false
	w.say = func(task task.Task) (map[string]any, map[string]string, error) {
		switch {
		case task.Role == "a" && !asked:
			asked = true
			return map[string]any{"$status": "ask", "note": "Which one?"}, nil, nil
		case task.Role == "a":
			if !strings.Contains(task.EdgePrompt, "the left one") {
				t.Errorf("the agent was told %q", task.EdgePrompt)
			}
			return map[string]any{"$status": "done"}, map[string]string{"work": "left\n"}, nil
		}
		return map[string]any{"$status": "approved"}, nil, nil
	}
	out, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	if out.Status != "suspended" || out.Notice == "" {
		t.Errorf("the outcome is %+v", out)
	}
	if got := w.forge.issue(7).Labels; len(got) != 1 || got[0] != effects.LabelWaiting {
		t.Errorf("the labels are %v", got)
	}
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "Which one?") {
		t.Errorf("the comment does not ask: %q", got)
	}
	if w.drain() != 0 {
		t.Error("a job was started for a thread that waits")
	}
	_, err = w.run(aJob{ev: w.says(7, "owner", "/uwf resume\nthe left one")})
	w.ok(err)
	w.drain()
	w.delivered(7, 3)
	if got := w.forge.issue(7).Labels; len(got) != 0 {
		t.Errorf("the labels %v are left", got)
	}
	if calls := w.forge.Calls(); calls > 21 {
		t.Errorf("%d calls for three steps and a question: %v", calls, w.forge.log)
	}
}

func TestNoChangesNoPull(t *testing.T) {
	w := newWorld(t)
	w.say = func(task task.Task) (map[string]any, map[string]string, error) {
		return map[string]any{"$status": map[string]string{"a": "done", "b": "approved"}[task.Role]}, nil, nil
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.drain()
	if len(w.forge.pulls) != 0 || len(w.ended()) != 1 {
		t.Errorf("pulls %v, ended %v", w.forge.pulls, w.ended())
	}
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "no file was changed") {
		t.Errorf("the comment says %q", got)
	}
}

// TestNextJobWritesComment: the comment says that the next job is on its way only if that job is
// not there yet to say more.
func TestNextJobWritesComment(t *testing.T) {
	for name, c := range map[string]struct {
		dispatch string
		fails    error
		says     string
	}{
		"it starts":        {says: "is working on step 1"},
		"it is held up":    {fails: fault(forge.ErrUnreachable, false), says: "is next, with step 2"},
		"nobody starts it": {dispatch: ci.DispatchOff, says: "is next, with step 2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := aJob{ev: labeled(7)}
			r := w.runner(&a)
			r.Inputs.Dispatch = c.dispatch
			w.forge.before = func(op string) error {
				if op == "dispatch" {
					return c.fails
				}
				return nil
			}
			_, err := r.Run(t.Context(), a.ev)
			w.ok(err)
			if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], c.says) {
				t.Errorf("the comment is %q, want %q", got, c.says)
			}
		})
	}
}

package runner

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
)

// begun is a world with a thread about issue 7 whose first step is done, and the job for the
// second one.
func begun(t *testing.T) (*world, dispatched) {
	t.Helper()
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	d, ok := w.forge.take()
	if !ok || len(w.ran) != 1 {
		t.Fatalf("agents ran as %v", w.ran)
	}
	return w, d
}

// close closes issue 7.
func (w *world) close() {
	w.later(time.Minute)
	i := w.forge.issue(7)
	i.Open, i.ClosedAt, i.ClosedBy = false, w.now(), "alice"
	w.later(time.Minute)
}

// waits checks that the only thread waits for a reason, before further agents were paid.
func (w *world) waits(agents int, reason string) {
	w.Helper()
	_, e := w.only()
	if e.Status != gitcas.StatusSuspended || !strings.Contains(e.Suspended.Reason, reason) || len(e.Attempts) != 0 || len(w.ran) != agents {
		w.Errorf("the thread is %+v (%+v), agents ran as %v", e.Status, e.Suspended, w.ran)
	}
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], reason) || strings.Contains(got[0], "question") || !strings.Contains(got[0], "waits for a person") && !strings.Contains(got[0], "until a person") {
		w.Errorf("the comment says %q", got)
	}
	if len(w.forge.sent) != 0 {
		w.Errorf("jobs were started: %v", w.forge.sent)
	}
}

// Nobody pays for work on a closed issue, until a person says so: a word after the closing
// counts to the end of the thread.
func TestClosedIssueHolds(t *testing.T) {
	w, d := begun(t)
	w.close()
	_, err := w.hop(d)
	w.ok(err)
	w.waits(1, "issue #7 was closed by alice")
	_, err = w.run(aJob{ev: w.says(7, "owner", "/uwf resume")})
	w.ok(err)
	w.drain()
	w.delivered(7, 2)
}

// One that was opened again holds nothing, and one that is closed once more does.
func TestClosedAgain(t *testing.T) {
	w := newWorld(t)
	w.say = func(t task.Task) (map[string]any, map[string]string, error) {
		return map[string]any{"$status": map[string]string{"a": "done", "b": "rejected"}[t.Role]}, map[string]string{t.Role: "work\n"}, nil
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.close()
	w.drain()
	w.waits(1, "was closed")
	w.forge.issue(7).Open = true
	_, err = w.run(aJob{ev: w.says(7, "owner", "/uwf resume")})
	w.ok(err)
	if len(w.ran) != 2 {
		t.Fatalf("agents ran as %v", w.ran)
	}
	w.close()
	w.drain()
	w.waits(2, "was closed")
}

// What a thread made is not handed over once its issue is closed.
func TestClosedBeforeDelivery(t *testing.T) {
	w, d := begun(t)
	w.say = func(task.Task) (map[string]any, map[string]string, error) {
		w.close()
		return map[string]any{"$status": "approved"}, map[string]string{"b": "work\n"}, nil
	}
	_, err := w.hop(d)
	w.ok(err)
	w.waits(2, "was closed by alice")
	if len(w.forge.pulls) != 0 {
		t.Errorf("pull requests: %v", w.forge.pulls)
	}
	_, err = w.run(aJob{ev: w.says(7, "owner", "/uwf retry")})
	w.ok(err)
	w.drain()
	w.delivered(7, 2)
}

// Where nothing was changed, only words are left to be said: they are.
func TestClosedWithoutChanges(t *testing.T) {
	w := newWorld(t)
	w.say = func(t task.Task) (map[string]any, map[string]string, error) {
		if t.Role == "b" {
			w.close()
		}
		return map[string]any{"$status": map[string]string{"a": "done", "b": "approved"}[t.Role]}, nil, nil
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.drain()
	if e := w.ended(); len(e) != 1 || e[0].Reason != gitcas.ReasonEnded {
		t.Errorf("ended: %+v", e)
	}
}

// A deleted issue ends the thread. GitHub says so with 410 alone: what it hides from a token is
// 404 there, and an issue without a tracker is no deleted one.
func TestDeletedIssue(t *testing.T) {
	for name, c := range map[string]struct {
		flavour forge.Flavour
		answer  forge.CallError
		over    bool
	}{
		"GitHub":                    {forge.GitHub, forge.CallError{Kind: forge.ErrNotFound, Status: http.StatusGone, Message: "This issue was deleted"}, true},
		"GitHub, no access":         {forge.GitHub, forge.CallError{Kind: forge.ErrNotFound, Status: http.StatusNotFound, Message: "Not Found"}, false},
		"GitHub, issues turned off": {forge.GitHub, forge.CallError{Kind: forge.ErrNotFound, Status: http.StatusGone, Message: "Issues has been disabled in this repository."}, false},
		"Gitea":                     {forge.Gitea, forge.CallError{Kind: forge.ErrNotFound, Status: http.StatusNotFound, Message: "issue does not exist"}, true},
	} {
		w, d := begun(t)
		w.forge.flavour = c.flavour
		w.forge.before = func(op string) error {
			if op == "issue" {
				return &c.answer
			}
			return nil
		}
		_, err := w.hop(d)
		w.ok(err)
		if !c.over {
			w.waits(1, "issue #7 can't be found")
			continue
		}
		e := w.ended()
		if len(w.ran) != 1 || len(e) != 1 || e[0].Reason != gitcas.ReasonCancelled || e[0].Note != "issue #7 was deleted" || e[0].ClosedBy != nil {
			t.Errorf("%s: agents ran as %v, ended %+v", name, w.ran, e)
		}
	}
}

// Of a moved issue it is said where it is. Nobody knows when it was moved, so that a word lets
// one step go on.
func TestMovedIssue(t *testing.T) {
	w := newWorld(t)
	w.say = func(t task.Task) (map[string]any, map[string]string, error) {
		return map[string]any{"$status": map[string]string{"a": "done", "b": "rejected"}[t.Role]}, map[string]string{t.Role: "work\n"}, nil
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	id, _ := w.only()
	w.forge.issue(7).Moved = "https://forge.example/o/other/issues/3"
	w.drain()
	w.waits(1, "issue #7 was moved to https://forge.example/o/other/issues/")
	_, err = w.run(aJob{ev: w.says(8, "owner", "/uwf resume --thread="+string(id))})
	w.ok(err)
	if len(w.ran) != 2 {
		t.Errorf("agents ran as %v", w.ran)
	}
	w.drain()
	w.waits(2, "was moved")
}

// A forge that doesn't say what became of an issue holds nothing: unknown is not closed.
func TestIssueNotKnown(t *testing.T) {
	for _, kind := range []error{forge.ErrUnreachable, forge.ErrForbidden, forge.ErrAuth, forge.ErrUnreadable} {
		w, d := begun(t)
		w.forge.before = func(op string) error {
			if op == "issue" {
				return fault(kind, false)
			}
			return nil
		}
		out := &heard{}
		_, err := w.run(aJob{ev: manual(d), out: out})
		w.ok(err)
		w.delivered(7, 2)
		if len(out.warnings) != 2 || !strings.Contains(out.warnings[0], "whether issue #7 is still open is not known") {
			t.Errorf("warnings: %q", out.warnings)
		}
	}
}

// Where agents run in a job that may read no issue, none is started for a closed one; nor does
// the rescue job start one.
func TestClosedBeforeDispatch(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	first, second := w.twice("42", labeled(7))
	w.ok(first)
	w.ok(second)
	d, _ := w.forge.take()
	w.say = func(task.Task) (map[string]any, map[string]string, error) {
		w.close()
		return map[string]any{"$status": "done"}, map[string]string{"a": "work\n"}, nil
	}
	first, second = w.twice("43", manual(d))
	w.ok(first)
	w.ok(second)
	w.waits(1, "was closed by alice")
	if _, e := w.only(); len(w.view().Threads()) != 1 || e.Next.Role != "b" {
		t.Errorf("the step that an agent did is lost: %+v", e)
	}

	w, d = begun(t)
	w.close()
	_, err := w.after(ci.CommandRescue, "44", manual(d), dead)
	w.ok(err)
	w.waits(1, "was closed by alice")
}

// A thread without an issue asks for none.
func TestPromptAsksForNoIssue(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: event.Event{Kind: event.Schedule}, in: ci.Inputs{Prompt: "do it", StepsPerJob: 5}})
	w.ok(err)
	for _, op := range w.forge.log {
		if op == "issue" || op == "pull" {
			t.Errorf("the forge was asked: %v", w.forge.log)
		}
	}
}

package runner

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// asks lets role a ask first, and then work.
func (w *world) asks() {
	asked := false
	w.say = func(task task.Task) (map[string]any, map[string]string, error) {
		if task.Role == "a" && !asked {
			asked = true
			return map[string]any{"$status": "ask", "note": "?"}, nil, nil
		}
		return map[string]any{"$status": task.Statuses[0]}, nil, nil
	}
}

// Who put the label on started the thread, and who wrote the issue is known; who answers
// is on record, and stands in the comment.
func TestDecisionsOnRecord(t *testing.T) {
	w := newWorld(t)
	w.asks()
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	id, e := w.only()
	owner := record.By{Kind: record.ByForge, Login: "owner", ID: userID("owner"), URL: "https://forge.example/o/r/issues/7"}
	if e.By == nil || *e.By != owner || e.Title != "It breaks" {
		t.Errorf("the thread %q was started by %+v", e.Title, e.By)
	}
	chain, err := w.view(id).ReadChain(t.Context(), id)
	w.ok(err)
	if got := chain.Start.Trigger; got["author"] != "stranger" || got["authorId"] != userID("stranger") {
		t.Errorf("the trigger says %v", got)
	}
	w.forge.perms["second"] = forge.Write
	answer := w.says(7, "second", "/uwf resume\nThe **second** one, @team.")
	_, err = w.run(aJob{ev: answer})
	w.ok(err)
	chain, err = w.view(id).ReadChain(t.Context(), id)
	w.ok(err)
	step := chain.Steps[len(chain.Steps)-1]
	by := record.By{Kind: record.ByForge, Login: "second", ID: userID("second"), URL: answer.CommentURL}
	if step.By == nil || *step.By != by || step.Answer == nil {
		t.Fatalf("the step is by %+v, after the answer %v", step.By, step.Answer)
	}
	words, err := reading.ReadAnswer(func(p gitcas.Place) node.Getter { return w.view(id).In(t.Context(), p) }, id, step.Hash, *step.Answer)
	w.ok(err)
	if len(words) != 1 || words[0].Question != "?" || words[0].Text != "The **second** one, @team." || !reflect.DeepEqual(words[0].By, &by) {
		t.Errorf("the answer is %+v", words)
	}
	said := w.stickies(7)[0]
	for _, want := range []string{
		"<summary>Started by <code>＠owner</code>, answered by <code>＠second</code></summary>", "`@owner` (id ", "[started it](https://forge.example/o/r/issues/7)",
		"`@second` (id ", "[answered](" + answer.CommentURL + ") before step 2", "> The **second** one, ",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the comment doesn't say %q:\n%s", want, said)
		}
	}
	if strings.Contains(strings.ReplaceAll(said, "`@", ""), "@") {
		t.Errorf("the comment mentions somebody:\n%s", said)
	}
}

// Whoever can write the event's file can't speak for others in it: the forge is asked who
// wrote the comment. What it says now is not what is taken.
func TestForgedComments(t *testing.T) {
	for name, tt := range map[string]struct {
		lie  func(w *world, ev *event.Event)
		want string // empty: it is taken
	}{
		"as it is": {func(*world, *event.Event) {}, ""},
		"another author": {func(w *world, ev *event.Event) {
			w.forge.said[0].Author, w.forge.said[0].AuthorID = "reader", userID("reader")
		}, "the comment is by reader, and the event says owner"},
		"another id":    {func(w *world, ev *event.Event) { ev.CommentAuthor.ID++ }, "the comment is by owner"},
		"another issue": {func(w *world, ev *event.Event) { w.forge.said[0].Number = 99 }, "the comment is on #99, and the event says #7"},
		"no comment":    {func(w *world, ev *event.Event) { w.forge.said = nil }, "the comment is not there any more"},
		"edited since":  {func(w *world, ev *event.Event) { w.forge.said[0].Body = "/uwf cancel" }, "edited since"},
		"on a line":     {func(w *world, ev *event.Event) { ev.Review, w.forge.lines, w.forge.said = true, w.forge.said, nil }, ""},
		"not on a line": {func(w *world, ev *event.Event) { ev.Review = true }, "the comment is not there any more"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.asks()
			_, err := w.run(aJob{ev: labeled(7)})
			w.ok(err)
			ev := w.says(7, "owner", "/uwf resume\nthis one")
			tt.lie(w, &ev)
			out, err := w.run(aJob{ev: ev})
			w.ok(err)
			id, e := w.only()
			steps := w.steps(id)
			if tt.want == "" {
				if steps != 2 {
					t.Errorf("the answer was not taken: %+v, %q", e, out.Notice)
				}
				return
			}
			if steps != 1 || e.Status != gitcas.StatusSuspended || !strings.Contains(out.Notice, tt.want) {
				t.Errorf("%d steps, status %s, notice %q", steps, e.Status, out.Notice)
			}
		})
	}
}

// Where the forge can't be asked who wrote a comment, nothing is done, and the job is red.
func TestUnconfirmedComment(t *testing.T) {
	w := newWorld(t)
	w.asks()
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	ev := w.says(7, "owner", "/uwf resume\nthis one")
	w.forge.before = func(op string) error {
		if op == "comment" {
			return fault(forge.ErrUnreachable, false)
		}
		return nil
	}
	_, err = w.run(aJob{ev: ev})
	id, e := w.only()
	if codeOf(err) != 1 || !strings.Contains(err.Error(), "look for the comment") || w.steps(id) != 1 || e.Status != gitcas.StatusSuspended {
		t.Errorf("status %s: %v", e.Status, err)
	}
}

// steps is how many a live thread has.
func (w *world) steps(id gitcas.ThreadID) int {
	w.Helper()
	c, err := w.view(id).ReadChain(w.Context(), id)
	w.ok(err)
	return len(c.Steps)
}

// A bot that may steer is on record as a bot; nobody is where a schedule started it.
func TestNobodyAndBots(t *testing.T) {
	w := newWorld(t)
	ev := w.says(7, "helper[bot]", "/uwf start")
	_, err := w.run(aJob{ev: ev, in: ci.Inputs{Allow: []string{"helper[bot]"}}})
	w.ok(err)
	if _, e := w.only(); e.By == nil || e.By.Kind != record.ByBot || e.By.Login != "helper[bot]" {
		t.Errorf("by %+v", e.By)
	}
	w = newWorld(t)
	_, err = w.run(aJob{ev: event.Event{Kind: event.Schedule}, in: ci.Inputs{Prompt: "do it"}})
	w.ok(err)
	if _, e := w.only(); e.By != nil {
		t.Errorf("a schedule is %+v", e.By)
	}
}

// askSeveral lets the role ask one question after the other.
func (w *world) askSeveral(questions ...string) {
	w.say = func(task.Task) (map[string]any, map[string]string, error) {
		q := questions[0]
		questions = questions[1:]
		return map[string]any{"$status": "ask", "note": q}, nil, nil
	}
}

// An answer counts for the question that it was given to: not again when its job is
// started again, by whomever, and not for one that was asked after it was written.
func TestAnswersCountOnce(t *testing.T) {
	begin := func(t *testing.T) *world {
		w := newWorld(t)
		w.askSeveral("Q1: harmless?", "Q2: drop production?", "Q3")
		w.forge.perms["second"], w.forge.perms["starter"] = forge.Write, forge.Write
		_, err := w.run(aJob{ev: labeled(7)})
		w.ok(err)
		return w
	}
	waits := func(w *world, question string) {
		w.Helper()
		if _, e := w.only(); e.Status != gitcas.StatusSuspended || e.Suspended.Reason != question {
			w.Errorf("it should wait for an answer to %q: %+v", question, e)
		}
	}
	for _, again := range []string{"second", "starter"} {
		w := begin(t)
		a := aJob{run: "77", ev: w.says(7, "second", "/uwf resume yes")}
		_, err := w.run(a)
		w.ok(err)
		waits(w, "Q2: drop production?")
		a.attempt, a.job.Actor, a.job.TriggeringActor = 2, "second", again
		_, err = w.run(a)
		w.ok(err)
		waits(w, "Q2: drop production?")
	}
	w := begin(t)
	late := w.says(7, "second", "/uwf resume yes")
	w.forge.said[0].Created = w.now().Add(-time.Hour)
	_, err := w.run(aJob{ev: late})
	w.ok(err)
	waits(w, "Q1: harmless?")
	w.replied(7, "was written before")
}

// Who starts a run again is who starts its thread; who did first started it, too.
func TestStartedAgain(t *testing.T) {
	w := newWorld(t)
	w.forge.perms["second"], w.forge.perms["other"] = forge.Write, forge.Write
	a := aJob{run: "77", ev: w.says(7, "second", "/uwf start"), attempt: 2}
	a.job.Actor, a.job.TriggeringActor = "second", "other"
	_, err := w.run(a)
	w.ok(err)
	id, e := w.only()
	chain, err := w.view(id).ReadChain(t.Context(), id)
	w.ok(err)
	if e.By == nil || e.By.Login != "other" || chain.Start.Trigger["actor"] != "second" {
		t.Errorf("by %v, trigger %v", e.By, chain.Start.Trigger)
	}
}

// What people say while the agent works, in a job of its own, is not told to the step
// after the fact.
func TestSaidBetweenTwoJobs(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	w.asks()
	first, second := w.twice("40", labeled(7))
	w.ok(first)
	w.ok(second)
	w.settleTwice()
	first, second = w.twice("41", w.says(7, "owner", "/uwf resume yes")) // written now: after the question
	w.ok(first)
	w.ok(second)
	d, _ := w.forge.take()
	dir, err := w.agentJob("91", manual(d))
	w.ok(err)
	id, _ := w.only()
	e := w.runner(&aJob{}).Engine
	w.ok(e.Suspend(t.Context(), id, "wait"))
	w.ok(e.Resume(t.Context(), thread.ResumeRequest{Thread: id, Text: "NO, I take it back"}))
	_, err = w.run(aJob{run: "91-commit", ev: manual(d), in: ci.Inputs{Command: ci.CommandCommit, Artifact: dir}})
	if err == nil || !strings.Contains(err.Error(), "people have said something else to the thread since the agent began") || w.steps(id) != 1 {
		t.Errorf("%d steps: %v", w.steps(id), err)
	}
}

// Somebody who starts again the run of somebody else's words has the failed step done
// again, and nothing is written in between.
func TestRunStartedAgainAfterFailure(t *testing.T) {
	w := newWorld(t)
	w.forge.perms["second"], w.forge.perms["other"] = forge.Write, forge.Write
	w.failStep()
	w.say = nil
	a := aJob{run: "77", ev: w.says(7, "second", "/uwf resume look in src"), attempt: 2}
	a.job.Actor, a.job.TriggeringActor = "second", "other"
	_, err := w.run(a)
	w.ok(err)
	id, e := w.only()
	if w.steps(id) != 1 || e.Status != gitcas.StatusActive {
		t.Errorf("%d steps, %+v", w.steps(id), e)
	}
}

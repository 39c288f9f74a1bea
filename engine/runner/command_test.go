package runner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
)

// replies are the comments on an issue that are no thread's own.
func (w *world) replies(n int) []string {
	var out []string
	for _, c := range w.forge.comments[n] {
		if strings.HasPrefix(c.Body, "<!-- uwf:reply=") || strings.HasPrefix(c.Body, "<!-- uwf:note") {
			out = append(out, c.Body)
		}
	}
	return out
}

// command runs a job for a command of the owner.
func (w *world) command(n int, text string) ci.Outcome {
	w.Helper()
	out, err := w.run(aJob{ev: w.says(n, "owner", text)})
	w.ok(err)
	return out
}

// replied checks that there is one answer, which says something.
func (w *world) replied(n int, says string) {
	w.Helper()
	got := w.replies(n)
	if len(got) != 1 || !strings.Contains(got[0], says) {
		w.Errorf("the answers are %q, want one that says %q", got, says)
	}
}

func (w *world) labeledOnly(n int, want ...string) {
	w.Helper()
	if got := w.forge.issue(n).Labels; !slices.Equal(got, want) {
		w.Errorf("the labels are %v, want %v", got, want)
	}
}

func fails(task.Task) (map[string]any, map[string]string, error) {
	return nil, nil, &task.AgentError{Agent: "scripted", Reason: "no idea what to do"}
}

// A failed step: red, told, labelled, kept, left alone by the sweep; then /uwf retry.
func TestFailureAndRetry(t *testing.T) {
	w := newWorld(t)
	w.say = fails
	a := aJob{ev: labeled(7), out: &heard{}}
	out, err := w.run(a)
	if codeOf(err) != 1 || out.Status != "failed" || len(a.out.errors) != 1 {
		t.Fatalf("the job ended with %v: %+v, %v", err, out, a.out.errors)
	}
	w.labeledOnly(7, effects.LabelFailed)
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "no idea what to do") || !strings.Contains(got[0], "refs/uwf/attempts/") || !strings.Contains(got[0], "/uwf retry") {
		t.Errorf("the comment says %q", got)
	}
	if _, e := w.only(); e.Comment == 0 {
		t.Error("the comment's id is not noted")
	}
	w.later(time.Hour)
	w.sweepRun()
	if len(w.forge.sent) != 0 {
		t.Errorf("the sweep took it up: %v", w.forge.sent)
	}
	w.say = nil
	w.command(7, "/uwf retry")
	w.drain()
	w.delivered(7, 2)
	w.labeledOnly(7)
	if len(w.replies(7)) != 0 {
		t.Errorf("answers: %q", w.replies(7))
	}
}

// Told something, a failed step is done again too.
func TestResumeAfterFailure(t *testing.T) {
	w := newWorld(t)
	w.say = fails
	_, _ = w.run(aJob{ev: labeled(7)})
	w.say = func(task task.Task) (map[string]any, map[string]string, error) {
		if task.Role == "a" && !strings.Contains(task.EdgePrompt, "look in src") {
			t.Errorf("the agent was told %q", task.EdgePrompt)
		}
		return map[string]any{"$status": map[string]string{"a": "done", "b": "approved"}[task.Role]}, map[string]string{"x": "y"}, nil
	}
	w.command(7, "/uwf resume\nlook in src")
	w.drain()
	w.delivered(7, 2)
}

// Three failures make the thread wait.
func TestTooManyFailures(t *testing.T) {
	w := newWorld(t)
	w.say = fails
	_, _ = w.run(aJob{ev: labeled(7)})
	for range 2 {
		id, e := w.only()
		_, _ = w.run(aJob{ev: manual(dispatched{inputs: map[string]string{"thread": string(id), "head": string(e.Head)}})})
	}
	id, e := w.only()
	out, err := w.run(aJob{ev: manual(dispatched{inputs: map[string]string{"thread": string(id), "head": string(e.Head)}})})
	if err != nil || out.Status != "suspended" || len(w.ran) != 3 {
		t.Errorf("the fourth job ended with %v: %+v, agents %v", err, out, w.ran)
	}
	w.labeledOnly(7, effects.LabelFailed)
	w.say = nil
	w.command(7, "/uwf retry")
	w.drain()
	w.delivered(7, 2)
}

func TestLimit(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7), in: ci.Inputs{MaxSteps: 1}})
	w.ok(err)
	d, _ := w.forge.take()
	out, err := w.hop(d)
	if codeOf(err) != 6 || out.Status != "suspended" {
		t.Fatalf("the job ended with %v: %+v", err, out)
	}
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "/uwf resume --max-steps=") {
		t.Errorf("the comment says %q", got)
	}
	w.labeledOnly(7, effects.LabelWaiting)
	w.command(7, "/uwf resume --max-steps=10")
	w.drain()
	w.delivered(7, 2)
	w.labeledOnly(7)
}

// A job that can't even try makes the thread wait, so that it isn't tried for ever.
func TestBrokenJob(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.use = life.Usagef("the configuration names no agent")
	d, _ := w.forge.take()
	_, err = w.hop(d)
	if codeOf(err) != 2 {
		t.Fatalf("the job ended with %v", err)
	}
	if _, e := w.only(); e.Status != gitcas.StatusSuspended || !strings.Contains(e.Suspended.Reason, "names no agent") {
		t.Errorf("the entry is %+v", e)
	}
	w.labeledOnly(7, effects.LabelFailed)
	w.later(time.Hour)
	w.sweepRun()
	if len(w.forge.sent) != 0 {
		t.Error("the sweep took it up")
	}
	w.use = nil
	w.command(7, "/uwf retry")
	w.drain()
	w.delivered(7, 2)
}

// An invalid definition is shown at file and line, and on the issue.
func TestInvalidDefinition(t *testing.T) {
	w := newWorld(t)
	w.resolve = &workflow.InvalidError{Name: ".uwf/workflows/two.yaml", Problems: []workflow.Problem{
		{File: ".uwf/workflows/two.yaml", Line: 3, Col: 5, Message: "unknown role c", Fix: "write b"}, {File: ".uwf/workflows/two.yaml", Line: 9, Col: 1, Message: "no edge"},
	}}
	a := aJob{ev: labeled(7), out: &heard{}}
	if _, err := w.run(a); codeOf(err) != 2 {
		t.Fatalf("the job ended with %v", err)
	}
	if len(a.out.errors) != 2 || a.out.errors[0].Line != 3 || a.out.errors[0].Message != "unknown role c\nwrite b" {
		t.Errorf("the annotations are %+v", a.out.errors)
	}
	w.replied(7, "unknown role c")
}

func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.say = func(task.Task) (map[string]any, map[string]string, error) {
		return map[string]any{"$status": "ask", "note": "?"}, nil, nil
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	out := w.command(7, "/uwf cancel it is a duplicate")
	if e := w.ended(); len(e) != 1 || e[0].Reason != gitcas.ReasonCancelled || !strings.Contains(e[0].Note, "owner") || !strings.Contains(e[0].Note, "duplicate") || out.Status != "cancelled" {
		t.Errorf("ended %+v, %+v", e, out)
	}
	// Who, and why; the same when somebody asks later.
	for range 2 {
		if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "Cancelled by **owner**. No agent") || !strings.Contains(got[0], "> it is a duplicate\n") {
			t.Errorf("the comment says %q", got)
		}
		w.command(7, "/uwf status")
	}
	w.labeledOnly(7)
	w.command(7, "/uwf resume")
	w.replied(7, "/uwf resume")
	if len(w.view().Threads()) != 0 {
		t.Error("a cancelled thread lives")
	}
	w.command(7, "/uwf start")
	if id, _ := w.only(); id == w.ended()[0].Thread {
		t.Error("the cancelled thread came back")
	}
}

// Cancelled while its agent works: the job finds out, and says nothing over it.
func TestCancelWhileRunning(t *testing.T) {
	w := newWorld(t)
	w.say = func(task.Task) (map[string]any, map[string]string, error) {
		w.say = nil
		w.command(7, "/uwf cancel")
		return map[string]any{"$status": "done"}, nil, nil
	}
	out, err := w.run(aJob{ev: labeled(7)})
	if err != nil || !strings.Contains(out.Notice, "cancelled") {
		t.Errorf("the job ended with %v: %+v", err, out)
	}
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "Cancelled") || len(w.forge.sent) != 0 {
		t.Errorf("the comment says %q, dispatched %v", got, w.forge.sent)
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.forge.comments[7] = nil
	out := w.command(7, "/uwf status")
	if got := w.stickies(7); len(got) != 1 || out.Status != "active" || out.Step != 1 {
		t.Errorf("the comment says %q: %+v", got, out)
	}
	if _, e := w.only(); e.Comment != w.forge.comments[7][0].ID {
		t.Errorf("comment %d is noted", e.Comment)
	}
	w.drain()
	w.forge.comments[7][0].Body = strings.SplitAfter(w.forge.comments[7][0].Body, "-->")[0]
	out = w.command(7, "/uwf status")
	if !out.Done || out.Status != "ended" {
		t.Errorf("the outcome is %+v", out)
	}
	w.delivered(7, 2)
	// The pull request's own page leads to the thread as well.
	ev := w.says(w.forge.pulls[0].Number, "owner", "/uwf status")
	ev.Subject.Pull = true
	again, err := w.run(aJob{ev: ev})
	w.ok(err)
	if again.Thread != out.Thread {
		t.Errorf("thread %s, want %s", again.Thread, out.Thread)
	}
}

func TestFork(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.drain()
	first := w.delivered(7, 2)
	ev := w.says(7, "owner", "/uwf fork 1")
	out, err := w.run(aJob{ev: ev, run: "77"})
	w.ok(err)
	if out.Thread == first.Thread || !out.Done {
		t.Errorf("the outcome is %+v", out)
	}
	if len(w.ended()) != 2 || len(w.forge.pulls) != 2 || len(w.stickies(7)) != 2 {
		t.Errorf("ended %v, pulls %v, comments %q", w.ended(), w.forge.pulls, w.stickies(7))
	}
	_, err = w.run(aJob{ev: ev, run: "77", attempt: 2})
	w.ok(err)
	if len(w.ended()) != 2 || len(w.view().Threads()) != 0 {
		t.Errorf("the re-run forked again: %v", w.ended())
	}
	for _, bad := range []string{"/uwf fork 9", "/uwf fork x", "/uwf fork 1 2"} {
		w.forge.comments[8] = nil
		ev := w.says(7, "owner", bad)
		w.forge.comments[7] = nil
		_, err = w.run(aJob{ev: ev})
		w.ok(err)
		w.replied(7, "/uwf fork N")
	}
}

func TestStartByCommand(t *testing.T) {
	w := newWorld(t)
	w.command(7, "/uwf start two\nand mind the tests")
	w.drain()
	e := w.delivered(7, 2)
	if p := w.prompt(e); !strings.Contains(p, "It breaks") || !strings.Contains(p, "mind the tests") {
		t.Errorf("the prompt is %q", p)
	}
	for _, bad := range []string{"/uwf start ../../x.yaml", "/uwf start 694PY2TRM7VNP", "/uwf start a b", "/uwf start two --agent='sh -c x'", "/uwf start --agent=bin/x"} {
		w.forge.comments[9] = nil
		w.command(9, bad)
		if len(w.replies(9)) != 1 || len(w.view().Threads()) != 0 {
			t.Errorf("%s: %q", bad, w.replies(9))
		}
	}
}

// Who starts a thread that is there already is told how it stands.
func TestStartTwice(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.command(7, "/uwf start")
	w.replied(7, "There is a thread already")
	w.drain()
	w.delivered(7, 2)
}

// The label a second time: the thread is taken on where nothing runs, and no second
// one begins.
func TestLabelledAgain(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	id, _ := w.only()
	out, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	if out.Thread != id || !out.Done {
		t.Errorf("the outcome is %+v", out)
	}
	w.drain()
	w.delivered(7, 2)
}

// Who starts over finds the pull request that there is already, in the comment and in the
// new pull request. Comments alone prove nothing: neither a copied marker, nor one of a
// thread about something else.
func TestStartedOver(t *testing.T) {
	w := newWorld(t)
	for _, n := range []int{7, 8} {
		_, err := w.run(aJob{ev: labeled(n), in: ci.Inputs{StepsPerJob: 5}})
		w.ok(err)
	}
	seven, eight := w.forge.pulls[0].Number, w.forge.pulls[1].Number
	w.forge.comments[7] = append(w.forge.comments[7],
		forge.Comment{ID: 900, Number: 7, Author: "stranger", Body: w.stickies(8)[0]}, forge.Comment{ID: 901, Number: 7, Author: "stranger", Body: report.Marker("01JD0000000000000000000001")})
	ev := labeled(7)
	ev.Subject.Quiet = false
	_, err := w.run(aJob{ev: ev})
	w.ok(err)
	if got := w.stickies(7); len(got) != 4 || !strings.Contains(got[3], fmt.Sprintf("an earlier thread led to pull request #%d", seven)) {
		t.Errorf("the comments are %q", got)
	}
	w.drain()
	last := w.forge.pulls[len(w.forge.pulls)-1]
	if len(w.forge.pulls) != 3 || !strings.Contains(last.Body, fmt.Sprintf("An earlier pull request for the same: #%d.", seven)) || strings.Contains(last.Body, fmt.Sprintf("#%d.", eight)) {
		t.Errorf("the pull request says %q", last.Body)
	}
	// An issue that nobody has commented on costs no call.
	before := len(w.forge.log)
	_, err = w.run(aJob{ev: labeled(9)})
	w.ok(err)
	if i := slices.Index(w.forge.log[before:], "comments"); i >= 0 && i < slices.Index(w.forge.log[before:], "create-comment") {
		t.Errorf("the calls are %v", w.forge.log[before:])
	}
}

// A job whose thread is over, run again, begins none.
func TestReRunAfterTheEnd(t *testing.T) {
	w := newWorld(t)
	for _, a := range []aJob{
		{run: "42", ev: labeled(7), in: ci.Inputs{StepsPerJob: 5}},
		{run: "43", ev: event.Event{Kind: event.Schedule}, in: ci.Inputs{StepsPerJob: 5, Prompt: "look around"}},
	} {
		_, err := w.run(a)
		w.ok(err)
		ended := len(w.ended())
		a.attempt = 2
		out, err := w.run(a)
		w.ok(err)
		if len(w.ended()) != ended || len(w.view().Threads()) != 0 || !out.Done {
			t.Errorf("the re-run did something: %+v", out)
		}
		// Labelled anew is another matter.
		a.run, a.attempt = a.run+"9", 1
		_, err = w.run(a)
		w.ok(err)
		if len(w.ended()) != ended+1 {
			t.Error("a new job began no thread")
		}
	}
}

// A command run again has been carried out: only what follows is done.
func TestReRunOfACommand(t *testing.T) {
	for _, point := range []string{"resume", "claim", "commit", "comment-updated", "dispatched"} {
		t.Run(point, func(t *testing.T) {
			w := newWorld(t)
			w.say = func(task task.Task) (map[string]any, map[string]string, error) {
				w.say = nil
				return map[string]any{"$status": "ask", "note": "?"}, nil, nil
			}
			_, err := w.run(aJob{ev: labeled(7)})
			w.ok(err)
			a := aJob{run: "77", ev: w.says(7, "owner", "/uwf resume yes")}
			if !w.killed(a, point, 1) {
				t.Fatal("the job was not killed")
			}
			a.attempt = 2
			_, err = w.run(a)
			w.ok(err)
			w.drain()
			w.delivered(7, 3)
			if len(w.replies(7)) != 0 {
				t.Errorf("answers: %q", w.replies(7))
			}
		})
	}
}

func TestNothingToResume(t *testing.T) {
	w := newWorld(t)
	w.command(7, "/uwf resume")
	w.replied(7, "no thread here")
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.forge.comments[7] = nil
	w.command(7, "/uwf resume")
	w.replied(7, "/uwf resume")
	w.command(8, "/uwf help")
	w.replied(8, "/uwf start")
}

func TestMisread(t *testing.T) {
	w := newWorld(t)
	ev := w.says(7, "owner", "/uwf start")
	ev.Command = nil
	a := aJob{ev: ev}
	_, err := w.runner(&a).AnswerBadCommand(t.Context(), ev, &event.CommandError{Msg: "`/uwf bgin` is not known"})
	w.ok(err)
	w.replied(7, "bgin")
	ev.CommentAuthor.Login, ev.Sender.Login = "reader", "reader"
	_, err = w.runner(&a).AnswerBadCommand(t.Context(), ev, &event.CommandError{Msg: "x"})
	w.ok(err)
	w.replied(7, "bgin")
}

// Limits of the configuration hold for threads of the action too.
func TestConfiguredLimit(t *testing.T) {
	w := newWorld(t)
	w.limits = moderator.Limits{MaxSteps: 1}
	_, err := w.run(aJob{run: "9", ev: labeled(7), in: ci.Inputs{StepsPerJob: 5}})
	if life.KindOf(err) != life.KindLimit {
		t.Errorf("the job ended with %v", err)
	}
	for what, again := range map[string]func(){
		"at once":          func() {},
		"as somebody asks": func() { w.command(7, "/uwf status") },
		"as the job is run again": func() {
			_, err := w.run(aJob{run: "9", attempt: 2, ev: labeled(7)})
			w.ok(err)
		},
	} {
		again()
		if said := w.stickies(7)[0]; !strings.Contains(said, "the limit on steps is reached") || strings.Contains(said, "has a question") {
			t.Errorf("%s: %.300s", what, said)
		}
	}
}

// Somebody cancels a thread while its agent works: the comment says that it is being
// stopped, and once the job has let go, that it is. What else takes a thread away says so
// itself.
func TestCancelTellsOfTheAgent(t *testing.T) {
	for _, verb := range []string{"cancel", "nothing"} {
		w := newWorld(t)
		_, err := w.run(aJob{ev: labeled(7)})
		w.ok(err)
		during := ""
		w.say = func(task.Task) (map[string]any, map[string]string, error) {
			if verb == "cancel" {
				w.command(7, "/uwf cancel")
			} else {
				w.suspend()
			}
			during = w.stickies(7)[0]
			return map[string]any{"$status": "approved"}, nil, nil
		}
		d, _ := w.forge.take()
		_, err = w.hop(d)
		w.ok(err)
		if got := w.stickies(7); (verb == "cancel") != strings.Contains(during, "owner**. The agent") || (verb == "cancel") != strings.Contains(got[0], "owner**. No agent") {
			t.Errorf("%s: while it worked: %.200s, then %.200s", verb, during, got[0])
		}
	}
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.command(7, "/uwf cancel")
	if got := w.stickies(7); !strings.Contains(got[0], "No agent works on this any more") {
		t.Errorf("where nobody works: %.200s", got[0])
	}
}

package runner

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// after is a job of a run that needs the one that did the step.
func (w *world) after(command, run string, ev event.Event, step ci.Needed) (ci.Outcome, error) {
	w.Helper()
	step.Name = "step"
	return w.run(aJob{run: run, ev: ev, in: ci.Inputs{Command: command, Needs: []ci.Needed{step}}})
}

var (
	dead    = ci.Needed{Result: "failure"}
	failed  = ci.Needed{Result: "failure", Ran: true}
	pushed  = ci.Needed{Result: "cancelled"} // out of its group's queue, or off its runner
	stopped = ci.Needed{Result: "cancelled", Ran: true}
)

// A job is killed at each point of its way: the rescue job of its run goes on at once, the
// thread ends as ever, and nothing that was committed is done again.
func TestRescue(t *testing.T) {
	for _, ev := range []string{"label", "hop", "delivery"} {
		for _, point := range []string{"started", "comment-created", "comment-updated", "claim", "commit", "dispatched", "deliver-claimed", "archive"} {
			t.Run(ev+"/"+point, func(t *testing.T) {
				w := newWorld(t)
				a := aJob{run: "42", ev: labeled(7)}
				if ev != "label" {
					_, err := w.run(aJob{ev: labeled(7)})
					w.ok(err)
					d, _ := w.forge.take()
					a.ev = manual(d)
				}
				if ev == "delivery" {
					a.in.StepsPerJob = 5
				}
				if !w.killed(a, point, 1) {
					t.Skip("the job doesn't come by there")
				}
				sent := len(w.forge.sent)
				_, err := w.after(ci.CommandRescue, "42", a.ev, dead)
				w.ok(err)
				if len(w.view().Threads()) > 0 && len(w.forge.sent) == 0 {
					t.Fatal("nothing was started")
				}
				for _, d := range w.forge.sent[sent:] {
					if d.inputs["rescued"] != "" && point != "started" && !strings.HasPrefix(point, "comment-") {
						t.Errorf("a job that left its traces is counted: %v", d.inputs)
					}
				}
				w.drain()
				w.delivered(7, 2)
				if n := len(w.ran); n > 3 || point == "commit" && n != 2 {
					t.Errorf("agents ran as %v", w.ran)
				}
			})
		}
	}
}

// A job is killed when its step is sealed and nothing of it is pushed: the rescue job brings
// it in, no agent works again, and the next job goes on from there.
func TestRescueBringsIn(t *testing.T) {
	w := newWorld(t)
	w.pending = t.TempDir()
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	d, _ := w.forge.take()
	if !w.killed(aJob{run: "42", ev: manual(d)}, "on-disk", 1) {
		t.Fatal("the job doesn't come by there")
	}
	_, err = w.after(ci.CommandRescue, "42", manual(d), dead)
	w.ok(err)
	if d, ok := w.forge.take(); !ok || d.inputs["rescued"] != "" || len(w.ran) != 2 {
		t.Errorf("dispatched %v, agents ran as %v", d.inputs, w.ran)
	} else if _, err := w.hop(d); err != nil {
		t.Error(err)
	}
	w.delivered(7, 2)
}

// A job that dies before it can leave a trace is taken up twice; then a person is asked.
func TestRescueGivesUp(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	for n := 1; n <= maxRescued; n++ {
		d, ok := w.forge.take()
		if !ok || n > 1 && d.inputs["rescued"] != fmt.Sprint(n-1) || n == 1 && d.inputs["rescued"] != "" {
			t.Fatalf("job %d was dispatched with %v", n, d.inputs)
		}
		_, err := w.after(ci.CommandRescue, fmt.Sprint(50+n), manual(d), dead)
		w.ok(err)
	}
	if _, e := w.only(); e.Status != gitcas.StatusSuspended || len(w.forge.sent) != 0 {
		t.Errorf("the entry is %+v, sent %v", e, w.forge.sent)
	}
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "died before they could begin") || !strings.Contains(got[0], "actions/runs/53") {
		t.Errorf("the comment says %q", got)
	}
	w.labeledOnly(7, effects.LabelFailed)
	w.command(7, "/uwf retry")
	w.drain()
	w.delivered(7, 2)
}

// A rescue job that is run again finds the attempt that it made of the dead job's claim: the
// job left its trace.
func TestRescueAgain(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	d, _ := w.forge.take()
	w.killed(aJob{run: "42", ev: manual(d)}, "claim", 1)
	for range 2 {
		_, err = w.after(ci.CommandRescue, "42", manual(d), dead)
		w.ok(err)
		if next, ok := w.forge.take(); !ok || next.inputs["rescued"] != "" {
			t.Errorf("dispatched %v", next.inputs)
		}
	}
	if _, e := w.only(); len(e.Attempts) != 1 {
		t.Errorf("the entry is %+v", e)
	}
	_, err = w.hop(d)
	w.ok(err)
	w.delivered(7, 2)
	if said := w.stickies(7)[0]; !strings.Contains(said, "approved, at the 2nd try (what a job that died used is not known)") {
		t.Errorf("the comment says %s", said)
	}
}

// A job is told to end while its agent works, and lives to keep what there is: its run takes
// the step up, a schedule does not.
func TestRescueInterrupted(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	d, _ := w.forge.take()
	ctx, cancel := context.WithCancel(w.Context())
	w.say = func(task.Task) (map[string]any, map[string]string, error) {
		cancel()
		return nil, nil, context.Canceled
	}
	a := aJob{run: "42", ev: manual(d)}
	if _, err := w.runner(&a).Run(ctx, a.ev); err == nil {
		t.Error("the job is green")
	}
	w.say = nil
	w.later(time.Hour)
	w.sweepRun()
	if len(w.forge.sent) != 0 {
		t.Errorf("the sweep took it up: %v", w.forge.sent)
	}
	_, err = w.after(ci.CommandRescue, "42", manual(d), ci.Needed{Result: "cancelled", Ran: true})
	w.ok(err)
	if len(w.forge.sent) != 1 || w.forge.sent[0].inputs["rescued"] != "" {
		t.Fatalf("sent %v", w.forge.sent)
	}
	w.drain()
	w.delivered(7, 2)
}

// What the next job is told of those that died it doesn't tell the one after it.
func TestRescuedIsForgotten(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	d, _ := w.forge.take()
	d.inputs["rescued"] = "2"
	w.limits.MaxStepsPerRole = 5
	w.say = func(task task.Task) (map[string]any, map[string]string, error) {
		return map[string]any{"$status": map[string]string{"a": "done", "b": "rejected"}[task.Role]}, nil, nil
	}
	_, err = w.hop(d)
	w.ok(err)
	if d, ok := w.forge.take(); !ok || d.inputs["rescued"] != "" {
		t.Errorf("dispatched with %v", d.inputs)
	}
}

// What is not this run's to take up, or did not die, is left alone.
func TestRescueLeavesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world, d dispatched)
		step   ci.Needed
		says   string
	}{
		"nothing died":         {step: ci.Needed{Result: "success", Ran: true}, says: "no job of this run died"},
		"never got a runner":   {step: pushed, says: "never got a runner"},
		"failed, and said so":  {before: func(w *world, d dispatched) { w.say = fails; _, _ = w.run(aJob{run: "42", ev: manual(d)}) }, step: failed, says: "/uwf retry"},
		"went on elsewhere":    {before: func(w *world, d dispatched) { w.say = asksOnce(); _, _ = w.hop(d) }, step: dead, says: "gone on without this run"},
		"another works on it":  {before: func(w *world, _ dispatched) { w.hold("", 0) }, step: dead, says: "another job works"},
		"waits for a person":   {before: func(w *world, _ dispatched) { w.suspend() }, step: dead, says: "waits for a person"},
		"it is over":           {before: func(w *world, _ dispatched) { w.command(7, "/uwf cancel") }, step: dead, says: "is over"},
		"stopped by a person":  {before: func(w *world, _ dispatched) { w.command(7, "/uwf cancel") }, step: stopped, says: "is over"},
		"started by a comment": {before: func(w *world, _ dispatched) { w.command(7, "/uwf cancel") }, step: dead, says: "is over"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.run(aJob{ev: labeled(7)})
			w.ok(err)
			d, _ := w.forge.take()
			if c.before != nil {
				c.before(w, d)
			}
			w.forge.sent = nil
			out, err := w.after(ci.CommandRescue, "42", manual(d), c.step)
			w.ok(err)
			if len(w.forge.sent) != 0 || !strings.Contains(out.Notice, c.says) {
				t.Errorf("%q, sent %v", out.Notice, w.forge.sent)
			}
		})
	}
}

// asksOnce is an agent that goes on: the reviewer sends the work back.
func asksOnce() func(task.Task) (map[string]any, map[string]string, error) {
	return func(task task.Task) (map[string]any, map[string]string, error) {
		return map[string]any{"$status": map[string]string{"a": "done", "b": "rejected"}[task.Role]}, nil, nil
	}
}

// suspend makes the one thread wait.
func (w *world) suspend() {
	w.Helper()
	id, _ := w.only()
	a := aJob{}
	w.ok(w.runner(&a).Engine.Suspend(w.Context(), id, "later"))
}

// notes are the comments on an issue that are no thread's.
func (w *world) notes(n int) (out []string) {
	for _, c := range w.forge.comments[n] {
		if _, ok := report.FindMarker(c.Body); !ok {
			out = append(out, c.Body)
		}
	}
	return out
}

// A first job dies before its thread exists: the rescue job of its run starts the thread, and the
// first step's job knows that one died.
func TestRescueStarts(t *testing.T) {
	assigned := func(w *world) event.Event {
		ev := labeled(7)
		ev.Kind, ev.Action, ev.Added, ev.Assignee = event.Assigned, "assigned", nil, "uwf-bot"
		return ev
	}
	for name, make := range map[string]func(w *world) event.Event{
		"label": func(*world) event.Event { return labeled(7) }, "assignment": assigned,
		"command": func(w *world) event.Event { return w.says(7, "owner", "/uwf start") },
	} {
		for _, step := range []ci.Needed{dead, failed} {
			t.Run(fmt.Sprint(name, step.Ran), func(t *testing.T) {
				w := newWorld(t)
				ev := make(w)
				out, err := w.after(ci.CommandRescue, "42", ev, step)
				w.ok(err)
				if len(w.forge.sent) != 1 || w.forge.sent[0].inputs["rescued"] != "1" || len(w.ran) != 0 || len(w.stickies(7)) != 1 {
					t.Fatalf("%q, sent %v, ran %v, comments %v", out.Notice, w.forge.sent, w.ran, w.forge.comments)
				}
				_, err = w.after(ci.CommandRescue, "42", ev, step) // run again
				w.ok(err)
				w.drain()
				w.delivered(7, 2)
				_, err = w.after(ci.CommandRescue, "42", ev, step) // and late
				w.ok(err)
				w.drain()
				w.delivered(7, 2)
			})
		}
	}
}

// What the first job would not have started, the rescue job doesn't either; what can't be started is
// told on the issue, once for a run.
func TestRescueStartsNot(t *testing.T) {
	broken := &workflow.InvalidError{Problems: []workflow.Problem{{Message: "it is wrong"}}}
	for name, c := range map[string]struct {
		before func(w *world, ev *event.Event)
		in     ci.Inputs
		notes  int
		says   string
	}{
		"a reader's label": {before: func(_ *world, ev *event.Event) { ev.Sender = event.User{Login: "reader", ID: userID("reader")} }},
		"nobody knows": {before: func(w *world, ev *event.Event) {
			w.forge.flavour, ev.Sender = forge.Gitea, event.User{Login: "anne", ID: 3}
			w.forge.perms["anne"] = forge.Unknown
		}, notes: 1, says: "name them in the input allow"},
		"another label":       {before: func(_ *world, ev *event.Event) { ev.Added = []string{"bug"} }},
		"a broken definition": {before: func(w *world, _ *event.Event) { w.resolve = broken }, notes: 1, says: "it is wrong"},
		"told before": {before: func(w *world, ev *event.Event) {
			w.resolve = broken
			_, _ = w.run(aJob{run: "42", ev: *ev})
			w.resolve = nil
		}, notes: 1, says: "it is wrong"},
		"the store is away":    {before: func(w *world, _ *event.Event) { w.remote = awayRemote{w.remote} }, notes: 1, says: "take the label off and put it on again"},
		"an input is computed": {in: ci.Inputs{Unread: "workflow"}, notes: 1, says: "lacks the input workflow"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ev := labeled(7)
			if c.before != nil {
				c.before(w, &ev)
			}
			for range 2 {
				in := c.in
				in.Command, in.Needs = ci.CommandRescue, []ci.Needed{{Name: "step", Result: "failure", Ran: true}}
				_, err := w.run(aJob{run: "42", ev: ev, in: in})
				if err != nil && c.notes == 0 {
					t.Error(err)
				}
			}
			if got := w.notes(7); len(got) != c.notes || c.notes > 0 && !strings.Contains(got[0], c.says) || len(w.forge.sent) != 0 || len(w.stickies(7)) != 0 {
				t.Errorf("notes %q, sent %v", got, w.forge.sent)
			}
			if got := w.notes(7); strings.Contains(name, "away") && !strings.Contains(got[0], "/actions/runs/42") {
				t.Errorf("the note doesn't lead to the run: %q", got)
			}
		})
	}
}

// awayRemote is a remote that nobody reaches.
type awayRemote struct{ wire.Remote }

func (awayRemote) List(context.Context, ...string) (wire.Listing, error) {
	return wire.Listing{}, &wire.RemoteError{Op: "list", Kind: wire.ErrUnreachable}
}

// A job for a command dies before it can obey: the rescue job does, once, and only for who may.
func TestRescueObeys(t *testing.T) {
	asks := func(w *world) {
		w.say = func(k task.Task) (map[string]any, map[string]string, error) {
			w.say = nil
			return map[string]any{"$status": "ask", "note": "Which one?"}, nil, nil
		}
	}
	breaks := func(w *world) {
		w.say = func(task.Task) (map[string]any, map[string]string, error) {
			w.say = nil
			return fails(task.Task{})
		}
	}
	for verb, before := range map[string]func(*world){"/uwf resume\nThe first.": asks, "/uwf retry": breaks} {
		for _, who := range []string{"owner", "reader"} {
			t.Run(verb+who, func(t *testing.T) {
				w := newWorld(t)
				before(w)
				_, _ = w.run(aJob{ev: labeled(7)})
				w.forge.sent = nil
				ev := w.says(7, who, verb)
				_, err := w.after(ci.CommandRescue, "42", ev, dead)
				w.ok(err)
				if who == "reader" {
					if len(w.forge.sent) != 0 {
						t.Errorf("a reader was obeyed: %v", w.forge.sent)
					}
					return
				}
				if len(w.forge.sent) != 1 || w.forge.sent[0].inputs["rescued"] != "1" {
					t.Fatalf("sent %v", w.forge.sent)
				}
				w.drain()
				steps := map[bool]int{true: 3, false: 2}[strings.Contains(verb, "resume")]
				w.delivered(7, steps)
				_, err = w.after(ci.CommandRescue, "42", ev, dead)
				w.ok(err)
				w.drain()
				w.delivered(7, steps)
			})
		}
	}
}

// A label without a thread, and without a word of uwf, is told what to do by the schedule, once. A
// thread that is, or was, about the issue is enough.
func TestScheduleFindsLabels(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(1), in: ci.Inputs{StepsPerJob: 5}})
	w.ok(err)
	_, err = w.run(aJob{ev: labeled(2)})
	w.ok(err)
	w.forge.comments = map[int][]forge.Comment{4: {{ID: 1, Body: "<!-- uwf:reply=9 -->\nNo."}}}
	for n := 1; n <= 5; n++ {
		w.forge.issue(n).Labels, w.forge.issue(n).Updated = []string{"uwf"}, w.now()
	}
	w.sweepRun()
	if got := w.forge.comments[3]; len(got) != 0 {
		t.Errorf("a job that may be about to begin is taken for lost: %v", got)
	}
	w.later(2 * time.Hour)
	w.forge.issue(5).Updated = w.now()
	for range 3 {
		w.sweepRun()
	}
	for n := 1; n <= 5; n++ {
		if got := w.notes(n); n == 3 && (len(got) != 1 || !strings.Contains(got[0], "Take the label off and put it on again")) || n != 3 && n != 4 && len(got) != 0 {
			t.Errorf("#%d: %q", n, got)
		}
	}
	if _, err := w.run(aJob{ev: event.Event{Kind: event.Plain}}); err != nil || len(w.notes(3)) != 1 || len(w.notes(4)) != 1 {
		t.Errorf("%v, notes %q, %q", err, w.notes(3), w.notes(4))
	}
}

// A rescue job without a thread of its own dispatches none of others.
func TestRescueSweepsNothing(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.forge.sent = nil
	w.later(time.Hour)
	_, err = w.after(ci.CommandRescue, "42", event.Event{Kind: event.Plain}, dead)
	w.ok(err)
	if len(w.forge.sent) != 0 {
		t.Errorf("sent %v", w.forge.sent)
	}
}

// On Gitea a cancelled run's rescue is cancelled with it. The sweep asks, and lets the thread wait.
func TestCancelledOnGitea(t *testing.T) {
	for _, refused := range []bool{false, true} {
		w := newWorld(t)
		w.forge.flavour = forge.Gitea
		_, err := w.run(aJob{ev: labeled(7), in: ci.Inputs{Allow: []string{"owner"}}})
		w.ok(err)
		d, _ := w.forge.take()
		w.killed(aJob{run: "42", ev: manual(d)}, "agent", 1)
		w.forge.cancelled = []string{"42"}
		w.forge.before = func(op string) error {
			if op == "run" && refused {
				return fault(forge.ErrUnreachable, false)
			}
			return nil
		}
		w.later(7 * time.Hour)
		w.sweepRun()
		_, e := w.only()
		if refused {
			if len(w.forge.sent) != 1 {
				t.Errorf("nothing was started: %+v", e)
			}
			continue
		}
		if e.Status != gitcas.StatusSuspended || len(w.forge.sent) != 0 || !strings.Contains(w.stickies(7)[0], "cancelled on the Actions page: https://forge.example/o/r/actions/runs/42") {
			t.Errorf("the entry is %+v, sent %v, %s", e, w.forge.sent, w.stickies(7))
		}
		w.command(7, "/uwf resume")
		w.drain()
		w.delivered(7, 2)
	}
}

// A run whose event is about nothing.
func TestRescueOfNothing(t *testing.T) {
	for name, ev := range map[string]event.Event{"schedule": scheduled(), "prompt": {Kind: event.Plain}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			out, err := w.after(ci.CommandRescue, "42", ev, dead)
			w.ok(err)
			if len(w.forge.sent) != 0 || !strings.Contains(out.Notice, "no thread") {
				t.Errorf("%q, sent %v", out.Notice, w.forge.sent)
			}
		})
	}
}

// The thread of a prompt is found by its run; that of another run is not taken for it.
func TestRescueOfAPrompt(t *testing.T) {
	w := newWorld(t)
	prompt := aJob{run: "42", ev: event.Event{Kind: event.Plain, Sender: event.User{Login: "owner"}}, in: ci.Inputs{Prompt: "do it"}, job: ci.Job{Actor: "owner"}}
	w.killed(prompt, "claim", 1)
	_, err := w.after(ci.CommandRescue, "4", prompt.ev, dead)
	w.ok(err)
	if len(w.forge.sent) != 0 {
		t.Fatalf("sent %v", w.forge.sent)
	}
	_, err = w.after(ci.CommandRescue, "42", prompt.ev, dead)
	w.ok(err)
	w.drain()
	if got := w.ended(); len(got) != 1 || len(got[0].Steps) != 2 {
		t.Errorf("ended: %+v", got)
	}
}

// A person cancelled the run: the thread waits, and says who did it where that can be read.
// What gave way to another job of its group was cancelled by nobody.
func TestRunCancelled(t *testing.T) {
	const by, way = "The run was canceled by @alice.", "Canceling since a higher priority waiting request for 'uwf-7' exists"
	for name, c := range map[string]struct {
		notes  []string
		away   bool // nothing can be read
		killed bool // it had claimed the thread
		step   ci.Needed
		says   string // empty: nothing is done
	}{
		"by alice":                 {notes: []string{by, "The operation was canceled."}, step: stopped, killed: true, says: "cancelled by @alice on the Actions page"},
		"by a bot":                 {notes: []string{"The run was canceled by @a-b[bot]"}, step: stopped, says: "cancelled by @a-b[bot] on"},
		"before it had a runner":   {notes: []string{by}, step: pushed, says: "cancelled by @alice"},
		"nobody says":              {step: stopped, says: "cancelled on the Actions page: https://forge.example/o/r/actions/runs/42"},
		"the forge is away":        {away: true, step: stopped, says: "cancelled on the Actions page"},
		"killed, nobody says":      {step: pushed, killed: true, says: "cancelled on the Actions page"},
		"words that look like it":  {notes: []string{"error: The run was canceled by @eve."}, step: stopped, says: "cancelled on the Actions page"},
		"superseded":               {notes: []string{way}, step: pushed},
		"superseded while it ran":  {notes: []string{way}, step: stopped},
		"no runner, nobody says":   {step: pushed},
		"it was over by then":      {step: ci.Needed{Result: "success", Ran: true}},
		"the forge away, a runner": {away: true, step: pushed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.run(aJob{ev: labeled(7)})
			w.ok(err)
			d, _ := w.forge.take()
			if c.killed {
				w.killed(aJob{run: "42", ev: manual(d)}, "claim", 1)
			}
			w.forge.notes = c.notes
			w.forge.before = func(op string) error {
				if op == "job-notes" && c.away {
					return fault(forge.ErrUnreachable, false)
				}
				return nil
			}
			_, err = w.after(ci.CommandStopped, "42", manual(d), c.step)
			w.ok(err)
			_, e := w.only()
			if c.says == "" {
				if e.Status != gitcas.StatusActive {
					t.Errorf("the entry is %+v", e)
				}
				return
			}
			if e.Status != gitcas.StatusSuspended || !strings.Contains(e.Suspended.Reason, c.says) || len(w.forge.sent) != 0 {
				t.Errorf("the entry is %+v, %+v, sent %v", e, e.Suspended, w.forge.sent)
			}
			if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "Actions page") || strings.Contains(got[0], "Your answer") {
				t.Errorf("the comment says %q", got)
			}
			w.later(time.Hour)
			w.sweepRun()
			if len(w.forge.sent) != 0 {
				t.Errorf("the sweep took it up: %v", w.forge.sent)
			}
			w.command(7, "/uwf resume")
			w.drain()
			w.delivered(7, 2)
		})
	}
}

// Without what became of the jobs before it, such a job is wrong, and says so.
func TestRescueWithoutNeeds(t *testing.T) {
	w := newWorld(t)
	for _, command := range []string{ci.CommandRescue, ci.CommandStopped} {
		if _, err := w.run(aJob{ev: labeled(7), in: ci.Inputs{Command: command}}); codeOf(err) != 2 || !strings.Contains(err.Error(), "toJSON(needs)") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

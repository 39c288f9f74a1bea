package runner

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/runner/artifact"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
)

// twice is one run of the two-job set-up: the job that runs the agent, with nothing it
// could write to, then the one that writes, with no agent.
func (w *world) twice(run string, ev event.Event) (first, second error) {
	w.Helper()
	dir := filepath.Join(w.TempDir(), ".uwf-step")
	calls, refs := w.forge.Calls(), w.mem.Refs()
	w.wrap = artifact.Mirror
	_, first = w.run(aJob{run: run, ev: ev, in: Inputs{Command: CommandRun, Artifact: dir}})
	w.wrap = nil
	if w.forge.Calls() != calls || !maps.Equal(refs, w.mem.Refs()) {
		w.Errorf("the job that may not write did: %v", w.forge.log[calls:])
	}
	ran := len(w.ran)
	_, second = w.run(aJob{run: run + "-commit", ev: ev, in: Inputs{Command: CommandCommit, Artifact: dir}})
	if len(w.ran) != ran {
		w.Error("an agent ran in the job that writes")
	}
	return first, second
}

func (w *world) settleTwice() {
	w.Helper()
	for n := 0; n < 20; n++ {
		d, ok := w.forge.take()
		if !ok {
			return
		}
		first, second := w.twice("r"+d.inputs["head"], manual(d))
		w.ok(first)
		w.ok(second)
	}
}

// The whole way in the two-job set-up, with a question.
func TestTwoJobs(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	asked := false
	w.say = func(task thread.Task) (map[string]any, map[string]string, error) {
		if task.Role == "a" && !asked {
			asked = true
			return map[string]any{"$status": "ask", "note": "Which one?"}, nil, nil
		}
		return map[string]any{"$status": map[string]string{"a": "done", "b": "approved"}[task.Role]}, map[string]string{task.Role: "work\n"}, nil
	}
	first, second := w.twice("42", labeled(7))
	w.ok(first)
	w.ok(second)
	if len(w.forge.sent) != 1 || len(w.stickies(7)) != 1 || len(w.ran) != 0 {
		t.Fatalf("dispatched %v, comments %q, agents %v", w.forge.sent, w.stickies(7), w.ran)
	}
	w.settleTwice()
	w.labeledOnly(7, labelWaiting)
	first, second = w.twice("77", w.says(7, "owner", "/uwf resume the left"))
	w.ok(first)
	w.ok(second)
	w.settleTwice()
	e := w.delivered(7, 3)
	files, err := (&memFolder{w: w}).read(w.mem.Refs()["refs/heads/"+e.Work.Branch])
	w.ok(err)
	if files["a"] != "work\n" || files["b"] != "work\n" {
		t.Errorf("the work is %v", files)
	}
}

// An agent that fails in its own job is told of by the other.
func TestTwoJobsFailure(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	_, second := w.twice("42", labeled(7))
	w.ok(second)
	w.say = fails
	d, _ := w.forge.take()
	first, second := w.twice("43", manual(d))
	if CodeOf(first) != 1 || CodeOf(second) != 1 {
		t.Errorf("the jobs ended with %v and %v", first, second)
	}
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "no idea what to do") {
		t.Errorf("the comment says %q", got)
	}
	w.say = nil
	_, second = w.twice("44", w.says(7, "owner", "/uwf retry"))
	w.ok(second)
	w.settleTwice()
	w.delivered(7, 2)
}

// Where the agent's job dies, the job that writes leaves the step alone, and the run's
// rescue starts another one. A job that failed by itself has failed the step.
func TestTwoJobsRescue(t *testing.T) {
	for name, died := range map[string]bool{"died": true, "failed": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.disk = true
			_, second := w.twice("42", labeled(7))
			w.ok(second)
			d, _ := w.forge.take()
			needs := []Needed{{Name: "agent", Result: "failure", Ran: !died}}
			_, err := w.run(aJob{run: "43-commit", ev: manual(d), in: Inputs{Command: CommandCommit, Artifact: filepath.Join(t.TempDir(), ".uwf-step"), Needs: needs}})
			_, e := w.only()
			if (err == nil) != died || (len(e.Attempts) == 0) != died {
				t.Errorf("the job that writes ended with %v: %+v", err, e)
			}
			result := map[bool]string{true: "success", false: "failure"}[died]
			_, err = w.run(aJob{run: "43", ev: manual(d), in: Inputs{Command: CommandRescue, Needs: append(needs, Needed{Name: "commit", Result: result, Ran: true})}})
			w.ok(err)
			if (len(w.forge.sent) == 1) != died {
				t.Errorf("sent %v", w.forge.sent)
			}
			if died {
				w.settleTwice()
				w.delivered(7, 2)
			}
		})
	}
}

// A thread whose agent may still be at work in a job that can't claim it is left alone
// for longer.
func TestTwoJobsSweep(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	_, second := w.twice("42", labeled(7))
	w.ok(second)
	w.forge.sent = nil
	for _, c := range []struct {
		wait time.Duration
		want int
	}{{30 * time.Minute, 0}, {45 * time.Minute, 1}} {
		w.later(c.wait)
		_, second = w.twice("43", scheduled())
		w.ok(second)
		if len(w.forge.sent) != c.want {
			t.Errorf("%s later: dispatched %v", c.wait, w.forge.sent)
		}
	}
}

// Without an artifact, or with one of another thread, nothing is committed.
func TestTwoJobsWrongArtifact(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"none":    func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)) },
		"garbage": func(t *testing.T, dir string) { must(t, os.RemoveAll(dir)); write(t, dir, "artifact.json", "{]") },
		"of another thread": func(t *testing.T, dir string) {
			a, err := artifact.Read(dir)
			must(t, err)
			a.Thread = gitcas.ThreadID("01JY0000000000000000000000")
			must(t, artifact.Write(dir, a))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.disk = true
			_, second := w.twice("42", labeled(7))
			w.ok(second)
			d, _ := w.forge.take()
			dir := filepath.Join(t.TempDir(), ".uwf-step")
			w.wrap = artifact.Mirror
			_, err := w.run(aJob{run: "43", ev: manual(d), in: Inputs{Command: CommandRun, Artifact: dir}})
			w.ok(err)
			w.wrap = nil
			spoil(t, dir)
			_, err = w.run(aJob{run: "43-commit", ev: manual(d), in: Inputs{Command: CommandCommit, Artifact: dir}})
			if CodeOf(err) == 0 {
				t.Error("green")
			}
			if _, e := w.only(); !strings.HasPrefix(d.inputs["head"], string(e.Head)+"@sha256:") {
				t.Errorf("the thread moved to %s", e.Head)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

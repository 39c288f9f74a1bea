package runner

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/runner/event"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// agentJob is the job of the two-job set-up in which the agent runs, with nothing that it could
// write to. What it leaves is in the folder.
func (w *world) agentJob(run string, ev event.Event) (dir string, err error) {
	w.Helper()
	dir = filepath.Join(w.TempDir(), ".uwf-step")
	calls, refs := w.forge.Calls(), w.mem.Refs()
	w.wrap = WithoutPushes
	_, err = w.run(aJob{run: run, ev: ev, in: ci.Inputs{Command: ci.CommandRun, Artifact: dir}})
	w.wrap = nil
	if w.forge.Calls() != calls || !maps.Equal(refs, w.mem.Refs()) {
		w.Errorf("the job that may not write did: %v", w.forge.log[calls:])
	}
	return dir, err
}

// twice is one run of the two-job set-up: the job that runs the agent, with nothing it
// could write to, then the one that writes, with no agent.
func (w *world) twice(run string, ev event.Event) (first, second error) {
	w.Helper()
	dir, first := w.agentJob(run, ev)
	ran := len(w.ran)
	_, second = w.run(aJob{run: run + "-commit", ev: ev, in: ci.Inputs{Command: ci.CommandCommit, Artifact: dir}})
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
		first, second := w.twice("r"+d.inputs["head"][:13], manual(d))
		w.ok(first)
		w.ok(second)
	}
}

// The whole way in the two-job set-up, with a question.
func TestTwoJobs(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	asked := false
	w.say = func(task task.Task) (map[string]any, map[string]string, error) {
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
	w.labeledOnly(7, effects.LabelWaiting)
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
	if codeOf(first) != 1 || codeOf(second) != 1 {
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
			needs := []ci.Needed{{Name: "agent", Result: "failure", Ran: !died}}
			_, err := w.run(aJob{run: "43-commit", ev: manual(d), in: ci.Inputs{Command: ci.CommandCommit, Artifact: filepath.Join(t.TempDir(), ".uwf-step"), Needs: needs}})
			_, e := w.only()
			if (err == nil) != died || (len(e.Attempts) == 0) != died {
				t.Errorf("the job that writes ended with %v: %+v", err, e)
			}
			result := map[bool]string{true: "success", false: "failure"}[died]
			_, err = w.run(aJob{run: "43", ev: manual(d), in: ci.Inputs{Command: ci.CommandRescue, Needs: append(needs, ci.Needed{Name: "commit", Result: result, Ran: true})}})
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

// A thread whose jobs were started, and may still be at work, is left alone.
func TestTwoJobsSweep(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	_, second := w.twice("42", labeled(7))
	w.ok(second)
	w.forge.sent = nil
	for _, c := range []struct {
		wait time.Duration
		want int
	}{{30 * time.Minute, 0}, {5 * time.Hour, 0}, {time.Hour, 1}} { // agents have no time limit here: a claim lives for six hours
		w.later(c.wait)
		_, second = w.twice("43", scheduled())
		w.ok(second)
		if len(w.forge.sent) != c.want {
			t.Errorf("%s later: dispatched %v", c.wait, w.forge.sent)
		}
	}
}

// claimOf is the claim of a thread; nil: there is none.
func (w *world) claimOf(id gitcas.ThreadID) *gitcas.Held {
	w.Helper()
	if c, ok := w.view(id).FindClaim(id); ok {
		return &c
	}
	return nil
}

// The job that starts a run claims the thread for it; both jobs of the run own the claim, and
// nobody else gets in between. It goes out with the step before, and back with the step.
func TestTwoJobsClaim(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	_, second := w.twice("42", labeled(7))
	w.ok(second)
	id, _ := w.only()
	remote := &counted{Remote: w.mem}
	w.remote = remote
	for step := 1; step <= 2; step++ {
		d, ok := w.forge.take()
		c := w.claimOf(id)
		if !ok || c == nil || !c.Ahead || c.Nonce != d.inputs["claim"] || !strings.HasPrefix(d.inputs["head"], string(c.Head)) {
			t.Fatalf("step %d: dispatched %v, the claim is %+v", step, d.inputs, c)
		}
		if _, err := w.run(aJob{ev: manual(dispatched{inputs: map[string]string{"thread": string(id)}})}); err != nil || len(w.ran) != step-1 {
			t.Fatalf("somebody else's job: %v, agents ran as %v", err, w.ran)
		}
		if _, second := w.twice("45", labeled(7)); second != nil || len(w.forge.sent) != 0 {
			t.Fatalf("another label: %v, sent %v", second, w.forge.sent)
		}
		remote.pushes = 0
		first, second := w.twice(fmt.Sprint(50+step), manual(d))
		w.ok(first)
		w.ok(second)
		if step == 1 && remote.pushes != 1 {
			t.Errorf("the step and the claim of the next one took %d pushes", remote.pushes)
		}
		if step == 1 && w.claimOf(id).Run != "51-commit" {
			t.Errorf("the claim is %+v", w.claimOf(id))
		}
	}
	w.delivered(7, 2)
}

// A start that the forge refuses leaves no claim behind, and one whose answer was lost none
// either: the thread is claimed by whoever comes.
func TestTwoJobsNotStarted(t *testing.T) {
	for name, refusal := range map[string]error{
		"refused": &forge.CallError{Kind: forge.ErrForbidden, Status: 403, Message: "Resource not accessible by integration"},
		"held up": &forge.CallError{Kind: forge.ErrUnreachable, Status: 503},
	} {
		for _, after := range []string{"start", "step"} {
			t.Run(name+"/"+after, func(t *testing.T) {
				w := newWorld(t)
				w.disk = true
				refuse := func() {
					w.forge.before = func(op string) error {
						if op == "dispatch" {
							return refusal
						}
						return nil
					}
				}
				var err error
				if after == "start" {
					refuse()
					_, err = w.twice("42", labeled(7))
				} else {
					_, err = w.twice("42", labeled(7))
					w.ok(err)
					d, _ := w.forge.take()
					refuse()
					_, err = w.twice("43", manual(d))
				}
				id, e := w.only()
				if c := w.claimOf(id); c != nil {
					t.Errorf("the claim %+v is left", c)
				}
				if suspended := e.Status == gitcas.StatusSuspended; suspended != (name == "refused") || suspended != (err != nil) {
					t.Errorf("the job ended with %v: %+v", err, e)
				}
			})
		}
	}
}

// The job that writes is killed at each point of its way: the rescue job of its run goes on
// at once, under a claim of its own, and what was committed is not done again. The jobs that
// were started before their starter died give way to those of the rescue.
func TestTwoJobsKilled(t *testing.T) {
	// The points that each job comes by: that of the label, of the first and of the last step.
	for before, points := range [][]string{
		{"started", "claim", "comment-created", "dispatched"},
		{"comment-updated", "commit", "dispatched"},
		{"comment-updated", "commit", "claim", "deliver-claimed"},
	} {
		for _, point := range points {
			t.Run(fmt.Sprintf("%d/%s", before, point), func(t *testing.T) {
				w := newWorld(t)
				w.disk = true
				ev := labeled(7)
				for n := range before {
					_, second := w.twice(fmt.Sprint(30+n), ev)
					w.ok(second)
					d, _ := w.forge.take()
					ev = manual(d)
				}
				dir, err := w.agentJob("42", ev)
				w.ok(err)
				needs := []ci.Needed{{Name: "agent", Result: "success", Ran: true}}
				if !w.killed(aJob{run: "42", ev: ev, in: ci.Inputs{Command: ci.CommandCommit, Artifact: dir, Needs: needs}}, point, 1) {
					t.Fatal("the job doesn't come by there")
				}
				old, _ := w.forge.take()
				_, err = w.run(aJob{run: "42", ev: ev, in: ci.Inputs{Command: ci.CommandRescue, Needs: append(needs, ci.Needed{Name: "after", Result: "failure"})}})
				w.ok(err)
				if old.inputs != nil && len(w.forge.sent) == 1 { // both runs are there
					ran := len(w.ran)
					first, second := w.twice("43", manual(old))
					w.ok(first)
					w.ok(second)
					if len(w.ran) != ran {
						t.Error("an agent ran without the claim that it was started with")
					}
				}
				w.settleTwice()
				w.delivered(7, 2)
				// What was not committed yet is done again.
				want := 2
				if point == "comment-updated" {
					want = 3
				}
				if len(w.ran) != want {
					t.Errorf("agents ran as %v, want %d", w.ran, want)
				}
			})
		}
	}
}

// A person cancels the run while its agent works: the thread waits, unclaimed.
func TestTwoJobsStopped(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	_, second := w.twice("42", labeled(7))
	w.ok(second)
	d, _ := w.forge.take()
	_, err := w.run(aJob{run: "43", ev: manual(d), in: ci.Inputs{Command: ci.CommandStopped, Needs: []ci.Needed{{Name: "agent", Result: "cancelled"}, {Name: "commit", Result: "skipped"}}}})
	w.ok(err)
	id, e := w.only()
	if c := w.claimOf(id); c != nil || e.Status != gitcas.StatusSuspended || len(w.forge.sent) != 0 {
		t.Errorf("the claim is %+v, the entry %+v, sent %v", c, e, w.forge.sent)
	}
	_, second = w.twice("44", w.says(7, "owner", "/uwf retry"))
	w.ok(second)
	w.settleTwice()
	w.delivered(7, 2)
}

// The job that writes is killed when the step is sealed and not pushed: the rescue job brings it
// in, and what the agent's job might have used is not charged besides.
func TestTwoJobsBringIn(t *testing.T) {
	w := newWorld(t)
	w.disk, w.pending = true, t.TempDir()
	w.limits.Tokens = 1000
	_, second := w.twice("42", labeled(7))
	w.ok(second)
	d, _ := w.forge.take()
	dir, err := w.agentJob("43", manual(d))
	w.ok(err)
	needs := []ci.Needed{{Name: "agent", Result: "success", Ran: true}}
	if !w.killed(aJob{run: "43", ev: manual(d), in: ci.Inputs{Command: ci.CommandCommit, Artifact: dir, Needs: needs}}, "on-disk", 1) {
		t.Fatal("the job doesn't come by there")
	}
	_, err = w.run(aJob{run: "43", ev: manual(d), in: ci.Inputs{Command: ci.CommandRescue, Needs: append(needs, ci.Needed{Name: "after", Result: "failure"})}})
	w.ok(err)
	id, _ := w.only()
	if w.steps(id) != 1 || len(w.ran) != 1 || len(w.forge.sent) != 1 || w.forge.sent[0].inputs["claim"] == "" {
		t.Errorf("%d steps, agents ran as %v, sent %v", w.steps(id), w.ran, w.forge.sent)
	}
	w.settleTwice()
	w.delivered(7, 2)
}

// Without an artifact, or with one of another thread, nothing is committed.
func TestTwoJobsWrongArtifact(t *testing.T) {
	for name, spoil := range map[string]func(w *world, f *unpushed.Folder, left unpushed.Step){
		"none": func(w *world, f *unpushed.Folder, _ unpushed.Step) { w.ok(os.RemoveAll(f.Dir)) },
		"garbage": func(w *world, f *unpushed.Folder, left unpushed.Step) {
			w.ok(os.WriteFile(f.Path(left.Store, left.Thread, left.Nonce), []byte("{]"), 0o600))
		},
		"of another thread": func(w *world, f *unpushed.Folder, left unpushed.Step) {
			w.ok(f.Clear(left.Store))
			left.Thread = "01JY0000000000000000000000"
			w.ok(f.Write(left))
		},
		"of another store": func(w *world, f *unpushed.Folder, left unpushed.Step) {
			w.ok(f.Clear(left.Store))
			left.Store = "fedcba9876543210"
			w.ok(f.Write(left))
		},
		"a link to it": func(w *world, f *unpushed.Folder, left unpushed.Step) {
			path, outside := f.Path(left.Store, left.Thread, left.Nonce), filepath.Join(w.TempDir(), "outside")
			w.ok(os.Rename(path, outside))
			w.ok(os.Symlink(outside, path))
		},
		"a link to its folder": func(w *world, f *unpushed.Folder, _ unpushed.Step) {
			outside := filepath.Join(w.TempDir(), "outside")
			w.ok(os.Rename(f.Dir, outside))
			w.ok(os.Symlink(outside, f.Dir))
		},
		"too large": func(w *world, f *unpushed.Folder, left unpushed.Step) {
			w.ok(os.Truncate(f.Path(left.Store, left.Thread, left.Nonce), unpushed.MaxFile+1))
		},
		"of another step": func(w *world, f *unpushed.Folder, left unpushed.Step) {
			left.Entry.Head = left.Handle
			w.ok(f.Write(left))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.disk = true
			_, second := w.twice("42", labeled(7))
			w.ok(second)
			d, _ := w.forge.take()
			dir, err := w.agentJob("43", manual(d))
			w.ok(err)
			f := &unpushed.Folder{Dir: dir}
			id, _ := w.only()
			left, err := f.Read(w.view().StoreID(), id)
			w.ok(err)
			spoil(w, f, left)
			_, err = w.run(aJob{run: "43-commit", ev: manual(d), in: ci.Inputs{Command: ci.CommandCommit, Artifact: dir}})
			if codeOf(err) == 0 {
				t.Error("green")
			}
			if _, e := w.only(); !strings.HasPrefix(d.inputs["head"], string(e.Head)+"@sha256:") {
				t.Errorf("the thread moved to %s", e.Head)
			}
		})
	}
}

// The job that runs agents may have a token that can change workflow files, and the one that
// commits none: it finds that before a push is refused which could not even keep the failure.
func TestTwoJobsWorkflowFiles(t *testing.T) {
	w := newWorld(t)
	w.disk = true
	_, second := w.twice("42", labeled(7))
	w.ok(second)
	d, _ := w.forge.take()
	w.say = func(task.Task) (map[string]any, map[string]string, error) {
		return map[string]any{"$status": "done"}, map[string]string{".github/workflows/ci.yml": "on: push\n"}, nil
	}
	dir := filepath.Join(t.TempDir(), ".uwf-step")
	for _, command := range []string{ci.CommandRun, ci.CommandCommit} {
		a := aJob{run: "43-" + command, ev: manual(d), in: ci.Inputs{Command: command, Artifact: dir}}
		a.job.WorkflowFiles = command == ci.CommandRun
		_, err := w.run(a)
		if (err != nil) != (command == ci.CommandCommit) || err != nil && !strings.Contains(err.Error(), "the agent changed .github/workflows/ci.yml") {
			t.Fatalf("%s: %v", command, err)
		}
	}
	if id, e := w.only(); w.steps(id) != 0 || len(e.Attempts) != 1 || !strings.Contains(w.stickies(7)[0], "Have the roles leave them alone") {
		t.Errorf("%+v: %s", e, w.stickies(7)[0])
	}
}

// Nothing can be pushed to the remote of the job that runs agents, whatever its token could.
func TestWithoutPushes(t *testing.T) {
	w := newWorld(t)
	refs := w.mem.Refs()
	remote := WithoutPushes(w.mem)
	_, err := remote.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/main", Old: refs["refs/heads/main"]}}})
	if !errors.Is(err, wire.ErrDenied) || !maps.Equal(refs, w.mem.Refs()) {
		t.Errorf("%v: %v", err, w.mem.Refs())
	}
	if l, err := remote.List(t.Context(), "refs/"); err != nil || !maps.Equal(l.Refs, refs) {
		t.Errorf("it lists %v: %v", l.Refs, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

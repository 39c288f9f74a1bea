package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/engine/runner/effects"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// died is a job that was killed.
type died struct{ point string }

// mortal is the remote of a job that may die: nothing that it does after that arrives.
type mortal struct {
	wire.Remote
	dead bool
}

var errKilled = &wire.RemoteError{Op: "request", Kind: wire.ErrDenied, Detail: "the job was killed"}

func (m *mortal) List(ctx context.Context, prefixes ...string) (wire.Listing, error) {
	if m.dead {
		return wire.Listing{}, errKilled
	}
	return m.Remote.List(ctx, prefixes...)
}

func (m *mortal) Push(ctx context.Context, req wire.PushRequest) (time.Time, error) {
	if m.dead {
		return time.Time{}, errKilled
	}
	return m.Remote.Push(ctx, req)
}

// killed runs a job that dies at the nth time that it comes to a point, and reports
// whether it did.
func (w *world) killed(a aJob, point string, nth int) (gone bool) {
	w.Helper()
	seen := 0
	remote := &mortal{Remote: w.remote}
	w.remote = remote
	w.hook = func(p string) {
		if p == point {
			if seen++; seen == nth {
				remote.dead = true
				panic(died{p})
			}
		}
	}
	defer func() {
		w.hook, w.remote = nil, remote.Remote
		if r := recover(); r != nil {
			if _, ok := r.(died); !ok {
				panic(r)
			}
			gone = true
		}
	}()
	_, _ = w.run(a)
	return false
}

// points are those that the jobs of a thread with two steps come to.
func points(t *testing.T) (first, last []string) {
	t.Helper()
	w := newWorld(t)
	w.hook = func(p string) { first = append(first, p) }
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.hook = func(p string) { last = append(last, p) }
	d, _ := w.forge.take()
	_, err = w.hop(d)
	w.ok(err)
	return slices.Compact(first), slices.Compact(last)
}

// A kill at every point, made up for by a re-run of the job or by the sweep: the same
// end, with one pull request, one comment and one chain.
func TestKilledAnywhere(t *testing.T) {
	first, last := points(t)
	for _, p := range []string{"started", "comment-created", "commit", "dispatched"} {
		if !slices.Contains(first, p) {
			t.Errorf("the first job never comes to %q: %v", p, first)
		}
	}
	for _, p := range []string{"commit", "deliver-claimed", "pull-created", "comment-updated", "deliver-done", "delivered"} {
		if !slices.Contains(last, p) {
			t.Errorf("the last job never comes to %q: %v", p, last)
		}
	}
	for job, at := range map[string][]string{"first": first, "last": last} {
		count := map[string]int{}
		for _, point := range at {
			count[point]++
			nth := count[point]
			for _, how := range []string{"re-run", "sweep"} {
				t.Run(fmt.Sprintf("%s/%s.%d/%s", job, point, nth, how), func(t *testing.T) {
					killAt(t, job == "first", point, nth, how)
				})
			}
		}
	}
}

func killAt(t *testing.T, first bool, point string, nth int, how string) {
	w := newWorld(t)
	a := aJob{run: "42", ev: labeled(7)}
	if !first {
		_, err := w.run(aJob{ev: labeled(7)})
		w.ok(err)
		d, _ := w.forge.take()
		a.ev = manual(d)
	}
	if !w.killed(a, point, nth) {
		t.Fatalf("the job was not killed at %s", point)
	}
	switch {
	case how == "re-run":
		a.attempt = 2
		_, err := w.run(a)
		w.ok(err)
	case first && !slices.Contains(w.forge.log, "create-comment") && len(w.mem.Refs()) < 3:
		// Nothing is there yet that a sweep could find: people label again.
		_, err := w.run(aJob{ev: labeled(7)})
		w.ok(err)
	default:
		w.later(life.MaxClaim)
		w.sweepRun()
	}
	w.drain()
	if len(w.view().Threads()) > 0 { // the job for it may have died as well
		w.later(life.MaxClaim)
		w.sweepRun()
		w.drain()
	}
	w.delivered(7, 2)
}

// An answer that gets lost: what it was about is there, or is not.
func TestLostAnswers(t *testing.T) {
	for _, op := range []string{"create-comment", "create-pull", "dispatch", "update-comment", "comments", "update-pull"} {
		for _, there := range []bool{true, false} {
			for _, kind := range []error{forge.ErrUnreachable, forge.ErrLimited} {
				t.Run(fmt.Sprintf("%s/%v/%v", op, there, kind), func(t *testing.T) {
					w := newWorld(t)
					left := 1
					once := func(o string) error {
						if o != op || left == 0 {
							return nil
						}
						left--
						return fault(kind, there)
					}
					if there {
						w.forge.after = once
					} else {
						w.forge.before = once
					}
					_, _ = w.run(aJob{ev: labeled(7)})
					w.drain()
					for range 3 {
						if len(w.view().Threads()) == 0 {
							break
						}
						w.later(10 * time.Minute)
						w.sweepRun()
						w.drain()
					}
					w.delivered(7, 2)
					tip, _ := w.mem.Get(w.mem.Refs()[stateRef])
					archived, err := gitobj.DecodeCommit(tip.Data)
					w.ok(err)
					told, _ := w.mem.Get(archived.Parents[0])
					if want := fmt.Sprintf("\nUwf-Pull: %d forge.example/o/r/", w.ended()[0].PR); !strings.Contains(string(told.Data), want) {
						t.Errorf("the delivery is told by %q", told.Data)
					}
					if op == "create-pull" && strings.Contains(w.stickies(7)[0], "brought up to date") {
						t.Errorf("nobody was told of the pull request before: %s", w.stickies(7)[0])
					}
					if op != "update-pull" && left != 0 {
						t.Error("the fault never came")
					}
				})
			}
		}
	}
}

// sweepRun is a scheduled job.
func (w *world) sweepRun() {
	w.Helper()
	_, err := w.run(aJob{ev: scheduled()})
	w.ok(err)
}

// Two jobs for the same label, at the same time: one thread, one chain, one comment.
func TestDoubleStart(t *testing.T) {
	for _, where := range []string{"claim", "comment-created", "started"} {
		t.Run(where, func(t *testing.T) {
			w := newWorld(t)
			done := false
			w.hook = func(p string) {
				if p == where && !done {
					done = true
					_, err := w.run(aJob{ev: labeled(7)})
					if err != nil {
						t.Error(err)
					}
				}
			}
			_, err := w.run(aJob{ev: labeled(7)})
			w.ok(err)
			if !done {
				t.Fatal("there was no second job")
			}
			w.drain()
			w.delivered(7, 2)
			if len(w.ran) != 2 {
				t.Errorf("agents ran as %v", w.ran)
			}
		})
	}
}

// The comment was made twice, at the same time: the older one stays.
func TestSecondComment(t *testing.T) {
	w := newWorld(t)
	w.hook = func(p string) {
		if p == "claim" {
			id, _ := w.only()
			w.forge.lastID++
			w.forge.comments[7] = append(w.forge.comments[7], forge.Comment{ID: w.forge.lastID, Author: w.forge.author, Body: "<!-- uwf:thread=" + string(id) + " -->\nthe other"})
			w.hook = nil
		}
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	if c := w.forge.comments[7]; len(c) != 1 || strings.Contains(c[0].Body, "the other") {
		t.Fatalf("the comments are %+v", c)
	}
	if _, e := w.only(); e.Comment != w.forge.comments[7][0].ID {
		t.Errorf("comment %d is noted, %d stands there", e.Comment, w.forge.comments[7][0].ID)
	}
}

// Somebody copied the marker: their comment is left alone.
func TestCopiedMarker(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	id, _ := w.only()
	theirs := forge.Comment{ID: 1, Author: "stranger", Body: "<!-- uwf:thread=" + string(id) + " -->\nmine"}
	w.forge.comments[7] = append([]forge.Comment{theirs}, w.forge.comments[7]...)
	d, _ := w.forge.take()
	d.inputs["comment"] = "true" // lost
	w.forge.sent = append(w.forge.sent, d)
	w.drain()
	if c := w.forge.comments[7]; len(c) != 2 || c[0] != theirs {
		t.Errorf("the comments are %+v", c)
	}
}

// A comment that somebody deleted is written anew; one that can't be written at all
// keeps nothing from going on.
func TestDeletedComment(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.forge.comments[7] = nil
	w.drain()
	w.delivered(7, 2)
}

func TestLockedIssue(t *testing.T) {
	w := newWorld(t)
	w.forge.before = func(op string) error {
		if strings.Contains(op, "comment") {
			return &forge.CallError{Do: op, Kind: forge.ErrForbidden, Status: 403}
		}
		return nil
	}
	a := aJob{ev: labeled(7), out: &heard{}}
	_, err := w.run(a)
	w.ok(err)
	if len(a.out.warnings) == 0 {
		t.Error("nobody is told")
	}
	w.drain()
	if e := w.ended(); len(e) != 1 || len(w.forge.pulls) != 1 {
		t.Errorf("ended %v, pulls %v", e, w.forge.pulls)
	}
}

// A refused dispatch makes the thread wait, says why, and is no success.
func TestRefusedDispatch(t *testing.T) {
	for _, kind := range []error{forge.ErrForbidden, forge.ErrNotFound, forge.ErrInvalid} {
		t.Run(kind.Error(), func(t *testing.T) {
			w := newWorld(t)
			w.forge.before = func(op string) error {
				if op == "dispatch" {
					return &forge.CallError{Do: "dispatch uwf.yml", Kind: kind, Status: 403}
				}
				return nil
			}
			out, err := w.run(aJob{ev: labeled(7)})
			if codeOf(err) == 0 || out.Status != "suspended" {
				t.Errorf("green: %+v", out)
			}
			id, e := w.only()
			if e.Suspended == nil || !strings.Contains(e.Suspended.Reason, "could not be started") {
				t.Errorf("the entry is %+v", e)
			}
			if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "/uwf resume") {
				t.Errorf("the comment says %q", got)
			}
			if got := w.forge.issue(7).Labels; !slices.Contains(got, effects.LabelFailed) {
				t.Errorf("the labels are %v", got)
			}
			w.later(time.Hour)
			w.sweepRun()
			if len(w.forge.sent) != 0 {
				t.Error("the sweep took it up")
			}
			w.forge.before = nil
			_, err = w.run(aJob{ev: w.says(7, "owner", "/uwf retry")})
			w.ok(err)
			w.drain()
			if e := w.delivered(7, 2); e.Thread != id {
				t.Errorf("another thread ended: %v", e)
			}
		})
	}
}

// The default branch was renamed, and git has not heard of it.
func TestRenamedDefaultBranch(t *testing.T) {
	w := newWorld(t)
	w.branch("trunk", map[string]string{"README": "hello\n"})
	w.forge.repoBranch = "trunk"
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	if len(w.forge.sent) != 1 || w.forge.sent[0].ref != "trunk" {
		t.Errorf("dispatched %v", w.forge.sent)
	}
}

// The token may not open pull requests: a link, and how to allow it.
func TestNoPullRequestsAllowed(t *testing.T) {
	w := newWorld(t)
	w.forge.before = func(op string) error {
		if op == "create-pull" {
			return &forge.CallError{Do: op, Kind: forge.ErrForbidden, Status: 403}
		}
		return nil
	}
	_, err := w.run(aJob{ev: labeled(7)})
	w.ok(err)
	w.drain()
	if e := w.ended(); len(e) != 1 || e[0].PR != 0 {
		t.Errorf("ended %v", e)
	}
	if got := w.stickies(7); len(got) != 1 || !strings.Contains(got[0], "/compare/main...uwf/") || !strings.Contains(got[0], "Allow GitHub Actions to create") {
		t.Errorf("the comment says %q", got)
	}
}

func TestPullRequestOff(t *testing.T) {
	w := newWorld(t)
	in := ci.Inputs{PullRequest: ci.Wanted{Off: true}, Comment: ci.Wanted{Off: true}}
	_, err := w.run(aJob{ev: labeled(7), in: in})
	w.ok(err)
	if d := w.forge.sent[0].inputs; d["comment"] != "false" || d["pull-request"] != "false" {
		t.Errorf("dispatched %v", d)
	}
	w.drain()
	if len(w.ended()) != 1 || len(w.forge.pulls) != 0 || len(w.forge.comments[7]) != 0 {
		t.Errorf("pulls %v, comments %v", w.forge.pulls, w.forge.comments)
	}
}

func TestDrafts(t *testing.T) {
	w := newWorld(t)
	refused := 0
	w.forge.before = func(op string) error {
		if op == "create-pull" && refused == 0 {
			refused++
			return &forge.CallError{Do: op, Kind: forge.ErrInvalid, Status: 422, Message: "drafts are not supported"}
		}
		return nil
	}
	_, err := w.run(aJob{ev: labeled(7), in: ci.Inputs{Draft: true, StepsPerJob: 5}})
	w.ok(err)
	w.delivered(7, 2)
}

// A thread that goes on after its end updates its pull request.
func TestOnAfterTheEnd(t *testing.T) {
	w := newWorld(t)
	_, err := w.run(aJob{ev: labeled(7), in: ci.Inputs{StepsPerJob: 5}})
	w.ok(err)
	w.delivered(7, 2)
	pull := w.forge.pulls[0]
	pull.Body, _, _ = strings.Cut(pull.Body, "\n") // the marker alone
	old := pull.Body
	_, err = w.run(aJob{ev: w.says(7, "owner", "/uwf resume once more, please")})
	w.ok(err)
	w.drain()
	w.delivered(7, 3)
	if pull.Body == old || !pull.Open {
		t.Errorf("the pull request is %+v", pull)
	}
	pull.Open = false
	_, err = w.run(aJob{ev: w.says(7, "owner", "/uwf resume and again")})
	w.ok(err)
	w.drain()
	if len(w.forge.pulls) != 2 || !w.forge.pulls[1].Open {
		t.Errorf("the pull requests are %+v", w.forge.pulls)
	}
}

// The forge is away when the thread has ended: nothing is lost, and the sweep delivers.
func TestDeliveredLater(t *testing.T) {
	w := newWorld(t)
	w.forge.before = func(op string) error {
		if op == "create-pull" {
			return fault(forge.ErrUnreachable, false)
		}
		return nil
	}
	_, err := w.run(aJob{ev: labeled(7), in: ci.Inputs{StepsPerJob: 5}})
	var undelivered *life.DeedError
	if !errors.As(err, &undelivered) || codeOf(err) == 0 {
		t.Fatalf("the job ended with %v", err)
	}
	w.forge.before = nil
	w.later(10 * time.Minute)
	w.sweepRun()
	if w.drain() != 1 {
		t.Error("no job was started")
	}
	w.delivered(7, 2)
}

// Three deliveries that failed make the thread wait, until a person has it tried again.
func TestUndeliverable(t *testing.T) {
	w := newWorld(t)
	w.forge.before = func(op string) error {
		if op == "create-pull" {
			return fault(forge.ErrLimited, false)
		}
		return nil
	}
	_, err := w.run(aJob{ev: labeled(7), in: ci.Inputs{StepsPerJob: 5}})
	for range 2 {
		if codeOf(err) != 1 {
			t.Fatalf("the job ended with %v", err)
		}
		w.later(10 * time.Minute)
		w.sweepRun()
		d, ok := w.forge.take()
		if !ok {
			t.Fatal("the sweep left it alone")
		}
		_, err = w.hop(d)
	}
	w.labeledOnly(7, effects.LabelFailed)
	w.later(10 * time.Minute)
	w.sweepRun()
	if len(w.forge.sent) != 0 {
		t.Error("it is tried for ever")
	}
	w.forge.before = nil
	w.command(7, "/uwf retry")
	w.delivered(7, 2)
	w.labeledOnly(7)
}

// A push that GitHub refuses because of workflow files is explained.
func TestWorkflowRefusalIsExplained(t *testing.T) {
	err := &life.FailedError{Phase: "commit", Err: &wire.RemoteError{Op: "push", Kind: wire.ErrDenied, Detail: "refusing to allow a GitHub App to create or update workflow `.github/workflows/x.yml` without `workflows` permission"}}
	j := &steps{Effects: &effects.Effects{Forge: newFakeForge()}}
	if got := j.adviseOn(err, "active"); !strings.Contains(got, ".github/workflows") {
		t.Errorf("the advice is %q", got)
	}
}

// failsAfter changes a file and fails then.
type failsAfter struct{ file string }

func (f failsAfter) Run(context.Context, task.Task, *task.Meter) (task.Draft, error) {
	return task.Draft{}, errors.Join(errBroken, os.WriteFile(f.file, []byte("on: push"), 0o600))
}

var errBroken = errors.New("it broke")

// Workflow files are put back where the agent failed as well: its attempt is pushed too.
func TestWorkflowFilesOfAFailedAgent(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, ".github", "workflows"), 0o750))
	file := filepath.Join(dir, ".github", "workflows", "new.yml")
	j := &steps{Effects: &effects.Effects{Forge: &fakeForge{flavour: forge.GitHub}}}
	_, err := guardedAgent{failsAfter{file}, j}.Run(t.Context(), task.Task{Workspace: dir}, nil)
	if !errors.Is(err, errBroken) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Lstat(file); err == nil {
		t.Error("the change is still there")
	}
}

// Where the workflow files can't be remembered, no agent runs: what it does could not be
// pushed, or would change them unseen.
func TestWorkflowFilesUnreadable(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, ".github", "workflows"), 0o750))
	must(t, os.WriteFile(filepath.Join(dir, ".github", "workflows", "large.yml"), make([]byte, 2<<20), 0o600))
	j := &steps{Effects: &effects.Effects{Forge: &fakeForge{flavour: forge.GitHub}}}
	_, err := guardedAgent{failsAfter{filepath.Join(dir, "ran")}, j}.Run(t.Context(), task.Task{Workspace: dir, Agent: "x"}, nil)
	var failed *task.AgentError
	if !errors.As(err, &failed) || errors.Is(err, errBroken) || !strings.Contains(err.Error(), "large.yml has 2097152 bytes") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the agent ran")
	}
}

// The same for a job that does several steps.
func TestManyStepsKilled(t *testing.T) {
	a := aJob{run: "42", ev: labeled(7), in: ci.Inputs{StepsPerJob: 5}}
	var at []string
	w := newWorld(t)
	w.hook = func(p string) { at = append(at, p) }
	_, err := w.run(a)
	w.ok(err)
	count := map[string]int{}
	for _, point := range slices.Compact(at) {
		count[point]++
		nth := count[point]
		t.Run(fmt.Sprintf("%s.%d", point, nth), func(t *testing.T) {
			w := newWorld(t)
			if !w.killed(a, point, nth) {
				t.Fatal("the job was not killed")
			}
			again := a
			again.attempt = 2
			_, err := w.run(again)
			w.ok(err)
			w.drain()
			if len(w.view().Threads()) > 0 {
				w.later(life.MaxClaim)
				w.sweepRun()
				w.drain()
			}
			w.delivered(7, 2)
		})
	}
}

// A job that was killed after its second step is run again: it does none of them again, and
// starts the next job, as it would have.
func TestSeveralStepsAgain(t *testing.T) {
	w := newWorld(t)
	w.say = func(task task.Task) (map[string]any, map[string]string, error) {
		status := map[string]string{"a": "done", "b": "rejected"}[task.Role]
		if task.Step == 4 {
			status = "approved"
		}
		return map[string]any{"$status": status}, nil, nil
	}
	_, err := w.run(aJob{ev: labeled(8)}) // it makes the store
	w.ok(err)
	w.forge.sent = nil
	_, err = w.run(aJob{run: "41", ev: labeled(7)})
	w.ok(err)
	d, _ := w.forge.take()
	a := aJob{run: "42", ev: manual(d), in: ci.Inputs{StepsPerJob: 2}}
	id := gitcas.ThreadID(d.inputs["thread"])
	if !w.killed(a, "commit", 2) || w.steps(id) != 3 {
		t.Fatalf("%d steps", w.steps(id))
	}
	ran := len(w.ran)
	a.attempt = 2
	_, err = w.run(a)
	w.ok(err)
	if len(w.ran) != ran || w.steps(id) != 3 || len(w.forge.sent) != 1 {
		t.Errorf("agents ran as %v, %d steps, sent %v", w.ran[ran:], w.steps(id), w.forge.sent)
	}
}

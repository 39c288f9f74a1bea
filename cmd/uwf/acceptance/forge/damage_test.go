package forge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestThreadDamaged: what is stored of a thread can't be read any more. No job is started
// for it again and again: the first that can say so for good makes it wait.
func TestThreadDamaged(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"step", "delivery"} {
		c := newCI(t, ciOptions{})
		if at == "delivery" {
			c.with["steps-per-job"] = "9"
		}
		kill := map[string]string{"step": "UWF_TEST_KILL=dispatched", "delivery": "UWF_TEST_KILL=deliver-claimed"}[at]
		c.start(c.forge.PutLabel("alice", c.issue(), "uwf"), kill)
		id, entry := c.oneActive()
		c.forge.MustCommit(t, "uwf-state", "by hand", map[string]string{fmt.Sprintf("threads/%s/%s.json", id, entry["head"]): "{}"})
		c.forge.TakeDispatches()
		// A schedule starts its job, which is red; once something was written on top of the
		// damage it makes the thread wait, and no other job is started.
		for round, want := range []int{1, 1, 0} {
			c.later(7 * time.Hour) // no claim lives that long
			c.green(c.start(c.forge.Schedule("17 */2 * * *")))
			jobs := c.settle()
			if len(jobs) != want {
				t.Errorf("%s, round %d: %d jobs were started", at, round, len(jobs))
			}
			c.red(jobs...)
			c.git("update-ref", "refs/uwf/store", "uwf-state")
		}
		if _, entry := c.oneActive(); entry["status"] != "suspended" {
			t.Errorf("%s: the entry is %v", at, entry)
		}
	}
}

// oneActive is the one thread that is alive.
func (c *ci) oneActive() (id string, entry map[string]any) {
	c.Helper()
	all := c.active()
	if len(all) != 1 {
		c.Fatalf("alive: %v", all)
	}
	for id, one := range all {
		entry, _ = one.(map[string]any)
		return id, entry
	}
	return "", nil
}

// toMend is what a comment says to type, as a person copies it, for somebody who may push.
func (c *ci) toMend(comment string) string {
	c.Helper()
	_, rest, found := strings.Cut(comment, "Restore it:\n\n```sh\n")
	command, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		c.Fatalf("the comment has no command: %s", comment)
	}
	return strings.ReplaceAll(command, c.forge.CloneURL(), c.owned())
}

// TestBranchDamaged: the state branch is deleted, or set back, while threads run. The job,
// whatever brings it, is red, and the comment says what mends it: typed, that does.
func TestBranchDamaged(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		for name, damage := range map[string][]string{
			"deleted":  {"update-ref", "-d", "refs/heads/uwf-state"},
			"set back": {"update-ref", "refs/heads/uwf-state", "uwf-state^"},
		} {
			c := newCI(t, ciOptions{gitea: gitea})
			c.allow()
			n := c.issue()
			c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
			c.git(damage...)
			c.red(c.settle()...)
			said := c.sticky(n)
			if !strings.Contains(said.Body, "is damaged: nothing goes on until a person mends it") {
				t.Fatalf("%s: the comment says all is well: %s", name, said.Body)
			}
			// A schedule finds the same, and says nothing more; a person is answered.
			c.red(c.start(c.forge.Schedule("17 */2 * * *")))
			if now := c.sticky(n); len(now.Bodies) != len(said.Bodies) {
				t.Errorf("%s: the comment was written %d times, and is now %d", name, len(said.Bodies), len(now.Bodies))
			}
			before := len(c.own(n))
			c.red(c.start(c.forge.PostComment("alice", n, "/uwf retry")))
			if got := c.own(n); len(got) != before+1 || !strings.Contains(got[before], "Restore it:") {
				t.Errorf("%s: /uwf retry was answered with %q", name, got[before:])
			}
			s := c.newShell()
			s.runLine("git init -q mend && cd mend && " + c.toMend(said.Body))
			c.green(c.start(c.forge.PostComment("alice", n, "/uwf retry")))
			c.green(c.settle()...)
			c.solved(n, 3)
		}
	})
}

// TestBranchProtected: somebody protects the state branch while a thread runs, so that jobs
// can't push to it. The comment says so, and where that is set; so does a label.
func TestBranchProtected(t *testing.T) {
	t.Parallel()
	bothForges(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		c.allow()
		n := c.issue()
		c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
		c.forge.Protect("uwf-state", "update")
		c.red(c.settle()...)
		page := map[bool]string{false: "/settings/rules", true: "/settings/branches"}[gitea]
		for _, want := range []string{"Its result could not be stored.", "Let uwf push to uwf-state, uwf/** and refs/uwf/**", c.forge.Repository() + page, "git fetch origin refs/uwf/attempts/"} {
			if said := c.sticky(n).Body; !strings.Contains(said, want) {
				t.Errorf("the comment doesn't say %q: %s", want, said)
			}
		}
		other := c.issue()
		c.red(c.start(c.forge.PutLabel("alice", other, "uwf")))
		if got := c.own(other); len(got) != 1 || !strings.Contains(got[0], c.forge.Repository()+page) {
			t.Errorf("the label was answered with %q", got)
		}
	})
}

// TestUnpushed: a step that no push takes, neither as a step nor as an attempt, is left in
// the workspace, for the workflow to upload.
func TestUnpushed(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	c.forge.RefuseSecrets("Write one dash between two words.")
	n := c.issue()
	j := c.start(c.forge.PutLabel("alice", n, "uwf"))
	c.red(j)
	id, _ := c.oneActive()
	left, err := filepath.Glob(filepath.Join(j.dir, "work", ".uwf-pending", "*", "*"))
	c.check(err)
	if len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), id+".") {
		t.Fatalf("%q is left: %s", left, j)
	}
	if text := c.read(left[0]); !strings.Contains(text, "Write one dash between two words.") {
		t.Errorf("the step is not in it: %s", text)
	}
}

// TestBroughtIn: a job dies between sealing its step and pushing it. The rescue job of its
// run commits what it left, and no agent runs again.
func TestBroughtIn(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	n := c.issue()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	j := c.start(c.forge.Dispatched(c.forge.TakeDispatches()[0]), "UWF_TEST_KILL=on-disk")
	if !j.killed {
		t.Fatalf("it lives: %s", j)
	}
	left, err := filepath.Glob(filepath.Join(j.dir, "temp", "uwf-*", "home", "pending"))
	c.check(err)
	if len(left) != 1 {
		t.Fatalf("%q is left", left)
	}
	artifact := t.TempDir()
	c.check(os.CopyFS(filepath.Join(artifact, ".uwf-pending"), os.DirFS(left[0])))
	r := c.exec(&ciJob{c: c, event: j.event, name: "rescue", run: j.run, attempt: 1, brings: artifact, needs: `{"step": {"result": "failure", "outputs": {}}}`})
	c.green(r)
	if !strings.Contains(r.log, "is brought in; its agent does not run again") {
		t.Errorf("it says %s", r)
	}
	c.green(c.settle()...)
	c.solved(n, 3)
}

// TestJobDied: a job is killed while its agent works, and no job looks after its run. A
// schedule has another one do the step.
func TestJobDied(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	n := c.issue()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	sent := c.forge.TakeDispatches()
	if j := c.start(c.forge.Dispatched(sent[0]), "UWF_TEST_KILL=agent"); !j.killed {
		t.Fatalf("it lives: %s", j)
	}
	if said := c.sticky(n).Body; !strings.Contains(said, "is working on step 2") {
		t.Fatalf("before anybody looks the comment says %s", said)
	}
	c.later(7 * time.Hour)
	c.green(c.start(c.forge.Schedule("17 */2 * * *")))
	c.green(c.settle()...)
	c.solved(n, 3)
}

// TestRescued: a job is killed while its agent works. The job rescue of its run, with the
// rights and inputs of the shipped file, has another one do the step at once.
func TestRescued(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		c.allow()
		n := c.issue()
		died := "died"
		if gitea { // a job there may not ask which
			died = "died or was cancelled"
		}
		c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
		j := c.start(c.forge.Dispatched(c.forge.TakeDispatches()[0]), "UWF_TEST_KILL=agent")
		c.later(20 * time.Minute)
		c.green(c.exec(&ciJob{c: c, event: j.event, name: "rescue", run: j.run, attempt: 1, needs: `{"step": {"result": "failure", "outputs": {}}}`}))
		if said := c.sticky(n).Body; !strings.Contains(said, "The job for step 2 "+died+"; nothing was heard of it after") || !strings.Contains(said, "Another one is on its way.") {
			t.Errorf("the comment says %s", said)
		}
		c.green(c.settle()...)
		c.solved(n, 3)
	})
}

// TestFirstJobDied: the first job of an issue dies before uwf runs. The job rescue of its run, with
// the rights of the shipped file and the inputs of its job step, starts the thread.
func TestFirstJobDied(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		flow := strings.NewReplacer("# allow: alice bob", "allow: alice", "provider: openai\n", "provider: openai\n          label: agents\n          workflow: solve-issue\n").Replace(c.example("github/uwf.yml"))
		c.forge.MustCommit(t, c.forge.Branch(), "Another label", map[string]string{ciWorkflow: flow})
		n := c.issue()
		e := c.forge.PutLabel("alice", n, "agents")
		const died = `{"step": {"result": "failure", "outputs": {"ran": "true"}}}`
		c.green(c.exec(&ciJob{c: c, event: e, name: "rescue", run: c.runOf(e), attempt: 1, needs: died}))
		if sent := c.forge.Dispatches(); len(sent) != 1 || sent[0].Inputs["rescued"] != "1" {
			t.Fatalf("dispatched %+v, comments %q", sent, c.own(n))
		}
		c.green(c.settle()...)
		c.solved(n, 3)
		// What no run can tell, the schedule does.
		lost := c.issue()
		c.forge.PutLabel("alice", lost, "agents")
		c.forge.Advance(2 * time.Hour)
		c.later(2 * time.Hour)
		c.green(c.start(c.forge.Schedule("17 */2 * * *")))
		if got := c.own(lost); len(got) != 1 || !strings.Contains(got[0], "Take the label off and put it on again") {
			t.Errorf("the issue is told %q", got)
		}
	})
}

// TestRunCancelled: a person cancels a run on the Actions page. Its job stopped makes the
// thread wait, and says who it was.
func TestRunCancelled(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	n := c.issue()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	e := c.forge.Dispatched(c.forge.TakeDispatches()[0])
	run := c.runOf(e)
	c.forge.AddJob(itoa(int(run)), 1, "cancelled", "The run was canceled by @alice.")
	c.green(c.exec(&ciJob{c: c, event: e, name: "stopped", run: run, attempt: 1, needs: `{"step": {"result": "cancelled", "outputs": {}}}`}))
	if said := c.sticky(n).Body; !strings.Contains(said, "cancelled by @alice on the Actions page") && !strings.Contains(said, "cancelled by ＠alice on the Actions page") {
		t.Errorf("the comment says %s", said)
	}
	c.green(c.start(c.forge.PostComment("alice", n, "/uwf resume")))
	c.green(c.settle()...)
	c.solved(n, 3)
}

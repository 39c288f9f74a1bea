package forge

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestManyStepsAJob: one job does as many steps as it may, and starts no other.
func TestManyStepsAJob(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	c.with["steps-per-job"] = "10"
	n := c.issue()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	if sent := c.forge.TakeDispatches(); len(sent) != 0 {
		t.Errorf("jobs were started: %+v", sent)
	}
	c.solved(n, 3)
}

// TestRepositoryDispatch: the next job starts by an event instead of the workflow file.
func TestRepositoryDispatch(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	c.with["dispatch"] = "repository_dispatch"
	n := c.issue()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	jobs := c.settle()
	c.green(jobs...)
	if len(jobs) != 2 || jobs[0].event.Name != "repository_dispatch" {
		t.Errorf("%d jobs: %v", len(jobs), jobs)
	}
	c.solved(n, 3)
}

// TestDoubleStart: two labels and a command at the same time make one thread.
func TestDoubleStart(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		c.allow()
		n := c.issue()
		label := c.forge.PutLabel("alice", n, "uwf")
		c.crowd(3, label, label, c.forge.PostComment("alice", n, "/uwf start"))
		for range 3 { // who came too late to a step says so, and the sweep looks after the rest
			c.later(10 * time.Minute)
			c.green(c.start(c.forge.Schedule("17 */2 * * *")))
			c.green(c.settle()...)
		}
		c.green(c.jobs...)
		c.solved(n, 3)
		if got := c.sound(); len(got) != 1 {
			t.Errorf("threads: %v", got)
		}
	})
}

// TestDefaultBranchRenamed: the branch that the first job knew has another name by the
// time of the next.
func TestDefaultBranchRenamed(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	n := c.issue()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	c.git("branch", "-m", "main", "trunk")
	c.forge.SetDefaultBranch("trunk")
	sent := c.forge.TakeDispatches()
	if len(sent) != 1 {
		t.Fatalf("dispatches: %+v", sent)
	}
	c.green(c.start(c.forge.Dispatched(sent[0])))
	c.green(c.settle()...)
	c.solved(n, 3)
}

// writing is a script whose developer writes one more file.
func writing(name, text string) string {
	return strings.Replace(plainScript, "write: {", fmt.Sprintf("write: {%q: %q, ", name, text), 1)
}

// stuck checks a thread whose step can't be pushed: the job is red, people are told
// why, and what the agent made is kept.
func (c *ci) stuck(n int, words ...string) {
	c.Helper()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	jobs := c.settle()
	last := jobs[len(jobs)-1]
	c.red(last)
	if got := c.sound(); len(c.forge.Pulls()) != 0 || len(got) != 1 {
		c.Errorf("steps %v, pull requests %+v", got, c.forge.Pulls())
	}
	said := c.sticky(n).Body
	for _, want := range words {
		if !strings.Contains(said, want) {
			c.Errorf("the comment doesn't say %q:\n%s", want, said)
		}
	}
}

// TestWorkflowFileChanged: GitHub lets no job's token change workflow files. That is
// said before the push is refused.
func TestWorkflowFileChanged(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{script: writing(".github/workflows/more.yml", "on: push\n")})
	c.stuck(c.issue(), ".github/workflows")
}

// TestPushProtected: a push that the forge's push protection refuses.
func TestPushProtected(t *testing.T) {
	t.Parallel()
	const key = "not-a-known-kind-of-secret-4711"
	c := newCI(t, ciOptions{script: writing("keys.txt", key+"\n")})
	c.forge.RefuseSecrets(key + "\n")
	c.stuck(c.issue(), "GH013")
}

// TestStateBranchLocked: a rule against new branches is named, with what to do.
func TestStateBranchLocked(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	c.forge.Protect("uwf-state", "creation")
	j := c.start(c.forge.PutLabel("alice", c.issue(), "uwf"))
	c.red(j)
	if !strings.Contains(j.log, "uwf-state") || !strings.Contains(j.log, "rule") {
		t.Errorf("the job doesn't say which rule: %s", j)
	}
}

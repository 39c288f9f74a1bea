package forge

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/forgetest"
)

// pair runs an event's two jobs: the one in which the agent works, with a token that
// reads only, and the one that commits what it left.
func (c *ci) pair(e forgetest.Event) (agent, commit *ciJob) {
	c.Helper()
	run := c.runOf(e)
	agent = c.exec(&ciJob{c: c, event: e, name: "agent", run: run, attempt: 1})
	return agent, c.exec(&ciJob{c: c, event: e, name: "commit", run: run, attempt: 1, brings: c.carried(agent)})
}

// carried is what the forge's artifact brings from a job to the next: files as they
// are, in a folder of their own. Empty where the job left none.
func (c *ci) carried(j *ciJob) string {
	c.Helper()
	from := filepath.Join(j.dir, "work", ".uwf-step")
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	dir := c.TempDir()
	c.check(os.CopyFS(filepath.Join(dir, ".uwf-step"), os.DirFS(from)))
	return dir
}

// settlePairs runs what was dispatched, until nothing is left.
func (c *ci) settlePairs() (all []*ciJob) {
	c.Helper()
	for range maxJobs {
		sent := c.forge.TakeDispatches()
		if len(sent) == 0 {
			return all
		}
		for _, d := range sent {
			agent, commit := c.pair(c.forge.Dispatched(d))
			all = append(all, agent, commit)
		}
	}
	c.Fatal("the jobs come to no end")
	return nil
}

// TestTwoJobs: the job in which agents run holds a token that can change nothing, and
// asks the forge for no change; the job that commits holds no key of a model. The end
// is that of one job a step.
func TestTwoJobs(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea, script: askingScript, files: map[string]string{ciWorkflow: ""}})
		c.forge.MustCommit(t, c.forge.Branch(), "Two jobs", map[string]string{ciWorkflow: c.example("github/two-jobs.yml")})
		c.allow()
		n := c.issue()
		agent, commit := c.pair(c.forge.PutLabel("alice", n, "uwf"))
		c.green(agent, commit)
		c.green(c.settlePairs()...)
		if said := c.sticky(n).Body; !strings.Contains(said, "Does MaxLen count bytes?") {
			t.Errorf("nobody is asked: %s", said)
		}
		agent, commit = c.pair(c.forge.PostComment("alice", n, "/uwf resume\nYes, bytes."))
		c.green(agent, commit)
		c.green(c.settlePairs()...)
		c.solved(n, 4)
		c.readable()
		for _, j := range c.jobs {
			if key := c.inputs(j.name, "")["api-key"]; (key != "") != (j.name == "agent") {
				t.Errorf("job %s has the key %q", j.name, key)
			}
		}
	})
}

// TestTwoJobsHostile: an agent's job that was taken over can't make the other one do
// anything but a step: what it left is read like the answer of an agent.
func TestTwoJobsHostile(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{files: map[string]string{ciWorkflow: ""}})
	c.forge.MustCommit(t, c.forge.Branch(), "Two jobs", map[string]string{ciWorkflow: c.example("github/two-jobs.yml")})
	n := c.issue()
	agent, commit := c.pair(c.forge.PutLabel("alice", n, "uwf"))
	c.green(agent, commit)
	sent := c.forge.TakeDispatches()
	if len(sent) != 1 {
		t.Fatalf("dispatches: %+v", sent)
	}
	e := c.forge.Dispatched(sent[0])
	run := c.runOf(e)
	c.green(c.exec(&ciJob{c: c, event: e, name: "agent", run: run, attempt: 1}))
	dir := c.TempDir()
	from := filepath.Join(c.jobs[len(c.jobs)-1].dir, "work", ".uwf-step")
	c.check(os.CopyFS(filepath.Join(dir, ".uwf-step"), os.DirFS(from)))
	files := 0
	c.check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		return os.WriteFile(path, []byte(`{"thread": "../../../etc", "files": ["/etc/passwd", "../../x"]}`), 0o600)
	}))
	if files == 0 {
		t.Fatalf("the agent's job left nothing in %s", from)
	}
	j := c.exec(&ciJob{c: c, event: e, name: "commit", run: run, attempt: 1, brings: dir})
	c.red(j)
	for id, steps := range c.sound() {
		if steps != 0 {
			t.Errorf("thread %s has gone on by what an attacker wrote: %s", id, j)
		}
	}
}

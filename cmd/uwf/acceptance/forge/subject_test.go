package forge

import (
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/internal/forgetest"
)

// TestTitleKept: a title that Markdown would take for a link's definition is the task.
func TestTitleKept(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	n := c.forge.OpenIssue("alice", "[Bug]: Segfault", "")
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	for _, file := range strings.Fields(c.git("ls-tree", "-r", "--name-only", "uwf-state")) {
		if strings.HasSuffix(file, "00-task.md") && !strings.Contains(c.git("show", "uwf-state:"+file), "[Bug]: Segfault") {
			t.Errorf("the task is\n%s", c.git("show", "uwf-state:"+file))
		}
	}
}

// TestClosedIssue: nobody works for a closed issue, until a person says so; and nobody ever for
// a deleted one.
func TestClosedIssue(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		c.allow()
		idle := func(jobs []*ciJob) {
			t.Helper()
			c.green(jobs...)
			for _, j := range jobs {
				if strings.Contains(j.log, " works (player)") {
					t.Errorf("an agent works on: %s", j.log)
				}
			}
		}
		n := c.issue()
		c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
		c.later(time.Minute)
		c.forge.CloseIssue(n)
		c.later(time.Minute)
		idle(c.settle())
		if said := c.sticky(n).Body; !strings.Contains(said, "was closed") || strings.Contains(said, "question") {
			t.Errorf("the comment says %s", said)
		}
		c.green(c.start(c.forge.PostComment("alice", n, "/uwf resume")))
		c.green(c.settle()...)
		c.solved(n, 3)

		n = c.issue()
		c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
		c.forge.DeleteIssue(n)
		idle(c.settle())
		if len(c.active()) != 0 {
			t.Errorf("the thread is still there: %v", c.active())
		}
	})
}

// TestRebasedPull: a person rebases their pull request while the thread waits for an answer; and
// once more, squashed, when the thread has a commit on it.
func TestRebasedPull(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{script: askingScript})
	c.git("update-ref", "refs/heads/feature", c.forge.Branch())
	c.forge.MustCommit(t, "feature", "wip", map[string]string{"notes.md": "wip\n"})
	p := c.forge.OpenPull("alice", "Mine", "Please finish it", forgetest.Pull{Head: "feature"})
	rewrite := func(file string) {
		dir := c.checkout("feature")
		c.forge.MustCommit(t, c.forge.Branch(), "main moves", map[string]string{file: "x\n"})
		c.run(dir, "fetch", "-q")
		c.run(dir, "-c", "user.name=Alice", "-c", "user.email=alice@example.com", "rebase", "-q", "origin/main")
		c.run(dir, "-c", "user.name=Alice", "-c", "user.email=alice@example.com", "commit", "-q", "--amend", "-m", "reworded")
		c.run(dir, "push", "-q", "--force", "origin", "feature")
	}
	c.green(c.start(c.forge.PostComment("alice", p, "/uwf start solve-issue")))
	c.green(c.settle()...)
	rewrite("other.md")
	c.green(c.start(c.forge.PostComment("alice", p, "/uwf resume Bytes.")))
	rewrite("third.md")
	c.green(c.settle()...)
	if said := c.sticky(p).Body; !strings.Contains(said, "--take-branch") || strings.Contains(said, "question") {
		t.Fatalf("the comment says\n%s", said)
	}
	c.green(c.start(c.forge.PostComment("alice", p, "/uwf resume --take-branch")))
	c.green(c.settle()...)
	if len(c.ended()) != 1 {
		t.Errorf("the thread goes on for nobody: %v", c.active())
	}
	if log := c.git("log", "--format=%B", "uwf-state"); strings.Count(log, "Uwf-Took-Branch: feature at ") != 1 {
		t.Errorf("who took the branch is not on record:\n%s", log)
	}
}

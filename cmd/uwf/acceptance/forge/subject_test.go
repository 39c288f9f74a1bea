package forge

import (
	"strings"
	"testing"
	"time"
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

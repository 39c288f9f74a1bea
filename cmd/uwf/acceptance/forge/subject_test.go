package forge

import (
	"fmt"
	"os"
	"path/filepath"
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

// TestRebasedPull: a person rebases their pull request while a thread waits for an answer, and once
// more after the thread's first commit. The thread goes on by itself if the rebase left that commit
// as it was; if the person changed it, the thread waits for /uwf resume --take-branch.
func TestRebasedPull(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{script: askingScript})

	// rebase puts the branch feature on a newer main, and adds a text, if any, to its last commit.
	rebase := func(file, text string) {
		dir := c.checkout("feature")
		c.forge.MustCommit(t, c.forge.Branch(), "main moves", map[string]string{file: "x\n"})
		c.run(dir, "fetch", "-q")

		alice := []string{"-c", "user.name=Alice", "-c", "user.email=alice@example.com"}
		c.run(dir, append(alice, "rebase", "-q", "origin/main")...)
		if text != "" {
			if err := os.WriteFile(filepath.Join(dir, "slug", "doc.txt"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			c.run(dir, "add", "-A")
		}

		c.run(dir, append(alice, "commit", "-q", "--amend", "-m", "reworded")...)
		c.run(dir, "push", "-q", "--force", "origin", "feature")
	}

	for n, text := range []string{"", "changed\n"} {
		c.git("update-ref", "refs/heads/feature", c.forge.Branch())
		c.forge.MustCommit(t, "feature", "wip", map[string]string{"notes.md": "wip\n"})
		p := c.forge.OpenPull("alice", "Mine", "Please finish it", forgetest.Pull{Head: "feature"})
		c.green(c.start(c.forge.PostComment("alice", p, "/uwf start solve-issue")))
		c.green(c.settle()...)

		rebase(fmt.Sprintf("first%d.md", n), "")
		c.green(c.start(c.forge.PostComment("alice", p, "/uwf resume Bytes.")))
		rebase(fmt.Sprintf("second%d.md", n), text)
		c.green(c.settle()...)
		if text != "" {
			if said := c.sticky(p).Body; !strings.Contains(said, "--take-branch") || strings.Contains(said, "question") {
				t.Fatalf("the comment says\n%s", said)
			}
			c.green(c.start(c.forge.PostComment("alice", p, "/uwf resume --take-branch")))
			c.green(c.settle()...)
		}

		if len(c.ended()) != n+1 {
			t.Fatalf("the thread of %q goes on for nobody: %v", text, c.active())
		}
		if log := c.git("log", "--format=%B", "uwf-state"); strings.Count(log, "Uwf-Took-Branch: feature at ") != n {
			t.Errorf("who took the branch is not on record:\n%s", log)
		}
	}
}

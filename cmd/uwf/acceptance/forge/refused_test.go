package forge

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/internal/forgetest"
)

// untouched checks that nothing was started, and that the job says why in a line.
func (c *ci) untouched(j *ciJob, why string) {
	c.Helper()
	c.green(j)
	if _, err := c.forge.Git("rev-parse", "--verify", "--quiet", "uwf-state"); err == nil && len(c.active()) != 0 {
		c.Errorf("a thread was started: %v", c.active())
	}
	if !strings.Contains(j.log, "::notice") || !strings.Contains(j.log, why) {
		c.Errorf("the job should say %q in a notice: %s", why, j)
	}
}

// TestNotForUs: what must not start an agent doesn't, and is no failure.
func TestNotForUs(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		n := c.issue()
		c.forge.SetPermission("rita", "read")
		c.forge.SetPermission("tim", "triage") // who may put labels on
		for _, who := range []string{"eve", "rita", "tim", "dependabot[bot]"} {
			c.untouched(c.start(c.forge.PutLabel(who, n, "uwf")), who)
		}
		c.untouched(c.start(c.forge.PostComment("eve", n, "/uwf start")), "eve")
		c.untouched(c.start(c.forge.PutLabel("alice", n, "bug")), "")
		c.untouched(c.start(c.forge.PostComment("alice", n, "What is uwf?")), "")
		c.untouched(c.start(c.forge.Push("alice")), "")
		c.untouched(c.start(c.forge.Schedule("17 */2 * * *")), "")
		fork := c.forge.OpenPull("eve", "Mine", "", forgetest.Pull{Head: "mine", Fork: "eve/demo", SHA: c.git("rev-parse", c.forge.Branch())})
		c.allow()
		c.untouched(c.start(c.forge.PutLabel("alice", fork, "uwf")), "fork")
		c.untouched(c.start(c.forge.PostComment("alice", fork, "/uwf start")), "fork")
		if gitea {
			delete(c.with, "allow") // what the token can't find out is no
			c.untouched(c.start(c.forge.PutLabel("alice", n, "uwf")), "allow")
		}
		if got := c.forge.Pulls(); len(got) != 1 {
			t.Errorf("pull requests: %+v", got)
		}
	})
}

// TestRefusedDispatch: a token that may not start jobs leaves the thread waiting, says
// what is missing, and a person goes on once it is there.
func TestRefusedDispatch(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	n := c.issue()
	c.perms = forgetest.Permissions{"contents": "write", "issues": "write", "pull_requests": "write"}
	j := c.start(c.forge.PutLabel("alice", n, "uwf"))
	c.red(j)
	if at := c.onlyThread(); at["status"] != "suspended" {
		t.Errorf("the thread should wait: %v", at)
	}
	if said := c.sticky(n).Body; !strings.Contains(said, "actions: write") || !slices.Contains(c.forge.FindIssue(n).Labels, "uwf-failed") {
		t.Errorf("nobody is told what is missing: labels %v, %s", c.forge.FindIssue(n).Labels, said)
	}
	c.perms = nil
	c.green(c.start(c.forge.PostComment("alice", n, "/uwf resume")))
	c.green(c.settle()...)
	c.solved(n, 3)
	if slices.Contains(c.forge.FindIssue(n).Labels, "uwf-failed") {
		t.Errorf("labels at the end: %v", c.forge.FindIssue(n).Labels)
	}
}

// TestNoPullAllowed: where jobs may not open pull requests, the work ends as a link
// that a person opens one with.
func TestNoPullAllowed(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	c.forge.SetPullsAllowed(false)
	n := c.issue()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	c.green(c.settle()...)
	if len(c.forge.Pulls()) != 0 || len(c.ended()) != 1 {
		t.Fatalf("pull requests %+v, ended %v", c.forge.Pulls(), c.ended())
	}
	work, _ := c.ended()[0]["work"].(map[string]any)
	branch, _ := work["branch"].(string)
	if out, err := c.goTest(branch); err != nil {
		t.Errorf("the tests of %s fail: %s", branch, out)
	}
	if said := c.sticky(n).Body; !strings.Contains(said, "/compare/main...") || !strings.Contains(said, branch) {
		t.Errorf("no link to open a pull request with: %s", said)
	}
}

// TestLimited: a forge that takes no comments and labels for a while costs the thread
// nothing.
func TestLimited(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	n := c.issue()
	limit := forgetest.PrimaryLimit(time.Now().Add(time.Hour))
	c.forge.Inject(forgetest.Fault{Method: http.MethodPost, Path: "issues/*/comments", Times: 2, Answer: limit})
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	c.green(c.settle()...)
	c.solved(n, 3)
}

// TestLostReplies: what the forge did, although no answer came, is not done twice.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		c.allow()
		for _, path := range []string{"issues/*/comments", "actions/workflows/*/dispatches", "pulls"} {
			c.forge.Inject(forgetest.Fault{Method: http.MethodPost, Path: path, Lost: true})
		}
		c.forge.Inject(forgetest.Fault{Git: true, Path: "git-receive-pack", After: 3, Lost: true})
		n := c.issue()
		c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
		c.green(c.settle()...)
		c.solved(n, 3)
		if got := c.forge.Pulls(); len(got) != 1 || strings.Contains(c.sticky(n).Body, "brought up to date") {
			t.Errorf("%d pull requests; %s", len(got), c.sticky(n).Body)
		}
	})
}

// TestAwayAtDelivery: the forge fails while the pull request is to be opened, and did not open
// it. The same job opens it once the forge is back.
func TestAwayAtDelivery(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		c.allow()
		c.forge.Inject(forgetest.Fault{Method: http.MethodPost, Path: "pulls", Answer: forgetest.Broken(503)})
		c.forge.Inject(forgetest.Fault{Method: http.MethodGet, Path: "pulls", Answer: forgetest.Broken(503)})
		n := c.issue()
		c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
		c.green(c.settle()...)
		c.solved(n, 3)
		if got := c.forge.Pulls(); len(got) != 1 || strings.Contains(c.sticky(n).Body, "brought up to date") {
			t.Errorf("%d pull requests; %s", len(got), c.sticky(n).Body)
		}
	})
}

// TestRerunAll: once a thread has ended, each of its jobs is run again: all are green,
// and nothing changes.
func TestRerunAll(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{script: askingScript})
	n := c.issue()
	c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
	c.green(c.settle()...)
	c.green(c.start(c.forge.PostComment("alice", n, "/uwf resume\nYes, bytes.")))
	c.green(c.settle()...)
	c.solved(n, 4)
	tip, comments := c.git("rev-parse", "uwf-state"), len(c.forge.Comments(n))
	for _, j := range slices.Clone(c.jobs) {
		again := c.again(j)
		c.green(again)
		if strings.Contains(again.log, "::warning") {
			t.Errorf("nothing is wrong, and there is a warning: %s", again)
		}
	}
	if sent := c.forge.TakeDispatches(); len(sent) != 0 {
		t.Errorf("jobs were started: %+v", sent)
	}
	if now := c.git("rev-parse", "uwf-state"); now != tip {
		t.Errorf("the state branch has moved:\n%s", c.git("log", "--oneline", tip+".."+now))
	}
	if got := c.forge.Comments(n); len(got) != comments {
		t.Errorf("comments: %+v", got)
	}
	c.solved(n, 4)
}

// TestLostDispatch: a scheduled run finds the thread whose next job never came.
func TestLostDispatch(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		c.allow()
		n := c.issue()
		c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
		if lost := c.forge.TakeDispatches(); len(lost) != 1 {
			t.Fatalf("dispatches: %+v", lost)
		}
		c.green(c.start(c.forge.Schedule("17 */2 * * *")))
		if early := c.forge.TakeDispatches(); len(early) != 0 {
			t.Errorf("a job that may still come is made up for: %+v", early)
		}
		c.later(20 * time.Minute)
		c.green(c.start(c.forge.Schedule("17 */2 * * *")))
		c.green(c.settle()...)
		c.solved(n, 3)
	})
}

// TestPlainUses: a workflow that runs uwf with a prompt on an event of its own.
func TestPlainUses(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	c.with["prompt"] = "Slugs have double dashes. Find out why, and mend it."
	first := c.start(c.forge.Push("alice"))
	c.green(first)
	delete(c.with, "prompt") // the jobs that it starts are those of the workflow file
	c.green(c.settle()...)
	if got := c.forge.Pulls(); len(got) != 1 || strings.Contains(got[0].Body, "Fixes #") {
		t.Fatalf("pull requests: %+v", got)
	}
	if out, err := c.goTest(c.forge.Pulls()[0].Pull.Head); err != nil {
		t.Errorf("the tests of the pull request fail: %s", out)
	}
	if key := c.ended()[0]["key"]; !strings.HasPrefix(fmt.Sprint(key), fmt.Sprintf("run/%d", first.run)) {
		t.Errorf("the thread's key is %v", key)
	}
	if got := c.forge.Comments(0); len(got) != 0 {
		t.Errorf("comments: %+v", got)
	}
}

// TestCancelWhileItRuns: /uwf cancel while an agent works ends the thread; what the
// agent still says changes nothing.
func TestCancelWhileItRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	on, off := filepath.Join(dir, "on"), filepath.Join(dir, "off")
	wait := fmt.Sprintf("touch '%s'; while ! test -e '%s'; do sleep 0.01; done", on, off)
	slow := fmt.Sprintf("steps:\n  - {commands: [%q], output: \"---\\n$status: ready\\nplan: Wait.\\nfiles: [a]\\n---\\nPlan.\\n\"}\n", wait)
	c := newCI(t, ciOptions{script: slow})
	n := c.issue()
	done := make(chan *ciJob, 1)
	go func() { done <- c.start(c.forge.PutLabel("alice", n, "uwf")) }()
	c.until(on, done)
	c.green(c.start(c.forge.PostComment("alice", n, "/uwf cancel\nNot needed any more.")))
	c.check(os.WriteFile(off, nil, 0o600))
	c.green(<-done)
	c.green(c.settle()...)
	if got := c.ended(); len(got) != 1 || got[0]["reason"] != "cancelled" || len(c.active()) != 0 {
		t.Fatalf("ended %v, active %v", got, c.active())
	}
	if got := c.sound(); len(got) != 0 {
		t.Errorf("a step of a cancelled thread was kept: %v", got)
	}
	if said := c.sticky(n).Body; !strings.Contains(strings.ToLower(said), "cancelled") {
		t.Errorf("the comment doesn't say so: %s", said)
	}
}

// until waits for a file that a job's agent makes.
func (c *ci) until(file string, done chan *ciJob) {
	c.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case j := <-done:
			c.Fatalf("the job is over too soon: %s", j)
		case <-look.C:
			if _, err := os.Stat(file); err == nil {
				return
			}
		}
	}
}

// TestPullLabelled: a label on a pull request of this repository works on its branch.
func TestPullLabelled(t *testing.T) {
	t.Parallel()
	eitherForge(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		c.allow()
		c.git("branch", "mine", c.forge.Branch())
		c.forge.MustCommit(t, "mine", "Begin", map[string]string{"notes.txt": "mine\n"})
		n := c.forge.OpenPull("alice", "Mend slugs", "They have double dashes.", forgetest.Pull{Head: "mine"})
		c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
		c.green(c.settle()...)
		if got := c.forge.Pulls(); len(got) != 1 {
			t.Fatalf("pull requests: %+v", got)
		}
		if out, err := c.goTest("mine"); err != nil {
			t.Errorf("the tests of the pull request fail: %s", out)
		}
		if c.git("show", "mine:notes.txt") != "mine" {
			t.Error("what was on the branch is gone")
		}
		c.sticky(n)
		if got := c.ended(); len(got) != 1 || len(c.active()) != 0 {
			t.Errorf("ended %v, active %v", got, c.active())
		}
	})
}

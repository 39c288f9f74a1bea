package forge

import (
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/forgetest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// eitherForge runs a test against a fake GitHub, or against a fake Gitea where it is the turn of
// that; against both where everything is to be run.
func eitherForge(t *testing.T, test func(t *testing.T, gitea bool)) {
	t.Helper()
	if testmode.HasAll() {
		bothForges(t, test)
		return
	}
	test(t, testmode.HasProcesses() && testmode.IsTurnOf(int(crc32.ChecksumIEEE([]byte(t.Name())))))
}

// bothForges runs a test against a fake GitHub and a fake Gitea.
func bothForges(t *testing.T, test func(t *testing.T, gitea bool)) {
	t.Helper()
	for name, gitea := range map[string]bool{"github": false, "gitea": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, gitea)
		})
	}
}

// allow lets alice in where the forge can't tell what she may do.
func (c *ci) allow() {
	if c.gitea {
		c.with["allow"] = "alice"
	}
}

// solved checks a thread that went all the way from an issue.
func (c *ci) solved(issue, steps int) {
	c.Helper()
	p := c.pull(issue)
	if !p.Open || p.Pull.Base != c.forge.Branch() || !strings.HasPrefix(p.Pull.Head, "uwf/") {
		c.Errorf("pull request: %+v of %+v", p.Pull, p)
	}
	if out, err := c.goTest(p.Pull.Head); err != nil {
		c.Errorf("the tests of the pull request fail: %s", out)
	}
	id := strings.TrimPrefix(p.Pull.Head, "uwf/")
	if got := c.sound()[id]; got != steps {
		c.Errorf("thread %s has %d steps, want %d", id, got, steps)
	}
	if at, ok := c.active()[id]; ok {
		c.Errorf("the thread is still active: %v", at)
	}
	i := slices.IndexFunc(c.ended(), func(h map[string]any) bool { return h["thread"] == id })
	if i < 0 {
		c.Fatalf("the thread is not among the ended ones: %v", c.ended())
	}
	if h := c.ended()[i]; h["reason"] != "ended" || h["pr"] != float64(p.Number) {
		c.Errorf("the thread's line: %v; its pull request is #%d", h, p.Number)
	} else {
		c.onRecord(fmt.Sprint(h["commit"]), id, p.Number)
	}
	said := c.sticky(issue)
	for _, want := range []string{"planner", "developer", "reviewer", "```mermaid", "#" + itoa(p.Number)} {
		if !strings.Contains(said.Body, want) {
			c.Errorf("the comment doesn't say %q:\n%s", want, said.Body)
		}
	}
}

// TestLoop: a label on an issue becomes a pull request whose tests pass, one job a
// step, with a question in the middle that a comment answers.
func TestLoop(t *testing.T) {
	t.Parallel()
	bothForges(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea, script: askingScript})
		c.allow()
		n := c.issue()
		if out, err := c.goTest(c.forge.Branch()); err == nil {
			t.Fatalf("the tests should fail at first: %s", out)
		}
		c.green(c.start(c.forge.PutLabel("alice", n, "uwf")))
		c.green(c.settle()...)
		asked := c.sticky(n)
		if !strings.Contains(asked.Body, "Does MaxLen count bytes?") || !slices.Contains(c.forge.FindIssue(n).Labels, "uwf-waiting") {
			t.Fatalf("nobody is asked: labels %v, %s", c.forge.FindIssue(n).Labels, asked.Body)
		}
		if len(c.forge.Pulls()) != 0 {
			t.Errorf("a pull request before the end: %+v", c.forge.Pulls())
		}
		c.green(c.start(c.forge.PostComment("alice", n, "/uwf resume\nYes, bytes.")))
		c.green(c.settle()...)
		c.solved(n, 4)
		c.outputsAreRight(n)
		if got := c.forge.FindIssue(n).Labels; slices.Contains(got, "uwf-waiting") || slices.Contains(got, "uwf-failed") {
			t.Errorf("labels at the end: %v", got)
		}
		c.readable()
	})
}

// outputsAreRight checks the last job's outputs and summary.
func (c *ci) outputsAreRight(issue int) {
	c.Helper()
	last := c.jobs[len(c.jobs)-1]
	p := c.pull(issue)
	want := map[string]string{
		"thread": strings.TrimPrefix(p.Pull.Head, "uwf/"), "status": "ended", "done": "true", "pull-request": itoa(p.Number),
	}
	for name, v := range want {
		if last.outputs[name] != v {
			c.Errorf("output %s is %q, want %q", name, last.outputs[name], v)
		}
	}
	for _, want := range []string{"reviewer", "approved", "#" + itoa(p.Number)} {
		if !strings.Contains(last.summary, want) {
			c.Errorf("the summary doesn't say %q:\n%s", want, last.summary)
		}
	}
}

// onRecord checks that what the thread did outlives its branch: its page names the pull
// request, and a developer's page has the diff.
func (c *ci) onRecord(commit, id string, pull int) {
	c.Helper()
	pages := commit + ":threads/" + id + "/pages/"
	if page := c.git("show", pages+"index.md"); !strings.Contains(page, "**Ended** after ") || !strings.Contains(page, fmt.Sprintf("- Pull request: #%d\n", pull)) {
		c.Errorf("the thread's page says\n%s", page)
	}
	for name := range strings.Lines(c.git("ls-tree", "--name-only", pages)) {
		if page := c.git("show", pages+strings.TrimSpace(name)); strings.Contains(name, "-developer.md") && strings.Contains(page, "\n    diff --git a/") {
			return
		}
	}
	c.Errorf("no page has a diff: %s", c.git("ls-tree", "--name-only", pages))
}

// readable checks that git log alone tells what happened.
func (c *ci) readable() {
	c.Helper()
	log := c.git("log", "--reverse", "--format=%s", "uwf-state")
	at := 0
	for _, want := range []string{` · planner → ready · step 1 · [0-9A-Z]{4}$`, ` · developer → blocked · step 2 · [0-9A-Z]{4}$`,
		` · developer → done · step 3 · [0-9A-Z]{4}$`, ` · reviewer → approved · step 4 · [0-9A-Z]{4}$`} {
		loc := regexp.MustCompile("(?m)" + want).FindStringIndex(log[at:])
		if loc == nil {
			c.Errorf("git log of the state branch doesn't say %q after:\n%s\nall:\n%s", want, log[:at], log)
			return
		}
		at += loc[1]
	}
}

// TestCrowd: issues at once, four jobs at a time: three, at length six, twenty where all is asked
// for.
func TestCrowd(t *testing.T) {
	t.Parallel()
	const steps = 3
	issues := 3
	if testmode.HasProcesses() {
		issues = 6
	}
	if testmode.HasAll() {
		issues = 20
	}
	c := newCI(t, ciOptions{})
	var events []forgetest.Event
	for range issues {
		events = append(events, c.forge.PutLabel("alice", c.issue(), "uwf"))
	}
	c.forge.ForgetCalls()
	c.crowd(4, events...)
	c.green(c.jobs...)
	if got := len(c.forge.Pulls()); got != issues {
		t.Fatalf("%d pull requests, want %d", got, issues)
	}
	all := c.sound()
	if len(all) != issues || len(c.ended()) != issues || len(c.active()) != 0 {
		t.Errorf("%d threads with steps, %d ended, %d active; want %d ended", len(all), len(c.ended()), len(c.active()), issues)
	}
	for n := 1; n <= issues; n++ {
		p := c.pull(n)
		c.sticky(n)
		if got := c.git("rev-parse", p.Pull.Head+":slug/slug.go"); got != c.git("rev-parse", c.pull(1).Pull.Head+":slug/slug.go") {
			t.Errorf("#%d: the pull request's file is %s", n, got)
		}
	}
	for id, got := range all {
		if got != steps {
			t.Errorf("thread %s has %d steps, want %d", id, got, steps)
		}
	}
	if calls := len(c.forge.Calls()); calls > 6*issues*steps {
		t.Errorf("%d REST calls for %d steps: more than 6 a step\n%s", calls, issues*steps, c.tally())
	} else {
		t.Logf("%d REST calls for %d steps\n%s", calls, issues*steps, c.tally())
	}
}

// TestStartedAtOnce: whatever asks for a thread about one issue at the same moment, nothing
// keeps the jobs apart but uwf itself, and one thread comes of it.
func TestStartedAtOnce(t *testing.T) {
	t.Parallel()
	bothForges(t, func(t *testing.T, gitea bool) {
		c := newCI(t, ciOptions{gitea: gitea})
		if gitea {
			c.with["allow"] = "alice"
		}
		n := c.issue()
		label := c.forge.PutLabel("alice", n, "uwf")

		c.crowd(4, label, label, c.forge.Assign("alice", n, "uwf-bot"), label)

		c.green(c.jobs...)
		c.solved(n, 3)
		if got := len(c.sound()); got != 1 {
			t.Errorf("%d threads have steps, want one", got)
		}
	})
}

// tally counts the calls by what they are for.
func (c *ci) tally() string {
	digits := regexp.MustCompile(`\d+`)
	count := map[string]int{}
	for _, call := range c.forge.Calls() {
		count[call.Method+" "+digits.ReplaceAllString(call.Path, "N")]++
	}
	var lines []string
	for name, n := range count {
		lines = append(lines, itoa(n)+" "+name)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

package forge

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
)

// approveScript plays the roles of approve-deploy: the planner takes every answer for a
// yes.
const approveScript = `steps:
  - {role: planner, visit: 1, output: "---\n$status: proposed\nproposal: \"production.txt: 2.3.1 to 2.4.0\"\n---\n"}
  - {role: planner, output: "---\n$status: approved\nplan: \"production.txt: 2.4.0\"\napproval: \"Yes\"\n---\n"}
  - {role: operator, write: {production.txt: "2.4.0\n"}, output: "---\n$status: done\nsummary: production.txt is 2.4.0\nchecks: none\n---\n"}
  - {role: auditor, output: "---\n$status: as-approved\ntitle: Deploy 2.4.0\nsummary: As approved.\n---\n"}
`

// newDeployment is a repository with the shipped workflow file and definition.
func newDeployment(t *testing.T, gitea bool, approval string) *ci {
	t.Helper()
	c := newCI(t, ciOptions{gitea: gitea, bare: true})
	flow := strings.Replace(c.example("approve-deploy.yaml"), "approval: true", "approval: "+approval, 1)
	if !strings.Contains(flow, "approval: "+approval) {
		t.Fatal("the example guards no edge")
	}
	c.forge.MustCommit(t, c.forge.Branch(), "Deployments", map[string]string{
		ciConfig: mockConfig, ciScript: approveScript, ".uwf/workflows/approve-deploy.yaml": flow, ciWorkflow: c.example("github/approval.yml"),
	})
	c.forge.SetPermission("bob", "write")
	c.forge.SetPermission("reader", "read")
	if gitea {
		c.with["allow"] = "alice bob"
	}
	return c
}

// clone is a person's machine: a clone of the repository, with git's name and perhaps a
// token of the forge.
func (c *ci) clone(name, token string) *clitest.Console {
	c.Helper()
	dir := filepath.Join(c.TempDir(), "clone")
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "UWF_LOG=off",
		"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + name + "@example.com", "GITHUB_SERVER_URL=" + c.forge.URL, "GITHUB_API_URL=" + c.forge.APIURL,
	}
	if token != "" {
		env = append(env, "GITHUB_TOKEN="+token)
	}
	for _, args := range [][]string{{"clone", "-q", c.forge.Dir(), dir}, {"-C", dir, "remote", "set-url", "origin", c.forge.CloneURL()}} {
		cmd := exec.CommandContext(c.Context(), "git", args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			c.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	return &clitest.Console{Remotes: c.remotes, Dir: dir, Environ: env}
}

// TestApproveDeploy: the label of the shipped workflow file leads to a proposal; the
// deployment goes on only after the yes of somebody with the right to it, who is on the
// branch, in the comment, on the page and in `uwf thread read`, with id, address and words.
func TestApproveDeploy(t *testing.T) {
	t.Parallel()
	bothForges(t, func(t *testing.T, gitea bool) {
		c := newDeployment(t, gitea, "{not: [starter, author]}")
		n := c.forge.OpenIssue("dave", "Deploy 2.4.0", "Version 2.4.0 to production.")
		c.green(c.start(c.forge.PutLabel("alice", n, "deploy")))
		c.green(c.settle()...)
		if !strings.Contains(c.sticky(n).Body, "production.txt: 2.3.1 to 2.4.0") {
			t.Fatalf("nobody is asked: %s", c.sticky(n).Body)
		}
		id, _ := c.oneActive()

		// Strangers, and words that were changed later, do nothing.
		for _, who := range []string{"reader", "renovate[bot]"} {
			c.green(c.start(c.forge.PostComment(who, n, "/uwf resume\nYes.")))
		}
		edited := c.forge.PostComment("bob", n, "Looks fine?")
		edited.Payload = []byte(strings.Replace(strings.Replace(string(edited.Payload), `"created"`, `"edited"`, 1), "Looks fine?", `/uwf resume\nYes.`, 1))
		c.green(c.start(edited))
		forged := c.forge.PostComment("reader", n, "/uwf resume\nYes.")
		forged.Payload = []byte(strings.ReplaceAll(string(forged.Payload), `"reader"`, `"bob"`))
		c.green(c.start(forged))
		if _, e := c.oneActive(); e["status"] != "suspended" {
			t.Fatalf("it went on: %v", e)
		}

		// Who asked for it can't approve it, whatever the planner makes of it.
		c.red(c.start(c.forge.PostComment("alice", n, "/uwf resume\nYes, go ahead.")))
		said := c.sticky(n).Body
		if !strings.Contains(said, "somebody else than who started the thread: alice") {
			t.Fatalf("nobody says why: %s", said)
		}
		c.green(c.start(c.forge.PostComment("alice", n, "/uwf fork 1")))
		c.green(c.settle()...)
		c.green(c.start(c.forge.PostComment("alice", n, "/uwf cancel --thread="+id)))

		// The fork is alice's, too: bob is another person.
		yes := c.forge.PostComment("bob", n, "/uwf resume\nYes, **do that** before noon.")
		c.green(c.start(yes))
		c.green(c.settle()...)
		var event struct {
			Comment struct {
				URL  string `json:"html_url"`
				User struct{ ID int64 }
			}
		}
		c.check(json.Unmarshal(yes.Payload, &event))
		var line map[string]any
		for _, l := range c.ended() {
			if l["reason"] == "ended" {
				line = l
			}
		}
		if line == nil || line["result"] != "as-approved" || line["title"] != "Deploy 2.4.0" {
			t.Fatalf("the history says %v", c.ended())
		}
		thread := fmt.Sprint(line["thread"])
		page := c.git("show", fmt.Sprintf("%v:threads/%s/pages/02-planner.md", line["commit"], thread))
		read := c.clone("somebody", c.forge.UserToken("alice")).Run(t.Context(), "thread", "read", thread, "--format", "text")
		steps := c.clone("somebody", c.forge.UserToken("alice")).Run(t.Context(), "thread", "steps", thread, "--format", "text")
		for where, text := range map[string]string{"the page": page, "uwf thread read": read.Stdout + read.Stderr, "the comment": c.stickyOf(n, thread)} {
			for _, want := range []string{"bob", fmt.Sprintf("id %d", event.Comment.User.ID), event.Comment.URL, "do that", "before noon."} {
				if !strings.Contains(text, want) {
					t.Errorf("%s doesn't say %q:\n%s", where, want, text)
				}
			}
		}
		if want := fmt.Sprintf("answered by bob (id %d)", event.Comment.User.ID); !strings.Contains(strings.Join(strings.Fields(steps.Stdout), " "), want) {
			t.Errorf("uwf thread steps doesn't say %q:\n%s%s", want, steps.Stdout, steps.Stderr)
		}
		c.readsEnded(line, event.Comment.URL, event.Comment.User.ID)
		log := c.git("log", "--format=%an|%(trailers:key=Uwf-By,valueonly,separator=)", "uwf-state")
		_, address, _ := strings.Cut(event.Comment.URL, "://")
		if want := fmt.Sprintf("bob|forge: bob (id %d, %s)", event.Comment.User.ID, address); !strings.Contains(log, want) {
			t.Errorf("git log doesn't say %q:\n%s", want, log)
		}
	})
}

// readsEnded types the commands of docs/reading.md for a thread that has ended: with git alone
// they say who asked, who approved, what was changed and what it cost.
func (c *ci) readsEnded(line map[string]any, approval string, approver int64) {
	c.Helper()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "reading.md"))
	c.check(err)
	_, rest, found := strings.Cut(string(guide), "<!-- test:ended -->\n```sh\n")
	block, _, closed := strings.Cut(rest, "\n```\n")
	commands := strings.Split(block, "\n")
	if !found || !closed || len(commands) != 3 {
		c.Fatalf("docs/reading.md has no three commands for threads that have ended: %q", commands)
	}
	dir := c.TempDir()
	command := func(text string) string {
		c.Helper()
		cmd := exec.CommandContext(c.Context(), "sh", "-euc", text)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			c.Fatalf("%s: %v\n%s", text, err, out)
		}
		return string(out)
	}
	command("git init -q . && git fetch -q " + c.forge.Dir() + " uwf-state")

	row := command(strings.Replace(commands[0], "<words of the title>", "deploy 2.4.0 .*as-approved", 1))
	for _, want := range []string{"alice (id ", "| as-approved |", fmt.Sprint(line["used"].(map[string]any)["tokens"]), fmt.Sprintf("[#%v](", line["pr"])} {
		if !strings.Contains(row, want) {
			c.Errorf("the row of the day doesn't say %q:\n%s", want, row)
		}
	}
	// What the row says to type is what docs/reading.md says.
	_, typed, _ := strings.Cut(row, "`git show ")
	typed, _, _ = strings.Cut(typed, "`")
	commit, _, _ := strings.Cut(typed, ":")
	fill := strings.NewReplacer("<commit>", commit, "<thread>", fmt.Sprint(line["thread"]), "02-developer", "03-operator").Replace
	if own := strings.Fields(fill(commands[1]))[2]; own != typed {
		c.Errorf("the row says git show %s, docs/reading.md %s", typed, own)
	}
	index := command(fill(commands[1]))
	for _, want := range []string{"**Ended** after 4 steps: as-approved.", "by alice (id ", fmt.Sprintf("- Pull request: #%v", line["pr"]), "production.txt is 2.4.0",
		fmt.Sprintf("- Before step 2: bob (id %d) answered", approver), approval, " tokens, $"} {
		if !strings.Contains(index, want) {
			c.Errorf("the thread's page doesn't say %q:\n%s", want, index)
		}
	}
	page := command(fill(commands[2]))
	for _, want := range []string{"# Step 3: operator → done", "summary: production.txt is 2.4.0", "- added production.txt: +1 −0", "\n    +2.4.0\n"} {
		if !strings.Contains(page, want) {
			c.Errorf("the step's page doesn't say %q:\n%s", want, page)
		}
	}
}

// stickyOf is the comment of one of several threads on an issue.
func (c *ci) stickyOf(n int, thread string) string {
	c.Helper()
	for _, m := range c.forge.Comments(n) {
		if strings.HasPrefix(m.Body, "<!-- uwf:thread="+thread) {
			return m.Body
		}
	}
	c.Fatalf("#%d has no comment of %s", n, thread)
	return ""
}

// TestApproveOnAMachine: away from the forge a yes is an approval only where the forge
// knows whose token is used; what git says of a person is none.
func TestApproveOnAMachine(t *testing.T) {
	t.Parallel()
	c := newDeployment(t, false, "true")
	n := c.forge.OpenIssue("dave", "Deploy 2.4.0", "Version 2.4.0 to production.")
	c.green(c.start(c.forge.PutLabel("alice", n, "deploy")))
	c.green(c.settle()...)
	id, _ := c.oneActive()
	speak := func(m *clitest.Console, note string) map[string]any {
		t.Helper()
		res := m.Run(t.Context(), "thread", "resume", id, "-p", "Yes.")
		if res.Code != 0 || !strings.Contains(res.Stderr, note) || note == "" && res.Stderr != "" {
			t.Fatalf("exit code %d, %s", res.Code, res.Stderr)
		}
		_, e := c.oneActive()
		next, _ := e["next"].(map[string]any)
		by, _ := next["by"].(map[string]any)
		return by
	}
	behind := c.clone("bob", "")
	cmd := exec.CommandContext(t.Context(), "git", "-C", behind.Dir, "remote", "set-url", "origin", c.forge.Dir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if by := speak(behind, "is no approval: the store is on no forge"); by["kind"] != "local" || by["name"] != "bob" {
		t.Errorf("the entry says %v", by)
	}
	if res := behind.Run(t.Context(), "thread", "pause", id); res.Code != 0 {
		t.Fatal(res.Stderr)
	}
	if by := speak(c.clone("eve", c.forge.UserToken("bob")), ""); by["kind"] != "forge" || by["login"] != "bob" || by["id"] == nil {
		t.Errorf("the entry says %v", by)
	}
}

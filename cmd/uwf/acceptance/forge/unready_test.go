package forge

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/forgetest"
)

// TestSecretMissing: the first thing that goes wrong for newcomers. The job is red and
// names what is missing; the issue says it as well, once, and only to who may start.
func TestSecretMissing(t *testing.T) {
	t.Parallel()
	for _, gitea := range []bool{false, true} {
		c := newCI(t, ciOptions{gitea: gitea})
		c.forge.SetPermission("mallory", "read")
		c.with["provider"], c.with["api-key"], c.with["allow"] = "openai", "", "alice"
		n := c.issue()
		for _, j := range []*ciJob{
			c.start(c.forge.PostComment("mallory", n, "/uwf start")), c.start(c.forge.PutLabel("mallory", n, "uwf")), c.start(c.forge.PutLabel("alice", n, "bug")),
		} {
			if j.code != 2 || len(c.own(n)) != 0 {
				t.Errorf("a stranger or another label made the job comment: %s %v", j, c.own(n))
			}
		}
		n = c.issue()
		j := c.start(c.forge.PutLabel("alice", n, "uwf"))
		if got := c.own(n); j.code != 2 || !strings.Contains(j.log, "::error") || len(got) != 1 || !strings.Contains(got[0], "api-key is empty") || strings.Contains(got[0], "gh secret set") == gitea {
			t.Errorf("gitea %v: %s\n%q", gitea, j, got)
		}
		if c.start(c.forge.PostComment("alice", n, "/uwf start")); len(c.own(n)) != 2 || !strings.Contains(c.own(n)[1], "write the command again") {
			t.Errorf("the command was not answered: %q", c.own(n))
		}
	}
}

// TestMayNotPush: a job that may not push says which permission it needs, on the issue.
func TestMayNotPush(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	c.perms = forgetest.Permissions{"contents": "read", "issues": "write"}
	n := c.issue()
	j := c.start(c.forge.PutLabel("alice", n, "uwf"))
	if got := c.own(n); j.code == 0 || len(got) != 1 || !strings.Contains(got[0], "contents: write") {
		t.Errorf("%s\n%q", j, got)
	}
}

// own are the comments that jobs wrote.
func (c *ci) own(n int) (out []string) {
	for _, one := range c.forge.Comments(n) {
		if strings.HasPrefix(one.Body, "<!-- uwf:") {
			out = append(out, one.Body)
		}
	}
	return out
}

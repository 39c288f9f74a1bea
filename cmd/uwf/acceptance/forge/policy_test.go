package forge

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

// TestPolicyInCI: a repository that asks for more than the policy of its jobs is told so, and held
// to it, wherever the policy is kept.
func TestPolicyInCI(t *testing.T) {
	t.Parallel()
	const policy = "agents: [builtin, mock]\nsandbox: auto\nlimits: {maxSteps: 1, stepTime: 20m}\n"
	for _, gitea := range []bool{false, true} {
		for _, kept := range []bool{false, true} {
			if gitea == kept && !testmode.HasAll() {
				continue
			}
			c := newCI(t, ciOptions{gitea: gitea, config: mockConfig + "limits: {maxSteps: 50}\nsandbox: off\n"})
			c.with["allow"], c.with["policy"], c.with["sandbox"], c.with["timeout"] = "alice", policy, "off", "2h"
			called := "the input policy"
			if kept { // a later commit says something else, and counts for nothing
				commit := c.forge.MustCommit(t, "rules", "Bound everybody", map[string]string{"org/policy.yaml": policy})
				c.forge.MustCommit(t, "rules", "Unbind everybody", map[string]string{"org/policy.yaml": "limits: {maxSteps: 100}\n"})
				called = c.forge.Repository() + "/org/policy.yaml@" + commit
				c.with["policy"] = called
			}
			n := c.issue()
			first := c.start(c.forge.PutLabel("alice", n, "uwf"))
			c.green(first)
			for _, want := range []string{
				"::warning::.uwf/config.yaml:6:20: limits.maxSteps: it asks for 50; the policy (" + called + ":3) allows nothing looser than 1, which holds",
				"::warning::.uwf/config.yaml:7:10: sandbox: it asks for off; the policy (" + called + ":2) allows nothing looser than auto, which holds",
				"::warning::the action's inputs ask for limits.stepTime 2h, and the policy (" + called + ":3) allows nothing looser than 20m; sandbox off, and the policy (",
			} {
				if !strings.Contains(first.log, want) {
					t.Errorf("gitea %v, kept %v: it does not say %s:\n%s", gitea, kept, want, first)
				}
			}
			c.settle()
			if said := c.sticky(n).Body; !strings.Contains(said, "maxSteps") || len(c.ended()) != 0 {
				t.Errorf("gitea %v, kept %v: it goes on beyond the policy: %s", gitea, kept, said)
			}
		}
	}
}

// TestPolicyRefusesJobs: what a policy does not allow, and a policy that can't be had, end a job
// before there is a thread, and the issue says why.
func TestPolicyRefusesJobs(t *testing.T) {
	t.Parallel()
	c := newCI(t, ciOptions{})
	var n int
	for _, row := range []struct {
		name, policy, agent, want string
	}{
		{"the repository's agent", "agents: [builtin, codex]", "", ".uwf/config.yaml:4:15: defaultAgent: the agent player (uwf-mock) is not allowed by the policy (the input policy:1), which allows builtin, codex"},
		{"the workflow file's agent", "agents: [mock]", "codex", "the input agent: the agent codex (uwf-codex) is not allowed"},
		{"the default model", "models: [anthropic/*]", "", "$UWF_PROVIDER: defaultModel: the model openai/gpt-5.1 (gpt-5.1 of https://api.openai.com/v1) is not allowed by the policy (the input policy:1), which allows anthropic/*"},
		{"a policy with a mistake", "agent: [mock]", "", `the input policy:1:1: agent: unknown key; did you mean "agents"?`},
		{"a branch", c.forge.Repository() + "/policy.yaml@main", "", "write all 40 digits of a commit behind the @"},
		{"no such file", c.forge.Repository() + "/policy.yaml@" + strings.Repeat("0", 40), "", "the organisation's policy can't be had, and nothing is done without it: read policy.yaml of octo/demo at 0000000000000000000000000000000000000000: not found (HTTP 404): Not Found; the token needs contents=read; see that the input policy names a file of a public repository"},
		{"no such repository", "octo/none/policy.yaml@" + strings.Repeat("0", 40), "", "can't be had, and nothing is done without it"},
		{"too long", c.forge.Repository() + "/long.yaml@" + c.forge.MustCommit(t, "rules", "Long", map[string]string{"long.yaml": "# " + strings.Repeat("x", 64<<10) + "\n"}), "", "it has 65539 bytes, and at most 65536 are taken"},
	} {
		c.with["policy"], c.with["agent"] = row.policy, row.agent
		n = c.issue()
		j := c.start(c.forge.PutLabel("alice", n, "uwf"))
		own := strings.Join(c.own(n), "\n")
		if j.code != 2 || !strings.Contains(j.log, "::error") || !strings.Contains(strings.ReplaceAll(j.log, "%25", "%"), row.want) {
			t.Errorf("%s: it does not say %s:\n%s", row.name, row.want, j)
		}
		if row.name != "a branch" && len(c.own(n)) != 1 {
			t.Errorf("%s: the issue says %q", row.name, own)
		}
		if c.forge.TakeDispatches() != nil || c.git("for-each-ref", "refs/heads/uwf-state") != "" {
			t.Errorf("%s: a thread was started", row.name)
		}
	}
	// An agent that a comment asks for is refused by its step, which has done nothing then.
	c.with["policy"], c.with["agent"] = "agents: [mock]", ""
	n = c.issue()
	c.start(c.forge.PostComment("alice", n, "/uwf start --agent codex"))
	if said := c.sticky(n).Body; !strings.Contains(said, "the agent codex (uwf-codex) is not allowed by the policy (the input policy:1), which allows mock") {
		t.Errorf("a comment's agent: %s", said)
	}
	// It is no policy that lets the same repository go on.
	c.with["policy"], c.with["agent"] = "", ""
	c.green(c.start(c.forge.PutLabel("alice", c.issue(), "uwf")))
}

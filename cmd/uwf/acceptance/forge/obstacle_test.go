package forge

import (
	"strings"
	"testing"
)

// TestObstacles: what would refuse the commits of a step is told before an agent is paid, with
// what mends it. Mended, the thread runs.
func TestObstacles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		put, mend func(c *ci)
		words     []string
	}{
		"a branch": {
			func(c *ci) { c.git("branch", "uwf", c.forge.Branch()) },
			func(c *ci) { c.git("branch", "-m", "uwf", "add-uwf") },
			[]string{"ename the branch uwf: git branch -m uwf add-uwf (on the remote: git push origin origin/uwf:refs/heads/add-uwf :uwf)"},
		},
		"signatures": {
			func(c *ci) { c.forge.Protect("uwf/*", "required_signatures") }, nil,
			[]string{"Commits must have verified signatures", "out of the rule that requires signed commits", "/settings/rules"},
		},
		"messages": {
			func(c *ci) { c.forge.Protect("uwf/*", "commit_message_pattern") }, nil,
			[]string{"commit_message_pattern", "et uwf push to uwf-state, uwf/** and refs/uwf/**", "/settings/rules"},
		},
		"hidden refs": {
			func(c *ci) { c.git("config", "transfer.hideRefs", "refs/uwf") },
			func(c *ci) { c.git("config", "--add", "transfer.hideRefs", "!refs/uwf") },
			[]string{"git config --add transfer.hideRefs '!refs/uwf'"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCI(t, ciOptions{})
			tt.put(c)
			n := c.issue()
			j := c.start(c.forge.PutLabel("alice", n, "uwf"))
			jobs := append([]*ciJob{j}, c.settle()...)
			c.red(j)
			for _, j := range jobs {
				if strings.Contains(j.log, " works (player)") {
					t.Errorf("an agent worked before anybody was told: %s", j)
				}
			}
			said := strings.Join(c.own(n), "\n")
			for _, want := range tt.words {
				if !strings.Contains(said, want) {
					t.Errorf("the issue doesn't say %q:\n%s", want, said)
				}
			}
			if tt.mend != nil {
				tt.mend(c)
				c.green(c.start(c.forge.PostComment("alice", n, "/uwf start")))
				c.green(c.settle()...)
				c.solved(n, 3)
			}
		})
	}
}

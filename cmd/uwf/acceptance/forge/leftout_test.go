package forge

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinkOut: a tracked link that leads out of the repository, as test data of many projects
// have, stops no job; the issue's comment names it, also where two jobs share a step.
func TestLinkOut(t *testing.T) {
	t.Parallel()
	for _, two := range []bool{false, true} {
		c := newCI(t, ciOptions{})
		if two {
			c.forge.MustCommit(t, c.forge.Branch(), "Two jobs", map[string]string{ciWorkflow: c.example("github/two-jobs.yml")})
		}
		dir := c.checkout(c.forge.Branch())
		c.check(os.Symlink("/etc/ssl/certs", filepath.Join(dir, "certs")))
		for _, args := range [][]string{{"add", "certs"}, {"commit", "-qm", "certs"}, {"push", "-q", "origin", "HEAD:" + c.forge.Branch()}} {
			out, err := exec.CommandContext(c.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}

		n := c.issue()
		if e := c.forge.PutLabel("alice", n, "uwf"); two {
			agent, commit := c.pair(e)
			c.green(append(c.settlePairs(), agent, commit)...)
		} else {
			c.green(c.start(e))
			c.green(c.settle()...)
		}
		want := "not in the agents' folder: 1 link out of the repository (certs)"
		if two {
			want = "reported by the agents' job: " + want
		}
		if said := c.sticky(n).Body; !strings.Contains(said, "- Step 1: `"+want+"`") {
			t.Errorf("two jobs %v: the comment doesn't name it:\n%s", two, said)
		}
	}
}

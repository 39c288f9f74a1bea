package forge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/internal/forgetest"
	"github.com/united-workforce/uwf/internal/testmode"
)

// How a job that was killed is made up for.
const (
	byRerun = "re-run" // somebody runs it again
	bySweep = "sweep"  // nobody does; a scheduled run finds the thread
)

// tale plays one issue to its end, with a question in the middle, while jobs die.
type tale struct {
	*ci
	issue int
	// kills are the points at which jobs die, one after the other: a job that doesn't get
	// to the next one leaves it to those after it. Re-runs and scheduled runs live.
	kills  []string
	mended string
	died   []string
	inARow int // jobs that died one after the other, with the thread at the head that it has in at
	at     string
	// stops are the points that each living job got to.
	stops [][]string
}

// job runs one job, which dies where it shall, and makes up for it.
func (ta *tale) job(e forgetest.Event) {
	ta.Helper()
	if len(ta.kills) == 0 {
		file := filepath.Join(ta.dir, fmt.Sprintf("stops-%d", len(ta.stops)))
		ta.green(ta.start(e, clitest.EnvStops+"="+file))
		ta.stops = append(ta.stops, strings.Fields(ta.read(file)))
		return
	}
	if ta.inARow == 2 { // a third attempt that fails suspends the thread
		ta.inARow = 0
		ta.green(ta.start(e))
		return
	}
	j := ta.start(e, clitest.EnvKill+"="+ta.kills[0])
	if !j.killed {
		ta.inARow = 0
		ta.green(j)
		return
	}
	if at := ta.headsNow(); at != ta.at {
		ta.at, ta.inARow = at, 0
	}
	ta.inARow++
	ta.died, ta.kills = append(ta.died, ta.kills[0]), ta.kills[1:]
	if ta.mended == byRerun {
		ta.inARow = 0
		ta.green(ta.again(j))
		return
	}
	ta.settled()
	ta.later(life.MaxClaim + time.Minute) // longer than any claim or patience
	ta.green(ta.start(ta.forge.Schedule("17 */2 * * *")))
}

// headsNow are those of all active threads.
func (ta *tale) headsNow() string {
	ta.Helper()
	var out []string
	for _, entry := range ta.active() {
		if long, ok := entry.(map[string]any); ok {
			entry = long["head"]
		}
		out = append(out, fmt.Sprint(entry))
	}
	return strings.Join(out, " ")
}

// settled runs what was dispatched until nothing is left.
func (ta *tale) settled() {
	ta.Helper()
	for range maxJobs {
		sent := ta.forge.TakeDispatches()
		if len(sent) == 0 {
			return
		}
		for _, d := range sent {
			ta.job(ta.forge.Dispatched(d))
		}
	}
	ta.Fatal("the jobs come to no end")
}

func (ta *tale) tell() {
	ta.Helper()
	ta.issue = ta.ci.issue()
	ta.job(ta.forge.PutLabel("alice", ta.issue, "uwf"))
	ta.settled()
	if at := ta.onlyThread(); at["status"] != "suspended" {
		ta.Fatalf("the thread should wait for an answer: %v", at)
	}
	ta.job(ta.forge.PostComment("alice", ta.issue, "/uwf resume\nYes, bytes."))
	ta.settled()
	ta.solved(ta.issue, 4)
	ta.readable()
	if got := ta.forge.Pulls(); len(got) != 1 {
		ta.Errorf("%d pull requests", len(got))
	}
	if len(ta.kills) > 0 {
		ta.Errorf("jobs died at %v, but none at %v", ta.died, ta.kills)
	}
}

// onlyThread is the entry of the one thread that is active.
func (c *ci) onlyThread() map[string]any {
	c.Helper()
	all := c.active()
	if len(all) != 1 {
		c.Fatalf("active threads: %v", all)
	}
	for _, v := range all {
		entry, _ := v.(map[string]any)
		return entry
	}
	return nil
}

func newTale(t *testing.T, gitea bool, mended string, kills []string) *tale {
	t.Helper()
	ta := &tale{ci: newCI(t, ciOptions{gitea: gitea, script: askingScript}), kills: kills, mended: mended}
	ta.allow()
	return ta
}

// TestJobsKilled kills the jobs of a thread at every durable point of the engine and
// of the runner that a quiet run gets to. In each tale every job dies once, at a point
// of its own, and the end is always the same: one pull request, one comment, one
// chain. By default one tale is told, with UWF_TEST=processes a quarter of them, and
// with UWF_TEST_KILLS all.
func TestJobsKilled(t *testing.T) {
	t.Parallel()
	quiet := newTale(t, false, byRerun, nil)
	quiet.tell()
	tales := 0
	for _, stops := range quiet.stops {
		tales = max(tales, len(stops))
	}
	if len(quiet.stops) != 4 {
		t.Fatalf("%d jobs with points %v", len(quiet.stops), quiet.stops)
	}
	for _, want := range []string{"started", "claim", "comment-created", "comment-updated", "commit", "dispatched", "labelled", "pull-created", "delivered"} {
		if !slices.Contains(slices.Concat(quiet.stops...), want) {
			t.Errorf("no job got to %q: %v", want, quiet.stops)
		}
	}
	all := os.Getenv("UWF_TEST_KILLS") != ""
	for n := range tales {
		for _, mended := range []string{byRerun, bySweep} {
			gitea := n%4 >= 2
			if !all && (n%2 != 0 || (mended == byRerun) != (n%4 == 0) || n > 0 && !testmode.HasProcesses()) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", mended, n), func(t *testing.T) {
				t.Parallel()
				ta := newTale(t, gitea, mended, killsOf(quiet.stops, n))
				ta.tell()
			})
		}
	}
}

// killsOf are the points of tale n: the n-th of each job, counted from the first again
// where it has fewer.
func killsOf(stops [][]string, n int) []string {
	var kills []string
	for _, points := range stops {
		if len(points) == 0 {
			continue
		}
		at := n % len(points)
		times := 0
		for _, p := range points[:at+1] {
			if p == points[at] {
				times++
			}
		}
		kills = append(kills, fmt.Sprintf("%s:%d", points[at], times))
	}
	return kills
}

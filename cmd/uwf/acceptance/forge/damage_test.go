package forge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/forge/forgetest"
)

// TestThreadDamaged: what is stored of a thread can't be read any more. No job is started
// for it again and again; who looks after lost jobs says why.
func TestThreadDamaged(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"step", "delivery"} {
		c := newCI(t, ciOptions{})
		if at == "delivery" {
			c.with["steps-per-job"] = "9"
		}
		kill := map[string]string{"step": "UWF_TEST_KILL=dispatched", "delivery": "UWF_TEST_KILL=deliver-claimed"}[at]
		c.start(c.forge.Label("alice", c.issue(), "uwf"), kill)
		id, entry := c.oneActive()
		c.forge.MustCommit(t, "uwf-state", "by hand", map[string]string{fmt.Sprintf("threads/%s/%s.json", id, entry["head"]): "{}"})
		c.later(20 * time.Minute)
		for _, e := range []forgetest.Event{c.forge.Schedule("17 */2 * * *"), c.forge.Say("alice", c.issue(), "/uwf help")} {
			before := len(c.forge.Dispatches())
			j := c.start(e)
			if n := len(c.forge.Dispatches()); n != before || !strings.Contains(j.log, "can't be read") {
				t.Errorf("%s: %d jobs were started by %s", at, n-before, j)
			}
		}
	}
}

// oneActive is the one thread that is alive.
func (c *ci) oneActive() (id string, entry map[string]any) {
	c.Helper()
	all := c.active()
	if len(all) != 1 {
		c.Fatalf("alive: %v", all)
	}
	for id, one := range all {
		entry, _ = one.(map[string]any)
		return id, entry
	}
	return "", nil
}

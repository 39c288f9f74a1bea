package processes

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/sandbox"
)

// TestSandbox: with --sandbox an agent's commands don't read what its user may, and
// the settings can't be loosened on the command line.
func TestSandbox(t *testing.T) {
	t.Parallel()
	report := sandbox.Probe()
	if !report.Usable() {
		t.Skipf("NOT TESTED: no agent can be confined here: %s", report)
	}
	h := newHouse(t)
	var s struct{ Thread string }
	h.uwf(0, "thread", "start", "flow", "-p", "x").json(&s)
	private := h.path("private.txt")
	h.write(private, "private words")
	h.write(h.script, `steps: [{commands: ["cat `+private+` > taken.txt 2>&1; true"], output: "---\n$status: more\nnote: n\n---\n"}]`)
	step := func(more ...string) []string {
		return append([]string{"thread", "step", s.Thread, "--agent", "uwf agent mock '" + h.script + "'"}, more...)
	}
	taken := func() string {
		h.git(h.clone, "fetch", "-q", "origin", "uwf/"+s.Thread)
		return h.git(h.clone, "show", "FETCH_HEAD:taken.txt")
	}
	h.uwf(0, step()...)
	if got := taken(); !strings.Contains(got, "private words") {
		t.Errorf("without a sandbox it can't be read either, so this shows nothing: %q", got)
	}
	h.uwf(0, step("--sandbox", "auto")...)
	if got := taken(); !strings.Contains(got, "Permission denied") {
		t.Errorf("the agent read %q", got)
	}
	h.uwf(2, step("--sandbox", "maybe")...).says("use off, auto or require")

	h.write(filepath.Join(h.home, "config.yaml"), "sandbox: auto\n")
	h.write(h.script, `steps: [{commands: ["cat `+private+` > taken.txt 2>&1; echo again >> taken.txt"], output: "---\n$status: more\nnote: n\n---\n"}]`)
	h.uwf(0, step("--sandbox", "off")...)
	if got := taken(); !strings.Contains(got, "Permission denied\nagain") {
		t.Errorf("--sandbox off went before the settings: %q", got)
	}
	if report.Root {
		// Tests' folders are closed to other users.
		h.uwf(1, step("--sandbox", "require")...).says("closed to other users", "chmod o+x")
	}
}

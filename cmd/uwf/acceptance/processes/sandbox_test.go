package processes

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/cmd/uwf/internal/clitest"
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

// TestSandboxByDefault: where nobody says anything agents are confined, a checkout that
// nobody trusts can't loosen that, and the person can; a line says how it is.
func TestSandboxByDefault(t *testing.T) {
	t.Parallel()
	if report := sandbox.Probe(); !report.Usable() {
		t.Skipf("NOT TESTED: no agent can be confined here: %s", report)
	}
	h := newHouse(t)
	h.env = append(h.env, clitest.EnvCells+"=1")
	var s struct{ Thread string }
	h.uwf(0, "thread", "start", "flow", "-p", "x").json(&s)
	private := h.path("private.txt")
	h.write(private, "private words")
	h.write(h.script, `steps: [{commands: ["cat `+private+` > taken.txt 2>&1; true"], output: "---\n$status: more\nnote: n\n---\n"}]`)
	for _, tt := range []struct {
		name, home, repo string
		flags            []string
		confined         bool
	}{
		{"nobody", "", "", nil, true},
		{"a checkout", "", "off", nil, true},
		{"the flag", "", "off", []string{"--sandbox", "off"}, false},
		{"the person", "off", "", nil, false},
		{"the person, and a stricter checkout", "off", "auto", nil, true},
	} {
		for file, mode := range map[string]string{filepath.Join(h.home, "config.yaml"): tt.home, filepath.Join(h.clone, ".uwf", "config.yaml"): tt.repo} {
			text := "state: {remote: origin}\n"
			if mode != "" {
				text += "sandbox: " + mode + "\n"
			}
			h.write(file, text)
		}
		want, line := "private words", "note: agents: not confined (sandbox: off), no shell, network open\n"
		if tt.confined {
			want, line = "Permission denied", "note: agents: confined ("
		}
		j := h.uwf(0, slices.Concat([]string{"thread", "step", s.Thread, "--agent", "uwf agent mock '" + h.script + "'"}, tt.flags)...)
		if j.says(line); strings.Count(j.errs.String(), "note: agents: ") != 1 {
			t.Errorf("%s: %s", tt.name, j.errs.String())
		}
		h.git(h.clone, "fetch", "-q", "origin", "uwf/"+s.Thread)
		if got := h.git(h.clone, "show", "FETCH_HEAD:taken.txt"); !strings.Contains(got, want) {
			t.Errorf("%s: the agent read %q", tt.name, got)
		}
	}
}

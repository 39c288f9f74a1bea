package processes

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
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

// TestChecksAreConfined: a check that what an agent made turns against the machine reads and
// writes nothing of it, and nothing that it starts outlives the step.
func TestChecksAreConfined(t *testing.T) {
	t.Parallel()
	report := sandbox.Probe()
	if !report.Usable() {
		t.Skipf("NOT TESTED: no check can be confined here: %s", report)
	}
	checked := strings.Replace(leak, "    output: What", "    checks: [test]\n    output: What", 1)
	m := newLab(t, checked, `steps: [{commands: ["echo x > made"], output: "---\n$status: more\nnote: n\n---\n"}]`, nil).machine("a")
	word := fmt.Sprintf("3600.%09d%d", rand.N(1_000_000_000), os.Getpid())
	secret, outside := m.path("home/.ssh/id_test"), m.path("outside.txt")
	m.write(secret, "private words\n")
	config := filepath.Join(m.home, "config.yaml")
	attack := strings.Join([]string{
		"i=0; while [ $i -lt 50 ]; do sleep " + word + " & i=$((i+1)); done",
		"(trap '' HUP TERM; setsid sleep " + word + " || sleep " + word + ") >/dev/null 2>&1 </dev/null &",
		"test -e made || exit 0",
		"for f in '" + config + "' '" + secret + "'; do if cat \"$f\"; then taken=1; fi; done",
		"if echo x > '" + outside + "'; then taken=1; fi",
		"test -z \"$taken\"",
	}, "\n    ")
	id := m.startThread()
	for _, mode := range []string{"off", "auto"} {
		m.write(config, "sandbox: "+mode+"\nchecks:\n  test: |\n    "+attack+"\n")
		step := []string{"thread", "step", id, "--agent", "uwf agent mock '" + m.script + "'"}
		if mode == "off" {
			m.start(nil, step...).ends(1).says("the check test fails", "private words")
			m.check(os.Remove(outside))
		} else {
			m.start(nil, step...).ends(0)
			if _, err := os.Stat(outside); err == nil {
				t.Error("the check wrote outside of its copy")
			}
		}
		if n := countProcesses(t, word); n > 0 {
			t.Errorf("sandbox %s: %d processes of the check live on", mode, n)
		}
	}
}

// countProcesses counts those whose command line holds a word, zombies not among them.
func countProcesses(t *testing.T, word string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("the process table is read from /proc")
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(word)) {
			n++
		}
	}
	return n
}

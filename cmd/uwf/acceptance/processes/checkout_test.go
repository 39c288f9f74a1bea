package processes

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKilledInAFolder: a folder that was named is one process's at a time. If uwf is killed while an
// agent works there, what the agent made of a .git keeps the next step out, and no uwf obeys it.
func TestKilledInAFolder(t *testing.T) {
	t.Parallel()
	m := newLab(t, leak, "steps: []", nil).machine("a")
	id := m.startThread()
	g, marker, work := m.gate("gate"), m.path("marker"), m.path("work")
	m.check(os.Mkdir(work, 0o700))
	evil := "git init -q && git config core.fsmonitor 'touch " + marker + "'"
	m.write(m.script, "steps: [{commands: ["+quoted(evil+" && cat '"+g.file+"'")+"], output: x}]")
	j := m.step(nil, id, "--workspace", work)
	_ = g.await(j) // nobody opens it: what waits there ends with the test
	m.start(nil, "run", "flow", "-p", "y", "--workspace", work, "--agent", "uwf agent mock '"+m.script+"'").ends(2).says(work + "/.git, which agents must not change")
	m.check(os.Rename(filepath.Join(work, ".git"), m.path("aside")))
	m.start(nil, "run", "flow", "-p", "y", "--workspace", work, "--agent", "uwf agent mock '"+m.script+"'").ends(2).says("another uwf lets an agent work there")
	m.check(os.Rename(m.path("aside"), filepath.Join(work, ".git")))
	m.check(j.cmd.Process.Kill())
	j.dies()
	m.start(nil, "ps").ends(0)
	m.step(nil, id, "--workspace", work).ends(2).says(work + "/.git, which agents must not change")
	if _, err := os.Stat(marker); err == nil {
		t.Error("it was run")
	}
}

// TestOwnCheckoutIsRefused: agents never work beside a .git, nor where uwf is called from, by
// whichever name.
func TestOwnCheckoutIsRefused(t *testing.T) {
	t.Parallel()
	m := newLab(t, leak, `steps: [{output: "---\n$status: more\nnote: n\n---\n"}]`, nil).machine("a")
	m.inside = true
	id := m.startThread()
	m.check(os.MkdirAll(filepath.Join(m.clone, "sub/deep"), 0o700))
	m.check(os.Symlink(m.clone, m.path("link")))
	m.git(m.clone, "worktree", "add", "-q", m.path("tree"), "-b", "tree")
	m.git(m.clone, "worktree", "add", "-q", filepath.Join(m.clone, "inner"), "-b", "inner")
	m.write(filepath.Join(m.clone, ".git/info/exclude"), "/inner/\n/sub/\n")
	m.git(m.clone, "worktree", "add", "-q", m.path("other"), "-b", "other")
	m.git(m.path("tree"), "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", m.server.Dir("r.git"), "lib")
	m.check(os.Mkdir(m.path("empty"), 0o700))
	clone := m.clone
	for _, c := range []struct {
		name, from, workspace string
		says                  string // empty: it is not refused
	}{
		{"by a dot", clone, ".", "which agents must not change"},
		{"by its name", clone, clone, "name an empty folder"},
		{"by a link", clone, m.path("link"), "which agents must not change"},
		{"from a subfolder", filepath.Join(clone, "sub/deep"), clone, "which agents must not change"},
		{"where it is called", filepath.Join(clone, "sub/deep"), ".", "which agents must not change"},
		{"a folder around it", clone, filepath.Dir(clone), "which agents must not change"},
		{"from a working tree of it", filepath.Join(clone, "inner"), clone, "which agents must not change"},
		{"from another working tree", m.path("tree"), clone, "holds " + filepath.Join(clone, ".git")},
		{"from a submodule", m.path("tree/lib"), m.path("tree"), "which agents must not change"},
		{"in git's own folder", clone, ".git/refs", "which is git's"},
		{"a working tree beside it", clone, m.path("other"), "holds " + m.path("other/.git")},
		{"an empty folder", clone, m.path("empty"), ""},
	} {
		m.clone = c.from
		if c.says != "" {
			m.step(nil, id, "--workspace", c.workspace).ends(2).says(c.says)
			m.start(nil, "run", "flow", "-p", "x", "--workspace", c.workspace).ends(2).says(c.says)
			continue
		}
		if j := m.step(nil, id, "--workspace", c.workspace); !j.succeeds() {
			t.Errorf("%s: %s", c.name, j)
		}
	}
	m.clone = clone
}

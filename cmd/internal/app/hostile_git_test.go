package app

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

// hostile is a checkout whose git files an agent may have written: each names a program
// that makes the file marker.
type hostile struct {
	*testing.T
	root, marker, home string
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	testmode.NeedGit(t)
	dir := t.TempDir()
	h := &hostile{T: t, root: filepath.Join(dir, "repo"), marker: filepath.Join(dir, "marker"), home: filepath.Join(dir, "home")}
	h.write(filepath.Join(h.home, "empty"), "")
	h.write(filepath.Join(h.root, "sub/file"), "x\n")
	h.git("init", "-q", "-b", "main")
	h.git("remote", "add", "origin", "https://forge.example/o/r.git")
	h.git("add", "-A")
	h.git("-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m")
	return h
}

func (h *hostile) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
}

// plain is git as a person types it.
func (h *hostile) plain(dir, stdin string, args ...string) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, append(h.environ(), "GIT_TERMINAL_PROMPT=0", "GIT_TEMPLATE_DIR="), strings.NewReader(stdin)
	_ = cmd.Run() // what it runs may fail it
}

func (h *hostile) git(args ...string) { h.plain(h.root, "", args...) }

func (h *hostile) write(name, text string) {
	h.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // as git makes them
		h.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil { //nolint:gosec // some are programs
		h.Fatal(err)
	}
}

// config adds to .git/config.
func (h *hostile) config(text string) {
	h.Helper()
	name := filepath.Join(h.root, ".git/config")
	old, err := os.ReadFile(name)
	if err != nil {
		h.Fatal(err)
	}
	h.write(name, string(old)+text)
}

// ran says whether a program ran, and forgets it.
func (h *hostile) ran() bool {
	_, err := os.Stat(h.marker)
	_ = os.Remove(h.marker)
	return err == nil
}

// missingHead lets HEAD name a commit that the repository has not, and would fetch.
func (h *hostile) missingHead(remote string) {
	h.config("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = evil\n[remote \"evil\"]\n\tpromisor = true\n" + remote)
	h.write(filepath.Join(h.root, ".git/refs/heads/main"), strings.Repeat("12", 20)+"\n")
}

const ask = "protocol=https\nhost=forge.example\n\n"

// TestHostileGitFiles: whatever an agent wrote where git looks for settings and programs,
// none of uwf's own calls of git runs it. Each row has a plain call of git that does.
func TestHostileGitFiles(t *testing.T) {
	fill := []string{"credential", "fill"}
	for _, c := range []struct {
		name    string
		plant   func(h *hostile)
		dir     string   // where git and uwf are called, below the checkout
		control []string // nil: git runs it only on a terminal, or never
	}{
		{"credential.helper", func(h *hostile) { h.config("[credential]\n\thelper = \"!touch " + h.marker + ";\"\n") }, "", fill},
		{"credential.URL.helper", func(h *hostile) {
			h.config("[credential \"https://forge.example\"]\n\thelper = \"!touch " + h.marker + ";\"\n")
		}, "", fill},
		{"a helper by its path", func(h *hostile) {
			h.write(filepath.Join(h.root, "sub/helper"), "#!/bin/sh\ntouch "+h.marker+"\n")
			h.config("[credential]\n\thelper = " + filepath.Join(h.root, "sub/helper") + "\n")
		}, "", fill},
		{"core.askPass", func(h *hostile) {
			h.write(filepath.Join(h.root, "sub/ask"), "#!/bin/sh\ntouch "+h.marker+"\n")
			h.config("[core]\n\taskPass = " + filepath.Join(h.root, "sub/ask") + "\n")
		}, "", fill},
		{"include.path", func(h *hostile) {
			h.write(filepath.Join(h.root, "sub/more"), "[credential]\n\thelper = \"!touch "+h.marker+";\"\n")
			h.config("[include]\n\tpath = ../sub/more\n")
		}, "", fill},
		{"includeIf", func(h *hostile) {
			h.write(filepath.Join(h.root, "sub/more"), "[credential]\n\thelper = \"!touch "+h.marker+";\"\n")
			h.config("[includeIf \"onbranch:main\"]\n\tpath = ../sub/more\n")
		}, "", fill},
		{"config.worktree", func(h *hostile) {
			h.config("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n")
			h.write(filepath.Join(h.root, ".git/config.worktree"), "[credential]\n\thelper = \"!touch "+h.marker+";\"\n")
		}, "", fill},
		{".git as a file", func(h *hostile) {
			h.config("[credential]\n\thelper = \"!touch " + h.marker + ";\"\n")
			if err := os.Rename(filepath.Join(h.root, ".git"), filepath.Join(h.root, "sub/other")); err != nil {
				h.Fatal(err)
			}
			h.write(filepath.Join(h.root, ".git"), "gitdir: sub/other\n")
		}, "", fill},
		{"commondir", func(h *hostile) {
			h.plain(h.root, "", "clone", "-q", "--bare", ".", "sub/other")
			h.plain(filepath.Join(h.root, "sub/other"), "", "config", "credential.helper", "!touch "+h.marker+";")
			h.write(filepath.Join(h.root, ".git/commondir"), "../sub/other\n")
		}, "", fill},
		{"a repository without .git", func(h *hostile) {
			h.plain(h.root, "", "init", "-q", "--bare", "sub")
			h.plain(filepath.Join(h.root, "sub"), "", "config", "credential.helper", "!touch "+h.marker+";")
		}, "sub", fill},
		{"core.fsmonitor", func(h *hostile) { h.config("[core]\n\tfsmonitor = \"touch " + h.marker + "; false\"\n") }, "", []string{"status"}},
		{"core.fsmonitor below", func(h *hostile) { h.config("[core]\n\tfsmonitor = \"touch " + h.marker + "; false\"\n") }, "sub", []string{"check-ignore", "-q", "x"}},
		{"hooks", func(h *hostile) {
			for _, name := range []string{"post-index-change", "reference-transaction", "post-checkout"} {
				h.write(filepath.Join(h.root, ".git/hooks", name), "#!/bin/sh\ntouch "+h.marker+"\n")
			}
		}, "", []string{"update-ref", "refs/heads/x", "HEAD"}},
		{"core.hooksPath", func(h *hostile) {
			h.write(filepath.Join(h.root, "sub/hooks/reference-transaction"), "#!/bin/sh\ntouch "+h.marker+"\n")
			h.config("[core]\n\thooksPath = sub/hooks\n")
		}, "", []string{"update-ref", "refs/heads/x", "HEAD"}},
		{"a lazy fetch through a helper", func(h *hostile) {
			h.missingHead("\turl = \"ext::touch " + h.marker + "\"\n[protocol \"ext\"]\n\tallow = always\n")
		}, "", []string{"rev-parse", "--verify", "HEAD^{commit}"}},
		{"a lazy fetch through core.sshCommand", func(h *hostile) {
			h.missingHead("\turl = ssh://forge.example/o/r\n[core]\n\tsshCommand = \"touch " + h.marker + ";\"\n")
		}, "", []string{"rev-parse", "--verify", "HEAD^{commit}"}},
		{"a lazy fetch through remote.NAME.uploadpack", func(h *hostile) {
			h.missingHead("\turl = file://" + h.root + "\n\tuploadpack = \"touch " + h.marker + ";\"\n")
		}, "", []string{"rev-parse", "--verify", "HEAD^{commit}"}},
		{"url.insteadOf", func(h *hostile) {
			h.config("[url \"ext::touch " + h.marker + " \"]\n\tinsteadOf = https://forge.example/\n[protocol \"ext\"]\n\tallow = always\n")
		}, "", []string{"ls-remote", "origin"}},
		{"remote.origin.url", func(h *hostile) {
			h.config("[protocol \"ext\"]\n\tallow = always\n")
			h.plain(h.root, "", "remote", "set-url", "origin", "ext::touch "+h.marker)
		}, "", []string{"ls-remote", "origin"}},
		{"remote.origin.vcs", func(h *hostile) {
			h.write(filepath.Join(h.root, "sub/git-remote-evil"), "#!/bin/sh\ntouch "+h.marker+"\n")
			h.config("[remote \"origin\"]\n\tvcs = evil\n[protocol \"evil\"]\n\tallow = always\n")
		}, "", nil},
		{"aliases", func(h *hostile) {
			for _, name := range []string{"credential", "config", "rev-parse", "remote", "check-ignore", "own"} {
				h.config("[alias]\n\t" + name + " = \"!touch " + h.marker + "\"\n")
			}
		}, "", []string{"own"}},
		{"core.pager", func(h *hostile) {
			h.config("[core]\n\tpager = \"touch " + h.marker + "\"\n[pager]\n\tconfig = true\n\tremote = true\n\trev-parse = true\n")
		}, "", nil},
		{"core.sshCommand", func(h *hostile) { h.config("[core]\n\tsshCommand = \"touch " + h.marker + ";\"\n") }, "", []string{"ls-remote", "ssh://forge.example/o/r"}},
		{"core.gitProxy", func(h *hostile) {
			h.write(filepath.Join(h.root, "sub/proxy"), "#!/bin/sh\ntouch "+h.marker+"\n")
			h.config("[core]\n\tgitProxy = " + filepath.Join(h.root, "sub/proxy") + "\n")
		}, "", []string{"ls-remote", "git://forge.example/o/r"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t)
			c.plant(h)
			at := filepath.Join(h.root, c.dir)
			h.ran()
			if c.control != nil {
				h.plain(at, ask, c.control...)
				if !h.ran() {
					t.Errorf("NOT TESTED: a plain git %s doesn't run it either", strings.Join(c.control, " "))
				}
			}
			callAll(t, NewAt(at, h.environ(), IO{}))
			if h.ran() {
				t.Error("uwf ran it")
			}
		})
	}
}

// callAll asks git everything that uwf asks it about a repository that it is called in,
// and for a change, which it never does. What it answers doesn't matter here.
func callAll(t *testing.T, f *Factory) {
	t.Helper()
	ctx := context.Background()
	u := &url.URL{Scheme: "https", Host: "forge.example", Path: "/o/r.git"}
	_, _, err := fillCredential(ctx, f, u)
	if err != nil {
		t.Error(err)
	}
	_, _ = f.RemoteURL(ctx, "origin")
	_, _, _ = localTip(ctx, f, "uwf-state")
	_, _ = localBase(ctx, f, "")
	_, _ = localBase(ctx, f, "main")
	root := f.RepoRoot()
	for _, args := range [][]string{
		{"config", "--get-regexp", `^user\.(name|email)$`}, {"check-ignore", "--quiet", "--", "x"}, {"symbolic-ref", "--quiet", "--short", "HEAD"}, {"remote"},
		{"config", "--local", "--includes", "--null", "--list"}, {"rev-parse", "--verify", "--quiet", "HEAD^{commit}"},
		{"status", "--porcelain"}, {"update-ref", "refs/heads/y", "HEAD"},
	} {
		_, _ = GitIn(ctx, f, GitCall{Dir: root, Args: args})
	}
}

// TestWhoseCredentialHelper: the user's own helpers are asked, a repository's only where
// the user's settings say so.
func TestWhoseCredentialHelper(t *testing.T) {
	h := newHostile(t)
	helper := func(user string) string {
		return "[credential]\n\thelper = \"!printf 'username=" + user + "\\npassword=p\\n';:\"\n"
	}
	u := &url.URL{Scheme: "https", Host: "forge.example"}
	asked := func(settings string) string {
		h.write(filepath.Join(h.home, ".uwf/config.yaml"), settings)
		user, _, err := fillCredential(t.Context(), NewAt(filepath.Join(h.root, "sub"), h.environ(), IO{}), u)
		if err != nil {
			t.Error(err)
		}
		return user
	}
	h.config(helper("repository"))
	for settings, want := range map[string]string{
		"": "", "state: {credentialHelper: user}\n": "", "state: {credentialHelper: repository}\n": "repository",
	} {
		if got := asked(settings); got != want {
			t.Errorf("with %q: %q, want %q", settings, got, want)
		}
	}
	h.write(filepath.Join(h.home, ".gitconfig"), helper("user"))
	if got := asked(""); got != "user" {
		t.Errorf("the user's helper: %q", got)
	}
}

package app

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// countedFactory is a Factory in a checkout, and what it calls git for: the words of each call.
func countedFactory(h *hostile, dir string) (*Factory, *[]string) {
	f := NewAt(filepath.Join(h.root, dir), h.environ(), IO{})
	calls := &[]string{}
	f.Git = func(ctx context.Context, c GitCall) ([]byte, error) {
		words := slices.DeleteFunc(slices.Clone(c.Args), func(w string) bool { return w == "-c" || strings.Contains(w, "safe.directory=") })
		*calls = append(*calls, words[0])
		return f.runGit(ctx, c)
	}
	return f, calls
}

func (h *hostile) check(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// rename and link work in .git.
func (h *hostile) rename(from, to string) {
	h.Helper()
	h.check(os.Rename(filepath.Join(h.root, ".git", from), filepath.Join(h.root, ".git", to)))
}

func (h *hostile) link(to, name string) {
	h.Helper()
	h.check(os.Symlink(to, filepath.Join(h.root, ".git", name)))
}

// TestRemoteURLAsGit: a remote's address is what git says, by whatever rule, and git is asked a
// second time only if there is a rule.
func TestRemoteURLAsGit(t *testing.T) {
	const plain = "https://forge.example/o/r.git"
	for _, c := range []struct {
		name  string
		plant func(h *hostile)
		dir   string
		asks  bool // git is asked for the address
	}{
		{"plain", func(*hostile) {}, "", false},
		{"from below", func(*hostile) {}, "sub", false},
		{"insteadOf of the user", func(h *hostile) {
			h.write(filepath.Join(h.home, ".gitconfig"), "[url \"ssh://git@forge.example/\"]\n\tinsteadOf = https://forge.example/\n")
		}, "", true},
		{"insteadOf of the repository", func(h *hostile) { h.config("[URL \"file:///x/\"]\n\tINSTEADOF = https://forge.example/\n") }, "", true},
		{"an empty insteadOf", func(h *hostile) { h.config("[url \"x:\"]\n\tinsteadOf =\n") }, "", true},
		{"insteadOf of another server", func(h *hostile) { h.config("[url \"x:\"]\n\tinsteadOf = https://other.example/\n") }, "", false},
		{"pushInsteadOf", func(h *hostile) { h.config("[url \"x:\"]\n\tpushInsteadOf = https://forge.example/\n") }, "", false},
		{"insteadOf by includeIf", func(h *hostile) {
			h.write(filepath.Join(h.home, "more"), "[url \"file:///x/\"]\n\tinsteadOf = https://forge.example/\n")
			h.write(filepath.Join(h.home, ".gitconfig"), "[includeIf \"gitdir:"+h.root+"/\"]\n\tpath = more\n")
		}, "", true},
		{"two addresses", func(h *hostile) { h.git("remote", "set-url", "--add", "origin", "https://second.example/") }, "", true},
		{"another one for pushes", func(h *hostile) { h.git("remote", "set-url", "--push", "origin", "https://second.example/") }, "", false},
		{"an address with a line break", func(h *hostile) { h.git("config", "remote.origin.url", "a\nb") }, "", false},
		{"an empty address", func(h *hostile) { h.git("config", "remote.origin.url", "") }, "", true},
		{"of the worktree", func(h *hostile) {
			h.git("config", "extensions.worktreeConfig", "true")
			h.git("remote", "remove", "origin")
			h.git("config", "--worktree", "remote.origin.url", plain)
		}, "", false},
		{"a linked worktree", func(h *hostile) { h.git("worktree", "add", "-q", "sub/linked") }, "sub/linked", false},
		{"the user's alone", func(h *hostile) {
			h.git("remote", "remove", "origin")
			h.write(filepath.Join(h.home, ".gitconfig"), "[remote \"origin\"]\n\turl = "+plain+"\n")
		}, "", true},
		{"by a file of old gits", func(h *hostile) {
			h.git("remote", "remove", "origin")
			h.write(filepath.Join(h.root, ".git/remotes/origin"), "URL: "+plain+"\n")
		}, "", true},
		{"no remote", func(h *hostile) { h.git("remote", "remove", "origin") }, "", true},
		{"another's name", func(h *hostile) { h.git("remote", "rename", "origin", "origin2") }, "", true},
		{"settings that git can't read", func(h *hostile) { h.config("[broken\n") }, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t)
			c.plant(h)
			f, calls := countedFactory(h, c.dir)

			got, err := f.RemoteURL(t.Context(), "origin")
			told, terr := GitHere(t.Context(), NewAt(f.Dir, h.environ(), IO{}), "remote", "get-url", "origin")
			if (err == nil) != (terr == nil) || err == nil && got != addressOf(f, told) {
				t.Errorf("%q, %v; git says %q, %v", got, err, told, terr)
			}
			if asked := slices.Contains(*calls, "remote"); asked != c.asks {
				t.Errorf("git was asked %v", *calls)
			}
		})
	}
}

// TestLocalTipAsGit: the tip of a local branch is what git says, and git isn't asked if its files
// show that it lacks the branch.
func TestLocalTipAsGit(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(h *hostile)
		dir   string
		asks  bool
		there bool
	}{
		{"none", func(*hostile) {}, "", false, false},
		{"a file", func(h *hostile) { h.git("branch", "uwf-state") }, "", true, true},
		{"packed", func(h *hostile) { h.git("branch", "uwf-state"); h.git("pack-refs", "--all") }, "", true, true},
		{"others packed", func(h *hostile) {
			h.git("branch", "uwf-state2")
			h.git("branch", "x/refs/heads/uwf-state")
			h.git("pack-refs", "--all")
		}, "", false, false},
		{"from a linked worktree", func(h *hostile) {
			h.git("branch", "uwf-state")
			h.git("worktree", "add", "-q", "sub/linked")
		}, "sub/linked", true, true},
		{"not in a linked worktree", func(h *hostile) { h.git("worktree", "add", "-q", "sub/linked") }, "sub/linked", false, false},
		{"a symbolic ref", func(h *hostile) { h.git("symbolic-ref", "refs/heads/uwf-state", "refs/heads/main") }, "", true, true},
		{"a link", func(h *hostile) { h.link("main", "refs/heads/uwf-state") }, "", true, true},
		{"a link to the packed ones", func(h *hostile) {
			h.git("branch", "uwf-state")
			h.git("pack-refs", "--all")
			h.git("config", "core.preferSymlinkRefs", "true")
			h.rename("packed-refs", "elsewhere")
			h.link("elsewhere", "packed-refs")
		}, "", true, true},
		{"a folder of refs elsewhere", func(h *hostile) {
			h.git("branch", "uwf-state")
			h.rename("refs", "../sub/refs")
			h.link("../sub/refs", "refs")
		}, "", true, true},
		{"a folder of that name", func(h *hostile) { h.git("branch", "uwf-state/x") }, "", true, false},
		{"worktrees with their own settings", func(h *hostile) { h.git("config", "extensions.worktreeConfig", "true") }, "", false, false},
		{"no folder of branches", func(h *hostile) { h.git("pack-refs", "--all"); h.rename("refs/heads", "refs/gone") }, "", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t)
			c.plant(h)
			f, calls := countedFactory(h, c.dir)

			got, there, err := localTip(t.Context(), f, "uwf-state")
			want, terr := GitHere(t.Context(), NewAt(f.Dir, h.environ(), IO{}), "rev-parse", "--verify", "refs/heads/uwf-state")
			if err != nil || there != c.there || there != (terr == nil) || there && got.String() != want {
				t.Errorf("%s, %v, %v; git says %s, %v", got, there, err, want, terr)
			}
			if asked := slices.Contains(*calls, "rev-parse"); asked != c.asks {
				t.Errorf("git was asked %v", *calls)
			}
		})
	}
}

// TestRefsThatGitKeepsElsewhere: of refs that are not in files as we know them, git is asked, and
// nothing is waited for.
func TestRefsThatGitKeepsElsewhere(t *testing.T) {
	for name, plant := range map[string]func(h *hostile){
		"the format reftable": func(h *hostile) { h.config("[extensions]\n\trefStorage = reftable\n") },
		"reftable's own files": func(h *hostile) {
			h.rename("refs/heads", "gone")
			h.write(filepath.Join(h.root, ".git/refs/heads"), "this repository uses the reftable format\n")
		},
		"a pipe of packed refs": func(h *hostile) { h.check(unix.Mkfifo(filepath.Join(h.root, ".git/packed-refs"), 0o600)) },
		"packed refs that are huge": func(h *hostile) {
			h.write(filepath.Join(h.root, ".git/packed-refs"), "")
			h.check(os.Truncate(filepath.Join(h.root, ".git/packed-refs"), 1<<30))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t)
			f := NewAt(h.root, h.environ(), IO{})
			asked := false
			f.Git = func(ctx context.Context, c GitCall) ([]byte, error) {
				if slices.Contains(c.Args, "config") {
					return f.runGit(ctx, c)
				}
				asked = true
				return []byte(strings.Repeat("12", 20) + "\n"), nil
			}

			// Read before, as this machine's git may not know the format.
			if _, err := readSettings(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			if name == "the format reftable" {
				f.settings.value = append(f.settings.value, gitSetting{"local", "extensions.refstorage", "reftable"})
			} else {
				plant(h)
			}

			if got, there, err := localTip(t.Context(), f, "uwf-state"); !asked || !there || err != nil || got == wire.ZeroID {
				t.Errorf("%s, %v, %v; asked: %v", got, there, err, asked)
			}
		})
	}
}

// TestSettingsProveTheVersion: the settings are asked for without a look at git's version, and one
// that is too old is refused all the same.
func TestSettingsProveTheVersion(t *testing.T) {
	const ask = `case "$*" in *" config "*) `
	for name, c := range map[string]struct {
		script string
		old    bool
		calls  int
	}{
		"new":       {ask + `printf 'command\0uwf.proof\nnew\0local\0remote.origin.url\nx:y\0';; *) echo git version 1.0;; esac`, false, 1},
		"old":       {ask + `printf 'local\0remote.origin.url\nx:y\0';; *) echo git version 2.30.9;; esac`, true, 2},
		"forged":    {ask + `printf 'local\0uwf.proof\nnew\0local\0remote.origin.url\nx:y\0';; *) echo git version 2.30.9;; esac`, true, 2},
		"very old":  {ask + `exit 129;; *) echo git version 1.9.1;; esac`, true, 2},
		"a program": {ask + `printf 'local\0remote.origin.url\nx:y\0';; *) echo own;; esac`, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, filepath.Join(dir, "git"), "#!/bin/sh\necho called >>"+filepath.Join(dir, "log")+"\n"+c.script+"\n")
			put(t, filepath.Join(dir, "repo/.git/HEAD"), "ref: refs/heads/main\n")
			f := NewAt(filepath.Join(dir, "repo"), []string{"PATH=" + dir}, IO{})
			address, err := f.RemoteURL(t.Context(), "origin")
			if old := (*OldGitError)(nil); errors.As(err, &old) != c.old || !c.old && address != "x:y" {
				t.Errorf("%q, %v", address, err)
			}
			if log, err := os.ReadFile(filepath.Join(dir, "log")); err != nil || !c.old && strings.Count(string(log), "called") != c.calls {
				t.Errorf("it was run %q, %v; want %d times", log, err, c.calls)
			}
		})
	}
}

// TestNoHelperIsAsked: git credential runs only if somebody set a helper whose word counts.
func TestNoHelperIsAsked(t *testing.T) {
	h := newHostile(t)
	real, err := exec.LookPath("git")
	h.check(err)
	h.write(filepath.Join(h.home, "bin/git"), "#!/bin/sh\nGIT_CONFIG_NOSYSTEM=1 exec "+real+" \"$@\"\n") // this machine may have one
	const helper = "[credential]\n\thelper = store\n"
	for _, c := range []struct {
		home, repository, settings string
		asks                       bool
	}{
		{"", "", "", false},
		{"[credential]\n\tusername = me\n\tuseHttpPath = true\n", "", "", false},
		{helper, "", "", true},
		{"[credential \"https://other.example\"]\n\thelper = store\n", "", "", true},
		{"", helper, "", false},
		{"", helper, "state: {credentialHelper: repository}\n", true},
	} {
		h.write(filepath.Join(h.home, ".gitconfig"), c.home)
		h.write(filepath.Join(h.root, ".git/config"), "[core]\n\trepositoryformatversion = 0\n"+c.repository)
		h.write(filepath.Join(h.home, ".uwf/config.yaml"), c.settings)
		f, calls := countedFactory(h, "")
		f.Environ = append(f.Environ, "PATH="+filepath.Join(h.home, "bin")+":"+os.Getenv("PATH"))
		_, _, err := fillCredential(t.Context(), f, &url.URL{Scheme: "https", Host: "forge.example", Path: "/o/r"})
		if err != nil || slices.Contains(*calls, "credential") != c.asks {
			t.Errorf("%+v: git was asked %v, %v", c, *calls, err)
		}
	}
}

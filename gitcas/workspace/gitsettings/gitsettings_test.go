package gitsettings

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// git runs native git with nothing of this machine's settings.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(at), 0o755))
	must(t, os.WriteFile(at, []byte(text), 0o755)) //nolint:gosec // some are hooks
}

// repo makes a checkout, a whole one with a submodule and another working tree, in a
// folder of its own.
func repo(t *testing.T, whole bool) (dir, store string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED: there is no git")
	}
	top := t.TempDir()
	dir = filepath.Join(top, "w")
	write(t, dir, "f", "x")
	git(t, dir, "init", "-q", "-b", "main")
	if whole {
		lib := filepath.Join(top, "lib")
		write(t, lib, "f", "x")
		git(t, lib, "init", "-q", "-b", "main")
		git(t, lib, "add", ".")
		git(t, lib, "commit", "-q", "-m", "m")
		git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "deep/lib")
	}
	git(t, dir, "add", ".")
	git(t, dir, "commit", "-q", "-m", "m")
	if whole {
		git(t, dir, "worktree", "add", "-q", filepath.Join(top, "tree"))
	}
	write(t, dir, ".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n")
	must(t, os.Symlink("pre-commit", filepath.Join(dir, ".git/hooks/pre-push")))
	write(t, dir, ".git/info/attributes", "*.bin -diff\n")
	return dir, filepath.Join(top, "store")
}

// listing is everything that is to be as before: what lies in the .git of a folder, but for
// what git stores, and every entry named .git.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		must(t, err)
		rel, _ := filepath.Rel(dir, path)
		if d.Name() == "objects" || d.Name() == "refs" || d.Name() == "logs" {
			return fs.SkipDir
		}
		if strings.HasPrefix(d.Name(), replacedPrefix) {
			return fs.SkipDir
		}
		if !strings.Contains(rel, ".git") || strings.HasSuffix(rel, "index") {
			return nil
		}
		info, err := d.Info()
		must(t, err)
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			must(t, err)
			text += " " + string(data)
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			must(t, err)
			text += " -> " + target
		}
		out[rel] = text
		return nil
	}))
	return out
}

func compare(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, is := range after {
		if was, there := before[name]; !there {
			t.Errorf("%s was left: %.200q", name, is)
		} else if was != is {
			t.Errorf("%s is %.200q, and was %.200q", name, is, was)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			t.Errorf("%s is gone", name)
		}
	}
}

// attacks are what an agent may do to a .git; says is told of it.
var attacks = []struct {
	name string
	do   func(t *testing.T, dir string)
	says []string
}{
	{"nothing in a whole repository", func(*testing.T, string) {}, nil},
	{"work with git", func(t *testing.T, dir string) {
		write(t, dir, "new", "x")
		git(t, dir, "add", "new")
		git(t, dir, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "m")
		git(t, dir, "checkout", "-q", "-b", "other")
	}, nil},
	{"a setting", func(t *testing.T, dir string) { git(t, dir, "config", "credential.helper", "!evil --token=s3cret") },
		[]string{".git/config sets credential.helper"}},
	{"settings taken away", func(t *testing.T, dir string) {
		write(t, dir, ".git/config", "[core]\n\trepositoryformatversion = 0\n[alias \"x\"]\n\tcommand = y\n")
	}, []string{"sets alias.x.command; no longer sets core.bare, "}},
	{"every kind of setting", func(t *testing.T, dir string) {
		for _, kv := range [][2]string{
			{"url.https://evil.example/.insteadOf", "https://"}, {"core.fsmonitor", "evil"}, {"core.hooksPath", "/evil"}, {"core.pager", "evil"}, {"core.sshCommand", "evil"},
			{"alias.st", "!evil"}, {"remote.origin.url", "ext::evil"}, {"include.path", "/evil"}, {"filter.x.clean", "evil"}, {"diff.external", "evil"},
		} {
			git(t, dir, "config", kv[0], kv[1])
		}
	}, []string{"url.https://evil.example/.insteadof", "core.fsmonitor, core.hookspath, core.pager", "remote.origin.url"}},
	{"settings that only look different", func(t *testing.T, dir string) {
		text, err := os.ReadFile(filepath.Join(dir, ".git/config"))
		must(t, err)
		write(t, dir, ".git/config", string(text)+"\n# a remark\n")
	}, []string{".git/config was rewritten"}},
	{"settings that are none", func(t *testing.T, dir string) { write(t, dir, ".git/config", "\x00\xff[[[\"\n=\\\n") }, []string{".git/config sets "}},
	{"settings of the working tree", func(t *testing.T, dir string) {
		write(t, dir, ".git/config.worktree", "[core]\n\tfsmonitor = evil\n")
	}, []string{".git/config.worktree sets core.fsmonitor"}},
	{"settings removed", func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, ".git/config"))) }, []string{".git/config was removed"}},
	{"settings as a link", func(t *testing.T, dir string) {
		must(t, os.Rename(filepath.Join(dir, ".git/config"), filepath.Join(dir, "config")))
		must(t, os.Symlink("../config", filepath.Join(dir, ".git/config")))
	}, []string{".git/config was made a symlink"}},
	{"settings as a folder", func(t *testing.T, dir string) {
		must(t, os.Remove(filepath.Join(dir, ".git/config")))
		write(t, dir, ".git/config/x", "x")
	}, []string{".git/config was made a folder"}},
	{"settings as a FIFO", func(t *testing.T, dir string) {
		must(t, os.Remove(filepath.Join(dir, ".git/config")))
		must(t, unix.Mkfifo(filepath.Join(dir, ".git/config"), 0o600))
	}, []string{".git/config was made a named pipe"}},
	{"huge settings", func(t *testing.T, dir string) { must(t, os.Truncate(filepath.Join(dir, ".git/config"), 1<<40)) }, []string{".git/config was changed"}},
	{"hooks", func(t *testing.T, dir string) {
		write(t, dir, ".git/hooks/pre-commit", "#!/bin/sh\nevil\n")
		write(t, dir, ".git/hooks/post-checkout", "#!/bin/sh\nevil\n")
		must(t, os.Remove(filepath.Join(dir, ".git/hooks/pre-push")))
	}, []string{".git/hooks added post-checkout, changed pre-commit, removed pre-push"}},
	{"a hook that can be run", func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, ".git/hooks/pre-commit"), 0o644)) }, []string{".git/hooks changed pre-commit"}},
	{"hooks as a link", func(t *testing.T, dir string) {
		must(t, os.RemoveAll(filepath.Join(dir, ".git/hooks")))
		write(t, dir, "evil/pre-commit", "evil")
		must(t, os.Symlink("../evil", filepath.Join(dir, ".git/hooks")))
	}, []string{".git/hooks was made a symlink"}},
	{"hooks taken away", func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, ".git/hooks"))) }, []string{".git/hooks was removed"}},
	{"very many hooks", func(t *testing.T, dir string) {
		for i := range 3000 {
			write(t, dir, fmt.Sprintf(".git/hooks/%04d", i), "evil")
		}
	}, []string{".git/hooks added ", ", and more"}},
	{"hooks without rights", func(t *testing.T, dir string) {
		write(t, dir, ".git/hooks/x/y", "evil")
		must(t, os.Chmod(filepath.Join(dir, ".git/hooks/x"), 0))
		must(t, os.Chmod(filepath.Join(dir, ".git/hooks"), 0))
	}, []string{".git/hooks changed, added x, added x/y"}},
	{"no rights at all", func(t *testing.T, dir string) {
		git(t, dir, "config", "core.fsmonitor", "evil")
		must(t, os.Chmod(filepath.Join(dir, ".git/config"), 0))
		for _, name := range []string{".git/info", ".git", "."} {
			must(t, os.Chmod(filepath.Join(dir, name), 0))
		}
	}, []string{".git/config ", ".git/info changed"}},
	{"attributes", func(t *testing.T, dir string) { write(t, dir, ".git/info/attributes", "* filter=evil\n") }, []string{".git/info changed attributes"}},
	{"remotes of old", func(t *testing.T, dir string) { write(t, dir, ".git/remotes/origin", "URL: ext::evil\n") }, []string{".git/remotes was added"}},
	{"a rebase that runs a program", func(t *testing.T, dir string) {
		git(t, dir, "commit", "-q", "--allow-empty", "-m", "m2")
		git(t, dir, "-c", "sequence.editor=echo break >", "rebase", "-q", "-i", "HEAD~1")
		write(t, dir, ".git/rebase-merge/git-rebase-todo", "exec evil\n")
	}, []string{".git/rebase-merge was added"}},
	{"patches and picks under way", func(t *testing.T, dir string) {
		write(t, dir, ".git/rebase-apply/next", "1\n")
		write(t, dir, ".git/sequencer/opts", "[options]\n\tstrategy = evil\n")
	}, []string{".git/rebase-apply was added", ".git/sequencer was added"}},
	{"commondir", func(t *testing.T, dir string) {
		git(t, dir, "init", "-q", "--bare", "evil")
		write(t, dir, ".git/commondir", "../evil\n")
	}, []string{".git/commondir was added"}},
	{"hooks of elsewhere", func(t *testing.T, dir string) {
		must(t, os.RemoveAll(filepath.Join(dir, ".git/hooks")))
		git(t, dir, "init", "-q", "--bare", "evil")
		must(t, os.Rename(filepath.Join(dir, "evil/hooks"), filepath.Join(dir, ".git/hooks")))
		write(t, dir, ".git/hooks/pre-push", "evil")
	}, []string{".git/hooks "}},
	{"a submodule's settings", func(t *testing.T, dir string) {
		git(t, filepath.Join(dir, "deep/lib"), "config", "core.fsmonitor", "evil")
		write(t, dir, ".git/modules/deep/lib/hooks/post-checkout", "evil")
	}, []string{".git/modules/deep/lib/config sets core.fsmonitor", ".git/modules/deep/lib/hooks added post-checkout"}},
	{"a submodule of its own", func(t *testing.T, dir string) {
		must(t, os.Remove(filepath.Join(dir, "deep/lib/.git")))
		git(t, filepath.Join(dir, "deep/lib"), "init", "-q")
		git(t, filepath.Join(dir, "deep/lib"), "config", "core.fsmonitor", "evil")
	}, []string{"deep/lib/.git was made a folder"}},
	{"a submodule's file", func(t *testing.T, dir string) { write(t, dir, "deep/lib/.git", "gitdir: ../../evil\n") }, []string{"deep/lib/.git was changed"}},
	{"another working tree", func(t *testing.T, dir string) {
		git(t, dir, "init", "-q", "--bare", "evil")
		write(t, dir, ".git/worktrees/tree/commondir", "../../../evil\n")
		write(t, dir, ".git/worktrees/tree/gitdir", "/evil/.git\n")
	}, []string{".git/worktrees/tree/commondir was changed", ".git/worktrees/tree/gitdir was changed"}},
}

func isStored(name string) bool {
	return slices.Contains([]string{".git/HEAD", ".git/COMMIT_EDITMSG", ".git/ORIG_HEAD", ".git/REBASE_HEAD", ".git/AUTO_MERGE"}, name)
}

func TestPutBack(t *testing.T) {
	for _, c := range attacks {
		t.Run(c.name, func(t *testing.T) {
			dir, store := repo(t, strings.Contains(c.name, "submodule") || strings.Contains(c.name, "whole") || strings.Contains(c.name, "another"))
			before := listing(t, dir)
			k, err := Keep(dir, nil, store)
			must(t, err)
			c.do(t, dir)
			changed, err := k.PutBack(context.Background())
			must(t, err)
			after := listing(t, dir)
			if c.name == "no rights at all" {
				delete(before, ".git")
				delete(after, ".git")
			}
			for _, all := range []map[string]string{before, after} { // what git stores is the agent's
				maps.DeleteFunc(all, func(name, _ string) bool { return isStored(name) })
			}
			if c.name == "hooks of elsewhere" || c.name == "commondir" || c.name == "another working tree" {
				must(t, os.RemoveAll(filepath.Join(dir, "evil")))
			}
			compare(t, before, after)
			told := strings.Join(changed, "\n")
			for _, says := range c.says {
				if !strings.Contains(told, says) {
					t.Errorf("it does not say %q:\n%s", says, told)
				}
			}
			if len(c.says) == 0 && told != "" || strings.Contains(told, "s3cret") || strings.Contains(told, "evil --") {
				t.Errorf("it says:\n%s", told)
			}
			if left, err := os.ReadDir(store); err != nil || len(left) > 0 {
				t.Errorf("copies are left: %v %v", left, err)
			}
			git(t, dir, "status")
		})
	}
}

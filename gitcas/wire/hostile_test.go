//go:build unix

package wire_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// TestHostileRepository: whatever a repository on this machine has in its settings,
// reading from it and pushing to it runs no program that they name, and fetches nothing.
func TestHostileRepository(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	program := filepath.Join(t.TempDir(), "program")
	writeFile(t, program, "#!/bin/sh\ntouch "+ran+"\n", 0o700)
	for name, plant := range map[string]func(t *testing.T, d string) (settings string){
		"uploadpack.packObjectsHook": func(*testing.T, string) string { return "[uploadpack]\n\tpackObjectsHook = " + program + "\n" },
		"core.hooksPath": func(t *testing.T, _ string) string {
			hooks := t.TempDir()
			for _, h := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction", "proc-receive", "push-to-checkout"} {
				writeFile(t, filepath.Join(hooks, h), "#!/bin/sh\ntouch "+ran+"\n", 0o700)
			}
			return "[core]\n\thooksPath = " + hooks + "\n"
		},
		"core.fsmonitor":  func(*testing.T, string) string { return "[core]\n\tfsmonitor = " + program + "\n" },
		"core.sshCommand": func(*testing.T, string) string { return "[core]\n\tsshCommand = " + program + "\n" },
		"core.pager":      func(*testing.T, string) string { return "[core]\n\tpager = " + program + "\n" },
		"core.alternateRefsCommand": func(t *testing.T, d string) string {
			other := bare(t)
			history(t, dialBed(t, "file://"+other, other, wire.DialOptions{}).remote, "refs/heads/main", 1)
			writeFile(t, filepath.Join(d, "objects/info/alternates"), filepath.Join(other, "objects")+"\n", 0o600)
			return "[core]\n\talternateRefsCommand = " + program + "\n"
		},
		"gc": func(*testing.T, string) string {
			return "[receive]\n\tautoGC = true\n[gc]\n\tauto = 1\n\trecentObjectsHook = " + program + "\n[maintenance]\n\tauto = true\n"
		},
		"a lazy fetch": func(t *testing.T, d string) string {
			writeFile(t, filepath.Join(d, "refs/heads/missing"), strings.Repeat("12", 20)+"\n", 0o600)
			return "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = evil\n[remote \"evil\"]\n\tpromisor = true\n" +
				"\turl = \"ext::" + program + "\"\n[protocol \"ext\"]\n\tallow = always\n"
		},
		"a lazy fetch over ssh": func(t *testing.T, d string) string {
			writeFile(t, filepath.Join(d, "refs/heads/missing"), strings.Repeat("12", 20)+"\n", 0o600)
			return "[core]\n\trepositoryformatversion = 1\n\tsshCommand = " + program + "\n[extensions]\n\tpartialClone = evil\n[remote \"evil\"]\n\tpromisor = true\n" +
				"\turl = ssh://forge.example/r\n"
		},
		"hook.NAME.command": func(*testing.T, string) string { return configuredHooks("a.b c", program) },
		"hook.NAME.command, included": func(t *testing.T, d string) string {
			writeFile(t, filepath.Join(d, "more"), configuredHooks("x", program), 0o600)
			return "[include]\n\tpath = more\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(ran)
			d := bare(t)
			history(t, dialBed(t, "file://"+d, d, wire.DialOptions{}).remote, "refs/heads/before", 2)
			old, err := os.ReadFile(filepath.Join(d, "config"))
			if err != nil {
				t.Fatal(err)
			}
			settings := plant(t, d)
			writeFile(t, filepath.Join(d, "config"), string(old)+settings, 0o600)
			r := dialBed(t, "file://"+d, d, wire.DialOptions{}).remote
			l := list(t, r, "refs/heads/before")
			_ = fetch(t, r, wire.FetchRequest{Wants: []wire.ID{l.Refs["refs/heads/before"]}, Depth: 1})
			_, _ = r.Fetch(t.Context(), wire.FetchRequest{Wants: []wire.ID{{0x12}}, Depth: 1}) // it has none
			_, _ = r.List(t.Context(), "refs/heads/missing")
			top := tree()
			c := commit("c", top)
			// Into a repository that lacks what it says it has, nothing is pushed.
			_, err = r.Push(t.Context(), wire.PushRequest{Updates: []wire.RefUpdate{{Name: "refs/heads/main", New: c.ID}}, Objects: plain(top, c)})
			if err != nil && !strings.Contains(name, "lazy") {
				t.Error(err)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("a program ran")
			}
		})
	}
}

// configuredHooks defines a hook for everything that a push calls one for.
func configuredHooks(name, program string) string {
	text := "[hook \"" + name + "\"]\n\tcommand = " + program + "\n"
	for _, event := range []string{"pre-receive", "update", "post-receive", "post-update", "reference-transaction"} {
		text += "\tevent = " + event + "\n"
	}
	return text
}

// TestConfiguredHooksAreOff: hooks that the settings define are switched off by their
// names, also for a git that is too old to run them.
func TestConfiguredHooksAreOff(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"none":        {map[string]string{"config": "[core]\n\thooksPath = x\n"}, nil},
		"two":         {map[string]string{"config": configuredHooks("a.b c", "x") + configuredHooks("other", "x")}, []string{"=hook.a.b c.enabled", "=hook.other.enabled"}},
		"an old form": {map[string]string{"config": "[HOOK.x]\n\tcommand = y\n"}, []string{"=hook.x.enabled"}},
		"included":    {map[string]string{"config": "[include]\n\tpath = more\n", "more": configuredHooks("in", "x")}, []string{"=hook.in.enabled"}},
		"of the working tree": {map[string]string{
			"config": "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n", "config.worktree": configuredHooks("tree", "x"),
		}, []string{"=hook.tree.enabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := bare(t)
			for file, text := range c.files {
				old, _ := os.ReadFile(filepath.Join(d, file)) // only config is there
				writeFile(t, filepath.Join(d, file), string(old)+text, 0o600)
			}
			seen := filepath.Join(t.TempDir(), "env")
			git, err := exec.LookPath("git")
			if err != nil {
				t.Fatal(err)
			}
			env := fakePrograms(t, "git", "case \"$*\" in *upload-pack*) env > "+seen+";; esac\nexec "+git+" \"$@\"")
			_ = list(t, dialBed(t, "file://"+d, d, wire.DialOptions{Env: env}).remote, "refs/")
			b, err := os.ReadFile(seen)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(b), want+"\n") {
					t.Errorf("%s is not in the environment", want)
				}
			}
			if n := strings.Count(string(b), ".enabled\n"); n != len(c.want) {
				t.Errorf("%d hooks are switched off, want %d", n, len(c.want))
			}
		})
	}
}

package app

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSSHCommandOfSettings: what the user's settings include for a repository is obeyed there, and
// what the repository itself says never.
func TestSSHCommandOfSettings(t *testing.T) {
	home, work, own := t.TempDir(), t.TempDir(), t.TempDir()
	settings := "[includeIf \"gitdir:" + work + "/\"]\n\tpath = work.inc\n"
	for name, text := range map[string]string{".gitconfig": settings, "work.inc": "[core]\n\tsshCommand = ssh -i work\n"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{work: "ssh -i work", own: ""} {
		f := newFactory(t, "HOME="+home, "PATH="+os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1")
		f.Dir, f.Git = dir, f.runGit
		for _, args := range [][]string{{"init", "-q"}, {"config", "core.sshCommand", "touch pwned"}} {
			cmd := exec.CommandContext(t.Context(), "git", args...)
			cmd.Dir, cmd.Env = dir, f.Environ
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
		if got := readSSHCommand(t.Context(), f); got != want {
			t.Errorf("in %s: %q, want %q", dir, got, want)
		}
	}
}

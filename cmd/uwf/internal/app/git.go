package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

// gitVariables are what git gets of the environment: what it needs to find its
// programs, the user's own configuration and the ssh agent. No token, and none of
// git's own variables, which could point it at another repository.
func gitVariables() []string {
	return []string{
		"PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR", "USER", "LOGNAME", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS",
		"XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "PATHEXT",
	}
}

// gitWait bounds one call of git. These are look-ups that take milliseconds; only
// a credential helper may have to ask a person.
const gitWait = 2 * time.Minute

// runGit is the Factory's Git.
func (f *Factory) runGit(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	path := f.Getenv("PATH")
	if apart := outside(path, dir, f.Getenv("GITHUB_WORKSPACE")); apart != path {
		if program, err := programIn(apart, "git"); err == nil { // else its only place is there
			cmd.Path, cmd.Err, path = program, nil, apart
		}
	}
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.WaitDelay = time.Second
	cmd.Env = []string{"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0"}
	if !f.IO.InTTY || !f.IO.ErrTTY {
		cmd.Env = append(cmd.Env, "GIT_TERMINAL_PROMPT=0") // nobody is there to answer
	}
	for _, name := range gitVariables() {
		v := f.Getenv(name)
		if name == "PATH" {
			v = path
		}
		if v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, &GitError{Args: args, Stderr: strings.TrimSpace(stderr.String()), Err: err}
	}
	return out, nil
}

// outside is a PATH without what lies in one of some folders: agents work there, and
// what they put there is no git for a process that isn't confined.
func outside(path string, folders ...string) string {
	var kept []string
	for _, place := range filepath.SplitList(path) {
		if !slices.ContainsFunc(folders, func(dir string) bool { return dir != "" && lies(place, dir) }) {
			kept = append(kept, place)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

// lies says whether a place is a folder or lies in it, by its name or where it leads.
func lies(place, dir string) bool {
	for _, name := range []string{place, realPath(place)} {
		for _, top := range []string{dir, realPath(dir)} {
			if rel, err := filepath.Rel(top, name); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	return false
}

func realPath(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	return path
}

// programIn looks a program up in a PATH that is not this process's own.
func programIn(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// GitError is a failed call of git.
type GitError struct {
	Args   []string
	Stderr string
	Err    error
}

func (e *GitError) Error() string {
	verb := "git"
	for _, a := range e.Args {
		if !strings.HasPrefix(a, "-") && !strings.Contains(a, "=") {
			verb += " " + a
			break
		}
	}
	if errors.Is(e.Err, exec.ErrNotFound) {
		return verb + ": git is not installed, or not on PATH"
	}
	if e.Stderr != "" {
		return fmt.Sprintf("%s: %s", verb, e.Stderr)
	}
	return fmt.Sprintf("%s: %v", verb, e.Err)
}

// Unwrap gives the cause.
func (e *GitError) Unwrap() error { return e.Err }

// status is the exit code of a failed call; 0 when it didn't run.
func (e *GitError) status() int {
	var exit *exec.ExitError
	if errors.As(e.Err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// localTip looks a branch up in the repository around the working directory.
func (f *Factory) localTip(ctx context.Context, branch string) (wire.ID, bool, error) {
	r := f.Repo()
	out, err := f.Git(ctx, r.Root, nil, "-c", "safe.directory="+r.Root, "rev-parse", "--quiet", "--verify", "refs/heads/"+branch)
	var ge *GitError
	if errors.As(err, &ge) && ge.status() == 1 {
		return wire.ZeroID, false, nil // there is none
	}
	if err != nil {
		return wire.ZeroID, false, err
	}
	text := strings.TrimSpace(string(out))
	if !plumbing.IsHash(text) {
		return wire.ZeroID, false, fmt.Errorf("git rev-parse of branch %s: %q is no object id", branch, text)
	}
	return plumbing.NewHash(text), true, nil
}

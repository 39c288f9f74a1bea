package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
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
		"XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "TEMP",
	}
}

// gitWait bounds one call of git. These are look-ups that take milliseconds; only
// a credential helper may have to ask a person.
const gitWait = 2 * time.Minute

// harmlessGit is what keeps git from running a program that a repository's own files
// name, and from fetching: uwf only asks it what there is. Agents may have written them.
func harmlessGit() []string {
	return []string{
		"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0",
		// Git never asks for a password: it would not say what for, and leave a terminal without
		// echo if it is killed. An empty GIT_ASKPASS goes before core.askPass and SSH_ASKPASS.
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=",
		"GIT_DEFAULT_HASH=sha1",   // uwf reads no other repositories, whatever the user's git makes
		"GIT_ALLOW_PROTOCOL=none", // else a look at a missing commit fetches it, by whatever program
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=false",
		"GIT_CONFIG_KEY_1=core.hooksPath", "GIT_CONFIG_VALUE_1=" + os.DevNull,
	}
}

// runGit is the Factory's Git.
func (f *Factory) runGit(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitWait)
	defer cancel()
	path := programPath(f, dir)
	program, err := programIn(path, "git")
	if err != nil {
		return nil, &GitError{Args: args, Err: err}
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.WaitDelay = time.Second
	cmd.Env = harmlessGit()
	if dir == "" {
		// No folder is looked at for a repository, whatever it holds.
		cmd.Dir, cmd.Env = topFolder(f.Dir), append(cmd.Env, "GIT_DIR="+os.DevNull)
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

// GitHere runs git in the repository around the working directory, whoever owns that, and
// returns what it prints.
func GitHere(ctx context.Context, f *Factory, args ...string) (string, error) {
	root := f.RepoRoot()
	out, err := f.Git(ctx, root, nil, append([]string{"-c", "safe.directory=" + root}, args...)...)
	return strings.TrimSpace(string(out)), err
}

// topFolder is the top of the file system that a folder lies in.
func topFolder(dir string) string { return filepath.VolumeName(dir) + string(filepath.Separator) }

// programPath is PATH without what lies where agents work or have worked: this
// repository, a job's workspace, what ExcludeProgramsFrom was told, and dir, if it isn't empty.
// What they put there is no git for a process that isn't confined. What holds the
// user's home folder stays: programs of the user's lie there. Where PATH names no other git,
// the one there is taken.
func programPath(f *Factory, dir string) string {
	folders := append([]string{dir, f.Dir, f.RepoRoot(), f.Getenv("GITHUB_WORKSPACE")}, f.apart...)
	if home := f.Getenv("HOME"); home != "" {
		folders = slices.DeleteFunc(folders, func(dir string) bool { return dir != "" && Within(home, dir) })
	}
	path := f.Getenv("PATH")
	apart := pathOutside(path, folders...)
	if _, err := programIn(apart, "git"); err != nil {
		return path
	}
	return apart
}

// ExcludeProgramsFrom names a folder in which agents are to work: no program is taken from there.
func (f *Factory) ExcludeProgramsFrom(dir string) { f.apart = append(f.apart, dir) }

// Program finds a program of this machine, and the environment to run it with: this
// process's, with the PATH that it was found in.
func (f *Factory) Program(name string) (program string, environ []string, err error) {
	environ = environApart(f)
	program, err = programIn(programPath(f, ""), name)
	return program, environ, err
}

// environApart is this process's environment with a PATH that no agent has written to.
func environApart(f *Factory) []string {
	return append(slices.Clone(f.Environ), "PATH="+programPath(f, ""))
}

// pathOutside is a PATH without what lies in one of some folders.
func pathOutside(path string, folders ...string) string {
	var tops, kept []string
	for _, dir := range folders {
		if dir != "" {
			tops = append(tops, dir, realPath(dir))
		}
	}
	for _, place := range filepath.SplitList(path) {
		if !liesIn(place, tops) {
			kept = append(kept, place)
		}
	}
	return strings.Join(kept, string(filepath.ListSeparator))
}

// Within says whether a place is a folder or lies in it, by its name or where it leads, or
// since a folder on its way is that folder by another name: in other letters, or mounted
// twice. It need not be there.
func Within(place, dir string) bool {
	if liesIn(place, []string{dir, realPath(dir)}) {
		return true
	}
	top, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for at := realPath(place); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, top) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

func liesIn(place string, tops []string) bool {
	for _, name := range []string{place, realPath(place)} {
		for _, top := range tops {
			if rel, err := filepath.Rel(top, name); err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
	}
	return false
}

// realPath is where a path leads, as far as it is there.
func realPath(path string) string {
	rest := ""
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if to, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(to, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
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

// localTip looks a branch up in the repository around the working directory.
func localTip(ctx context.Context, f *Factory, branch string) (wire.ID, bool, error) {
	id, err := GitHere(ctx, f, "rev-parse", "--quiet", "--verify", "refs/heads/"+branch)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return wire.ZeroID, false, nil // there is none
	}
	return plumbing.NewHash(id), err == nil, err
}

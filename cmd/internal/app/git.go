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
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/gitenv"
	"github.com/united-workforce/uwf/internal/lists"
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

// harmlessGit is the environment that keeps git from asking anybody and from fetching: uwf only
// reads from the repository.
func harmlessGit() []string {
	return []string{
		"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0",
		// Git never asks for a password: it would not say what for, and leave a terminal without
		// echo if it is killed. An empty GIT_ASKPASS goes before core.askPass and SSH_ASKPASS.
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=",
		"GIT_DEFAULT_HASH=sha1",   // uwf reads no other repositories, whatever the user's git makes
		"GIT_ALLOW_PROTOCOL=none", // else a look at a missing commit fetches it, by whatever program
	}
}

// noPrograms are arguments that keep git from running a program that a repository's own files
// name. Agents may have written them.
func noPrograms() []string {
	return gitenv.Args(
		gitenv.Setting{Key: "core.fsmonitor", Value: "false"},
		gitenv.Setting{Key: "core.hooksPath", Value: os.DevNull},
	)
}

// GitCall is one call of git.
type GitCall struct {
	Dir   string   // empty: no repository
	Env   []string // beside what every call gets
	Stdin []byte
	Args  []string
	proof string // only a git that is new enough prints it; empty: its version is asked for
}

// runGit is the Factory's Git.
func (f *Factory) runGit(ctx context.Context, c GitCall) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitWait)
	defer cancel()
	path := programPath(f, c.Dir)
	environ := gitEnviron(f, path)
	program, err := programIn(path, "git")
	if err == nil && c.proof == "" {
		err = refuseOldGit(ctx, &f.gits, program, environ)
	}
	if err != nil {
		return nil, &GitError{Args: c.Args, Err: err}
	}

	cmd := exec.CommandContext(ctx, program, append(noPrograms(), c.Args...)...)
	cmd.Dir = c.Dir
	cmd.Stdin = bytes.NewReader(c.Stdin)
	cmd.WaitDelay = time.Second
	cmd.Env = slices.Concat(environ, c.Env)
	if c.Dir == "" {
		// No folder is looked at for a repository, whatever it holds.
		cmd.Dir, cmd.Env = topFolder(f.Dir), append(cmd.Env, "GIT_DIR="+os.DevNull)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if c.proof != "" && bytes.Contains(out, []byte(c.proof)) {
		f.gits.Store(program, true)
	} else if old := refuseOldGit(ctx, &f.gits, program, environ); old != nil {
		return nil, &GitError{Args: c.Args, Err: old}
	}
	if err != nil {
		return nil, &GitError{Args: c.Args, Stderr: strings.TrimSpace(stderr.String()), Err: err}
	}
	return out, nil
}

// gitEnviron is what git gets of the environment, with a PATH.
func gitEnviron(f *Factory, path string) []string {
	environ := harmlessGit()
	for _, name := range gitVariables() {
		v := f.Getenv(name)
		if name == "PATH" {
			v = path
		}
		if v != "" {
			environ = append(environ, name+"="+v)
		}
	}
	return environ
}

// The oldest git that uwf works with: its first version with what uwf asks for. README.md,
// docs/machine.md and uwf doctor name it. The proof in [readSettings] is one for this version:
// git reads settings from GIT_CONFIG_COUNT since then.
const oldestMajor, oldestMinor = 2, 31

// OldGitError says that this machine's git is older than uwf needs. It counts as no git.
type OldGitError struct{ Program, Version string }

func (e *OldGitError) Error() string {
	return fmt.Sprintf("%s is git %s, and uwf needs git %d.%d or newer: install one, and put it first on PATH", e.Program, e.Version, oldestMajor, oldestMinor)
}

// Is lets an old git count as none.
func (e *OldGitError) Is(target error) bool { return target == exec.ErrNotFound }

// refuseOldGit asks a git program for its version, unless it is among known. It lets a program
// pass that names no version: that is a script of the person's.
func refuseOldGit(ctx context.Context, known *sync.Map, program string, environ []string) error {
	if _, asked := known.Load(program); asked {
		return nil
	}
	cmd := exec.CommandContext(ctx, program, "version")
	cmd.Env = environ
	out, err := cmd.Output()
	if err != nil {
		return err
	}

	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	if n == 2 && (major < oldestMajor || major == oldestMajor && minor < oldestMinor) {
		return &OldGitError{Program: program, Version: version}
	}
	known.Store(program, true)
	return nil
}

// GitIn runs git in a checkout that somebody named, and allows it to belong to any user.
func GitIn(ctx context.Context, f *Factory, c GitCall) ([]byte, error) {
	c.Args = append(gitenv.Args(gitenv.Setting{Key: "safe.directory", Value: c.Dir}), c.Args...)
	return f.Git(ctx, c)
}

// GitHere is GitIn in the repository around the working directory. It returns what git prints
// without the space around it.
func GitHere(ctx context.Context, f *Factory, args ...string) (string, error) {
	out, err := GitIn(ctx, f, GitCall{Dir: f.RepoRoot(), Args: args})
	return strings.TrimSpace(string(out)), err
}

// SplitNames splits what git prints by -z.
func SplitNames(out []byte) []string {
	return slices.DeleteFunc(strings.Split(string(out), "\x00"), func(s string) bool { return s == "" })
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
	var tops []string
	for _, dir := range folders {
		if dir != "" {
			tops = append(tops, dir, realPath(dir))
		}
	}
	kept := lists.Filter(filepath.SplitList(path), func(place string) bool { return !liesIn(place, tops) })
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
	if errors.As(e.Err, new(*exec.Error)) {
		return verb + ": git is not installed, or not on PATH"
	}
	if e.Stderr != "" {
		return fmt.Sprintf("%s: %s", verb, e.Stderr)
	}
	return fmt.Sprintf("%s: %v", verb, e.Err)
}

// Unwrap gives the cause.
func (e *GitError) Unwrap() error { return e.Err }

// localTip looks a branch up in the repository around the working directory. Git is asked unless
// its files show that it lacks the branch.
func localTip(ctx context.Context, f *Factory, branch string) (wire.ID, bool, error) {
	if all, err := readSettings(ctx, f); err == nil && !all.hasKey("extensions.", true) && f.FindRepo().lacksBranch(branch) {
		return wire.ZeroID, false, nil
	}
	id, err := GitHere(ctx, f, "rev-parse", "--quiet", "--verify", "refs/heads/"+branch)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return wire.ZeroID, false, nil // there is none
	}
	return plumbing.NewHash(id), err == nil, err
}

package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/obstacle"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// UsageError is a mistake in how a command was called, or in a file that it was
// given: exit code 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// ExitCode is that of wrong usage.
func (e *UsageError) ExitCode() int { return CodeUsage }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// UnknownError says that nothing has the id or name that a command was given:
// exit code 2.
type UnknownError struct {
	What string // "node", "thread", "workflow", …
	ID   string
	Near []string // what may have been meant
	See  string   // a command that lists what there is; may be empty
	Hint string   // what else to do; may be empty
}

func (e *UnknownError) Error() string {
	s := fmt.Sprintf("no %s %q", e.What, e.ID)
	if len(e.Near) > 0 {
		s += "; did you mean " + strings.Join(e.Near, ", ") + "?"
	} else if e.See != "" {
		s += " (see: " + e.See + ")"
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// ExitCode is that of wrong usage.
func (e *UnknownError) ExitCode() int { return CodeUsage }

// Exit ends the command with a code and without a message: the result that was
// printed says it all.
type Exit struct{ Code int }

func (e *Exit) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// ExitCode is the code.
func (e *Exit) ExitCode() int { return e.Code }

// ExitAfter ends a command whose result was printed, as err says: with that code where what
// it looked at is not as it should be.
func ExitAfter(err error, ok bool, code int) error {
	if err == nil && !ok {
		return &Exit{Code: code}
	}
	return err
}

// ExitCodeOf is the exit code that an error stands for (docs/machine.md). An error that
// knows its own has a method ExitCode.
func ExitCodeOf(err error) int {
	var own interface{ ExitCode() int }
	if errors.As(err, &own) {
		return own.ExitCode()
	}
	return exitCodes[life.KindOf(err)]
}

// Message is what stderr says of an error; empty when nothing more is to be said.
func Message(err error) string {
	var invalid *workflow.InvalidError
	var unknown *life.UnknownThreadError
	switch {
	case err == nil, errors.As(err, new(*Exit)):
		return ""
	case errors.As(err, &invalid):
		return invalid.Report()
	case errors.As(err, &unknown):
		alive := lists.Map(unknown.Alive, func(id gitcas.ThreadID) string { return string(id) })
		id := string(unknown.Thread)
		return (&UnknownError{What: "thread", ID: id, Near: SuggestNames(id, alive), See: "uwf thread list --all"}).Error()
	case errors.Is(err, context.Canceled):
		return "interrupted: " + err.Error() + NextLines(err)
	}
	if advice := remoteAdvice(err); advice != "" {
		return strings.TrimRight(err.Error(), "\n") + NextLines(err) + "\n" + advice
	}
	return err.Error() + NextLines(err)
}

// The exit codes. They are part of the interface: scripts and jobs branch on them.
const (
	CodeOK        = 0 // advanced, or ended
	CodeFailed    = 1 // the step failed
	CodeUsage     = 2 // wrong usage or invalid definition
	CodeSuspended = 3 // waits for a person
	CodeNotYours  = 4 // moved, claimed, cancelled or ended: not as it would have to be
	CodeDamaged   = 5 // store damaged or unreadable
	CodeLimit     = 6 // a limit is reached
)

var exitCodes = map[life.Kind]int{
	life.KindDone: CodeOK, life.KindFailed: CodeFailed, life.KindUsage: CodeUsage, life.KindSuspended: CodeSuspended,
	life.KindNotYours: CodeNotYours, life.KindDamaged: CodeDamaged, life.KindLimit: CodeLimit,
}

// remoteAdvice is what to do about a remote that refuses, is silent or is none;
// empty for other errors, and where the error itself says it.
func remoteAdvice(err error) string {
	var remote *wire.RemoteError
	errors.As(err, &remote)
	inTheWay, found := obstacle.Of(err)
	switch {
	case found:
		return inTheWay.Mend("the state branch", "see the rules and hooks of the remote")
	case errors.Is(err, gitcas.ErrDamaged), errors.Is(err, wire.ErrTooLong):
		return ""
	case errors.Is(err, wire.ErrNotGiven):
		return singleAdvice
	case errors.Is(err, wire.ErrPromised):
		return promisedAdvice(err)
	case errors.Is(err, wire.ErrNoProgram):
		return programAdvice(remote)
	case errors.Is(err, exec.ErrNotFound) && errors.As(err, new(*GitError)):
		return installGit
	case errors.Is(err, wire.ErrSecretRefused):
		return "take the secret out of what is pushed, and revoke it: it is known now"
	case errors.Is(err, wire.ErrDenied):
		return "check your credentials for this remote and that they may push: GITHUB_TOKEN in a job of that forge, else what git credential fill gives without asking you (gh auth login, or another credential helper), or your ssh key"
	case errors.Is(err, wire.ErrReadOnly):
		const then = ": let this user write there, or keep threads elsewhere (state.remote in .uwf/config.yaml; outside of a repository: UWF_HOME)"
		if dir, ok := localDir(remote); ok {
			return "look at who owns " + dir + " and its files" + then
		}
		return "the server may not write to its own files: tell who runs it"
	}
	missing := errors.Is(err, wire.ErrUnreadable) || errors.Is(err, wire.ErrNotFound) && remote != nil
	dir, local := localDir(remote)
	switch {
	case local && missing && unreadableIn(dir) != nil:
		return fmt.Sprintf("%v: let this user read there", unreadableIn(dir))
	case local && errors.Is(err, wire.ErrNotFound):
		return fmt.Sprintf("check that %s is a git repository (state.remote in .uwf/config.yaml)", dir)
	case local && (missing || errors.Is(err, wire.ErrUnreachable)):
		return fmt.Sprintf("check that %s is a git repository which this user may read (state.remote in .uwf/config.yaml), and see what git says of it: git -C %s fsck", dir, text.ShellWord(dir))
	case errors.Is(err, wire.ErrUnreachable):
		return "check the network and the remote's address (state.remote in .uwf/config.yaml), then run it again"
	case missing:
		return "check that the remote's address is that of a git repository (state.remote in .uwf/config.yaml)"
	}
	return ""
}

const singleAdvice = "let the server speak git's protocol 2 (AcceptEnv GIT_PROTOCOL in its sshd_config), or set uploadpack.allowAnySHA1InWant in the repository there"

const installGit = "install git (https://git-scm.com/downloads), or put the folder that it lies in on PATH"

// programAdvice says how to get the program that reaches a remote.
func programAdvice(e *wire.RemoteError) string {
	if e != nil && strings.HasPrefix(e.URL, "ssh:") {
		return "install an ssh client (such as OpenSSH), or put the folder that it lies in on PATH; or use the remote's https:// address"
	}
	return installGit
}

// localDir is the folder of a remote on this machine.
func localDir(e *wire.RemoteError) (string, bool) {
	if e == nil {
		return "", false
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return filepath.FromSlash(u.Path), true
}

// unreadableIn is what keeps this user from reading a repository; nil: no rights do.
func unreadableIn(dir string) error {
	for _, part := range []string{".", "objects", ".git", ".git/objects"} {
		if _, err := os.ReadDir(filepath.Join(dir, part)); rightsOf(err) {
			return err
		}
	}
	return nil
}

// rightsOf reports whether the system refused something for the rights of a file, or of
// the file system that it is on.
func rightsOf(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// Advice is what to do about an error, besides what it says itself; empty where there
// is nothing to add.
func (f *Factory) Advice(err error) string {
	var file *fs.PathError
	home, herr := f.StorageRoot()
	if herr != nil || !errors.As(err, &file) || !rightsOf(err) || !Within(file.Path, home) {
		return ""
	}
	return fmt.Sprintf("uwf keeps what is yours in %s: let this user read and write there, or set UWF_HOME to a folder where it may", home)
}

// describeNeed is what a verb takes besides a thread, as it is typed.
func describeNeed(v life.Verb) string {
	if v.Needs == life.NeedsText {
		return `-p "…"`
	}
	limit := workflow.FindLimit(v.Needs)
	if limit.Name == "" {
		return ""
	}
	return "--" + limit.Flag + " " + limit.Value
}

// Command is what a person types to do something next.
func Command(v life.Verb) string {
	thread, verb := string(v.Thread), string(v.Do)
	switch {
	case v.Do == life.Check:
		return "uwf fsck --history"
	case v.Do == life.Take:
		verb = "retry --take"
	case v.Do == life.Fork && v.Steps >= 0:
		thread = fmt.Sprintf("%s:%d", v.Thread, v.Steps)
	}
	return strings.TrimSpace("uwf thread " + verb + " " + thread + " " + describeNeed(v))
}

// NextLines are what can be done about an error, a line each.
func NextLines(err error) string {
	var b strings.Builder
	for _, v := range life.NextOf(err) {
		b.WriteString("\n" + v.For + ": " + Command(v))
	}
	return b.String()
}

// NextCommand is what the first of some verbs is for, and the command.
func NextCommand(verbs []life.Verb) (what, command string) {
	if len(verbs) == 0 {
		return "", ""
	}
	return verbs[0].For + ":", Command(verbs[0])
}

package app

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// remoteAdvice is what to do about a remote that refuses, is silent or is none;
// empty for other errors, and where the error itself says it.
func remoteAdvice(err error) string {
	var remote *wire.Error
	errors.As(err, &remote)
	switch {
	case errors.Is(err, gitcas.ErrDamaged), errors.Is(err, wire.ErrTooLong):
		return ""
	case errors.Is(err, wire.ErrNoProgram):
		return programAdvice(remote)
	case errors.Is(err, exec.ErrNotFound) && errors.As(err, new(*GitError)):
		return installGit
	case errors.Is(err, wire.ErrSecretRefused):
		return "take the secret out of what is pushed, and revoke it: it is known now"
	case errors.Is(err, wire.ErrDenied):
		return "check your credentials for this remote and that they may push: GITHUB_TOKEN in a job of that forge, else what git credential fill gives, or your ssh key"
	case errors.Is(err, wire.ErrProtected):
		return "let uwf push to the state branch, to uwf/* and to refs/uwf/*: see the rules and hooks of the remote"
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
	case local && (missing || errors.Is(err, wire.ErrUnreachable)):
		return fmt.Sprintf("check that %s is a git repository which this user may read (state.remote in .uwf/config.yaml), and see what git says of it: git -C %s fsck", dir, text.ShellWord(dir))
	case errors.Is(err, wire.ErrUnreachable):
		return "check the network and the remote's address (state.remote in .uwf/config.yaml), then run it again"
	case missing:
		return "check that the remote's address is that of a git repository (state.remote in .uwf/config.yaml)"
	}
	return ""
}

const installGit = "install git (https://git-scm.com/downloads), or put the folder that it lies in on PATH"

// programAdvice says how to get the program that reaches a remote.
func programAdvice(e *wire.Error) string {
	if e != nil && strings.HasPrefix(e.URL, "ssh:") {
		return "install an ssh client (such as OpenSSH), or put the folder that it lies in on PATH; or use the remote's https:// address"
	}
	return installGit
}

// localDir is the folder of a remote on this machine.
func localDir(e *wire.Error) (string, bool) {
	if e == nil {
		return "", false
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return filepath.FromSlash(u.Path), true
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

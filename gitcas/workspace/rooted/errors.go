package rooted

import (
	"errors"
	"fmt"
)

// Kinds of failure. A *FolderError matches exactly one of them with errors.Is; what
// the remote says is a *wire.RemoteError instead.
var (
	// ErrLimit: a file, path or commit is larger than the limits allow.
	ErrLimit = errors.New("over a limit")
	// ErrLink: a symlink of a commit leads out of the folder or into .git.
	ErrLink = errors.New("symlink that leaves the folder")
	// ErrFilter: git puts the file through a filter, which uwf does not run.
	ErrFilter = errors.New("stored through a filter that uwf does not run")
	// ErrInTheWay: something that may not be removed stands where a file of
	// the commit belongs.
	ErrInTheWay = errors.New("in the way")
	// ErrCollision: two names of a commit are one on this file system.
	ErrCollision = errors.New("names that this file system can't tell apart")
	// ErrUnstable: a file is exchanged by someone else while it is used.
	ErrUnstable = errors.New("changes while it is read")
	// ErrUnreadable: the system doesn't let a file or folder be read or written.
	ErrUnreadable = errors.New("can't be used")
	// ErrDamaged: a commit or a tree of the remote is not what git would make.
	ErrDamaged = errors.New("damaged or hostile git object")
)

// FolderError is a failed operation on one file or object.
type FolderError struct {
	Op   string // "restore", "snapshot", "merge"
	Path string // relative to the workspace, or an object id
	Kind error  // one of the Err… sentinels
	Err  error  // what was found and what to do
}

func (e *FolderError) Error() string {
	return fmt.Sprintf("%s %q: %v: %v", e.Op, e.Path, e.Kind, e.Err)
}

func (e *FolderError) Unwrap() []error { return []error{e.Kind, e.Err} }

// NewError makes an error of that kind.
func NewError(kind error, op, path, format string, args ...any) error {
	return &FolderError{Op: op, Path: path, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// IOError is about something that the system refuses.
func IOError(op, path string, err error) error {
	return &FolderError{Op: op, Path: path, Kind: ErrUnreadable, Err: err}
}

// UnstableError is about something that another program exchanged.
func UnstableError(op, path string) error {
	return NewError(ErrUnstable, op, path, "stop what works in the folder and try again")
}

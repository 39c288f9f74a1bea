package workspace

import (
	"errors"
	"fmt"
)

// Kinds of failure. An *Error matches exactly one of them with errors.Is; what
// the remote says is a *wire.Error instead.
var (
	// ErrLimit: a file, path or commit is larger than the limits allow.
	ErrLimit = errors.New("over a limit")
	// ErrLink: a symlink of a commit leads out of the folder or into .git.
	ErrLink = errors.New("symlink that leaves the folder")
	// ErrInTheWay: something that may not be removed stands where a file of
	// the commit belongs.
	ErrInTheWay = errors.New("in the way")
	// ErrCollision: two names of a commit are one on this file system.
	ErrCollision = errors.New("names that this file system can't tell apart")
	// ErrUnstable: a file is exchanged by someone else again and again.
	ErrUnstable = errors.New("changes while it is read")
	// ErrUnreadable: the system doesn't let a file or folder be read or written.
	ErrUnreadable = errors.New("can't be used")
	// ErrDamaged: a commit or a tree of the remote is not what git would make.
	ErrDamaged = errors.New("damaged or hostile git object")
)

// Error is a failed operation on one file or object.
type Error struct {
	Op     string // "restore", "snapshot", "merge"
	Path   string // relative to the workspace, or an object id
	Kind   error  // one of the Err… sentinels
	Detail string // what was found and what to do
	Err    error  // the cause, if there is one
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s %q: %v", e.Op, e.Path, e.Kind)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

func ioError(op, path string, err error) error {
	return &Error{Op: op, Path: path, Kind: ErrUnreadable, Err: err}
}

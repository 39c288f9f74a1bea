package workspace

import "github.com/united-workforce/uwf/gitcas/workspace/rooted"

// Kinds of failure. A *FolderError matches exactly one of them with errors.Is; what
// the remote says is a *wire.RemoteError instead.
var (
	// ErrLimit: a file, path or commit is larger than the limits allow.
	ErrLimit = rooted.ErrLimit
	// ErrLink: a symlink of a commit leads out of the folder or into .git.
	ErrLink = rooted.ErrLink
	// ErrFilter: git puts the file through a filter, which uwf does not run.
	ErrFilter = rooted.ErrFilter
	// ErrInTheWay: something that may not be removed stands where a file of
	// the commit belongs.
	ErrInTheWay = rooted.ErrInTheWay
	// ErrCollision: two names of a commit are one on this file system.
	ErrCollision = rooted.ErrCollision
	// ErrUnstable: a file is exchanged by someone else while it is used.
	ErrUnstable = rooted.ErrUnstable
	// ErrUnreadable: the system doesn't let a file or folder be read or written.
	ErrUnreadable = rooted.ErrUnreadable
	// ErrDamaged: a commit or a tree of the remote is not what git would make.
	ErrDamaged = rooted.ErrDamaged
)

// FolderError is a failed operation on one file or object.
type FolderError = rooted.FolderError

package rooted

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
)

// TempPrefix begins the names of files that are not finished, and of whatever else in the folder
// is not in its place yet.
const TempPrefix = ".uwf-tmp-"

// SplitPath divides a path into its folder and its last part.
func SplitPath(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// openFlags keep the opening of a FIFO that took a file's place from waiting.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOFOLLOW

// OpenSubdir opens the folder of that name in r and makes sure that it is the one
// that info describes: not a link, and not another folder put in its place.
func OpenSubdir(r *os.Root, op, path, name string, info fs.FileInfo) (*os.Root, error) {
	// The slash makes the system refuse everything but a folder, so that a
	// FIFO in its place is not waited for.
	sub, err := r.OpenRoot(name + "/")
	if err != nil {
		return nil, IOError(op, path, err)
	}
	got, err := sub.Stat(".")
	if err != nil {
		return nil, errors.Join(IOError(op, path, err), sub.Close())
	}
	if !os.SameFile(got, info) {
		return nil, errors.Join(UnstableError(op, path), sub.Close())
	}
	return sub, nil
}

// readAgain is how often a file that was exchanged between looking at it and opening it is
// tried: editors and build tools put new files in the place of old ones all the time.
const readAgain = 3

// OpenFile opens the regular file of that name in r, and makes sure that it is the one
// that info describes, or that it is when it is looked at again. The result says as what it
// was opened.
func OpenFile(r *os.Root, op, path, name string, info fs.FileInfo) (*os.File, fs.FileInfo, error) {
	for tries := 0; tries < readAgain && info.Mode().IsRegular(); tries++ {
		if tries > 0 && stamps.StatOf(info).Links > 1 {
			break // whose else it is was asked only of the one before
		}
		f, err := r.OpenFile(name, os.O_RDONLY|openFlags, 0)
		if err != nil {
			return nil, nil, IOError(op, path, err)
		}
		got, err := f.Stat()
		if err == nil && got.Mode().IsRegular() && os.SameFile(got, info) {
			return f, got, nil
		}
		if err = errors.Join(err, f.Close()); err == nil {
			info, err = r.Lstat(name)
		}
		if err != nil {
			return nil, nil, IOError(op, path, err)
		}
	}
	return nil, nil, UnstableError(op, path)
}

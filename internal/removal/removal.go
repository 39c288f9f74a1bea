// Package removal removes folders that somebody else has filled, whatever they hold:
// its time grows with the number of things alone, and its memory and open files do not
// grow with how deep folders lie in one another. It never follows a link.
package removal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
)

// ErrLeft: there is more than was to be removed at once. The folder is still there, and
// can be gone on with.
var ErrLeft = errors.New("there is more to remove")

// Tree removes a folder with everything in it, or a file; what is not there is no error.
// Folders without the right to write or to list get it back. It stops when ctx ends,
// with its error, and after most things, with ErrLeft; 0 is no bound. What can't be
// removed is named, a few of it, and does not keep the rest from being removed.
func Tree(ctx context.Context, dir string, most int) (err error) {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parent.Close()) }()
	return In(ctx, parent, filepath.Base(dir), most)
}

// In is Tree for what has that name in an open folder.
func In(ctx context.Context, parent *os.Root, name string, most int) error {
	info, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return parent.Remove(name)
	}
	_ = parent.Chmod(name, 0o700) // where that fails, so does opening it
	root, err := parent.OpenRoot(name)
	if err != nil {
		return err
	}
	r := remover{ctx: ctx, root: root, left: cmp.Or(most, math.MaxInt)}
	err = r.removeAll()
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	return parent.Remove(name)
}

// remover empties a folder. A folder in a folder of it is moved up beside that one
// before it is emptied, so that none lies deeper than two.
type remover struct {
	ctx     context.Context
	root    *os.Root
	left    int      // things that may still be removed
	moved   int      // folders that were given a name at the top
	pending []string // folders to empty: the top one, and those in it
	failed  []error
}

func (r *remover) removeAll() error {
	r.pending = []string{"."}
	for len(r.pending) > 0 {
		name := r.pending[len(r.pending)-1]
		r.pending = r.pending[:len(r.pending)-1]
		if err := r.emptyFolder(name); err != nil {
			return err
		}
		if name != "." {
			r.noteError(r.root.Remove(name))
		}
	}
	return errors.Join(r.failed...)
}

// emptyFolder removes what is in a folder, and notes the folders that have to be emptied
// first.
func (r *remover) emptyFolder(name string) error {
	r.unlockFolder(name)
	entries, err := r.readFolder(name)
	r.noteError(err)
	for _, e := range entries {
		if r.left == 0 {
			return ErrLeft
		}
		r.left--
		if err := r.ctx.Err(); err != nil {
			return err
		}
		at := path.Join(name, e.Name())
		err := r.root.Remove(at)
		if err != nil && e.IsDir() {
			if err = nil; name != "." {
				at, err = r.moveUp(at)
			}
			if err == nil {
				r.pending = append(r.pending, at)
			}
		}
		r.noteError(err)
	}
	return nil
}

// readFolder lists a folder, as much of it as may still be removed and a little more.
func (r *remover) readFolder(name string) (all []fs.DirEntry, err error) {
	dir, err := r.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // only read from
	for len(all) <= r.left {
		entries, err := dir.ReadDir(1024)
		all = append(all, entries...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// moveUp gives a folder a name at the top.
func (r *remover) moveUp(name string) (string, error) {
	r.unlockFolder(name) // a folder is written to when it moves
	for {
		r.moved++
		to := "moved-" + strconv.Itoa(r.moved)
		if _, err := r.root.Lstat(to); err != nil { // else it is somebody's own
			return to, r.root.Rename(name, to)
		}
	}
}

// unlockFolder gives a folder back the rights that removing takes. Where that fails, so does
// what comes next.
func (r *remover) unlockFolder(name string) { _ = r.root.Chmod(name, 0o700) }

// maxFailed is how many failures are named.
const maxFailed = 3

func (r *remover) noteError(err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) || len(r.failed) == maxFailed {
		return
	}
	var at *fs.PathError
	var moved *os.LinkError
	switch {
	case errors.As(err, &at):
		err = fmt.Errorf("%s %.60q: %w", at.Op, path.Base(at.Path), at.Err)
	case errors.As(err, &moved):
		err = fmt.Errorf("%s %.60q: %w", moved.Op, path.Base(moved.Old), moved.Err)
	}
	r.failed = append(r.failed, err)
}

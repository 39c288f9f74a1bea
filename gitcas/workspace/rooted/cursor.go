// Package rooted opens and writes files in a folder that is hostile, and never leaves it: each
// access goes through an os.Root of the folder that the file lies in, and none through a link.
package rooted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
)

// Cursor opens folders by path, one part at a time and never through a link, and
// keeps the way to the last one open.
type Cursor struct {
	Root *os.Root
	Op   string // what is done, for messages
	way  []opened
	// Owner, when set, is given what is made.
	Owner *Owner
}

type opened struct {
	name string
	r    *os.Root
}

// Owner of files.
type Owner struct{ uid, gid int }

// OwnerOf says to whom what is made in a workspace has to be given: when root
// works in the folder of another user, as in a container, to that user. Else nil.
func OwnerOf(root *os.Root) (*Owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	s := stamps.StatOf(info)
	if s.Owner == 0 {
		return nil, nil
	}
	return &Owner{uid: int(s.Owner), gid: int(s.Group)}, nil
}

// OpenDir returns the folder at path, which stays open until the cursor moves out of
// it. With create, folders that are missing are made.
func (c *Cursor) OpenDir(path string, create bool) (*os.Root, error) {
	var parts []string
	if path != "" {
		parts = strings.Split(path, "/")
	}
	same := 0
	for same < len(parts) && same < len(c.way) && c.way[same].name == parts[same] {
		same++
	}
	if err := c.closeAfter(same); err != nil {
		return nil, IOError(c.Op, path, err)
	}
	at := c.Root
	if same > 0 {
		at = c.way[same-1].r
	}
	for i := same; i < len(parts); i++ {
		sub, err := c.stepInto(at, strings.Join(parts[:i+1], "/"), parts[i], create)
		if err != nil {
			return nil, err
		}
		c.way = append(c.way, opened{parts[i], sub})
		at = sub
	}
	return at, nil
}

func (c *Cursor) stepInto(at *os.Root, path, name string, create bool) (*os.Root, error) {
	info, err := at.Lstat(name)
	made := create && errors.Is(err, fs.ErrNotExist)
	if made {
		if err := at.Mkdir(name, 0o777); err != nil {
			return nil, IOError(c.Op, path, err)
		}
		info, err = at.Lstat(name)
	}
	if err != nil {
		return nil, IOError(c.Op, path, err)
	}
	if !info.IsDir() {
		return nil, NewError(ErrUnstable, c.Op, path, "%w: stop what works in the folder and try again", syscall.ENOTDIR)
	}
	sub, err := OpenSubdir(at, c.Op, path, name, info)
	if err == nil && made && c.Owner != nil {
		if err := sub.Lchown(".", c.Owner.uid, c.Owner.gid); err != nil {
			return nil, IOError(c.Op, path, errors.Join(err, sub.Close()))
		}
	}
	return sub, err
}

// closeAfter closes all folders but the first n of the way.
func (c *Cursor) closeAfter(n int) error {
	var errs []error
	for _, o := range slices.Backward(c.way[n:]) {
		errs = append(errs, o.r.Close())
	}
	c.way = c.way[:n]
	return errors.Join(errs...)
}

// CloseAll closes what is open.
func (c *Cursor) CloseAll() error { return c.closeAfter(0) }

// PutFile puts a file or link in its place: beside it first, then renamed over what is
// there, so that a hard link or a link there is never written through. step is told
// before each change; it returns what the new file looks like.
func (c *Cursor) PutFile(path string, mode filemode.FileMode, data []byte, step func(op, path string) error) (stamps.Stamp, error) {
	folder, name := SplitPath(path)
	in, err := c.OpenDir(folder, true)
	if err != nil {
		return stamps.Stamp{}, err
	}
	if err := step("write", path); err != nil {
		return stamps.Stamp{}, err
	}
	temp, err := c.makeTemp(in, mode, data)
	if err != nil {
		return stamps.Stamp{}, IOError(c.Op, path, err)
	}
	if err := step("rename", path); err != nil {
		return stamps.Stamp{}, err
	}
	if err := in.Rename(temp, name); err != nil {
		return stamps.Stamp{}, IOError(c.Op, path, errors.Join(err, in.Remove(temp)))
	}
	// Renaming changed the file's ctime: only now its stamp is final.
	info, err := in.Lstat(name)
	if err != nil {
		return stamps.Stamp{}, IOError(c.Op, path, err)
	}
	if !info.Mode().IsRegular() {
		return stamps.Stamp{}, nil
	}
	return stamps.StatOf(info).Stamp, nil
}

// makeTemp makes a file or link under a name that nothing has.
func (c *Cursor) makeTemp(in *os.Root, mode filemode.FileMode, data []byte) (string, error) {
	for n := 0; ; n++ {
		name := fmt.Sprintf("%s%d", TempPrefix, n)
		var err error
		if mode == filemode.Symlink {
			err = in.Symlink(string(data), name)
		} else {
			err = c.writeNew(in, name, mode, data)
		}
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

func (c *Cursor) writeNew(in *os.Root, name string, mode filemode.FileMode, data []byte) error {
	perm := fs.FileMode(0o644)
	if mode == filemode.Executable {
		perm = 0o755
	}
	f, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if c.Owner != nil {
		err = errors.Join(err, f.Chown(c.Owner.uid, c.Owner.gid))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, in.Remove(name))
	}
	return nil
}

// ChangeMode gives a file the executable bits where it is readable, or takes them. It returns
// what the file looks like then.
func (c *Cursor) ChangeMode(path string, mode filemode.FileMode) (stamps.Stamp, error) {
	folder, name := SplitPath(path)
	in, err := c.OpenDir(folder, false)
	if err != nil {
		return stamps.Stamp{}, err
	}
	info, err := in.Lstat(name)
	if err != nil {
		return stamps.Stamp{}, IOError(c.Op, path, err)
	}
	f, info, err := OpenFile(in, c.Op, path, name, info)
	if err != nil {
		return stamps.Stamp{}, err
	}
	perm := info.Mode().Perm() &^ 0o111
	if mode == filemode.Executable {
		perm |= 0o100 | perm&0o044>>2
	}
	err = f.Chmod(perm)
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err != nil {
		return stamps.Stamp{}, IOError(c.Op, path, err)
	}
	return stamps.StatOf(info).Stamp, nil
}

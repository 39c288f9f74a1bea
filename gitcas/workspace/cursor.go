package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// cursor opens folders by path, one part at a time and never through a link, and
// keeps the way to the last one open.
type cursor struct {
	root *os.Root
	op   string
	way  []opened
	// owner, when set, is given what is made.
	owner *owner
}

type opened struct {
	name string
	r    *os.Root
}

// owner of files.
type owner struct{ uid, gid int }

// ownerOf says to whom what is made in a workspace has to be given: when root
// works in the folder of another user, as in a container, to that user. Else nil.
func ownerOf(root *os.Root) (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	info, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	s := statOf(info)
	if s.owner == 0 {
		return nil, nil
	}
	return &owner{uid: int(s.owner), gid: int(s.group)}, nil
}

// openDir returns the folder at path, which stays open until the cursor moves out of
// it. With create, folders that are missing are made.
func (c *cursor) openDir(path string, create bool) (*os.Root, error) {
	var parts []string
	if path != "" {
		parts = strings.Split(path, "/")
	}
	same := 0
	for same < len(parts) && same < len(c.way) && c.way[same].name == parts[same] {
		same++
	}
	if err := c.closeAfter(same); err != nil {
		return nil, ioError(c.op, path, err)
	}
	at := c.root
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

func (c *cursor) stepInto(at *os.Root, path, name string, create bool) (*os.Root, error) {
	info, err := at.Lstat(name)
	made := create && errors.Is(err, fs.ErrNotExist)
	if made {
		if err := at.Mkdir(name, 0o777); err != nil {
			return nil, ioError(c.op, path, err)
		}
		info, err = at.Lstat(name)
	}
	if err != nil {
		return nil, ioError(c.op, path, err)
	}
	if !info.IsDir() {
		return nil, newError(ErrUnstable, c.op, path, "%w: stop what works in the folder and try again", syscall.ENOTDIR)
	}
	sub, err := openSubdir(at, c.op, path, name, info)
	if err == nil && made && c.owner != nil {
		if err := sub.Lchown(".", c.owner.uid, c.owner.gid); err != nil {
			return nil, ioError(c.op, path, errors.Join(err, sub.Close()))
		}
	}
	return sub, err
}

// closeAfter closes all folders but the first n of the way.
func (c *cursor) closeAfter(n int) error {
	var errs []error
	for _, o := range slices.Backward(c.way[n:]) {
		errs = append(errs, o.r.Close())
	}
	c.way = c.way[:n]
	return errors.Join(errs...)
}

func (c *cursor) closeAll() error { return c.closeAfter(0) }

// readPath reads the file or link at a path, as readContent does.
func (c *cursor) readPath(rd *reader, path string, limit int64) (content, error) {
	folder, name := splitPath(path)
	in, err := c.openDir(folder, false)
	if err != nil {
		return content{}, err
	}
	info, err := in.Lstat(name)
	if err != nil {
		return content{}, ioError(c.op, path, err)
	}
	return rd.readContent(in, path, name, info, limit)
}

// putFile puts a file or link in its place: beside it first, then renamed over what is
// there, so that a hard link or a link there is never written through. step is told
// before each change; it returns what the new file looks like.
func (c *cursor) putFile(path string, mode filemode.FileMode, data []byte, step func(op, path string) error) (stamp, error) {
	folder, name := splitPath(path)
	in, err := c.openDir(folder, true)
	if err != nil {
		return stamp{}, err
	}
	if err := step("write", path); err != nil {
		return stamp{}, err
	}
	temp, err := c.makeTemp(in, mode, data)
	if err != nil {
		return stamp{}, ioError(c.op, path, err)
	}
	if err := step("rename", path); err != nil {
		return stamp{}, err
	}
	if err := in.Rename(temp, name); err != nil {
		return stamp{}, ioError(c.op, path, errors.Join(err, in.Remove(temp)))
	}
	// Renaming changed the file's ctime: only now its stamp is final.
	info, err := in.Lstat(name)
	if err != nil {
		return stamp{}, ioError(c.op, path, err)
	}
	if !info.Mode().IsRegular() {
		return stamp{}, nil
	}
	return statOf(info).stamp, nil
}

// makeTemp makes a file or link under a name that nothing has.
func (c *cursor) makeTemp(in *os.Root, mode filemode.FileMode, data []byte) (string, error) {
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

func (c *cursor) writeNew(in *os.Root, name string, mode filemode.FileMode, data []byte) error {
	perm := fs.FileMode(0o644)
	if mode == filemode.Executable {
		perm = 0o755
	}
	f, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if c.owner != nil {
		err = errors.Join(err, f.Chown(c.owner.uid, c.owner.gid))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, in.Remove(name))
	}
	return nil
}

// changeMode gives a file the executable bits where it is readable, or takes them.
func (c *cursor) changeMode(x write) error {
	folder, name := splitPath(x.path)
	in, err := c.openDir(folder, false)
	if err != nil {
		return err
	}
	info, err := in.Lstat(name)
	if err != nil {
		return ioError(c.op, x.path, err)
	}
	f, info, err := openFile(in, c.op, x.path, name, info)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm() &^ 0o111
	if x.e.mode == filemode.Executable {
		mode |= 0o100 | mode&0o044>>2
	}
	err = f.Chmod(mode)
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err != nil {
		return ioError(c.op, x.path, err)
	}
	x.e.stamp = statOf(info).stamp
	return nil
}

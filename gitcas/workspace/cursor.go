package workspace

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// cursor opens folders by path, one part at a time and never through a link, and
// keeps the way to the last one open.
type cursor struct {
	root *os.Root
	op   string
	way  []opened
	// owner, when set, is given the folders that are made.
	owner *owner
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

type opened struct {
	name string
	r    *os.Root
}

// splitPath divides a path into its folder and its last part.
func splitPath(path string) (folder, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
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
		return nil, &Error{Op: c.op, Path: path, Kind: ErrUnstable, Detail: "a folder was expected: stop what works in it and try again"}
	}
	sub, err := openDir(at, c.op, path, name, info)
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
	for i := len(c.way) - 1; i >= n; i-- {
		errs = append(errs, c.way[i].r.Close())
	}
	c.way = c.way[:n]
	return errors.Join(errs...)
}

func (c *cursor) closeAll() error { return c.closeAfter(0) }

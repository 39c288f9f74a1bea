package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// Edit is a change of one file that was made elsewhere.
type Edit struct {
	Path string
	// Mode is that of the new content: Regular, Executable or Symlink; 0 deletes
	// the file.
	Mode filemode.FileMode
	Data []byte // a symlink's target
	// Old is the content that the change was made of; zero: there was no file.
	Old wire.ID
}

// CheckPath says why nothing may be written at a path; nil: something may. The
// rules are those that Snapshot has for new files.
func CheckPath(path string, mode filemode.FileMode) error {
	parts := strings.Split(path, "/")
	if len(path) > maxPath || len(parts) > maxDepth {
		return fmt.Errorf("path %q: it has more than %d bytes or folders lie deeper than %d levels", clipText(path), maxPath, maxDepth)
	}
	for i, part := range parts {
		if why := refusedName(part); why != "" {
			return fmt.Errorf("path %q: %s", clipText(path), why)
		}
		if i == len(parts)-1 && strings.HasPrefix(part, TempPrefix) {
			return fmt.Errorf("path %q: names that begin with %s are uwf's own", clipText(path), TempPrefix)
		}
		if i == len(parts)-1 {
			if err := gitobj.CheckEntry(part, mode); err != nil {
				return fmt.Errorf("path %q: %w", clipText(path), err)
			}
		}
	}
	return nil
}

// CheckLink says why a symlink at a path may not have that target: it leads out of
// the folder or into .git. Where it leads through other links shows only when a
// Snapshot sees all of them.
func CheckLink(path, target string) error {
	if !linkInside(nil, folderOf(path), target, nil) {
		return fmt.Errorf("symlink %q: its target %q leads out of the folder or into .git", clipText(path), clipText(target))
	}
	return nil
}

// Overlap lists the files that are no longer as the edits found them, and not as
// the edits leave them either.
func Overlap(ctx context.Context, dir string, edits []Edit) ([]string, error) {
	var out []string
	err := inFolder(dir, func(c *cursor) error {
		for _, e := range edits {
			id, err := c.contentAt(ctx, e.Path)
			if err != nil {
				return err
			}
			same := e.Mode != 0 && id == blobID(e.Data) || e.Mode == 0 && id.IsZero()
			if id != e.Old && !same {
				out = append(out, e.Path)
			}
		}
		return nil
	})
	return out, err
}

// Apply makes the edits in a folder, whatever is there: deletions first, so that a
// file can take a folder's place. Nothing is written through a link; what it makes
// belongs to the folder's owner.
func Apply(dir string, edits []Edit) error {
	for _, e := range edits {
		if err := CheckPath(e.Path, e.Mode); err != nil {
			return fmt.Errorf("apply edits: %w", err)
		}
		if e.Mode == filemode.Symlink {
			if err := CheckLink(e.Path, string(e.Data)); err != nil {
				return fmt.Errorf("apply edits: %w", err)
			}
		}
	}
	return inFolder(dir, func(c *cursor) error {
		for _, e := range edits {
			if e.Mode == 0 {
				if err := c.removeFile(e.Path); err != nil {
					return err
				}
			}
		}
		for _, e := range edits {
			if e.Mode != 0 {
				if err := c.putEdit(e); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func inFolder(dir string, do func(c *cursor) error) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("apply edits: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	c := &cursor{root: root, op: "apply edits"}
	if c.owner, err = ownerOf(root); err != nil {
		return ioError(c.op, ".", err)
	}
	err = do(c)
	return errors.Join(err, c.closeAll())
}

// contentAt is what a file or link holds; zero where there is neither.
func (c *cursor) contentAt(ctx context.Context, path string) (wire.ID, error) {
	folder, name := splitPath(path)
	in, err := c.openDir(folder, false)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnstable) {
		return wire.ZeroID, nil // no such folder, or it is a file or a link
	}
	if err != nil {
		return wire.ZeroID, err
	}
	info, err := in.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wire.ZeroID, nil
	case err != nil:
		return wire.ZeroID, ioError(c.op, path, err)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := in.Readlink(name)
		if err != nil {
			return wire.ZeroID, ioError(c.op, path, err)
		}
		return blobID([]byte(target)), nil
	case !info.Mode().IsRegular():
		return wire.ZeroID, nil
	}
	rd := reader{ctx: ctx, op: c.op}
	got, err := rd.readFile(in, path, name, info, 0)
	return got.id, err
}

// removeFile deletes a file, and the folders that are empty without it. What is gone is
// gone, and a folder with files in it stays.
func (c *cursor) removeFile(path string) error {
	for first := true; path != ""; first = false {
		folder, name := splitPath(path)
		in, err := c.openDir(folder, false)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrUnstable) {
			return nil
		}
		if err != nil {
			return err
		}
		if info, err := in.Lstat(name); first && err == nil && info.IsDir() {
			return nil // it became a folder
		}
		switch err = in.Remove(name); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil && !first:
			return nil // not empty
		case err != nil:
			return ioError(c.op, path, err)
		}
		path = folder
	}
	return nil
}

func (c *cursor) putEdit(e Edit) error {
	folder, name := splitPath(e.Path)
	in, err := c.openDir(folder, true)
	if err != nil {
		return err
	}
	temp, err := makeTemp(in, e.Mode, e.Data, c.owner)
	if err != nil {
		return ioError(c.op, e.Path, err)
	}
	if err := in.Rename(temp, name); err != nil {
		return ioError(c.op, e.Path, errors.Join(err, in.Remove(temp)))
	}
	return nil
}

// Content reads a file or a symlink's target as a Snapshot found it.
func Content(ctx context.Context, dir string, change Change) (data []byte, err error) {
	err = inFolder(dir, func(c *cursor) error {
		folder, name := splitPath(change.Path)
		in, err := c.openDir(folder, false)
		if err != nil {
			return err
		}
		if data, err = c.contentOf(ctx, in, change, name); err == nil && blobID(data) != change.Blob {
			err = &Error{Op: c.op, Path: change.Path, Kind: ErrUnstable, Detail: "stop what writes to it and try again"}
		}
		return err
	})
	return data, err
}

func (c *cursor) contentOf(ctx context.Context, in *os.Root, change Change, name string) ([]byte, error) {
	if change.Mode == filemode.Symlink {
		target, err := in.Readlink(name)
		if err != nil {
			return nil, ioError(c.op, change.Path, err)
		}
		return []byte(target), nil
	}
	info, err := in.Lstat(name)
	if err != nil {
		return nil, ioError(c.op, change.Path, err)
	}
	rd := reader{ctx: ctx, op: c.op}
	got, err := rd.readFile(in, change.Path, name, info, DefaultMaxFile)
	return got.data, err
}

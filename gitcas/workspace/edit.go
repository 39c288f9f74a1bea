package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

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
	for _, part := range parts {
		if why := refusedName(part); why != "" {
			return fmt.Errorf("path %q: %s", clipText(path), why)
		}
	}
	name := parts[len(parts)-1]
	if strings.HasPrefix(name, TempPrefix) {
		return fmt.Errorf("path %q: names that begin with %s are uwf's own", clipText(path), TempPrefix)
	}
	if err := gitobj.CheckEntry(name, mode); err != nil {
		return fmt.Errorf("path %q: %w", clipText(path), err)
	}
	return nil
}

// CheckLink says why a symlink at a path may not have that target: it leads out of
// the folder or into .git. Where it leads through other links shows only when a
// Snapshot sees all of them.
func CheckLink(path, target string) error {
	if !linkInside(nil, path, target, nil) {
		return fmt.Errorf("symlink %q: its target %q leads out of the folder or into .git", clipText(path), clipText(target))
	}
	return nil
}

// Overlap lists the files that are no longer as the edits found them, and not as
// the edits leave them either.
func Overlap(ctx context.Context, dir string, edits []Edit) ([]string, error) {
	var out []string
	err := inFolder(dir, func(c *cursor) error {
		rd := &reader{ctx: ctx, op: c.op}
		for _, e := range edits {
			now, err := c.readPath(rd, e.Path, 0)
			if err != nil && !isGone(err) {
				return err
			}
			want := wire.ZeroID
			if e.Mode != 0 {
				want = blobID(e.Data)
			}
			if now.id != e.Old && now.id != want {
				out = append(out, e.Path)
			}
		}
		return nil
	})
	return out, err
}

// isGone says whether there is no such folder or file, or something else in a folder's place.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// Apply makes the edits in a folder, whatever is there: deletions first, so that a
// file can take a folder's place. Nothing is written through a link; what it makes
// belongs to the folder's owner.
func Apply(dir string, edits []Edit) error {
	for _, e := range edits {
		err := CheckPath(e.Path, e.Mode)
		if err == nil && e.Mode == filemode.Symlink {
			err = CheckLink(e.Path, string(e.Data))
		}
		if err != nil {
			return fmt.Errorf("apply edits: %w", err)
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
				if _, err := c.putFile(e.Path, e.Mode, e.Data, func(string, string) error { return nil }); err != nil {
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

// removeFile deletes a file, and the folders that are empty without it. What is gone is
// gone, and a folder with files in it stays.
func (c *cursor) removeFile(path string) error {
	for first := true; path != ""; first = false {
		folder, name := splitPath(path)
		in, err := c.openDir(folder, false)
		if isGone(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if info, err := in.Lstat(name); first && err == nil && info.IsDir() {
			return nil // it became a folder
		}
		switch err = in.Remove(name); {
		case errors.Is(err, fs.ErrNotExist), err != nil && !first:
			return nil // it was gone, or the folder is not empty
		case err != nil:
			return ioError(c.op, path, err)
		}
		path = folder
	}
	return nil
}

// Content reads a file or a symlink's target as a Snapshot found it.
func Content(ctx context.Context, dir string, change Change) (data []byte, err error) {
	err = inFolder(dir, func(c *cursor) error {
		got, err := c.readPath(&reader{ctx: ctx, op: c.op}, change.Path, DefaultMaxFile)
		if err == nil && got.id != change.Blob {
			err = unstableError(c.op, change.Path)
		}
		data = got.data
		return err
	})
	return data, err
}

package workspace

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
)

// Edit is a file as it is elsewhere.
type Edit struct {
	Path string
	Mode filemode.FileMode // Regular, Executable or Symlink
	Data []byte            // a symlink's target
	// Tracked: a commit has a file of that name, which may have control characters.
	Tracked bool
}

// CheckPath says why nothing may be written at a path; nil: something may. The
// rules are those that Snapshot has for new files.
func CheckPath(path string, mode filemode.FileMode) error {
	parts := strings.Split(path, "/")
	if len(path) > memtree.MaxPath || len(parts) > memtree.MaxDepth {
		return fmt.Errorf("path %q: it has more than %d bytes or folders lie deeper than %d levels", clipText(path), memtree.MaxPath, memtree.MaxDepth)
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

// hideControl replaces a control character that CheckPath would refuse; git refuses a NUL as well.
func hideControl(r rune) rune {
	if r != 0 && r < ' ' || r == 0x7f {
		return '!'
	}
	return r
}

// Apply puts files into a folder, whatever is there. Nothing is written through a link; what it
// makes belongs to the folder's owner.
func Apply(dir string, edits []Edit) (err error) {
	for _, e := range edits {
		path := e.Path
		if e.Tracked {
			path = strings.Map(hideControl, path)
		}
		err := CheckPath(path, e.Mode)
		if err == nil && e.Mode == filemode.Symlink {
			err = CheckLink(e.Path, string(e.Data))
		}
		if err != nil {
			return fmt.Errorf("apply edits: %w", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("apply edits: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	c := &rooted.Cursor{Root: root, Op: "apply edits"}
	if c.Owner, err = rooted.OwnerOf(root); err != nil {
		return rooted.IOError(c.Op, ".", err)
	}
	for _, e := range edits {
		if _, err = c.PutFile(e.Path, e.Mode, e.Data, func(string, string) error { return nil }); err != nil {
			break
		}
	}
	return errors.Join(err, c.CloseAll())
}

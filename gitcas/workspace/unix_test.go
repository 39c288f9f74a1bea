//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
	"github.com/united-workforce/uwf/internal/wiretest"
)

func TestSnapshotSpecialFiles(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	dir := t.TempDir()
	parent := commitOf(t, m, files{"fifo": "1", "k": "1"})
	w := open(t, dir, m)
	restore(t, w, parent)
	put(t, dir, files{"fifo": "\x00", "d/x": "1", ".gitignore": "ign*"})
	for _, n := range []string{"fifo", "d/new", "ignored", "d/.gitignore"} {
		must(t, syscall.Mkfifo(filepath.Join(dir, n), 0o600))
	}
	s := snapshot(t, w, parent)
	if changes(s) != "added .gitignore;added d/x;deleted fifo;" || skipped(s) != `"d/.gitignore";"d/new";"fifo";` {
		t.Errorf("%s %s", changes(s), skipped(s))
	}
	// A restore puts files in their places, and reads none of them.
	restore(t, w, parent)
	equal(t, "after", contents(t, dir), files{"fifo": "1", "k": "1"})
}

// TestFileExchanged: a file that another one took the place of after it was listed is looked at
// again; what is no file of its own is not opened.
func TestFileExchanged(t *testing.T) {
	for name, c := range map[string]struct {
		exchange func(path string) error
		want     error
	}{
		"a new file":  {func(path string) error { return os.Rename(path+"2", path) }, nil},
		"a hard link": {func(path string) error { return errors.Join(os.Remove(path), os.Link(path+"2", path)) }, ErrUnstable},
		"a FIFO":      {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, ErrUnstable},
		"nothing":     {os.Remove, os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, files{"f": "old", "f2": "new one"})
			root, err := os.OpenRoot(dir)
			must(t, err)
			defer func() { must(t, root.Close()) }()
			rd := reader{ctx: ctx, op: "snapshot", maxFiles: 10}
			found, err := rd.listFolder(root, "")
			must(t, err)
			must(t, c.exchange(filepath.Join(dir, "f")))
			got, err := rd.readFile(root, "f", "f", found[0].info, unboundedSizes(100))
			if !errors.Is(err, c.want) || c.want == nil && string(got.data) != "new one" {
				t.Errorf("%q, %v", got.data, err)
			}
		})
	}
}

// TestRestoreGivesFilesAway: root in the folder of another user.
func TestRestoreGivesFilesAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1", "d/e/b*": "2"})
	dir := t.TempDir()
	must(t, os.Chown(dir, 1234, 2345))
	restore(t, open(t, dir, m), commit)
	for _, p := range []string{"a", "d", "d/e", "d/e/b"} {
		info, err := os.Lstat(filepath.Join(dir, p))
		must(t, err)
		if s := stamps.StatOf(info); s.Owner != 1234 || s.Group != 2345 {
			t.Errorf("%s belongs to %d:%d", p, s.Owner, s.Group)
		}
	}
	put(t, dir, files{"new": "1", "theirs": "2"})
	must(t, os.Chown(filepath.Join(dir, "new"), 1234, 2345))
	must(t, os.Link(filepath.Join(dir, "new"), filepath.Join(dir, "linked")))
	must(t, os.Link(filepath.Join(dir, "theirs"), filepath.Join(dir, "foreign")))
	s := snapshot(t, open(t, dir, m), commit)
	if changes(s) != "added linked;added new;" || skipped(s) != `"foreign";"theirs";` {
		t.Errorf("%s %s", changes(s), skipped(s))
	}
}

// TestOwnFilesOfAgents: in a folder of root's whose files the agents' user keeps, hard links of that
// user are taken, and those of others are not.
func TestOwnFilesOfAgents(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	put(t, dir, files{"new": "1", "theirs": "2"})
	for name, uid := range map[string]int{"new": 1234, "theirs": 2345} {
		must(t, os.Chown(filepath.Join(dir, name), uid, uid))
		must(t, os.Link(filepath.Join(dir, name), filepath.Join(dir, "linked-"+name)))
	}
	w := open(t, dir, nil)
	w.AddOwner(1234)
	if s := snapshot(t, w); changes(s) != "added linked-new;added new;" || skipped(s) != `"linked-theirs";"theirs";` {
		t.Errorf("%s %s", changes(s), skipped(s))
	}
	w.AddOwner(-1)
	if s := snapshot(t, w); changes(s) != "" {
		t.Errorf("with no other owner: %s", changes(s))
	}
}

func TestSnapshotUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads everything")
	}
	for _, name := range []string{"d/a", "d"} {
		dir := t.TempDir()
		put(t, dir, files{"d/a": "1"})
		must(t, os.Chmod(filepath.Join(dir, name), 0))
		_, err := open(t, dir, nil).TakeSnapshot(ctx, SnapshotRequest{})
		var e *FolderError
		if !errors.As(err, &e) || e.Path != name || !errors.Is(err, ErrUnreadable) || !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, os.Chmod(filepath.Join(dir, name), 0o755))
	}
}

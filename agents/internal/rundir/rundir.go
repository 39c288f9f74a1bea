// Package rundir makes the folders of runs, of agents and of commands, and removes them,
// those of killed processes too. It never removes the folder of a run that lasts, nor
// another user's, and never follows a link.
package rundir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/internal/removal"
)

const (
	// runPrefix begins the name of a run's folder, newPrefix until that is locked.
	runPrefix = "uwf-agent-"
	newPrefix = "uwf-new-"
	// maxRemoved is how many things are removed of one run at once.
	maxRemoved = 200_000
)

// Folder is the folder of a run that lasts.
type Folder struct {
	Path string   // without symlinks
	lock *os.File // of it; locked as long as the run is not over
}

// MakeFolder makes the folder of a run, and locks it as long as the run lasts: by that
// other processes see that it does. It gets its name when it is locked, so that nobody
// finds it unlocked before. An empty tempDir is the system's.
func MakeFolder(tempDir string) (*Folder, error) {
	begun, err := os.MkdirTemp(tempDir, newPrefix)
	if err != nil {
		return nil, err
	}
	lock, err := os.Open(begun)
	if err != nil {
		return nil, errors.Join(err, os.Remove(begun))
	}
	_ = lockFolder(lock) // where a file system locks none, nobody takes it for abandoned either
	f := &Folder{Path: filepath.Join(filepath.Dir(begun), runPrefix+strings.TrimPrefix(filepath.Base(begun), newPrefix)), lock: lock}
	if err := os.Rename(begun, f.Path); err != nil {
		return nil, errors.Join(err, lock.Close(), os.Remove(begun))
	}
	// A child may see the path through a symlink of the system (/tmp on macOS): one name
	// for one folder.
	if real, err := filepath.EvalSymlinks(f.Path); err == nil {
		f.Path = real
	}
	return f, nil
}

// EndRun unlocks the folder: the run counts as over then.
func (f *Folder) EndRun() error { return f.lock.Close() }

// lockFolder locks a folder for this process, unless another has.
func lockFolder(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// RemoveLeftovers removes the folders of runs that are over: those named, and then those
// in tempDir that killed processes left; an empty one is the system's. Of each it removes a
// part if there is very much in it, and it ends with ctx, which is no error: whoever runs
// something here next goes on with the rest.
func RemoveLeftovers(ctx context.Context, tempDir string, over ...string) error {
	var errs []error
	for _, dir := range append(over, findRuns(cmp.Or(tempDir, os.TempDir()))...) {
		err := RemoveFolder(ctx, dir)
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// RemoveFolder removes the folder of a run that is over, or a part of it, unless the run
// lasts or another process is at it. Nil: it is gone, was never there, or the rest was left
// to a later run.
func RemoveFolder(ctx context.Context, dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		defer func() { _ = f.Close() }() // which unlocks it
		if lockFolder(f) != nil {
			return nil
		}
		err = removal.Tree(ctx, dir, maxRemoved)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, removal.ErrLeft) {
		return nil
	}
	return fmt.Errorf("remove %s, which a run left: %w", dir, err)
}

// findRuns lists the folders of this user's runs. Other users' are not looked at.
func findRuns(tempDir string) (runs []string) {
	entries, err := os.ReadDir(tempDir)
	if err != nil {
		return nil // then nothing is to be removed there
	}
	for _, e := range entries {
		dir := filepath.Join(tempDir, e.Name())
		if strings.HasPrefix(e.Name(), runPrefix) && isOwn(dir) {
			runs = append(runs, dir)
		}
	}
	return runs
}

// isOwn says whether a folder is one, and this user's.
func isOwn(dir string) bool {
	var st unix.Stat_t
	err := unix.Lstat(dir, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == os.Geteuid()
}

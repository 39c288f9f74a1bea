package agents

import (
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

// What an agent leaves in the folders of its run is removed when its step is over, not
// before: it may take long, and nothing of the step hangs on it. Whatever is not removed
// then, since there is too much of it or the process is killed, a later run removes.
const (
	// runPrefix begins the name of a run's folder, newPrefix until that is locked.
	runPrefix = "uwf-agent-"
	newPrefix = "uwf-new-"
	// maxRemoved is how many things are removed of one run at once.
	maxRemoved = 200_000
)

// makeBase makes the folder of a run, and locks it as long as the run lasts: by that other
// processes see that it does. It gets its name when it is locked, so that nobody finds it
// unlocked before.
func makeBase(tempDir string) (base string, lock *os.File, err error) {
	begun, err := os.MkdirTemp(tempDir, newPrefix)
	if err != nil {
		return "", nil, err
	}
	if lock, err = os.Open(begun); err != nil {
		return "", nil, errors.Join(err, os.Remove(begun))
	}
	_ = lockFolder(lock) // where a file system locks none, nobody takes it for abandoned either
	base = filepath.Join(filepath.Dir(begun), runPrefix+strings.TrimPrefix(filepath.Base(begun), newPrefix))
	if err := os.Rename(begun, base); err != nil {
		return "", nil, errors.Join(err, lock.Close(), os.Remove(begun))
	}
	return base, lock, nil
}

// lockFolder locks a folder for this process, unless another has.
func lockFolder(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// RemoveLeftovers removes the folders of runs that are over: those of this Spawner, and
// then those that killed processes left. Of each it removes a part if there is
// very much in it, and it ends with ctx, which is no error: whoever runs an agent here
// next goes on with the rest.
func (s *Spawner) RemoveLeftovers(ctx context.Context) error {
	s.mu.Lock()
	all := s.over
	s.over = nil
	s.mu.Unlock()
	var errs []error
	for _, dir := range append(all, findRuns(s.tempDir())...) {
		err := removeRun(ctx, dir)
		if ctx.Err() != nil {
			break
		}
		if err != nil && !errors.Is(err, removal.ErrLeft) {
			errs = append(errs, fmt.Errorf("remove %s, which an agent left: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// removeRun removes the folder of a run that is over, or a part of it, unless the run lasts
// or another process is at it. Nil: it is gone, was never there, or was left for such a
// reason.
func removeRun(ctx context.Context, dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // which unlocks it
	if lockFolder(f) != nil {
		return nil
	}
	return removal.Tree(ctx, dir, maxRemoved)
}

func (s *Spawner) tempDir() string {
	if s.o.TempDir != "" {
		return s.o.TempDir
	}
	return os.TempDir()
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

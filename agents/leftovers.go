package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/internal/removal"
)

// What an agent leaves in the folders of its run is removed when its step is over, not
// before: it may take long, and nothing of the step hangs on it. Whatever is not removed
// then, since there is too much of it or the process is killed, a later run removes.
const (
	// runPrefix begins the name of a run's folder.
	runPrefix = "uwf-agent-"
	// overSuffix ends it once the run is over.
	overSuffix = "-over"
	// lockName is a file in it that is locked as long as the run's process lives.
	lockName = "lock"
	// maxRemoved is how many things are removed of one run at once.
	maxRemoved = 200_000
	// maxRuns is of how many runs of other processes things are removed at once.
	maxRuns = 20
)

// takeLock makes the file by which other processes see that this one lives. It gets its
// name when it is locked, so that nobody finds it unlocked before.
func takeLock(base *os.Root) (*os.File, error) {
	f, err := base.OpenFile(lockName+".new", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = lockFile(f); err == nil {
		err = base.Rename(lockName+".new", lockName)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the folder of the run: %w", err), f.Close())
	}
	return f, nil
}

// lockFile locks a file for this process, unless another has.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// closeFiles lets go of what is open. The run's process counts as gone then.
func (f *folders) closeFiles() error {
	var errs []error
	for _, open := range []*os.Root{f.root, f.baseDir} {
		if open != nil {
			errs = append(errs, open.Close())
		}
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}

// markOver says that the run is over. Its folder can be removed by anybody from now on.
func (f *folders) markOver() (over string, err error) {
	over = f.base + overSuffix
	return over, errors.Join(os.Rename(f.base, over), f.closeFiles())
}

// RemoveLeftovers removes the folders of runs that are over: those of this Spawner, and
// then some of those that killed processes left. Of each it removes a part if there is
// very much in it, and it ends with ctx, which is no error: whoever runs an agent here
// next goes on with the rest.
func (s *Spawner) RemoveLeftovers(ctx context.Context) error {
	s.mu.Lock()
	all := s.over
	s.over = nil
	s.mu.Unlock()
	others := findLeftovers(s.tempDir(), all)
	var errs []error
	for _, dir := range append(all, others[:min(len(others), maxRuns)]...) {
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

// removeRun removes the folder of a run that is over, or a part of it, unless another
// process is at it.
func removeRun(ctx context.Context, dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // which unlocks it
	if lockFile(f) != nil {
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

// findLeftovers lists the folders of runs that are over, but for known ones. Those whose
// process was killed become such ones. Other users' are not looked at.
func findLeftovers(tempDir string, known []string) (over []string) {
	entries, err := os.ReadDir(tempDir)
	if err != nil {
		return nil // then nothing is to be removed there
	}
	for _, e := range entries {
		dir := filepath.Join(tempDir, e.Name())
		if !strings.HasPrefix(e.Name(), runPrefix) || slices.Contains(known, dir) || !isOwn(dir) {
			continue
		}
		if !strings.HasSuffix(e.Name(), overSuffix) {
			if !isAbandoned(dir) || os.Rename(dir, dir+overSuffix) != nil {
				continue
			}
			dir += overSuffix
		}
		over = append(over, dir)
	}
	return over
}

// isOwn says whether a folder is one, and this user's.
func isOwn(dir string) bool {
	var st unix.Stat_t
	err := unix.Lstat(dir, &st)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == os.Geteuid()
}

// isAbandoned says whether the process of a run is gone: nobody holds its lock.
func isAbandoned(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	f, err := root.OpenFile(lockName, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false // it has none yet
	}
	defer func() { _ = f.Close() }()
	return lockFile(f) == nil
}

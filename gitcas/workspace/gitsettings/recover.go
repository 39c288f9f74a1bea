package gitsettings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Recovered is what was put back for a process that was killed while an agent worked.
type Recovered struct {
	Folder  string
	Changed []string // as PutBack lists it
}

// Recover puts back what processes kept below store that were killed before they could.
// What living ones keep is left alone.
func Recover(ctx context.Context, store string) (all []Recovered, err error) {
	entries, err := os.ReadDir(store)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range entries {
		k, err := openKept(filepath.Join(store, e.Name()))
		if err != nil {
			errs = append(errs, err)
		}
		if k == nil {
			continue
		}
		changed, err := k.PutBack(ctx)
		if len(changed) > 0 {
			all = append(all, Recovered{Folder: k.Folder, Changed: changed})
		}
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// Busy says whether another process has agents at work in a folder.
func Busy(folder, store string) bool {
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	lock, err := os.OpenFile(filepath.Join(store, nameOf(real), manifestName), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	return unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

// openKept takes over what a process kept that is gone; nil: nothing is to be put back.
func openKept(store string) (k *Kept, err error) {
	lock, err := os.OpenFile(filepath.Join(store, manifestName), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if isAbsent(err) {
		return nil, nil // somebody else's, or it is just being made or removed
	}
	if err != nil {
		return nil, err
	}
	k = &Kept{store: store, lock: lock}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil, lock.Close() // its process lives
	}
	if strings.HasPrefix(filepath.Base(store), newPrefix) {
		return nil, k.dropCopies() // no agent had begun
	}
	text, err := io.ReadAll(io.LimitReader(lock, maxBytes))
	if err == nil {
		err = json.Unmarshal(text, &k.manifest)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w; if no agent works any more, remove the folder it is in, and look at the .git of the folder where it did", lock.Name(), err), lock.Close())
	}
	if _, err := os.Stat(k.Folder); errors.Is(err, fs.ErrNotExist) {
		return nil, k.dropCopies() // the folder is gone, with all that was to be put back into it
	}
	return k, nil
}

package gitsettings

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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

const (
	// keptSuffix ends the names of files with what was kept.
	keptSuffix = ".kept"
	// newSuffix ends the names of those that aren't complete.
	newSuffix = ".new"
)

// Kept is what git obeys in one folder. It lies in a file, which lasts until PutBack, also
// beyond the end of this process.
type Kept struct {
	manifest
	file string
	lock *os.File // the file; locked as long as this process lives

	// step, replaced by tests, is called before each change of a name; an error stops there,
	// like a kill would.
	step func(op, path string) error
}

// manifest says what was there.
type manifest struct {
	ID     string `json:"id"` // makes names of its own
	Folder string `json:"folder"`
	Parts  []part `json:"parts"`
}

func newKept(file string, lock *os.File) *Kept {
	return &Kept{file: file, lock: lock, step: func(string, string) error { return nil }}
}

// fileOf is the file with what is kept of a folder.
func fileOf(store, folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return filepath.Join(store, hex.EncodeToString(sum[:8])+keptSuffix)
}

// saveKept writes down what was found under a name that says that it isn't complete, and
// gives it its own then: from now on it is put back.
func saveKept(store, folder string, parts []part) (k *Kept, err error) {
	m := manifest{ID: strings.ToLower(rand.Text()[:12]), Folder: folder, Parts: parts}
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(store, 0o700); err != nil {
		return nil, err
	}
	begun := filepath.Join(store, m.ID+newSuffix)
	f, err := os.OpenFile(begun, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	k = newKept(fileOf(store, folder), f)
	k.manifest = m
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		_, err = f.Write(text)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		if err = os.Link(begun, k.file); errors.Is(err, fs.ErrExist) {
			err = ErrBusy
		}
	}
	if err = errors.Join(err, os.Remove(begun)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return k, nil
}

// dropKept removes the file.
func (k *Kept) dropKept() error { return errors.Join(os.Remove(k.file), k.lock.Close()) }

// openKept takes over what a process kept that is gone; nil: nothing is to be put back.
func openKept(file string) (k *Kept, err error) {
	lock, err := os.OpenFile(file, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if isAbsent(err) {
		return nil, nil // it was just removed
	}
	if err != nil {
		return nil, err
	}
	k = newKept(file, lock)
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil, lock.Close() // its process lives
	}
	if strings.HasSuffix(file, newSuffix) {
		return nil, k.dropKept() // no agent had begun
	}
	is, err := lock.Stat()
	if now, nowErr := os.Lstat(file); err == nil && (nowErr != nil || !os.SameFile(is, now)) {
		return nil, lock.Close() // it was put back meanwhile
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(lock)
	}
	if err == nil {
		err = json.Unmarshal(text, &k.manifest)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w; if no agent works any more, remove it, and look at the .git of the folder where it did", file, err), lock.Close())
	}
	if _, err := os.Stat(k.Folder); errors.Is(err, fs.ErrNotExist) {
		return nil, k.dropKept() // the folder is gone, with all that was to be put back into it
	}
	return k, nil
}

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
		if suffix := filepath.Ext(e.Name()); suffix != keptSuffix && suffix != newSuffix {
			continue // somebody else's
		}
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
	lock, err := os.OpenFile(fileOf(store, real), os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	return unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

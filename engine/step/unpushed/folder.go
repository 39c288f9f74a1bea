package unpushed

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Folder keeps steps on disk, Dir/<store id>/<thread id>.<claim>, in folders of this user's
// alone and files of mode 0600: two jobs of one thread have a file each, and neither can
// write over the other's or remove it. No agent may see it. Dir need not be there.
type Folder struct{ Dir string }

// BadError is a file that no uwf of this version wrote for that thread.
type BadError struct {
	Path string
	Why  string
}

func (e *BadError) Error() string {
	return fmt.Sprintf("read the sealed step %s: %s", e.Path, e.Why)
}

// badSuffix is what a file is called by that was moved out of the way; half that of one
// which is being written.
const badSuffix, half = ".bad", ".tmp"

// Path is where the step of a thread is kept that was made under the claim of that nonce.
func (f *Folder) Path(store string, id gitcas.ThreadID, nonce string) string {
	return filepath.Join(f.Dir, nameOf(store, id, nonce))
}

// namePattern is how the name of a file ends, after the thread's id.
var namePattern = lazyregexp.New(`^\.[0-9a-f]{16}$`)

// nameOf is the name of a file in the folder. A nonce may be anybody's.
func nameOf(store string, id gitcas.ThreadID, nonce string) string {
	return filepath.Join(store, fmt.Sprintf("%s.%.8x", id, sha256.Sum256([]byte(nonce))))
}

// ThreadOf is the thread that a file of the folder, by its name, is for: with a step, or with
// what was moved aside or half written. Empty: none's.
func ThreadOf(name string) gitcas.ThreadID {
	const length = 26
	if len(name) < length || !gitcas.ThreadID(name[:length]).Valid() {
		return ""
	}
	return gitcas.ThreadID(name[:length])
}

// Write keeps a step in place of the one that was made under the same claim. When it returns,
// the file is on the disk whole; where it fails, it is as it was.
func (f *Folder) Write(s Step) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("keep the sealed step in %s: %w", f.Path(s.Store, s.Thread, s.Nonce), err)
		}
	}()
	if !storeName.MatchString(s.Store) || !s.Thread.Valid() {
		return errors.New("the store or the thread has no id that can name a file")
	}
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	return f.inFolder(func(root *os.Root) error {
		if err := root.Mkdir(s.Store, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		name := nameOf(s.Store, s.Thread, s.Nonce)
		if err := root.Remove(name + half); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		file, err := root.OpenFile(name+half, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		err = Encode(file, s)
		if err == nil {
			err = file.Sync()
		}
		if err = errors.Join(err, file.Close()); err == nil {
			err = root.Rename(name+half, name)
		}
		if err != nil {
			return errors.Join(err, root.Remove(name+half))
		}
		syncFolder(root, s.Store)
		return nil
	})
}

// inFolder does something in the folder. It may not be a link to another one.
func (f *Folder) inFolder(do func(root *os.Root) error) error {
	info, err := os.Lstat(f.Dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", f.Dir)
	}
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return err
	}
	return errors.Join(do(root), root.Close())
}

// syncFolder puts a new name on the disk, where the system can.
func syncFolder(root *os.Root, name string) {
	if dir, err := root.Open(name); err == nil {
		_ = dir.Sync()
		_ = dir.Close()
	}
}

// Read returns a step that is kept for a thread, the first by name. None is fs.ErrNotExist; a
// file that holds none is a *BadError.
func (f *Folder) Read(store string, id gitcas.ThreadID) (Step, error) {
	if !storeName.MatchString(store) {
		return Step{}, fs.ErrNotExist
	}
	var s Step
	err := f.inFolder(func(root *os.Root) (err error) {
		s, err = f.readFirst(root, store, id)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, new(*BadError)) {
		err = fmt.Errorf("read the sealed step of thread %s in %s: %w", id, filepath.Join(f.Dir, store), err)
	}
	return s, err
}

func (f *Folder) readFirst(root *os.Root, store string, id gitcas.ThreadID) (Step, error) {
	if info, err := root.Lstat(store); err != nil {
		return Step{}, err
	} else if !info.IsDir() {
		return Step{}, &BadError{Path: filepath.Join(f.Dir, store), Why: "it is a link or a file, and not the folder of the store's steps"}
	}
	files, err := fs.ReadDir(root.FS(), store) // by name
	if err != nil {
		return Step{}, err
	}
	for _, file := range files {
		if name := file.Name(); isStep(name, id) {
			return f.readFile(root, store, id, filepath.Join(store, name))
		}
	}
	return Step{}, fs.ErrNotExist
}

func (f *Folder) readFile(root *os.Root, store string, id gitcas.ThreadID, name string) (s Step, err error) {
	fail := func(format string, args ...any) (Step, error) {
		return Step{}, &BadError{Path: filepath.Join(f.Dir, name), Why: fmt.Sprintf(format, args...)}
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return s, err
	case !info.Mode().IsRegular():
		return fail("it is no regular file")
	case info.Size() > MaxFile:
		return fail("it has %d bytes; at most %d are read", info.Size(), int64(MaxFile))
	}
	file, err := root.Open(name)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	s, err = Decode(file)
	var bad *BadError
	switch {
	case errors.As(err, &bad):
		return fail("%s", bad.Why)
	case err != nil:
		return s, err
	case s.Store != store || s.Thread != id:
		return fail("it is of thread %s of store %s", s.Thread, s.Store)
	case nameOf(store, id, s.Nonce) != name:
		return fail("it was made under another claim than its name says")
	}
	return s, nil
}

// Holds reports whether there is a step for a thread, of whatever store; what was moved aside or
// half written is none.
func (f *Folder) Holds(id gitcas.ThreadID) bool {
	found := false
	_ = f.inFolder(func(root *os.Root) error {
		files, err := fs.Glob(root.FS(), "*/*")
		for _, file := range files {
			found = found || isStep(path.Base(file), id)
		}
		return err
	})
	return found
}

// isStep reports whether a file is, by its name, a step of the thread.
func isStep(name string, id gitcas.ThreadID) bool {
	return ThreadOf(name) == id && namePattern.MatchString(name[len(id):])
}

// Remove deletes what is kept for a thread that was made under a claim. That nothing is there
// is no error.
func (f *Folder) Remove(store string, id gitcas.ThreadID, nonce string) error {
	err := f.inFolder(func(root *os.Root) error { return root.Remove(nameOf(store, id, nonce)) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Clear deletes all that is kept for a store, and nothing else in the folder.
func (f *Folder) Clear(store string) error {
	if !storeName.MatchString(store) {
		return nil
	}
	err := f.inFolder(func(root *os.Root) error { return root.RemoveAll(store) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what earlier jobs left in %s: %w; remove it by hand, or name another folder", filepath.Join(f.Dir, store), err)
	}
	return nil
}

// SetAside moves the file of a path out of the way, for a person to look at. It returns the
// new path.
func (f *Folder) SetAside(path string) (string, error) {
	name, err := filepath.Rel(f.Dir, path)
	if err != nil {
		return path, err
	}
	err = f.inFolder(func(root *os.Root) error { return root.Rename(name, name+badSuffix) })
	return path + badSuffix, err
}

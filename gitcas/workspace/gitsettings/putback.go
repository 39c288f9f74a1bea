package gitsettings

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/removal"
	"github.com/united-workforce/uwf/internal/text"
)

// replacedPrefix begins the name of the folder, in a git directory, with what was there
// instead of what was put back. Git takes no notice of it.
const replacedPrefix = "uwf-replaced-"

// maxOld is how many things of earlier replacements are removed at once.
const maxOld = 20_000

// PutBack puts back what is not as it was, name by name: each is whole, the old one or
// the new one, at any moment, and what was there instead is kept beside it, in the git
// directory. It lists what was changed, a line each, without values. The copies are gone
// afterwards, unless there is an error: then Recover tries again. It takes no time worth
// speaking of, but for an entry that is not to be there, which it removes as long as ctx
// lasts.
func (k *Kept) PutBack(ctx context.Context) (changed []string, err error) {
	changed, err = k.putBack(ctx)
	if err != nil {
		return changed, errors.Join(fmt.Errorf("put git's settings of %s back: %w; look at its .git before you use git there", k.Folder, err), k.lock.Close())
	}
	return changed, k.dropCopies()
}

func (k *Kept) putBack(ctx context.Context) (changed []string, err error) {
	if info, err := os.Stat(k.Folder); err == nil && info.Mode().Perm()&0o700 != 0o700 {
		_ = os.Chmod(k.Folder, info.Mode().Perm()|0o700) // where that fails, so does opening it
	}
	root, err := os.OpenRoot(k.Folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	r := restorer{ctx: ctx, k: k, root: root, gone: map[string]bool{}}
	for _, p := range k.Parts {
		if p.GitDir == "" {
			err = r.putBackEntry(p)
		} else {
			err = r.putBackPart(p)
		}
		if err != nil {
			return r.changed, fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	for _, dir := range r.touched {
		r.tellChange(path.Join(dir, replacedPrefix+k.ID), "has what was there instead")
		r.removeOld(dir)
	}
	return r.changed, nil
}

type restorer struct {
	ctx  context.Context
	k    *Kept
	root *os.Root

	changed []string
	touched []string        // git directories in which something was replaced
	gone    map[string]bool // git directories that are not there any more
}

func (r *restorer) tellChange(at, format string, args ...any) {
	line := text.Cut(at, 200) + " " + fmt.Sprintf(format, args...)
	if !slices.Contains(r.changed, line) {
		r.changed = append(r.changed, line)
	}
}

// renamePath and remove change one name.
func (r *restorer) renamePath(from, to string) error {
	if err := r.callHook("rename", to); err != nil {
		return err
	}
	return r.root.Rename(from, to)
}

func (r *restorer) removePath(at string) error {
	if err := r.callHook("remove", at); err != nil {
		return err
	}
	return r.root.Remove(at)
}

// unlockFolder gives a folder back the rights that work in it takes. Where that fails, so does
// the work.
func (r *restorer) unlockFolder(at string, info fs.FileInfo) {
	if info != nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		_ = r.root.Chmod(at, info.Mode().Perm()|0o700)
	}
}

// callHook reports to the test hook.
func (r *restorer) callHook(op, path string) error {
	if r.k.step == nil {
		return nil
	}
	return r.k.step(op, path)
}

// statPath says what is at a place; nil: nothing.
func (r *restorer) statPath(at string) (fs.FileInfo, error) {
	info, err := r.root.Lstat(at)
	if isAbsent(err) {
		return nil, nil
	}
	return info, err
}

// putBackEntry makes an entry named .git what it was: a folder, a file, a link, or none.
func (r *restorer) putBackEntry(p part) error {
	info, err := r.statPath(p.Path)
	if err != nil {
		return err
	}
	if len(p.Holds) > 0 && p.Holds[0].Mode.IsDir() {
		return r.wholeEntry(p, info)
	}
	differs, err := r.describeDifference(p, info)
	if err != nil || len(differs) == 0 {
		return err
	}
	if _, err := r.root.Stat(path.Dir(p.Path)); err != nil {
		r.tellChange(path.Dir(p.Path), "is gone, with its .git")
		return nil //nolint:nilerr // nothing is obeyed where nothing is
	}
	old := path.Join(path.Dir(p.Path), workspace.TempPrefix+"git-"+r.k.ID)
	if info != nil && info.IsDir() {
		r.unlockFolder(p.Path, info)
		if err := r.renamePath(p.Path, old); err != nil {
			return err
		}
	}
	if len(p.Holds) == 0 {
		r.tellChange(p.Path, "was made (%s)", describeKind(info))
		if !info.IsDir() {
			if err := r.removePath(p.Path); err != nil {
				return err
			}
		}
	} else {
		r.tellChange(p.Path, "%s", r.k.tellPart(r.root, p, info, differs))
		if err := r.makePart(p, p.Path, path.Join(path.Dir(p.Path), workspace.TempPrefix+r.k.ID)); err != nil {
			return err
		}
	}
	if err := removal.Tree(r.ctx, filepath.Join(r.k.Folder, filepath.FromSlash(old)), 0); err != nil && r.ctx.Err() == nil {
		return err
	}
	return nil // or what is left of it is out of git's way
}

// wholeEntry makes sure that an entry is a folder. What is to be in it comes next.
func (r *restorer) wholeEntry(p part, info fs.FileInfo) error {
	switch {
	case info == nil:
		r.tellChange(p.Path, "was removed: what git had stored there is gone, and only its settings are put back")
	case info.IsDir():
		return nil
	default:
		r.tellChange(p.Path, "was made %s", describeKind(info))
		if err := r.removePath(p.Path); err != nil {
			return err
		}
	}
	if _, err := r.root.Stat(path.Dir(p.Path)); isAbsent(err) {
		r.gone[p.Path] = true // the folder that it was in went with it
		return nil
	}
	return r.makePart(p, p.Path, path.Join(path.Dir(p.Path), workspace.TempPrefix+r.k.ID))
}

// putBackPart puts back one name in a git directory.
func (r *restorer) putBackPart(p part) error {
	there, err := r.openWay(p.GitDir)
	if err != nil || !there {
		return err
	}
	info, err := r.statPath(p.Path)
	if err != nil {
		return err
	}
	differs, err := r.describeDifference(p, info)
	if err != nil || len(differs) == 0 {
		return err
	}
	r.unlockFolder(p.Path, info) // a folder is written to when it moves
	r.tellChange(p.Path, "%s", r.k.tellPart(r.root, p, info, differs))
	if err := r.setAside(p, info); err != nil {
		return err
	}
	if len(p.Holds) == 0 {
		return nil
	}
	return r.makePart(p, p.Path, path.Join(p.GitDir, "uwf-new-"+r.k.ID))
}

// openWay makes sure that a git directory is reached through folders alone. A link in
// its place, or on the way below its .git, is removed; where there is none any more,
// nothing is put into it.
func (r *restorer) openWay(dir string) (there bool, err error) {
	if r.gone[dir] {
		return false, nil
	}
	parts := strings.Split(dir, "/")
	for i := range parts {
		at := strings.Join(parts[:i+1], "/")
		info, err := r.statPath(at)
		if err != nil {
			return false, err
		}
		if info != nil && info.IsDir() {
			r.unlockFolder(at, info)
			continue
		}
		r.gone[dir] = true
		if info == nil {
			r.tellChange(at, "was removed")
			return false, nil
		}
		r.tellChange(at, "was made %s", describeKind(info))
		if slices.Contains(parts[:i+1], entryName) || i == len(parts)-1 {
			return false, r.removePath(at)
		}
		return false, nil
	}
	return true, nil
}

// setAside moves what is in a part's place into the git directory's folder of replaced
// things. A file stays until it is replaced, so that there is always one.
func (r *restorer) setAside(p part, info fs.FileInfo) error {
	if info == nil {
		return nil
	}
	aside := path.Join(p.GitDir, replacedPrefix+r.k.ID)
	if !slices.Contains(r.touched, p.GitDir) {
		if err := r.root.Mkdir(aside, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		r.touched = append(r.touched, p.GitDir)
	}
	to := path.Join(aside, path.Base(p.Path))
	if err := r.callHook("set aside", p.Path); err != nil {
		return err
	}
	if info.Mode().IsRegular() && len(p.Holds) > 0 && p.Holds[0].Mode.IsRegular() && r.root.Link(p.Path, to) == nil {
		return nil
	}
	return r.renamePath(p.Path, to)
}

// makePart makes a part anew under another name, and gives it its own when it is complete.
func (r *restorer) makePart(p part, at, temp string) error {
	if err := r.root.RemoveAll(temp); err != nil { // of one that was cut short
		return err
	}
	for _, t := range p.Holds {
		if err := r.makeThing(path.Join(temp, t.Name), t); err != nil {
			return err
		}
	}
	for _, t := range slices.Backward(p.Holds) { // a folder may not be writable
		if t.Mode.IsDir() {
			if err := r.root.Chmod(path.Join(temp, t.Name), t.Mode.Perm()); err != nil {
				return err
			}
		}
	}
	return r.renamePath(temp, at)
}

func (r *restorer) makeThing(at string, t thing) error {
	var err error
	switch {
	case t.Mode.IsDir():
		err = r.root.Mkdir(at, 0o700)
	case t.Mode.Type() == fs.ModeSymlink:
		err = r.root.Symlink(t.Target, at)
	default:
		err = r.makeFile(at, t)
	}
	if err == nil && os.Geteuid() == 0 {
		err = r.root.Lchown(at, t.UID, t.GID)
	}
	return err
}

func (r *restorer) makeFile(at string, t thing) error {
	data, err := r.k.readCopy(t)
	if err != nil {
		return err
	}
	f, err := r.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chmod(t.Mode.Perm()), f.Sync(), f.Close())
}

// readCopy is the copy of a file.
func (k *Kept) readCopy(t thing) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(k.store, filepath.Base(t.Copy)))
	if err == nil && int64(len(data)) != t.Size {
		err = fmt.Errorf("the copy of %s is damaged", t.Name)
	}
	return data, err
}

// removeOld removes what earlier runs replaced in a git directory, a part of it if there
// is very much. It is no failure if that can't be done.
func (r *restorer) removeOld(dir string) {
	entries, err := readDir(r.root, dir, maxThings)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), replacedPrefix) && e.Name() != replacedPrefix+r.k.ID {
			_ = removal.Tree(r.ctx, filepath.Join(r.k.Folder, filepath.FromSlash(dir), e.Name()), maxOld)
		}
	}
}

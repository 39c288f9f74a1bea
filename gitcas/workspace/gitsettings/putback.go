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
	"github.com/united-workforce/uwf/internal/regular"
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
// directory. It lists what was changed, a line each, without values. What was kept is gone
// afterwards, unless there is an error: then Recover tries again. It takes no time worth
// speaking of, but for an entry that is not to be there, which it removes as long as ctx
// lasts.
func (k *Kept) PutBack(ctx context.Context) (changed []string, err error) {
	changed, err = k.putBack(ctx)
	if err != nil {
		return changed, errors.Join(fmt.Errorf("put git's settings of %s back: %w; look at its .git before you use git there", k.Folder, err), k.lock.Close())
	}
	return changed, k.dropKept()
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
		if err := r.putBackPart(p); err != nil {
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
	gone    map[string]bool // folders that are not there any more
}

func (r *restorer) tellChange(at, what string) {
	line := text.Cut(at, 200) + " " + what
	if !slices.Contains(r.changed, line) {
		r.changed = append(r.changed, line)
	}
}

// renamePath changes one name.
func (r *restorer) renamePath(from, to string) error {
	if err := r.k.step("rename", to); err != nil {
		return err
	}
	return r.root.Rename(from, to)
}

// unlockFolder gives a folder back the rights that work in it takes. Where that fails, so does
// the work.
func (r *restorer) unlockFolder(at string, info fs.FileInfo) {
	if info != nil && info.IsDir() && info.Mode().Perm()&0o700 != 0o700 {
		_ = r.root.Chmod(at, info.Mode().Perm()|0o700)
	}
}

// statPath says what is at a place; nil: nothing.
func (r *restorer) statPath(at string) (fs.FileInfo, error) {
	info, err := r.root.Lstat(at)
	if isAbsent(err) {
		return nil, nil
	}
	return info, err
}

// putBackPart makes one name what it was: what is there now goes aside, and what was there
// is made anew.
func (r *restorer) putBackPart(p part) error {
	there, err := r.openParent(p)
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
	r.tellChange(p.Path, r.describePart(p, info, differs))
	aside, err := r.setAside(p, info)
	if err != nil {
		return err
	}
	if len(p.Holds) > 0 {
		if err := r.makePart(p); err != nil {
			return err
		}
	}
	if !p.Entry {
		return nil
	}
	if err := removal.Tree(r.ctx, filepath.Join(r.k.Folder, filepath.FromSlash(aside)), 0); err != nil && r.ctx.Err() == nil {
		return err
	}
	return nil // or what is left of it is out of git's way
}

// openParent makes sure that the folder of a part is reached through folders alone. A link in
// the place of a git directory, or on the way below its .git, is removed; where there is
// no folder any more, nothing is put into it.
func (r *restorer) openParent(p part) (there bool, err error) {
	dir := path.Dir(p.Path)
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
		switch {
		case info == nil && len(p.Holds) == 0: // it may never have been there
		case info == nil:
			r.tellChange(at, "was removed")
		default:
			r.tellChange(at, "was made "+regular.DescribeKind(info.Mode()))
		}
		if info == nil || p.Entry || i < len(parts)-1 && !slices.Contains(parts[:i+1], entryName) {
			return false, nil
		}
		if err := r.k.step("remove", at); err != nil {
			return false, err
		}
		return false, r.root.Remove(at)
	}
	return true, nil
}

// setAside moves what is in a part's place out of git's way: an entry to a name that the
// next restore removes, another part into the git directory's folder of replaced things. A
// file stays until it is replaced, so that there is always one.
func (r *restorer) setAside(p part, info fs.FileInfo) (aside string, err error) {
	dir := path.Dir(p.Path)
	aside = path.Join(dir, workspace.TempPrefix+"git-"+r.k.ID)
	if info == nil {
		return aside, nil
	}
	if !p.Entry {
		replaced := path.Join(dir, replacedPrefix+r.k.ID)
		if err := r.root.Mkdir(replaced, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		if !slices.Contains(r.touched, dir) {
			r.touched = append(r.touched, dir)
		}
		aside = path.Join(replaced, path.Base(p.Path))
	}
	if err := r.k.step("set aside", p.Path); err != nil {
		return "", err
	}
	if info.Mode().IsRegular() && p.wasType(0) && (p.Entry || r.root.Link(p.Path, aside) == nil) {
		return aside, nil
	}
	return aside, r.renamePath(p.Path, aside)
}

// makePart makes a part anew under another name, and gives it its own when it is complete.
func (r *restorer) makePart(p part) error {
	temp := path.Join(path.Dir(p.Path), workspace.TempPrefix+r.k.ID)
	if err := r.root.RemoveAll(temp); err != nil { // of one that was cut short
		return err
	}
	for _, t := range p.Holds {
		if err := r.makeEntry(path.Join(temp, t.Name), t); err != nil {
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
	return r.renamePath(temp, p.Path)
}

func (r *restorer) makeEntry(at string, t fsEntry) error {
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

func (r *restorer) makeFile(at string, t fsEntry) error {
	f, err := r.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(t.Data)
	return errors.Join(err, f.Chmod(t.Mode.Perm()), f.Sync(), f.Close())
}

// removeOld removes what earlier runs replaced in a git directory, a part of it if there
// is very much. It is no failure if that can't be done.
func (r *restorer) removeOld(dir string) {
	entries, err := readDir(r.root, dir, maxEntries)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), replacedPrefix) && e.Name() != replacedPrefix+r.k.ID {
			_ = removal.Tree(r.ctx, filepath.Join(r.k.Folder, filepath.FromSlash(dir), e.Name()), maxOld)
		}
	}
}

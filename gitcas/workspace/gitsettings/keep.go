// Package gitsettings keeps what git obeys in the .git of a folder in which agents work
// (settings, hooks, attributes, where the rest of a repository is), and puts it back
// after them: git runs the programs that stand there, for whoever types it next. What
// git merely stores (commits, refs, the index) it leaves alone. It never runs git.
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
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// obeyedNames are the names in a git directory by which git is told what to do, or where
// else to look. Those of working trees and of submodules have some of their own. The last
// three are what is still to be done of a rebase and the like: programs to run among it.
func obeyedNames() []string {
	return []string{"config", "config.worktree", "commondir", "gitdir", "hooks", "info", "remotes", "branches",
		"rebase-merge", "rebase-apply", "sequencer"}
}

// What is kept is small in any repository that people work with.
const (
	maxThings = 5_000
	maxBytes  = 32 << 20
	maxDirs   = 500 // git directories: of submodules and of other working trees
	maxDepth  = 16  // of submodules' names, of folders among what is kept
	maxLine   = 4096
)

var (
	// ErrTooMuch: there is more than can be kept.
	ErrTooMuch = errors.New("more than can be put back after an agent")
	// ErrBusy: another process has agents at work in the folder.
	ErrBusy = errors.New("another uwf lets an agent work there: wait for it, or name another folder")
)

const (
	entryName    = ".git"
	manifestName = "kept.json"
	newPrefix    = ".new-"
)

// Kept are copies of what git obeys in one folder. They lie in a folder of their own,
// which lasts until PutBack, also beyond the end of this process.
type Kept struct {
	store string
	lock  *os.File // the manifest; locked as long as this process lives
	manifest
	size  int64
	count int
	seen  map[string]bool // git directories

	// step, set by tests, is called before each change of a name; an error stops there,
	// like a kill would.
	step func(op, path string) error
}

// manifest says what was there.
type manifest struct {
	ID     string `json:"id"` // makes names of its own
	Folder string `json:"folder"`
	Parts  []part `json:"parts"`
}

// part is one name that git obeys.
type part struct {
	Path string `json:"path"` // below the folder, with slashes
	// GitDir is the git directory that it lies in, below the folder; empty: it is an
	// entry named .git itself, which may be a file.
	GitDir string `json:"gitDir,omitempty"`
	// Holds is itself and what is in it; empty: it was not there. Of an entry that was a
	// folder it is the folder alone: what git obeys in it are parts of their own.
	Holds []thing `json:"holds,omitempty"`
}

// thing is a file, a folder or a link.
type thing struct {
	Name   string      `json:"name"` // below the part; empty for itself
	Mode   fs.FileMode `json:"mode"`
	UID    int         `json:"uid"`
	GID    int         `json:"gid"`
	Target string      `json:"target,omitempty"` // of a link
	Copy   string      `json:"copy,omitempty"`   // of a file: its name in the store
	Size   int64       `json:"size,omitempty"`
}

// Keep copies what git obeys in a folder, into a new folder below store: of the folder's
// own .git, of the other entries named (paths below the folder that end with .git), and
// of the submodules and working trees that belong to them. That there is no .git is kept,
// too. The store must lie where agents can't write. Of one folder there is one Kept at a
// time, of all processes with that store: else what one agent wrote would be put back after
// the other (ErrBusy).
func Keep(folder string, entries []string, store string) (k *Kept, err error) {
	folder, err = filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if dead, err := openKept(filepath.Join(store, nameOf(folder))); err != nil {
		return nil, err
	} else if dead != nil {
		// Killed since this process began. What it kept is what there was before agents.
		if _, err := dead.PutBack(context.Background()); err != nil {
			return nil, err
		}
	}
	k = &Kept{manifest: manifest{ID: strings.ToLower(rand.Text()[:12]), Folder: folder}, seen: map[string]bool{}}
	if err := k.beginCopies(store); err != nil {
		return nil, fmt.Errorf("keep git's settings of %s: %w", folder, err)
	}
	for _, at := range append([]string{entryName}, entries...) {
		if err == nil {
			err = k.keepEntry(root, filepath.ToSlash(at))
		}
	}
	if err == nil {
		err = k.finishCopies(filepath.Join(store, nameOf(folder)))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("keep git's settings of %s: %w", folder, err), k.dropCopies())
	}
	return k, nil
}

// beginCopies makes the folder of the copies, under a name that says that it isn't complete.
func (k *Kept) beginCopies(store string) (err error) {
	if err := os.MkdirAll(store, 0o700); err != nil {
		return err
	}
	k.store = filepath.Join(store, newPrefix+k.ID)
	if err := os.Mkdir(k.store, 0o700); err != nil {
		return err
	}
	if k.lock, err = os.OpenFile(filepath.Join(k.store, manifestName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	return unix.Flock(int(k.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// nameOf is the name of the copies of a folder.
func nameOf(folder string) string {
	sum := sha256.Sum256([]byte(folder))
	return hex.EncodeToString(sum[:8])
}

// finishCopies writes down what was found, and gives the copies their name: from now on they are
// put back.
func (k *Kept) finishCopies(to string) error {
	text, err := json.Marshal(k.manifest)
	if err != nil {
		return err
	}
	if _, err := k.lock.Write(text); err != nil {
		return err
	}
	if err := k.lock.Sync(); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return ErrBusy
	}
	if err := os.Rename(k.store, to); errors.Is(err, fs.ErrExist) {
		return ErrBusy
	} else if err != nil {
		return err
	}
	k.store = to
	return nil
}

// dropCopies removes the copies.
func (k *Kept) dropCopies() error {
	err := os.RemoveAll(k.store)
	if k.lock != nil {
		err = errors.Join(err, k.lock.Close())
	}
	return err
}

// keepEntry keeps an entry named .git, and what it leads to.
func (k *Kept) keepEntry(root *os.Root, at string) error {
	if len(k.Parts) > maxThings {
		return fmt.Errorf("%w: more than %d submodules and what belongs to them", ErrTooMuch, maxThings)
	}
	info, err := root.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		k.Parts = append(k.Parts, part{Path: at})
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() {
		k.Parts = append(k.Parts, part{Path: at, Holds: []thing{newThing("", info)}})
		if err := k.gitDir(root, at, 0); err != nil {
			return err
		}
		return k.keepSubmodules(root, path.Dir(at))
	}
	holds, err := k.copyThing(root, at, info)
	if err != nil {
		return err
	}
	k.Parts = append(k.Parts, part{Path: at, Holds: holds})
	if err := k.keepLinked(root, at, info); err != nil {
		return err
	}
	return k.keepSubmodules(root, path.Dir(at))
}

// keepLinked keeps the git directories that an entry leads to, as far as they lie in the folder.
func (k *Kept) keepLinked(root *os.Root, at string, info fs.FileInfo) error {
	dir := filepath.Join(k.Folder, filepath.FromSlash(at))
	if info.Mode().IsRegular() {
		target, ok := strings.CutPrefix(readLine(root, at), "gitdir: ")
		if !ok {
			return nil
		}
		if dir = filepath.FromSlash(target); !filepath.IsAbs(dir) {
			dir = filepath.Join(k.Folder, filepath.FromSlash(path.Dir(at)), dir)
		}
	}
	in, ok := k.pathInside(dir)
	if !ok {
		return nil
	}
	if err := k.gitDir(root, in, 0); err != nil {
		return err
	}
	common := readLine(root, path.Join(in, "commondir"))
	if common == "" {
		return nil
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(k.Folder, filepath.FromSlash(in), filepath.FromSlash(common))
	}
	if in, ok = k.pathInside(common); ok {
		return k.gitDir(root, in, 0)
	}
	return nil
}

// pathInside is where a folder really lies below the kept one.
func (k *Kept) pathInside(dir string) (string, bool) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(k.Folder, real)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel) && rel != "."
}

// readLine is a small file of one line; empty where there is none.
func readLine(root *os.Root, at string) string {
	info, err := root.Stat(at)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxLine {
		return ""
	}
	text, err := root.ReadFile(at)
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(text), "\r\n")
}

// gitDir keeps what git obeys in a git directory, and in those of its submodules and
// working trees.
func (k *Kept) gitDir(root *os.Root, at string, depth int) error {
	if k.seen[at] {
		return nil
	}
	if k.seen[at] = true; len(k.seen) > maxDirs || depth > maxDepth {
		return fmt.Errorf("%w: more than %d submodules and working trees", ErrTooMuch, maxDirs)
	}
	for _, name := range obeyedNames() {
		p := part{Path: path.Join(at, name), GitDir: at}
		info, err := root.Lstat(p.Path)
		if err == nil {
			p.Holds, err = k.copyThing(root, p.Path, info)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		k.Parts = append(k.Parts, p)
	}
	if err := k.keepNested(root, path.Join(at, "modules"), depth+1); err != nil {
		return err
	}
	return k.keepNested(root, path.Join(at, "worktrees"), depth+1)
}

// keepNested keeps the git directories in a folder: each folder with a HEAD is one. The names
// of submodules may have slashes.
func (k *Kept) keepNested(root *os.Root, at string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: %s lies too deep", ErrTooMuch, at)
	}
	info, err := root.Lstat(at)
	if err != nil || !info.IsDir() {
		return nil //nolint:nilerr // there are none
	}
	entries, err := readDir(root, at, maxThings)
	if err != nil {
		return err
	}
	for _, e := range entries {
		in := path.Join(at, e.Name())
		if !e.IsDir() {
			continue
		}
		keep := k.keepNested
		if _, err := root.Lstat(path.Join(in, "HEAD")); err == nil {
			keep = k.gitDir
		}
		if err := keep(root, in, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// keepSubmodules keeps the entries of the submodules that a working tree names: git goes in
// there by itself.
func (k *Kept) keepSubmodules(root *os.Root, tree string) error {
	at := path.Join(tree, ".gitmodules")
	info, err := root.Lstat(at)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return nil //nolint:nilerr // there are none
	}
	text, err := root.ReadFile(at)
	if err != nil {
		return err
	}
	for _, in := range submodulePaths(text) {
		entry := path.Join(tree, in, entryName)
		info, err := root.Lstat(entry)
		if err != nil || k.seen[entry] || !filepath.IsLocal(filepath.FromSlash(entry)) {
			continue // it isn't checked out
		}
		k.seen[entry] = !info.IsDir()
		if err := k.keepEntry(root, entry); err != nil {
			return err
		}
	}
	return nil
}

// copyThing copies a thing with all that is in it. Links are not followed.
func (k *Kept) copyThing(root *os.Root, at string, info fs.FileInfo) (all []thing, err error) {
	err = walkThing(root, at, "", info, maxThings, func(t thing, in string) error {
		if k.count++; k.count > maxThings {
			return fmt.Errorf("%w: more than %d files in %s", ErrTooMuch, maxThings, at)
		}
		switch {
		case t.Mode.IsDir() || t.Mode.Type() == fs.ModeSymlink:
		case !t.Mode.IsRegular():
			return fmt.Errorf("%w: %s is neither a file nor a folder", ErrTooMuch, in)
		default:
			if k.size += t.Size; k.size > maxBytes {
				return fmt.Errorf("%w: more than %d bytes in %s", ErrTooMuch, maxBytes, at)
			}
			t.Copy = strconv.Itoa(k.count)
			if err := k.copyFile(root, in, t); err != nil {
				return err
			}
		}
		all = append(all, t)
		return nil
	})
	return all, err
}

func (k *Kept) copyFile(root *os.Root, at string, t thing) (err error) {
	from, err := root.OpenFile(at, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenFile(filepath.Join(k.store, t.Copy), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, io.LimitReader(from, t.Size+1))
	if err == nil && n != t.Size {
		err = fmt.Errorf("%s changes while it is read", at)
	}
	return errors.Join(err, to.Close())
}

// errFull ends a walk that came to more than it was to look at.
var errFull = errors.New("there is more")

// walkThing visits a thing and what is in it, each folder before what it holds and by name, at
// most so many, and then errFull. in is where it lies below the root.
func walkThing(root *os.Root, at, name string, info fs.FileInfo, most int, visit func(t thing, in string) error) error {
	left := most
	var step func(name string, info fs.FileInfo, depth int) error
	step = func(name string, info fs.FileInfo, depth int) error {
		if left--; left < 0 || depth > maxDepth {
			return errFull
		}
		in, t := path.Join(at, name), newThing(name, info)
		if info.Mode().Type() == fs.ModeSymlink {
			var err error
			if t.Target, err = root.Readlink(in); err != nil {
				return err
			}
		}
		if err := visit(t, in); err != nil || !info.IsDir() {
			return err
		}
		entries, err := readDir(root, in, left)
		if err != nil {
			return err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				return err
			}
			if err := step(path.Join(name, e.Name()), info, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return step(name, info, 0)
}

// newThing is a thing without its content.
func newThing(name string, info fs.FileInfo) thing {
	t := thing{Name: name, Mode: info.Mode() & (fs.ModeType | fs.ModePerm)}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		t.UID, t.GID = int(st.Uid), int(st.Gid)
	}
	if info.Mode().IsRegular() {
		t.Size = info.Size()
	}
	return t
}

// readDir lists a folder by name: a little more than most at most.
func readDir(root *os.Root, at string, most int) ([]fs.DirEntry, error) {
	dir, err := root.Open(at)
	if errors.Is(err, fs.ErrPermission) && root.Chmod(at, 0o700) == nil { // an agent's
		dir, err = root.Open(at)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // only read from
	entries, err := dir.ReadDir(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

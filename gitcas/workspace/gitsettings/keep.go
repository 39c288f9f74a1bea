// Package gitsettings keeps what git obeys in the .git of a folder in which agents work
// (settings, hooks, attributes, where the rest of a repository is), and puts it back
// after them: git runs the programs that stand there, for whoever types it next. What
// git merely stores (commits, refs, the index) it leaves alone. It never runs git.
package gitsettings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/internal/regular"
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
	maxEntries = 5_000
	maxBytes   = 32 << 20
	maxDirs    = 500 // git directories: of submodules and of other working trees
	maxDepth   = 16  // of submodules' names, of folders among what is kept
	maxLine    = 4096
)

const entryName = ".git"

var (
	// ErrTooMuch: there is more than can be kept.
	ErrTooMuch = errors.New("more than can be put back after an agent")
	// ErrBusy: another process has agents at work in the folder.
	ErrBusy = errors.New("another uwf lets an agent work there: wait for it, or name another folder")
)

// part is one name that git obeys.
type part struct {
	Path string `json:"path"` // below the folder, with slashes
	// Entry: it is an entry named .git itself, which may be a file; else it lies in a git
	// directory.
	Entry bool `json:"entry,omitempty"`
	// Holds is itself and what is in it; empty: it was not there. Of an entry that was a
	// folder it is the folder alone: what git obeys in it are parts of their own.
	Holds []fsEntry `json:"holds,omitempty"`
}

// kind is what it was, a type of fs.FileMode.
func (p part) wasType(t fs.FileMode) bool { return len(p.Holds) > 0 && p.Holds[0].Mode.Type() == t }

// fsEntry is an entry of a folder: a file, a folder or a link.
type fsEntry struct {
	Name   string      `json:"name"` // below the part; empty for itself
	Mode   fs.FileMode `json:"mode"`
	UID    int         `json:"uid"`
	GID    int         `json:"gid"`
	Target string      `json:"target,omitempty"` // of a link
	Data   []byte      `json:"data,omitempty"`   // of a file
}

// Keep copies what git obeys in a folder, into a file below store: of the folder's
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
	if dead, err := openKept(fileOf(store, folder)); err != nil {
		return nil, err
	} else if dead != nil {
		// Killed since this process began. What it kept is what there was before agents.
		if _, err := dead.PutBack(context.Background()); err != nil {
			return nil, err
		}
	}
	c := collector{root: root, folder: folder, seen: map[string]bool{}}
	for _, at := range append([]string{entryName}, entries...) {
		if err == nil {
			err = c.keepEntry(filepath.ToSlash(at))
		}
	}
	if err == nil {
		k, err = saveKept(store, folder, c.parts)
	}
	if err != nil {
		return nil, fmt.Errorf("keep git's settings of %s: %w", folder, err)
	}
	return k, nil
}

// collector reads what git obeys.
type collector struct {
	root   *os.Root
	folder string
	parts  []part
	seen   map[string]bool // git directories
	size   int64
	count  int
}

// keepEntry keeps an entry named .git, and what it leads to.
func (c *collector) keepEntry(at string) error {
	if len(c.parts) > maxEntries {
		return fmt.Errorf("%w: more than %d submodules and what belongs to them", ErrTooMuch, maxEntries)
	}
	info, err := c.root.Lstat(at)
	if isAbsent(err) {
		c.parts = append(c.parts, part{Path: at, Entry: true})
		return nil
	}
	if err != nil {
		return err
	}
	p := part{Path: at, Entry: true, Holds: []fsEntry{newFSEntry("", info)}}
	if !info.IsDir() {
		if p.Holds, err = c.copyEntry(at, info); err != nil {
			return err
		}
	}
	c.parts = append(c.parts, p)
	if info.IsDir() {
		err = c.keepGitDir(at, 0)
	} else {
		err = c.keepLinked(at, info)
	}
	if err != nil {
		return err
	}
	return c.keepSubmodules(path.Dir(at))
}

// keepLinked keeps the git directories that an entry leads to, as far as they lie in the folder.
func (c *collector) keepLinked(at string, info fs.FileInfo) error {
	to := path.Base(at)
	if info.Mode().IsRegular() {
		var ok bool
		if to, ok = strings.CutPrefix(c.readLine(at), "gitdir: "); !ok {
			return nil
		}
	}
	in, ok := c.pathInside(path.Dir(at), to)
	if !ok {
		return nil
	}
	if err := c.keepGitDir(in, 0); err != nil {
		return err
	}
	common := c.readLine(path.Join(in, "commondir"))
	if common == "" {
		return nil
	}
	if in, ok = c.pathInside(in, common); ok {
		return c.keepGitDir(in, 0)
	}
	return nil
}

// pathInside is where what a path names from a folder really lies below the kept one.
func (c *collector) pathInside(dir, to string) (string, bool) {
	if !filepath.IsAbs(to) {
		to = filepath.Join(c.folder, filepath.FromSlash(dir), filepath.FromSlash(to))
	}
	real, err := filepath.EvalSymlinks(to)
	if err != nil {
		return "", false
	}
	rel, err := filepath.Rel(c.folder, real)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel) && rel != "."
}

// readLine is a small file of one line; empty where there is none.
func (c *collector) readLine(at string) string {
	text, _ := regular.Read(c.root, at, maxLine)
	return strings.TrimRight(string(text), "\r\n")
}

// keepGitDir keeps what git obeys in a git directory, and in those of its submodules and
// working trees.
func (c *collector) keepGitDir(at string, depth int) error {
	if c.seen[at] {
		return nil
	}
	if c.seen[at] = true; len(c.seen) > maxDirs || depth > maxDepth {
		return fmt.Errorf("%w: more than %d submodules and working trees", ErrTooMuch, maxDirs)
	}
	for _, name := range obeyedNames() {
		p := part{Path: path.Join(at, name)}
		info, err := c.root.Lstat(p.Path)
		if err == nil {
			p.Holds, err = c.copyEntry(p.Path, info)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		c.parts = append(c.parts, p)
	}
	return errors.Join(c.keepNested(path.Join(at, "modules"), depth+1), c.keepNested(path.Join(at, "worktrees"), depth+1))
}

// keepNested keeps the git directories in a folder: each folder with a HEAD is one. The names
// of submodules may have slashes.
func (c *collector) keepNested(at string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: %s lies too deep", ErrTooMuch, at)
	}
	info, err := c.root.Lstat(at)
	if err != nil || !info.IsDir() {
		return nil //nolint:nilerr // there are none
	}
	entries, err := readDir(c.root, at, maxEntries)
	if err != nil {
		return err
	}
	for _, e := range entries {
		in := path.Join(at, e.Name())
		if !e.IsDir() {
			continue
		}
		keep := c.keepNested
		if _, err := c.root.Lstat(path.Join(in, "HEAD")); err == nil {
			keep = c.keepGitDir
		}
		if err := keep(in, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// keepSubmodules keeps the entries of the submodules that a working tree names: git goes in
// there by itself.
func (c *collector) keepSubmodules(tree string) error {
	text, err := regular.Read(c.root, path.Join(tree, ".gitmodules"), maxConfig)
	if err != nil {
		return nil //nolint:nilerr // git reads none either
	}
	for _, in := range submodulePaths(text) {
		entry := path.Join(tree, in, entryName)
		info, err := c.root.Lstat(entry)
		if err != nil || c.seen[entry] || !filepath.IsLocal(filepath.FromSlash(entry)) {
			continue // it isn't checked out
		}
		c.seen[entry] = !info.IsDir()
		if err := c.keepEntry(entry); err != nil {
			return err
		}
	}
	return nil
}

// copyEntry copies an entry with all that is in it. Links are not followed.
func (c *collector) copyEntry(at string, info fs.FileInfo) (all []fsEntry, err error) {
	err = walkEntry(c.root, at, info, maxEntries, func(t fsEntry, in string, size int64) error {
		if c.count++; c.count > maxEntries {
			return fmt.Errorf("%w: more than %d files in %s", ErrTooMuch, maxEntries, at)
		}
		switch {
		case t.Mode.IsDir() || t.Mode.Type() == fs.ModeSymlink:
		case !t.Mode.IsRegular():
			return fmt.Errorf("%w: %s is neither a file nor a folder", ErrTooMuch, in)
		default:
			if c.size += size; c.size > maxBytes {
				return fmt.Errorf("%w: more than %d bytes in %s", ErrTooMuch, maxBytes, at)
			}
			if t.Data, err = regular.Read(c.root, in, size); err != nil {
				return err
			}
		}
		all = append(all, t)
		return nil
	})
	return all, err
}

// errFull ends a walk that came to more than it was to look at.
var errFull = errors.New("there is more")

// walkEntry visits an entry and what is in it, each folder before what it holds and by name, at
// most so many, and then errFull. in is where it lies below the root, size that of a file.
func walkEntry(root *os.Root, at string, info fs.FileInfo, most int, visit func(t fsEntry, in string, size int64) error) error {
	left := most
	var step func(name string, info fs.FileInfo, depth int) error
	step = func(name string, info fs.FileInfo, depth int) error {
		if left--; left < 0 || depth > maxDepth {
			return errFull
		}
		in, t := path.Join(at, name), newFSEntry(name, info)
		if info.Mode().Type() == fs.ModeSymlink {
			var err error
			if t.Target, err = root.Readlink(in); err != nil {
				return err
			}
		}
		if err := visit(t, in, info.Size()); err != nil || !info.IsDir() {
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
	return step("", info, 0)
}

// newFSEntry is an entry without its content.
func newFSEntry(name string, info fs.FileInfo) fsEntry {
	t := fsEntry{Name: name, Mode: info.Mode() & (fs.ModeType | fs.ModePerm)}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		t.UID, t.GID = int(st.Uid), int(st.Gid)
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

// isAbsent says that nothing is there, or that a file stands where a folder was on the way.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

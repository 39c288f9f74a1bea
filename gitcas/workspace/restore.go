package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
)

// Restore makes the folder equal to a commit: afterwards every file that the
// commit's .gitignore files don't ignore is as in the commit, and there is no
// other. It overwrites and deletes what differs, edits that were never committed
// too. It leaves alone: .git, at every depth; what is ignored, but for files that
// the last restored or snapshotted commit tracked; folders that ignore
// themselves (a .gitignore of their own, not in the commit, that matches itself);
// and what stands where the commit has a submodule.
//
// Only what differs is read from the remote and written. When root restores into
// the folder of another user, what it makes belongs to that user. Each file is written
// beside its place and renamed, so a killed restore leaves whole files, old or
// new, and running it again completes it.
//
// A commit with a symlink that leads out of the folder or into .git is refused
// whole (ErrLink, naming it), as is one with names that git would not check out
// (ErrDamaged). A folder with a repository inside that would have to give way to
// a file is ErrInTheWay.
func (w *Workspace) Restore(ctx context.Context, commit wire.ID) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	root, err := os.OpenRoot(w.path)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	r := &restorer{
		w: w, root: root, texts: make(map[wire.ID][]byte),
		rd: reader{ctx: ctx, op: "restore", maxFiles: w.o.MaxFiles},
	}
	if err := r.restoreCommit(commit); err != nil {
		return err
	}
	w.saveCache(commit)
	return nil
}

// restorer compares the folder with a commit and notes what to do.
type restorer struct {
	w    *Workspace
	root *os.Root
	rd   reader
	load *loader
	// commit is what is restored.
	commit wire.ID
	clock  int64 // the file system's clock before anything was looked at

	// texts are the contents of the commit's .gitignore files and symlinks.
	texts map[wire.ID][]byte

	removals []doomed
	writes   []write
	chmods   []write
}

// doomed is a path that is to be removed. What is gone already is no error.
type doomed struct {
	path string
	how  removeHow
}

type removeHow int

const (
	removeFile    removeHow = iota
	removeIfEmpty           // a folder, unless something in it stays
	removeAll               // a folder with everything in it
)

// write of one entry. The entry gets its stamp when that is done.
type write struct {
	path string
	e    *entry
}

func (r *restorer) restoreCommit(commit wire.ID) error {
	clock, foldsCase, err := fsClock(r.root)
	if err != nil {
		return ioError(r.rd.op, ".", err)
	}
	r.clock = clock
	target, err := r.readTarget(commit)
	if err != nil {
		return fmt.Errorf("restore %s into %q: %w", commit, r.w.path, err)
	}
	if foldsCase {
		if err := checkCase(target, ""); err != nil {
			return err
		}
	}
	if err := r.readTexts(target); err != nil {
		return err
	}
	if err := r.checkLinks(target); err != nil {
		return err
	}
	done, err := r.compareFolder(spot{r: r.root, target: target, seen: r.w.seen, rules: ignore.New(r.w.o.ignoreSteps), stays: new(bool)})
	if err != nil {
		return err
	}
	if err := r.applyChanges(); err != nil {
		return err
	}
	r.w.seen = done
	r.w.rememberTree(commit, done)
	return nil
}

// readTarget returns the commit's tree. Into an empty folder everything is fetched at
// once; else the blobs are left out, as most are there already.
func (r *restorer) readTarget(commit wire.ID) (*dir, error) {
	r.load, r.commit = r.w.newLoader(), commit
	if t := r.w.knownTree(commit); t != nil {
		return t, nil
	}
	found, err := r.rd.listFolder(r.root, "")
	if err != nil {
		return nil, err
	}
	filter, haves := "", []wire.ID(nil)
	for _, d := range found {
		if d.name != gitDir {
			filter, haves = blobNone, r.w.knownCommits()
		}
	}
	t, err := r.load.commitTree(r.rd.ctx, commit, filter, haves)
	if filter == "" && errors.Is(err, wire.ErrUnreadable) {
		// It may be too much for one answer.
		t, err = r.load.commitTree(r.rd.ctx, commit, blobNone, haves)
	}
	return t, err
}

// spot is a folder during the comparison.
type spot struct {
	r      *os.Root
	path   string
	depth  int
	target *dir // nil: the commit has no such folder
	seen   *dir // as it was when it was last looked at
	rules  *ignore.Rules
	// ignored: what neither the commit nor seen has is left alone.
	ignored bool
	stays   *bool // set when something is left that the commit doesn't have
	ahead   readings
}

// compareFolder compares one folder and returns its target with the stamps that are
// known; nil when the commit has no such folder.
func (r *restorer) compareFolder(s spot) (*dir, error) {
	if err := r.rd.ctx.Err(); err != nil {
		return nil, err
	}
	if s.depth > 2*maxDepth {
		return nil, &Error{Op: r.rd.op, Path: s.path, Kind: ErrLimit, Detail: fmt.Sprintf("folders lie deeper than %d levels: remove them", 2*maxDepth)}
	}
	found, err := r.rd.listFolder(s.r, s.path)
	if err != nil {
		return nil, err
	}
	if s.rules, err = r.ignoreRules(s, found); err != nil {
		return nil, err
	}
	var out *dir
	if s.target != nil {
		out = cloneDir(s.target)
	}
	todo := pairUp(found, out.allEntries())
	s.ahead = r.readAhead(s, todo)
	for _, x := range todo {
		if err := r.comparePair(s, x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cloneDir copies a dir, not what is below it, without stamps.
func cloneDir(d *dir) *dir {
	c := *d
	c.entries = append([]entry(nil), d.entries...)
	for i := range c.entries {
		c.entries[i].stamp = stamp{}
	}
	return &c
}

// ignoreRules returns what is ignored in a folder: by the commit's .gitignore, or by
// one of the folder's own that the commit doesn't have and that ignores itself,
// as tools put into their caches.
func (r *restorer) ignoreRules(s spot, found []onDisk) (*ignore.Rules, error) {
	if s.ignored {
		return s.rules, nil
	}
	if e := s.target.findEntry(gitignore); e != nil {
		if isFile(e.mode) {
			rules, err := s.rules.Folder(s.path, r.texts[e.id])
			return rules, rulesError(r.rd.op, err)
		}
		return s.rules, nil
	}
	f := findOnDisk(found, gitignore)
	if f == nil || !f.info.Mode().IsRegular() || f.info.Size() > ignore.MaxFile || s.seen.findEntry(gitignore) != nil {
		return s.rules, nil
	}
	path := joinPath(s.path, gitignore)
	data, err := r.rd.readIgnore(s.r, path, f.info)
	if err != nil {
		return nil, err
	}
	own, err := s.rules.Folder(s.path, data)
	if err != nil {
		return nil, rulesError(r.rd.op, err)
	}
	itself, err := own.Ignored(path, false)
	if itself {
		return own, nil
	}
	return s.rules, rulesError(r.rd.op, err)
}

// isIgnored says whether a thing in a folder is ignored, by itself or with the folder.
func (r *restorer) isIgnored(s spot, path string, isDir bool) (bool, error) {
	if s.ignored {
		return true, nil
	}
	ignored, err := s.rules.Ignored(path, isDir)
	return ignored, rulesError(r.rd.op, err)
}

func (r *restorer) comparePair(s spot, x pair) error {
	if err := r.rd.ctx.Err(); err != nil {
		return err
	}
	path := joinPath(s.path, x.name)
	switch {
	case x.disk == nil:
		r.noteMissing(path, x.tree)
		return nil
	case x.tree == nil:
		return r.decideExtra(s, x, path)
	case x.tree.mode == filemode.Submodule:
		return nil
	case x.tree.dir != nil && x.disk.info.IsDir():
		ignored, err := r.isIgnored(s, path, true)
		if err != nil {
			return err
		}
		x.tree.dir, _, err = r.compareSubfolder(s, x, path, x.tree.dir, ignored)
		return err
	case x.tree.dir != nil:
		r.noteRemoval(path, removeFile)
		r.noteMissing(path, x.tree)
		return nil
	case x.disk.info.IsDir():
		if err := r.checkNoRepo(s.r, path, x, 0); err != nil {
			return err
		}
		r.noteRemoval(path, removeAll)
		r.noteMissing(path, x.tree)
		return nil
	}
	return r.compareLeaf(s, x, path)
}

// noteMissing notes that e, with all below it, is to be written.
func (r *restorer) noteMissing(path string, e *entry) {
	switch {
	case e.mode == filemode.Submodule:
	case e.dir == nil:
		r.writes = append(r.writes, write{path, e})
	default:
		e.dir = cloneDir(e.dir)
		for i := range e.dir.entries {
			c := &e.dir.entries[i]
			r.noteMissing(joinPath(path, c.name), c)
		}
	}
}

func (r *restorer) noteRemoval(path string, how removeHow) {
	r.removals = append(r.removals, doomed{path, how})
}

// decideExtra decides about something that the commit doesn't have.
func (r *restorer) decideExtra(s spot, x pair, path string) error {
	isDir := x.disk.info.IsDir()
	ignored, err := r.isIgnored(s, path, isDir)
	if err != nil {
		return err
	}
	before := s.seen.findEntry(x.name)
	tracked := before != nil && (before.dir != nil) == isDir && before.mode != filemode.Submodule
	leftOver := strings.HasPrefix(x.name, TempPrefix)
	if x.name == gitDir || ignored && !tracked && !leftOver {
		*s.stays = true
		return nil
	}
	if !isDir {
		r.noteRemoval(path, removeFile)
		return nil
	}
	if leftOver && !tracked {
		r.noteRemoval(path, removeAll)
		return nil
	}
	_, stays, err := r.compareSubfolder(s, x, path, nil, ignored)
	if err != nil {
		return err
	}
	if stays {
		*s.stays = true
		return nil
	}
	r.noteRemoval(path, removeIfEmpty)
	return nil
}

func (r *restorer) compareSubfolder(s spot, x pair, path string, target *dir, ignored bool) (d *dir, stays bool, err error) {
	sub, err := openDir(s.r, r.rd.op, path, x.name, x.disk.info)
	if err != nil {
		return nil, false, err
	}
	d, err = r.compareFolder(spot{r: sub, path: path, depth: s.depth + 1, target: target, seen: s.seen.findFolder(x.name), rules: s.rules, ignored: ignored, stays: &stays})
	return d, stays, errors.Join(err, sub.Close())
}

// compareLeaf compares a file or link with what stands in its place.
func (r *restorer) compareLeaf(s spot, x pair, path string) error {
	e, info := x.tree, x.disk.info
	switch {
	case e.mode == filemode.Symlink && info.Mode()&os.ModeSymlink != 0:
		target, err := s.r.Readlink(x.name)
		if err != nil {
			return ioError(r.rd.op, path, err)
		}
		if blobID([]byte(target)) == e.id {
			return nil
		}
	case isFile(e.mode) && info.Mode().IsRegular():
		st := statOf(info)
		same, err := r.sameFile(s, x, path, st)
		if err != nil {
			return err
		}
		if same && sameMode(modeOf(info), e.mode) {
			return nil
		}
		// The mode of a file with other names is theirs too.
		if same && st.links == 1 {
			r.chmods = append(r.chmods, write{path, e})
			return nil
		}
	}
	r.writes = append(r.writes, write{path, e})
	return nil
}

// sameFile reports whether a file has the content of the entry.
func (r *restorer) sameFile(s spot, x pair, path string, st stat) (bool, error) {
	if seen := s.seen.findEntry(x.name); seen.looksLike(st) {
		x.tree.stamp = seen.stamp
		return seen.id == x.tree.id, nil
	}
	c, err := s.ahead.takeContent(x.tree)
	if c == nil && err == nil {
		var now content
		now, err = r.rd.readFile(s.r, path, x.name, x.disk.info, mostInMemory)
		c = &now
	}
	if errors.Is(err, os.ErrPermission) {
		return false, nil // it can be replaced all the same
	}
	if err != nil {
		return false, err
	}
	x.tree.stamp = c.stamp.ifSettled(r.clock)
	return c.id == x.tree.id, nil
}

// checkNoRepo refuses to remove a folder that holds a .git.
func (r *restorer) checkNoRepo(in *os.Root, path string, x pair, depth int) error {
	if depth > 2*maxDepth {
		return &Error{Op: r.rd.op, Path: path, Kind: ErrLimit, Detail: "folders lie too deep: remove them"}
	}
	sub, err := openDir(in, r.rd.op, path, x.name, x.disk.info)
	if err != nil {
		return err
	}
	found, err := r.rd.listFolder(sub, path)
	for i := range found {
		d := &found[i]
		if d.name == gitDir && err == nil {
			err = &Error{Op: r.rd.op, Path: path, Kind: ErrInTheWay, Detail: "the commit has a file there, and the folder holds a git repository: move it away"}
		}
		if d.info.IsDir() && err == nil {
			err = r.checkNoRepo(sub, joinPath(path, d.name), pair{name: d.name, disk: d}, depth+1)
		}
	}
	return errors.Join(err, sub.Close())
}

// checkCase finds names of one folder that a file system which ignores case
// takes for one.
func checkCase(d *dir, path string) error {
	seen := make(map[string]string, len(d.entries))
	for i := range d.entries {
		e := &d.entries[i]
		low := strings.ToLower(e.name)
		if other, ok := seen[low]; ok {
			return &Error{Op: "restore", Path: joinPath(path, e.name), Kind: ErrCollision, Detail: fmt.Sprintf("the commit also has %q: rename one of them", joinPath(path, other))}
		}
		seen[low] = e.name
		if e.dir != nil {
			if err := checkCase(e.dir, joinPath(path, e.name)); err != nil {
				return err
			}
		}
	}
	return nil
}

package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/convert"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
)

// Restore makes the folder equal to a commit: afterwards every file that the
// commit's .gitignore files don't ignore is as in the commit, and there is no
// other. Line ends and encodings are those that the commit's .gitattributes files ask for. It overwrites and deletes what differs, edits that were never committed
// too. It leaves alone: .git, at every depth; what is ignored, but for files that
// the last commit restored or snapshotted by this Workspace tracked; folders that ignore
// themselves (a .gitignore of their own, not in the commit, that matches itself);
// and what stands where the commit has a submodule.
//
// Only what differs is read from the remote and written. When root restores into
// the folder of another user, what it makes belongs to that user. Each file is written
// beside its place and renamed, so a killed restore leaves whole files, old or
// new, and running it again completes it.
//
// A symlink that leads out of the folder or into .git is not made, see
// Workspace.ListLeftOut. A commit with names that git would not check out is refused
// whole (ErrDamaged). A folder with a repository inside that would have to give
// way to a file is ErrInTheWay.
func (w *Workspace) Restore(ctx context.Context, commit wire.ID) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	root, err := os.OpenRoot(w.path)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	r := &restorer{
		w: w, root: root, commit: commit, load: w.openLoader(),
		rd: reader{ctx: ctx, op: "restore", maxFiles: w.most.files, maxDepth: 2 * memtree.MaxDepth},
	}
	return r.restoreCommit()
}

// restorer compares the folder with a commit and notes what to do.
type restorer struct {
	w      *Workspace
	root   *os.Root
	rd     reader
	load   *loader
	commit wire.ID
	clock  int64 // the file system's clock before anything was looked at

	// texts are the contents of the commit's .gitignore and .gitattributes files and symlinks.
	texts map[wire.ID]string
	forms *forms
	out   map[string]string // the commit's links that lead out, as linksOut has them

	removals []doomed
	writes   []write
	chmods   []write
}

// doomed is a path that is to be removed. What is gone already is no error.
type doomed struct {
	path  string
	whole bool // with everything in it; else a file, or a folder in which nothing stays
}

// write of one entry. The entry gets its stamp when that is done.
type write struct {
	path string
	e    *memtree.Entry
}

func (r *restorer) restoreCommit() error {
	clock, foldsCase, err := stamps.Clock(r.root, clockFile)
	if err != nil {
		return rooted.IOError(r.rd.op, ".", err)
	}
	r.clock = clock
	target, err := r.readTarget()
	if err != nil {
		return fmt.Errorf("restore %s into %q: %w", r.commit, r.w.path, err)
	}
	if foldsCase {
		if err := checkCase(target, ""); err != nil {
			return err
		}
	}
	if err := r.readTexts(target); err != nil {
		return err
	}
	if err := checkIgnoreFiles(r.rd.op, target, r.texts); err != nil {
		return err
	}
	if r.out, err = linksOut(r.rd.ctx, target, r.texts); err != nil {
		return err
	}
	if r.forms, err = newForms(&r.rd, r.w.most, target, r.texts); err != nil {
		return err
	}
	done, err := r.compareFolder(place{r: r.root, tree: target, seen: r.w.seen, rules: ignore.New(r.w.most.ignoreSteps), stays: new(bool)})
	if err != nil {
		return err
	}
	if err := r.applyChanges(); err != nil {
		return err
	}
	r.w.seen, r.w.recalled, r.w.fetched = done, false, nil
	if r.load.objects.Size() <= batchBytes {
		r.w.fetched = r.load.objects
	}
	r.w.rememberTree(knownTree{r.commit, done, r.texts, r.out})
	return r.noteLeftOut(done)
}

// readTarget returns the commit's tree. For an empty folder it fetches a small commit whole, in
// one request. Otherwise it leaves the blobs out: most are there already, or they come in batches.
func (r *restorer) readTarget() (*memtree.Dir, error) {
	if t := r.w.findKnownTree(r.commit); t != nil {
		return t, nil
	}
	found, err := r.rd.listFolder(r.root, "")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || len(found) == 1 && found[0].name == gitDir {
		expected := r.w.expected
		r.load.maxBytes = batchBytes
		t, err := r.w.fetchTree(r.rd.ctx, r.load, r.commit, "")
		r.load.maxBytes = 0
		if !errors.Is(err, wire.ErrUnreadable) {
			return t, err
		}
		r.w.expected = expected
	}
	return r.w.fetchTree(r.rd.ctx, r.load, r.commit, blobNone)
}

// readTexts gets the commit's .gitignore and .gitattributes files and its symlinks.
func (r *restorer) readTexts(target *memtree.Dir) (err error) {
	from := textReader{rd: &r.rd, load: r.load, commit: r.commit, texts: make(map[wire.ID]string)}
	for _, k := range r.w.trees {
		maps.Copy(from.texts, k.targets)
	}
	cur := rooted.Cursor{Root: r.root, Op: r.rd.op}
	r.texts, err = from.readTexts(r.rd.ctx, &cur, target, func(_ string, e *memtree.Entry) bool { return isText(e) })
	return err
}

// isText says whether a file or link is read before anything is compared.
func isText(e *memtree.Entry) bool {
	return e.IsLink() || e.Name == gitignore && memtree.IsFile(e.Mode) || isAttributes(e)
}

// checkIgnoreFiles refuses a tree with a .gitignore or .gitattributes file that is too large.
func checkIgnoreFiles(op string, top *memtree.Dir, texts map[wire.ID]string) error {
	for path, e := range top.FilesThat(isText) {
		if n := len(texts[e.ID]); !e.IsLink() && n > ignore.MaxFile {
			return rooted.NewError(ErrLimit, op, path, "%d bytes are too many for a .gitignore or a .gitattributes", n)
		}
	}
	return nil
}

// compareFolder compares one folder and returns its target with the stamps that are
// known; nil when the commit has no such folder.
func (r *restorer) compareFolder(p place) (*memtree.Dir, error) {
	found, err := r.rd.listFolder(p.r, p.path)
	if err != nil {
		return nil, err
	}
	if p.rules, err = r.ignoreRules(p, found); err != nil {
		return nil, err
	}
	var out *memtree.Dir
	if p.tree != nil {
		out = memtree.CloneDir(p.tree)
	}
	for _, x := range pairUp(found, out.AllEntries()) {
		if err := r.rd.ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.comparePair(p, x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ignoreRules returns what is ignored in a folder: by the commit's .gitignore, or by
// one of the folder's own that the commit doesn't have and that ignores itself,
// as tools put into their caches.
func (r *restorer) ignoreRules(p place, found []onDisk) (*ignore.Rules, error) {
	if p.ignored {
		return p.rules, nil
	}
	if e := p.tree.FindEntry(gitignore); e != nil {
		if !memtree.IsFile(e.Mode) {
			return p.rules, nil
		}
		rules, err := p.rules.Folder(p.path, []byte(r.texts[e.ID]))
		return rules, r.rd.rulesError(gitignore, err)
	}
	if r.trackedBefore(p, gitignore) != nil {
		return p.rules, nil
	}
	own, err := r.rd.readIgnore(p, found)
	if errors.Is(err, ErrLimit) {
		return p.rules, nil // no tool makes one that large
	}
	if err != nil || own == p.rules {
		return own, err
	}
	itself, err := own.Ignored(memtree.JoinPath(p.path, gitignore), false)
	if itself {
		return own, nil
	}
	return p.rules, r.rd.rulesError(gitignore, err)
}

func (r *restorer) comparePair(p place, x pair) error {
	path := memtree.JoinPath(p.path, x.name)
	switch {
	case x.disk == nil:
		r.noteMissing(path, x.tree)
		return nil
	case x.tree == nil:
		return r.decideExtra(p, x, path)
	case x.tree.Mode == filemode.Submodule && x.disk.info.IsDir():
		return nil
	case x.tree.Dir != nil && x.disk.info.IsDir():
		ignored, err := r.rd.isIgnored(p, path, true)
		if err != nil {
			return err
		}
		return r.rd.visitFolder(p, x, x.tree.Dir, ignored, func(in place) (err error) {
			x.tree.Dir, err = r.compareFolder(in)
			return err
		})
	case x.tree.Dir == nil && !x.disk.info.IsDir() && r.isMade(path, x.tree):
		return r.compareLeaf(p, x, path)
	}
	if x.disk.info.IsDir() {
		if err := r.rd.visitFolder(p, x, nil, true, r.checkNoRepo); err != nil {
			return err
		}
	}
	r.removals = append(r.removals, doomed{path, x.disk.info.IsDir()})
	r.noteMissing(path, x.tree)
	return nil
}

// isMade reports whether an entry of the commit is made in the folder.
func (r *restorer) isMade(path string, e *memtree.Entry) bool {
	_, out := r.out[path]
	return !out && e.Mode != filemode.Submodule
}

// noteMissing notes that e, with all below it, is to be written.
func (r *restorer) noteMissing(path string, e *memtree.Entry) {
	switch {
	case !r.isMade(path, e):
	case e.Dir == nil:
		r.writes = append(r.writes, write{path, e})
	default:
		e.Dir = memtree.CloneDir(e.Dir)
		for i := range e.Dir.Entries {
			c := &e.Dir.Entries[i]
			r.noteMissing(memtree.JoinPath(path, c.Name), c)
		}
	}
}

// decideExtra decides about something that the commit doesn't have.
func (r *restorer) decideExtra(p place, x pair, path string) error {
	isDir := x.disk.info.IsDir()
	ignored, err := r.rd.isIgnored(p, path, isDir)
	if err != nil {
		return err
	}
	before := r.trackedBefore(p, x.name)
	tracked := before != nil && (before.Dir != nil) == isDir && before.Mode != filemode.Submodule
	leftOver := strings.HasPrefix(x.name, TempPrefix) && !tracked
	stays := x.name == gitDir || ignored && !tracked && !leftOver
	if isDir && !stays && !leftOver {
		err = r.rd.visitFolder(p, x, nil, ignored, func(in place) error {
			_, err := r.compareFolder(in)
			stays = *in.stays
			return err
		})
	}
	if stays {
		*p.stays = true
	} else {
		r.removals = append(r.removals, doomed{path, isDir && leftOver})
	}
	return err
}

// trackedBefore is what the last commit of this Workspace has of that name.
func (r *restorer) trackedBefore(p place, name string) *memtree.Entry {
	if r.w.recalled {
		return nil
	}
	return p.seen.FindEntry(name)
}

// compareLeaf compares a file or link with what stands in its place.
func (r *restorer) compareLeaf(p place, x pair, path string) error {
	e, info := x.tree, x.disk.info
	st, link := stamps.StatOf(info), info.Mode().Type() == os.ModeSymlink
	same := false
	if link == (e.Mode == filemode.Symlink) {
		var err error
		if same, err = r.sameContent(p, x, path, st); err != nil {
			return err
		}
	}
	switch {
	case !same:
	case link || sameMode(modeOf(info), e.Mode):
		return nil
	case st.Links == 1: // the mode of a file with other names is theirs too
		r.chmods = append(r.chmods, write{path, e})
		return nil
	}
	r.writes = append(r.writes, write{path, e})
	return nil
}

// sameContent reports whether a file or link has the content of the entry.
func (r *restorer) sameContent(p place, x pair, path string, st stamps.Stat) (bool, error) {
	if seen := p.seen.FindEntry(x.name); seen.LooksLike(st) {
		x.tree.Stamp = seen.Stamp
		return seen.ID == x.tree.ID, nil
	}
	if !memtree.IsSize(r.w.most.file, x.disk.info.Size(), x.tree, p.seen.FindEntry(x.name)) {
		return false, nil
	}
	form, err := r.forms.formOf(path)
	if err != nil {
		return false, err
	}
	limit := int64(0)
	if form != (convert.Form{}) {
		limit = r.w.most.file
	}
	c, err := r.rd.readContent(p.r, path, x.name, x.disk.info, unboundedSizes(limit))
	if errors.Is(err, os.ErrPermission) {
		return false, nil // it can be replaced all the same
	}
	x.tree.Stamp = c.stamp.IfSettled(r.clock)
	x.tree.Size = c.size
	if err != nil || c.id == x.tree.ID || !memtree.IsFile(c.mode) || c.size > limit {
		return c.id == x.tree.ID, err
	}
	_, same, err := r.forms.isStored(path, c.data, x.tree.ID)
	return same, err
}

// checkNoRepo refuses to remove a folder that holds a .git.
func (r *restorer) checkNoRepo(p place) error {
	found, err := r.rd.listFolder(p.r, p.path)
	if err != nil {
		return err
	}
	for i := range found {
		d := &found[i]
		if d.name == gitDir {
			return rooted.NewError(ErrInTheWay, r.rd.op, p.path, "the commit has a file there, and the folder holds a git repository: move it away")
		}
		if d.info.IsDir() {
			if err := r.rd.visitFolder(p, pair{name: d.name, disk: d}, nil, true, r.checkNoRepo); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkCase finds names of one folder that a file system which ignores case
// takes for one.
func checkCase(d *memtree.Dir, path string) error {
	seen := make(map[string]string, len(d.Entries))
	for i := range d.Entries {
		e := &d.Entries[i]
		low := strings.ToLower(e.Name)
		if other, ok := seen[low]; ok {
			return rooted.NewError(ErrCollision, "restore", memtree.JoinPath(path, e.Name), "the commit also has %q: rename one of them", memtree.JoinPath(path, other))
		}
		seen[low] = e.Name
		if e.Dir != nil {
			if err := checkCase(e.Dir, memtree.JoinPath(path, e.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

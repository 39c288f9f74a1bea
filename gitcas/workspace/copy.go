package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
)

// CopyTo puts the files of a commit into another folder, which is empty, with the line ends and
// encodings that Restore gives them: it takes unchanged files from the workspace, and the
// others from the remote. Ignored files are not part of the commit, and are not copied;
// a submodule is an empty folder, and links that lead out are left out. The workspace stays as it is.
func (w *Workspace) CopyTo(ctx context.Context, commit wire.ID, to string) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.treeOf(ctx, commit)
	if err != nil {
		return fmt.Errorf("copy %s: %w", commit, err)
	}
	from, err := os.OpenRoot(w.path)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	root, err := os.OpenRoot(to)
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	_, out, err := w.linksOf(ctx, "copy", commit, tree)
	if err != nil {
		return err
	}
	c := copier{
		w: w, rd: reader{ctx: ctx, op: "copy", maxFiles: w.most.files, maxDepth: 2 * memtree.MaxDepth},
		from: rooted.Cursor{Root: from, Op: "copy"}, to: rooted.Cursor{Root: root, Op: "copy"}, load: w.openLoader(), out: out,
	}
	err = c.copyTree(commit, tree)
	return errors.Join(err, c.from.CloseAll(), c.to.CloseAll())
}

// ReadFile reads a file of a commit, of at most limit bytes, as git stores it: from the workspace
// if it is unchanged there, otherwise from the remote. Nil: the commit has no such file, or it
// is larger.
func (w *Workspace) ReadFile(ctx context.Context, commit wire.ID, path string, limit int64) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.treeOf(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", path, commit, err)
	}
	folder, name := rooted.SplitPath(path)
	in := tree
	for _, part := range strings.FieldsFunc(folder, func(r rune) bool { return r == '/' }) {
		in = in.FindFolder(part)
	}
	e := in.FindEntry(name).AsFile()
	if e == nil || !memtree.IsFile(e.Mode) {
		return nil, nil
	}
	if w.path != "" {
		if data, here, err := w.readHere(ctx, commit, tree, path, e.ID, limit); here || err != nil {
			return data, err
		}
	}
	blobs, err := w.openLoader().fetchBlobs(ctx, "read", commit, map[wire.ID]bool{e.ID: true})
	if err != nil || int64(len(blobs[e.ID].Data)) > limit {
		return nil, err
	}
	return append([]byte{}, blobs[e.ID].Data...), nil
}

// readHere reads a file of the folder, if it is the one of that id in a commit. Nil: it is larger
// than limit.
func (w *Workspace) readHere(ctx context.Context, commit wire.ID, tree *memtree.Dir, path string, id wire.ID, limit int64) (data []byte, here bool, err error) {
	root, err := os.OpenRoot(w.path)
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	at := rooted.Cursor{Root: root, Op: "read"}
	rd := reader{ctx: ctx, op: "read", maxFiles: w.most.files, maxDepth: memtree.MaxDepth}
	found, ferr := rd.readPath(&at, path, sizes{hash: w.most.file, keep: limit})
	data = append([]byte{}, found.data...)
	if err := at.CloseAll(); err != nil {
		return nil, false, err
	}

	switch {
	case ferr != nil || found.id != id && (found.size > limit || !memtree.IsFile(found.mode)):
		return nil, false, nil
	case found.id != id:
		return w.convertHere(&at, &rd, commit, tree, path, data, id)
	case found.size > limit:
		return nil, true, nil
	}
	return data, true, nil
}

// convertHere returns the blob of that id, if a file of the folder becomes it by the attributes
// of a commit.
func (w *Workspace) convertHere(at *rooted.Cursor, rd *reader, commit wire.ID, tree *memtree.Dir, path string, file []byte, id wire.ID) (data []byte, here bool, err error) {
	above := func(at string, e *memtree.Entry) bool {
		folder, _ := rooted.SplitPath(at)
		return isAttributes(e) && (folder == "" || strings.HasPrefix(path, folder+"/"))
	}
	f, err := readForms(at, rd, w.most, w.openLoader(), commit, tree, above)
	if err != nil {
		return nil, false, err
	}
	return f.isStored(path, file, id)
}

// copier copies a tree from one folder to another, and notes what is not there as it is to be.
type copier struct {
	w        *Workspace
	rd       reader
	load     *loader
	forms    *forms
	from, to rooted.Cursor
	out      map[string]string // links that are not made
	later    []write
}

func (c *copier) copyTree(commit wire.ID, tree *memtree.Dir) (err error) {
	wanted := func(_ string, e *memtree.Entry) bool { return isAttributes(e) }
	if c.forms, err = readForms(&c.from, &c.rd, c.w.most, c.load, commit, tree, wanted); err != nil {
		return err
	}
	for path, e := range tree.AllFiles() {
		if err := c.copyFile(path, e); err != nil {
			return err
		}
	}
	return inBatches(len(c.later), func(from, to int) (int64, error) {
		return c.forms.fetchAndPut(&c.to, c.load, commit, c.later[from:to], c.w.step)
	})
}

func (c *copier) copyFile(path string, e *memtree.Entry) error {
	if e.Mode == filemode.Submodule {
		_, err := c.to.OpenDir(path, true)
		return err
	}
	if _, out := c.out[path]; out {
		return nil
	}
	blob, here, err := c.readHere(path, e)
	if err != nil {
		return err
	}
	x := write{path, e}
	if !here {
		c.later = append(c.later, x)
		return nil
	}
	return c.forms.putBlob(&c.to, x, blob, c.w.step)
}

// readHere reads a blob from the workspace. Whatever is wrong with the file there, the remote
// has it.
func (c *copier) readHere(path string, e *memtree.Entry) (blob []byte, here bool, err error) {
	found, err := c.rd.readPath(&c.from, path, sizes{hash: c.w.most.file, keep: c.w.most.file})
	switch {
	case c.rd.ctx.Err() != nil:
		return nil, false, c.rd.ctx.Err()
	case err != nil || found.size > c.w.most.file:
		return nil, false, nil //nolint:nilerr // the remote has it
	case found.id == e.ID:
		return found.data, true, nil
	case memtree.IsFile(found.mode) && memtree.IsFile(e.Mode):
		return c.forms.isStored(path, found.data, e.ID)
	}
	return nil, false, nil
}

// ExtraPaths are what is in the folder besides a commit's files: the topmost ones, by their
// path. Right after Restore they are what .gitignore ignores, and what is in the folders of
// submodules. A .git is none of them.
func (w *Workspace) ExtraPaths(ctx context.Context, commit wire.ID) (extra []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.treeOf(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("list what is besides %s: %w", commit, err)
	}
	root, err := os.OpenRoot(w.path)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	rd := reader{ctx: ctx, op: "list", maxFiles: w.most.files, maxDepth: 2 * memtree.MaxDepth}
	err = rd.listExtra(place{r: root, tree: tree}, &extra)
	return extra, errors.Join(err, root.Close())
}

func (rd *reader) listExtra(p place, extra *[]string) error {
	found, err := rd.listFolder(p.r, p.path)
	if err != nil {
		return err
	}
	for _, d := range found {
		e := p.tree.FindEntry(d.name)
		switch sub := e.AsFolder(); {
		case d.name == gitDir:
		case e == nil:
			*extra = append(*extra, memtree.JoinPath(p.path, d.name))
		case e.Mode == filemode.Submodule && d.info.IsDir(): // nothing of it is the commit's
			err = rd.visitFolder(p, pair{name: d.name, disk: &d}, &memtree.Dir{}, false, func(in place) error { return rd.listExtra(in, extra) })
		case sub != nil && d.info.IsDir():
			err = rd.visitFolder(p, pair{name: d.name, disk: &d}, sub, false, func(in place) error { return rd.listExtra(in, extra) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ListFiles lists the regular files of a commit by their paths, sorted.
func (w *Workspace) ListFiles(ctx context.Context, commit wire.ID) ([]string, error) {
	return w.listThat(ctx, commit, memtree.IsRegular, func(path string, _ *memtree.Entry) string { return path })
}

// FilesNamed lists the files of a commit that have one of the names, each as its path and the
// id of its content, sorted.
func (w *Workspace) FilesNamed(ctx context.Context, commit wire.ID, names []string) ([]string, error) {
	named := func(e *memtree.Entry) bool { return slices.Contains(names, e.Name) }
	return w.listThat(ctx, commit, named, func(path string, e *memtree.Entry) string { return path + " " + e.ID.String() })
}

// listThat lists the matching files of a commit in the given form, sorted.
func (w *Workspace) listThat(ctx context.Context, commit wire.ID, match func(*memtree.Entry) bool, form func(string, *memtree.Entry) string) (found []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tree, err := w.treeOf(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", commit, err)
	}
	for path, e := range tree.FilesThat(match) {
		found = append(found, form(path, e))
	}
	slices.Sort(found)
	return found, nil
}

package workspace

import (
	"context"
	"fmt"
	"maps"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
)

// RebuildSnapshot makes a snapshot again of which only the tree and the new objects are
// left, and which anybody may have written; but for its commit, see AddCommit. The tree is
// compared with the first parent's, and may hold no more than Workspace.TakeSnapshot would
// have taken: nothing but new objects and what that parent has, at paths and with links
// that it allows. Objects that the tree doesn't need are left out. What else is wrong with
// it is ErrDamaged, ErrLimit, ErrLink, or ErrFilter.
func RebuildSnapshot(ctx context.Context, remote wire.Remote, parents []wire.ID, tree wire.ID, objects wire.Objects) (Snapshot, error) {
	return rebuildSnapshot(ctx, remote, parents, rebuilder{objects: objects, out: Snapshot{Tree: tree}})
}

// RebuildStaged is RebuildSnapshot for a tree that a person's git made: its files have been
// through their filters.
func RebuildStaged(ctx context.Context, remote wire.Remote, parents []wire.ID, tree wire.ID, objects wire.Objects) (Snapshot, error) {
	return rebuildSnapshot(ctx, remote, parents, rebuilder{objects: objects, out: Snapshot{Tree: tree}, filtered: true})
}

func rebuildSnapshot(ctx context.Context, remote wire.Remote, parents []wire.ID, b rebuilder) (Snapshot, error) {
	tree := b.out.Tree
	b.made = memtree.Objects{Had: map[wire.ID]bool{}}
	if err := b.checkTree(ctx, remote, parents); err != nil {
		return Snapshot{}, fmt.Errorf("rebuild a snapshot of tree %s: %w", tree, err)
	}
	b.out.Objects = b.made.List
	b.out.sortChanges()
	return b.out, nil
}

// rebuilder compares two trees of which the second may be a stranger's.
type rebuilder struct {
	objects wire.Objects    // the new ones
	made    memtree.Objects // those of them that are needed
	had     map[wire.ID]bool
	total   int64
	texts   bool // links or .gitignore files differ
	// filtered: git has put the files through their filters.
	filtered bool
	out      Snapshot
}

func newRefusal(path, format string, args ...any) error {
	return rooted.NewError(ErrDamaged, "rebuild", path, format, args...)
}

// checkTree compares the tree with the first parent's.
func (b *rebuilder) checkTree(ctx context.Context, remote wire.Remote, parents []wire.ID) (err error) {
	l, base := newLoader(remote, wire.Objects{}, DefaultMaxFiles), memtree.EmptyDir()
	if len(parents) > 0 {
		if base, err = l.fetchTree(ctx, parents[0], blobNone); err != nil {
			return err
		}
	}
	b.had = base.ListContents()
	// Nothing is fetched: what the remote has beside the base is not the tree's to name.
	l.remote = nil
	maps.Copy(l.objects, b.objects)
	made, err := l.readTree(ctx, b.out.Tree)
	if err != nil {
		return err
	}
	if !memtree.SameDir(base, made) {
		b.noteNeeded(made.ID)
	}
	for range made.FilesThat(isAttributes) {
		b.texts = true
	}
	if err = memtree.CompareTrees("", base, made, b.compareEntries); err == nil && b.texts {
		l.remote = remote
		err = b.checkTexts(ctx, l, base, made)
	}
	return err
}

// checkTexts makes sure that a folder can be made equal to the tree: a link of the parent's may
// lead out by another place, or through a link that is new or gone.
func (b *rebuilder) checkTexts(ctx context.Context, l *loader, base, made *memtree.Dir) error {
	var missing []wire.ID
	texts := map[wire.ID]string{}
	for _, tree := range []*memtree.Dir{base, made} {
		for _, e := range tree.FilesThat(isText) {
			if _, known := texts[e.ID]; !known {
				texts[e.ID] = ""
				if _, there := l.objects[e.ID]; !there {
					missing = append(missing, e.ID)
				}
			}
		}
	}
	if len(missing) > 0 {
		if err := l.fetchObjects(ctx, 0, "", missing...); err != nil {
			return err
		}
	}
	for id := range texts {
		texts[id] = string(l.objects[id].Data)
	}
	if err := checkIgnoreFiles("rebuild", made, texts); err != nil {
		return err
	}
	if !b.filtered {
		if err := b.checkFilters(ctx, made, texts); err != nil {
			return err
		}
	}
	old, err := linksOut(ctx, base, texts)
	if err != nil {
		return err
	}
	out, err := linksOut(ctx, made, texts)
	if err != nil {
		return err
	}
	return refuseLinks("rebuild", "it points to %q: take it out of the branch", out, old)
}

// checkFilters refuses new contents that git would put through a filter first.
func (b *rebuilder) checkFilters(ctx context.Context, made *memtree.Dir, texts map[wire.ID]string) error {
	most := limits{file: DefaultMaxFile, ignoreSteps: ignore.DefaultSteps}
	f, err := newForms(&reader{ctx: ctx, op: "rebuild"}, most, made, texts)
	if err != nil {
		return err
	}
	for _, c := range b.out.Changes {
		o, isNew := b.objects[c.Blob]
		if !isNew || !memtree.IsFile(c.Mode) {
			continue
		}
		form, err := f.formOf(c.Path)
		if err == nil {
			err = checkFilter("rebuild", c.Path, form, o.Data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareEntries notes how an entry differs, if it may.
func (b *rebuilder) compareEntries(path string, was, is *memtree.Entry) error {
	if is != nil && is.Dir != nil {
		b.noteNeeded(is.ID)
	}
	c, differs := newChange(path, was, is)
	if !differs {
		return nil
	}
	b.texts = b.texts || was != nil && isText(was) || is != nil && isText(is)
	if c.Kind != Deleted {
		if err := b.checkFile(&c); err != nil {
			return err
		}
	}
	b.out.Changes = append(b.out.Changes, c)
	return nil
}

// checkFile checks where a new file is and what it has in it.
func (b *rebuilder) checkFile(c *Change) error {
	if c.Mode == filemode.Submodule {
		return newRefusal(c.Path, "a submodule that the parent doesn't have")
	}
	if err := CheckPath(c.Path, c.Mode); err != nil {
		return newRefusal(c.Path, "%w", err)
	}
	o, isNew := b.objects[c.Blob]
	switch {
	case !isNew && !b.had[c.Blob]:
		return newRefusal(c.Path, "its content %s is neither new nor in the parent", c.Blob)
	case !isNew:
		return nil
	case o.Type != plumbing.BlobObject:
		return newRefusal(c.Path, "its content is a %s", o.Type)
	}
	c.Size = int64(len(o.Data))
	if b.noteNeeded(o.ID) {
		b.total += c.Size
	}
	if c.Size > DefaultMaxFile || b.total > DefaultMaxTotal {
		return rooted.NewError(ErrLimit, "rebuild", c.Path, "with it there are %d bytes of new files", b.total)
	}
	if c.Mode == filemode.Symlink {
		if err := CheckLink(c.Path, string(o.Data)); err != nil {
			return newRefusal(c.Path, "%w", err)
		}
	}
	return nil
}

// noteNeeded notes that a new object is needed, and reports whether that is news.
func (b *rebuilder) noteNeeded(id wire.ID) bool {
	o, isNew := b.objects[id]
	if !isNew || b.made.Had[id] {
		return false
	}
	b.made.AddObject(o, nil)
	return true
}

package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
)

// SnapshotRequest says what commit to make.
type SnapshotRequest struct {
	// Parents of the commit. The folder is compared with the first one's tree:
	// its submodules are kept, and its files are tracked even where .gitignore
	// would ignore them. Without parents a root commit is made.
	Parents []wire.ID
	// Message of the commit, verbatim.
	Message string
	// When is the commit's time.
	When time.Time
	// Without are the paths of files that are left as the first parent has them,
	// whatever is in the folder.
	Without []string
}

// Kind of a change.
type Kind string

// The kinds of changes. A new mode or type of a file is a modification.
const (
	Added    Kind = "added"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
)

// Change is one file that differs from the first parent.
type Change struct {
	Path string // slashes, relative to the workspace
	Kind Kind
	// Blob is the new content; for a deleted file, the old one. A symlink's
	// content is its target.
	Blob wire.ID
	// Old is the content in the first parent; zero for an added file.
	Old wire.ID
	// OldData is that content, if the last Restore fetched it with a small commit; else nil.
	OldData []byte
	OldMode filemode.FileMode // in the first parent; 0 for an added file
	Mode    filemode.FileMode // of the new content; 0 for a deleted file
	Size    int64             // bytes of the new content; 0 for a deleted file
}

// newChange is how a file differs in two versions of a tree; ok is false where neither has
// a file there.
func newChange(path string, was, is *memtree.Entry) (c Change, ok bool) {
	c.Path, c.Kind = path, Modified
	was, is = was.AsFile(), is.AsFile()
	if was != nil {
		c.Old, c.OldMode, c.Blob = was.ID, was.Mode, was.ID
	} else {
		c.Kind = Added
	}
	if is != nil {
		c.Blob, c.Mode, c.Size = is.ID, is.Mode, is.Size
	} else {
		c.Kind = Deleted
	}
	return c, was != nil || is != nil
}

// Skipped is something in the folder with which a snapshot did not do what was to be expected:
// it was left out though nothing ignores it, or not converted.
type Skipped struct {
	Path string
	Why  string
}

// Snapshot is a commit that was made of the folder. It is not on the remote: push
// Objects with a ref that points to Commit.
type Snapshot struct {
	Commit wire.ID // the first parent when Unchanged
	Tree   wire.ID
	// Objects are the new blobs and trees and the commit.
	Objects []wire.PackObject
	// Changes are sorted by path.
	Changes []Change
	// Skipped are sorted by path: a hundred at most.
	Skipped []Skipped
	// MoreSkipped is how many more were left out.
	MoreSkipped int
	// Raw are changed files that could not be converted as their attributes ask: they are in the
	// commit as they lie in the folder. A hundred at most are listed.
	Raw []Skipped
	// Unchanged: the folder equals its parent (or is empty and has none) and
	// no commit was made.
	Unchanged bool
}

// sortChanges sorts them by path. A tree has its names in another order than a list of paths.
func (s *Snapshot) sortChanges() {
	slices.SortFunc(s.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
}

// TakeSnapshot makes a commit of what is in the folder: regular files with their
// executable bit and symlinks that stay inside, but for what .gitignore files
// ignore. Line ends and encodings become those that git stores, as the folder's .gitattributes
// files say, with two exceptions: a file whose bytes are the first parent's is unchanged, and
// CRLF stays where the first parent's file has it. Folders named .git are never looked into; files of a repository inside
// the workspace are taken like others. Special files, links that lead out, names
// that git refuses and names with control characters are left out and listed in
// Skipped.
//
// A file, or all new content together, over the limits is ErrLimit and names the
// file; a commit with too many files is, too, and names their folder.
func (w *Workspace) TakeSnapshot(ctx context.Context, req SnapshotRequest) (Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	base := memtree.EmptyDir()
	if len(req.Parents) > 0 {
		t, err := w.treeOf(ctx, req.Parents[0])
		if err != nil {
			return Snapshot{}, fmt.Errorf("snapshot %q: read the parent: %w", w.path, err)
		}
		base = t
	}
	s, tree, err := w.scanAgainst(ctx, base, req)
	if err != nil {
		return Snapshot{}, err
	}
	out := Snapshot{Tree: tree.ID, Objects: s.made.List, Skipped: s.skipped, MoreSkipped: s.more, Raw: s.raw}
	err = memtree.CompareTrees("", base, tree, func(path string, was, is *memtree.Entry) error {
		if c, ok := newChange(path, was, is); ok {
			if o, there := w.fetched[c.Old]; there {
				c.OldData = append([]byte{}, o.Data...)
			}
			out.Changes = append(out.Changes, c)
		}
		return ctx.Err()
	})
	out.sortChanges()
	switch {
	case err != nil:
	case len(out.Changes) > 0 || len(req.Parents) > 1:
		err = out.AddCommit(req)
	default:
		out.Unchanged, out.Tree, out.Objects = true, base.ID, nil
		if len(req.Parents) == 1 {
			out.Commit = req.Parents[0]
		}
	}
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot %q: %w", w.path, err)
	}
	w.seen, w.recalled = tree, false
	if tree.ID == out.Tree && !out.Commit.IsZero() { // a parent with empty folders, which no folder shows, keeps its own
		w.rememberTree(knownTree{out.Commit, tree, s.targets, s.stay})
	}
	return out, nil
}

// AddCommit gives a snapshot its commit: the same request gives the same one.
func (s *Snapshot) AddCommit(req SnapshotRequest) error {
	who := gitobj.Signature{Name: "uwf", Email: "uwf@localhost", When: req.When}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: s.Tree, Parents: req.Parents, Author: who, Committer: who, Message: req.Message})
	if err != nil {
		return err
	}
	o := wire.NewObject(plumbing.CommitObject, data)
	s.Commit, s.Objects = o.ID, append(s.Objects, wire.PackObject{Object: o})
	return nil
}

// scanAgainst compares the folder with a tree.
func (w *Workspace) scanAgainst(ctx context.Context, base *memtree.Dir, req SnapshotRequest) (*scanner, *memtree.Dir, error) {
	root, err := os.OpenRoot(w.path)
	if err != nil {
		return nil, nil, fmt.Errorf("snapshot: %w", err)
	}
	s, tree, err := w.scanOnce(ctx, root, base, req, make(map[wire.ID]bool))
	for err == nil && len(s.unread) > 0 {
		if err = s.readUnread(); err == nil {
			s, tree, err = w.scanOnce(ctx, root, base, req, s.crlf)
		}
	}
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(s.skipped, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	return s, tree, nil
}

// scanOnce scans the folder, given what is known of the base's blobs.
func (w *Workspace) scanOnce(ctx context.Context, root *os.Root, base *memtree.Dir, req SnapshotRequest, crlf map[wire.ID]bool) (*scanner, *memtree.Dir, error) {
	s := &scanner{
		most: w.most, own: w.own, base: base, without: make(map[string]bool, len(req.Without)),
		crlf: crlf, unread: make(map[wire.ID]bool),
		rd:   reader{ctx: ctx, op: "snapshot", maxFiles: w.most.files, maxDepth: memtree.MaxDepth},
		made: memtree.Objects{Had: make(map[wire.ID]bool)},
	}
	s.fetch = func(ids map[wire.ID]bool) (wire.Objects, error) {
		return w.openLoader().fetchBlobs(ctx, s.rd.op, req.Parents[0], ids)
	}
	for _, path := range req.Without {
		s.without[path] = true
	}
	targets, out, err := w.linksOf(ctx, s.rd.op, append(req.Parents, wire.ZeroID)[0], base)
	if err != nil {
		return nil, nil, err
	}
	s.targets, s.out = maps.Clone(targets), out
	tree, err := s.scanTop(root, w.seen)
	if err == nil {
		err = s.noteInside(root, w.inside)
	}
	return s, tree, err
}

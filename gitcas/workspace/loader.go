package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
)

const blobNone = "blob:none"

// loader reads trees: from objects at hand, and what is still missing from the remote.
type loader struct {
	remote   wire.Remote
	objects  wire.Objects
	dirs     map[wire.ID]*memtree.Dir // trees read before; nil: something below is missing
	maxFiles int
	missing  []wire.ID // trees to fetch, found by one pass of buildDir
	maxBytes int64     // of the next answers; 0: as many as the wire reads
}

// newLoader reads from a remote, nil for none, besides the objects at hand, which it keeps.
func newLoader(remote wire.Remote, objects wire.Objects, maxFiles int) *loader {
	return &loader{remote: remote, objects: objects, dirs: make(map[wire.ID]*memtree.Dir), maxFiles: maxFiles}
}

// fetchObjects fetches objects: of depth 1 are commits without their history, of depth 0
// trees and blobs.
func (l *loader) fetchObjects(ctx context.Context, depth int, filter string, wants ...wire.ID) error {
	if l.remote == nil {
		return rooted.NewError(ErrDamaged, "read", wants[0].String(), "it is not among the objects at hand, and there is no remote to fetch it from")
	}
	objs, err := l.remote.Fetch(ctx, wire.FetchRequest{Wants: wants, Depth: depth, Filter: filter, MaxBytes: l.maxBytes})
	if err != nil {
		return err
	}
	maps.Copy(l.objects, objs)
	for _, id := range wants {
		if _, ok := l.objects[id]; !ok {
			return rooted.NewError(ErrDamaged, "read", id.String(), "the remote sent no such object")
		}
	}
	return nil
}

// fetchTree fetches a commit and reads its tree. From servers that give no single tree it
// fetches the commit with all that is in it.
func (l *loader) fetchTree(ctx context.Context, commit wire.ID, filter string) (*memtree.Dir, error) {
	if err := l.fetchObjects(ctx, 1, filter, commit); err != nil {
		return nil, err
	}
	t, err := l.readCommit(ctx, commit)
	if errors.Is(err, wire.ErrNotFound) {
		if err := l.fetchObjects(ctx, 1, "", commit); err != nil {
			return nil, err
		}
		t, err = l.readCommit(ctx, commit)
	}
	return t, err
}

// fetchBlobs gets blobs of a commit: those at hand, and the others from the remote.
func (l *loader) fetchBlobs(ctx context.Context, op string, commit wire.ID, ids map[wire.ID]bool) (wire.Objects, error) {
	out := make(wire.Objects, len(ids))
	wants := slices.DeleteFunc(slices.Collect(maps.Keys(ids)), func(id wire.ID) bool {
		_, there := l.objects[id]
		return there
	})
	if len(wants) > 0 {
		err := newLoader(l.remote, out, 0).fetchObjects(ctx, 0, blobNone, wants...)
		if errors.Is(err, wire.ErrNotFound) {
			// A server that gives commits only. It all stays at hand: such a server is asked once.
			err = l.fetchObjects(ctx, 1, "", commit)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: fetch %d blobs of %s: %w", op, len(wants), commit, err)
		}
	}
	for id := range ids {
		if _, ok := out[id]; !ok {
			out[id] = l.objects[id]
		}
		if out[id].Type != plumbing.BlobObject {
			return nil, rooted.NewError(ErrDamaged, op, id.String(), "the remote sent no such blob")
		}
	}
	return out, nil
}

const (
	// maxBatch is how many blobs are asked for at once: as many as fit a request that every
	// server takes.
	maxBatch = 4000
	// firstBatch is how many are asked for when nothing is known of their sizes.
	firstBatch = 500
	// batchBytes is how many of their bytes memory should hold.
	batchBytes = 8 << 20
)

// inBatches has n things fetched part by part, see wire.Batches.
func inBatches(n int, fetch func(from, to int) (int64, error)) error {
	return wire.Batches{First: firstBatch, Most: maxBatch, Bytes: batchBytes}.Fetch(n, fetch, func(int, int) error { return nil })
}

// readCommit reads the tree of a commit at hand.
func (l *loader) readCommit(ctx context.Context, commit wire.ID) (*memtree.Dir, error) {
	o := l.objects[commit]
	if o.Type != plumbing.CommitObject {
		return nil, rooted.NewError(ErrDamaged, "read", commit.String(), "a %s, and a commit was expected", o.Type)
	}
	c, err := gitobj.DecodeCommit(o.Data)
	if err != nil {
		return nil, rooted.NewError(ErrDamaged, "read", commit.String(), "%w", err)
	}
	return l.readTree(ctx, c.Tree)
}

// readTree reads a tree with all trees below it. It fetches those that are missing, one
// level of missing ones at a time.
func (l *loader) readTree(ctx context.Context, id wire.ID) (*memtree.Dir, error) {
	for {
		l.missing = nil
		maps.DeleteFunc(l.dirs, func(_ wire.ID, d *memtree.Dir) bool { return d == nil })
		d, err := l.buildDir(id, 0)
		if err != nil || len(l.missing) == 0 {
			return d, err
		}
		if err := l.fetchObjects(ctx, 0, blobNone, l.missing...); err != nil {
			return nil, err
		}
	}
}

// buildDir makes the dir of a tree. When a tree is not at hand it is noted as
// missing, and the result is nil.
func (l *loader) buildDir(id wire.ID, depth int) (*memtree.Dir, error) {
	if d, known := l.dirs[id]; known {
		return d, nil
	}
	if id == wire.EmptyTree {
		return memtree.EmptyDir(), nil
	}
	if depth > memtree.MaxDepth {
		return nil, rooted.NewError(ErrLimit, "read", id.String(), "more than %d levels of folders", memtree.MaxDepth)
	}
	o, ok := l.objects[id]
	if !ok {
		l.missing = append(l.missing, id)
		l.dirs[id] = nil
		return nil, nil
	}
	list, err := l.decodeTree(o)
	if err != nil {
		return nil, err
	}
	d := &memtree.Dir{ID: id, Entries: make([]memtree.Entry, len(list))}
	whole := true
	for i, e := range list {
		d.Entries[i] = memtree.Entry{Name: e.Name, Mode: e.Mode, ID: e.ID}
		if !e.IsDir() {
			continue
		}
		if d.Entries[i].Dir, err = l.buildDir(e.ID, depth+1); err != nil {
			return nil, err
		}
		whole = whole && d.Entries[i].Dir != nil
	}
	if !whole {
		l.dirs[id] = nil
		return nil, nil
	}
	// Git's order puts "a.b" before the folder "a"; look-ups go by name.
	slices.SortFunc(d.Entries, func(a, b memtree.Entry) int { return strings.Compare(a.Name, b.Name) })
	d.MeasureTree()
	l.dirs[id] = d
	return d, d.CheckSize("read", id.String(), l.maxFiles)
}

func (l *loader) decodeTree(o wire.Object) ([]gitobj.Entry, error) {
	if o.Type != plumbing.TreeObject {
		return nil, rooted.NewError(ErrDamaged, "read", o.ID.String(), "a %s, and a tree was expected", o.Type)
	}
	// An entry has 28 bytes and more: no memory for trees that are too large
	// anyway.
	const long = 300
	if len(o.Data)/long > l.maxFiles {
		return nil, rooted.NewError(ErrLimit, "read", o.ID.String(), "more than %d files", l.maxFiles)
	}
	list, err := gitobj.DecodeTree(o.Data)
	if err != nil {
		return nil, rooted.NewError(ErrDamaged, "read", o.ID.String(), "%w", err)
	}
	return list, nil
}

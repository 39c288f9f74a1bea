package workspace

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/removal"
)

// applyChanges changes the folder as was noted.
func (r *restorer) applyChanges() error {
	to, err := ownerOf(r.root)
	if err != nil {
		return ioError(r.rd.op, ".", err)
	}
	cur := &cursor{root: r.root, op: r.rd.op, owner: to}
	err = r.applyRemovals(cur)
	if err == nil {
		err = r.applyWrites(cur)
	}
	if err == nil {
		err = r.applyChmods(cur)
	}
	if err = errors.Join(err, cur.closeAll()); err != nil || len(r.writes)+len(r.chmods) == 0 {
		return err
	}
	// Nothing but the restore works in the folder, so a change can only come after this moment.
	clock, _, err := fsClock(r.root)
	if err != nil {
		return ioError(r.rd.op, ".", err)
	}
	for _, x := range slices.Concat(r.writes, r.chmods) {
		x.e.stamp = x.e.stamp.ifSettled(clock)
	}
	return nil
}

func (r *restorer) applyRemovals(cur *cursor) error {
	for _, m := range r.removals {
		if err := r.w.step("remove", m.path); err != nil {
			return err
		}
		err := r.applyRemoval(cur, m)
		// What is gone is gone, and a folder that isn't empty got something
		// since it was looked at.
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

func (r *restorer) applyRemoval(cur *cursor, m doomed) error {
	parent, name := splitPath(m.path)
	in, err := cur.openDir(parent, false)
	if err != nil {
		return err
	}
	remove := in.Remove
	if m.whole {
		remove = func(name string) error { return removal.In(r.rd.ctx, in, name, 0) }
	}
	err = remove(name)
	if errors.Is(err, fs.ErrPermission) {
		// Package managers write-protect the folders of their caches.
		if err = in.Chmod(".", 0o755); err == nil {
			err = remove(name)
		}
	}
	if err != nil {
		return ioError(r.rd.op, m.path, err)
	}
	return nil
}

// applyWrites fetches and writes, one batch after the other.
func (r *restorer) applyWrites(cur *cursor) error {
	return inBatches(len(r.writes), func(from, to int) error {
		return cur.putBlobs(r.rd.ctx, r.load, r.commit, r.forms, r.writes[from:to], r.w.step)
	})
}

// putBlobs fetches blobs of a commit and writes them in the form that they have in a folder.
func (c *cursor) putBlobs(ctx context.Context, load *loader, commit wire.ID, f *forms, writes []write, step func(op, path string) error) error {
	ids := make(map[wire.ID]bool, len(writes))
	for _, x := range writes {
		ids[x.e.id] = true
	}
	blobs, err := load.fetchBlobs(ctx, c.op, commit, ids)
	if err != nil {
		return err
	}
	for _, x := range writes {
		if err := ctx.Err(); err != nil {
			return err
		}
		if x.e.stamp, err = c.putBlob(x, blobs[x.e.id].Data, f, step); err != nil {
			return err
		}
	}
	return nil
}

// putBlob writes a blob in the form that it has in a folder.
func (c *cursor) putBlob(x write, blob []byte, f *forms, step func(op, path string) error) (stamp, error) {
	file, err := f.toFolder(x.path, x.e.mode, blob)
	if err != nil {
		return stamp{}, err
	}
	return c.putFile(x.path, x.e.mode, file, step)
}

func (r *restorer) applyChmods(cur *cursor) error {
	for _, x := range r.chmods {
		if err := r.w.step("chmod", x.path); err != nil {
			return err
		}
		if err := cur.changeMode(x); err != nil {
			return err
		}
	}
	return nil
}

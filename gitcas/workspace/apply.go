package workspace

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/removal"
)

// batch is how many blobs are asked for at once: as many as fit a request that
// every server takes, as few as memory should hold.
const batch = 4000

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
	size := batch
	for todo := r.writes; len(todo) > 0; {
		now := todo[:min(size, len(todo))]
		ids := make(map[wire.ID]bool, len(now))
		for _, x := range now {
			ids[x.e.id] = true
		}
		blobs, err := r.load.fetchBlobs(r.rd.ctx, r.rd.op, r.commit, ids)
		if errors.Is(err, wire.ErrUnreadable) && len(now) > 1 {
			// They may be too large together.
			size = len(now) / 2
			continue
		}
		if err != nil {
			return err
		}
		todo = todo[len(now):]
		for _, x := range now {
			if err := r.rd.ctx.Err(); err != nil {
				return err
			}
			if x.e.stamp, err = cur.putFile(x.path, x.e.mode, blobs[x.e.id].Data, r.w.step); err != nil {
				return err
			}
		}
	}
	return nil
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

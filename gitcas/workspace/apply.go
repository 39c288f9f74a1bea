package workspace

import (
	"errors"
	"io/fs"
	"slices"

	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
	"github.com/united-workforce/uwf/internal/removal"
)

// applyChanges changes the folder as was noted.
func (r *restorer) applyChanges() error {
	to, err := rooted.OwnerOf(r.root)
	if err != nil {
		return rooted.IOError(r.rd.op, ".", err)
	}
	cur := &rooted.Cursor{Root: r.root, Op: r.rd.op, Owner: to}
	err = r.applyRemovals(cur)
	if err == nil {
		err = r.applyWrites(cur)
	}
	if err == nil {
		err = r.applyChmods(cur)
	}
	if err = errors.Join(err, cur.CloseAll()); err != nil || len(r.writes)+len(r.chmods) == 0 {
		return err
	}
	// Nothing but the restore works in the folder, so a change can only come after this moment.
	clock, _, err := stamps.Clock(r.root, clockFile)
	if err != nil {
		return rooted.IOError(r.rd.op, ".", err)
	}
	for _, x := range slices.Concat(r.writes, r.chmods) {
		x.e.Stamp = x.e.Stamp.IfSettled(clock)
	}
	return nil
}

func (r *restorer) applyRemovals(cur *rooted.Cursor) error {
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

func (r *restorer) applyRemoval(cur *rooted.Cursor, m doomed) error {
	parent, name := rooted.SplitPath(m.path)
	in, err := cur.OpenDir(parent, false)
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
		return rooted.IOError(r.rd.op, m.path, err)
	}
	return nil
}

// applyWrites fetches and writes, one batch after the other.
func (r *restorer) applyWrites(cur *rooted.Cursor) error {
	return inBatches(len(r.writes), func(from, to int) (int64, error) {
		return r.forms.fetchAndPut(cur, r.load, r.commit, r.writes[from:to], r.w.step)
	})
}

func (r *restorer) applyChmods(cur *rooted.Cursor) error {
	for _, x := range r.chmods {
		if err := r.w.step("chmod", x.path); err != nil {
			return err
		}
		stamp, err := cur.ChangeMode(x.path, x.e.Mode)
		if err != nil {
			return err
		}
		x.e.Stamp = stamp
	}
	return nil
}

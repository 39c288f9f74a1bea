package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/internal/removal"
)

// batch is how many blobs are asked for at once: as many as fit a request that
// every server takes, as few as memory should hold.
const batch = 4000

// text is a blob that is read before anything is compared.
type text struct {
	path string
	e    *entry
}

// readTexts gets the commit's .gitignore files and symlinks: from what was
// fetched, from the folder, and the others from the remote in one request.
func (r *restorer) readTexts(target *dir) error {
	var missing []text
	cur := cursor{root: r.root, op: r.rd.op}
	var walk func(d *dir, path string) error
	walk = func(d *dir, path string) error {
		for i := range d.entries {
			e := &d.entries[i]
			at := joinPath(path, e.name)
			switch {
			case e.dir != nil:
				if err := walk(e.dir, at); err != nil {
					return err
				}
			case e.mode == filemode.Symlink || e.name == gitignore && isFile(e.mode):
				if !r.textAtHand(&cur, at, e) {
					missing = append(missing, text{at, e})
				}
			}
		}
		return nil
	}
	err := walk(target, "")
	if err = errors.Join(err, cur.closeAll()); err != nil {
		return err
	}
	if len(missing) > 0 {
		if err := r.fetchTexts(missing); err != nil {
			return err
		}
	}
	return r.checkTexts(target, "")
}

// textAtHand looks for a text without asking the remote.
func (r *restorer) textAtHand(cur *cursor, path string, e *entry) bool {
	if _, ok := r.texts[e.id]; ok {
		return true
	}
	if o, ok := r.load.objects[e.id]; ok {
		r.texts[e.id] = o.Data
		return true
	}
	if o, ok := r.w.kept[e.id]; ok {
		r.texts[e.id] = o.Data
		return true
	}
	// Whatever is wrong with the folder shows when it is compared.
	in, err := cur.openDir(strings.Join(folderOf(path), "/"), false)
	if err != nil {
		return false
	}
	info, err := in.Lstat(e.name)
	if err != nil {
		return false
	}
	var data []byte
	switch {
	case e.mode == filemode.Symlink && info.Mode()&fs.ModeSymlink != 0:
		t, err := in.Readlink(e.name)
		if err != nil {
			return false
		}
		data = []byte(t)
	case isFile(e.mode) && info.Mode().IsRegular():
		if data, err = r.rd.readIgnore(in, path, info); err != nil {
			return false
		}
	default:
		return false
	}
	if blobID(data) != e.id {
		return false
	}
	r.texts[e.id] = data
	return true
}

func (r *restorer) fetchTexts(missing []text) error {
	ids := make(map[wire.ID]bool)
	for _, m := range missing {
		ids[m.e.id] = true
	}
	objs, err := r.fetchBlobs(ids)
	if err != nil {
		return err
	}
	for id, o := range objs {
		r.texts[id] = o.Data
	}
	return nil
}

// checkTexts refuses .gitignore files and link targets that are too large.
func (r *restorer) checkTexts(d *dir, path string) error {
	for i := range d.entries {
		e := &d.entries[i]
		at := joinPath(path, e.name)
		if e.dir != nil {
			if err := r.checkTexts(e.dir, at); err != nil {
				return err
			}
			continue
		}
		size := len(r.texts[e.id])
		if e.mode == filemode.Symlink && size > maxTarget || e.name == gitignore && size > ignore.MaxFile {
			return &Error{Op: r.rd.op, Path: at, Kind: ErrLimit, Detail: fmt.Sprintf("%d bytes are too many for a symlink or a .gitignore", size)}
		}
	}
	return nil
}

// checkLinks refuses a commit with a symlink that leads out.
func (r *restorer) checkLinks(top *dir) error {
	read := func(e *entry) (string, bool) {
		t, ok := r.texts[e.id]
		return string(t), ok
	}
	var walk func(d *dir, path string) error
	walk = func(d *dir, path string) error {
		for i := range d.entries {
			e := &d.entries[i]
			at := joinPath(path, e.name)
			if e.dir != nil {
				if err := walk(e.dir, at); err != nil {
					return err
				}
				continue
			}
			if e.mode != filemode.Symlink {
				continue
			}
			if target, _ := read(e); !linkInside(top, folderOf(at), target, read) {
				return &Error{Op: r.rd.op, Path: at, Kind: ErrLink, Detail: fmt.Sprintf("it points to %q: take it out of the branch", clipText(target))}
			}
		}
		return nil
	}
	return walk(top, "")
}

// fetchBlobs gets blobs: those at hand, and the others from the remote.
func (r *restorer) fetchBlobs(ids map[wire.ID]bool) (wire.Objects, error) {
	out := make(wire.Objects, len(ids))
	var wants []wire.ID
	for id := range ids {
		if o, ok := r.load.objects[id]; ok {
			out[id] = o
		} else if o, ok := r.w.kept[id]; ok {
			out[id] = o
		} else {
			wants = append(wants, id)
		}
	}
	if len(wants) > 0 {
		objs, err := r.fetchWanted(wants)
		if err != nil {
			return nil, fmt.Errorf("restore into %q: fetch %d blobs: %w", r.w.path, len(wants), err)
		}
		for _, id := range wants {
			out[id] = objs[id]
		}
	}
	for id, o := range out {
		if o.ID != id || o.Type != plumbing.BlobObject {
			return nil, &Error{Op: r.rd.op, Path: id.String(), Kind: ErrDamaged, Detail: "the remote sent no such blob"}
		}
	}
	return out, nil
}

func (r *restorer) fetchWanted(ids []wire.ID) (wire.Objects, error) {
	l := newLoader(r.w.remote, nil, 0)
	err := l.fetchObjects(r.rd.ctx, ids, 0, blobNone, nil)
	if errors.Is(err, wire.ErrNotFound) {
		// It all stays at hand: such a server is asked once.
		err = r.load.fetchWhole(r.rd.ctx, r.commit)
		return r.load.objects, err
	}
	return l.objects, err
}

// applyChanges changes the folder as was noted.
func (r *restorer) applyChanges() error {
	cur := &cursor{root: r.root, op: r.rd.op}
	to, err := ownerOf(r.root)
	if err != nil {
		return ioError(r.rd.op, ".", err)
	}
	cur.owner = to
	err = r.applyRemovals(cur)
	if err == nil {
		err = r.applyWrites(cur)
	}
	if err == nil {
		err = r.applyChmods(cur)
	}
	return errors.Join(err, cur.closeAll())
}

func (r *restorer) applyRemovals(cur *cursor) error {
	for _, m := range r.removals {
		if err := r.w.callHook("remove", m.path); err != nil {
			return err
		}
		err := r.applyRemoval(cur, m)
		// What is gone is gone, and a folder that isn't empty got something
		// since it was looked at.
		if errors.Is(err, fs.ErrNotExist) || m.how == removeIfEmpty && errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
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
	if m.how == removeAll {
		remove = func(name string) error { return removal.In(r.rd.ctx, in, name, 0) }
	}
	err = remove(name)
	if errors.Is(err, fs.ErrPermission) {
		// Package managers write-protect the folders of their caches.
		if err := in.Chmod(".", 0o755); err != nil {
			return ioError(r.rd.op, m.path, err)
		}
		err = remove(name)
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
		blobs, err := r.fetchBlobs(ids)
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
			o := blobs[x.e.id]
			if err := r.writeFile(cur, x, o.Data); err != nil {
				return err
			}
			if isFile(x.e.mode) {
				r.w.keepBlob(o)
			}
		}
	}
	return r.settleStamps(r.writes)
}

// settleStamps takes the stamps that are certain by now. Nothing but the restore works
// in the folder, so a change can only come after this moment.
func (r *restorer) settleStamps(done []write) error {
	if len(done) == 0 {
		return nil
	}
	clock, _, err := fsClock(r.root)
	if err != nil {
		return ioError(r.rd.op, ".", err)
	}
	for _, x := range done {
		x.e.stamp = x.e.stamp.ifSettled(clock)
	}
	return nil
}

func (r *restorer) applyChmods(cur *cursor) error {
	for _, x := range r.chmods {
		if err := r.w.callHook("chmod", x.path); err != nil {
			return err
		}
		parent, name := splitPath(x.path)
		in, err := cur.openDir(parent, false)
		if err != nil {
			return err
		}
		if err := chmodFile(in, name, x); err != nil {
			return ioError(r.rd.op, x.path, err)
		}
	}
	return r.settleStamps(r.chmods)
}

// chmodFile gives a file the executable bits where it is readable, or takes them.
func chmodFile(in *os.Root, name string, x write) (err error) {
	info, err := in.Lstat(name)
	if err != nil {
		return err
	}
	f, info, err := openFile(in, "restore", x.path, name, info)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	mode := info.Mode().Perm() &^ 0o111
	if x.e.mode == filemode.Executable {
		mode |= 0o100 | mode&0o044>>2
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if info, err = f.Stat(); err != nil {
		return err
	}
	x.e.stamp = statOf(info).stamp
	return nil
}

// writeFile puts a file or link in its place: beside it first, then renamed over
// what is there, so that a hard link or a link there is never written through.
func (r *restorer) writeFile(cur *cursor, x write, data []byte) error {
	parent, name := splitPath(x.path)
	in, err := cur.openDir(parent, true)
	if err != nil {
		return err
	}
	if err := r.w.callHook("write", x.path); err != nil {
		return err
	}
	temp, err := makeTemp(in, x.e.mode, data, cur.owner)
	if err != nil {
		return ioError(r.rd.op, x.path, err)
	}
	if err := r.w.callHook("rename", x.path); err != nil {
		return err
	}
	if err := in.Rename(temp, name); err != nil {
		return ioError(r.rd.op, x.path, errors.Join(err, in.Remove(temp)))
	}
	info, err := in.Lstat(name)
	if err != nil {
		return ioError(r.rd.op, x.path, err)
	}
	// Renaming changed the file's ctime: only now its stamp is final.
	if x.e.stamp = (stamp{}); info.Mode().IsRegular() {
		x.e.stamp = statOf(info).stamp
	}
	return nil
}

// makeTemp makes a file or link under a name that nothing has.
func makeTemp(in *os.Root, mode filemode.FileMode, data []byte, to *owner) (string, error) {
	for n := range math.MaxInt32 {
		name := fmt.Sprintf("%s%d", TempPrefix, n)
		var err error
		if mode == filemode.Symlink {
			err = in.Symlink(string(data), name)
		} else {
			err = writeNew(in, name, mode, data, to)
		}
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
	return "", fs.ErrExist
}

func writeNew(in *os.Root, name string, mode filemode.FileMode, data []byte, to *owner) error {
	perm := fs.FileMode(0o644)
	if mode == filemode.Executable {
		perm = 0o755
	}
	f, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if to != nil {
		err = errors.Join(err, f.Chown(to.uid, to.gid))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, in.Remove(name))
	}
	return nil
}

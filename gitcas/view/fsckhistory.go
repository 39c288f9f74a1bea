package view

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/tree"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// checkHistory walks all commits.
func (f *fsck) checkHistory() error {
	err := historyReader{f.v}.walkHistory(f.ctx, f.v.Commit, func(h *historyCommit) error {
		f.Commits++
		where := "commit " + h.id.String()
		if len(h.commit.Parents) > 1 {
			f.addProblem(where, "it is a merge: the state branch has one line of history")
		}
		if h.parent == nil {
			return nil
		}
		if err := f.checkVersion(where, h.parent.root.IDOf(layout.VersionName), h.root.IDOf(layout.VersionName)); err != nil {
			return err
		}
		return f.checkCommit(where, h)
	})
	return f.NoteError(f.v.Source.Branch, err)
}

// checkVersion checks that VERSION stays, but for how many refs a push may update.
func (f *fsck) checkVersion(where string, before, after wire.ID) error {
	if before == after {
		return nil
	}
	if before.IsZero() || after.IsZero() {
		f.addProblem(where, "it changes VERSION")
		return nil
	}
	var rest [2][]byte
	for i, id := range []wire.ID{before, after} {
		o, err := f.v.Reader.Read(f.ctx, layout.VersionName, id, plumbing.BlobObject, statefile.MaxVersionFile)
		if err != nil {
			return f.NoteError(where, err)
		}
		if _, err = statefile.ParseVersion(o.Data); err == nil {
			rest[i], err = statefile.SetVersionRefs(o.Data, 1)
		}
		if err != nil {
			f.addProblem(where, "%s: %v", layout.VersionName, err)
			return nil
		}
	}
	if !bytes.Equal(rest[0], rest[1]) {
		f.addProblem(where, "it changes VERSION")
	}
	return nil
}

// checkCommit compares a commit with the one before it.
func (f *fsck) checkCommit(where string, h *historyCommit) error {
	old, cur := h.parent, h
	if err := f.checkNodesKept(where, layout.CasDir, old.root.IDOf(layout.CasDir), cur.root.IDOf(layout.CasDir), nil); err != nil {
		return err
	}
	if err := f.checkAppended(where, old.root.IDOf(layout.HistoryDir), cur.root.IDOf(layout.HistoryDir)); err != nil {
		return err
	}
	for _, e := range old.threadDirs.Entries() {
		id := layout.ThreadID(e.Name)
		now := cur.threadDirs.IDOf(e.Name)
		if now == e.ID {
			continue
		}
		if !now.IsZero() {
			moved, err := f.movedFiles(e.ID, now)
			if err == nil {
				err = f.checkNodesKept(where, layout.ThreadPath(id), e.ID, now, moved)
			}
			if err := f.NoteError(where, err); err != nil {
				return err
			}
			continue
		}
		if err := f.checkRemovedThread(where, id, old.id); err != nil {
			return err
		}
	}
	return nil
}

// checkRemovedThread checks a thread that a commit removed.
func (f *fsck) checkRemovedThread(where string, id layout.ThreadID, last wire.ID) error {
	lines := f.ended[id]
	i := slices.IndexFunc(lines, func(e statefile.Ended) bool { return e.Commit == last.String() })
	switch {
	case i < 0 && f.partly:
		return nil
	case i < 0:
		f.addProblem(where, "it removes thread %s, and no history line names commit %s for it", id, last)
		return nil
	}
	past, err := f.v.LoadEnded(f.ctx, lines[i])
	if err != nil {
		return f.NoteError(where, err)
	}
	return f.checkThread(past, id, nil)
}

// movedFiles are the files of the older steps that a commit moved out of a thread's folder, and the
// folders of their details, by their names.
func (f *fsck) movedFiles(before, after wire.ID) (map[string]wire.ID, error) {
	was, err := f.olderOf(before)
	if err != nil {
		return nil, err
	}
	now, err := f.olderOf(after)
	if err != nil {
		return nil, err
	}
	out := map[string]wire.ID{}
	for _, e := range now.Entries() {
		if was.IDOf(e.Name) == e.ID {
			continue
		}
		d, err := f.v.Reader.Below(f.ctx, now, e.Name)
		if err != nil {
			return nil, err
		}
		details, err := f.v.Reader.Below(f.ctx, d, layout.DetailDir)
		if err != nil {
			return nil, err
		}
		for _, e := range append(d.Entries(), details.Entries()...) {
			out[e.Name] = e.ID
		}
	}
	return out, nil
}

// olderOf is the folder with the older steps in a thread's folder; nil: it has none.
func (f *fsck) olderOf(id wire.ID) (*tree.Dir, error) {
	d, err := f.v.Reader.ReadDir(f.ctx, layout.ThreadsDir, layout.ThreadFolder, id)
	if err != nil {
		return nil, err
	}
	return f.v.Reader.Below(f.ctx, d, layout.OlderDir)
}

// checkNodesKept checks that a folder keeps all its nodes as they were, also those
// below it, but for those that were moved.
func (f *fsck) checkNodesKept(where, path string, before, after wire.ID, moved map[string]wire.ID) error {
	if before == after || before.IsZero() {
		return nil
	}
	if after.IsZero() {
		f.addProblem(where, "it removes %s", path)
		return nil
	}
	objs, err := historyReader{f.v}.fetchTrees(f.ctx, []wire.ID{before, after})
	if err != nil {
		return f.NoteError(where, err)
	}
	entries := make([][]gitobj.Entry, 2)
	for i, id := range []wire.ID{before, after} {
		if objs[id].Type != plumbing.TreeObject {
			f.addProblem(where, "%s is no folder", path)
			return nil
		}
		if entries[i], err = gitobj.DecodeTree(objs[id].Data); err != nil {
			f.addProblem(where, "%s: %v", path, err)
			return nil
		}
	}
	now := make(map[string]gitobj.Entry, len(entries[1]))
	for _, e := range entries[1] {
		now[e.Name] = e
	}
	for _, e := range entries[0] {
		n, there := now[e.Name]
		_, _, isNode := layout.ParseNodeFile(e.Name)
		switch {
		case !there && moved[e.Name] == e.ID:
		case e.IsDir():
			if err := f.checkNodesKept(where, path+"/"+e.Name, e.ID, n.ID, moved); err != nil {
				return err
			}
		case isNode && !there:
			f.addProblem(where, "it removes %s/%s", path, e.Name)
		case isNode && n.ID != e.ID:
			f.addProblem(where, "it rewrites %s/%s", path, e.Name)
		}
	}
	return nil
}

// checkAppended checks that the history files only grew.
func (f *fsck) checkAppended(where string, before, after wire.ID) error {
	if before == after || before.IsZero() {
		return nil
	}
	days := map[string]wire.ID{}
	for i, id := range []wire.ID{before, after} {
		v := *f.v
		v.Reader = f.v.Reader.Apart()
		v.HistoryDir = nil
		if !id.IsZero() {
			d, err := v.Reader.ReadDir(f.ctx, layout.HistoryDir, layout.HistoryFolder, id)
			if err != nil {
				return f.NoteError(where, err)
			}
			v.HistoryDir = d
		}
		list, err := historyFiles{&v}.listDays(f.ctx, time.Time{})
		if err != nil {
			return f.NoteError(where, err)
		}
		if i == 0 {
			for _, d := range list {
				days[d.path] = d.id
			}
			continue
		}
		if err := f.checkGrown(where, &v, days, list); err != nil {
			return err
		}
	}
	return nil
}

func (f *fsck) checkGrown(where string, v *View, before map[string]wire.ID, after []day) error {
	for _, d := range after {
		old, there := before[d.path]
		delete(before, d.path)
		if !there || old == d.id {
			continue
		}
		o, err := v.Reader.Read(f.ctx, d.path, old, plumbing.BlobObject, tree.MaxTree)
		if err != nil {
			return f.NoteError(where, err)
		}
		n, err := v.Reader.Read(f.ctx, d.path, d.id, plumbing.BlobObject, tree.MaxTree)
		if err != nil {
			return f.NoteError(where, err)
		}
		if len(n.Data) < len(o.Data) || string(n.Data[:len(o.Data)]) != string(o.Data) {
			f.addProblem(where, "it rewrites %s", d.path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		f.addProblem(where, "it removes %s", path)
	}
	return nil
}

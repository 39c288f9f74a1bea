package workspace

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
)

// KeepStamps writes what this Workspace knows of the folder's files to a file, for RecallStamps
// of another process. The file must lie where agents can't write.
func (w *Workspace) KeepStamps(file string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil || w.recalled {
		return nil
	}
	known := make([]stamps.File, 0, w.seen.Files)
	for path, e := range w.seen.AllFiles() {
		if e.Stamp.IsKnown() {
			known = append(known, stamps.File{Path: path, Git: uint32(e.Mode), ID: e.ID, Stamp: e.Stamp})
		}
	}
	return stamps.Keep(file, w.path, known)
}

// RecallStamps spares the next Restore or TakeSnapshot the reading of files that still look as
// the process left them that wrote the file. If the file can't be used, all files are read.
func (w *Workspace) RecallStamps(file string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, err := stamps.Read(file, w.path)
	if err != nil {
		return err
	}
	w.seen, w.recalled = treeOfStamps(known), true
	return nil
}

// treeOfStamps puts files into folders. Of hostile paths it makes entries that nothing on a disk
// is compared with.
func treeOfStamps(files []stamps.File) *memtree.Dir {
	top := &memtree.Dir{}
	folders := map[string]*memtree.Dir{"": top}
	for _, f := range files {
		folder, name := rooted.SplitPath(f.Path)
		in := folderOf(folders, folder)
		in.Entries = append(in.Entries, memtree.Entry{Name: name, Mode: filemode.FileMode(f.Git), ID: f.ID, Size: f.Stamp.Size, Stamp: f.Stamp})
	}
	for path, d := range folders {
		if path == "" {
			continue
		}
		above, name := rooted.SplitPath(path)
		in := folders[above]
		in.Entries = append(in.Entries, memtree.Entry{Name: name, Mode: filemode.Dir, Dir: d})
	}
	for _, d := range folders {
		slices.SortFunc(d.Entries, func(a, b memtree.Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	return top
}

// folderOf returns the folder at a path, which it makes with those above it.
func folderOf(folders map[string]*memtree.Dir, path string) *memtree.Dir {
	d := folders[path]
	if d == nil {
		d = &memtree.Dir{}
		folders[path] = d
		above, _ := rooted.SplitPath(path)
		folderOf(folders, above)
	}
	return d
}

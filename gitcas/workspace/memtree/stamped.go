package memtree

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/workspace/rooted"
	"github.com/united-workforce/uwf/gitcas/workspace/stamps"
)

// StampedFolders returns the files that have stamps, by their folders.
func (d *Dir) StampedFolders() []stamps.Folder { return d.addStamped(nil, "") }

// addStamped adds a folder, and those below it, if they have such files.
func (d *Dir) addStamped(to []stamps.Folder, path string) []stamps.Folder {
	f := stamps.Folder{Path: path}
	for i := range d.Entries {
		if e := &d.Entries[i]; e.Dir == nil && e.Stamp.IsKnown() {
			f.Files = append(f.Files, stamps.File{Name: e.Name, Git: uint32(e.Mode), ID: e.ID, Stamp: e.Stamp})
		}
	}
	if len(f.Files) > 0 {
		to = append(to, f)
	}
	for i := range d.Entries {
		if e := &d.Entries[i]; e.Dir != nil {
			to = e.Dir.addStamped(to, JoinPath(path, e.Name))
		}
	}
	return to
}

// OfStamps puts files into folders. Of hostile paths it makes entries that nothing on a disk
// is compared with.
func OfStamps(known []stamps.Folder) *Dir {
	top := &Dir{}
	folders := map[string]*Dir{"": top}
	for _, f := range known {
		in := folderOf(folders, f.Path)
		in.Entries = slices.Grow(in.Entries, len(f.Files))
		for _, x := range f.Files {
			in.Entries = append(in.Entries, Entry{Name: x.Name, Mode: filemode.FileMode(x.Git), ID: x.ID, Size: x.Stamp.Size, Stamp: x.Stamp})
		}
	}
	for path, d := range folders {
		if path == "" {
			continue
		}
		above, name := rooted.SplitPath(path)
		in := folders[above]
		in.Entries = append(in.Entries, Entry{Name: name, Mode: filemode.Dir, Dir: d})
	}
	byName := func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }
	for _, d := range folders {
		if !slices.IsSortedFunc(d.Entries, byName) {
			slices.SortFunc(d.Entries, byName)
		}
	}
	return top
}

// folderOf returns the folder at a path, which it makes with those above it.
func folderOf(folders map[string]*Dir, path string) *Dir {
	d := folders[path]
	if d == nil {
		d = &Dir{}
		folders[path] = d
		above, _ := rooted.SplitPath(path)
		folderOf(folders, above)
	}
	return d
}

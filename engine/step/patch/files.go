package patch

import (
	"fmt"
	"maps"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Files are the files that a snapshot changed, with their contents as far as they can be
// had; the error says why not all could. read fetches those that are not among the objects
// of the snapshot.
func Files(objects []wire.PackObject, changes []workspace.Change, read func([]wire.ID) (map[wire.ID][]byte, error)) ([]File, error) {
	data := make(map[wire.ID][]byte, len(objects))
	for _, o := range objects {
		data[o.ID] = o.Data
	}
	var missing []wire.ID
	for _, c := range changes[:min(len(changes), MaxFiles)] {
		if c.OldMode == filemode.Submodule {
			data[c.Old] = fmt.Appendf(nil, "Subproject commit %s\n", c.Old) // as git shows it
		}
		if c.Size > MaxText || IsBinary(data[newBlob(c)]) {
			continue // the old version would change nothing
		}
		for _, id := range []wire.ID{c.Old, newBlob(c)} {
			if _, ok := data[id]; !ok && !id.IsZero() {
				data[id] = nil
				missing = append(missing, id)
			}
		}
	}
	got, err := read(missing)
	maps.Copy(data, got)
	files := make([]File, len(changes))
	for i, c := range changes {
		now := newBlob(c)
		files[i] = File{
			Path: c.Path,
			Old:  Side{ID: c.Old, Mode: c.OldMode, Data: data[c.Old]},
			New:  Side{ID: now, Mode: c.Mode, Data: data[now]},
		}
	}
	return files, err
}

// newBlob is the new content of a file; zero where it was deleted.
func newBlob(c workspace.Change) wire.ID {
	if c.Kind == workspace.Deleted {
		return wire.ZeroID
	}
	return c.Blob
}

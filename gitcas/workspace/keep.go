package workspace

import (
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
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
	return stamps.Keep(file, w.path, w.seen.StampedFolders())
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
	w.seen, w.recalled = memtree.OfStamps(known), true
	return nil
}

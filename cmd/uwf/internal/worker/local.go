package worker

import (
	"path/filepath"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// WorkRoot is the folder below the storage root with the working folders of threads:
// each is named by its thread.
func WorkRoot(root string) string { return filepath.Join(root, "work") }

// WorkDir is a thread's working folder.
func WorkDir(root string, id gitcas.ThreadID) string {
	return filepath.Join(WorkRoot(root), string(id))
}

// UnpushedRoot is the folder below the storage root with the sealed steps that are not
// pushed yet.
func UnpushedRoot(root string) string { return filepath.Join(root, "pending") }

// CacheRoot is the folder below the storage root with what the files of working
// folders hash to.
func CacheRoot(root string) string { return filepath.Join(root, "cache") }

// CacheFile is the file for one working folder.
func CacheFile(root, dir string) string {
	return filepath.Join(CacheRoot(root), wire.NewObject(0, []byte(dir)).ID.String()[:16]+".stat")
}

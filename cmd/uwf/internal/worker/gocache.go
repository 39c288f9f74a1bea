package worker

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/internal/copytree"
)

// maxGoCache is how much of Go's cache is copied for an agent, in bytes.
const maxGoCache = 1 << 30

// fillHome fills the HOME of a confined agent: with what was prepared, or, in a folder with a
// Go module on a person's machine, with a copy of what Go used last of its cache, so that the agent
// does not begin with the standard library. The agent's additions are thrown away. It works in dir.
func (w *Worker) fillHome(ctx context.Context, home, dir string) error {
	if w.prepared != nil {
		return w.prepared.fillHome(ctx, home, dir)
	}
	if _, err := os.Lstat(filepath.Join(w.folder.dir, "go.mod")); err != nil || w.f.Job != nil {
		return nil //nolint:nilerr // it is no Go module
	}
	cache := cmp.Or(w.f.Getenv("GOCACHE"), filepath.Join(cmp.Or(w.f.Getenv("XDG_CACHE_HOME"), filepath.Join(w.f.Getenv("HOME"), ".cache")), "go-build"))
	real, err := filepath.EvalSymlinks(cache)
	if err != nil || !filepath.IsAbs(cache) {
		return nil //nolint:nilerr // this machine has no cache
	}
	// Other programs may use the cache, or have closed parts of it. Go compiles the missing packages.
	err = copytree.CopyPaths(ctx, real, filepath.Join(home, ".cache", "go-build"), listLastUsed(real, maxGoCache))
	if err != nil {
		return ctx.Err()
	}
	return nil
}

// listLastUsed returns the paths of a folder's files, the last used first, which hold at most so
// many bytes together. Go sets the time of a file that it uses, at most once an hour.
func listLastUsed(dir string, most int64) []string {
	type file struct {
		path string
		fs.FileInfo
	}

	var files []file
	_ = fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // a part that is closed is not copied
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() {
			files = append(files, file{path, info})
		}
		return nil
	})
	slices.SortFunc(files, func(a, b file) int { return b.ModTime().Compare(a.ModTime()) })

	var paths []string
	for _, f := range files {
		most -= f.Size()
		if most < 0 {
			break
		}
		paths = append(paths, f.path)
	}
	return paths
}

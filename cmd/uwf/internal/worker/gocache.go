package worker

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/internal/copytree"
)

// maxGoCache is the largest cache of Go's that is copied for an agent, in bytes.
const maxGoCache = 1 << 30

// fillHome fills the HOME of a confined agent: with what was prepared, or, in a folder with a
// Go module on a person's machine, with a copy of what Go has compiled there, so that the agent
// does not begin with the standard library. What it adds is thrown away. It works in dir.
func (w *Worker) fillHome(ctx context.Context, home, dir string) error {
	if w.prepared != nil {
		return w.prepared.fillHome(ctx, home, dir)
	}
	if _, err := os.Lstat(filepath.Join(w.folder.dir, "go.mod")); err != nil || w.f.Job != nil {
		return nil //nolint:nilerr // it is no Go module
	}
	cache := cmp.Or(w.f.Getenv("GOCACHE"), filepath.Join(cmp.Or(w.f.Getenv("XDG_CACHE_HOME"), filepath.Join(w.f.Getenv("HOME"), ".cache")), "go-build"))
	real, err := filepath.EvalSymlinks(cache)
	if err != nil || !filepath.IsAbs(cache) || !isSmaller(real, maxGoCache) {
		return nil //nolint:nilerr // there is none
	}
	// Others may be at work in it, or have closed some of it: what is missing is compiled anew.
	if err := copytree.Copy(ctx, real, filepath.Join(home, ".cache", "go-build")); err != nil {
		return ctx.Err()
	}
	return nil
}

// isSmaller says whether a folder is there and its files have less than so many bytes.
func isSmaller(dir string, most int64) bool {
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			most -= info.Size()
		}
		if most < 0 {
			return fs.SkipAll
		}
		return nil
	})
	return err == nil && most >= 0
}

package commands

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/united-workforce/uwf/internal/ocastest"
)

// oldHome puts into a home folder what the TypeScript uwf leaves there, and a bundle
// of the same, threads.tar, into another folder.
func oldHome(t *testing.T, home, folder string) {
	t.Helper()
	s, err := ocastest.New()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err = errors.Join(s.Write(dir),
		os.CopyFS(filepath.Join(home, ".ocas"), os.DirFS(filepath.Join(dir, "nodes"))),
		os.CopyFS(filepath.Join(home, ".uwf"), os.DirFS(filepath.Join(dir, "root"))),
		os.Rename(filepath.Join(dir, "bundle.tar"), filepath.Join(folder, "threads.tar")))
	if err != nil {
		t.Fatal(err)
	}
}

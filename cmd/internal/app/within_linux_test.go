package app

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWithinAMount: a folder that is mounted at another place is the same folder.
func TestWithinAMount(t *testing.T) {
	top := t.TempDir()
	dir, twice := filepath.Join(top, "dir"), filepath.Join(top, "twice")
	put(t, filepath.Join(dir, "sub/file"), "")
	put(t, filepath.Join(twice, "file"), "")
	if err := unix.Mount(dir, twice, "", unix.MS_BIND, ""); err != nil {
		t.Skip("NOT TESTED: nothing can be mounted here: ", err)
	}
	defer func() {
		if err := unix.Unmount(twice, 0); err != nil {
			t.Error(err)
		}
	}()
	if !Within(filepath.Join(twice, "sub"), dir) || !Within(filepath.Join(dir, "sub"), twice) || Within(top, twice) {
		t.Error("it is taken for another one")
	}
}

package ocastest_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/united-workforce/uwf/internal/ocastest"
)

// TestUnpack: files and folders alone are taken, and nothing leaves the folder.
func TestUnpack(t *testing.T) {
	for name, tc := range map[string]struct {
		member tar.Header
		ok     bool
	}{
		"a file":     {tar.Header{Name: "./a/b", Typeflag: tar.TypeReg}, true},
		"a folder":   {tar.Header{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o700}, true},
		"above":      {tar.Header{Name: "../b", Typeflag: tar.TypeReg}, false},
		"absolute":   {tar.Header{Name: "/b", Typeflag: tar.TypeReg}, false},
		"a link":     {tar.Header{Name: "b", Linkname: "/dev/zero", Typeflag: tar.TypeSymlink}, false},
		"a hardlink": {tar.Header{Name: "b", Linkname: "/etc/hosts", Typeflag: tar.TypeLink}, false},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "x.tgz")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		z := gzip.NewWriter(f)
		w := tar.NewWriter(z)
		if err := errors.Join(w.WriteHeader(&tc.member), w.Close(), z.Close(), f.Close(), os.Mkdir(filepath.Join(dir, "to"), 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := ocastest.Unpack(file, filepath.Join(dir, "to")); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "b")); err == nil {
			t.Errorf("%s: it left the folder", name)
		}
	}
}

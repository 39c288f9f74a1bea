package copytree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var old = time.Unix(1_700_000_000, 0)

func write(t *testing.T, file, text string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, mode), os.Chtimes(file, old, old)); err != nil {
		t.Fatal(err)
	}
}

// TestCopy: a copy is as what it was made of, and what was there before gives way to it.
func TestCopy(t *testing.T) {
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "a/b/f"), "1", 0o640)
	write(t, filepath.Join(from, "a/x"), "#!", 0o755)
	write(t, filepath.Join(from, "ro/f"), "2", 0o444)
	write(t, filepath.Join(outside, "secret"), "s", 0o600)
	for name, target := range map[string]string{"link": "a/x", "out": outside, "dead": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(from, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(from, "pipe"), 0o600), os.Chmod(filepath.Join(from, "ro"), 0o555)); err != nil {
		t.Fatal(err)
	}
	// What is there is in the way, and some of it leads out.
	write(t, filepath.Join(to, "a/b/f/g"), "in the way", 0o600)
	write(t, filepath.Join(to, "stays"), "3", 0o600)
	if err := os.Symlink(outside, filepath.Join(to, "ro")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Copy(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]struct {
		text string
		mode fs.FileMode
	}{"a/b/f": {"1", 0o640}, "a/x": {"#!", 0o755}, "ro/f": {"2", 0o444}, "stays": {"3", 0o600}} {
		b, err := os.ReadFile(filepath.Join(to, name))
		info, serr := os.Lstat(filepath.Join(to, name))
		if err = errors.Join(err, serr); err != nil || string(b) != want.text || info.Mode().Perm() != want.mode || name != "stays" && !info.ModTime().Equal(old) {
			t.Errorf("%s: %q %v %v", name, b, info, err)
		}
	}
	for name, want := range map[string]string{"link": "a/x", "out": outside, "dead": "nowhere"} {
		if got, err := os.Readlink(filepath.Join(to, name)); got != want {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(to, "pipe")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("pipe: %v", err)
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) != 1 {
		t.Errorf("outside: %v %v", found, err)
	}
	if info, err := os.Lstat(filepath.Join(to, "ro")); err != nil || !info.IsDir() || info.Mode().Perm()&0o055 != 0o055 {
		t.Errorf("ro: %v %v", info, err)
	}
}

// TestCopyPaths: what is named is copied, with the folders around it, and nothing beside it.
func TestCopyPaths(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "a/node_modules/m/f"), "1", 0o600)
	write(t, filepath.Join(from, "a/other"), "2", 0o600)
	write(t, filepath.Join(from, "single"), "3", 0o600)
	write(t, filepath.Join(to, "single/dir/f"), "in the way", 0o600)
	if err := CopyPaths(t.Context(), from, to, []string{"a/node_modules", "single"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a/node_modules/m/f": true, "single": true, "a/other": false} {
		if _, err := os.Stat(filepath.Join(to, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	full, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(full, "f"), "1", 0o600)
	for name, err := range map[string]error{
		"no such folder": Copy(t.Context(), filepath.Join(dir, "none"), t.TempDir()),
		"over":           Copy(over, full, t.TempDir()),
		"onto a file":    Copy(t.Context(), full, filepath.Join(full, "f")),
		"leads out":      CopyPaths(t.Context(), full, dir, []string{"../x"}),
		"no such path":   CopyPaths(t.Context(), full, dir, []string{"none"}),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

package copytree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// TestCopy: a copy is as what it was made of.
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
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(from, "ro"), 0o700) }) //nolint:gosec // else an ordinary user can't remove it
	write(t, filepath.Join(to, "stays"), "3", 0o600)
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

// TestMover: text files and links name the new place, and all else is as it was.
func TestMover(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"bin/pip": "#!/old/bin/python\n/old", "a.pyc": "\x00/old", "lib.so": "\x00/old", "other": "old"} {
		write(t, filepath.Join(from, name), text, 0o755)
	}
	if err := os.Symlink("/old/bin/pip", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	m := Mover{Moves: []Move{{"/old", "/another/place"}}}
	if err := m.CopyFolder(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"bin/pip": "#!/another/place/bin/python\n/another/place", "a.pyc": "\x00/old", "lib.so": "\x00/old", "other": "old"} {
		b, err := os.ReadFile(filepath.Join(to, name))
		info, serr := os.Stat(filepath.Join(to, name))
		if err = errors.Join(err, serr); err != nil || string(b) != want || info.Mode().Perm() != 0o755 || !info.ModTime().Equal(old) {
			t.Errorf("%s: %q %v %v", name, b, info, err)
		}
	}
	if got, err := os.Readlink(filepath.Join(to, "link")); got != "/another/place/bin/pip" {
		t.Errorf("link: %s %v", got, err)
	}
	if slices.Sort(m.Held); strings.Join(m.Held, " ") != "bin/pip link" || m.Binary != 1 {
		t.Errorf("held %q, %d binary", m.Held, m.Binary)
	}
}

// TestCopyPaths: what is named is copied, with the folders around it, and nothing beside it.
func TestCopyPaths(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "a/node_modules/m/f"), "1", 0o600)
	write(t, filepath.Join(from, "a/other"), "2", 0o600)
	write(t, filepath.Join(from, "single"), "3", 0o600)
	if err := CopyPaths(t.Context(), from, to, []string{"a/node_modules", "single"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a/node_modules/m/f": true, "single": true, "a/other": false} {
		if _, err := os.Stat(filepath.Join(to, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCopyAdds: what is there stays as it is, and of a folder that is kept all.
func TestCopyAdds(t *testing.T) {
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range []string{"a/old", "a/new", "kept/new", "kept/sub/new", "sub/kept/new", "link/new", "file/new", "dir", "dead"} {
		write(t, filepath.Join(from, name), "new", 0o600)
	}
	for _, name := range []string{"a/old", "kept/old", "sub/kept/old", "file", "dir/old"} {
		write(t, filepath.Join(to, name), "old", 0o600)
	}
	if err := errors.Join(os.Symlink(outside, filepath.Join(to, "link")), os.Symlink("nowhere", filepath.Join(to, "dead"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(to, "a"), 0o750); err != nil { //nolint:gosec // its mode is looked at
		t.Fatal(err)
	}
	if err := Copy(t.Context(), from, to, "kept", "sub/kept", "no"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(to, "a")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode of a folder that was there: %v %v", info, err)
	}
	for name, want := range map[string]string{
		"a/old": "old", "a/new": "new", "kept/old": "old", "kept/new": "", "kept/sub/new": "", "sub/kept/old": "old", "sub/kept/new": "",
		"link/new": "", "file": "old", "dir/old": "old", "dead": "", "nowhere": "",
	} {
		if b, err := os.ReadFile(filepath.Join(to, name)); string(b) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v, want %q", name, b, err, want)
		}
	}
}

// TestBounds: files that say that they hold more than the disk has, and folders without end, are
// not copied.
func TestBounds(t *testing.T) {
	big, deep := t.TempDir(), t.TempDir()
	root, err := os.OpenRoot(deep)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for _, c := range []struct {
		depth int
		want  error
	}{{maxDepth, nil}, {maxDepth + 1, ErrDepth}} {
		if err := root.MkdirAll(strings.TrimSuffix(strings.Repeat("d/", c.depth), "/"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Copy(t.Context(), deep, t.TempDir()); !errors.Is(err, c.want) {
			t.Errorf("%d deep: %v", c.depth, err)
		}
	}
	write(t, filepath.Join(big, "small"), "123", 0o600)
	write(t, filepath.Join(big, "too"), "123", 0o600)
	if err := copyBetween(t.Context(), big, t.TempDir(), func(c *copier) error {
		c.room = 5
		return c.copyFolder(".")
	}); !errors.Is(err, ErrSize) || strings.Count(err.Error(), ErrSize.Error()) != 1 {
		t.Errorf("6 bytes where 5 are free: %v", err)
	}
	write(t, filepath.Join(big, "a"), "", 0o600)
	if err := os.Truncate(filepath.Join(big, "a"), 7<<40); err != nil {
		t.Skipf("NOT TESTED: this file system has no such files: %v", err)
	}
	if err := Copy(t.Context(), big, t.TempDir()); !errors.Is(err, ErrSize) {
		t.Errorf("7 TiB: %v", err)
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

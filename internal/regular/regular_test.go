package regular

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestReadRefuses: whatever stands where a file should be is an error, and never a wait.
func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "large"), []byte("12345"), 0o600), os.Mkdir(filepath.Join(dir, "folder"), 0o700),
		os.WriteFile(filepath.Join(dir, "file"), []byte("1234"), 0o600), os.Symlink("file", filepath.Join(dir, "inside")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "link")), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, name, says string }{
		{dir, "none", "no such file"},
		{dir, "large", "more than 4 bytes"},
		{dir, "folder", "folder is a folder, not a file"},
		{dir, "fifo", "fifo is a named pipe, not a file"},
		{dir, "link", "escapes"},
		{"/proc/self", "mem", "input/output error"}, // no file of this size reads
		{"/dev", "null", "a device, not a file"},
	} {
		if tt.dir == "/proc/self" && runtime.GOOS != "linux" {
			continue
		}
		root, err := os.OpenRoot(tt.dir)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := Read(root, tt.name, 4); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q, %v, want %q", tt.name, b, err, tt.says)
		}
		if tt.dir == dir {
			if b, err := Read(root, "file", 4); err != nil || string(b) != "1234" {
				t.Errorf("%q, %v", b, err)
			}
		}
		_ = root.Close()
	}
}

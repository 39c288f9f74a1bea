package removal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWhatCantBeRemoved is named, and the rest is removed.
func TestWhatCantBeRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	for i := range 10 {
		at := filepath.Join(dir, "a", fmt.Sprint(i))
		must(t, os.MkdirAll(at, 0o755))
		must(t, os.WriteFile(filepath.Join(at, "f"), nil, 0o600))
	}
	mounted := filepath.Join(dir, "a/5")
	if err := unix.Mount("uwf-test", mounted, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("nothing that even root can't remove can be made here: ", err)
	}
	defer func() { must(t, unix.Unmount(mounted, 0)) }()
	err := Tree(context.Background(), dir, 0)
	if err == nil || !strings.Contains(err.Error(), `"5"`) || len(err.Error()) > 500 {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "a")); len(left) != 1 {
		t.Error(left)
	}
}

package result

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/gitcas/workspace"
)

// A folder that can't be written: it is said, and what could be done is kept.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)); err != nil { // for others, too
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "locked"), 0o555); err != nil {
		t.Fatal(err)
	}
	edits := []workspace.Edit{
		{Path: "a", Mode: filemode.Regular, Data: []byte("a")},
		{Path: "locked/b", Mode: filemode.Regular, Data: []byte("b")},
	}
	var err error
	back := func() {}
	if os.Geteuid() == 0 {
		back = becomeNobody(t)
	}
	_, reached := os.Stat(dir)
	if reached == nil {
		err = changeFolder(dir, nil, edits)
	}
	back()
	if reached != nil {
		t.Skipf("NOT TESTED: nothing is read-only for root, and no other user can reach TMPDIR: %v", reached)
	}
	if err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Error(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "a" {
		t.Errorf("%q, %v", b, err)
	}
}

// becomeNobody has files be used as by another user than root, for whom nothing is read-only,
// until what it returns is called. It counts for this goroutine alone.
func becomeNobody(t *testing.T) (back func()) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setfsuid(0); err != nil {
			t.Error(err)
			return // the thread ends with the test
		}
		runtime.UnlockOSThread()
	}
}

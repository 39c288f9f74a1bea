package testmode

import (
	"os"
	"path/filepath"
	"testing"
)

type tests func() int

func (t tests) Run() int { return t() }

// TestInMemory: the folder is there while tests run and gone after them, and one that
// TMPDIR names is left alone.
func TestInMemory(t *testing.T) {
	mine := t.TempDir()
	t.Setenv("TMPDIR", "")
	var during string
	if code := InMemory(tests(func() int { during = os.Getenv("TMPDIR"); return 3 })).Run(); code != 3 {
		t.Errorf("exit code %d, want that of the tests", code)
	}
	if hasRoom(memoryDir) != (filepath.Dir(during) == memoryDir) {
		t.Errorf("TMPDIR was %q", during)
	}
	if _, err := os.Stat(during); during != "" && !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", during, err)
	}
	t.Setenv("TMPDIR", mine)
	InMemory(tests(func() int { during = os.Getenv("TMPDIR"); return 0 })).Run()
	if during != mine {
		t.Errorf("TMPDIR was %q, not %q", during, mine)
	}
}

// TestRemoveLeft: what a killed run left goes; what a living one has stays.
func TestRemoveLeft(t *testing.T) {
	if !hasRoom(memoryDir) {
		t.Skip("this machine has no place for files in memory: none is used")
	}
	dir := t.TempDir()
	for _, name := range []string{prefix + "4194305-1", prefix + "1-1", "other"} { // the first is more than Linux's highest process
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeLeft(dir)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != "other" || left[1].Name() != prefix+"1-1" {
		t.Errorf("%v are left, %v", left, err)
	}
}

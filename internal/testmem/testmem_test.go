package testmem

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

type tests func() int

func (t tests) Run() int { return t() }

// TestSpend: the folder is there while tests run and gone after them, and one that
// TMPDIR names is left alone.
func TestSpend(t *testing.T) {
	mine := t.TempDir()
	t.Setenv("TMPDIR", "")
	var during string
	if code := Spend(tests(func() int { during = os.Getenv("TMPDIR"); return 3 })).Run(); code != 3 {
		t.Errorf("exit code %d, want that of the tests", code)
	}
	if hasRoom(memoryDir) != (filepath.Dir(during) == memoryDir) {
		t.Errorf("TMPDIR was %q", during)
	}
	if _, err := os.Stat(during); during != "" && !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", during, err)
	}
	t.Setenv("TMPDIR", mine)
	Spend(tests(func() int { during = os.Getenv("TMPDIR"); return 0 })).Run()
	if during != mine {
		t.Errorf("TMPDIR was %q, not %q", during, mine)
	}
}

// TestRemoveLeft: what a killed run left goes; what a living one has stays, and what was made just now.
func TestRemoveLeft(t *testing.T) {
	if !hasRoom(memoryDir) {
		t.Skip("this machine has no place for files in memory: none is used")
	}
	dir := t.TempDir()
	const none = "4194305-" // more than Linux's highest process
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{prefix + none + "1", prefix + none + "2", prefix + "1-1", "other"} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if name == prefix+none+"2" {
			continue
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	removeLeft(dir)
	left, err := os.ReadDir(dir)
	var names []string
	for _, e := range left {
		names = append(names, e.Name())
	}
	if want := []string{"other", prefix + "1-1", prefix + none + "2"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v are left, want %v; %v", names, want, err)
	}
}

package agents

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/united-workforce/uwf/engine/task"
)

// TestLeftovers: the folders of runs that are over, or whose process was killed, are
// found and removed; those of living ones, of others and links are not.
func TestLeftovers(t *testing.T) {
	temp, outside := t.TempDir(), t.TempDir()
	make := func() *folders {
		t.Helper()
		f, err := makeFolders(temp, task.Task{})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	alive, killed, over := make(), make(), make()
	defer func() { _ = alive.closeFiles() }()
	if err := killed.closeFiles(); err != nil { // as the system does it for a killed process
		t.Fatal(err)
	}
	if err := errors.Join(over.closeFiles(), os.Remove(over.context+"/"+promptFile)); err != nil { // it was partly removed
		t.Fatal(err)
	}
	begun := filepath.Join(temp, newPrefix+"begun") // it has no lock yet
	link, file, other := filepath.Join(temp, runPrefix+"1"), filepath.Join(temp, runPrefix+"2"), filepath.Join(temp, "other")
	if err := errors.Join(os.Mkdir(begun, 0o700), os.Symlink(outside, link), os.WriteFile(file, nil, 0o600), os.Mkdir(other, 0o700),
		os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	kept := []string{alive.base, begun, link, file, other, filepath.Join(outside, "kept")}
	if os.Geteuid() == 0 {
		theirs := filepath.Join(temp, runPrefix+"3")
		if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 12345, 12345)); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, theirs)
	}
	s := NewSpawner(Options{Self: []string{"uwf"}, TempDir: temp})
	if err := s.RemoveLeftovers(context.Background()); err != nil {
		t.Error(err)
	}
	for _, path := range kept {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != len(kept)-1 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestLeftoversEnd: an interrupted process leaves the rest to the next one, and so does
// one that finds another at it.
func TestLeftoversEnd(t *testing.T) {
	temp := t.TempDir()
	f, err := makeFolders(temp, task.Task{})
	if err != nil {
		t.Fatal(err)
	}
	first, second := NewSpawner(Options{Self: []string{"uwf"}, TempDir: temp}), NewSpawner(Options{Self: []string{"uwf"}, TempDir: temp})
	first.retireFolders(f)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := first.RemoveLeftovers(ended); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	at, err := os.Open(f.base)
	if err != nil {
		t.Fatal(err)
	}
	if err := lockFolder(at); err != nil {
		t.Fatal(err)
	}
	if err := second.RemoveLeftovers(context.Background()); err != nil {
		t.Errorf("beside another: %v", err)
	}
	if _, err := os.Stat(filepath.Join(f.base, "context")); err != nil {
		t.Error(err)
	}
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	if err := second.RemoveLeftovers(context.Background()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

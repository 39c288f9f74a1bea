package rundir

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// makeRun makes the folder of a run, with something in it.
func makeRun(t *testing.T, temp string) *Folder {
	t.Helper()
	f, err := MakeFolder(temp)
	if err == nil {
		err = errors.Join(os.Mkdir(filepath.Join(f.Path, "home"), 0o500), os.WriteFile(filepath.Join(f.Path, "file"), nil, 0o400))
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestLeftovers: the folders of runs that are over, or whose process was killed, are
// found and removed; those of living ones, of others and links are not.
func TestLeftovers(t *testing.T) {
	temp, outside := t.TempDir(), t.TempDir()
	make := func() *Folder { return makeRun(t, temp) }
	alive, killed, over := make(), make(), make()
	defer func() { _ = alive.EndRun() }()
	if err := killed.EndRun(); err != nil { // as the system does it for a killed process
		t.Fatal(err)
	}
	if err := errors.Join(over.EndRun(), os.Remove(filepath.Join(over.Path, "file"))); err != nil { // it was partly removed
		t.Fatal(err)
	}
	begun := filepath.Join(temp, newPrefix+"begun") // it has no lock yet
	link, file, other := filepath.Join(temp, runPrefix+"1"), filepath.Join(temp, runPrefix+"2"), filepath.Join(temp, "other")
	if err := errors.Join(os.Mkdir(begun, 0o700), os.Symlink(outside, link), os.WriteFile(file, nil, 0o600), os.Mkdir(other, 0o700),
		os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	kept := []string{alive.Path, begun, link, file, other, filepath.Join(outside, "kept")}
	if os.Geteuid() == 0 {
		theirs := filepath.Join(temp, runPrefix+"3")
		if err := errors.Join(os.Mkdir(theirs, 0o700), os.Chown(theirs, 12345, 12345)); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, theirs)
	}
	if err := RemoveLeftovers(context.Background(), temp, over.Path); err != nil {
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
	f := makeRun(t, temp)
	if err := f.EndRun(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := RemoveLeftovers(ended, temp, f.Path); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	at, err := os.Open(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := lockFolder(at); err != nil {
		t.Fatal(err)
	}
	if err := RemoveLeftovers(context.Background(), temp); err != nil {
		t.Errorf("beside another: %v", err)
	}
	if _, err := os.Stat(filepath.Join(f.Path, "file")); err != nil {
		t.Error(err)
	}
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	if err := RemoveLeftovers(context.Background(), temp); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

package clitest

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// A server that this process runs removes refs while another job's refs are read: the
// file is gone once its name was seen, or the folder with it.
func TestReadRefsWhileOthersGo(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", "--bare", "--quiet", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, out)
	}
	id := plumbing.NewHash(strings.Repeat("1", 40))
	if err := writeRef(dir, "refs/heads/main", id); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		for range 500 {
			for _, to := range []plumbing.Hash{id, plumbing.ZeroHash} {
				if err := writeRef(dir, "refs/uwf/claims/X", to); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	for {
		_, refs, err := readRefs(dir)
		if err != nil || refs["refs/heads/main"] != id {
			t.Fatalf("refs %v, %v", refs, err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

// Without its refs a repository is damaged, not empty.
func TestReadRefsOfNoRepository(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/HEAD", []byte("ref: refs/heads/main\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readRefs(dir); err == nil {
		t.Error("a folder without refs was read")
	}
}

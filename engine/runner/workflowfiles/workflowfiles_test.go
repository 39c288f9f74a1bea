package workflowfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/workspace"
)

// Changes of workflow files are found and taken back, whatever the agent made there.
func TestWorkflowFiles(t *testing.T) {
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		paths  string // empty: nothing that matters
		says   string
	}{
		"nothing":    {func(*testing.T, string) {}, "", ""},
		"other file": {func(t *testing.T, dir string) { write(t, dir, "src.go", "x") }, "", ""},
		"an empty folder": {func(t *testing.T, dir string) {
			must(t, os.Mkdir(filepath.Join(dir, folder, "empty"), 0o700))
		}, "", ""},
		"too many": {func(t *testing.T, dir string) {
			for n := range maxFiles + 1 {
				write(t, dir, fmt.Sprintf("%s/%d.yml", folder, n), "x")
			}
		}, "0.yml", "more than 500 files"},
		"too large": {func(t *testing.T, dir string) {
			write(t, dir, folder+"/large.yml", strings.Repeat("x", maxFile+1))
		}, "large.yml", "large.yml has 1048577 bytes"},
		"new":     {func(t *testing.T, dir string) { write(t, dir, folder+"/new.yml", "on: push") }, "new.yml", ""},
		"changed": {func(t *testing.T, dir string) { write(t, dir, folder+"/ci.yml", "changed") }, "ci.yml", ""},
		"removed": {func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, ".github"))) }, "ci.yml", ""},
		"link out": {func(t *testing.T, dir string) {
			must(t, os.Symlink(secret, filepath.Join(dir, folder, "link.yml")))
		}, "link.yml", ""},
		"folder is a link": {func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, ".github")))
			must(t, os.Symlink(outside, filepath.Join(dir, ".github")))
		}, parent, ""},
		"folder is a link inside": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, folder), filepath.Join(dir, "moved")))
			must(t, os.Symlink("../moved", filepath.Join(dir, folder)))
		}, folder, ""},
		"its parent is a link inside": {func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, parent), filepath.Join(dir, "moved")))
			must(t, os.Symlink("moved", filepath.Join(dir, parent)))
		}, parent, ""},
		"its parent is a file": {func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, parent)))
			write(t, dir, parent, "x")
		}, parent, ""},
		"a folder in a file's place": {func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, folder, "ci.yml")))
			must(t, os.Mkdir(filepath.Join(dir, folder, "ci.yml"), 0o700))
		}, "ci.yml", ""},
		"executable": {func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, folder, "ci.yml"), 0o700)) }, "ci.yml", ""},
		"a link's target": {func(t *testing.T, dir string) {
			must(t, os.Remove(filepath.Join(dir, folder, "same.yml")))
			must(t, os.Symlink("other.yml", filepath.Join(dir, folder, "same.yml")))
		}, "same.yml", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, folder+"/ci.yml", "as it was")
			must(t, os.Symlink("ci.yml", filepath.Join(dir, folder, "same.yml")))
			watch, err := Look(dir)
			must(t, err)
			c.change(t, dir)
			err = watch.Check("x")
			if c.paths == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var changed *ChangedError
			if !errors.As(err, &changed) || !strings.Contains(strings.Join(changed.Paths, " "), c.paths) || strings.Contains(err.Error(), "precious") || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("the error is %v", err)
			}
			if b, err := os.ReadFile(secret); err != nil || string(b) != "precious" {
				t.Errorf("a file outside is %q now: %v", b, err)
			}
			if now, err := readFolder(dir); err != nil || !maps.Equal(now, watch.was) {
				t.Errorf("the files are %v now: %v", now, err)
			}
		})
	}
}

// Files that can't be remembered are an error before an agent runs: else its changes of
// them would go unseen, and the push of its work be refused.
func TestLookFails(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string)
		want string
	}{
		"too many": {func(dir string) {
			for n := range maxFiles + 1 {
				write(t, dir, fmt.Sprintf("%s/%d.yml", folder, n), "x")
			}
		}, "more than 500 files"},
		"too large": {func(dir string) { write(t, dir, folder+"/large.yml", strings.Repeat("x", maxFile+1)) }, "large.yml has 1048577 bytes"},
		"no folder": {func(dir string) { must(t, os.RemoveAll(dir)) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.make(dir)
			if _, err := Look(dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "input token") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A working folder that is gone altogether is not made again.
func TestFolderIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	write(t, dir, folder+"/ci.yml", "as it was")
	watch, err := Look(dir)
	must(t, err)
	must(t, os.RemoveAll(dir))
	if err := watch.Check("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there again: %v", err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckChanges: of changes that another job's agent made, those of workflow files are named.
func TestCheckChanges(t *testing.T) {
	err := CheckChanges([]workspace.Change{
		{Path: ".github/CODEOWNERS", Kind: workspace.Modified}, {Path: ".github", Kind: workspace.Deleted}, {Path: "a/.github/workflows/x", Kind: workspace.Added},
	})
	if err != nil {
		t.Error(err)
	}
	var changed *ChangedError
	err = CheckChanges([]workspace.Change{
		{Path: ".github", Kind: workspace.Added}, {Path: ".github/workflows", Kind: workspace.Added}, {Path: ".github/workflows/ci.yml", Kind: workspace.Deleted}, {Path: "x", Kind: workspace.Added},
	})
	if !errors.As(err, &changed) || !slices.Equal(changed.Paths, []string{".github", ".github/workflows", ".github/workflows/ci.yml"}) {
		t.Errorf("%v", err)
	}
}

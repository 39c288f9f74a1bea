package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/internal/wiretest"
)

func textEdit(path, data string, old string) Edit {
	e := Edit{Path: path, Mode: filemode.Regular, Data: []byte(data)}
	if old != "" {
		e.Old = blobID([]byte(old))
	}
	return e
}

// TestApply carries the changes of one folder to another, by Snapshot and Content.
func TestApply(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	one := commitOf(t, m, files{"a": "1", "b/c": "2", "b/d/e": "3", "f": "4", "same": "5", "l": "-> a", "dir/x": "6", "run": "7"})
	here, there := t.TempDir(), t.TempDir()
	w := open(t, here, m)
	restore(t, w, one)
	restore(t, open(t, there, m), one)
	must(t, os.RemoveAll(filepath.Join(here, "b")))
	must(t, os.RemoveAll(filepath.Join(here, "dir")))
	must(t, os.Remove(filepath.Join(here, "l")))
	must(t, os.Rename(filepath.Join(here, "f"), filepath.Join(here, "g")))
	put(t, here, files{"a": "new", "f/deep/er": "8", "dir": "a file now", "b": "-> a", "l": "-> g", "copy": "5"})
	must(t, os.Chmod(filepath.Join(here, "run"), 0o755))
	s := snapshot(t, w, one)
	var edits []Edit
	for _, c := range s.Changes {
		e := Edit{Path: c.Path, Mode: c.Mode, Old: c.Old}
		if c.Kind != Deleted {
			data, err := Content(ctx, here, c)
			must(t, err)
			e.Data = data
		}
		edits = append(edits, e)
	}
	over, err := Overlap(ctx, there, edits)
	must(t, err)
	if len(over) > 0 {
		t.Errorf("overlap: %q", over)
	}
	must(t, Apply(there, edits))
	equal(t, "after", contents(t, there), contents(t, here))
	if info, err := os.Stat(filepath.Join(there, "run")); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Error("run is not executable")
	}
	if n := snapshot(t, open(t, there, m), one); n.Tree != s.Tree {
		t.Errorf("tree %s, want %s", n.Tree, s.Tree)
	}
	// What is there already is no overlap, and can be done again.
	over, err = Overlap(ctx, there, edits)
	if err != nil || len(over) > 0 {
		t.Error(over, err)
	}
	must(t, Apply(there, edits))
	equal(t, "again", contents(t, there), contents(t, here))
}

func TestOverlap(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, files{"kept": "1", "changed": "theirs", "new": "theirs", "same": "ours", "folder/x": "1", "l": "-> kept"})
	got, err := Overlap(ctx, dir, []Edit{
		textEdit("kept", "2", "1"), textEdit("changed", "ours", "1"), textEdit("new", "ours", ""), textEdit("same", "ours", "1"),
		textEdit("gone", "ours", "1"), textEdit("absent/x", "1", ""), textEdit("l", "x", "kept"), textEdit("kept/under", "x", ""),
		{Path: "changed", Old: blobID([]byte("1"))}, {Path: "never", Old: blobID([]byte("1"))},
	})
	must(t, err)
	if want := []string{"changed", "new", "gone", "changed"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestApplyStaysInside: no path, link or folder leads out.
func TestApplyStaysInside(t *testing.T) {
	for _, path := range []string{"", "/etc/x", "../x", "a/../../x", "a//b", "./a", "a/", ".git/config", "a/.GIT/x", "git~1/x", ".git ./x", "a/.git::$INDEX/x", `a\.git\x`, "x\x00y", "x\ny", TempPrefix + "1", strings.Repeat("a/", 300) + "b", strings.Repeat("a", 5000)} {
		if err := Apply(t.TempDir(), []Edit{textEdit(path, "x", "")}); err == nil {
			t.Errorf("path %.60q was taken", path)
		}
	}
	link := func(path, target string) Edit {
		return Edit{Path: path, Mode: filemode.Symlink, Data: []byte(target)}
	}
	for _, e := range []Edit{link("l", "/etc"), link("l", "../x"), link("a/l", "../../x"), link("l", ".git/config"), link("l", ""), link("l", "a/../.GIT"), link(".gitmodules", "x")} {
		if err := Apply(t.TempDir(), []Edit{e}); err == nil {
			t.Errorf("link %s -> %q was made", e.Path, e.Data)
		}
	}
	outside, dir := t.TempDir(), t.TempDir()
	put(t, outside, files{"x": "theirs"})
	must(t, os.Symlink(outside, filepath.Join(dir, "out")))
	must(t, os.Symlink(filepath.Join(outside, "x"), filepath.Join(dir, "file")))
	must(t, os.Link(filepath.Join(outside, "x"), filepath.Join(dir, "hard")))
	for _, e := range []Edit{textEdit("out/x", "ours", ""), textEdit("out/new", "ours", "")} {
		if err := Apply(dir, []Edit{e}); !errors.Is(err, ErrUnstable) {
			t.Errorf("%s: %v", e.Path, err)
		}
	}
	must(t, Apply(dir, []Edit{{Path: "out/x"}, textEdit("file", "ours", ""), textEdit("hard", "ours", "")}))
	equal(t, "outside", contents(t, outside), files{"x": "theirs"})
	if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "ours" {
		t.Error(string(got), err)
	}
}

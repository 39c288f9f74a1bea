package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

func textEdit(path, data string) Edit {
	return Edit{Path: path, Mode: filemode.Regular, Data: []byte(data)}
}

// TestApply puts files of each kind where nothing is, and in the place of what is there.
func TestApply(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, files{"a": "1", "run": "2", "l": "-> a", "d/x": "3", "kept": "4"})
	edits := []Edit{
		textEdit("a", "new"), textEdit("l", "no link"), textEdit("deep/er/f", "5"), textEdit("empty", ""),
		{Path: "run", Mode: filemode.Executable, Data: []byte("2")}, {Path: "d/x", Mode: filemode.Symlink, Data: []byte("../a")},
	}
	for range 2 {
		must(t, Apply(dir, edits))
		equal(t, "after", contents(t, dir), files{"a": "new", "run*": "2", "l": "no link", "d/x": "-> ../a", "kept": "4", "deep/er/f": "5", "empty": ""})
		if info, err := os.Stat(filepath.Join(dir, "run")); err != nil || info.Mode().Perm()&0o111 == 0 {
			t.Errorf("run is not executable: %v", err)
		}
	}
}

// TestApplyStaysInside: no path, link or folder leads out.
func TestApplyStaysInside(t *testing.T) {
	for _, path := range []string{"", "/etc/x", "../x", "a/../../x", "a//b", "./a", "a/", ".git/config", "a/.GIT/x", "git~1/x", ".git ./x", "a/.git::$INDEX/x", `a\.git\x`, "x\x00y", "x\ny", TempPrefix + "1", strings.Repeat("a/", 300) + "b", strings.Repeat("a", 5000)} {
		if err := Apply(t.TempDir(), []Edit{textEdit(path, "x")}); err == nil {
			t.Errorf("path %.60q was taken", path)
		}
	}
	tracked := textEdit("x\ny", "x")
	tracked.Tracked = true
	if err := Apply(t.TempDir(), []Edit{tracked}); err != nil {
		t.Errorf("the name of a file that a commit has: %v", err)
	}
	for _, path := range []string{"x\x00y", ".git /x\n", ".git\n/../x", "a/\u200c.git/x\n"} {
		if err := Apply(t.TempDir(), []Edit{{Path: path, Mode: filemode.Regular, Tracked: true}}); err == nil {
			t.Errorf("path %q was taken", path)
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
	for _, e := range []Edit{textEdit("out/x", "ours"), textEdit("out/new", "ours")} {
		if err := Apply(dir, []Edit{e}); !errors.Is(err, ErrUnstable) {
			t.Errorf("%s: %v", e.Path, err)
		}
	}
	must(t, Apply(dir, []Edit{textEdit("file", "ours"), textEdit("hard", "ours")}))
	equal(t, "outside", contents(t, outside), files{"x": "theirs"})
	if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != "ours" {
		t.Error(string(got), err)
	}
}

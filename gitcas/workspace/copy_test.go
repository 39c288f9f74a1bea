package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// TestCopyTo: a copy has what the commit has, wherever that is found, and nothing else.
func TestCopyTo(t *testing.T) {
	for _, over := range []string{"http", "file", "old"} {
		t.Run(over, func(t *testing.T) {
			r := newRepo(t, over)
			src := t.TempDir()
			put(t, src, someFiles)
			first := r.commit(src)
			dir := t.TempDir()
			w := open(t, dir, r)
			restore(t, w, first)
			put(t, dir, files{"a": "edited", "d/b": "\x00", "d/e/c*": "\x00", "d/e/c": "no program", "new/n": "n", "x.log": "ignored", "out/o": "ignored", ".git/HEAD": "h"})
			snap, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{first}, When: when})
			if err != nil {
				t.Fatal(err)
			}
			want := files{"a": "edited", "d/e/c": "no program", "new/n": "n"}
			for name, data := range someFiles {
				if _, there := want[name]; !there && name != "d/b" && name != "d/e/c*" {
					want[name] = data
				}
			}
			for name, c := range map[string]struct {
				commit wire.ID
				want   files
			}{"snapshot": {snap.Commit, want}, "what it was made of": {first, someFiles}} {
				to := t.TempDir()
				if err := w.CopyTo(ctx, c.commit, to); err != nil {
					t.Fatal(err)
				}
				equal(t, name, contents(t, to), c.want)
			}
			// What the snapshot saw is not there any more, and nowhere else.
			put(t, dir, files{"new/n": "another"})
			if err := w.CopyTo(ctx, snap.Commit, t.TempDir()); err == nil {
				t.Error("a copy of what nobody has")
			}
		})
	}
}

// TestCopyToRefuses: links on the way lead nowhere, and a copy ends with its context.
func TestCopyToRefuses(t *testing.T) {
	r := newRepo(t, "file")
	src := t.TempDir()
	put(t, src, files{"d/f": "1", "g": "2"})
	first := r.commit(src)
	dir := t.TempDir()
	w := open(t, dir, r)
	restore(t, w, first)
	outside := t.TempDir()
	to := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(to, "d")); err != nil {
		t.Fatal(err)
	}
	if err := w.CopyTo(ctx, first, to); !errors.Is(err, ErrUnstable) {
		t.Errorf("through a link: %v", err)
	}
	equal(t, "outside", contents(t, outside), files{})
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.CopyTo(over, first, t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := w.CopyTo(ctx, first, filepath.Join(to, "none")); err == nil {
		t.Error("into a folder that isn't there")
	}
	// A link in the place of a folder of the workspace: the remote has the file.
	put(t, outside, files{"f": "1"})
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "d")), os.Symlink(outside, filepath.Join(dir, "d"))); err != nil {
		t.Fatal(err)
	}
	whole := t.TempDir()
	if err := w.CopyTo(ctx, first, whole); err != nil {
		t.Fatal(err)
	}
	equal(t, "whole", contents(t, whole), files{"d/f": "1", "g": "2"})
}

// TestReadFile: a file of a commit, wherever it is found.
func TestReadFile(t *testing.T) {
	for _, over := range []string{"http", "file", "old"} {
		r := newRepo(t, over)
		src := t.TempDir()
		put(t, src, someFiles)
		first := r.commit(src)
		dir := t.TempDir()
		w := open(t, dir, r)
		restore(t, w, first)
		put(t, dir, files{"a": "edited", "d/b": "\x00", "new": "n"})
		for path, want := range map[string]string{"a": "1", "d/b": "2", "x/z": "4", "empty": "", "new": "none", "d": "none", "d/l": "none", "no/such": "none", "a/b": "none", "d/e/c": "none"} {
			got, err := w.ReadFile(ctx, first, path, 9)
			if err != nil || want == "none" && got != nil || want != "none" && (got == nil || string(got) != want) {
				t.Errorf("%s: %s: %q %v", over, path, got, err)
			}
		}
		if got, err := OpenRemote(r).ReadFile(ctx, first, "d/b", 9); err != nil || string(got) != "2" {
			t.Errorf("%s: without a folder: %q %v", over, got, err)
		}
		if _, err := w.ReadFile(ctx, wire.ID{1}, "a", 9); err == nil {
			t.Error("of a commit that isn't there")
		}
	}
}

// TestReadFileLimit: what is larger is none, here and on the remote.
func TestReadFileLimit(t *testing.T) {
	r := newRepo(t, "file")
	src := t.TempDir()
	put(t, src, files{"here": strings.Repeat("x", 100), "far": strings.Repeat("y", 100)})
	first := r.commit(src)
	dir := t.TempDir()
	w := open(t, dir, r)
	restore(t, w, first)
	put(t, dir, files{"far": strings.Repeat("z", 200)})
	for _, path := range []string{"here", "far"} {
		for limit, want := range map[int64]int{99: 0, 100: 100} {
			b, err := w.ReadFile(ctx, first, path, limit)
			if len(b) != want || (b == nil) != (want == 0) || err != nil {
				t.Errorf("%s within %d: %d bytes, %v", path, limit, len(b), err)
			}
		}
	}
	// What no remote has, and the workspace has no longer.
	snap, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{first}, When: when})
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir, files{"far": "gone"})
	if b, err := w.ReadFile(ctx, snap.Commit, "far", 1_000); err == nil {
		t.Errorf("%d bytes of what nobody has", len(b))
	}
	if err := w.CopyTo(ctx, wire.ID{1}, t.TempDir()); err == nil {
		t.Error("a copy of no commit")
	}
}

// TestExtraPaths: what is besides the commit's files is named by its topmost folders, also in
// folders of the commit and of submodules, whatever it is.
func TestExtraPaths(t *testing.T) {
	r := wiretest.NewMemory(wiretest.MemoryOptions{})
	f := blob(r, filemode.Regular, "1")
	sub := node{filemode.Submodule, plumbing.NewHash("1111111111111111111111111111111111111111")}
	src := rawTree(r, raw("f", f), raw("keep", rawTree(r, raw("f", f))))
	commit := rawCommit(t, r, rawTree(r, raw(".gitignore", blob(r, filemode.Regular, "node_modules/\n*.log\n")), raw("f", f), raw("lib", rawTree(r, raw("m", sub))), raw("src", src)).id)
	dir := t.TempDir()
	w := open(t, dir, r)
	restore(t, w, commit)
	if got, err := w.ExtraPaths(t.Context(), commit); err != nil || len(got) > 0 {
		t.Errorf("right after it: %q %v", got, err)
	}
	put(t, dir, files{
		"node_modules/a/b": "1", "x.log": "1", "src/node_modules/c": "1", "src/keep/a\nb.log": "1", "own/.gitignore": "*", "lib/m/d/e": "1", "lib/m/f": "1",
		".git/HEAD": "1", "src/.git/HEAD": "1", "lib/m/.git": "1", "f.d/node_modules/x": "1",
	})
	must(t, os.Symlink("/etc", filepath.Join(dir, "src/link.log")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "src/pipe.log"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "src/closed.log"), 0))
	want := []string{"f.d", "lib/m/d", "lib/m/f", "node_modules", "own", "src/closed.log", "src/keep/a\nb.log", "src/link.log", "src/node_modules", "src/pipe.log", "x.log"}
	got, err := w.ExtraPaths(t.Context(), commit)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	// A folder of the commit that is another thing now is Restore's to see to.
	must(t, os.RemoveAll(filepath.Join(dir, "src/keep")))
	must(t, os.Symlink("/etc", filepath.Join(dir, "src/keep")))
	if got, err = w.ExtraPaths(t.Context(), commit); err != nil || slices.Contains(got, "src/keep/passwd") || slices.Contains(got, "src/keep") {
		t.Errorf("%q %v", got, err)
	}
	if _, err := w.ExtraPaths(t.Context(), wire.ID{1}); err == nil {
		t.Error("of a commit that is nowhere")
	}
}

// TestFilesNamed: files of a commit by their name, wherever they lie, with their content.
func TestFilesNamed(t *testing.T) {
	r := wiretest.NewMemory(wiretest.MemoryOptions{})
	f, g := blob(r, filemode.Regular, "1"), blob(r, filemode.Executable, "2")
	one, two := f.id, g.id
	commit := rawCommit(t, r, rawTree(r, raw("a", rawTree(r, raw("go.mod", g), raw("go.mod.x", f))), raw("b", rawTree(r, raw("go.sum", g))), raw("go.mod", f), raw("go.sum", rawTree(r, raw("f", f))),
		raw("l", rawTree(r, raw("go.mod", node{filemode.Symlink, one})))).id)
	w := open(t, t.TempDir(), r)
	got, err := w.FilesNamed(t.Context(), commit, []string{"go.sum", "go.mod", "none"})
	if want := []string{"a/go.mod " + two.String(), "b/go.sum " + two.String(), "go.mod " + one.String(), "l/go.mod " + one.String()}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	if got, err := w.FilesNamed(t.Context(), wire.ID{1}, nil); err == nil {
		t.Errorf("of a commit that is nowhere: %q", got)
	}
}

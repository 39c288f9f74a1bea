package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

var ctx = context.Background()

var someFiles = files{
	"a": "1", "d/b": "2", "d/e/c*": "#!/bin/sh\n", "d/l": "-> ../a", "x.y": "3", "x/z": "4", "ä ö": "5", ".gitignore": "*.log\n/out/\n", "empty": "",
}

func TestRestoreOverTransports(t *testing.T) {
	for _, over := range []string{"http", "file", "old"} {
		t.Run(over, func(t *testing.T) {
			r := newRepo(t, over)
			src := t.TempDir()
			put(t, src, someFiles)
			first := r.commit(src)
			put(t, src, files{"a": "changed", "d/e/c*": "\x00", "d/e/c": "now a file", "x": "a folder was here", "new/n": "n"})
			second := r.commit(src, first.String())

			dir := t.TempDir()
			w := open(t, dir, r)
			for i, c := range []wire.ID{first, second, first, first, second} {
				restore(t, w, c)
				if i == 0 {
					equal(t, "first", contents(t, dir), someFiles)
				}
			}
			equal(t, "second", contents(t, dir), contents(t, src))

			// What is known, and edited or deleted in the folder.
			put(t, dir, files{"a": "edited", "d/b": "\x00", ".gitignore": "\x00"})
			restore(t, w, second)
			equal(t, "second again", contents(t, dir), contents(t, src))
			put(t, dir, files{"a": "edited", "d/b": "\x00", ".gitignore": "\x00"})
			restore(t, w, first)
			equal(t, "first again", contents(t, dir), someFiles)

			// A folder that nobody knows anything about.
			fresh := t.TempDir()
			put(t, fresh, files{"a": "other", "x/z": "4", "stale/deep/er": "s", "x.log": "ignored", "out/o": "ignored", ".git/HEAD": "h"})
			restore(t, open(t, fresh, r), second)
			want := contents(t, src)
			want["x.log"], want["out/o"] = "ignored", "ignored"
			equal(t, "fresh", contents(t, fresh), want)
			if _, err := os.Stat(filepath.Join(fresh, ".git/HEAD")); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(fresh, "stale")); err == nil {
				t.Error("an emptied folder was left")
			}
		})
	}
}

// TestRestoreCases go from whatever is in the folder to a commit.
func TestRestoreCases(t *testing.T) {
	for name, c := range map[string]struct{ before, commit, after files }{
		"file for folder":     {files{"a/b/c": "1", "a/d": "2"}, files{"a": "x"}, files{"a": "x"}},
		"folder for file":     {files{"a": "x"}, files{"a/b/c": "1"}, files{"a/b/c": "1"}},
		"folder for link":     {files{"o/f": "1", "a": "-> o"}, files{"a/f": "2", "o/f": "1"}, files{"a/f": "2", "o/f": "1"}},
		"link for folder":     {files{"a/f": "2"}, files{"a": "-> o", "o/f": "1"}, files{"a": "-> o", "o/f": "1"}},
		"link for file":       {files{"a": "f"}, files{"a": "-> o"}, files{"a": "-> o"}},
		"file for link":       {files{"a": "-> b", "b": "1"}, files{"a": "2", "b": "1"}, files{"a": "2", "b": "1"}},
		"file for dead link":  {files{"a": "-> nowhere"}, files{"a": "2"}, files{"a": "2"}},
		"other target":        {files{"a": "-> b"}, files{"a": "-> c"}, files{"a": "-> c"}},
		"bit on":              {files{"a": "1"}, files{"a*": "1"}, files{"a*": "1"}},
		"bit off":             {files{"a*": "1"}, files{"a": "1"}, files{"a": "1"}},
		"content and bit":     {files{"a": "1"}, files{"a*": "2"}, files{"a*": "2"}},
		"ignored stays":       {files{"x.log": "1", "d/y.log": "2"}, files{".gitignore": "*.log", "a": "1"}, files{".gitignore": "*.log", "a": "1", "x.log": "1", "d/y.log": "2"}},
		"ignored folder":      {files{"n/m/x": "1"}, files{".gitignore": "n/", "a": "1"}, files{".gitignore": "n/", "a": "1", "n/m/x": "1"}},
		"commit's rules":      {files{".gitignore": "*.tmp", "x.tmp": "1", "y.log": "1"}, files{".gitignore": "*.log"}, files{".gitignore": "*.log", "y.log": "1"}},
		"tracked, ignored":    {files{"x.log": "old"}, files{".gitignore": "*.log", "x.log": "new"}, files{".gitignore": "*.log", "x.log": "new"}},
		"in ignored folder":   {files{"n/x": "old", "n/y": "mine"}, files{".gitignore": "n", "n/x": "new"}, files{".gitignore": "n", "n/x": "new", "n/y": "mine"}},
		"ignored in the way":  {files{"a/x.log": "1"}, files{".gitignore": "*.log", "a": "1"}, files{".gitignore": "*.log", "a": "1"}},
		"ignores itself":      {files{"c/.gitignore": "*", "c/x": "1"}, files{"a": "1"}, files{"a": "1", "c/.gitignore": "*", "c/x": "1"}},
		"foreign .gitignore":  {files{"c/.gitignore": "x", "c/x": "1"}, files{"a": "1"}, files{"a": "1"}},
		"left-overs":          {files{".uwf-tmp-3": "1", "d/.uwf-tmp-0": "2", "d/a": "1"}, files{".gitignore": "*", "d/a": "1"}, files{".gitignore": "*", "d/a": "1"}},
		"nested .git kept":    {files{"n/.git/x": "1", "n/f": "1"}, files{"a": "1"}, files{"a": "1"}},
		"empty folders go":    {files{"e/f/": ""}, files{"a": "1"}, files{"a": "1"}},
		"link to a folder":    {files{"o/k": "1"}, files{"l": "-> o/p", "o/p/k": "1"}, files{"l": "-> o/p", "o/p/k": "1"}},
		"temporary names":     {files{}, files{".uwf-tmp-0": "1", ".uwf-tmp-1": "2", "a": "3"}, files{".uwf-tmp-0": "1", ".uwf-tmp-1": "2", "a": "3"}},
		"odd names":           {files{}, files{"-": "1", " ": "2", "a\\b": "3", "ü/*?[": "4"}, files{"-": "1", " ": "2", "a\\b": "3", "ü/*?[": "4"}},
		"link to nothing yet": {files{"dir/f": "1"}, files{"dir": "-> ./x/../y"}, files{"dir": "-> ./x/../y"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := wiretest.NewMemory(wiretest.MemoryOptions{})
			dir := t.TempDir()
			commit := commitOf(t, m, c.commit)
			put(t, dir, c.before)
			w := open(t, dir, m)
			restore(t, w, commit)
			equal(t, "after", contents(t, dir), c.after)
			w.step = func(op, path string) error { return fmt.Errorf("the second time: %s %s", op, path) }
			restore(t, w, commit)
			restore(t, func() *Workspace { n := open(t, dir, m); n.step = w.step; return n }(), commit)
		})
	}
}

// TestRestoreFollowsWhatWasTracked: what a commit tracked goes with it, ignored or
// not.
func TestRestoreFollowsWhatWasTracked(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	one := commitOf(t, m, files{".gitignore": "*.log\nn/\n", "x.log": "1", "n/deep/f": "1", "a": "1"})
	two := commitOf(t, m, files{".gitignore": "*.log\nn/\n", "a": "2"})
	dir := t.TempDir()
	w := open(t, dir, m)
	restore(t, w, one)
	put(t, dir, files{"mine.log": "1", "n/deep/mine": "1"})
	restore(t, w, two)
	equal(t, "after", contents(t, dir), files{".gitignore": "*.log\nn/\n", "a": "2", "mine.log": "1", "n/deep/mine": "1"})
}

// TestRestoreKilled stops a restore at every point and runs it again, in the same
// process and in a new one.
func TestRestoreKilled(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	before := files{"a": "1", "d/b": "2", "d/c*": "3", "f/g/h": "4", "k": "-> a", "m/n": "5", "same": "6", "bit": "7"}
	after := files{"a": "2", "d": "was a folder", "f": "-> a", "k/l": "8", "m/n*": "9", "same": "6", "bit*": "7", "new/x/y": "10"}
	one, two := commitOf(t, m, before), commitOf(t, m, after)
	killed := errors.New("killed")
	for n := 0; ; n++ {
		dir := t.TempDir()
		w := open(t, dir, m)
		restore(t, w, one)
		left := n
		w.step = func(string, string) error {
			if left--; left < 0 {
				return killed
			}
			return nil
		}
		err := w.Restore(ctx, two)
		if err == nil {
			if n < 15 {
				t.Fatalf("only %d points", n)
			}
			break
		}
		if !errors.Is(err, killed) {
			t.Fatal(err)
		}
		if w.step = func(string, string) error { return nil }; n%2 == 1 {
			w = open(t, dir, m)
		}
		restore(t, w, two)
		equal(t, fmt.Sprintf("killed after %d", n), contents(t, dir), after)
		if s := snapshot(t, w, two); !s.Unchanged {
			t.Errorf("killed after %d: changes %+v", n, s.Changes)
		}
	}
}

func TestRestoreHardLink(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "new", "b*": "same"})
	outside, dir := t.TempDir(), t.TempDir()
	put(t, outside, files{"a": "old", "b": "same"})
	for _, n := range []string{"a", "b"} {
		must(t, os.Link(filepath.Join(outside, n), filepath.Join(dir, n)))
	}
	restore(t, open(t, dir, m), commit)
	equal(t, "inside", contents(t, dir), files{"a": "new", "b*": "same"})
	equal(t, "outside", contents(t, outside), files{"a": "old", "b": "same"})
}

func TestRestoreUnreadable(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1", "d/b": "2"})
	dir := t.TempDir()
	put(t, dir, files{"a": "1", "d/b": "2", "ro/x": "extra"})
	must(t, os.Chmod(filepath.Join(dir, "a"), 0))
	must(t, os.Chmod(filepath.Join(dir, "ro"), 0o555))
	restore(t, open(t, dir, m), commit)
	equal(t, "after", contents(t, dir), files{"a": "1", "d/b": "2"})
}

func TestRestoreRepoInTheWay(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1"})
	dir := t.TempDir()
	put(t, dir, files{"a/deep/.git/HEAD": "x", "z": "1"})
	err := open(t, dir, m).Restore(ctx, commit)
	if !errors.Is(err, ErrInTheWay) {
		t.Fatal(err)
	}
	equal(t, "untouched", contents(t, dir), files{"z": "1"})
}

func TestRestoreRemoteFails(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	commit := commitOf(t, m, files{"a": "1"})
	w := open(t, t.TempDir(), m)
	if err := w.Restore(ctx, wire.NewObject(1, []byte("x")).ID); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("unknown commit: %v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.Restore(gone, commit); !errors.Is(err, context.Canceled) && !errors.Is(err, wire.ErrUnreachable) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), m); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// narrow is a remote that can't send much at once, or gives commits only.
type narrow struct {
	*wiretest.Memory
	most        int
	commitsOnly bool
	fetches     int
}

func (n *narrow) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	n.fetches++
	for _, id := range req.Wants {
		if o, _ := n.Get(id); n.commitsOnly && o.Type != plumbing.CommitObject {
			return nil, &wire.RemoteError{Op: "fetch", Kind: wire.ErrNotFound, Detail: "not our ref"}
		}
	}
	objs, err := n.Memory.Fetch(ctx, req)
	if err == nil && len(objs) > n.most {
		return nil, &wire.RemoteError{Op: "fetch", Kind: wire.ErrUnreadable, Detail: "too large"}
	}
	return objs, err
}

func TestRestoreInPieces(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	want := files{}
	for i := range 30 {
		want[fmt.Sprint("f", i)] = fmt.Sprint("content ", i)
	}
	commit := commitOf(t, m, want)
	dir := t.TempDir()
	n := &narrow{Memory: m, most: 4}
	restore(t, open(t, dir, n), commit)
	equal(t, "restored", contents(t, dir), want)
	if n.fetches > 20 {
		t.Errorf("%d fetches", n.fetches)
	}
	n.most = 0
	if err := open(t, t.TempDir(), n).Restore(ctx, commit); !errors.Is(err, wire.ErrUnreadable) {
		t.Error(err)
	}
}

// TestRestoreAsksLittle counts what is asked of the remote.
func TestRestoreAsksLittle(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	one := commitOf(t, m, files{"a": "1", "d/b": "2", "l": "-> a", ".gitignore": "x"})
	two := commitOf(t, m, files{"a": "3", "d/b": "2", "l": "-> a", ".gitignore": "x"})
	n := &narrow{Memory: m, most: 1000}
	dir := t.TempDir()
	w := open(t, dir, n)
	for i, c := range []struct {
		commit wire.ID
		most   int
	}{{one, 1}, {one, 0}, {two, 2}, {one, 1}} {
		n.fetches = 0
		restore(t, w, c.commit)
		if n.fetches > c.most {
			t.Errorf("restore %d: %d fetches, want %d", i, n.fetches, c.most)
		}
	}
	n.fetches = 0
	if s := snapshot(t, w, one); !s.Unchanged || n.fetches > 0 {
		t.Errorf("%d fetches for a snapshot", n.fetches)
	}
	restore(t, open(t, dir, n), one)
	if n.fetches > 1 {
		t.Errorf("%d fetches to find that nothing differs", n.fetches)
	}
}

// TestRestoreInBatches: a commit that is too large to be held at once comes in parts, and a
// server that is asked for more than the first part can tell so.
func TestRestoreInBatches(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	want := files{}
	for i := range 40 {
		want[fmt.Sprint("f", i)] = strings.Repeat(fmt.Sprint("content ", i), 50_000)
	}
	commit := commitOf(t, m, want)

	n := &narrow{Memory: m, most: 1000}
	dir := t.TempDir()
	restore(t, open(t, dir, n), commit)
	if n.fetches != 3 { // all, which is too much; without blobs; the blobs, of unknown size
		t.Errorf("%d fetches", n.fetches)
	}
	equal(t, "restored", contents(t, dir), want)

	n.fetches = 0
	w := open(t, t.TempDir(), n)
	w.Expect(commitOf(t, m, files{"f0": want["f0"]}))
	restore(t, w, commit)
	if n.fetches != 3 {
		t.Errorf("%d fetches with an expected commit", n.fetches)
	}
}

// TestRestoreFromAnOldServer: one that filters nothing and gives commits only.
func TestRestoreFromAnOldServer(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{NoFilter: true})
	one := commitOf(t, m, files{"a": "1", "d/b": "2", "e/c": "3"})
	two := commitOf(t, m, files{"a": "1", "d/b": "4", "e/c": "3"})
	n := &narrow{Memory: m, most: 1000, commitsOnly: true}
	dir := t.TempDir()
	w := open(t, dir, n)
	for _, c := range []struct {
		commit wire.ID
		want   files
	}{{one, files{"a": "1", "d/b": "2", "e/c": "3"}}, {two, files{"a": "1", "d/b": "4", "e/c": "3"}}, {one, files{"a": "1", "d/b": "2", "e/c": "3"}}} {
		put(t, dir, files{"e/c": "edited"})
		restore(t, w, c.commit)
		equal(t, "restored", contents(t, dir), c.want)
	}
	// A commit whose parent's tree is remembered, and one whose isn't.
	three := rawCommitOn(t, m, treeOfFiles(t, m, files{"e/c": "3", "n": "1"}), two)
	four := rawCommitOn(t, m, treeOfFiles(t, m, files{"a": "1", "d/b": "4"}), three)
	restore(t, w, three)
	w.trees = w.trees[:1]
	restore(t, w, four)
	equal(t, "restored", contents(t, dir), files{"a": "1", "d/b": "4"})
}

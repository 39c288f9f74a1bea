package workspace

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

func TestMerge(t *testing.T) {
	base := files{"a": "1", "b": "2", "d/x": "3", "d/y": "4", "e/f/g": "5"}
	for name, c := range map[string]struct {
		ours, theirs files
		want         files
		overlap      string
	}{
		"nothing":              {files{}, files{}, base, ""},
		"ours":                 {files{"a": "o"}, files{}, files{"a": "o", "b": "2", "d/x": "3", "d/y": "4", "e/f/g": "5"}, ""},
		"theirs":               {files{}, files{"d/x": "t"}, files{"a": "1", "b": "2", "d/x": "t", "d/y": "4", "e/f/g": "5"}, ""},
		"both, apart":          {files{"d/x": "o", "n": "o"}, files{"d/y": "t", "d/z": "t", "e/f/g": "\x00"}, files{"a": "1", "b": "2", "d/x": "o", "d/y": "t", "d/z": "t", "n": "o"}, ""},
		"both, alike":          {files{"a": "x", "n/m": "1"}, files{"a": "x", "n/m": "1", "b": "t"}, files{"a": "x", "n/m": "1", "b": "t", "d/x": "3", "d/y": "4", "e/f/g": "5"}, ""},
		"both, one file":       {files{"a": "o", "d/x": "o"}, files{"a": "t", "d/x": "t", "b": "t"}, nil, "a d/x"},
		"delete and change":    {files{"d": "\x00"}, files{"d/y": "t"}, nil, "d/y"},
		"change and delete":    {files{"a": "o"}, files{"a": "\x00"}, nil, "a"},
		"both deleted":         {files{"d": "\x00"}, files{"d/x": "\x00"}, files{"a": "1", "b": "2", "e/f/g": "5"}, ""},
		"both added":           {files{"n": "o"}, files{"n": "t"}, nil, "n"},
		"file against folder":  {files{"n": "o"}, files{"n/m": "t"}, nil, "n"},
		"folder became a file": {files{"d": "o"}, files{"d/x": "t"}, nil, "d"},
		"file became a folder": {files{"a": "\x00", "a/n": "o"}, files{"a": "t"}, nil, "a"},
		"both made a folder":   {files{"a": "\x00", "a/n": "o"}, files{"a": "\x00", "a/m": "t"}, files{"a/n": "o", "a/m": "t", "b": "2", "d/x": "3", "d/y": "4", "e/f/g": "5"}, ""},
		"gone and a folder":    {files{"a": "\x00"}, files{"a": "\x00", "a/m": "t"}, nil, "a"},
		"bit and content":      {files{"a": "\x00", "a*": "1"}, files{"a": "t"}, nil, "a"},
		"all gone":             {files{"a": "\x00", "b": "\x00", "d": "\x00", "e": "\x00"}, files{"a": "\x00"}, files{}, ""},
		"halves gone":          {files{"a": "\x00", "b": "\x00", "d": "\x00"}, files{"e": "\x00"}, files{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := wiretest.NewMemory(wiretest.MemoryOptions{})
			b := commitOf(t, m, base)
			edit := func(fs files) wire.ID {
				dir := t.TempDir()
				w := open(t, dir, m)
				restore(t, w, b)
				put(t, dir, fs)
				s := snapshot(t, w, b, b)
				for _, o := range s.Objects {
					m.AddObjects(o.Object)
				}
				return s.Commit
			}
			ours, theirs := edit(c.ours), edit(c.theirs)
			r, err := Merge(ctx, m, b, ours, theirs, nil)
			must(t, err)
			back, err := Merge(ctx, m, b, theirs, ours, nil)
			must(t, err)
			if r.Tree != back.Tree || strings.Join(r.Overlap, " ") != strings.Join(back.Overlap, " ") {
				t.Errorf("not the same the other way round: %+v %+v", r, back)
			}
			if got := strings.Join(r.Overlap, " "); got != c.overlap || r.Tree.IsZero() != (c.overlap != "") {
				t.Fatalf("overlap %q, want %q; tree %s", got, c.overlap, r.Tree)
			}
			if c.overlap != "" {
				return
			}
			push(t, m, mergeCommit(t, r, ours, theirs), "merged", wire.ZeroID)
			dir := t.TempDir()
			restore(t, open(t, dir, m), m.Refs()["refs/heads/merged"])
			equal(t, "merged", contents(t, dir), c.want)
		})
	}
}

func mergeCommit(t *testing.T, r MergeResult, parents ...wire.ID) Snapshot {
	t.Helper()
	who := gitobj.Signature{Name: "t", Email: "t@t", When: when}
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: r.Tree, Parents: parents, Author: who, Committer: who})
	must(t, err)
	o := wire.NewObject(plumbing.CommitObject, data)
	return Snapshot{Commit: o.ID, Objects: append(r.Objects, wire.PackObject{Object: o})}
}

// TestMergeUnpushed merges a snapshot that isn't on the remote yet with what
// people pushed meanwhile, over a real server.
func TestMergeUnpushed(t *testing.T) {
	r := newRepo(t, "http")
	src := t.TempDir()
	put(t, src, files{"a": "1", "d/b": "2", "d/e/c": "3"})
	base := r.commit(src)
	dir := t.TempDir()
	w := open(t, dir, r)
	restore(t, w, base)
	put(t, dir, files{"d/b": "ours"})
	s := snapshot(t, w, base)
	put(t, src, files{"d/e/c": "theirs", "d/e/new": "theirs"})
	theirs := r.commit(src, base.String())
	known := wire.Objects{}
	for _, o := range s.Objects {
		known.Add(o.Object)
	}
	m, err := Merge(ctx, r, base, s.Commit, theirs, known)
	must(t, err)
	merged := mergeCommit(t, m, theirs, s.Commit)
	merged.Objects = append(merged.Objects, s.Objects...)
	push(t, r, merged, "merged", wire.ZeroID)
	r.git("fsck", "--strict", "--no-dangling")
	for path, want := range map[string]string{"a": "1", "d/b": "ours", "d/e/c": "theirs", "d/e/new": "theirs"} {
		if got := r.git("show", "merged:"+path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
	if r, err := Merge(ctx, r, wire.ZeroID, s.Commit, theirs, known); err != nil || strings.Join(r.Overlap, " ") != "d/b d/e/c" {
		t.Errorf("without a base: %+v %v", r, err)
	}
	if _, err := Merge(ctx, r, base, plumbing.NewHash("1111111111111111111111111111111111111111"), theirs, known); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("an unknown commit: %v", err)
	}
}

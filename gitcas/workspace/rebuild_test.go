package workspace

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// objectsOf are the new objects of a snapshot, without its commit.
func objectsOf(s Snapshot) wire.Objects {
	out := wire.Objects{}
	for _, o := range s.Objects {
		if o.ID != s.Commit {
			out.Add(o.Object)
		}
	}
	return out
}

func idsOf(s Snapshot) []string {
	var out []string
	for _, o := range s.Objects {
		out = append(out, o.ID.String())
	}
	slices.Sort(out)
	return out
}

// TestRebuildSnapshot: of tree and objects comes the very snapshot that they were of.
func TestRebuildSnapshot(t *testing.T) {
	base := files{"a": "1", "b": "2", "d/x": "3", "d/y": "4", "e/f/g": "5"}
	for name, edit := range map[string]files{
		"changed":                   {"a": "x", "d/x": "y"},
		"added":                     {"n": "1x", "n2/m/o": "2x"},
		"deleted":                   {"a": "\x00", "e": "\x00"},
		"all gone":                  {"a": "\x00", "b": "\x00", "d": "\x00", "e": "\x00"},
		"renamed":                   {"d/x": "\x00", "z/x": "3"},
		"executable":                {"a": "\x00", "a*": "1"},
		"link":                      {"l": "-> d/x"},
		"a folder in place":         {"a": "\x00", "a/b": "q"},
		"a file in place":           {"e": "q"},
		"one content at two places": {"n": "same", "m": "same"},
	} {
		t.Run(name, func(t *testing.T) {
			m := wiretest.NewMemory(wiretest.MemoryOptions{})
			b := commitOf(t, m, base)
			dir := t.TempDir()
			w := open(t, dir, m)
			restore(t, w, b)
			put(t, dir, edit)
			req := SnapshotRequest{Parents: []wire.ID{b}, Message: "m\n", When: when}
			s, err := w.Snapshot(ctx, req)
			must(t, err)
			objs := objectsOf(s)
			objs.Add(wire.NewObject(plumbing.BlobObject, []byte("needed by nothing")))
			got, err := RebuildSnapshot(ctx, m, req.Parents, s.Tree, objs)
			must(t, err)
			must(t, got.AddCommit(req))
			for i, c := range s.Changes {
				if _, isNew := objs[c.Blob]; !isNew {
					s.Changes[i].Size = 0 // of what the parent has it isn't known
				}
			}
			if got.Commit != s.Commit || got.Tree != s.Tree || !reflect.DeepEqual(got.Changes, s.Changes) || !slices.Equal(idsOf(got), idsOf(s)) {
				t.Errorf("got\n%+v %v, want\n%+v %v", got.Changes, idsOf(got), s.Changes, idsOf(s))
			}
		})
	}
	t.Run("without a parent", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, base)
		req := SnapshotRequest{Message: "m\n", When: when}
		s, err := open(t, dir, nil).Snapshot(ctx, req)
		must(t, err)
		got, err := RebuildSnapshot(ctx, nil, nil, s.Tree, objectsOf(s))
		must(t, err)
		must(t, got.AddCommit(req))
		if got.Commit != s.Commit || !reflect.DeepEqual(got.Changes, s.Changes) {
			t.Errorf("%+v, want %+v", got, s)
		}
	})
}

// TestRebuildHostile: a tree holds nothing that Snapshot would not have put there.
func TestRebuildHostile(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	parent := commitOf(t, m, files{"a": "1", "d/x": "3"})
	elsewhere := commitOf(t, m, files{"secret/key": "of another branch"})
	push(t, m, Snapshot{Commit: elsewhere}, "other", wire.ZeroID)
	c, _ := m.Get(elsewhere)
	foreign, err := gitobj.DecodeCommit(c.Data)
	must(t, err)
	blob := wire.NewObject(plumbing.BlobObject, []byte("x"))
	key := wire.NewObject(plumbing.BlobObject, []byte("of another branch"))
	out := wire.NewObject(plumbing.BlobObject, []byte("../../etc/passwd"))
	line := func(mode, name string, id wire.ID) string { return mode + " " + name + "\x00" + string(id[:]) }
	for name, c := range map[string]struct {
		tree string
		says string
	}{
		"no tree":                    {"\xff\x00", "tree"},
		"an absolute path":           {line("100644", "/etc/passwd", blob.ID), "/"},
		"a path with folders":        {line("100644", "d/x", blob.ID), "/"},
		"a path that leads out":      {line("100644", "..", blob.ID), ".."},
		"git's folder":               {line("100644", ".git", blob.ID), ".git"},
		"git's folder, in disguise":  {line("100644", ".GIT", blob.ID), ".GIT"},
		"a control character":        {line("100644", "a\x1b[2J", blob.ID), "a"},
		"uwf's own name":             {line("100644", TempPrefix+"x", blob.ID), "uwf's own"},
		"a submodule":                {line("160000", "m", blob.ID), "submodule"},
		"a link that leads out":      {line("120000", "l", out.ID), "leads out"},
		"a file that is a tree":      {line("100644", "f", foreign.Tree), "neither new nor in the parent"},
		"a file of another branch":   {line("100644", "f", key.ID), "neither new nor in the parent"},
		"a folder of another branch": {line("40000", "f", foreign.Tree), "not among the objects"},
		"a folder that is a file":    {line("40000", "f", blob.ID), "a tree was expected"},
		"a strange mode":             {line("100777", "f", blob.ID), "mode"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := wire.NewObject(plumbing.TreeObject, []byte(c.tree))
			objs := wire.Objects{}
			for _, o := range []wire.Object{blob, out, tree} {
				objs.Add(o)
			}
			_, err := RebuildSnapshot(ctx, m, []wire.ID{parent}, tree.ID, objs)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("a tree that isn't there", func(t *testing.T) {
		if _, err := RebuildSnapshot(ctx, m, []wire.ID{parent}, foreign.Tree, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("%v", err)
		}
	})
	t.Run("billions of files", func(t *testing.T) {
		objs := wire.Objects{}
		objs.Add(blob)
		at, mode := blob.ID, filemode.Regular
		for range 12 {
			var list []gitobj.Entry
			for i := range 10 {
				list = append(list, gitobj.Entry{Name: string(rune('a' + i)), Mode: mode, ID: at})
			}
			data, err := gitobj.EncodeTree(list)
			must(t, err)
			o := wire.NewObject(plumbing.TreeObject, data)
			objs.Add(o)
			at, mode = o.ID, filemode.Dir
		}
		if _, err := RebuildSnapshot(ctx, m, nil, at, objs); !errors.Is(err, ErrLimit) {
			t.Errorf("%v", err)
		}
	})
}

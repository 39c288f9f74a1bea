package workspace

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
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
			s, err := w.TakeSnapshot(ctx, req)
			must(t, err)
			objs := objectsOf(s)
			objs.Add(wire.NewObject(plumbing.BlobObject, []byte("needed by nothing")))
			got, err := RebuildSnapshot(ctx, m, req.Parents, s.Tree, objs)
			must(t, err)
			must(t, got.AddCommit(req))
			for i, c := range s.Changes {
				if old, ok := m.Get(c.Old); ok && !bytes.Equal(c.OldData, old.Data) {
					t.Errorf("%s had %q, want %q", c.Path, c.OldData, old.Data)
				}
				s.Changes[i].OldData = nil // the other one restored nothing
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
		s, err := open(t, dir, nil).TakeSnapshot(ctx, req)
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
	root, git := wire.NewObject(plumbing.BlobObject, []byte("/etc/passwd")), wire.NewObject(plumbing.BlobObject, []byte(".git/config"))
	empty, nul := wire.NewObject(plumbing.BlobObject, nil), wire.NewObject(plumbing.BlobObject, []byte("a\x00b"))
	line := func(mode, name string, id wire.ID) string { return mode + " " + name + "\x00" + string(id[:]) }
	below := wire.NewObject(plumbing.TreeObject, []byte(line("100644", "config", blob.ID)))
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
		"git's folder, with a dot":   {line("40000", ".git.", below.ID), ".git."},
		"git's folder, a stream":     {line("40000", ".git::$INDEX_ALLOCATION", below.ID), ".git::"},
		"git's folder, short":        {line("40000", "GIT~1", below.ID), "GIT~1"},
		"git's folder, invisible":    {line("40000", ".g\u200cit", below.ID), "it"},
		"git's folder, a backslash":  {line("100644", `b\.git\config`, blob.ID), `b\`},
		"an empty name":              {line("100644", "", blob.ID), "tree"},
		"a dot":                      {line("100644", ".", blob.ID), "."},
		"a line end":                 {line("100644", "a\nb", blob.ID), "a"},
		"a control character":        {line("100644", "a\x1b[2J", blob.ID), "a"},
		"uwf's own name":             {line("100644", TempPrefix+"x", blob.ID), "uwf's own"},
		"a submodule":                {line("160000", "m", blob.ID), "submodule"},
		"a link that leads out":      {line("120000", "l", out.ID), "leads out"},
		"a link to the root":         {line("120000", "l", root.ID), "leads out"},
		"a link to git's folder":     {line("120000", "l", git.ID), "leads out"},
		"a link to nothing":          {line("120000", "l", empty.ID), "leads out"},
		"a link with a NUL":          {line("120000", "l", nul.ID), "leads out"},
		"two of a name":              {line("100644", "f", blob.ID) + line("100644", "f", out.ID), "f"},
		"a file that is a folder":    {line("100644", "f", below.ID), "its content is a tree"},
		"a long path":                {line("100644", strings.Repeat("x", 5000), blob.ID), "long"},
		"a file that is a tree":      {line("100644", "f", foreign.Tree), "neither new nor in the parent"},
		"a file of another branch":   {line("100644", "f", key.ID), "neither new nor in the parent"},
		"a folder of another branch": {line("40000", "f", foreign.Tree), "not among the objects"},
		"a folder that is a file":    {line("40000", "f", blob.ID), "a tree was expected"},
		"a strange mode":             {line("100777", "f", blob.ID), "mode"},
	} {
		t.Run(name, func(t *testing.T) {
			tree := wire.NewObject(plumbing.TreeObject, []byte(c.tree))
			objs := wire.Objects{}
			for _, o := range []wire.Object{blob, out, root, git, empty, nul, below, tree} {
				objs.Add(o)
			}
			_, err := RebuildSnapshot(ctx, m, []wire.ID{parent}, tree.ID, objs)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("links through links", func(t *testing.T) { rebuildLinks(t, m) })
	t.Run("a tree that isn't there", func(t *testing.T) {
		if _, err := RebuildSnapshot(ctx, m, []wire.ID{parent}, foreign.Tree, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a parent that isn't there", func(t *testing.T) {
		tree := wire.NewObject(plumbing.TreeObject, nil)
		if _, err := RebuildSnapshot(ctx, m, []wire.ID{blob.ID}, tree.ID, wire.Objects{tree.ID: tree}); err == nil {
			t.Error("what nobody has was compared with")
		}
	})
	t.Run("too much", func(t *testing.T) {
		content := make([]byte, DefaultMaxFile+1)
		for name, sizes := range map[string][]int{
			"of one file":   {DefaultMaxFile + 1},
			"of many files": {DefaultMaxFile, DefaultMaxFile - 1, DefaultMaxFile - 2, DefaultMaxFile - 3, DefaultMaxFile - 4, 7 << 20},
		} {
			objs := wire.Objects{}
			var list string
			for i, size := range sizes {
				o := wire.NewObject(plumbing.BlobObject, content[:size])
				objs.Add(o)
				list += line("100644", string(rune('a'+i)), o.ID)
			}
			tree := wire.NewObject(plumbing.TreeObject, []byte(list))
			objs.Add(tree)
			if _, err := RebuildSnapshot(ctx, m, []wire.ID{parent}, tree.ID, objs); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "bytes of new files") {
				t.Errorf("%s: %v", name, err)
			}
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

// rebuildLinks: a link may lead out by where it is, or through others, old and new.
func rebuildLinks(t *testing.T, m *wiretest.Memory) {
	parent := commitOf(t, m, files{"d/e/f": "1", "d/e/up": "-> ../../x", "d/e/s": "-> ../e", "x": "2", "out": "../../etc/passwd", "way": "-> d/e", "by": "-> way/../.."})
	for name, c := range map[string]struct {
		files files
		kind  error
	}{
		"through a new one":          {files{"l": "-> d/e/f/../../../x", "d/e/f": "-> ../../d"}, ErrLink},
		"through an old one":         {files{"l": "-> d/e/s/../../../x"}, ErrLink},
		"an old one in a new place":  {files{"up": "-> ../../x"}, ErrLink},
		"an old file as a link":      {files{"l": "-> ../../etc/passwd"}, ErrLink},
		"through one that is gone":   {files{"way": ""}, ErrLink},
		"through one that is a file": {files{"way": "no link"}, ErrLink},
		"inside through others":      {files{"l": "-> way/../e/f"}, nil},
		"none of them":               {files{"x": "3"}, nil},
		"a huge .gitignore":          {files{".gitignore": strings.Repeat("x\n", 1<<20)}, ErrLimit},
		"a long link":                {files{"l": "-> " + strings.Repeat("x/", 3000)}, ErrDamaged},
	} {
		tree, objs := treeWith(t, m, parent, c.files)
		if _, err := RebuildSnapshot(ctx, m, []wire.ID{parent}, tree, objs); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tree, objs := treeWith(t, m, parent, files{"x": "-> d"})
	if _, err := RebuildSnapshot(ctx, noBlobs{m}, []wire.ID{parent}, tree, objs); !errors.Is(err, wire.ErrUnreachable) {
		t.Errorf("links that can't be read: %v", err)
	}
}

// noBlobs is a remote that is away when files are asked for.
type noBlobs struct{ wire.Remote }

func (r noBlobs) Fetch(ctx context.Context, req wire.FetchRequest) (wire.Objects, error) {
	if req.Depth == 0 {
		return nil, &wire.RemoteError{Op: "fetch", Kind: wire.ErrUnreachable}
	}
	objs, err := r.Remote.Fetch(ctx, req)
	maps.DeleteFunc(objs, func(_ wire.ID, o wire.Object) bool { return o.Type == plumbing.BlobObject })
	return objs, err
}

// treeWith is a tree as an attacker makes it: that of a commit with some files otherwise, "" for
// none, and the objects that the commit hasn't.
func treeWith(t *testing.T, m *wiretest.Memory, commit wire.ID, change files) (wire.ID, wire.Objects) {
	t.Helper()
	l := newLoader(m, wire.Objects{}, DefaultMaxFiles)
	base, err := l.fetchTree(ctx, commit, "")
	must(t, err)
	all := map[string]gitobj.Entry{}
	for path, e := range base.AllFiles() {
		all[path] = gitobj.Entry{Mode: e.Mode, ID: e.ID}
	}
	objs := wire.Objects{}
	for path, text := range change {
		mode := filemode.Regular
		if target, link := strings.CutPrefix(text, "-> "); link {
			text, mode = target, filemode.Symlink
		}
		o := wire.NewObject(plumbing.BlobObject, []byte(text))
		all[path] = gitobj.Entry{Mode: mode, ID: o.ID}
		if text == "" {
			delete(all, path)
		} else if _, had := l.objects[o.ID]; !had {
			objs.Add(o)
		}
	}
	return addTree(t, objs, all), objs
}

// addTree adds the trees of files to objects, and returns the top one.
func addTree(t *testing.T, objs wire.Objects, all map[string]gitobj.Entry) wire.ID {
	t.Helper()
	folders := map[string]map[string]gitobj.Entry{}
	var list []gitobj.Entry
	for path, e := range all {
		if folder, rest, below := strings.Cut(path, "/"); below {
			if folders[folder] == nil {
				folders[folder] = map[string]gitobj.Entry{}
			}
			folders[folder][rest] = e
		} else {
			list = append(list, gitobj.Entry{Name: path, Mode: e.Mode, ID: e.ID})
		}
	}
	for name, below := range folders {
		list = append(list, gitobj.Entry{Name: name, Mode: filemode.Dir, ID: addTree(t, objs, below)})
	}
	data, err := gitobj.EncodeTree(list)
	must(t, err)
	o := wire.NewObject(plumbing.TreeObject, data)
	objs.Add(o)
	return o.ID
}

// FuzzRebuildSnapshot: a tree that is taken holds what a folder can be made equal to, without
// harm to anything else.
func FuzzRebuildSnapshot(f *testing.F) {
	const aBlob, aTree = "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01", "\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02"
	f.Add("100644 a\x00"+aBlob+"40000 d\x00"+aTree, "120000 l\x00"+aBlob, "../a")
	f.Add("120000 l\x00"+aBlob, "", "d/../../x")
	f.Add("40000 .git\x00"+aTree, "100755 config\x00"+aBlob, "x")
	f.Fuzz(func(t *testing.T, top, below, data string) {
		m := wiretest.NewMemory(wiretest.MemoryOptions{})
		blob := wire.NewObject(plumbing.BlobObject, []byte(data))
		below = strings.ReplaceAll(below, aBlob, string(blob.ID[:]))
		sub := wire.NewObject(plumbing.TreeObject, []byte(below))
		top = strings.ReplaceAll(strings.ReplaceAll(top, aBlob, string(blob.ID[:])), aTree, string(sub.ID[:]))
		tree := wire.NewObject(plumbing.TreeObject, []byte(top))
		objs := wire.Objects{}
		objs.Add(blob, sub, tree)
		s, err := RebuildSnapshot(ctx, nil, nil, tree.ID, objs)
		if err != nil {
			return
		}
		must(t, s.AddCommit(SnapshotRequest{Message: "m\n", When: when}))
		push(t, m, s, "made", wire.ZeroID)
		outside := t.TempDir()
		dir := filepath.Join(outside, "to", "deep")
		must(t, os.MkdirAll(dir, 0o755))
		if err := open(t, dir, m).Restore(ctx, s.Commit); errors.Is(err, ErrLink) || errors.Is(err, ErrLimit) {
			t.Errorf("it was taken, and no folder can be made equal to it: %v", err)
		} else if err != nil {
			return // a name may be too long for the system
		}
		for _, at := range []string{outside, filepath.Dir(dir)} {
			if entries, err := os.ReadDir(at); err != nil || len(entries) != 1 {
				t.Errorf("something was made in %s: %v, %v", at, entries, err)
			}
		}
		for _, c := range s.Changes {
			if _, err := os.Lstat(filepath.Join(dir, c.Path)); err != nil {
				t.Errorf("%q was taken, and is not in the folder: %v", c.Path, err)
			}
		}
	})
}

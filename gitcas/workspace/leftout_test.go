package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// noLinkOut: no link below a folder leads to anything that isn't below it.
func noLinkOut(t *testing.T, dir string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() == fs.ModeSymlink {
			to, lerr := os.Readlink(path)
			must(t, lerr)
			if to = filepath.Clean(filepath.Join(filepath.Dir(path), to)); to != dir && !strings.HasPrefix(to, dir+"/") {
				t.Errorf("%s leads to %s", path, to)
			}
		}
		return err
	}))
}

// linksOutBase has links that lead out in every way, and some that don't.
var linksOutBase = files{
	"tz": "-> /usr/share/zoneinfo/UTC", "up/config": "-> ../../shared/config", "hooks": "-> .git/hooks", "only/here": "-> /etc",
	"far": "-> tz", "in": "-> d/f", "d/f": "1", "k": "1",
}

// TestLinksOutStay: links of a commit that lead out are not made, in the folder or in a copy of
// it, and every snapshot keeps them; what the agent itself does to them counts.
func TestLinksOutStay(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	parent := commitOf(t, m, linksOutBase)
	inside := files{"in": "-> d/f", "d/f": "1", "k": "1"}
	for name, c := range map[string]struct {
		now  files
		want string // changes; "!path": the snapshot fails there
	}{
		"nothing":               {nil, ""},
		"another file":          {files{"k": "2"}, "modified k;"},
		"a file in its place":   {files{"tz": "utc"}, "modified tz;"},
		"a folder in its place": {files{"tz/UTC": "utc"}, "deleted tz;added tz/UTC;"},
		"the same link":         {files{"tz": "-> /usr/share/zoneinfo/UTC"}, ""},
		"a link inside":         {files{"tz": "-> d/f"}, "modified tz;"},
		"another link out":      {files{"tz": "-> /etc/passwd"}, ""},
		"a new link out":        {files{"l": "-> /etc/passwd"}, ""},
		"through it":            {files{"l": "-> tz/x"}, "!l"},
		"a file over a folder":  {files{"only": "f"}, "added only;deleted only/here;"},
		"its folder is gone":    {files{"d": "\x00"}, "deleted d/f;"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, files{"tz": "-> /usr/share/zoneinfo/UTC", "k": "0"}) // a checkout has it
			w := open(t, dir, m)
			restore(t, w, parent)
			equal(t, "restored", contents(t, dir), inside)
			put(t, dir, c.now)
			for _, w := range []*Workspace{w, open(t, dir, m)} { // a job that goes on, and one that finds the folder
				s, err := w.TakeSnapshot(ctx, SnapshotRequest{Parents: []wire.ID{parent}, When: when})
				var e *FolderError
				if at, fails := strings.CutPrefix(c.want, "!"); fails {
					if !errors.As(err, &e) || e.Path != at || !errors.Is(err, ErrLink) {
						t.Errorf("%v", err)
					}
					continue
				}
				must(t, err)
				if changes(s) != c.want {
					t.Errorf("changes %s, skipped %v", changes(s), s.Skipped)
				}
				if s.Unchanged {
					continue
				}
				objs := wire.Objects{}
				for _, o := range s.Objects {
					objs.Add(o.Object)
				}
				again, err := RebuildSnapshot(ctx, m, []wire.ID{parent}, s.Tree, objs)
				must(t, err)
				if changes(again) != c.want {
					t.Errorf("rebuilt: %s", changes(again))
				}
				to := t.TempDir()
				must(t, w.CopyTo(ctx, s.Commit, to)) // before it is pushed, as checks do
				noLinkOut(t, to)
			}
		})
	}
}

// TestLeftOut: a restore says what it left out.
func TestLeftOut(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	for want, tree := range map[string]node{
		"": rawTree(m, raw("f", blob(m, filemode.Regular, "x")), raw("l", blob(m, filemode.Symlink, "f"))),
		"not in the agents' folder: 1 submodule (vendor/lib); 1 link out of the repository (tz)": rawTree(m, raw("tz", blob(m, filemode.Symlink, "/UTC")),
			raw("vendor", rawTree(m, raw("lib", aSubmodule)))),
		"not in the agents' folder: 4 submodules (a, b�[2J, c, …); 2 links out of the repository (x, y)": rawTree(m, raw("a", aSubmodule), raw("b\x1b[2J", aSubmodule), raw("c", aSubmodule),
			raw("d", aSubmodule), raw("x", blob(m, filemode.Symlink, "/")), raw("y", blob(m, filemode.Symlink, "x"))),
	} {
		w := open(t, t.TempDir(), m)
		restore(t, w, rawCommit(t, m, tree.id))
		if got := DescribeLeftOut(w.ListLeftOut()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

var aSubmodule = node{filemode.Submodule, plumbing.NewHash("1111111111111111111111111111111111111111")}

// TestInsideSubmodule: what changes in a submodule's folder is no change, and is named; what was
// there before isn't.
func TestInsideSubmodule(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	parent := rawCommit(t, m, rawTree(m, raw("k", blob(m, filemode.Regular, "x")), raw("v", rawTree(m, raw("lib", aSubmodule)))).id)
	for name, c := range map[string]struct {
		before, now files
		want        []Skipped
	}{
		"nothing":                      {},
		"what was there":               {files{"v/lib/a": "1", "v/lib/d/b": "1"}, nil, nil},
		"a new file":                   {nil, files{"v/lib/a": "1"}, []Skipped{{"v/lib/a", "it lies in the submodule v/lib"}}},
		"changed, removed, added":      {files{"v/lib/a": "1", "v/lib/d/b": "1"}, files{"v/lib/a": "2", "v/lib/d": "\x00", "v/lib/e": "1"}, []Skipped{{"v/lib/a", "it lies in the submodule v/lib, like 2 more changes"}}},
		"all of it":                    {files{"v/lib/a": "1"}, files{"v": "\x00"}, []Skipped{{"v/lib/a", "it lies in the submodule v/lib"}}},
		"what it ignores":              {files{"v/lib/.gitignore": "out/\n"}, files{"v/lib/out/a": "1"}, nil},
		"a file in its place":          {files{"v/lib/": ""}, files{"v/lib": "f"}, []Skipped{{"v/lib", "it stands in the place of the submodule v/lib"}}},
		"a file in its folder's place": {files{"v/lib/": ""}, files{"v": "f"}, []Skipped{{"v", "it stands in the place of the submodule v/lib"}}},
		"a link in its place":          {files{"v/lib/": ""}, files{"v/lib": "-> ../k"}, []Skipped{{"v/lib", "it stands in the place of the submodule v/lib"}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, c.before)
			w := open(t, dir, m)
			restore(t, w, parent)
			put(t, dir, c.now)
			for range 2 {
				s := snapshot(t, w, parent)
				if !s.Unchanged || !slices.Equal(s.Skipped, c.want) {
					t.Errorf("%v, changes %s", s.Skipped, changes(s))
				}
			}
			restore(t, w, parent)
			if s := snapshot(t, w, parent); !s.Unchanged || len(s.Skipped) != 0 {
				t.Errorf("the next role is told of it: %v", s.Skipped)
			}
		})
	}
}

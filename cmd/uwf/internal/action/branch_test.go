package action

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// entry is a file of a repository that is made by hand: what git would not make too.
type entry struct {
	mode filemode.FileMode
	data string
}

// plain are ordinary files.
func plain(files map[string]string) map[string]entry {
	out := map[string]entry{}
	for name, data := range files {
		out[name] = entry{filemode.Regular, data}
	}
	return out
}

// repository is a remote whose branch main has these files.
func repository(t *testing.T, o wiretest.MemoryOptions, files map[string]entry) *wiretest.Memory {
	t.Helper()
	m := wiretest.NewMemory(o)
	tree := addTree(t, m, files)
	data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: tree, Author: someone(), Committer: someone(), Message: "x\n"})
	if err != nil {
		t.Fatal(err)
	}
	c := wire.NewObject(plumbing.CommitObject, data)
	m.AddObjects(c)
	m.SetRef("refs/heads/main", c.ID)
	return m
}

func someone() gitobj.Signature {
	return gitobj.Signature{Name: "a", Email: "a@example.com", When: time.Unix(1e9, 0).UTC()}
}

func addTree(t *testing.T, m *wiretest.Memory, files map[string]entry) wire.ID {
	t.Helper()
	below := map[string]map[string]entry{}
	var list []gitobj.Entry
	for name, e := range files {
		dir, rest, nested := strings.Cut(name, "/")
		if nested {
			if below[dir] == nil {
				below[dir] = map[string]entry{}
			}
			below[dir][rest] = e
			continue
		}
		o := wire.NewObject(plumbing.BlobObject, []byte(e.data))
		if e.mode != filemode.Submodule {
			m.AddObjects(o)
		}
		list = append(list, gitobj.Entry{Name: name, Mode: e.mode, ID: o.ID})
	}
	for dir, files := range below {
		list = append(list, gitobj.Entry{Name: dir, Mode: filemode.Dir, ID: addTree(t, m, files)})
	}
	data, err := gitobj.EncodeTree(list)
	if err != nil {
		t.Fatal(err)
	}
	o := wire.NewObject(plumbing.TreeObject, data)
	m.AddObjects(o)
	return o.ID
}

// copied are the files that a job gets, with their modes.
func copied(t *testing.T, remote wire.Remote, guess, settings string) (map[string]string, error) {
	t.Helper()
	b, err := openBranch(t.Context(), remote, guess)
	if err != nil {
		return nil, err
	}
	dir := t.TempDir()
	err = b.copyTo(t.Context(), dir, settings)
	out := map[string]string{}
	werr := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		out[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if werr != nil {
		t.Fatal(werr)
	}
	return out, err
}

func TestCopy(t *testing.T) {
	files := plain(map[string]string{
		".uwf/config.yaml": "a", ".uwf/workflows/x.yaml": "b", ".uwf/workflows/deep/er/y.md": "c", ".workflow/old.yaml": "d", ".workflows/older.yaml": "e",
		"ci/uwf.yaml": "f", "ci/more.txt": "g", "src/main.go": "h", "README.md": "i", ".uwfx/no": "j",
	})
	want := map[string]string{
		".uwf/config.yaml": "a", ".uwf/workflows/x.yaml": "b", ".uwf/workflows/deep/er/y.md": "c", ".workflow/old.yaml": "d", ".workflows/older.yaml": "e",
	}
	elsewhere := maps.Clone(want)
	elsewhere["ci/uwf.yaml"], elsewhere["ci/more.txt"] = "f", "g"
	for _, o := range []wiretest.MemoryOptions{{Atomic: true}, {NoFilter: true}} {
		m := repository(t, o, files)
		for guess, settings := range map[string]string{"main": defaultConfig, "": "ci/uwf.yaml", "gone": defaultConfig, "a b": defaultConfig} {
			expect := want
			if settings != defaultConfig {
				expect = elsewhere
			}
			if got, err := copied(t, m, guess, settings); err != nil || !maps.Equal(got, expect) {
				t.Errorf("%+v, guess %q: %v, %v", o, guess, got, err)
			}
		}
	}
	if got, err := copied(t, repository(t, wiretest.MemoryOptions{}, plain(map[string]string{"README.md": "x"})), "main", defaultConfig); err != nil || len(got) != 0 {
		t.Errorf("a repository without .uwf: %v, %v", got, err)
	}
}

func TestCopyKeepsPrograms(t *testing.T) {
	m := repository(t, wiretest.MemoryOptions{}, map[string]entry{".uwf/agent.sh": {filemode.Executable, "#!/bin/sh\n"}, ".uwf/config.yaml": {filemode.Regular, ""}})
	b, err := openBranch(t.Context(), m, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := b.copyTo(t.Context(), dir, defaultConfig); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"agent.sh": 0o100, "config.yaml": 0} {
		info, err := os.Stat(filepath.Join(dir, ".uwf", name))
		if err != nil || info.Mode()&0o100 != want || info.Mode()&0o022 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// What a default branch may hold and no job takes.
func TestCopyRefuses(t *testing.T) {
	deep := strings.Repeat("d/", maxDepth+1)
	many := map[string]entry{}
	for i := range maxFiles + 1 {
		many[path.Join(".uwf", string(rune('a'+i%26)), strings.Repeat("x", i/26+1))] = entry{filemode.Regular, "x"}
	}
	for what, tt := range map[string]struct {
		files map[string]entry
		want  string
	}{
		"a link":           {map[string]entry{".uwf/config.yaml": {filemode.Symlink, "/etc/passwd"}}, "symbolic link"},
		"a linked folder":  {map[string]entry{".uwf": {filemode.Symlink, "/etc"}}, "symbolic link"},
		"a submodule":      {map[string]entry{".uwf": {filemode.Submodule, "x"}}, "no file and no folder"},
		"a large file":     {plain(map[string]string{".uwf/x": strings.Repeat("x", maxFile+1)}), "larger than"},
		"many files":       {many, "more than"},
		"a deep folder":    {plain(map[string]string{".uwf/" + deep + "x": ""}), "deep"},
		"an empty tree":    {nil, ""},
		"only other files": {plain(map[string]string{"a": ""}), ""},
	} {
		_, err := copied(t, repository(t, wiretest.MemoryOptions{}, tt.files), "main", defaultConfig)
		if tt.want == "" && err == nil {
			continue
		}
		if err == nil || tt.want == "" || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), ".uwf") {
			t.Errorf("%s: %v", what, err)
		}
	}
	parts := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"} {
		parts[".uwf/"+name] = strings.Repeat(name, maxFile)
	}
	if _, err := copied(t, repository(t, wiretest.MemoryOptions{}, plain(parts)), "main", defaultConfig); err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("17 MiB: %v", err)
	}
}

// Trees that git would not write: names that lead out of the folder.
func TestCopyHostileNames(t *testing.T) {
	for _, name := range []string{"..", ".", "a/b", ".git", ".GIT", "git~1", ".git ", "a\x00b"} {
		m := wiretest.NewMemory(wiretest.MemoryOptions{})
		blob := wire.NewObject(plumbing.BlobObject, []byte("x"))
		inner := wire.NewObject(plumbing.TreeObject, append([]byte("100644 "+name+"\x00"), blob.ID[:]...))
		outer := wire.NewObject(plumbing.TreeObject, append([]byte("40000 .uwf\x00"), inner.ID[:]...))
		data, err := gitobj.EncodeCommit(gitobj.Commit{Tree: outer.ID, Author: someone(), Committer: someone(), Message: "x\n"})
		if err != nil {
			t.Fatal(err)
		}
		c := wire.NewObject(plumbing.CommitObject, data)
		m.AddObjects(blob, inner, outer, c)
		m.SetRef("refs/heads/main", c.ID)
		got, err := copied(t, m, "main", defaultConfig)
		if err == nil || len(got) > 0 {
			t.Errorf("%q: %v, %v", name, got, err)
		}
	}
}

func TestNoDefaultBranch(t *testing.T) {
	_, err := openBranch(t.Context(), wiretest.NewMemory(wiretest.MemoryOptions{}), "main")
	if app.ExitCodeOf(err) != 2 || !strings.Contains(err.Error(), "push a first commit") {
		t.Errorf("an empty repository: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := repository(t, wiretest.MemoryOptions{}, plain(map[string]string{"a": ""}))
	if _, err := openBranch(ctx, m, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	m.SetRef("refs/heads/trunk", m.Refs()["refs/heads/main"])
	m.SetHead("refs/heads/trunk")
	b, err := openBranch(t.Context(), m, "main") // the event was made before the branch was renamed
	if err != nil || b.Name != "trunk" {
		t.Errorf("renamed: %+v, %v", b, err)
	}
}

func TestWorkflowText(t *testing.T) {
	m := repository(t, wiretest.MemoryOptions{}, map[string]entry{
		".github/workflows/uwf.yml": {filemode.Regular, "jobs: {}"}, ".github/workflows/link.yml": {filemode.Symlink, "uwf.yml"}, ".github/big.png": {filemode.Regular, "x"},
	})
	b, err := openBranch(t.Context(), m, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b.workflowText(t.Context(), forge.GitHub, "uwf.yml")); got != "jobs: {}" {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"none.yml", "link.yml", "", "big.png"} {
		if got := b.workflowText(t.Context(), forge.GitHub, name); name != "link.yml" && got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Where no variable names the workflow's file, it is the one that calls itself what the
// variable says: of the folder that the forge reads, and if there is one only.
func TestWorkflowNamed(t *testing.T) {
	const hub, own = ".github/workflows/", ".gitea/workflows/"
	for name, c := range map[string]struct {
		files   map[string]string
		flavour forge.Flavour
		want    string
	}{
		"the one":             {map[string]string{hub + "a.yml": "name: ci\n", hub + "b.yaml": "name: uwf\njobs: {}\n"}, forge.Gitea, "b.yaml"},
		"two":                 {map[string]string{hub + "a.yml": "name: uwf\n", hub + "b.yml": "name: uwf\nx: 1\n"}, forge.Gitea, ""},
		"the same file twice": {map[string]string{hub + "a.yml": "name: uwf\n", hub + "b.yml": "name: uwf\n"}, forge.Gitea, ""},
		"none":                {map[string]string{hub + "uwf.yml": "name: agents\n"}, forge.Gitea, ""},
		"Gitea's own folder":  {map[string]string{hub + "a.yml": "name: uwf\n", own + "b.yml": "name: uwf\n"}, forge.Gitea, "b.yml"},
		"only that is read":   {map[string]string{hub + "a.yml": "name: uwf\n", own + "b.yml": "name: ci\n"}, forge.Gitea, ""},
		"not by GitHub":       {map[string]string{hub + "a.yml": "name: uwf\n", own + "b.yml": "name: uwf\n"}, forge.GitHub, "a.yml"},
		"Forgejo's":           {map[string]string{hub + "a.yml": "name: uwf\n", ".forgejo/workflows/c.yml": "name: uwf\n"}, forge.Gitea, "c.yml"},
		"no workflow file":    {map[string]string{hub + "notes.txt": "name: uwf\n", hub + "more/a.yml": "name: uwf\n"}, forge.Gitea, ""},
		"another one is odd":  {map[string]string{hub + "a.yml": "name: [", hub + "b.yml": "name: uwf\n", hub + "c.yml": strings.Repeat("#", maxFile) + "\nname: uwf\n"}, forge.Gitea, "b.yml"},
		"no folder":           {map[string]string{"README": "name: uwf\n"}, forge.Gitea, ""},
		"a file in its place": {map[string]string{".github": "name: uwf\n"}, forge.Gitea, ""},
	} {
		b, err := openBranch(t.Context(), repository(t, wiretest.MemoryOptions{}, plain(c.files)), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := b.workflowNamed(t.Context(), c.flavour, "uwf"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A job's definitions are files of the default branch, by name, and nothing else.
func TestDefinitions(t *testing.T) {
	const flow = "name: %\ndescription: d\nroles: {dev: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}}}\n" +
		"graph: {$START: {_: {role: dev, prompt: go}}, dev: {done: {role: $END, prompt: bye}}}\n"
	top := t.TempDir()
	root := filepath.Join(top, "root")
	write := func(name, text string) {
		t.Helper()
		full := filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("root/.uwf/workflows/fix.yaml", strings.ReplaceAll(flow, "%", "fix"))
	write("outside.yaml", strings.ReplaceAll(flow, "%", "outside"))
	f := app.NewAt(root, []string{"HOME=" + top}, app.IO{})
	f.Job = &app.Job{Remote: "file:///nowhere", Dialed: wiretest.NewMemory(wiretest.MemoryOptions{}), Root: root, Config: defaultConfig}
	d := newDefinitions(f, "main")
	got, err := d.Resolve(t.Context(), "")
	if err != nil || got.Definition.Name != "fix" || len(got.Nodes) == 0 || !got.Hash.Valid() {
		t.Errorf("the only one: %+v, %v", got, err)
	}
	for _, name := range []string{"../outside.yaml", "../../outside", filepath.Join(top, "outside.yaml"), "outside", string(got.Hash), ".uwf/workflows/fix.yaml", "fixx"} {
		if _, err := d.Resolve(t.Context(), name); app.ExitCodeOf(err) != 2 || !strings.Contains(err.Error(), "default branch") {
			t.Errorf("%s: %v", name, err)
		}
	}
	write("root/.uwf/workflows/solve-issue.yaml", strings.ReplaceAll(flow, "%", "solve-issue"))
	if got, err := d.Resolve(t.Context(), ""); err != nil || got.Definition.Name != "solve-issue" {
		t.Errorf("the usual one: %+v, %v", got, err)
	}
	write("root/.uwf/workflows/broken.yaml", "name: broken\n")
	if _, err := d.Resolve(t.Context(), "broken"); err == nil {
		t.Error("a broken definition is taken")
	}
	files, err := d.r.Files()
	if names := slices.Sorted(maps.Keys(files)); err != nil || !slices.Equal(names, []string{"broken", "fix", "solve-issue"}) {
		t.Errorf("%v, %v", names, err)
	}
}

package workspace

import (
	"bytes"
	"cmp"
	"context"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/gitserver"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/memtree"
	"github.com/united-workforce/uwf/internal/gitservertest"
	"github.com/united-workforce/uwf/internal/testmode"
)

var when = time.Unix(1700000000, 0).UTC()

// repo is a bare repository with a remote to it and native git beside it.
type repo struct {
	t   testing.TB
	url string
	wire.Remote
}

// runGit runs native git with nothing of this machine's configuration.
func runGit(t testing.TB, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(t.TempDir(), "home"), "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t",
		"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000",
	}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s%s", strings.Join(args, " "), err, stderr.String(), out.String())
	}
	return strings.TrimSpace(out.String())
}

// newRepo makes a bare repository that is reached over "http" or "file", or over
// "old": a server of protocol version 0 that filters nothing and gives only what
// refs point to.
func newRepo(t testing.TB, over string) *repo {
	t.Helper()
	testmode.NeedGit(t)
	root := t.TempDir()
	dir := filepath.Join(root, "r.git")
	url := "file://" + dir
	if over != "file" {
		if err := gitserver.Available(""); err != nil {
			t.Skip(err)
		}
		var o gitserver.Options
		if over == "old" {
			o = oldServer()
		}
		s, err := gitservertest.Serve(root, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		url = s.URL + "/r.git"
	}
	must(t, gitservertest.MakeBare(dir, "main"))
	if over == "file" {
		config, err := os.OpenFile(filepath.Join(dir, "config"), os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		_, err = config.WriteString("[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n")
		must(t, err)
		must(t, config.Close())
	}
	r, err := wire.Dial(url, wire.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &repo{t: t, url: dir, Remote: r}
}

func oldServer() gitserver.Options {
	return gitserver.Options{
		Config: map[string]string{"uploadpack.allowFilter": "false", "uploadpack.allowAnySHA1InWant": "false"},
		Middleware: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				q.Header.Del("Git-Protocol")
				next.ServeHTTP(w, q)
			})
		},
	}
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	return runGit(r.t, r.url, "", args...)
}

// commit has native git commit the content of a folder, ignoring nothing.
func (r *repo) commit(dir string, parents ...string) wire.ID {
	r.t.Helper()
	r.git("--work-tree="+dir, "-c", "core.bare=false", "add", "-A", "-f", ".")
	tree := r.git("write-tree")
	must(r.t, os.Remove(filepath.Join(r.url, "index")))
	args := []string{"commit-tree", "-m", "fixture", tree}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	id := r.git(args...)
	r.git("update-ref", "refs/heads/c-"+id, id)
	return plumbing.NewHash(id)
}

// push sends a snapshot to a branch.
func push(t testing.TB, r wire.Remote, s Snapshot, branch string, old wire.ID) {
	t.Helper()
	_, err := r.Push(context.Background(), wire.PushRequest{
		Updates: []wire.RefUpdate{{Name: "refs/heads/" + branch, Old: old, New: s.Commit}}, Objects: s.Objects,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// findPath returns the entry at a path, or nil.
func findPath(d *memtree.Dir, path string) *memtree.Entry {
	var e *memtree.Entry
	for part := range strings.SplitSeq(path, "/") {
		e = d.FindEntry(part)
		d = e.AsFolder()
	}
	return e
}

// open opens a workspace; limits above zero replace its own.
func open(t testing.TB, dir string, r wire.Remote, lower ...limits) *Workspace {
	t.Helper()
	w, err := Open(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lower {
		w.most.file, w.most.total = cmp.Or(l.file, w.most.file), cmp.Or(l.total, w.most.total)
		w.most.files, w.most.ignoreSteps = cmp.Or(l.files, w.most.files), cmp.Or(l.ignoreSteps, w.most.ignoreSteps)
	}
	return w
}

func snapshot(t testing.TB, w *Workspace, parents ...wire.ID) Snapshot {
	t.Helper()
	s, err := w.TakeSnapshot(context.Background(), SnapshotRequest{Parents: parents, Message: "m\n", When: when})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func restore(t testing.TB, w *Workspace, commit wire.ID) {
	t.Helper()
	if err := w.Restore(context.Background(), commit); err != nil {
		t.Fatal(err)
	}
}

// files maps paths to contents: a trailing "*" of a path makes it executable,
// a content "-> x" a link to x, a path with a trailing slash an empty folder.
type files map[string]string

// put writes files below dir; "" as content "\x00" removes.
func put(t testing.TB, dir string, fs files) {
	t.Helper()
	paths := make([]string, 0, len(fs))
	for p := range fs {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	for _, p := range paths {
		if fs[p] == "\x00" {
			must(t, os.RemoveAll(filepath.Join(dir, p)))
		}
	}
	for _, p := range paths {
		content := fs[p]
		path := filepath.Join(dir, strings.TrimSuffix(p, "*"))
		if content == "\x00" {
			continue
		}
		must(t, os.RemoveAll(path))
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		target, link := strings.CutPrefix(content, "-> ")
		switch {
		case strings.HasSuffix(p, "/"):
			must(t, os.MkdirAll(path, 0o755))
		case link:
			must(t, os.Symlink(target, path))
		case strings.HasSuffix(p, "*"):
			must(t, os.WriteFile(path, []byte(content), 0o755))
		default:
			must(t, os.WriteFile(path, []byte(content), 0o644))
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// contents is the inverse of put, without empty folders and without .git.
func contents(t testing.TB, dir string) files {
	t.Helper()
	out := files{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		must(t, err)
		switch {
		case d.Name() == ".git" && d.IsDir() && rel != ".":
			return fs.SkipDir
		case d.IsDir():
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			must(t, err)
			out[rel] = "-> " + target
		case d.Type() == 0:
			data, err := os.ReadFile(path)
			must(t, err)
			info, err := d.Info()
			must(t, err)
			if info.Mode()&0o100 != 0 {
				rel += "*"
			}
			out[rel] = string(data)
		default:
			out[rel] = d.Type().String()
		}
		return nil
	})
	must(t, err)
	return out
}

func equal(t testing.TB, what string, got, want files) {
	t.Helper()
	for p, c := range want {
		if g, ok := got[p]; !ok {
			t.Errorf("%s: %s is missing", what, p)
		} else if g != c {
			t.Errorf("%s: %s is %.60q, want %.60q", what, p, g, c)
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s: %s should not be there", what, p)
		}
	}
}

package worker

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/agents/command"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

// forge is where the repositories of libraries are.
const forge = "https://forge.example/"

// libraries are repositories that git made, with a shop among them which has others as submodules.
type libraries struct {
	*testing.T
	dir     string // of all repositories
	w       *Worker
	notices []string // to the person
}

func newLibraries(t *testing.T) *libraries {
	t.Helper()
	l := &libraries{T: t, dir: t.TempDir()}
	l.restartWorker()
	return l
}

// restartWorker makes the worker of a new process on the same machine.
func (l *libraries) restartWorker() {
	l.Helper()
	f := &app.Factory{IO: app.IO{Out: io.Discard, Err: io.Discard}, Environ: []string{"HOME=" + l.dir, "PATH=" + os.Getenv("PATH"), "UWF_HOME=" + l.dir + "/home"}, Dir: l.dir, Now: time.Now}
	f.Job = &app.Job{Remote: forge + "shop"}
	f.DialWire = func(url string, o wire.DialOptions) (wire.Remote, error) { // the server's repositories lie here
		return wire.Dial(filepath.Join(l.dir, strings.TrimPrefix(url, forge)), o)
	}

	remote, err := f.Dial(f.Job.Remote)
	work := filepath.Join(l.dir, "work")
	if err = errors.Join(err, os.MkdirAll(work, 0o700)); err != nil {
		l.Fatal(err)
	}
	ws, err := workspace.Open(work, remote)
	if err != nil {
		l.Fatal(err)
	}

	l.w = &Worker{Stepper: &step.Stepper{}, f: f, config: &config.Config{}}
	l.w.folder = &folder{
		store: gitcas.Open(remote, gitcas.Options{}), dir: work, ws: ws, thread: someThread,
		submodules: &submodules{w: l.w, url: forge + "shop", images: filepath.Join(l.dir, "home/images/store")},
		notice:     func(text string) { l.notices = append(l.notices, text) },
	}
}

func (l *libraries) runGit(repo string, args ...string) string {
	l.Helper()
	cmd := exec.CommandContext(l.Context(), "git", append([]string{"-C", filepath.Join(l.dir, repo)}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+l.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// pin is a submodule: its url and its commit.
type pin struct{ url, id string }

// commitRepo makes a commit of a repository with these files and submodules, and no others.
func (l *libraries) commitRepo(repo string, has files, modules map[string]pin) string {
	l.Helper()
	dir := filepath.Join(l.dir, repo)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		l.Fatal(err)
	}
	l.runGit(repo, "init", "-q", "-b", "main")
	l.runGit(repo, "rm", "-rqf", "--cached", "--ignore-unmatch", ".")

	has = maps.Clone(has)
	for path, m := range modules {
		has[".gitmodules"] += fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = %s\n", path, path, m.url)
		if m.url == "" {
			has[".gitmodules"] = "# none\n"
		}
	}
	for path, text := range has {
		at := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			l.Fatal(err)
		}
		l.runGit(repo, "add", "-f", path)
	}

	links := []string{"update-index", "--add"}
	for path, m := range modules {
		links = append(links, "--cacheinfo", "160000,"+m.id+","+path)
	}
	l.runGit(repo, links...)
	l.runGit(repo, "commit", "-q", "--allow-empty", "-m", "x")
	return l.runGit(repo, "rev-parse", "HEAD")
}

type files map[string]string

// restoreFolder makes the folder equal to a commit, as a step does.
func (l *libraries) restoreFolder(commit, base string) []workspace.LeftOut {
	l.Helper()
	if err := l.w.folder.Restore(l.Context(), plumbing.NewHash(commit), plumbing.NewHash(base)); err != nil {
		l.Fatal(err)
	}
	return l.w.folder.ListLeftOut()
}

// readFolder returns the files below a folder.
func (l *libraries) readFolder(dir string) files {
	l.Helper()
	found := files{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		if filepath.Base(name) != ".gitmodules" {
			found[name] = string(b)
		}
		return err
	})
	if err != nil {
		l.Fatal(err)
	}
	return found
}

func (l *libraries) expectFiles(what string, got, want files) {
	l.Helper()
	if !maps.Equal(got, want) {
		l.Errorf("%s: %v, want %v", what, got, want)
	}
}

const nowhere = "5555555555555555555555555555555555555555"

// TestMovedSubmodule: the next step's folder has nothing of the commit before, and what an agent wrote
// there is in no commit.
func TestMovedSubmodule(t *testing.T) {
	l := newLibraries(t)
	deep := l.commitRepo("deep", files{"d": "1"}, nil)
	first := l.commitRepo("lib", files{"a": "1", "gone": "1", ".gitignore": "out/\n"}, map[string]pin{"deep": {"../deep", deep}})
	second := l.commitRepo("lib", files{"a": "2", ".gitignore": "out/\n"}, map[string]pin{"deep": {"../deep", deep}})
	base := l.commitRepo("shop", files{"f": "1"}, map[string]pin{"lib": {"../lib", first}})
	moved := l.commitRepo("shop", files{"f": "1"}, map[string]pin{"lib": {"../lib", second}})
	dir := l.w.folder.dir
	snapshot := func(of string) workspace.Snapshot {
		t.Helper()
		s, err := l.w.folder.TakeSnapshot(t.Context(), workspace.SnapshotRequest{Parents: []wire.ID{plumbing.NewHash(of)}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}

	l.restoreFolder(base, base)
	if s := snapshot(base); !s.Unchanged || len(s.Skipped) > 0 {
		t.Errorf("nothing was written: %+v", s)
	}

	for name, text := range map[string]string{"lib/a": "mine", "lib/new": "1", "lib/out/o": "1", "lib/deep/.git/HEAD": "x", "lib/deep/d": "mine"} {
		writeBelow(t, dir, name, text)
	}
	if s := snapshot(base); !s.Unchanged || len(s.Skipped) != 1 || s.Skipped[0].Path != "lib/a" || s.Skipped[0].Why != "it lies in the submodule lib, like 2 more changes" {
		t.Errorf("%+v", s.Skipped)
	}

	l.restoreFolder(moved, base)
	l.expectFiles("moved", l.readFolder(dir), files{"f": "1", "lib/a": "2", "lib/.gitignore": "out/\n", "lib/deep/d": "1"})

	writeBelow(t, dir, "lib/mine", "1")
	lost := l.commitRepo("shop", files{"f": "1"}, map[string]pin{"lib": {"../lib", nowhere}})
	left := l.restoreFolder(lost, base)
	l.expectFiles("moved to a commit that is not there", l.readFolder(dir), files{"f": "1"})
	if got := workspace.DescribeLeftOut(left); !strings.Contains(got, nowhere) || !strings.Contains(got, "lib: fetch ") || !strings.Contains(got, ": not found") {
		t.Error(got)
	}

	l.restoreFolder(base, base)
	l.expectFiles("back", l.readFolder(dir), files{"f": "1", "lib/a": "1", "lib/gone": "1", "lib/.gitignore": "out/\n", "lib/deep/d": "1"})
	if s := snapshot(base); !s.Unchanged || len(s.Skipped) > 0 {
		t.Errorf("the next role is told of it: %+v", s.Skipped)
	}

	l.restoreFolder(lost, base)
	none := l.commitRepo("shop", files{"f": "1", "lib/own": "1"}, nil)
	if got := workspace.DescribeLeftOut(l.restoreFolder(none, base)); got != "" {
		t.Errorf("of another commit: %s", got)
	}
	l.expectFiles("no submodule any more", l.readFolder(dir), files{"f": "1", "lib/own": "1"})
}

func writeBelow(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestSubmodulesOfNamedFolder: in a folder that was named, too, each role begins with a submodule's
// committed files. Files that were there before the first role stay.
func TestSubmodulesOfNamedFolder(t *testing.T) {
	l := newLibraries(t)
	lib := l.commitRepo("lib", files{"a": "1"}, nil)
	shop := l.commitRepo("shop", files{"f": "1"}, map[string]pin{"lib": {"../lib", lib}, "own": {"../lib", lib}})
	l.w.o.Workspace = l.w.folder.dir
	writeBelow(t, l.w.folder.dir, "own/mine", "1")

	for range 2 {
		left := l.restoreFolder(shop, shop)
		l.expectFiles("the folder", l.readFolder(l.w.folder.dir), files{"f": "1", "lib/a": "1", "own/mine": "1"})
		if got := workspace.DescribeLeftOut(left); got != "not in the agents' folder: 1 submodule (own: its folder is not empty: remove its files)" {
			t.Error(got)
		}
		writeBelow(t, l.w.folder.dir, "lib/a", "2")
		writeBelow(t, l.w.folder.dir, "lib/new", "1")
	}
}

// TestSubmoduleBounds: no more than so many are laid, and no deeper.
func TestSubmoduleBounds(t *testing.T) {
	l := newLibraries(t)
	id := l.commitRepo("r0", files{"f": "0"}, nil)
	many := map[string]pin{}
	for i := range maxSubmodules + 2 {
		many[fmt.Sprintf("m%03d", i)] = pin{"../r0", id}
	}
	wide := l.commitRepo("shop", files{"f": "w"}, many)
	if got := workspace.DescribeLeftOut(l.restoreFolder(wide, wide)); !strings.HasPrefix(got, "not in the agents' folder: 2 submodules (m100: uwf fetches at most 100 submodules") {
		t.Error(got)
	}

	for i := range maxNesting + 1 {
		id = l.commitRepo(fmt.Sprintf("r%d", i+1), files{"f": fmt.Sprint(i + 1)}, map[string]pin{"d": {fmt.Sprintf("../r%d", i), id}})
	}
	deep := l.commitRepo("shop", files{"f": "s"}, map[string]pin{"d": {fmt.Sprintf("../r%d", maxNesting+1), id}})
	if got := workspace.DescribeLeftOut(l.restoreFolder(deep, deep)); !strings.HasPrefix(got, "not in the agents' folder: 1 submodule (d/d/d/d/d/d: uwf fetches at most") {
		t.Error(got)
	}
	if got := l.readFolder(l.w.folder.dir); got["d/d/d/d/d/f"] != "2" || len(got) != 6 {
		t.Error(got)
	}
}

// makePreparer makes one with a command, in the worker of this process.
func (l *libraries) makePreparer(line string) *preparer {
	l.Helper()
	self, err := os.Executable()
	if err != nil {
		l.Fatal(err)
	}
	l.w.config.Workspace = config.Workspace{Prepare: []string{line}, Submodules: true}
	runner := command.NewRunner(command.Options{Self: []string{self}, Environ: l.w.f.Environ, Now: l.w.f.Now})
	l.w.prepared = newPreparer(l.w, runner, filepath.Join(l.dir, "home"), "url")
	return l.w.prepared
}

// TestPrepareSubmodules: prepare commands find the files of submodules and can add others beside them.
// Another commit of a submodule needs another image.
func TestPrepareSubmodules(t *testing.T) {
	l := newLibraries(t)
	first := l.commitRepo("lib", files{"a": "1"}, nil)
	second := l.commitRepo("lib", files{"a": "2"}, nil)
	base := l.commitRepo("shop", files{"go.mod": "module m"}, map[string]pin{"lib": {"../lib", first}})
	moved := l.commitRepo("shop", files{"go.mod": "module m"}, map[string]pin{"lib": {"../lib", second}})
	p := l.makePreparer("mkdir -p lib/out && cp lib/a lib/out/made && echo spoilt > lib/a")
	images := map[string]bool{}

	for _, c := range []struct{ name, commit, has string }{{"base", base, "1"}, {"again", base, "1"}, {"moved", moved, "2"}, {"back", base, "1"}} {
		l.restoreFolder(c.commit, base)
		if _, err := p.Prepare(t.Context(), step.PrepareRequest{Base: plumbing.NewHash(base), From: plumbing.NewHash(c.commit), Time: time.Hour}); err != nil {
			t.Fatal(err)
		}
		images[p.image] = true
		l.expectFiles(c.name, l.readFolder(l.w.folder.dir), files{"go.mod": "module m", "lib/a": c.has, "lib/out/made": c.has})

		writeBelow(t, l.w.folder.dir, "lib/out/poison", "1")
		copied := t.TempDir()
		if err := errors.Join(l.w.folder.copyTo(t.Context(), plumbing.NewHash(c.commit), copied), p.fillTree(t.Context(), copied, nil)); err != nil {
			t.Fatal(err)
		}
		l.expectFiles(c.name+", copied", l.readFolder(copied), files{"go.mod": "module m", "lib/a": c.has, "lib/out/made": c.has})
	}

	if len(images) != 2 {
		t.Errorf("images: %v", images)
	}
}

// TestPrepareWithoutSubmodules: an image that was made without a submodule is not used after the
// submodule could be fetched.
func TestPrepareWithoutSubmodules(t *testing.T) {
	l := newLibraries(t)
	lib := l.commitRepo("lib", files{"a": "1"}, nil)
	base := plumbing.NewHash(l.commitRepo("shop", files{"go.mod": "module m", ".gitignore": "out\n"}, map[string]pin{"lib": {"../lib", lib}}))
	p := l.makePreparer("if test -e lib/a; then cp lib/a out; else echo without > out; fi")
	prepare := func() {
		t.Helper()
		l.restoreFolder(base.String(), base.String())
		if _, err := p.Prepare(t.Context(), step.PrepareRequest{Base: base, From: base, Time: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}

	away := filepath.Join(l.dir, "away")
	if err := os.Rename(filepath.Join(l.dir, "lib"), away); err != nil {
		t.Fatal(err)
	}
	prepare()
	l.expectFiles("without", l.readFolder(l.w.folder.dir), files{"go.mod": "module m", ".gitignore": "out\n", "out": "without\n"})

	if err := os.Rename(away, filepath.Join(l.dir, "lib")); err != nil {
		t.Fatal(err)
	}
	prepare()
	l.expectFiles("with", l.readFolder(l.w.folder.dir), files{"go.mod": "module m", ".gitignore": "out\n", "out": "1", "lib/a": "1"})
}

func TestSubmoduleAddresses(t *testing.T) {
	const base = "https://h.example/org/app.git"
	for address, want := range map[string]string{
		"../lib.git": "https://h.example/org/lib.git", "../../other/lib": "https://h.example/other/lib", "./lib": base + "/lib",
		"./../lib": "https://h.example/org/lib", "git@h.example:org/lib.git": "git@h.example:org/lib.git", "ssh://h.example/lib": "ssh://h.example/lib",
		"": "", "/srv/lib": "", "file:///srv/lib": "", "ext::sh -c x": "", "lib": "", "-u:x": "", "../../../../../../lib": "",
	} {
		if got, err := resolveAddress(base, address); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v", address, got, err)
		}
	}
	for base, want := range map[string]string{"git@h.example:app": "git@h.example:lib", "git@h.example:org/app": "git@h.example:org/lib", "/srv/app": "", "": ""} {
		if got, _ := resolveAddress(base, "../lib"); got != want {
			t.Errorf("%q: %q", base, got)
		}
	}
}

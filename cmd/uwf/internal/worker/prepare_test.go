package worker

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/united-workforce/uwf/agents/command"
	"github.com/united-workforce/uwf/agents/sandbox"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace"
)

const someThread = "01KN0000000000000000000001"

// preparer is one of a new process.
func (r *checkedRepo) preparer(lines ...string) *preparer {
	r.Helper()
	self, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	w := r.worker(config.Config{Workspace: config.Workspace{Prepare: lines}}, "")
	w.folder.store, w.folder.thread = gitcas.Open(r.remote, gitcas.Options{}), someThread
	runner := command.NewRunner(command.Options{Self: []string{self}, Environ: w.f.Environ, Now: w.f.Now})
	return newPreparer(w, runner, filepath.Join(r.home, ".uwf"), "url")
}

// prepare makes the folder equal to a commit and prepares it, as a step does.
func (r *checkedRepo) prepare(p *preparer, base, from wire.ID) (string, error) {
	r.Helper()
	if err := r.ws.Restore(r.Context(), from); err != nil {
		r.Fatal(err)
	}
	return p.Prepare(r.Context(), step.PrepareRequest{Base: base, From: from, Time: time.Hour})
}

// image prepares the folder and says where the image lies, as key/commit below a folder of images.
func (r *checkedRepo) image(p *preparer, base, from wire.ID) (key, commit string, own bool) {
	r.Helper()
	if _, err := r.prepare(p, base, from); err != nil {
		r.Fatal(err)
	}
	parts := strings.Split(strings.TrimPrefix(p.image, p.root()+"/"), "/")
	if own = parts[0] == ThreadImages; own {
		if parts[1] != someThread {
			r.Errorf("%s is another thread's", p.image)
		}
		parts = parts[2:]
	}
	return parts[0], parts[1], own
}

func (r *checkedRepo) read(name string) string {
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return "-"
	}
	return string(b)
}

const install = "mkdir -p node_modules && cp package-lock.json node_modules/lock && cat s*.sh > node_modules/script; echo ran >> ../../ran; sh scripts/setup.sh"

var prepared = map[string]string{".gitignore": "node_modules/\n/dist/\n/.env\n", "package-lock.json": "1", "script.sh": "base", "scripts/setup.sh": "true", "a": "1"}

// TestImages: which changes need another image, and whose that is.
func TestImages(t *testing.T) {
	for name, c := range map[string]struct {
		base, work map[string]string // what another base and a role changed
		lines      []string
		change     func(t *testing.T, w *Worker)
		key, own   bool // another key; the thread's own image
	}{
		"nothing":                        {},
		"another file":                   {work: map[string]string{"a": "2"}},
		"a script that is named nowhere": {work: map[string]string{"script.sh": "evil"}},
		"a lock file":                    {work: map[string]string{"package-lock.json": "2"}, key: true, own: true},
		"a manifest":                     {work: map[string]string{"package.json": "{}"}, key: true, own: true},
		"a manifest below":               {work: map[string]string{"web/app/go.mod": "module m"}, key: true, own: true},
		"a settings file of a tool":      {work: map[string]string{".npmrc": "ignore-scripts=false"}, key: true, own: true},
		"a script that is named":         {work: map[string]string{"scripts/setup.sh": "echo evil"}, key: true, own: true},
		"another base":                   {base: map[string]string{"a": "2"}},
		"a lock file of the base":        {base: map[string]string{"package-lock.json": "2"}, key: true},
		"another command":                {lines: []string{install + ";"}, key: true},
		"more commands":                  {lines: []string{install, "true"}, key: true},
		"another tool": {change: func(t *testing.T, w *Worker) {
			t.Helper()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "node"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			w.f.Environ = append(slices.Clone(w.f.Environ), "PATH="+dir+":"+os.Getenv("PATH"))
		}, key: true},
		"confined, with a HOME": {change: func(t *testing.T, w *Worker) {
			t.Helper()
			report := sandbox.Report{System: "linux", Landlock: 9}
			w.sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Report: &report})
		}, key: true},
		"a tool in the folder itself": {change: func(_ *testing.T, w *Worker) {
			w.f.Environ = append(slices.Clone(w.f.Environ), "PATH=node_modules/.bin::"+os.Getenv("PATH"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newCheckedRepo(t)
			base := r.commit(prepared)
			key, commit, own := r.image(r.preparer(install), base, base)
			if commit != base.String() || own || r.read("node_modules/script") != "base" {
				t.Fatalf("the first one: %s %v", commit, own)
			}
			if c.base != nil {
				base = r.commit(c.base)
			}
			work := base
			if c.work != nil {
				work = r.commit(c.work)
			}
			if c.lines == nil {
				c.lines = []string{install}
			}
			p := r.preparer(c.lines...)
			if c.change != nil {
				c.change(t, p.w)
			}
			key2, commit2, own2 := r.image(p, base, work)
			want := base
			if c.own {
				want = work
			}
			if (key2 != key) != c.key || own2 != c.own || commit2 != want.String() {
				t.Errorf("another key: %v, own: %v, of %s", key2 != key, own2, commit2)
			}
			if got := r.read("node_modules/script"); got != "base" && !c.own {
				t.Errorf("the shared image was made with %q", got)
			}
			if got := r.read("node_modules/lock"); got != r.read("package-lock.json") {
				t.Errorf("the image is of lock file %s", got)
			}
			// The next process has it at once.
			before := p.image
			if out, err := r.prepare(p, base, work); err != nil || out != "" || p.image != before {
				t.Errorf("made again: %q %v", out, err)
			}
		})
	}
}

// TestLay: what was prepared takes the place of what agents left in ignored files, never that of
// a commit's file or of what a person has in a folder of theirs.
func TestLay(t *testing.T) {
	const made = "mkdir -p node_modules dist && echo image | tee node_modules/m dist/d > .env"
	for name, c := range map[string]struct {
		work, left map[string]string // what a role committed, and left in ignored files
		named      bool
		want       map[string]string
	}{
		"pristine":                   {want: map[string]string{"node_modules/m": "image\n", "dist/d": "image\n", ".env": "image\n"}},
		"left by an agent":           {left: map[string]string{"node_modules/m": "evil", "node_modules/.bin/go": "evil", ".env": "evil", "sub/node_modules/x": "evil"}, want: map[string]string{"node_modules/m": "image\n", "node_modules/.bin/go": "-", ".env": "image\n", "sub/node_modules/x": "-"}},
		"ignores itself":             {left: map[string]string{"own/.gitignore": "*", "own/x": "evil"}, want: map[string]string{"own/x": "-", "own/.gitignore": "-"}},
		"committed":                  {work: map[string]string{".gitignore": "node_modules/\n/.env\n", "dist/d": "work"}, want: map[string]string{"dist/d": "work", "node_modules/m": "image\n"}},
		"a file now":                 {work: map[string]string{".gitignore": "/dist/\n/.env\n", "node_modules": "work"}, want: map[string]string{"node_modules": "work", "dist/d": "image\n"}},
		"not ignored any more":       {work: map[string]string{".gitignore": "node_modules/\n/.env\n"}, want: map[string]string{"dist/d": "-", "node_modules/m": "image\n"}},
		"a person's":                 {named: true, left: map[string]string{"node_modules/m": "mine", "node_modules/x": "mine", ".env": "mine"}, want: map[string]string{"node_modules/m": "mine", "node_modules/x": "mine", ".env": "mine", "dist/d": "image\n"}},
		"a person's of another kind": {named: true, left: map[string]string{".env/x": "mine"}, want: map[string]string{"dist/d": "image\n", ".env/x": "mine", "node_modules/m": "image\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newCheckedRepo(t)
			r.commit(prepared)
			base := r.commit(map[string]string{"make.sh": made})
			p := r.preparer("sh make.sh")
			r.image(p, base, base)
			work := base
			if err := errors.Join(os.RemoveAll(filepath.Join(r.dir, "node_modules")), os.RemoveAll(filepath.Join(r.dir, "dist")), os.RemoveAll(filepath.Join(r.dir, ".env"))); err != nil {
				t.Fatal(err)
			}
			if c.work != nil {
				work = r.commit(c.work)
			}
			for file, text := range c.left {
				path := filepath.Join(r.dir, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			if c.named {
				p.w.o.Workspace = r.dir
			}
			r.image(p, base, work)
			for file, want := range c.want {
				if got := r.read(file); got != want {
					t.Errorf("%s: %q, want %q", file, got, want)
				}
			}
			snap, err := r.ws.TakeSnapshot(t.Context(), workspace.SnapshotRequest{Parents: []wire.ID{work}, When: time.Unix(2, 0)})
			if err != nil || !snap.Unchanged {
				t.Errorf("the folder is not the commit's any more: %+v %v", snap, err)
			}
		})
	}
}

// TestPreparedPython: a virtual environment with an editable install works in each copy, and what
// names HOME names that of the run.
func TestPreparedPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("NOT TESTED: there is no Python here")
	}
	r := newCheckedRepo(t)
	base := r.commit(map[string]string{
		".gitignore": ".venv/\n*.egg-info/\n", "pytest.ini": "", "mypkg/__init__.py": "x = 1\n",
		"setup.py": "from setuptools import setup\nsetup(name='mypkg', version='1', packages=['mypkg'])\n",
	})
	p := r.preparer("python3 -m venv .venv && .venv/bin/python setup.py -q develop", `echo "$HOME" > .venv/home && ln -s "$HOME/tool" .venv/tool && echo "$PWD" > "$HOME/place"`)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	report := sandbox.Probe()
	if !report.Usable() {
		t.Skip("NOT TESTED: nothing can be confined here, and HOME is the user's")
	}
	p.w.sandbox = sandbox.New(sandbox.Options{Mode: sandbox.Auto, Self: []string{self}, Environ: p.w.f.Environ, Report: &report})
	p.runner = command.NewRunner(command.Options{Self: []string{self}, Environ: p.w.f.Environ, Now: p.w.f.Now, Sandbox: p.w.sandbox})
	output, err := r.prepare(p, base, base)
	if err != nil && strings.Contains(output, "ensurepip") {
		t.Skipf("NOT TESTED: Python makes no virtual environments here: %s", output)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	copied, home := filepath.Join(r.home, "check"), filepath.Join(r.home, "run/home")
	if err := errors.Join(os.Mkdir(copied, 0o700), r.ws.CopyTo(t.Context(), base, copied), p.fillTree(t.Context(), copied, nil)); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{r.dir, copied} {
		for n := range 2 { // the second time it is another run, with a HOME of its own
			home := home + strconv.Itoa(n) + filepath.Base(dir)
			if err := p.fillHome(t.Context(), home, dir); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/bin/sh", "-ec", `. .venv/bin/activate; command -v pip; cat .venv/home "$0/place"; readlink .venv/tool; pip --version >&2; cd /; python -c "import mypkg; print(mypkg.__file__)"`, home)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if want := dir + "/.venv/bin/pip\n" + home + "\n" + dir + "\n" + home + "/tool\npip "; err != nil || !strings.HasPrefix(string(out), want) || !strings.HasSuffix(string(out), dir+"/mypkg/__init__.py\n") {
				t.Errorf("%v: %s\nwant %s", err, out, want)
			}
		}
	}
	if got := p.usePython("python3 -m pytest", ""); got != ".venv/bin/python -m pytest" {
		t.Errorf("tests run by %s", got)
	}
	if got := p.usePython("python3 -m pytest", "web"); got != "python3 -m pytest" {
		t.Errorf("tests of another folder run by %s", got)
	}
}

// TestHostileImage: what a command leaves is kept as it is, reaches nothing outside, and changes
// no file of the commit.
func TestHostileImage(t *testing.T) {
	r := newCheckedRepo(t)
	outside := filepath.Join(r.home, "outside")
	if err := errors.Join(os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "f"), []byte("mine"), 0o600)); err != nil {
		t.Fatal(err)
	}
	base := r.commit(map[string]string{".gitignore": "node_modules/\n/dist\n/cache/\n", "src/f": "1", "src/g/h": "1", "b": "1"})
	p := r.preparer(
		"mkdir -p node_modules/.bin node_modules/m && echo 1 > node_modules/m/cli.js && ln -s ../m/cli.js node_modules/.bin/m && ln -s /etc/passwd node_modules/passwd && ln -s ../../../.. node_modules/up && ln -s nowhere node_modules/dead",
		"rm -r src b && ln -s '"+outside+"' src && ln -s '"+outside+"/f' b && ln -s '"+outside+"' dist",
		"mkfifo node_modules/pipe b.pipe && printf 1 > 'node_modules/a\nb' && printf 1 > \"$(printf 'node_modules/c\\nd')\" && mkdir -p cache/mod && echo 1 > cache/mod/f && chmod 500 cache/mod cache && chmod 400 node_modules/m/cli.js",
		"cd node_modules && for i in $(seq 150); do mkdir d && cd d; done && echo deep > f",
		"mkdir -p .git/hooks && echo 'echo evil' > .git/hooks/post-checkout; echo '*' > .gitignore; echo extra > extra")
	for range 2 { // the second time over what is there
		r.image(p, base, base)
		for file, want := range map[string]string{
			"src/f": "1", "src/g/h": "1", "b": "1", "node_modules/.bin/m": "1\n", "node_modules/c\nd": "1", "cache/mod/f": "1\n", "dist/f": "mine", "extra": "-",
			"node_modules/pipe": "-", "b.pipe": "-", ".git/hooks/post-checkout": "-", "node_modules/" + strings.Repeat("d/", 150) + "f": "deep\n",
		} {
			if got := r.read(file); got != want {
				t.Errorf("%q: %q, want %q", file, got, want)
			}
		}
		for link, want := range map[string]string{"node_modules/.bin/m": "../m/cli.js", "node_modules/passwd": "/etc/passwd", "node_modules/up": "../../../..", "node_modules/dead": "nowhere", "dist": outside} {
			if got, err := os.Readlink(filepath.Join(r.dir, link)); got != want {
				t.Errorf("%s: %q %v", link, got, err)
			}
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
			t.Errorf("outside: %v %v", left, err)
		}
	}
}

// TestPrepareFails: how a command ended, and that nothing of it is used.
func TestPrepareFails(t *testing.T) {
	for name, c := range map[string]struct {
		line  string
		time  time.Duration
		want  []string
		times int // more of them
	}{
		"exit code": {"echo x > node_modules; echo no such package >&2; exit 3", time.Hour, []string{`"echo x`, "(workspace.prepare)", "exit code 3", "no such package"}, 1},
		"hangs":     {"echo begun; sleep 600", time.Second, []string{"begun", "it had not ended after"}, 0},
		"is deaf":   {"trap '' TERM HUP; echo begun; while :; do sleep 600; done", time.Second, []string{"begun", "it had not ended after"}, 0},
		"no time":   {"sleep 600", -time.Hour, []string{"it had not ended after 1s"}, 0},
		"prints":    {"yes", time.Hour, []string{"it printed more than"}, 0},
		"no space":  {"mkdir node_modules && truncate -s 9P node_modules/big || truncate -s 7T node_modules/big", time.Hour, []string{"nine tenths of what is free"}, 0},
		"too deep":  {"mkdir node_modules; cd node_modules; for i in $(seq 300); do mkdir d && cd d; done", time.Hour, []string{"200 deep"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newCheckedRepo(t)
			base := r.commit(prepared)
			if err := r.ws.Restore(t.Context(), base); err != nil {
				t.Fatal(err)
			}
			p := r.preparer("echo first", c.line)
			for range c.times + 1 {
				out, err := p.Prepare(t.Context(), step.PrepareRequest{Base: base, From: base, Time: c.time})
				if err == nil || p.image != "" || !strings.HasPrefix(out, "$ echo first\nfirst\n$ ") || len(out) > 64<<10 {
					t.Errorf("%q %v", out, err)
				}
				for _, want := range c.want {
					if err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("%v, want %q", err, want)
					}
				}
			}
			if left, err := filepath.Glob(filepath.Join(p.root(), "*", "*")); err != nil || len(left) != 1 || filepath.Base(left[0]) != "lock" {
				t.Errorf("left: %v %v", left, err)
			}
		})
	}
}

// TestImageLock: one process makes an image while others wait, and what a killed one left half
// made is never used.
func TestImageLock(t *testing.T) {
	r := newCheckedRepo(t)
	base := r.commit(prepared)
	p := r.preparer(install)
	key, err := func() (string, error) {
		now, _, err := p.compareManifests(t.Context(), step.PrepareRequest{Base: base, From: base})
		return now, err
	}()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(p.root(), key)
	half := filepath.Join(folder, halfMade+"123")
	if err := errors.Join(os.MkdirAll(filepath.Join(half, imageTree, "node_modules"), 0o700), os.MkdirAll(filepath.Join(half, imageHome), 0o700),
		os.WriteFile(filepath.Join(half, imageTree, "node_modules", "half"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	other, err := lockImages(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockPause)
	defer cancel()
	if _, err := p.Prepare(ctx, step.PrepareRequest{Base: base, From: base, Time: time.Hour}); !errors.Is(err, context.DeadlineExceeded) || p.image != "" {
		t.Errorf("it did not wait: %v", err)
	}
	done := make(chan error)
	for range 2 {
		p := r.preparer(install)
		go func() {
			_, err := p.Prepare(t.Context(), step.PrepareRequest{Base: base, From: base, Time: time.Hour})
			done <- err
		}()
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) || r.read("node_modules/half") != "-" || r.read("node_modules/lock") != "1" {
		t.Errorf("what was half made is there: %v", err)
	}
	if names := findImages(folder); len(names) != 1 || names[0] != base.String() {
		t.Errorf("images: %q", names)
	}
}

// TestFindImages: the one that was used last comes first, and only images count.
func TestFindImages(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"old", "new", "mid", halfMade + "1"} {
		at := time.Unix(int64([]int{1, 3, 2, 4}[i]), 0)
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.Chtimes(filepath.Join(dir, name), at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if got := findImages(dir); !slices.Equal(got, []string{"new", "mid", "old"}) {
		t.Errorf("%q", got)
	}
	if got := findImages(filepath.Join(dir, "none")); got != nil {
		t.Errorf("%q", got)
	}
}

// TestOldImages: a new image takes the place of those that nobody has used for long.
func TestOldImages(t *testing.T) {
	for unused, stays := range map[time.Duration]bool{imageLife - time.Hour: true, imageLife + time.Hour: false} {
		r := newCheckedRepo(t)
		first := r.commit(prepared)
		p := r.preparer(install)
		r.image(p, first, first)
		old := p.image
		at := time.Now().Add(-unused)
		second := r.commit(map[string]string{"a": "2"})
		if err := os.Chtimes(old, at, at); err != nil {
			t.Fatal(err)
		}
		r.image(p, second, second)
		if _, err := os.Stat(old); (err == nil) != stays || p.image == old {
			t.Errorf("unused for %s: %v", unused, err)
		}
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(old), halfMade+"*")); err != nil || len(left) > 0 {
			t.Errorf("left: %q %v", left, err)
		}
	}
}

// TestRetireImage: what is to be removed is no image any more from the beginning on.
func TestRetireImage(t *testing.T) {
	r := newCheckedRepo(t)
	base := r.commit(prepared)
	p := r.preparer(install)
	r.image(p, base, base)
	// The removal is cut short.
	if err := os.Remove(filepath.Join(RetireImage(p.image), imageTree, "node_modules", "lock")); err != nil {
		t.Fatal(err)
	}
	if r.image(p, base, base); r.read("node_modules/lock") != "1" {
		t.Error("what was left of an image is used")
	}
	folder := filepath.Dir(p.image)
	if err := os.RemoveAll(filepath.Join(RetireImage(folder), base.String(), imageTree)); err != nil {
		t.Fatal(err)
	}
	if r.image(p, base, base); r.read("node_modules/lock") != "1" {
		t.Error("what was left of a folder of images is used")
	}
	// One that was cut short before is in the way.
	if got := RetireImage(folder); got != folder {
		t.Errorf("%s", got)
	}
}

package result

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/checkout"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/workspace"
	"github.com/united-workforce/uwf/internal/testmode"
)

// A person has a home folder, a git and a checkout.
type person struct {
	*testing.T
	home, dir string
	environ   []string
}

func newPerson(t *testing.T, git string) *person {
	p := &person{T: t, home: t.TempDir()}
	p.dir = filepath.Join(p.home, "repo")
	p.environ = []string{
		"HOME=" + p.home, "PATH=" + git + string(filepath.ListSeparator) + os.Getenv("PATH"), "TMPDIR=" + t.TempDir(), "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=p", "GIT_AUTHOR_EMAIL=p@example.com", "GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p@example.com",
	}
	p.sh(p.home, `git config --global init.defaultBranch main; git config --global advice.detachedHead false; git config --global protocol.file.allow always; git config --global maintenance.auto false; git config --global gc.auto 0; git init -q repo`)
	return p
}

// sh runs a script of a person's shell in a folder.
func (p *person) sh(dir, script string, stdin ...string) string {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), "/bin/sh", "-ec", script)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, p.environ, strings.NewReader(strings.Join(stdin, ""))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		p.Fatalf("%s: %v\n%s%s", script, err, out, errs.Bytes())
	}
	return strings.TrimSpace(string(out))
}

// commitAs makes the commit of an agent on HEAD: files byte by byte, "-> " a link's target, "* " an
// executable file; "gone" none.
func (p *person) commitAs(files map[string]string) string {
	p.Helper()
	var gone, put strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		text, mode := files[path], "100644"
		if text == "gone" {
			fmt.Fprintf(&gone, "0 %040d\t%s\x00", 0, path)
			continue
		}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			text, mode = target, "120000"
		} else if data, ok := strings.CutPrefix(text, "* "); ok {
			text, mode = data, "100755"
		}
		id := p.sh(p.dir, "git hash-object -w --stdin --no-filters", text)
		fmt.Fprintf(&put, "%s %s\t%s\x00", mode, id, path)
	}
	return p.sh(p.dir, `export GIT_INDEX_FILE=$HOME/agent; git read-tree HEAD; git update-index -z --index-info; git commit-tree -p HEAD -m agent $(git write-tree)`, gone.String()+put.String())
}

// apply takes a commit on HEAD into the checkout.
func (p *person) apply(commit string, runFilters bool) (conflicts []string, err error) {
	p.Helper()
	planned, done := p.plan(commit, runFilters)
	defer done()
	if err := planWork(p.Context(), planned); err != nil || len(planned.conflicts) > 0 || len(planned.todo) == 0 {
		return planned.conflicts, err
	}
	return nil, planned.carryOut(p.Context())
}

func (p *person) plan(commit string, runFilters bool) (*planner, func()) {
	p.Helper()
	f := app.NewAt(p.dir, p.environ, app.IO{})
	remote, err := f.DialAs("file://"+p.dir, nil)
	if err != nil {
		p.Fatal(err)
	}
	head := plumbing.NewHash(p.sh(p.dir, "git rev-parse "+commit+"^"))
	changes, err := workspace.OpenRemote(remote).Compare(p.Context(), head, plumbing.NewHash(commit))
	if err != nil {
		p.Fatal(err)
	}
	w := &work{Thread: &lookup.Thread{ID: "T", Store: gitcas.Open(remote, gitcas.Options{})}, changes: changes}
	w.Entry.Work.Branch = "uwf/T"
	scratch, err := checkout.Open(p.Context(), f, p.dir)
	if err != nil {
		p.Fatal(err)
	}
	return &planner{f: f, scratch: scratch, top: p.dir, work: w, runFilters: runFilters}, func() {
		if err := scratch.Close(); err != nil {
			p.Error(err)
		}
	}
}

// files are the files of a folder by their paths: content, kind and whether they are executable.
func (p *person) files(dir string) map[string]string {
	p.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" {
			if err == nil && d.IsDir() {
				err = fs.SkipDir
			}
			return err
		}
		rel, err := filepath.Rel(dir, path)
		switch {
		case err != nil || d.IsDir():
			return err
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			found[rel] = "-> " + target
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if found[rel] = string(data); info.Mode()&0o100 != 0 {
			found[rel] = "* " + found[rel]
		}
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return found
}

// git is what of a checkout no apply may change: index, branch, refs and objects.
func (p *person) gitFolder() string {
	p.Helper()
	var said strings.Builder
	top := filepath.Join(p.dir, ".git")
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		at := info.ModTime()
		if strings.Contains(path, "/objects/") { // git makes one younger that it would write
			at = time.Time{}
		}
		fmt.Fprintf(&said, "%s %x %v\n", path, sha256.Sum256(data), at)
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
	return said.String()
}

// applyCase is a checkout, the work of a thread and what apply does there.
type applyCase struct {
	name      string
	setup     string            // in a new repository with a file a
	agent     map[string]string // see person.commitAs
	edit      string            // what the person does then
	conflicts string            // why nothing is done; empty: the work is taken
	want      map[string]string // files afterwards, as person.files has them
	filters   bool              // with --run-filters
}

const numbers = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

func applyCases() []applyCase {
	crlf := strings.ReplaceAll(numbers, "\n", "\r\n")
	const refresh = `; git add .; git commit -qm t; rm t*; git checkout -q .`
	return []applyCase{
		{name: "autocrlf", setup: `printf '* text=auto\n' >.gitattributes; git config core.autocrlf true; printf '1\r\n2\r\n' >t` + refresh,
			agent: map[string]string{"t": "1\ntwo\n"}, want: map[string]string{"t": "1\r\ntwo\r\n"}},
		{name: "merged in CRLF", setup: `printf '*.txt text eol=crlf\n' >.gitattributes; printf '1\n2\n3\n4\n5\n6\n7\n8\n9\n' >t.txt` + refresh,
			agent: map[string]string{"t.txt": strings.Replace(numbers, "1", "one", 1)}, edit: `sed -i 's/^9/nine/' t.txt`,
			want: map[string]string{"t.txt": strings.NewReplacer("1", "one", "9", "nine").Replace(crlf)}},
		{name: "attributes of the thread", setup: `printf '1\n' >t` + refresh,
			agent: map[string]string{".gitattributes": "t eol=crlf\n", "t": "1\n2\n"}, want: map[string]string{"t": "1\r\n2\r\n"}},
		{name: "attributes in no commit", setup: `printf '1\n' >t; git add .; git commit -qm t; printf 't eol=crlf\n' >.gitattributes; printf .gitattributes >.git/info/exclude; rm t; git checkout -q t`,
			agent: map[string]string{"t": "1\n2\n"}, want: map[string]string{"t": "1\r\n2\r\n"}},
		{name: "UTF-16", setup: `printf 't text working-tree-encoding=UTF-16LE-BOM\n' >.gitattributes; printf '\377\376h\0\n\0' >t; git add .; git commit -qm t`,
			agent: map[string]string{"t": "h\ni\n"}, want: map[string]string{"t": "\xff\xfeh\x00\n\x00i\x00\n\x00"}},
		{name: "fileMode", setup: `printf 'a\000b' >t; git add .; git commit -qm b; git config core.fileMode false; chmod 777 t`,
			agent: map[string]string{"t": "a\x00c"}, want: map[string]string{"t": "a\x00c"}},
		{name: "sparse", setup: `mkdir d1 d2; echo 1 >d1/f; echo 2 >d2/f; git add .; git commit -qm more; git sparse-checkout set d1`,
			agent: map[string]string{"d1/f": "one\n", "d2/f": "two\n"}, want: map[string]string{"d1/f": "one\n", "d2/f": "two\n"}},
		{name: "sparse with a file of the person's", setup: `mkdir d1 d2; echo 1 >d1/f; echo 2 >d2/f; git add .; git commit -qm more; git sparse-checkout set d1`,
			agent: map[string]string{"d2/f": "two\n"}, edit: `mkdir d2; echo mine >d2/f`, conflicts: "d2/f: the same lines were changed here"},
		{name: "assumed unchanged", setup: `printf '1\n' >t; git add .; git commit -qm t; git update-index --assume-unchanged t`,
			agent: map[string]string{"t": "2\n"}, edit: `echo mine >t`, conflicts: "t: the same lines were changed here"},
		{name: "kinds", setup: `mkdir dir; echo 1 >dir/f; echo 2 >file; ln -s a link; git add .; git commit -qm k`,
			agent: map[string]string{"dir/f": "gone", "dir": "f\n", "file": "gone", "file/inner": "x\n", "link": "gone", "link/inner": "* y\n"},
			want:  map[string]string{"dir": "f\n", "file/inner": "x\n", "link/inner": "* y\n"}},
		{name: "a folder with a file of the person's", setup: `mkdir dir; echo 1 >dir/f; printf '*.o' >.gitignore; git add .; git commit -qm k`,
			agent: map[string]string{"dir/f": "gone", "dir": "f\n"}, edit: `echo mine >dir/x.o`, conflicts: "dir: it is no file here"},
		{name: "a folder and a link in the way", setup: `true`,
			agent: map[string]string{"s/x": "x\n", "t": "t\n"}, edit: `ln -s .. s; mkdir t`, conflicts: "s/x: it can't be reached here\nt: it is no file here"},
		{name: "a special file", setup: `echo 1 >t; git add .; git commit -qm t`,
			agent: map[string]string{"t": "2\n"}, edit: `rm t; mkfifo t`, conflicts: "t: it is no file here"},
		{name: "names", setup: `printf 'hi\n' >"$(printf 'new\nline')"; printf 'hi\n' >'q"uo\te'; printf 'hi\n' >"$(printf 'tab\there \344')"; git add .; git commit -qm n`,
			agent: map[string]string{"new\nline": "1\n", `q"uo\te`: "2\n", "tab\there \xe4": "gone"}, want: map[string]string{"new\nline": "1\n", `q"uo\te`: "2\n"}},
		{name: "unmerged", setup: `git switch -q -c o; echo o >a; git commit -qam o; git switch -q main; echo m >a; git commit -qam m; git merge -q o || true`,
			agent: map[string]string{"b": "z\n"}, conflicts: "a: it has a conflict that is not resolved: resolve it, and git add it"},
		{name: "staged", agent: map[string]string{"b": "theirs\n"}, edit: `echo 1 >s; git add s; echo 2 >s; git add -N b2 2>/dev/null || true`, want: map[string]string{"a": "x\n", "s": "2\n", "b": "theirs\n"}},
		{name: "not here any more", agent: map[string]string{"a": "theirs\n"}, edit: `rm a`, conflicts: "a: it is not here any more"},
		{name: "another file of that name", agent: map[string]string{"b": "theirs\n"}, edit: `echo mine >b; echo b >.git/info/exclude`, conflicts: "b: another file of that name is here"},
		{name: "done already", agent: map[string]string{"b": "theirs\n"}, edit: `echo theirs >b`, want: map[string]string{"a": "x\n", "b": "theirs\n"}},
		{name: "a filter", setup: filtered, agent: map[string]string{"x.bin": "POINTER7\n"}, conflicts: "x.bin: it is stored through filter fake: merge the branch uwf/T, or --run-filters"},
		{name: "a filter of the thread's", setup: filtered, agent: map[string]string{".gitattributes": "y filter=fake\n", "y": "POINTER7\n"},
			conflicts: "y: it is stored through filter fake: merge the branch uwf/T, or --run-filters"},
		{name: "a filter that may run", setup: filtered, agent: map[string]string{"x.bin": "POINTER7\n"}, filters: true, want: map[string]string{"x.bin": "REAL7\n"}},
		{name: "a filter that this machine has not", setup: `printf '*.bin filter=none\n' >.gitattributes; echo 1 >x.bin; git add .; git commit -qm c`, agent: map[string]string{"x.bin": "2\n"}, want: map[string]string{"x.bin": "2\n"}},
		{name: "a submodule beside", setup: `git init -q ../s; git -C ../s commit -q --allow-empty -m s; git submodule add -q ../s lib 2>&1; git commit -qm sub; echo mine >lib/own`,
			agent: map[string]string{"a": "z\n"}, want: map[string]string{"a": "z\n", "lib/own": "mine\n"}},
		{name: "hooks", setup: `for h in post-index-change post-checkout; do printf '#!/bin/sh\ntouch "$HOME/ran"\n' >.git/hooks/$h; chmod 755 .git/hooks/$h; done; git config hook.x.command 'touch "$HOME/ran"'; git config hook.x.event post-index-change`,
			agent: map[string]string{"a": "z\n"}, want: map[string]string{"a": "z\n"}},
	}
}

const filtered = `printf '*.bin filter=fake\n' >.gitattributes; git config filter.fake.clean 'sed s/REAL/POINTER/'; git config filter.fake.smudge 'touch "$HOME/ran"; sed s/POINTER/REAL/'; git config filter.fake.required true; echo REAL1 >x.bin; git add .; git commit -qm c`

// TestApplyLikeGit: apply leaves files as git would write them here, or nothing is changed; what
// git keeps of the checkout is as before.
func TestApplyLikeGit(t *testing.T) {
	testmode.EachGit(t, func(t *testing.T, git string) {
		for _, c := range applyCases() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				newPerson(t, git).try(c)
			})
		}
	})
}

func (p *person) try(c applyCase) {
	p.Helper()
	p.sh(p.dir, "echo x >a; git add .; git commit -qm init; "+c.setup)
	commit := p.commitAs(c.agent)
	p.sh(p.dir, c.edit)
	_ = os.Remove(filepath.Join(p.home, "ran"))
	kept := p.gitFolder()
	var before map[string]string
	if c.conflicts != "" && !strings.Contains(c.edit, "mkfifo") {
		before = p.files(p.dir)
	}
	conflicts, err := p.apply(commit, c.filters)
	if got := strings.Join(conflicts, "\n"); err != nil || got != c.conflicts {
		p.Fatalf("%v\n%s\nwant:\n%s", err, got, c.conflicts)
	}
	if now := p.gitFolder(); now != kept {
		p.Errorf("the index, refs or objects were changed:\n%s\nthey were:\n%s", now, kept)
	}
	if _, err := os.Stat(filepath.Join(p.home, "ran")); err == nil && !c.filters {
		p.Error("a program of the checkout was run")
	}
	if before != nil && !maps.Equal(before, p.files(p.dir)) {
		p.Error("refused, and files were changed")
	}
	if c.conflicts == "" {
		after := p.files(p.dir)
		for path, want := range c.want {
			if got, ok := after[path]; !ok || got != want {
				p.Errorf("%q is %q, want %q", path, got, want)
			}
		}
		for path, text := range c.agent {
			if _, there := after[path]; there && text == "gone" && c.want[path] == "" {
				p.Errorf("%q is still there", path)
			}
		}
		if conflicts, err := p.apply(commit, c.filters); err != nil || len(conflicts) > 0 {
			p.Errorf("again: %q, %v", conflicts, err)
		}
		if again := p.files(p.dir); !maps.Equal(again, after) {
			p.Errorf("again, it changed something: %q", again)
		}
	}
}

// TestApplyKilled: killed after any of its changes, apply goes on when it is called again, and what
// it leaves is the same. A file is never half of what it was or is to be.
func TestApplyKilled(t *testing.T) {
	testmode.EachGit(t, func(t *testing.T, git string) {
		const setup = `printf '*.txt text eol=crlf\n' >.gitattributes; mkdir dir; echo 1 >dir/f; echo 2 >file; printf '1\n2\n3\n4\n5\n6\n7\n8\n9\n' >m.txt; git add .; git commit -qm k; rm m.txt; git checkout -q m.txt`
		agent := map[string]string{"dir/f": "gone", "dir": "f\n", "file": "gone", "file/inner": "x\n", "m.txt": strings.Replace(numbers, "1", "one", 1), "a": "gone"}
		var whole map[string]string
		for killedAfter := 0; ; killedAfter++ {
			p := newPerson(t, git)
			p.sh(p.dir, "echo x >a; git add .; git commit -qm init; "+setup)
			commit := p.commitAs(agent)
			p.sh(p.dir, `sed -i 's/^9/nine/' m.txt`)
			planned, done := p.plan(commit, false)
			if err := planWork(t.Context(), planned); err != nil || len(planned.conflicts) > 0 {
				t.Fatal(err, planned.conflicts)
			}
			gone := planned.pathsWith(func(e checkout.Entry) bool { return e == checkout.Entry{} })
			edits, err := planned.scratch.Render(t.Context(), planned.writtenPaths(), false)
			if err == nil {
				err = changeFolder(p.dir, gone[:min(killedAfter, len(gone))], edits[:min(max(killedAfter-len(gone), 0), len(edits))])
			}
			if err != nil {
				t.Fatal(err)
			}
			done()
			if conflicts, err := p.apply(commit, false); err != nil || len(conflicts) > 0 {
				t.Fatalf("killed after %d changes: %q, %v", killedAfter, conflicts, err)
			}
			if after := p.files(p.dir); whole == nil {
				whole = after
			} else if !maps.Equal(after, whole) {
				t.Errorf("killed after %d changes: %q, want %q", killedAfter, after, whole)
			}
			if killedAfter == len(gone)+len(edits) {
				break
			}
		}
		if want := strings.ReplaceAll(strings.NewReplacer("1", "one", "9", "nine").Replace(numbers), "\n", "\r\n"); whole["m.txt"] != want {
			t.Errorf("%q", whole["m.txt"])
		}
	})
}

package processes

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

// damaged is a store that somebody has been at.
type damaged struct {
	*machine
	id, head, tip string
}

// set puts a file on the state branch, as a commit of its own, with git alone.
func (d damaged) set(mode, path, content string) {
	d.Helper()
	file := d.path("content")
	d.write(file, content)
	blob := d.bare("hash-object", "-w", "--no-filters", file)
	d.index("update-index", "--add", "--cacheinfo", mode+","+blob+","+path)
}

// index runs a command of git on the tip's files and commits what came of it.
func (d damaged) index(args ...string) {
	d.Helper()
	index := "GIT_INDEX_FILE=" + d.path("index")
	git := func(args ...string) string {
		d.Helper()
		cmd := exec.CommandContext(d.Context(), "git", args...)
		cmd.Dir, cmd.Env = d.server.Dir("r.git"), append(d.baseEnv(), index)
		out, err := cmd.CombinedOutput()
		if err != nil {
			d.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("read-tree", d.tip)
	git(args...)
	d.bare("update-ref", "refs/heads/uwf-state", git("commit-tree", git("write-tree"), "-p", d.tip, "-m", "by hand"))
}

// edit changes a file of the state branch.
func (d damaged) edit(path, from, to string) {
	d.Helper()
	was := d.bare("show", d.tip+":"+path)
	if !strings.Contains(was, from) {
		d.Fatalf("%s has no %q:\n%s", path, from, was)
	}
	d.set("100644", path, strings.Replace(was, from, to, 1)+"\n")
}

// orphan replaces the history of the state branch by one commit.
func (d damaged) orphan() {
	d.bare("update-ref", "refs/heads/uwf-state", d.bare("commit-tree", d.tip+"^{tree}", "-m", "all in one"))
}

// flip changes one byte in the file of a git object of the server, and returns
// what puts it back.
func (d damaged) flip(object string) (undo func()) {
	d.Helper()
	id := d.bare("rev-parse", object)
	file := filepath.Join(d.server.Dir("r.git"), "objects", id[:2], id[2:])
	b, err := os.ReadFile(file)
	d.check(err)
	bad := slices.Clone(b)
	bad[len(bad)/2] ^= 1
	put := func(b []byte) { d.check(os.Remove(file)); d.check(os.WriteFile(file, b, 0o400)) }
	put(bad)
	return func() { put(b) }
}

// TestDamagedStore: whatever was done to the state branch, no command takes it for
// empty or for fine, none runs an agent or moves anything, and each says what is
// wrong where, and what to do.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	l, runs := newLoopLab(t, 3, nil)
	l.inside = true
	m := l.machine("a")
	id := m.startThread()
	m.step(nil, id).ends(0)
	ran := l.lines(runs)
	d := damaged{m, id, m.head(id), l.bare("rev-parse", "uwf-state")}
	step := "threads/" + id + "/" + d.head + ".json"
	type row struct {
		name   string
		damage func(d damaged) (undo func())
		want   []string
	}
	for _, tt := range testmode.Some(6, []row{
		{"a flipped byte in the head", func(d damaged) func() { d.edit(step, `"mock"`, `"mocl"`); return nil }, []string{step}},
		{"half a node", func(d damaged) func() { d.set("100644", step, `{"type":`); return nil }, []string{step}},
		{"a link", func(d damaged) func() { d.set("120000", step, "/etc/passwd"); return nil }, []string{step}},
		{"a submodule", func(d damaged) func() {
			d.index("update-index", "--add", "--cacheinfo", "160000,"+d.tip+",threads/"+d.id+"/sub")
			return nil
		}, []string{"threads/" + id + "/sub"}},
		{"a program in the thread", func(d damaged) func() { d.set("100755", "threads/"+d.id+"/run.sh", "echo hello"); return nil }, []string{"threads/" + id + "/run.sh"}},
		{"a foreign file", func(d damaged) func() { d.set("100644", "notes.txt", "do not forget"); return nil }, []string{"notes.txt"}},
		{"a name that leaves the folder", func(d damaged) func() { d.set("100644", "threads/"+d.id+"/a\\..\\b", "x"); return nil }, []string{"threads/" + id}},
		{"an unknown format", func(d damaged) func() { d.edit("VERSION", "format: 2", "format: 3"); return nil }, []string{"VERSION", "format", "3"}},
		{"no format", func(d damaged) func() { d.set("100644", "VERSION", "\x00\xff"); return nil }, []string{"VERSION"}},
		{"garbage in threads.yaml", func(d damaged) func() { d.set("100644", "threads.yaml", "{{{ : - ]"); return nil }, []string{"threads.yaml"}},
		{"no threads.yaml", func(d damaged) func() { d.index("rm", "--cached", "-q", "threads.yaml"); return nil }, []string{"threads.yaml"}},
		{"a head that is not there", func(d damaged) func() { d.edit("threads.yaml", d.head, "0123456789ABC"); return nil }, []string{"0123456789ABC"}},
		{"no shared nodes", func(d damaged) func() { d.index("rm", "--cached", "-q", "-r", "cas"); return nil }, []string{"it is the thread's workflow, and it is not whole"}},
		{"rewritten history", func(d damaged) func() { d.orphan(); return nil }, []string{"history of the state branch was rewritten", d.tip, "restore it: git fetch"}},
		{"set back", func(d damaged) func() { d.bare("update-ref", "refs/heads/uwf-state", d.tip+"^"); return nil }, []string{"history of the state branch was rewritten", d.tip, "restore it: git fetch"}},
		{"deleted", func(d damaged) func() { d.bare("update-ref", "-d", "refs/heads/uwf-state"); return nil }, []string{"the state branch was deleted", d.tip, "restore it: git fetch"}},
		{"a flipped byte in an object of the server", func(d damaged) func() { return d.flip(d.tip + ":" + step) }, nil},
		{"a flipped byte in the tip", func(d damaged) func() { return d.flip(d.tip) }, nil},
	}...) {
		t.Run(tt.name, func(t *testing.T) {
			d := damaged{m.on(t), d.id, d.head, d.tip}
			undo := tt.damage(d)
			before := d.bare("for-each-ref")
			for _, args := range [][]string{
				{"thread", "step", id, "--agent", "uwf agent mock '" + d.script + "'"},
				{"thread", "read", id},
			} {
				j := d.start(nil, args...).ends(5)
				for _, w := range tt.want {
					if !strings.Contains(j.errs.String(), w) {
						t.Errorf("%s\nthe message does not say %q", j, w)
					}
				}
				if strings.Contains(j.errs.String(), "goroutine ") {
					t.Errorf("%s\nit panicked", j)
				}
			}
			if after := d.bare("for-each-ref"); after != before {
				t.Errorf("refs before:\n%s\nafter:\n%s", before, after)
			}
			if undo != nil {
				undo()
			}
			d.restore()
		})
	}
	if now := l.lines(runs); now != ran {
		t.Errorf("%d agents were run on a damaged store", now-ran)
	}
	m.step(nil, id).ends(0)
	m.sound()
}

// TestOtherStore: a job that was told another store than it finds does nothing.
func TestOtherStore(t *testing.T) {
	t.Parallel()
	l, runs := newLoopLab(t, 3, nil)
	l.inside = true
	m := l.machine("a")
	id := m.startThread()
	head, refs := m.head(id), m.bare("for-each-ref")
	other := strings.Repeat("0", 32)
	m.step(nil, id, "--expect-store", other).ends(5).says("this is another store", other)
	if m.head(id) != head || m.bare("for-each-ref") != refs || l.lines(runs) != 0 {
		t.Error("something was done")
	}
	found := regexp.MustCompile(`(?m)^store: (\w{32})$`).FindStringSubmatch(m.bare("show", "uwf-state:VERSION"))
	m.step(nil, id, "--expect-store", found[1]).ends(0)
}

// restore puts the state branch back to where it was, by the command that uwf
// names, if it names one.
func (d damaged) restore() {
	d.Helper()
	if d.bare("for-each-ref", "--format=%(objectname)", "refs/heads/uwf-state") == d.tip {
		return
	}
	said := d.start(nil, "thread", "read", d.id).ends(5).errs.String()
	found := regexp.MustCompile(`restore it: (git [^;]*)`).FindStringSubmatch(said)
	if found == nil {
		if !strings.Contains(said, "take it off with a commit of your own") && !strings.Contains(said, "use a newer uwf") {
			d.Errorf("nothing is named that restores the store: %s", said)
		}
		d.bare("update-ref", "refs/heads/uwf-state", d.tip)
		return
	}
	cmd := exec.CommandContext(d.Context(), "sh", "-c", found[1])
	cmd.Dir, cmd.Env = d.clone, d.baseEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		d.Fatalf("%s: %v\n%s", found[1], err, out)
	}
	if now := d.bare("rev-parse", "refs/heads/uwf-state"); now != d.tip {
		d.Errorf("%s made %s, want %s", found[1], now, d.tip)
		d.bare("update-ref", "refs/heads/uwf-state", d.tip)
	}
}

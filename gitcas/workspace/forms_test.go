package workspace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/gitcas/workspace/convert"
	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
	"github.com/united-workforce/uwf/internal/testmode"
	"github.com/united-workforce/uwf/internal/wiretest"
)

// inUTF16 is a text in UTF-16 with its mark.
func inUTF16(text string) string {
	out := []byte("\xff\xfe")
	for _, unit := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return string(out)
}

// checkBlobs compares the changes of a snapshot with what they are to be; "\x00" is a deletion.
func checkBlobs(t *testing.T, m *wiretest.Memory, s Snapshot, want files) {
	t.Helper()
	got := files{}
	for _, c := range s.Changes {
		if o, there := m.Get(c.Blob); there {
			got[c.Path] = string(o.Data)
		}
		if c.Size != int64(len(got[c.Path])) {
			t.Errorf("%s: of %d bytes", c.Path, c.Size)
		}
	}
	equal(t, "changes", got, want)
}

// TestFormsStay: line ends and encodings are those of .gitattributes in the folder, and those of
// git in the commit. What nobody changed is no change, also for a process that knows nothing of
// the folder, and CRLF stays where the commit has it.
func TestFormsStay(t *testing.T) {
	const attributes = "*.c text=auto eol=crlf\n*.txt text\n*.rc text eol=crlf working-tree-encoding=UTF-16LE-BOM\n"
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	base := commitOf(t, m, files{".gitattributes": attributes, "c.c": "1\n2\n", "old.txt": "1\r\n2\r\n", "both.c": "1\r\n2\n", "bin.c": "a\x00\n", "r.rc": "ä\n", "e/.gitattributes": "c.c -text\n", "e/c.c": "1\n"})
	inFolder := files{".gitattributes": attributes, "c.c": "1\r\n2\r\n", "old.txt": "1\r\n2\r\n", "both.c": "1\r\n2\n", "bin.c": "a\x00\n", "r.rc": inUTF16("ä\r\n"), "e/.gitattributes": "c.c -text\n", "e/c.c": "1\n"}
	for _, again := range []bool{false, true} {
		dir := t.TempDir()
		w := open(t, dir, m)
		next := func() *Workspace {
			if again {
				w = open(t, dir, m)
			}
			return w
		}
		restore(t, w, base)
		equal(t, "restored", contents(t, dir), inFolder)
		if s := snapshot(t, next(), base); !s.Unchanged {
			t.Error("nothing touched:", changes(s))
		}
		for path := range inFolder {
			must(t, os.Chtimes(filepath.Join(dir, path), when, when))
		}
		if s := snapshot(t, next(), base); !s.Unchanged {
			t.Error("times only:", changes(s))
		}
		w = next()
		w.step = func(op, path string) error { return fmt.Errorf("%s %s", op, path) }
		must(t, w.Restore(ctx, base))
		w.step = func(string, string) error { return nil }

		put(t, dir, files{"c.c": "1\n2\n", "r.rc": "ä\n"})
		if s := snapshot(t, next(), base); !s.Unchanged {
			t.Error("as git has it:", changes(s))
		}
		put(t, dir, files{
			"c.c": "1\r\n2 new\r\n3\n", "old.txt": "1\r\n2 new\r\n", "new.c": "x\r\n", "new.txt": "y\r\n", "raw": "z\r\n",
			"r.rc": inUTF16("ö\r\n"), "bad.rc": "b\r\n", "both.c": "1\r\n2\n3\r\n",
		})
		s := snapshot(t, next(), base)
		push(t, m, s, "x"+fmt.Sprint(again), wire.ZeroID)
		checkBlobs(t, m, s, files{
			"c.c": "1\n2 new\n3\n", "old.txt": "1\r\n2 new\r\n", "new.c": "x\n", "new.txt": "y\n", "raw": "z\r\n",
			"r.rc": "ö\n", "bad.rc": "b\r\n", "both.c": "1\r\n2\n3\r\n",
		})
		if len(s.Raw) != 1 || s.Raw[0].Path != "bad.rc" || !strings.Contains(s.Raw[0].Why, "UTF-16LE-BOM") {
			t.Errorf("not converted: %v", s.Raw)
		}
	}
}

// TestCopyHasForms: a copy of a commit is what a restore makes, whether the workspace has its
// files or not; ReadFile gives what git stores.
func TestCopyHasForms(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	base := commitOf(t, m, files{".gitattributes": "*.c text eol=crlf\n", "a.c": "1\n", "d/b.c": "2\n", "d/.gitattributes": "u working-tree-encoding=UTF-16\n", "d/u": "ü\n", "x": "\n"})
	want := files{".gitattributes": "*.c text eol=crlf\n", "a.c": "1\r\n", "d/b.c": "2\r\n", "d/.gitattributes": "u working-tree-encoding=UTF-16\n", "d/u": inUTF16("ü\n"), "x": "\n"}
	for name, prepare := range map[string]func(t *testing.T, w *Workspace, dir string){
		"not there": func(*testing.T, *Workspace, string) {},
		"restored":  func(t *testing.T, w *Workspace, _ string) { restore(t, w, base) },
		"changed": func(t *testing.T, w *Workspace, dir string) {
			restore(t, w, base)
			put(t, dir, files{".gitattributes": "*.c -text\n", "a.c": "1\n", "d/u": "ü\n"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, to := t.TempDir(), t.TempDir()
			w := open(t, dir, m)
			prepare(t, w, dir)
			must(t, w.CopyTo(ctx, base, to))
			equal(t, "copied", contents(t, to), want)
			for path, content := range map[string]string{"a.c": "1\n", "d/u": "ü\n"} {
				if got, err := w.ReadFile(ctx, base, path, 100); err != nil || string(got) != content {
					t.Errorf("%s: %q %v", path, got, err)
				}
			}
		})
	}
}

// TestFormsAreNotFetched: what a folder has in its own form is not asked of the remote.
func TestFormsAreNotFetched(t *testing.T) {
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	base := commitOf(t, m, files{".gitattributes": "* text eol=crlf\n", "a": "1\n", "b": "2\n"})
	dir := t.TempDir()
	w := open(t, dir, m)
	restore(t, w, base)
	w.remote = nil
	must(t, w.CopyTo(ctx, base, t.TempDir()))
	if got, err := w.ReadFile(ctx, base, "a", 100); err != nil || string(got) != "1\n" {
		t.Errorf("%q %v", got, err)
	}
	put(t, dir, files{"a": "1\r\n"})
	if s := snapshot(t, w, base); !s.Unchanged {
		t.Error(changes(s))
	}
}

// TestHostileAttributes: .gitattributes files that take too long, or are too large, are named.
func TestHostileAttributes(t *testing.T) {
	costly := strings.Repeat(strings.Repeat("*a", 100)+"b text\n", 1000)
	m := wiretest.NewMemory(wiretest.MemoryOptions{})
	for name, text := range map[string]string{"costly": costly, "large": strings.Repeat("#\n", ignore.MaxFile)} {
		t.Run(name, func(t *testing.T) {
			all := files{"d/.gitattributes": text, "d/f": "x\r\n"}
			for i := range 300 {
				all[fmt.Sprint("d/", strings.Repeat("a", 100), i, "ab")] = "x\r\n"
			}
			dir := t.TempDir()
			put(t, dir, all)
			_, err := open(t, dir, m, limits{ignoreSteps: 10_000_000}).TakeSnapshot(ctx, SnapshotRequest{When: when})
			commit := commitOf(t, m, all)
			for _, err := range []error{
				err,
				open(t, t.TempDir(), m, limits{ignoreSteps: 10_000_000}).Restore(ctx, commit),
				open(t, t.TempDir(), m, limits{ignoreSteps: 10_000_000}).CopyTo(ctx, commit, t.TempDir()),
			} {
				var over *FolderError
				if !errors.As(err, &over) || !errors.Is(err, ErrLimit) || over.Path != "d/.gitattributes" {
					t.Error(err)
				}
			}
		})
	}
	// A link is none, and a folder neither.
	dir := t.TempDir()
	put(t, dir, files{".gitattributes": "-> rules", "rules": "* text\n", "f": "x\r\n", "d/.gitattributes/": ""})
	s := snapshot(t, open(t, dir, m))
	push(t, m, s, "link", wire.ZeroID)
	checkBlobs(t, m, s, files{".gitattributes": "rules", "rules": "* text\n", "f": "x\r\n"})
}

// formsGenerator makes folders with random .gitattributes.
type formsGenerator struct{ generator }

func (g formsGenerator) attributes() (text string) {
	for range g.Intn(6) {
		text += g.pick("*", "*.c", "a*", "/d/*", "d/**", "b.txt", "[attr]m") + " "
		text += g.pick("text", "-text", "text=auto", "eol=crlf", "eol=lf", "text=auto eol=crlf", "binary", "!text", "crlf", "-crlf", "m", "text eol=crlf") + "\n"
	}
	if g.Intn(2) == 0 {
		text += "*.u16 working-tree-encoding=" + g.pick("UTF-16", "UTF-16LE-BOM", "utf16") + "\n"
	}
	if g.Intn(2) == 0 {
		text += "*.l1 working-tree-encoding=" + g.pick("ISO-8859-1", "windows-1252", "latin1") + "\n"
	}
	return text
}

// put writes files with line ends of both kinds, and in the encodings that attributes name.
func (g formsGenerator) put(dir, folder string) (n int) {
	lines := func() string {
		return strings.Repeat(g.pick("l\n", "l\r\n", "t", "l\r\n", "l\n"), g.Intn(3)) + strings.Repeat(g.pick("m\n", "m\r\n"), g.Intn(4))
	}
	all := files{}
	for _, name := range []string{"a.c", "b.txt", "x", "a b.c", "u.u16", "l.l1"} {
		text := lines()
		switch {
		case g.Intn(3) == 0:
			continue
		case strings.HasSuffix(name, ".u16"):
			text = inUTF16("ü" + text)
		case strings.HasSuffix(name, ".l1"):
			text = "\xfc" + text
		default:
			text += g.pick("", "", "", "\r", "\x00")
		}
		all[folder+name] = text
		n++
	}
	put(g.t, dir, all)
	return n
}

// TestFormsLikeGit makes random folders and compares what a snapshot stores with git add, and
// what a restore writes with git checkout-index.
func TestFormsLikeGit(t *testing.T) { testmode.EachGit(t, compareForms) }

func compareForms(t *testing.T, git string) {
	t.Setenv("PATH", git+string(os.PathListSeparator)+os.Getenv("PATH"))
	n := 0
	for seed := range testmode.Seeds(t, 20, 600) {
		g := formsGenerator{generator{rand.New(rand.NewSource(int64(seed))), t}}
		m := wiretest.NewMemory(wiretest.MemoryOptions{})
		dir := t.TempDir()
		runGit(t, dir, "", "init", "-q")
		for _, folder := range []string{"", "d/", "d/e/"} {
			put(t, dir, files{folder + ".gitattributes": g.attributes()})
			n += g.put(dir, folder)
		}
		runGit(t, dir, "", "-c", "core.safecrlf=false", "add", "-A", ".")
		want := runGit(t, dir, "", "write-tree")
		s := snapshot(t, open(t, dir, m))
		if s.Tree.String() != want {
			t.Fatalf("seed %d: tree %s, git has %s of %q", seed, s.Tree, want, contents(t, dir))
		}
		push(t, m, s, "r", wire.ZeroID)
		out, ours := t.TempDir(), t.TempDir()
		runGit(t, dir, "", "checkout-index", "-a", "--prefix="+out+"/")
		restore(t, open(t, ours, m), s.Commit)
		equal(t, fmt.Sprint("seed ", seed), contents(t, ours), contents(t, out))
		if again := snapshot(t, open(t, ours, m), s.Commit); !again.Unchanged {
			t.Errorf("seed %d: %s", seed, changes(again))
		}
	}
	t.Log(n, "files")
}

// TestFormsOverBase: over a base that was committed without attributes a snapshot is what git
// add makes, but for the two rules: bytes of the base are no change, and its CRLF stays.
func TestFormsOverBase(t *testing.T) { testmode.EachGit(t, compareOverBase) }

func compareOverBase(t *testing.T, git string) {
	t.Setenv("PATH", git+string(os.PathListSeparator)+os.Getenv("PATH"))
	n, ruled := 0, 0
	for seed := range testmode.Seeds(t, 20, 600) {
		g := formsGenerator{generator{rand.New(rand.NewSource(int64(seed))), t}}
		m := wiretest.NewMemory(wiretest.MemoryOptions{})
		dir := t.TempDir()
		runGit(t, dir, "", "init", "-q")
		folders := []string{"", "d/", "d/e/"}
		for _, folder := range folders {
			g.put(dir, folder)
		}
		runGit(t, dir, "", "add", "-A", ".")
		base := snapshot(t, open(t, dir, m))
		push(t, m, base, "base", wire.ZeroID)
		for _, folder := range folders {
			put(t, dir, files{folder + ".gitattributes": g.attributes()})
			n += g.put(dir, folder)
		}
		runGit(t, dir, "", "-c", "core.safecrlf=false", "add", "-A", ".")
		theirs := map[string]string{}
		for _, line := range strings.Split(runGit(t, dir, "", "ls-files", "-s", "-z"), "\x00") {
			if about, path, ok := strings.Cut(line, "\t"); ok {
				theirs[path] = strings.Fields(about)[1]
			}
		}
		w := open(t, dir, m)
		s := snapshot(t, w, base.Commit)
		push(t, m, s, "next", wire.ZeroID)
		was := w.findKnownTree(base.Commit)
		for path, e := range w.findKnownTree(s.Commit).AllFiles() {
			if e.ID.String() == theirs[path] {
				continue
			}
			ruled++
			old := findPath(was, path)
			is, _ := m.Get(e.ID)
			had, _ := m.Get(old.IDOf())
			if e.ID != old.IDOf() && !(convert.HasCRLF(had.Data) && strings.Contains(string(is.Data), "\r\n")) {
				t.Errorf("seed %d: %s is %q, and was %q", seed, path, is.Data, had.Data)
			}
		}
		if len(theirs) != w.findKnownTree(s.Commit).Files {
			t.Errorf("seed %d: %d files, git has %d", seed, w.findKnownTree(s.Commit).Files, len(theirs))
		}
	}
	t.Log(n, "files, of which the rules hold for", ruled)
}

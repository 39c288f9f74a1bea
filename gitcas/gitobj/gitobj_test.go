package gitobj

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/testmode"
)

var someID = plumbing.NewHash("1111111111111111111111111111111111111111")

func line(mode, name string) string { return mode + " " + name + "\x00" + string(someID[:]) }

func TestCheckName(t *testing.T) {
	for _, ok := range []string{
		"a", ".gitignore", ".github", ".gitx", "git", "git~2", "git~1x", "...", " ", "a\nb", "ä", "\xff", ".git.x", "a.git",
		"gitmodules", `a\b`, `\`, "CON",
	} {
		if err := CheckName(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{
		"", ".", "..", "a/b", "a\x00", ".git", ".GIT", ".Git", ".git ", ".git.", ".git . .", ".git::$INDEX_ALLOCATION", ".git:x",
		"git~1", "GIT~1", "git~1.", `.git\x`, `a\.git`, `a\git~1\b`, ".g\u200cit", "\u200e.git", ".gi\ufefft", strings.Repeat("x", MaxName+1),
	} {
		if err := CheckName(bad); !errors.Is(err, ErrBadName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := CheckEntry(".gitmodules", filemode.Symlink); !errors.Is(err, ErrBadName) {
		t.Errorf("a symlink .gitmodules: %v", err)
	}
	if err := CheckEntry(".gitmodules", filemode.Regular); err != nil {
		t.Errorf("a file .gitmodules: %v", err)
	}
}

func TestDecodeTree(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want error
	}{
		"empty":          {"", nil},
		"folder order":   {line("100644", "a.b") + line("40000", "a") + line("100644", "a0"), nil},
		"all modes":      {line("100644", "a") + line("100664", "b") + line("100755", "c") + line("120000", "d") + line("160000", "e") + line("040000", "f"), nil},
		"order":          {line("100644", "b") + line("100644", "a"), ErrMalformed},
		"file order":     {line("40000", "a") + line("100644", "a.b"), ErrMalformed},
		"twice":          {line("100644", "a") + line("100644", "a"), ErrMalformed},
		"file, folder":   {line("100644", "a") + line("40000", "a"), ErrMalformed},
		"file.. folder":  {line("100644", "a") + line("100644", "a.b") + line("40000", "a"), ErrMalformed},
		"mode":           {line("100600", "a"), ErrMalformed},
		"mode 0":         {line("0", "a"), ErrMalformed},
		"no mode":        {" a\x00" + string(someID[:]), ErrMalformed},
		"no space":       {"100644", ErrMalformed},
		"no NUL":         {"100644 a", ErrMalformed},
		"no NUL at all":  {"100644 " + strings.Repeat("a", 40), ErrMalformed},
		"short id":       {"100644 a\x00abc", ErrMalformed},
		"zero id":        {"100644 a\x00" + string(wire.ZeroID[:]), ErrMalformed},
		"trailing":       {line("100644", "a") + "1", ErrMalformed},
		"no name":        {line("100644", ""), ErrBadName},
		"dotdot":         {line("40000", ".."), ErrBadName},
		"slash":          {line("100644", "a/b"), ErrBadName},
		"dotgit":         {line("40000", ".git"), ErrBadName},
		"link to config": {line("120000", ".gitmodules"), ErrBadName},
	} {
		got, err := DecodeTree([]byte(c.data))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if c.want == nil && len(got) != strings.Count(c.data, "\x00") {
			t.Errorf("%s: %d entries", name, len(got))
		}
	}
}

func TestEncodeTree(t *testing.T) {
	entries := []Entry{{"a0", filemode.Regular, someID}, {"a", filemode.Dir, someID}, {"a.b", filemode.Executable, someID}}
	data, err := EncodeTree(entries)
	if err != nil {
		t.Fatal(err)
	}
	if want := line("100755", "a.b") + line("40000", "a") + line("100644", "a0"); string(data) != want {
		t.Errorf("%q", data)
	}
	if entries[0].Name != "a0" {
		t.Error("the caller's slice was sorted")
	}
	if data, err := EncodeTree(nil); err != nil || plumbing.ComputeHash(plumbing.TreeObject, data) != wire.EmptyTree {
		t.Errorf("empty: %q %v", data, err)
	}
	for name, bad := range map[string][]Entry{
		"twice":        {{"a", filemode.Regular, someID}, {"a", filemode.Regular, someID}},
		"file, folder": {{"a", filemode.Dir, someID}, {"a.b", filemode.Regular, someID}, {"a", filemode.Regular, someID}},
		"mode":         {{"a", 0o100600, someID}},
		"no id":        {{"a", filemode.Regular, wire.ZeroID}},
		"name":         {{".GIT", filemode.Regular, someID}},
	} {
		if _, err := EncodeTree(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCommit(t *testing.T) {
	when := time.Unix(1700000000, 0).In(time.FixedZone("", -5400))
	in := Commit{
		Tree: someID, Parents: []wire.ID{someID, wire.EmptyTree},
		Author:    Signature{"A U. Thor", "a@example.org", when},
		Committer: Signature{"", "", when.UTC()},
		Message:   "subject\n\nbody\n\nUwf: x\n",
	}
	data, err := EncodeCommit(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeCommit(data)
	if err != nil {
		t.Fatal(err)
	}
	if got.Tree != in.Tree || len(got.Parents) != 2 || got.Parents[1] != in.Parents[1] || got.Message != in.Message {
		t.Errorf("%+v", got)
	}
	if got.Author.Name != "A U. Thor" || got.Author.Email != "a@example.org" || !got.Author.When.Equal(when) || got.Author.When.Format("-0700") != "-0130" {
		t.Errorf("author %+v", got.Author)
	}
	for name, change := range map[string]func(*Commit){
		"tree":    func(c *Commit) { c.Tree = wire.ZeroID },
		"parent":  func(c *Commit) { c.Parents[0] = wire.ZeroID },
		"name":    func(c *Commit) { c.Author.Name = "a\nparent x" },
		"mail":    func(c *Commit) { c.Author.Email = "a> 1 +0000\n<b" },
		"message": func(c *Commit) { c.Message = "a\x00b" },
		"time":    func(c *Commit) { c.Committer.When = time.Time{} },
	} {
		c := in
		c.Parents = append([]wire.ID(nil), in.Parents...)
		change(&c)
		if _, err := EncodeCommit(c); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDecodeCommitHostile(t *testing.T) {
	id := someID.String()
	rest := "author a <b> 1 +0000\ncommitter a <b> 1 +0000\n"
	for name, bad := range map[string]string{
		"empty":       "",
		"no tree":     rest,
		"tree twice":  "tree " + id + "\ntree " + id + "\n" + rest + "\n",
		"short tree":  "tree " + id[1:] + "\n" + rest,
		"zero tree":   "tree " + wire.ZeroID.String() + "\n" + rest,
		"zero parent": "tree " + id + "\nparent " + wire.ZeroID.String() + "\n" + rest,
		"late parent": "tree " + id + "\nauthor a <b> 1 +0000\nparent " + id + "\ncommitter a <b> 1 +0000\n",
		"two authors": "tree " + id + "\ncommitter a <b> 1 +0000\ncommitter a <b> 1 +0000\n",
		"no author":   "tree " + id + "\n\nmessage",
		"parents":     "tree " + id + "\n" + strings.Repeat("parent "+id+"\n", MaxParents+1) + rest,
	} {
		if c, err := DecodeCommit([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v %v", name, c, err)
		}
	}
	// Odd author lines of old programs are no reason to refuse people's work.
	for _, author := range []string{"", "a", "<>", "a <b", "a <b> x y", "a <b> 99999999999999999999 +0000", "a <b> 1", "a <b> 1 +99999"} {
		c, err := DecodeCommit([]byte("tree " + id + "\nauthor " + author + "\ncommitter " + author + "\nencoding latin1\ngpgsig x\n y\n\nmessage"))
		if err != nil || c.Message != "message" {
			t.Errorf("%q: %+v %v", author, c, err)
		}
	}
}

// TestAgainstGit has git read what is written here.
func TestAgainstGit(t *testing.T) {
	git := testmode.NeedGit(t)
	dir := t.TempDir()
	run := func(in []byte, args ...string) string {
		t.Helper()
		cmd := exec.Command(git, args...)
		cmd.Dir, cmd.Stdin = dir, bytes.NewReader(in)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run(nil, "init", "-q")
	blob := plumbing.NewHash(run([]byte("x"), "hash-object", "-w", "--stdin"))
	tree, err := EncodeTree([]Entry{{"b", filemode.Dir, wire.EmptyTree}, {"b.c", filemode.Regular, blob}, {"b-", filemode.Symlink, blob}, {"B", filemode.Executable, blob}})
	if err != nil {
		t.Fatal(err)
	}
	run(nil, "hash-object", "-w", "-t", "tree", "/dev/null")
	// hash-object without --literally checks the object as fsck does.
	treeID := run(tree, "hash-object", "-w", "--stdin", "-t", "tree")
	if want := plumbing.ComputeHash(plumbing.TreeObject, tree).String(); treeID != want {
		t.Errorf("tree %s, want %s", treeID, want)
	}
	who := Signature{"uwf", "uwf@localhost", time.Unix(1700000000, 0)}
	commit, err := EncodeCommit(Commit{Tree: plumbing.NewHash(treeID), Author: who, Committer: who, Message: "m\n"})
	if err != nil {
		t.Fatal(err)
	}
	run(commit, "hash-object", "-w", "--stdin", "-t", "commit")
	run(nil, "fsck", "--strict")
}

func FuzzDecodeTree(f *testing.F) {
	f.Add([]byte(line("100644", "a.b") + line("40000", "a")))
	f.Add([]byte(line("100644", "a") + line("40000", "a")))
	f.Add([]byte(line("120000", ".gitmodules")))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := DecodeTree(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrBadName) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		again, err := EncodeTree(entries)
		if err != nil {
			t.Fatalf("what was read can't be written: %v", err)
		}
		// The padded mode of old programs is the one thing that is not kept.
		if !bytes.Equal(again, data) && !bytes.Contains(data, []byte("040000 ")) {
			t.Fatalf("%q became %q", data, again)
		}
	})
}

func FuzzDecodeCommit(f *testing.F) {
	f.Add([]byte("tree " + someID.String() + "\nparent " + someID.String() + "\nauthor a <b> 1 +0130\ncommitter c <d> 2 -0000\n\nm\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeCommit(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		out, err := EncodeCommit(c)
		if err != nil {
			return // odd author lines are read, not written
		}
		again, err := DecodeCommit(out)
		if err != nil || again.Tree != c.Tree || len(again.Parents) != len(c.Parents) || again.Message != c.Message {
			t.Fatalf("%+v became %+v: %v", c, again, err)
		}
	})
}

func BenchmarkDecodeTree(b *testing.B) {
	entries := make([]Entry, 1000)
	for i := range entries {
		entries[i] = Entry{"file-" + time.Duration(i).String() + ".json", filemode.Regular, someID}
	}
	data, err := EncodeTree(entries)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := DecodeTree(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeTree(b *testing.B) {
	entries := make([]Entry, 1000)
	for i := range entries {
		entries[i] = Entry{"file-" + time.Duration(i).String() + ".json", filemode.Regular, someID}
	}
	for b.Loop() {
		if _, err := EncodeTree(entries); err != nil {
			b.Fatal(err)
		}
	}
}

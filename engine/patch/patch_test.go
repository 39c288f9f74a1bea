package patch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/testmode"
)

func at(data string) Side {
	return Side{ID: plumbing.ComputeHash(plumbing.BlobObject, []byte(data)), Mode: filemode.Regular, Data: []byte(data)}
}

func clock() time.Time { return time.Unix(0, 0) }

func TestPatch(t *testing.T) {
	exe := at("x\n")
	exe.Mode = filemode.Executable
	got := Make("abc", []File{
		{Path: "a.txt", Old: at("one\ntwo\nthree\n"), New: at("one\n2\nthree\nfour")},
		{Path: "bin", Old: at("\x00"), New: at("\x01\x00")},
		{Path: "gone", Old: at("x\ny")},
		{Path: "latin", New: at("\xe4\n")},
		{Path: "mode", Old: at("x\n"), New: exe},
		{Path: "new", New: at("n\n")},
	}, clock)
	want := []record.PatchFile{
		{Path: "a.txt", Change: "modified", Counted: true, Added: 2, Removed: 1}, {Path: "bin", Change: "modified"},
		{Path: "gone", Change: "deleted", Counted: true, Removed: 2}, {Path: "latin", Change: "added"},
		{Path: "mode", Change: "modified", Counted: true}, {Path: "new", Change: "added", Counted: true, Added: 1},
	}
	if fmt.Sprint(got.Files) != fmt.Sprint(want) || got.Base != "abc" || got.More != 0 {
		t.Errorf("%+v\nwant %+v", got.Files, want)
	}
	for _, part := range []string{
		"diff --git a/a.txt b/a.txt\nindex ", "\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n\\ No newline at end of file\n",
		"Binary files a/bin and b/bin differ\n", "deleted file mode 100644\n", "old mode 100644\nnew mode 100755\n", "new file mode 100644\n",
	} {
		if !strings.Contains(got.Diff, part) {
			t.Errorf("the diff lacks %q:\n%s", part, got.Diff)
		}
	}
}

// What is too much for a diff is counted, and its lines can still be found.
func TestPatchWithoutDiff(t *testing.T) {
	lines := func(n int, word string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%s %06d is a line of a file\n", word, i)
		}
		return b.String()
	}
	big := at(lines(12_000, "big"))
	for name, tt := range map[string]struct {
		files []File
		check func(p record.Patch) bool
	}{
		"long": {[]File{{Path: "a", New: big}}, func(p record.Patch) bool {
			return p.Files[0].Added == 12_000 && len(p.Files[0].Lines) == 12_000 && slices.Contains(p.Files[0].Lines, HashOf("big 000777 is a line of a file"))
		}},
		"two long": {[]File{{Path: "a", New: big}, {Path: "b", New: big}, {Path: "c", New: at("c\n")}}, func(p record.Patch) bool {
			return len(p.Files[0].Lines) == 12_000 && len(p.Files[1].Lines) == maxKept-12_000 && p.Files[1].Added == 12_000 && len(p.Files[2].Lines) == 0
		}},
		"unread": {[]File{{Path: "a", Old: Side{ID: big.ID, Mode: filemode.Regular}, New: at("x\n")}, {Path: "b", New: at("y\n")}}, func(p record.Patch) bool {
			return !p.Files[0].Counted && p.Files[0].Change == record.FileModified && p.Files[1].Counted && p.Files[1].Lines[0] == HashOf("y")
		}},
		"too many lines": {[]File{{Path: "a", Old: at(lines(maxLines+2, "x")), New: at(lines(maxLines+2, "y"))}}, func(p record.Patch) bool { return !p.Files[0].Counted }},
		"too large":      {[]File{{Path: "a", New: at(strings.Repeat("x", MaxText+1))}}, func(p record.Patch) bool { return !p.Files[0].Counted }},
		"too large together": {slices.Repeat([]File{{Path: "a", New: at(strings.Repeat("x", MaxText))}}, 9), func(p record.Patch) bool {
			return p.Files[7].Counted && !p.Files[8].Counted
		}},
		"too many files": {slices.Repeat([]File{{Path: "a", New: at("x\n")}}, MaxFiles+5), func(p record.Patch) bool {
			return len(p.Files) == MaxFiles && p.More == 5 && p.Files[0].Counted
		}},
	} {
		if p := Make("", tt.files, clock); p.Diff != "" || !tt.check(p) {
			t.Errorf("%s: diff of %d bytes, %d files, %.400v", name, len(p.Diff), len(p.Files), p.Files)
		}
	}
}

// Once the time is over, files are only listed.
func TestPatchInTime(t *testing.T) {
	at0 := time.Unix(0, 0)
	now := func() time.Time { at0 = at0.Add(maxTime - time.Millisecond); return at0 }
	p := Make("", []File{{Path: "a", New: at("x\n")}, {Path: "b", New: at("y\n")}, {Path: "c", New: at("z\n")}}, now)
	if len(p.Files) != 3 || !p.Files[0].Counted || p.Files[1].Counted || p.Files[2].Counted || p.Diff != "" {
		t.Errorf("%+v", p)
	}
}

// TestPatchAsGit: git takes every diff, and makes the new version of it.
func TestPatchAsGit(t *testing.T) {
	testmode.NeedGit(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range rnd.IntN(30) {
			b.WriteString([]string{"", "a", "b", "\r", "-- x", "@@", "long line with words", "\\ No newline"}[rnd.IntN(8)])
			b.WriteString("\n")
		}
		if rnd.IntN(3) == 0 {
			b.WriteString("no end")
		}
		return b.String()
	}
	edited := func(s string) string {
		lines := strings.SplitAfter(s, "\n")
		for range rnd.IntN(4) {
			i := rnd.IntN(len(lines))
			switch rnd.IntN(3) {
			case 0:
				lines[i] = text()
			case 1:
				lines = slices.Insert(lines, i, "new\n")
			default:
				lines[i] = ""
			}
		}
		return strings.Join(lines, "")
	}
	for round := range 40 {
		dir := t.TempDir()
		var files []File
		for i := range 5 {
			f := File{Path: fmt.Sprintf("dir %d/f", i)}
			before := text()
			if i != 0 {
				f.Old = at(before)
			}
			if i != 1 {
				f.New = at(edited(before))
			}
			if f.Old.ID == f.New.ID {
				continue
			}
			if i != 0 {
				write(t, filepath.Join(dir, f.Path), before)
			}
			files = append(files, f)
		}
		p := Make("", files, clock)
		cmd := exec.CommandContext(t.Context(), "git", "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(p.Diff)
		if out, err := cmd.CombinedOutput(); err != nil && p.Diff != "" {
			t.Fatalf("round %d: %v: %s\n%s", round, err, out, p.Diff)
		}
		for _, f := range files {
			got, err := os.ReadFile(filepath.Join(dir, f.Path))
			if gone := os.IsNotExist(err); gone != f.New.ID.IsZero() || !gone && !bytes.Equal(got, f.New.Data) {
				t.Fatalf("round %d: %s is %q, %v; want %q\n%s", round, f.Path, got, err, f.New.Data, p.Diff)
			}
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func FuzzPatch(f *testing.F) {
	f.Add("a\nb\n", "a\nc")
	f.Add("", "\n")
	f.Add("x\x00", "\xff")
	f.Fuzz(func(t *testing.T, before, after string) {
		p := Make("", []File{{Path: "f", Old: at(before), New: at(after)}}, clock)
		file := p.Files[0]
		if file.Counted && file.Added-file.Removed != lineCount(after)-lineCount(before) {
			t.Errorf("%q → %q: +%d -%d", before, after, file.Added, file.Removed)
		}
	})
}

func lineCount(s string) int { return len(slices.Collect(strings.Lines(s))) }

// Write gives a diff of any length, names what is no text, and says how much each file changed.
func TestWrite(t *testing.T) {
	side := func(data string) Side {
		return Side{ID: plumbing.ComputeHash(plumbing.BlobObject, []byte(data)), Mode: filemode.Regular, Data: []byte(data)}
	}
	long := strings.Repeat("a line\n", MaxDiff/7+1)
	apart := func(word string) string { return strings.Repeat(word+"\nsame\n", maxLines) }
	var b strings.Builder
	stats, err := Write(&b, []File{
		{Path: "binary", Old: side("x"), New: side("a\x00b")},
		{Path: "far", Old: side(apart("old")), New: side(apart("new"))},
		{Path: "long", New: side(long)},
		{Path: "small", Old: side("a\nb\n"), New: side("a\nc\n")},
		{Path: "unread", Old: Side{ID: plumbing.NewHash(strings.Repeat("1", 40)), Mode: filemode.Regular}, New: side("x")},
	}, clock)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Binary files a/binary and b/binary differ", "+++ b/long", "-b\n+c\n", "Binary files a/unread and b/unread differ"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the diff lacks %q", want)
		}
	}
	for i, want := range []struct {
		counted        bool
		added, removed int
	}{{false, 0, 0}, {true, 2*maxLines - 1, 2*maxLines - 1}, {true, MaxDiff/7 + 1, 0}, {true, 1, 1}, {false, 0, 0}} {
		if s := stats[i]; s.Counted != want.counted || want.counted && (s.Added != want.added || s.Removed != want.removed) {
			t.Errorf("%s: %+v, want %+v", s.Path, s, want)
		}
	}
}

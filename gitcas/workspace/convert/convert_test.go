package convert

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/testmode"
)

// settings are attributes, as a line of .gitattributes has them.
var settings = []string{
	"text", "-text", "text=auto", "text eol=crlf", "text eol=lf", "text=auto eol=crlf", "text=auto eol=lf",
	"eol=crlf", "eol=lf", "-text eol=crlf", "crlf", "-crlf", "crlf=input", "crlf=input eol=crlf", "crlf eol=crlf",
	"text=other", "other", "crlf=auto", "text=input",
}

// formOf reads settings.
func formOf(t *testing.T, line string) Form {
	t.Helper()
	values := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		name, value, valued := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(name, "-"):
			name, value = name[1:], "unset"
		case !valued:
			value = "set"
		}
		values[name] = value
	}
	return FormOf(values)
}

// randomFile is text with line ends of both kinds, of one, or with what makes it look binary.
func randomFile(r *rand.Rand) []byte {
	var b []byte
	kind := r.Intn(8)
	for range r.Intn(30) {
		switch n := r.Intn(6); {
		case n == 0:
			b = append(b, '\n')
		case n == 1:
			b = append(b, "\r\n"...)
		case n == 2:
			b = append(b, bytes.Repeat([]byte("text "), r.Intn(40))...)
		case n == 3 && kind == 0:
			b = append(b, '\r')
		case n == 4 && kind == 1:
			b = append(b, byte(r.Intn(256)))
		case n == 5 && kind == 2:
			b = append(b, 0)
		case n == 5 && kind == 3:
			b = append(b, 0x1a)
		}
	}
	switch kind {
	case 4:
		b = bytes.ReplaceAll(b, []byte("\r"), nil)
	case 5:
		b = bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r"), nil), []byte("\n"), []byte("\r\n"))
	}
	return b
}

// nativeGit runs the git of a folder in a new repository.
func nativeGit(t *testing.T, of string) (dir string, run func(args ...string) []byte) {
	t.Helper()
	git := filepath.Join(of, "git")
	dir = t.TempDir()
	run = func(args ...string) []byte {
		t.Helper()
		c := exec.Command(git, append([]string{"-c", "core.autocrlf=false", "-c", "core.safecrlf=false"}, args...)...)
		c.Dir = dir
		out, err := c.Output()
		if err != nil {
			t.Fatal(args, err)
		}
		return out
	}
	run("init", "-q", ".")
	return dir, run
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestLineEndsLikeGit compares both directions with git add and git checkout-index, of files
// that the index has with other content before.
func TestLineEndsLikeGit(t *testing.T) { testmode.EachGit(t, compareLineEnds) }

func compareLineEnds(t *testing.T, git string) {
	for seed := range testmode.Seeds(t, 1, 12) {
		r := rand.New(rand.NewSource(int64(seed)))
		dir, run := nativeGit(t, git)
		var rules strings.Builder
		was, now := map[string][]byte{}, map[string][]byte{}
		form := map[string]Form{}
		for i, line := range settings {
			fmt.Fprintf(&rules, "*.k%d %s\n", i, line)
			for j := range 20 {
				name := fmt.Sprintf("f%d.k%d", j, i)
				was[name], now[name], form[name] = randomFile(r), randomFile(r), formOf(t, line)
				write(t, dir, name, was[name])
			}
		}
		run("add", ".") // before there are attributes
		write(t, dir, ".git/info/attributes", []byte(rules.String()))
		for name, data := range now {
			write(t, dir, name, data)
		}
		run("add", ".")
		run("checkout-index", "-a", "--prefix=out/")
		write(t, dir, ".git/info/attributes", nil)
		run("checkout-index", "-a", "--prefix=stored/")
		for name, data := range now {
			stored := read(t, dir, "stored/"+name)
			f := form[name]
			got, err := f.ToGit(data, func() bool { return f.auto && HasCRLF(was[name]) && !countBytes(was[name]).isBinary() })
			if err != nil || !bytes.Equal(got, stored) {
				t.Fatalf("seed %d %s %+v: %q is stored as %q, by git as %q", seed, name, f, data, got, stored)
			}
			disk := read(t, dir, "out/"+name)
			if countBytes(stored).crlf > 0 {
				disk = stored // as addCRLF says
			}
			if got, err := f.ToFolder(stored, new([]byte)); err != nil || !bytes.Equal(got, disk) {
				t.Fatalf("seed %d %s %+v: %q is written as %q, by git as %q", seed, name, f, stored, got, disk)
			}
		}
	}
}

// TestCRLFStays: also in plain text, and after content that looks binary to git.
func TestCRLFStays(t *testing.T) {
	const edited = "a\r\nb\r\n"
	for _, line := range []string{"text", "text=auto", "text eol=crlf", "-text"} {
		for _, stored := range []string{"a\r\n", "\r\n\x01"} {
			got, err := formOf(t, line).ToGit([]byte(edited), func() bool { return HasCRLF([]byte(stored)) })
			if err != nil || string(got) != edited {
				t.Errorf("%s after %q: %q %v", line, stored, got, err)
			}
		}
	}
}

// encodings are names with text that each can hold.
var encodings = map[string]string{
	"UTF-16": "aß€😀\n", "utf16": "a\n", "UTF-16LE": "aß€😀\n", "utf-16le": "b\n", "UTF-16BE": "aß€😀\n", "UTF-16LE-BOM": "aß€\n",
	"UTF-32": "aß😀\n", "UTF-32LE": "aß😀\n", "UTF-32BE": "aß😀\n", "UTF-8": "aß\n", "utf8": "aß\n",
	"ISO-8859-1": "aß\xc2\x80\n", "latin1": "ß\n", "ISO-8859-15": "€\n", "ISO-8859-2": "ąę\n", "windows-1252": "€“”\n", "WINDOWS-1251": "Жя\n",
	"KOI8-R": "Жя\n", "IBM850": "ß░\n", "GBK": "中文\n", "GB18030": "中文😀\n",
}

// TestEncodingsLikeGit compares both directions.
func TestEncodingsLikeGit(t *testing.T) { testmode.EachGit(t, compareEncodings) }

func compareEncodings(t *testing.T, git string) {
	dir, run := nativeGit(t, git)
	var rules strings.Builder
	form := map[string]Form{}
	text := map[string]string{}
	n := 0
	for name, sample := range encodings {
		for eol, line := range map[string]string{"plain": "", "crlf": "text eol=crlf ", "auto": "text=auto eol=crlf "} {
			line += "working-tree-encoding=" + name
			file := fmt.Sprintf("f%d.%s", n, eol)
			fmt.Fprintf(&rules, "%s %s\n", file, line)
			form[file], text[file] = formOf(t, line), strings.Repeat(sample, n%3+1)
			write(t, dir, file, []byte(text[file]))
			n++
		}
	}
	run("add", ".") // as UTF-8
	write(t, dir, ".git/info/attributes", []byte(rules.String()))
	run("checkout-index", "-a", "--prefix=out/")
	for file, f := range form {
		theirs := read(t, dir, "out/"+file)
		ours, err := f.ToFolder([]byte(text[file]), new([]byte))
		if err != nil || !bytes.Equal(ours, theirs) {
			t.Errorf("%s: written as %q %v, by git as %q", f.encoding, ours, err, theirs)
			continue
		}
		back, err := f.ToGit(ours, func() bool { return false })
		if err != nil || string(back) != text[file] {
			t.Errorf("%s: comes back as %q %v", f.encoding, back, err)
		}
		write(t, dir, file, ours)
	}
	run("add", ".")
	write(t, dir, ".git/info/attributes", nil)
	run("checkout-index", "-a", "--prefix=stored/")
	for file := range form {
		if got := read(t, dir, "stored/"+file); string(got) != text[file] {
			t.Errorf("%s: git stores %q", form[file].encoding, got)
		}
	}
}

// TestUnconverted: what can't be converted comes back byte for byte, with the reason.
func TestUnconverted(t *testing.T) {
	for _, c := range []struct{ name, encoding, file, why string }{
		{"no mark", "UTF-16", "a\x00\r\x00\n\x00", "no byte order mark"},
		{"a mark too many", "UTF-16LE", "\xff\xfea\x00", "must not have"},
		{"a mark too many in UTF-32", "UTF-32BE", "\x00\x00\xfe\xff\x00\x00\x00a", "must not have"},
		{"half a character", "UTF-16", "\xff\xfea", "not text"},
		{"half a pair", "UTF-16", "\xff\xfe\x00\xd8", "not text"},
		{"a byte without meaning", "ISO-8859-3", "a\xa5\r\n", "not text"},
		{"no encoding", "NO-SUCH", "a\r\n", "can't convert"},
		{"set", "set", "a\r\n", "can't convert"},
		{"other tables than git's", "Shift_JIS", "a\r\n", "can't convert"},
	} {
		f := FormOf(map[string]string{"text": "set", "eol": "crlf", "working-tree-encoding": c.encoding})
		got, err := f.ToGit([]byte(c.file), func() bool { return false })
		var enc *EncodingError
		if string(got) != c.file || !errors.As(err, &enc) || enc.Encoding != c.encoding || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %q %v", c.name, got, err)
		}
	}
	for name, stored := range map[string]string{"ISO-8859-1": "€\n", "UTF-16": "\xff\n", "UTF-16BE": "\ufeffa\n", "NO-SUCH": "a\n"} {
		f := FormOf(map[string]string{"text": "set", "eol": "crlf", "working-tree-encoding": name})
		if got, err := f.ToFolder([]byte(stored), new([]byte)); string(got) != stored || err == nil {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	f := FormOf(map[string]string{"working-tree-encoding": "UTF-16"})
	if got, err := f.ToGit(nil, nil); len(got) > 0 || err != nil {
		t.Errorf("an empty file: %q %v", got, err)
	}
}

// FuzzForms: what is written to a folder comes back as it was stored.
func FuzzForms(f *testing.F) {
	names := []string{"", "UTF-16", "UTF-16LE", "UTF-32", "ISO-8859-1", "GBK", "GB18030", "windows-1252"}
	for i := range names {
		f.Add(i, i, []byte("a\nb\r\nß"))
	}
	f.Fuzz(func(t *testing.T, setting, name int, stored []byte) {
		line := settings[uint(setting)%uint(len(settings))]
		if name := names[uint(name)%uint(len(names))]; name != "" {
			line += " working-tree-encoding=" + name
		}
		form := formOf(t, line)
		file, err := form.ToFolder(stored, new([]byte))
		if err != nil || bytes.Equal(file, stored) {
			return
		}
		back, err := form.ToGit(file, func() bool { return HasCRLF(stored) })
		if err != nil || !bytes.Equal(back, stored) {
			t.Errorf("%s: %q is written as %q and comes back as %q %v", line, stored, file, back, err)
		}
	})
}

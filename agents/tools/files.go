package tools

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/internal/regular"
	"github.com/united-workforce/uwf/internal/text"
)

func fileTools() []tool {
	return []tool{
		newTool("read_file", "Read a text file of the workspace. Long files come in parts: the result says how to read on.",
			`{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},"offset":{"type":"integer","minimum":1,"description":"first line to read, from 1"},"limit":{"type":"integer","minimum":1,"description":"number of lines"}},"required":["path"],"additionalProperties":false}`,
			(*Set).readFile),
		newTool("write_file", "Write a whole text file: makes it with its folders, or replaces its content.",
			`{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},"content":{"type":"string","description":"the whole content"}},"required":["path","content"],"additionalProperties":false}`,
			(*Set).writeFile),
		newTool("edit_file", "Replace one passage of a text file. old_text must be in the file exactly once, with its indentation and line breaks; take in enough lines to make it unique.",
			`{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace"},"old_text":{"type":"string"},"new_text":{"type":"string"}},"required":["path","old_text","new_text"],"additionalProperties":false}`,
			(*Set).editFile),
		newTool("list_dir", "List a folder of the workspace: folders end with /, files show their size in bytes.",
			`{"type":"object","properties":{"path":{"type":"string","description":"relative to the workspace; default ."}},"additionalProperties":false}`,
			(*Set).listDir),
		newTool("glob", "Find files by pattern, as in **/*.go or src/*.{ts,tsx}. node_modules is left out unless the pattern or path names it.",
			`{"type":"object","properties":{"pattern":{"type":"string","description":"** any folders, * and ? within a name, [a-z], {a,b}"},"path":{"type":"string","description":"folder to look in; default ."}},"required":["pattern"],"additionalProperties":false}`,
			(*Set).globFiles),
		newTool("grep", "Search the text files of the workspace with a regular expression (RE2, as in Go), line by line.",
			`{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string","description":"file or folder to look in; default ."},"glob":{"type":"string","description":"only files that match, as in **/*.go"},"ignore_case":{"type":"boolean"}},"required":["pattern"],"additionalProperties":false}`,
			(*Set).grepFiles),
	}
}

type readIn struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

func (s *Set) readFile(_ context.Context, in readIn) (string, error) {
	_, text, err := s.readText(in.Path)
	if err != nil {
		return "", err
	}
	if text == "" {
		return "[the file is empty]", nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	first := max(in.Offset, 1)
	if first > len(lines) {
		return "", fmt.Errorf("%s has %d lines; offset %d is behind its end", in.Path, len(lines), first)
	}
	last, size := first-1, 0
	for last < len(lines) && (in.Limit <= 0 || last-first+1 < in.Limit) {
		if size += len(lines[last]); size > s.o.MaxResult-200 && last >= first {
			break
		}
		last++
	}
	out := strings.Join(lines[first-1:last], "")
	if first > 1 || last < len(lines) {
		out = strings.TrimSuffix(out, "\n") + fmt.Sprintf("\n[lines %d–%d of %d", first, last, len(lines))
		if last < len(lines) {
			out += fmt.Sprintf("; go on with offset %d", last+1)
		}
		out += "]"
	}
	return out, nil
}

// readText reads a text file whole. It returns the path without symlinks, too.
func (s *Set) readText(p string) (string, string, error) {
	real, err := s.resolvePath(p)
	if err != nil {
		return "", "", err
	}
	b, err := s.readRegular(real, maxRead)
	if err != nil {
		return "", "", err
	}
	if isBinary(b) {
		return "", "", fmt.Errorf("%s is a binary file of %d bytes; only text can be read", p, len(b))
	}
	return real, string(b), nil
}

// readRegular reads a regular file; real is a path that resolvePath returned.
func (s *Set) readRegular(real string, limit int64) ([]byte, error) {
	b, err := regular.Read(s.root, real, limit)
	return b, plainError(real, err)
}

// plainError says in words what a model can act on; other errors stay as they are.
func plainError(p string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file or folder; list_dir or glob show what there is", p)
	case errors.Is(err, unix.ENXIO):
		return fmt.Errorf("%s is no regular file", p)
	}
	return err
}

// isBinary: a NUL near the beginning, as git decides, or anything that is not UTF-8.
func isBinary(b []byte) bool {
	return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 || !utf8.Valid(b)
}

type writeIn struct {
	Path    string  `json:"path"`
	Content *string `json:"content"`
}

func (s *Set) writeFile(_ context.Context, in writeIn) (string, error) {
	if in.Content == nil {
		return "", errors.New("content is missing; pass the whole content, \"\" for an empty file")
	}
	real, err := s.resolvePath(in.Path)
	if err != nil {
		return "", err
	}
	info, err := s.root.Lstat(real)
	mode, verb := os.FileMode(0o644), "wrote the new file"
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is %s; it can't be written", in.Path, regular.DescribeKind(info.Mode()))
	default:
		mode, verb = info.Mode().Perm(), "replaced"
	}
	content := *in.Content
	if s.hasOnlyCRLF(real) && !strings.Contains(content, "\r") {
		content = strings.ReplaceAll(content, "\n", "\r\n")
		verb = "replaced, with CRLF as before,"
	}
	if err := s.replaceFile(real, []byte(content), mode); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s (%d bytes)", verb, real, len(content)), nil
}

// hasOnlyCRLF reports whether real is a text whose lines all end with CRLF.
func (s *Set) hasOnlyCRLF(real string) bool {
	b, err := s.readRegular(real, maxWrite)
	crlf := bytes.Count(b, []byte("\r\n"))
	return err == nil && crlf > 0 && crlf == bytes.Count(b, []byte("\n")) && !isBinary(b)
}

// replaceFile replaces a file by a new one, so that another name of the old one (a hard
// link into a package cache, for instance) keeps its content.
func (s *Set) replaceFile(real string, b []byte, mode os.FileMode) error {
	if len(b) > maxWrite {
		return fmt.Errorf("%d bytes; files up to %d are written", len(b), maxWrite)
	}
	if real == "." {
		return errors.New("the workspace itself is a folder; name a file in it")
	}
	dir := path.Dir(real)
	if err := s.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp := path.Join(dir, ".uwf-"+rand.Text()[:12]+".tmp")
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		if err = s.root.Chmod(temp, mode); err == nil {
			err = s.root.Rename(temp, real)
		}
	}
	if err != nil {
		return errors.Join(err, s.root.Remove(temp))
	}
	return nil
}

type editIn struct {
	Path string  `json:"path"`
	Old  string  `json:"old_text"`
	New  *string `json:"new_text"`
}

func (s *Set) editFile(_ context.Context, in editIn) (string, error) {
	switch {
	case in.New == nil:
		return "", errors.New("new_text is missing; pass \"\" to delete old_text")
	case in.Old == "":
		return "", errors.New("old_text is empty; use write_file for a new file")
	case in.Old == *in.New:
		return "", errors.New("old_text and new_text are the same")
	}
	real, text, err := s.readText(in.Path)
	if err != nil {
		return "", err
	}
	found := findPassage(text, in.Old)
	switch n := len(found); {
	case n == 0:
		return "", notFound(in.Path, text, in.Old)
	case n > 1:
		return "", fmt.Errorf("old_text is %d times in %s (lines %s); take in more lines around it to make it unique",
			n, in.Path, lineList(text, found))
	}

	before := text[:found[0][0]]
	after := text[found[0][1]:]
	repl := *in.New
	if !strings.Contains(in.Old+repl, "\r") && endsInCRLF(before, text[len(before):]) {
		repl = strings.ReplaceAll(repl, "\n", "\r\n")
	}

	info, err := s.root.Lstat(real)
	if err != nil {
		return "", err
	}
	if err := s.replaceFile(real, []byte(before+repl+after), info.Mode().Perm()); err != nil {
		return "", err
	}
	return fmt.Sprintf("edited %s at line %d", real, 1+strings.Count(before, "\n")), nil
}

// findPassage returns the places of old in text, each as its begin and its end. A line of old
// that ends with LF also matches one that ends with CRLF: models write LF, whatever the file has.
func findPassage(text, old string) [][]int {
	pattern := regexp.QuoteMeta(old)
	if !strings.Contains(old, "\r") {
		pattern = strings.ReplaceAll(pattern, "\n", `\r?\n`)
	}
	return regexp.MustCompile(pattern).FindAllStringIndex(text, -1)
}

// endsInCRLF reports whether the line between before and rest ends with CRLF. The last line
// of a file has no end, so the line above it counts.
func endsInCRLF(before, rest string) bool {
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		return strings.HasSuffix(before+rest[:end], "\r")
	}
	last := strings.LastIndexByte(before, '\n')
	return last > 0 && before[last-1] == '\r'
}

// notFound says where the text would be if blanks did not count: the usual reason.
func notFound(p, text, old string) error {
	want := trimBlank(old)
	lines := strings.Split(text, "\n")
	n := strings.Count(strings.Trim(old, "\n"), "\n") + 1
	for i := 0; want != "" && i+n <= len(lines); i++ {
		if trimBlank(strings.Join(lines[i:i+n], "\n")) == want {
			return fmt.Errorf("old_text is not in %s as written, but lines %d–%d differ from it only in blanks; read them again and copy them exactly", p, i+1, i+n)
		}
	}
	if near := nearestLines(lines, strings.Split(strings.Trim(old, "\n"), "\n")); near != "" {
		return fmt.Errorf("old_text is not in %s; the nearest lines there are\n%s\ncopy the passage exactly, without the numbers", p, near)
	}
	return fmt.Errorf("old_text is not in %s; read the file again and copy the passage exactly", p)
}

const (
	maxNear     = 12      // lines that are shown of a file
	maxCompared = 200_000 // lines that are compared with each other
)

// nearestLines shows the passage that has most lines of another one, or else the line that has
// most in common with its longest line; empty: nothing is like it.
func nearestLines(lines, want []string) string {
	if len(lines)*len(want) > maxCompared {
		want = want[:max(1, maxCompared/len(lines))]
	}
	best, most := 0, 0
	for i := range lines {
		score := 0
		for j, w := range want {
			if i+j < len(lines) {
				score += likeness(lines[i+j], w)
			}
		}
		if score > most {
			best, most = i, score
		}
	}
	size := 0
	for _, w := range want {
		size += len(strings.TrimSpace(w))
	}
	if most*3 < size || most == 0 { // by chance alone
		return ""
	}
	var b strings.Builder
	for i := best; i < min(len(lines), best+min(len(want), maxNear)); i++ {
		fmt.Fprintf(&b, "%d: %s\n", i+1, text.Cut(lines[i], maxLine))
	}
	return strings.TrimRight(b.String(), "\n")
}

// likeness is how many bytes two lines begin and end with alike, blanks around them apart.
func likeness(a, b string) int {
	a, b = strings.TrimSpace(a), strings.TrimSpace(b)
	short, n, m := min(len(a), len(b)), 0, 0
	for n < short && a[n] == b[n] {
		n++
	}
	for m < short-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return n + m
}

func trimBlank(text string) string {
	return strings.Join(strings.Fields(text), "")
}

// lineList names the lines of the first ten places.
func lineList(text string, found [][]int) string {
	var out []string
	for _, place := range found {
		if len(out) == 10 {
			return strings.Join(out, ", ") + ", …"
		}
		out = append(out, fmt.Sprint(1+strings.Count(text[:place[0]], "\n")))
	}
	return strings.Join(out, ", ")
}

type listIn struct {
	Path string `json:"path"`
}

func (s *Set) listDir(_ context.Context, in listIn) (string, error) {
	if in.Path == "" {
		in.Path = "."
	}
	real, err := s.resolvePath(in.Path)
	if err != nil {
		return "", err
	}
	entries, more, err := s.listFolder(real, maxListed)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it went away meanwhile
		}
		switch m := info.Mode(); {
		case m.IsDir():
			fmt.Fprintf(&b, "%s/\n", e.Name())
		case m&fs.ModeSymlink != 0:
			target, _ := s.root.Readlink(path.Join(real, e.Name()))
			fmt.Fprintf(&b, "%s -> %s\n", e.Name(), target)
		case m.IsRegular():
			fmt.Fprintf(&b, "%s  %d\n", e.Name(), info.Size())
		default:
			fmt.Fprintf(&b, "%s  (%s)\n", e.Name(), regular.DescribeKind(m))
		}
	}
	if more {
		fmt.Fprintf(&b, "[only the first %d entries]\n", maxListed)
	}
	if b.Len() == 0 {
		return "[the folder is empty]", nil
	}
	return b.String(), nil
}

// listFolder lists a folder without `.git`, sorted by name. More says that there are
// further entries than limit.
func (s *Set) listFolder(real string, limit int) (out []fs.DirEntry, more bool, err error) {
	d, err := s.root.OpenFile(real, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, false, plainError(real, err)
	}
	defer func() { _ = d.Close() }()
	if info, err := d.Stat(); err != nil {
		return nil, false, err
	} else if !info.IsDir() {
		return nil, false, fmt.Errorf("%s is %s, not a folder", real, regular.DescribeKind(info.Mode()))
	}
	all, err := d.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	slices.SortFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range all {
		switch {
		case isGit(e.Name()):
		case len(out) == limit:
			return out, true, nil
		default:
			out = append(out, e)
		}
	}
	return out, len(all) == maxEntries, nil
}

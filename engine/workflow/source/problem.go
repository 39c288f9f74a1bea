package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxProblems is how many problems List returns: more help nobody.
const MaxProblems = 100

// maxSnippet is the longest line that is shown with a problem, in bytes.
const maxSnippet = 2_000

// Problem is one mistake in a definition. Line and Col count from 1, Col in
// characters; Len is how many characters are meant, at least 1.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Len     int    `json:"len"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	Snippet string `json:"snippet,omitempty"` // the line itself
}

// String is the problem in one line: file:line:col: message (fix).
func (p Problem) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Message)
	if p.Fix != "" {
		s += " (" + p.Fix + ")"
	}
	return s
}

// Text is the problem for a terminal: where and what, the line with a caret
// below it, and the fix.
func (p Problem) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: %s\n", p.File, p.Line, p.Col, p.Message)
	if p.Snippet != "" {
		line, before := window(p.Snippet, p.Col-1)
		number := fmt.Sprintf("%5d", p.Line)
		fmt.Fprintf(&b, "%s | %s\n", number, line)
		length := min(max(p.Len, 1), max(len([]rune(line))-len([]rune(before)), 1))
		fmt.Fprintf(&b, "%s | %s%s\n", strings.Repeat(" ", len(number)), before, strings.Repeat("^", length))
	}
	if p.Fix != "" {
		fmt.Fprintf(&b, "      = %s\n", p.Fix)
	}
	return b.String()
}

// window cuts a long line to what lies around column col (from 0), makes it
// printable, and returns it with the blank text that aligns a caret below it.
func window(line string, col int) (text, before string) {
	const width = 120
	runes := []rune(line)
	col = min(max(col, 0), len(runes))
	from := 0
	if len(runes) > width && col > width/2 {
		from = col - width/2
	}
	to := min(from+width, len(runes))
	var b, pad strings.Builder
	for i := from; i < to; i++ {
		r := runes[i]
		if r != '\t' && !unicode.IsPrint(r) {
			r = '·' // a definition must not send escapes to the terminal
		}
		b.WriteRune(r)
		if i < col {
			if r == '\t' {
				pad.WriteRune('\t')
			} else {
				pad.WriteRune(' ')
			}
		}
	}
	return b.String(), pad.String()
}

// file is one file that a definition consists of.
type file struct {
	name  string
	lines []string
}

func newFile(name string, data []byte) *file {
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	f := &file{name: name}
	for {
		i := strings.IndexFunc(text, isBreak)
		if i < 0 {
			f.lines = append(f.lines, text)
			return f
		}
		f.lines = append(f.lines, text[:i])
		_, size := utf8.DecodeRuneInString(text[i:])
		text = text[i+size:]
	}
}

// isBreak reports what the YAML library counts as the end of a line.
func isBreak(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
}

func (s *file) line(n int) string {
	if n < 1 || n > len(s.lines) {
		return ""
	}
	return s.lines[n-1]
}

// Pos is a place in a file. The zero value is no place.
type Pos struct {
	src       *file
	line, col int
}

// IsZero reports a Pos that is no place.
func (p Pos) IsZero() bool { return p.src == nil }

// Problems collects what is wrong with a file and what it includes.
type Problems struct{ list []Problem }

// Add reports a problem at a place, meaning length characters there. The message
// is formatted with args; fix says what to do about it.
func (ps *Problems) Add(at Pos, length int, fix, format string, args ...any) {
	if ps.Full() {
		return
	}
	if at.src == nil {
		at.src = &file{name: "?"}
	}
	p := Problem{
		File: at.src.name, Line: max(at.line, 1), Col: max(at.col, 1), Len: max(length, 1),
		Message: fmt.Sprintf(format, args...), Fix: fix,
	}
	if line := at.src.line(at.line); len(line) <= maxSnippet {
		p.Snippet = line
	}
	if !slices.Contains(ps.list, p) {
		ps.list = append(ps.list, p)
	}
}

// Full reports that there are so many problems that further ones are dropped.
func (ps *Problems) Full() bool { return len(ps.list) >= 2*MaxProblems }

// Empty reports that there are none.
func (ps *Problems) Empty() bool { return len(ps.list) == 0 }

// List returns the problems, each once, in the order of the files: first those of
// the file called name, then those of what it includes. At most MaxProblems.
func (ps *Problems) List(name string) []Problem {
	list := slices.Clone(ps.list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		if a.File != b.File {
			// The definition itself goes before what it includes.
			return cmp.Or(boolOrder(a.File == name, b.File == name), strings.Compare(a.File, b.File))
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	if len(list) > MaxProblems {
		list = list[:MaxProblems]
	}
	return list
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

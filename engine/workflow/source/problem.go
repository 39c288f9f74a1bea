package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// MaxProblems is how many problems List returns: more help nobody.
const MaxProblems = 100

// maxSnippet is the longest line that is shown with a problem, in bytes.
const maxSnippet = 2_000

// Problem is one mistake in a definition. Line and Col count from 1, Col in
// characters; Len is how many characters are meant, at least 1. Where it is about a
// file as a whole they are 0.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"column,omitempty"`
	Len     int    `json:"length,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	Snippet string `json:"-"` // the line, or what of a very long one lies around Col
	// before is how many characters of the line stand before Snippet.
	before int
}

// Place is where it is: file:line:col, or the file alone.
func (p Problem) Place() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// String is the problem in one line: file:line:col: message (fix).
func (p Problem) String() string {
	s := p.Place() + ": " + p.Message
	if p.Fix != "" {
		s += " (" + p.Fix + ")"
	}
	return s
}

// Text is the problem for a terminal: where and what, the line with a caret
// below it, and the fix.
func (p Problem) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", p.Place(), p.Message)
	if p.Snippet != "" {
		line, caret := p.windowAround()
		number := fmt.Sprintf("%5d", p.Line)
		fmt.Fprintf(&b, "%s | %s\n", number, line)
		fmt.Fprintf(&b, "%s | %s\n", strings.Repeat(" ", len(number)), caret)
	}
	if p.Fix != "" {
		fmt.Fprintf(&b, "      = %s\n", p.Fix)
	}
	return b.String()
}

// windowAround is what of the line lies around the place, made printable, and the
// carets below it. Both have the same tabs, and are as wide as a terminal shows
// them: a wide character takes two columns, a combining one none.
func (p Problem) windowAround() (text, caret string) {
	const width = 120 // columns, about half of them before the place
	runes := printableLine(p.Snippet)
	col := min(max(p.Col-1-p.before, 0), len(runes))
	from, to := pickPart(runes, col, width)
	head, tail := "", ""
	if from > 0 || p.before > 0 {
		head = "…"
	}
	if to < len(runes) {
		tail = "…"
	}
	meant := runes[col:min(col+max(p.Len, 1), to)]
	caret = blankLike(head) + blankLike(string(runes[from:col])) + strings.Repeat("^", max(displaywidth.String(string(meant)), 1))
	return head + string(runes[from:to]) + tail, caret
}

// pickPart picks the part of a line that is shown with column col: all of it where
// that fits.
func pickPart(runes []rune, col, width int) (from, to int) {
	if displaywidth.String(string(runes))+8*strings.Count(string(runes), "\t") <= width {
		return 0, len(runes)
	}
	used := 0
	for from = col; from > 0 && used < width/2; from-- {
		used += runeColumns(runes[from-1])
	}
	for to = col; to < len(runes) && used < width; to++ {
		used += runeColumns(runes[to])
	}
	return from, to
}

// runeColumns is at most how wide a character is shown.
func runeColumns(r rune) int {
	if r == '\t' {
		return 8
	}
	return displaywidth.Rune(r)
}

// printableLine is a line of a definition as it is shown above a caret. It is stricter than
// text.IsUnsafe: what is not seen, such as a no-break space, may be what is wrong.
func printableLine(line string) []rune {
	runes := []rune(line)
	for i, r := range runes {
		if r != '\t' && !unicode.IsPrint(r) {
			runes[i] = '·'
		}
	}
	return runes
}

// blankLike is as wide as a text, with its tabs.
func blankLike(text string) string {
	parts := lists.Map(strings.Split(text, "\t"), func(p string) string { return strings.Repeat(" ", displaywidth.String(p)) })
	return strings.Join(parts, "\t")
}

// cutSnippet is a line to be shown with a problem at column col (from 1), and how
// many characters of the line were left out before it.
func cutSnippet(line string, col int) (string, int) {
	if len(line) <= maxSnippet {
		return line, 0
	}
	const side = maxSnippet / 8 // characters of up to four bytes, on each side
	runes := []rune(line)
	at := min(col-1, len(runes))
	from := max(at-side, 0)
	return string(runes[from:min(at+side, len(runes))]), from
}

// Problems collects what is wrong with a file and what it includes.
type Problems struct{ list []Problem }

// Add reports a problem at a place, meaning length characters there. The message
// is formatted with args; fix says what to do about it.
func (ps *Problems) Add(at strictyaml.Pos, length int, fix, format string, args ...any) {
	if ps.Full() {
		return
	}
	p := Problem{
		File: at.File.Name, Line: max(at.Line, 1), Col: max(at.Col, 1), Len: max(length, 1),
		Message: fmt.Sprintf(format, args...), Fix: fix,
	}
	p.Snippet, p.before = cutSnippet(at.LineText(), p.Col)
	if !slices.Contains(ps.list, p) {
		ps.list = append(ps.list, p)
	}
}

// Full reports that there are so many problems that further ones are dropped.
func (ps *Problems) Full() bool { return len(ps.list) >= 2*MaxProblems }

// Empty reports that there are none.
func (ps *Problems) Empty() bool { return len(ps.list) == 0 }

// First is the problem that was reported first.
func (ps *Problems) First() Problem { return ps.list[0] }

// List returns the problems, each once, in the order of the files: first those of
// the file called name, then those of what it includes. At most MaxProblems.
func (ps *Problems) List(name string) []Problem {
	list := slices.Clone(ps.list)
	rank := func(p Problem) int { // the definition itself goes before what it includes
		if p.File == name {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	if len(list) > MaxProblems {
		list = list[:MaxProblems]
	}
	return list
}

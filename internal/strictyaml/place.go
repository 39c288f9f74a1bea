package strictyaml

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/yamlline"
)

// File is one file that values stand in.
type File struct {
	Name string
	data string
	text []string // its lines; nil: not divided yet
}

// lines are the file's lines, without their ends.
func (f *File) lines() []string {
	if f.text == nil {
		f.text = yamlline.Lines(f.data)
	}
	return f.text
}

func (f *File) lineText(n int) string {
	if n < 1 || n > len(f.lines()) {
		return ""
	}
	return f.lines()[n-1]
}

func (f *File) place(line, col int) Pos { return Pos{f, line, col} }

// Pos is a place in a file; line and column count from 1, columns in characters. The zero
// value is no place.
type Pos struct {
	File      *File
	Line, Col int
}

// IsZero reports a Pos that is no place.
func (p Pos) IsZero() bool { return p.File == nil }

// LineText is the line of the place.
func (p Pos) LineText() string { return p.File.lineText(p.Line) }

// Length is how many characters a caret below the value spans.
func (n *Node) Length() int {
	if n.Kind != Scalar || strings.Contains(n.Text, "\n") {
		return 1
	}
	length := utf8.RuneCountInString(n.Text)
	if line := []rune(n.Pos.LineText()); n.Pos.Col >= 1 && n.Pos.Col <= len(line) {
		if q := line[n.Pos.Col-1]; q == '"' || q == '\'' {
			length += 2
		}
	}
	return length
}

// stepInto follows one part of a JSON pointer. A nil value: there is none.
func (n *Node) stepInto(part string) (at Pos, length int, next *Node) {
	part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	if i, err := strconv.Atoi(part); n.Kind == List && err == nil && i >= 0 && i < len(n.Items) {
		return n.Items[i].Pos, n.Items[i].Length(), n.Items[i]
	}
	if e := n.Get(part); e != nil {
		return e.Pos, utf8.RuneCountInString(e.Key), e.Val
	}
	return Pos{}, 0, nil
}

// At finds the place of a JSON pointer below the value, and how many characters
// it spans there: of the key where the pointer names one, of the nearest thing
// above where it names nothing.
func (n *Node) At(pointer string) (Pos, int) {
	at, length, _ := n.followPointer(pointer)
	return at, length
}

// ValueAt is like At, but finds the value itself where it is a scalar.
func (n *Node) ValueAt(pointer string) (Pos, int) {
	at, length, last := n.followPointer(pointer)
	if last != nil && last.Kind == Scalar {
		return last.Pos, last.Length()
	}
	return at, length
}

// Find finds the value that a JSON pointer names; nil if it names nothing.
func (n *Node) Find(pointer string) *Node {
	_, _, found := n.followPointer(pointer)
	return found
}

// followPointer walks a JSON pointer; last is nil where the pointer names nothing.
func (n *Node) followPointer(pointer string) (at Pos, length int, last *Node) {
	at, length, last = n.Pos, n.Length(), n
	if pointer == "" {
		return at, length, last
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		p, l, next := last.stepInto(part)
		if next == nil {
			return at, length, nil
		}
		at, length, last = p, l, next
	}
	return at, length, last
}

// Within is the place of a part of a text: length bytes from offset on, both in
// bytes of the text. Length is cut at the end of its line. Where the text's lines
// can't be told apart, the part's own words are looked for; where they aren't found
// it is the text's beginning.
func (n *Node) Within(offset, length int) (Pos, int) {
	text, _ := n.Scalar.(string)
	if offset < 0 || offset > len(text) || n.Kind != Scalar {
		return n.Pos, n.Length()
	}
	part, _, _ := strings.Cut(text[offset:min(offset+max(length, 0), len(text))], "\n")
	before := text[:offset]
	span := max(utf8.RuneCountInString(part), 1)
	start := strings.LastIndexByte(before, '\n') + 1
	if at, ok := n.textLine(text, before, start); ok {
		at.Col += utf8.RuneCountInString(before[start:])
		return at, span
	}
	if at, ok := n.searchWords(part, strings.Count(before, part)+1); ok && part != "" {
		return at, span
	}
	return n.Pos, n.Length()
}

// textLine is where the line of a text that starts at start begins in the file.
func (n *Node) textLine(text, before string, start int) (Pos, bool) {
	line, _, _ := strings.Cut(text[start:], "\n")
	at := n.Pos
	if n.block != notBlock {
		at.Line += strings.Count(before, "\n")
		if n.block == blockYAML {
			at.Line++
		}
		indent, ok := strings.CutSuffix(at.LineText(), line)
		at.Col = utf8.RuneCountInString(indent) + 1
		return at, ok
	}
	whole := at.LineText()
	from := byteOffset(whole, at.Col)
	if from < len(whole) && (whole[from] == '"' || whole[from] == '\'') {
		from++
		at.Col++
	}
	return at, !strings.Contains(text, "\n") && strings.HasPrefix(whole[from:], text)
}

// searchWords finds the n-th place (from 1) of some words within the value's lines.
func (n *Node) searchWords(words string, nth int) (Pos, bool) {
	last := len(n.Pos.File.lines())
	if n.end.File == n.Pos.File && n.end.Line > 0 {
		last = min(n.end.Line, last)
	}
	for at := n.Pos; at.Line <= last; at.Line, at.Col = at.Line+1, 1 {
		line := at.LineText()
		from := byteOffset(line, at.Col)
		for found := strings.Index(line[from:], words); found >= 0; found = strings.Index(line[from:], words) {
			if nth--; nth == 0 {
				at.Col = utf8.RuneCountInString(line[:from+found]) + 1
				return at, true
			}
			from += found + len(words)
		}
	}
	return Pos{}, false
}

// byteOffset is where the character of column col (from 1) begins in a line, in bytes.
func byteOffset(line string, col int) int {
	n := 1
	for i := range line {
		if n == col {
			return i
		}
		n++
	}
	return len(line)
}

package source

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Length is how many characters a caret below the value spans.
func (v *Value) Length() int {
	if v.Kind != KindScalar || strings.Contains(v.Text, "\n") {
		return 1
	}
	n := utf8.RuneCountInString(v.Text)
	if line := []rune(v.Pos.src.lineText(v.Pos.line)); v.Pos.col >= 1 && v.Pos.col <= len(line) {
		if q := line[v.Pos.col-1]; q == '"' || q == '\'' {
			n += 2
		}
	}
	return n
}

// stepInto follows one part of a JSON pointer. A nil value: there is none.
func (v *Value) stepInto(part string) (at Pos, length int, next *Value) {
	part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	if v.Kind == KindList {
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || i >= len(v.Items) {
			return Pos{}, 0, nil
		}
		next = v.Items[i]
		length = next.Length()
		return next.Pos, length, next
	}
	e := v.Get(part)
	if e == nil {
		return Pos{}, 0, nil
	}
	return e.Pos, utf8.RuneCountInString(e.Key), e.Val
}

// At finds the place of a JSON pointer below the value, and how many characters
// it spans there: of the key where the pointer names one, of the nearest thing
// above where it names nothing.
func (v *Value) At(pointer string) (Pos, int) {
	at, length, _ := v.followPointer(pointer)
	return at, length
}

// ValueAt is like At, but finds the value itself where it is a scalar.
func (v *Value) ValueAt(pointer string) (Pos, int) {
	at, length, last := v.followPointer(pointer)
	if last != nil && last.Kind == KindScalar {
		return last.Pos, last.Length()
	}
	return at, length
}

// followPointer walks a JSON pointer; last is nil where the pointer names nothing.
func (v *Value) followPointer(pointer string) (at Pos, length int, last *Value) {
	at, length, last = v.Pos, v.Length(), v
	if pointer == "" {
		return at, length, last
	}
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		p, n, next := last.stepInto(part)
		if next == nil {
			return at, length, nil
		}
		at, length, last = p, n, next
	}
	return at, length, last
}

// TagAt finds the n-th use (from 1) of a name between {{ and }} in a text, and
// how many characters the tag spans. Where it can't be found, because the text is
// written with escapes, that is the text's beginning.
func (v *Value) TagAt(name string, n int) (Pos, int) {
	re, err := regexp.Compile(`\{\{[{&#^]?\s*` + regexp.QuoteMeta(name) + `\s*\}\}\}?`)
	if err != nil {
		return v.Pos, 1
	}
	for i := v.Pos.line; i <= v.lastLine(); i++ {
		line, from := v.Pos.src.lineText(i), 0
		if i == v.Pos.line {
			from = byteOffset(line, v.Pos.col)
		}
		found := re.FindAllStringIndex(line[from:], n)
		if len(found) < n {
			n -= len(found)
			continue
		}
		m := found[n-1]
		return Pos{v.Pos.src, i, utf8.RuneCountInString(line[:from+m[0]]) + 1}, utf8.RuneCountInString(line[from+m[0] : from+m[1]])
	}
	return v.Pos, v.Length()
}

// LineAt is the place of a line (from 1) within a text, and how many characters
// it has. Only block texts and included files keep their lines; of other texts it
// is the beginning.
func (v *Value) LineAt(n int) (Pos, int) {
	line := v.Pos.line + n
	if v.block == blockText {
		line--
	}
	if v.block == notBlock || line > len(v.Pos.src.lines) {
		return v.Pos, v.Length()
	}
	text := v.Pos.src.lineText(line)
	trimmed := strings.TrimLeft(text, " ")
	return Pos{v.Pos.src, line, len(text) - len(trimmed) + 1}, max(utf8.RuneCountInString(trimmed), 1)
}

// Within is the place of a part of a text: length bytes from offset on, both in
// bytes of the text. Length is cut at the end of its line. Where the text's lines
// can't be told apart, the part's own words are looked for; where they aren't found
// it is the text's beginning.
func (v *Value) Within(offset, length int) (Pos, int) {
	text, _ := v.Scalar.(string)
	if offset < 0 || offset > len(text) || v.Kind != KindScalar {
		return v.Pos, v.Length()
	}
	part := text[offset:min(offset+max(length, 0), len(text))]
	part, _, _ = strings.Cut(part, "\n")
	before := text[:offset]
	n := max(utf8.RuneCountInString(part), 1)
	start := strings.LastIndexByte(before, '\n') + 1
	if at, ok := v.textLine(text, before, start); ok {
		at.col += utf8.RuneCountInString(before[start:])
		return at, n
	}
	if part == "" {
		return v.Pos, v.Length()
	}
	if at, ok := v.searchWords(part, strings.Count(before, part)+1); ok {
		return at, n
	}
	return v.Pos, v.Length()
}

// textLine is where the line of a text that starts at start begins in the file.
func (v *Value) textLine(text, before string, start int) (Pos, bool) {
	line, _, _ := strings.Cut(text[start:], "\n")
	at := v.Pos
	switch v.block {
	case blockYAML, blockText:
		at.line += strings.Count(before, "\n")
		if v.block == blockYAML {
			at.line++
		}
		whole := v.Pos.src.lineText(at.line)
		if indent, ok := strings.CutSuffix(whole, line); ok {
			at.col = utf8.RuneCountInString(indent) + 1
			return at, true
		}
		return at, false
	}
	whole := v.Pos.src.lineText(at.line)
	from := byteOffset(whole, at.col)
	if from < len(whole) && (whole[from] == '"' || whole[from] == '\'') {
		from++
		at.col++
	}
	return at, !strings.Contains(text, "\n") && strings.HasPrefix(whole[from:], text)
}

// searchWords finds the n-th place (from 1) of some words within the value's lines.
func (v *Value) searchWords(words string, n int) (Pos, bool) {
	for i := v.Pos.line; i <= v.lastLine(); i++ {
		line, from := v.Pos.src.lineText(i), 0
		if i == v.Pos.line {
			from = byteOffset(line, v.Pos.col)
		}
		for {
			at := strings.Index(line[from:], words)
			if at < 0 {
				break
			}
			if n--; n == 0 {
				return Pos{v.Pos.src, i, utf8.RuneCountInString(line[:from+at]) + 1}, true
			}
			from += at + len(words)
		}
	}
	return Pos{}, false
}

// lastLine is the last line that the value may stand on.
func (v *Value) lastLine() int {
	last := len(v.Pos.src.lines)
	if v.end.src == v.Pos.src && v.end.line > 0 {
		last = min(v.end.line, last)
	}
	return last
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

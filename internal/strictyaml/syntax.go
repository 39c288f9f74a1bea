package strictyaml

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/yamlline"
)

var unknownAnchor = lazyregexp.New(`^unknown anchor '(.*)' referenced`)

// syntaxFault is an error of the YAML library, which has a line at best.
func syntaxFault(src *File, err error) *Fault {
	line, msg := yamlline.Find(src.data, err)
	at := src.place(min(max(line, 1), len(src.lines())), 1)
	if m := unknownAnchor.FindStringSubmatch(msg); m != nil {
		return &Fault{At: src.findText("*" + m[1]), Len: len(m[1]) + 1, Message: fmt.Sprintf("the alias *%s has no anchor &%s before it", m[1], m[1]),
			Fix: "write &" + m[1] + " before the value that is meant, further up; text that begins with * needs quotes"}
	}
	for at.Line > 1 && strings.TrimSpace(at.LineText()) == "" {
		at.Line-- // the end of the file says less than the last line with text
	}
	text := at.LineText()
	colons, control := strings.Contains(msg, "mapping values are not allowed"), strings.Contains(msg, "control characters")
	begin := len(text) - len(strings.TrimLeft(text, " \t"))
	length := utf8.RuneCountInString(strings.TrimSpace(text))
	if i := strings.LastIndex(text, ": "); i >= 0 && colons {
		begin, length = i, 1
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }); i >= 0 && control {
		begin, length = i, 1
	}
	at.Col = utf8.RuneCountInString(text[:begin]) + 1
	fix := syntaxFix(msg, text)
	if n := src.indentBefore(at.Line); n > 0 && colons {
		fix = fmt.Sprintf("indent it like the line before, by %d spaces; put text that contains \": \" in quotes", n)
	}
	return &Fault{At: at, Len: length, Message: "not valid YAML: " + msg, Fix: fix}
}

// indentBefore is the indentation of the line before, where that is a key with a value
// and the line itself, which seems to be a key too, is indented deeper; 0: not so.
func (f *File) indentBefore(line int) int {
	before, here := f.lineText(line-1), f.lineText(line)
	n := len(before) - len(strings.TrimLeft(before, " "))
	if len(here)-len(strings.TrimLeft(here, " ")) <= n || !keyWithValue.MatchString(before) || !keyWithValue.MatchString(here) {
		return 0
	}
	return n
}

var keyWithValue = lazyregexp.New(`^ +[\w$-]+: +[^|>\s]`)

// findText is the first place of a text.
func (f *File) findText(text string) Pos {
	for i, line := range f.lines() {
		if at := strings.Index(line, text); at >= 0 {
			return f.place(i+1, utf8.RuneCountInString(line[:at])+1)
		}
	}
	return f.place(1, 1)
}

// syntaxFix says what to do about a message of the library, and the line that it is about.
func syntaxFix(msg, line string) string {
	trimmed := strings.TrimSpace(line)
	switch {
	case strings.HasPrefix(trimmed, "```"):
		return "remove the lines with ```: this is plain YAML"
	case strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "/*"):
		return "remove it: comments begin with #, and JSON has none"
	case strings.Contains(line, "\t"):
		return "indent with spaces: YAML doesn't allow tabs"
	}
	for _, known := range [][2]string{
		{"mapping values are not allowed", "put text that contains \": \" in quotes, and check the indentation"},
		{"could not find expected ':'", "end a key with a colon; text of several lines is written as `name: |`, with each of its lines below and indented"},
		{"did not find expected key", "check that keys of one map have the same indentation, and that quotes are closed"},
		{"block collection", "check that keys of one map have the same indentation, and that quotes are closed"},
		{"document start", "keep one document: something stands after it"},
		{"end of stream", "close the quote or bracket that is still open here"},
		{"cannot start any token", "put text that begins with @, ` or % in quotes"},
		{"control characters", "remove the control characters"},
		{"unknown escape", "put text with backslashes in single quotes"},
	} {
		if strings.Contains(msg, known[0]) {
			return known[1]
		}
	}
	return "check indentation, quotes and brackets here and on the line before"
}

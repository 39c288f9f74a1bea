package source_test

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow/source"
)

func TestTextStaysWithinTheTerminal(t *testing.T) {
	line := strings.Repeat("x", 500) + "\x1b[31m\tHERE" + strings.Repeat("y", 500)
	p := source.Problem{File: "f", Line: 1, Col: 507, Len: 4, Message: "m", Fix: "fix", Snippet: line}
	lines := strings.Split(p.Text(), "\n")
	if strings.Contains(p.Text(), "\x1b") || len([]rune(lines[1])) > 130 {
		t.Errorf("%q", lines[1])
	}
	at := strings.Index(lines[2], "^^^^")
	if at < 0 || strings.Count(lines[2], "^") != 4 || []rune(lines[1])[len([]rune(lines[2][:at]))] != 'H' {
		t.Errorf("the caret is off:\n%s", p.Text())
	}
}

// The caret stands below the character that is meant, whatever stands before it.
func TestCaretUnderTheRightCharacter(t *testing.T) {
	for _, tt := range []struct{ line, at, want string }{
		{"plain: text", "text", "       ^^^^"},
		{"\ta: b", "b", "\t   ^"},
		{"规划者: 审查", "审查", "        ^^^^"},     // each takes two columns
		{"e\u0301te\u0301: x", "x", "     ^"}, // combining: none
		{"a: \U0001f600 b", "b", "      ^"},   // an emoji takes two
		{"a: x\u202ey", "y", "     ^"},        // shown as ·
		{"a: \u200bz", "z", "    ^"},          // shown as ·
		{"a: \u0301b", "b", "   ^"},           // a combining one after a space
		{"한국어 \tb", "b", "       \t^"},        // wide, then a tab
		{"x\u00a0\u00a0y", "y", "   ^"},       // no-break spaces
		{"", "", "^"},
	} {
		col := len([]rune(tt.line[:strings.Index(tt.line, tt.at)])) + 1
		p := source.Problem{File: "f", Line: 1, Col: col, Len: len([]rune(tt.at)), Message: "m", Snippet: tt.line + " "}
		lines := strings.Split(p.Text(), "\n")
		if got := strings.TrimPrefix(lines[2], "      | "); got != tt.want {
			t.Errorf("%q: caret %q, want %q", tt.line, got, tt.want)
		}
	}
}

// A line that is too long to keep is shown around the place.
func TestVeryLongLines(t *testing.T) {
	for _, fill := range []string{"x", "规", "\U0001f600", "\t", "\u0301"} {
		for _, before := range []int{0, 10, 100_000 / len(fill)} {
			text := "a: \"" + strings.Repeat(fill, before) + "\\q" + strings.Repeat(fill, 50_000/len(fill)) + "\"\n"
			value := source.Read(&source.Problems{}, "x.yaml", []byte(strings.Replace(text, "\\q", "{{n}}", 1)), nil)
			ps := &source.Problems{}
			written, _ := value.Get("a").Val.Scalar.(string)
			at, _ := value.Get("a").Val.Within(strings.Index(written, "{{n}}"), 5)
			ps.Add(at, 5, "", "m")
			lines := strings.Split(ps.List("x.yaml")[0].Text(), "\n")
			mark := strings.TrimLeft(strings.TrimPrefix(lines[2], "      | "), " \t")
			if mark != "^^^^^" || !strings.Contains(lines[1], "{{n}}") || len(lines[1]) > 2_000 {
				t.Errorf("%q × %d:\n%.3000s\n%s", fill, before, lines[1], lines[2])
			}
		}
	}
}

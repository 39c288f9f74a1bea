package sanitize

import (
	"regexp"
	"strings"
)

// line is one line of a text and what ends it.
type line struct {
	text, end string
	from      int // its place in the text
}

func splitLines(s string) []line {
	var out []line
	for from := 0; from < len(s); {
		i := strings.IndexAny(s[from:], "\r\n")
		if i < 0 {
			return append(out, line{text: s[from:], from: from})
		}
		end := 1
		if strings.HasPrefix(s[from+i:], "\r\n") {
			end = 2
		}
		out = append(out, line{text: s[from : from+i], end: s[from+i : from+i+end], from: from})
		from += i + end
	}
	return out
}

func (l line) blank() bool { return strings.TrimSpace(l.text) == "" }

// container is what stands before the text of a line: white space, the marks of
// quotes and of list items.
var container = regexp.MustCompile(`^(?:[ \t]|>|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$))*`)

// inner is a line without the marks of what contains it.
func inner(text string) string { return text[len(container.FindString(text)):] }

// fence is the beginning of a code block.
type fence struct {
	before string // what stands before it on its line
	mark   string // its row of backticks or tildes
	info   string
}

// openFence reads the beginning of a code block.
func openFence(text string) (fence, bool) {
	in := inner(text)
	for _, c := range []string{"`", "~"} {
		mark := in[:len(in)-len(strings.TrimLeft(in, c))]
		info := in[len(mark):]
		if len(mark) >= 3 && (c == "~" || !strings.Contains(info, "`")) {
			return fence{before: text[:len(text)-len(in)], mark: mark, info: strings.TrimSpace(info)}, true
		}
	}
	return fence{}, false
}

// unseen is what follows the language on the block's first line.
func (f fence) unseen(text string) span {
	from := len(f.before) + len(f.mark)
	rest := text[from:]
	space := len(rest) - len(strings.TrimLeft(rest, " \t"))
	return span{from + space + len(language.FindString(rest[space:])), len(text)}
}

// closedBy reports whether a line ends the code block.
func (f fence) closedBy(text string) bool {
	t := strings.Trim(text, " \t")
	if f.quoted() {
		t = strings.TrimLeft(t, "> \t")
	}
	return len(t) >= len(f.mark) && strings.Trim(t, f.mark[:1]) == ""
}

func (f fence) quoted() bool { return strings.Contains(f.before, ">") }

// span is a part of a text, from one place to before another.
type span struct{ from, to int }

// codeSpans finds the code in one line as CommonMark does: a row of backticks up to
// the next row of the same length; before the code, a backslash takes a backtick its
// meaning. Rows without a partner are in left. With cells, a | ends what is open:
// then the line may be one of a table, where that is so on the forge.
func codeSpans(text string, cells bool) (code, left []span) {
	for i := 0; i < len(text); {
		switch {
		case text[i] == '\\':
			i += 2
		case text[i] != '`':
			i++
		default:
			row := span{i, rowEnd(text, i)}
			i = row.to
			if end := partner(text, row, cells); end > 0 {
				code = append(code, span{row.from, end})
				i = end
			} else {
				left = append(left, row)
			}
		}
	}
	return code, left
}

// rows are all rows of backticks, but for those behind a backslash.
func rows(text string) []span {
	var out []span
	for i := 0; i < len(text); {
		switch text[i] {
		case '\\':
			i += 2
		case '`':
			out = append(out, span{i, rowEnd(text, i)})
			i = out[len(out)-1].to
		default:
			i++
		}
	}
	return out
}

func rowEnd(text string, i int) int {
	for i < len(text) && text[i] == '`' {
		i++
	}
	return i
}

// partner is the end of the row that closes what row opens; 0: there is none.
func partner(text string, row span, cells bool) int {
	for i := row.to; i < len(text); {
		switch {
		case text[i] == '`':
			end := rowEnd(text, i)
			if end-i == row.to-row.from {
				return end
			}
			i = end
		case cells && text[i] == '|' && text[i-1] != '\\':
			return 0
		default:
			i++
		}
	}
	return 0
}

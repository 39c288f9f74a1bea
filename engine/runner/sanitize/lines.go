package sanitize

import (
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
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

func (l line) isBlank() bool { return strings.TrimSpace(l.text) == "" }

// container is what stands before the text of a line: white space, the marks of
// quotes and of list items.
var container = lazyregexp.New(`^(?:[ \t]|>|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$))*`)

// trimContainers is a line without the marks of what contains it.
func trimContainers(text string) string { return text[len(container.FindString(text)):] }

// fence is the beginning of a code block.
type fence struct {
	before string // what stands before it on its line
	mark   string // its row of backticks or tildes
	info   string
}

// openFence reads the beginning of a code block.
func openFence(text string) (fence, bool) {
	in := trimContainers(text)
	for _, c := range []string{"`", "~"} {
		mark := in[:len(in)-len(strings.TrimLeft(in, c))]
		info := in[len(mark):]
		if len(mark) >= 3 && (c == "~" || !strings.Contains(info, "`")) {
			return fence{before: text[:len(text)-len(in)], mark: mark, info: strings.TrimSpace(info)}, true
		}
	}
	return fence{}, false
}

// unseenInfo is what follows the language on the block's first line.
func (f fence) unseenInfo(text string) span {
	from := len(f.before) + len(f.mark)
	rest := text[from:]
	space := len(rest) - len(strings.TrimLeft(rest, " \t"))
	return span{from + space + len(language.FindString(rest[space:])), len(text)}
}

// closedBy reports whether a line ends the code block.
func (f fence) closedBy(text string) bool {
	t := strings.Trim(text, " \t")
	if f.isQuoted() {
		t = strings.TrimLeft(t, "> \t")
	}
	return len(t) >= len(f.mark) && strings.Trim(t, f.mark[:1]) == ""
}

func (f fence) isQuoted() bool { return strings.Contains(f.before, ">") }

// span is a part of a text, from one place to before another.
type span struct{ from, to int }

// codeSpans finds the code in one line as CommonMark does: a row of backticks up to
// the next row of the same length; before the code, a backslash takes a backtick its
// meaning, and so does a link or an address that the backtick belongs to. Rows without
// a partner are in left. With cells, a | ends what is open: then the line may be one of
// a table, where that is so on the forge. open: a link may go on in the next line, where
// backticks may belong to it.
func codeSpans(text string, cells bool) (code, left []span, open bool) {
	taken := 0 // up to here a link or an address may have the backticks
	for i := 0; i < len(text); {
		if i >= taken {
			end, more := linkEnd(text, i)
			taken, open = max(taken, end), open || more
		}
		switch {
		case text[i] == '\\':
			i += 2
		case text[i] != '`':
			i++
		default:
			row := span{i, rowEnd(text, i)}
			i = row.to
			end := findPartner(text, row, cells)
			if end > 0 && (row.from >= taken || end <= taken) {
				code = append(code, span{row.from, end})
				i = end
			} else {
				left = append(left, row)
			}
		}
	}
	return code, left, open
}

// bare begins an address that is a link by itself, up to white space or a <.
var bare = lazyregexp.New(`^(?i:(?:https?|ftp)://|www\.)[^\s<]*`)

// linkEnd is the end of what may belong to a link from here on, before a backtick in it
// means code: an address, a tag, or what follows the text of a link. 0: nothing does.
// open: it may go on in the next line.
func linkEnd(text string, i int) (end int, open bool) {
	rest := text[i:]
	switch {
	case strings.HasPrefix(rest, "]("):
		end, open = findTargetEnd(rest, 2)
	case strings.HasPrefix(rest, "]["):
		end, open = findMark(rest, 2, ']')
	case strings.IndexByte("hHfFwW", rest[0]) >= 0:
		end = len(bare.FindString(rest))
	case rest[0] == '<':
		if t, ok := parseTag(rest[:min(len(rest), maxMarkup)]); ok {
			end = t.size
		}
	}
	if open {
		return len(text), true
	}
	if end > 0 {
		end += i
	}
	return end, false
}

// findTargetEnd is the end of a link's address and title, up to the closing parenthesis, or of
// what was looked at where it turns out to be no link: no place is looked at twice.
func findTargetEnd(s string, i int) (end int, open bool) {
	if i = skipBlanks(s, i); i < len(s) && s[i] == '<' {
		if i, open = findMark(s, i+1, '>'); open {
			return len(s), false // an address stands on one line
		}
	} else {
		i = findAddressEnd(s, i)
	}
	next := skipBlanks(s, i)
	if next < len(s) && next > i {
		if at := strings.IndexByte(`"'(`, s[next]); at >= 0 {
			if i, open = findMark(s, next+1, `"')`[at]); open {
				return 0, true
			}
			next = skipBlanks(s, i)
		}
	}
	switch {
	case next == len(s):
		return 0, true
	case s[next] == ')':
		return next + 1, false
	}
	return next, false
}

// findAddressEnd is where an address ends that stands without < and >.
func findAddressEnd(s string, i int) int {
	for depth := 0; i < len(s) && s[i] != ' ' && s[i] != '\t'; i++ {
		switch s[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return min(i, len(s))
}

func skipBlanks(s string, i int) int { return len(s) - len(strings.TrimLeft(s[i:], " \t")) }

// findMark is the place after the next mark that is not behind a backslash.
func findMark(s string, i int, mark byte) (end int, open bool) {
	for ; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case mark:
			return i + 1, false
		}
	}
	return 0, true
}

// findRows are all rows of backticks, but for those behind a backslash.
func findRows(text string) []span {
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

// findPartner is the end of the row that closes what row opens; 0: there is none.
func findPartner(text string, row span, cells bool) int {
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

package sanitize

import (
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// container is what stands before the text of a line: white space, the marks of
// quotes and of list items.
var container = lazyregexp.New(`^(?:[ \t]|>|(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$))*`)

// trimContainers is a line without the marks of what contains it.
func trimContainers(line string) string { return line[len(container.FindString(line)):] }

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// fence is the beginning of a code block.
type fence struct {
	before string // what stands before it on its line
	mark   string // its row of backticks or tildes
	info   string
}

// openFence reads the beginning of a code block.
func openFence(line string) (fence, bool) {
	in := trimContainers(line)
	for _, c := range []string{"`", "~"} {
		mark := in[:len(in)-len(strings.TrimLeft(in, c))]
		info := in[len(mark):]
		if len(mark) >= 3 && (c == "~" || !strings.Contains(info, "`")) {
			return fence{before: line[:len(line)-len(in)], mark: mark, info: strings.TrimSpace(info)}, true
		}
	}
	return fence{}, false
}

// language is the part of a code block's first line that says how to show it.
var language = lazyregexp.New(`^[A-Za-z0-9_+#.-]{1,40}`)

// closedBy reports whether a line ends the code block.
func (f fence) closedBy(line string) bool {
	t := strings.Trim(line, " \t")
	if f.isQuoted() {
		t = strings.TrimLeft(t, "> \t")
	}
	return len(t) >= len(f.mark) && strings.Trim(t, f.mark[:1]) == ""
}

func (f fence) isQuoted() bool { return strings.Contains(f.before, ">") }

// span is a part of a text, from one place to before another. It begins with a row of
// backticks: marks of them.
type span struct{ from, to, marks int }

// isAlone: no other row of the line closes what the row opens.
func (s span) isAlone() bool { return s.to-s.from == s.marks }

// findSpans finds the rows of backticks in one line, each with what it opens: the code up
// to the next row of the same length. A backslash takes a backtick its meaning.
func findSpans(line string) []span {
	var out []span
	for i := 0; i < len(line); {
		switch line[i] {
		case '\\':
			i += 2
		case '`':
			s := span{from: i, to: rowEnd(line, i)}
			s.marks = s.to - s.from
			if end := findPartner(line, s); end > 0 {
				s.to = end
			}
			out, i = append(out, s), s.to
		default:
			i++
		}
	}
	return out
}

func rowEnd(line string, i int) int {
	return len(line) - len(strings.TrimLeft(line[i:], "`"))
}

// findPartner is the end of the row that closes what a row opens; 0: there is none.
func findPartner(line string, row span) int {
	for i := row.to; i < len(line); i++ {
		if line[i] != '`' {
			continue
		}
		end := rowEnd(line, i)
		if end-i == row.marks {
			return end
		}
		i = end - 1
	}
	return 0
}

package report

import (
	"html"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// embedMarkdown is Markdown that an agent or a person wrote, fit to stand between other
// Markdown: cleaned for the forge, every block of code closed, no HTML that could
// open or close anything, and at most limit bytes. Each line begins with prefix
// ("> " makes a quotation). What doesn't fit is left out, and the last line says so.
func (p page) embedMarkdown(s, prefix string, limit int) string {
	s, short := p.sanitizeText(s, limit)
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	w := &mdWriter{prefix: prefix, limit: limit - 4*len(prefix) - len(leftOut) - 4}
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i := 0; i < len(lines) && !w.full; {
		if f, ok := openFence(lines[i]); ok {
			i = w.writeBlock(lines, i, f)
			continue
		}
		w.writeProse(unfoldLine(lines[i]))
		i++
	}
	if short {
		w.cutOff()
	}
	return w.String()
}

// embedPhrase is Markdown on one line, to stand behind other text; at most a little more
// than limit bytes.
func (p page) embedPhrase(s string, limit int) string {
	s, short := p.sanitizeText(s, limit)
	if s = cutProse(strings.Join(strings.Fields(s), " "), limit); short && !strings.HasSuffix(s, "…") {
		s += "…"
	}
	return s
}

// leftOut ends a text that was too long.
const leftOut = "… _(shortened)_"

// fence is the first line of a block of code.
type fence struct {
	indent, marks, info string
}

var fenceLine = lazyregexp.New("^([ \t]*)(`{3,}|~{3,})(.*)$")

func openFence(line string) (fence, bool) {
	m := fenceLine.FindStringSubmatch(line)
	if m == nil || m[2][0] == '`' && strings.Contains(m[3], "`") {
		return fence{}, false
	}
	return fence{indent: expandTabs(m[1]), marks: m[2], info: m[3]}, true
}

// isClosedBy reports the line that ends the block.
func (f fence) isClosedBy(line string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(f.marks) && strings.Trim(line, f.marks[:1]) == ""
}

// safeLanguage is what the block is highlighted as, where that is a word.
func (f fence) safeLanguage() string {
	first, _, _ := strings.Cut(strings.TrimSpace(f.info), " ")
	if len(first) > 30 || strings.ContainsFunc(first, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+-#._", r))
	}) {
		return ""
	}
	switch strings.ToLower(first) {
	case "mermaid", "math", "geojson", "topojson", "stl", "suggestion":
		return "text" // forges run or apply these
	}
	return first
}

func expandTabs(s string) string { return strings.ReplaceAll(s, "\t", "    ") }

// mdWriter collects lines up to a limit.
type mdWriter struct {
	strings.Builder
	prefix string
	limit  int
	full   bool
	blank  bool // the last line was blank
}

// hasRoom reports whether n more bytes do, and ends the text where they don't.
func (w *mdWriter) hasRoom(n int) bool {
	if w.Len()+n+len(w.prefix)+1 > w.limit {
		w.cutOff()
	}
	return !w.full
}

// cutOff ends the text before its time.
func (w *mdWriter) cutOff() {
	if !w.full {
		w.full = true
		if !w.blank && w.Len() > 0 {
			w.writeLine("")
		}
		w.writeLine(leftOut)
	}
}

// writeProse writes a line of prose; of several blank ones the first. One that is too long
// is cut, unless there is no room for a beginning that says something.
func (w *mdWriter) writeProse(s string) {
	s = strings.TrimRight(s, " \t")
	if s == "" && (w.blank || w.Len() == 0) {
		return
	}
	left := w.limit - w.Len() - len(w.prefix) - 1
	if done := escapeProse(s); len(done) <= left {
		w.writeLine(done)
		return
	}
	if left > 300 && !w.full {
		w.writeLine(cutProse(s, left-100))
	}
	w.hasRoom(left + 1)
}

func (w *mdWriter) writeLine(s string) {
	if w.Len() > 0 {
		w.WriteByte('\n')
	}
	w.WriteString(strings.TrimRight(w.prefix+s, " "))
	w.blank = s == ""
}

// cutProse is prose of at most limit bytes. It is cut before it is made safe: half a
// code span could be the beginning of a block of code.
func cutProse(s string, limit int) string {
	out := escapeProse(s)
	for n := min(len(s)-1, limit); len(out) > limit && n > 0; n = n * 3 / 4 {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		out = escapeProse(strings.TrimSpace(s[:n])) + "…"
	}
	return out
}

// writeBlock writes the block of code that begins at lines[i], closed and with marks
// that nothing in it can close, and returns where to go on. Its lines are all
// indented as its first: so they stay in whatever list item that one stands in.
func (w *mdWriter) writeBlock(lines []string, i int, f fence) int {
	var body []string
	end := i + 1
	for ; end < len(lines) && !f.isClosedBy(lines[end]); end++ {
		body = append(body, f.indent+strings.TrimPrefix(expandTabs(lines[end]), f.indent))
	}
	marks := strings.Repeat("`", max(3, longestRun(strings.Join(body, "\n"))+1))
	if !w.hasRoom(2*(len(w.prefix)+len(f.indent)+len(marks)) + len(f.safeLanguage()) + 8) {
		return end + 1
	}
	w.writeProse("") // a block indented by four would go on a paragraph
	w.writeLine(f.indent + marks + f.safeLanguage())
	room := w.limit - len(w.prefix) - len(f.indent) - len(marks) - 2
	short := false
	for _, line := range body {
		if short = w.Len()+len(line)+len(w.prefix)+1 > room; short {
			break
		}
		w.writeLine(line)
	}
	w.writeLine(f.indent + marks)
	w.writeLine("")
	if short {
		w.cutOff()
	}
	return end + 1
}

// angled is an address between angle brackets; folding a line that is nothing but
// the beginning or the end of a block that a click opens.
var (
	angled  = lazyregexp.New(`(?:<|&lt;)(https?://[^<>\s]*)>`)
	folding = lazyregexp.New(`^\s*(?:</?details(?: open)?>\s*)*(?:<summary>(.*?)</summary>\s*)?(?:</?details>\s*)*$`)
)

// unfoldLine is a line without the tags of such a block: it is shown open. What is left
// of the line stays apart from others, so that no two pieces become a word.
func unfoldLine(line string) string {
	m := folding.FindStringSubmatch(line)
	switch {
	case m == nil || strings.TrimSpace(line) == "":
		return line
	case strings.TrimSpace(m[1]) == "":
		return ""
	}
	return "▸ " + strings.TrimSpace(m[1])
}

// escapeProse is a line outside of blocks of code, without HTML and with all its code
// spans closed on it.
func escapeProse(line string) string {
	line = angled.ReplaceAllString(line, "$1")
	var b strings.Builder
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && strings.IndexByte("`<", line[i+1]) >= 0:
			b.WriteString(toEntity(line[i+1]))
			i += 2
		case c == '\\' && i+1 < len(line) && line[i+1] == '\\':
			b.WriteString(`\\`)
			i += 2
		case c == '`':
			i += writeSpan(&b, line[i:])
		case c == ']' && strings.Contains(linkTarget(line[i+1:]), "`"):
			// Whether that is an address or begins code must not be in doubt.
			b.WriteString("&#93;")
			i++
		case strings.HasPrefix(line[i:], "~~~"): // behind the mark of a list it opens a block of code
			b.WriteString("&#126;")
			i++
		case c == '<':
			b.WriteString(toEntity(c))
			i++
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// linkTarget is what may be the address and the title of a link, where s begins with
// one: up to its last bracket, or to the end of the line.
func linkTarget(s string) string {
	if !strings.HasPrefix(s, "(") {
		return ""
	}
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 && !strings.ContainsAny(s[:i], `"'\`) {
			return s[:i]
		}
	}
	return s
}

func toEntity(c byte) string {
	if c == '<' {
		return "&lt;"
	}
	return "&#96;"
}

// writeSpan writes the code span that s begins with, or its backticks as such where
// nothing closes them, and returns how much of s that was. A span with angle
// brackets becomes an element: as Markdown it would be a span only if nothing
// before it, such as the address of a link, takes its backticks.
func writeSpan(b *strings.Builder, s string) int {
	n := len(s) - len(strings.TrimLeft(s, "`"))
	for i := n; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if run != n {
			i += run
			continue
		}
		if content := s[n:i]; strings.Contains(content, "<") {
			b.WriteString("<code>" + toLiteral(content) + "</code>")
		} else {
			b.WriteString(s[:i+n])
		}
		return i + n
	}
	b.WriteString(strings.Repeat(toEntity('`'), n))
	return n
}

// toLiteral is a text in HTML that Markdown finds nothing in.
func toLiteral(s string) string {
	s = html.EscapeString(strings.TrimSpace(s))
	return strings.NewReplacer("`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "]", "&#93;",
		"~", "&#126;", ":", "&#58;", "|", "&#124;", "\\", "&#92;", "$", "&#36;", "!", "&#33;").Replace(s)
}

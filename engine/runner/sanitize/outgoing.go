package sanitize

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/markdown"
)

// Outgoing is Markdown that an agent or a person wrote, fit to be posted, also between
// other Markdown. It mentions nobody, closes no issue, gives no bot a command, leaves no
// trace in other repositories, fetches no picture, holds no HTML that could open or close
// anything, and can't pass for what uwf writes itself. Each line begins with prefix ("> "
// makes a quotation). It has at most limit bytes: what doesn't fit is left out, and the
// last line says so.
//
// What counts as code differs from forge to forge, in the vicinity of links, tables and
// HTML. So nothing depends on it: blocks of code are written anew, at the margin and with
// marks that nothing in them closes; and what is harmless as code alone stands in an
// element, by entities that make it harmless as text, too.
func Outgoing(s, prefix string, limit int) string {
	for room := limit; ; {
		out := defuseClosings(fitText(s, prefix, room))
		over := len(out) - limit
		if over <= 0 || room <= 0 { // the words that closings take make it longer
			return out
		}
		room -= over
	}
}

// OutgoingLine is Outgoing on one line, to stand behind other text; at most a little more
// than limit bytes.
func OutgoingLine(s string, limit int) string {
	s, short := cutBeginning(s, limit)
	if s = cutProse(strings.Join(strings.Fields(s), " "), limit); short && !strings.HasSuffix(s, "…") {
		s += "…"
	}
	return defuseClosings(s)
}

// cutBeginning is the readable beginning of a text, of at most limit bytes, up to the end
// of a line if that leaves enough: of a megabyte not all has to be looked at.
func cutBeginning(s string, limit int) (text string, short bool) {
	if short = len(s) > limit; short {
		s = strings.ToValidUTF8(s[:max(limit, 0)], "")
		if i := strings.LastIndexByte(s, '\n'); i > len(s)/2 {
			s = s[:i]
		}
	}
	return dropInvisible(joinLines(s)), short
}

// joinLines ends every line with "\n" alone.
func joinLines(s string) string { return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s) }

func fitText(s, prefix string, limit int) string {
	s, short := cutBeginning(s, limit)
	w := &writer{prefix: prefix, limit: limit - 4*len(prefix) - len(leftOut) - 4}
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

// leftOut ends a text that was too long.
const leftOut = "… _(shortened)_"

// writer collects lines up to a limit.
type writer struct {
	strings.Builder
	prefix string
	limit  int
	full   bool
	blank  bool // the last line was blank
}

// hasRoom reports whether n more bytes do, and ends the text where they don't.
func (w *writer) hasRoom(n int) bool {
	if w.Len()+n+len(w.prefix)+1 > w.limit {
		w.cutOff()
	}
	return !w.full
}

// cutOff ends the text before its time.
func (w *writer) cutOff() {
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
func (w *writer) writeProse(s string) {
	s = strings.TrimRight(s, " \t")
	if s == "" && (w.blank || w.Len() == 0) {
		return
	}
	left := w.limit - w.Len() - len(w.prefix) - 1
	if done := rewriteProse(s); len(done) <= left {
		w.writeLine(done)
		return
	}
	if left > 300 && !w.full {
		w.writeLine(cutProse(s, left-100))
	}
	w.hasRoom(left + 1)
}

func (w *writer) writeLine(s string) {
	if w.Len() > 0 {
		w.WriteByte('\n')
	}
	w.WriteString(strings.TrimRight(w.prefix+s, " "))
	w.blank = s == ""
}

// writeBlock writes the block of code that begins at lines[i], closed, and returns where to
// go on. It begins at the margin: in a list or a quote its end would depend on what follows.
func (w *writer) writeBlock(lines []string, i int, f fence) int {
	if !isBlank(strings.ReplaceAll(f.before, ">", " ")) {
		w.writeProse(f.before)
	}
	var body []string
	end := i + 1
	for ; end < len(lines) && !f.closedBy(lines[end]); end++ {
		body = append(body, f.rewriteCode(lines[end]))
	}
	marks := markdown.FenceMarks(strings.Join(body, "\n"))
	if !w.hasRoom(2*(len(w.prefix)+len(marks)) + len(f.safeLanguage()) + 8) {
		return end + 1
	}
	w.writeProse("")
	w.writeLine(marks + f.safeLanguage())
	room := w.limit - len(w.prefix) - len(marks) - 2
	short := false
	for _, line := range body {
		if short = w.Len()+len(line)+len(w.prefix)+1 > room; short {
			break
		}
		w.writeLine(line)
	}
	w.writeLine(marks)
	w.writeLine("")
	if short {
		w.cutOff()
	}
	return end + 1
}

var (
	// commands are those of bots, at the beginning of a line. What they take for white
	// space differs: that of Unicode and what has no width, as event.ParseCommand does.
	commands    = lazyregexp.New(`^((?:[\s\pZ\p{Cf}]|>|(?:[-*+]|\d{1,9}[.)])[\s\pZ\p{Cf}])*)/([A-Za-z][A-Za-z0-9_-]*(?:[^A-Za-z0-9_/.-]|$))`)
	codeCommand = lazyregexp.New(`^(/[A-Za-z][A-Za-z0-9_-]*(?:[^A-Za-z0-9_/.-]|$))`)
	// marker begins what uwf finds its own comments by.
	marker = lazyregexp.New(`<!--(\s*uwf)`)
)

// rewriteCode is a line of a block, without what stands before all of them, and no bot's
// command.
func (f fence) rewriteCode(line string) string {
	for i := 0; i < len(f.before) && line != "" && (line[0] == ' ' || line[0] == '>' && f.isQuoted()); i++ {
		line = line[1:]
	}
	return marker.ReplaceAllString(codeCommand.ReplaceAllString(line, " $1"), "<! --$1")
}

// safeLanguage is what the block is highlighted as.
func (f fence) safeLanguage() string {
	switch name := language.FindString(f.info); strings.ToLower(name) {
	case "mermaid", "math", "geojson", "topojson", "stl", "suggestion":
		return "text" // forges run or apply these
	default:
		return name
	}
}

// folding is a line that is nothing but the beginning or the end of a block that a click
// opens.
var folding = lazyregexp.New(`^\s*(?:</?details(?: open)?>\s*)*(?:<summary>(.*?)</summary>\s*)?(?:</?details>\s*)*$`)

// unfoldLine is a line without the tags of such a block: it is shown open. What is left
// of the line stays apart from others, so that no two pieces become a word.
func unfoldLine(line string) string {
	m := folding.FindStringSubmatch(line)
	switch {
	case m == nil || isBlank(line):
		return line
	case isBlank(m[1]):
		return ""
	}
	return "▸ " + strings.TrimSpace(m[1])
}

// cutProse is prose of at most limit bytes. It is cut before it is made safe: half an
// entity would be none.
func cutProse(s string, limit int) string {
	out := rewriteProse(s)
	for n := min(len(s)-1, limit); len(out) > limit && n > 0; n = n * 3 / 4 {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		out = rewriteProse(strings.TrimSpace(s[:n])) + "…"
	}
	return out
}

// angled is an address between angle brackets.
var angled = lazyregexp.New(`<(https?://[^<>\s]*)>`)

// rewriteProse is a line outside of blocks of code.
func rewriteProse(line string) string {
	line = angled.ReplaceAllString(line, "$1")
	var b strings.Builder
	at := 0
	for _, s := range findSpans(line) {
		b.WriteString(defuseText(line[at:s.from]) + rewriteSpan(line[s.from:s.to], s))
		at = s.to
	}
	b.WriteString(defuseText(line[at:]))
	return commands.ReplaceAllString(b.String(), `$1\/$2`)
}

// notPlain is in code that would do something as text.
var notPlain = lazyregexp.New(`[<&@#]|://|!\[|\]\(`)

// rewriteSpan is a code span, or its backticks as such where nothing closes them.
func rewriteSpan(code string, s span) string {
	switch {
	case s.isAlone():
		return strings.Repeat("&#96;", s.marks)
	case notPlain.MatchString(code):
		return "<code>" + Literal(code[s.marks:len(code)-s.marks]) + "</code>"
	}
	return code
}

// Literal is a text in HTML in which neither Markdown nor a forge finds anything.
func Literal(s string) string { return literal.Replace(strings.TrimSpace(s)) }

var literal = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;",
	"`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "]", "&#93;", "~", "&#126;", ":", "&#58;",
	"|", "&#124;", "\\", "&#92;", "$", "&#36;", "!", "&#33;", "@", "&#64;", "#", "&#35;")

var (
	entity = lazyregexp.New(`&(#|[A-Za-z][A-Za-z0-9]*;)`)
	// escapedURL hides an address from who looks for one before the forge reads it.
	escapedURL = lazyregexp.New(`\\+([:/])`)
	images     = lazyregexp.New(`!+\[`)
	inlineData = lazyregexp.New(`(^|[^A-Za-z0-9_])` + dataAddress)
	address    = lazyregexp.New(`(?i:https?://)[^\s<>()"'\[\]|` + "`" + `*]+`)
	// Behind the mark of a list, three tildes open a block of code.
	odd = strings.NewReplacer("[](", "[link](", "~~~", "&#126;&#126;&#126;", "<", "&lt;")
)

// defuseText is a part of a line that is neither code nor a backtick.
func defuseText(s string) string {
	s = escapedURL.ReplaceAllString(s, "$1")
	s = images.ReplaceAllString(inlineData.ReplaceAllString(s, "${1}data:"), "[")
	var b strings.Builder
	at := 0
	for _, m := range address.FindAllStringIndex(s, -1) {
		b.WriteString(defuseWords(s[at:m[0]]) + defuseAddress(s[m[0]:m[1]]))
		at = m[1]
	}
	b.WriteString(defuseWords(s[at:]))
	return odd.Replace(entity.ReplaceAllString(b.String(), "&amp;$1"))
}

var (
	escapedAt = lazyregexp.New(`\\+@`) // all of them: behind one that is taken away is the next
	mention   = lazyregexp.New(`(^|[^A-Za-z0-9])@([A-Za-z0-9])`)
	backlink  = lazyregexp.New(`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)?)\\?#(\d)`)
)

// defuseWords is text without addresses.
func defuseWords(s string) string {
	s = mention.ReplaceAllString(escapedAt.ReplaceAllString(s, "@"), "$1＠$2")
	for range 2 { // in a#1#2 the second begins within the first
		s = backlink.ReplaceAllString(s, "$1＃$2")
	}
	return s
}

// issueAddress leads to what notes down who links to it.
var issueAddress = lazyregexp.New(`^(?i:(https?://)([^/\s]+))/((?:[^/\s]+/)*?[^/\s]+/[^/\s]+)/((?i:issues|pulls?|discussions|commits?))/([0-9A-Fa-f])(.*)$`)

// defuseAddress is a link. Mentions hide in links too; one that leads to an issue goes a
// way on which that issue doesn't notice.
func defuseAddress(s string) string {
	s = mention.ReplaceAllString(s, "$1%40$2")
	m := issueAddress.FindStringSubmatch(s)
	if m == nil {
		return s
	}
	switch strings.ToLower(m[2]) {
	case "redirect.github.com":
		return s
	case "github.com", "www.github.com":
		return m[1] + "redirect.github.com/" + m[3] + "/" + m[4] + "/" + m[5] + m[6]
	}
	return m[1] + m[2] + "/" + m[3] + "/" + m[4] + "/" + fmt.Sprintf("%%%02X", m[5][0]) + m[6]
}

// closing is a keyword before a reference to an issue. What stands between them may
// be marks and the ends of lines, but nothing that would make something else of the word
// which is put before the reference: an entity, a mention, a command.
var closing = lazyregexp.New(`(?i)(\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|reopen(?:s|ed)?|duplicate[ \t]+of)\b[^A-Za-z0-9#!&@/]{0,60})((?:[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)?[#!]\d+|gh-\d+|https?://[^\s<>()]*/(?:issues|pulls?)/\d+)`)

// defuseClosings puts a word between a keyword and its reference, so that it closes
// nothing. That is done in code too: the text may become a commit's message.
func defuseClosings(s string) string { return closing.ReplaceAllString(s, "${1}issue $2") }

// maxTitle is GitHub's bound on the title of an issue or a pull request.
const maxTitle = 256

// Title is a text on one line of at most 256 characters, as the title of an issue or
// a pull request: it mentions and closes nothing, because it may become a commit's
// message too. It is no Markdown: what shows it as such has to escape it.
func Title(s string) string {
	for range rounds {
		next := defuseClosings(defuseWords(Line(s)))
		if next == s {
			break
		}
		s = next
	}
	if rs := []rune(s); len(rs) > maxTitle {
		s = strings.TrimRight(string(rs[:maxTitle-1]), " \u200d\u200c") + "…"
	}
	return dropInvisible(s)
}

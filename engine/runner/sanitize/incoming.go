package sanitize

import (
	"html"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// rounds bounds how often a text is gone over: what was taken away or decoded may
// have hidden something else.
const rounds = 20

// Incoming takes out of a text from outside what a person who reads it on the forge
// would not see: HTML comments and attributes, elements that are hidden, titles of
// links, descriptions of images, definitions that nothing uses, data in addresses,
// and characters without a width. Entities are decoded. What is visible stays as it
// is, and so does code, but for such characters.
func Incoming(s string) string {
	s = dropInvisible(s)
	for range rounds {
		next := dropInvisible(revealOnce(s))
		if next == s {
			return s
		}
		s = next
	}
	// Nobody nests what is hidden so deeply but to hide it.
	return strings.NewReplacer("<", "(", ">", ")", "&", "+", "[", "(", "]", ")").Replace(s)
}

// revealOnce goes over a text once.
func revealOnce(s string) string {
	r := &reveal{s: s, lower: strings.ToLower(s), used: usedLabels(s)}
	if len(r.lower) != len(s) {
		r.lower = s // characters whose cases differ in length: tags in capitals stay
	}
	r.layOut()
	for r.i < len(s) {
		if n := r.dropped[r.i]; n > 0 {
			r.i += n
			continue
		}
		if r.kinds[r.i]&isCode != 0 || !r.takeNext() {
			r.out.WriteByte(s[r.i])
			r.i++
		}
	}
	return r.out.String()
}

// reveal is one pass over a text.
type reveal struct {
	s, lower string
	i        int
	out      strings.Builder
	kinds    []kind // of each byte
	ends     []int  // where paragraphs end, in ascending order
	last     map[string]int
	// dropped are how many bytes to leave out from a place on.
	dropped map[int]int
	space   int // the next white space, once it was looked for
	used    map[string]int
}

// kind says what a byte of the text is.
type kind uint8

const (
	isCode  kind = 1 << iota // certainly code
	isHTML                   // in lines that are HTML, where no Markdown counts
	isStart                  // the text of a line begins here, behind its containers
)

// layOut finds the code, the beginnings of lines and the ends of paragraphs.
func (r *reveal) layOut() {
	r.kinds, r.dropped = make([]kind, len(r.s)+1), map[int]int{}
	lines := splitLines(r.s)
	tables := tableLines(lines)
	var l layout
	for i, ln := range lines {
		r.kinds[ln.from+len(ln.text)-len(trimContainers(ln.text))] |= isStart
		code := l.readLine(ln, tables[i])
		for _, c := range code {
			for j := c.from; j < c.to; j++ {
				r.kinds[ln.from+j] |= isCode
			}
		}
		if l.info.to > l.info.from {
			r.dropped[ln.from+l.info.from] = l.info.to - l.info.from
		}
		if l.html || l.raw != "" {
			for j := range ln.text {
				r.kinds[ln.from+j] |= isHTML
			}
		}
		if ln.isBlank() {
			r.ends = append(r.ends, ln.from)
		}
	}
	r.ends = append(r.ends, len(r.s))
	r.last = map[string]int{}
	for _, end := range []string{"-->", "?>", "]]>", ">"} {
		r.last[end] = strings.LastIndex(r.s, end)
	}
}

// isKind reports whether the byte that is looked at is of a kind.
func (r *reveal) isKind(k kind) bool { return r.kinds[r.i]&k != 0 }

// layout follows the lines of a text and says what of them is certainly code.
type layout struct {
	open  *fence
	doubt bool         // a code block was not what it seemed: nothing is certain any more
	raw   string       // the end of the HTML that is open, in lower case
	html  bool         // a line since the last blank one begins with a tag
	link  bool         // a link or a tag may go on from an earlier line since then
	odd   map[int]bool // lengths of rows of backticks that found no partner since then
	info  span         // of the present line: what follows the language of a code block
}

func (l *layout) readLine(ln line, table bool) []span {
	low := strings.ToLower(trimContainers(ln.text))
	l.info = span{}
	switch {
	case l.raw != "":
		if strings.Contains(low, l.raw) {
			l.raw = ""
		}
		return nil
	case l.open != nil:
		return l.inFence(ln)
	case ln.isBlank():
		l.html, l.link, l.odd = false, false, nil
		return nil
	}
	if f, ok := openFence(ln.text); ok {
		l.info = f.unseenInfo(ln.text)
		l.doubt = l.doubt || l.html
		if !l.doubt || l.html {
			l.open = &f
		}
		return nil
	}
	if beginsHTML(low) {
		l.html = true
		l.raw = rawEnd(low)
	}
	if l.html || l.doubt {
		return nil
	}
	return l.findCode(ln, table)
}

// inFence is a line of a code block. One with less before it than the first line has
// may lie outside of the list or quote that the block is in.
func (l *layout) inFence(ln line) []span {
	f := l.open
	if f.closedBy(ln.text) {
		l.open = nil
		return nil
	}
	before := ln.text[:len(ln.text)-len(strings.TrimLeft(ln.text, " \t>"))]
	if f.isQuoted() && !strings.Contains(before, ">") || !ln.isBlank() && len(before) < len(f.before) {
		l.doubt, l.open = true, nil
		return nil
	}
	if l.doubt {
		return nil
	}
	return []span{{0, len(ln.text)}}
}

// findCode are the code within a line of text. A row of backticks that an earlier line
// of the paragraph opened may end here.
func (l *layout) findCode(ln line, table bool) []span {
	code, left, open := codeSpans(ln.text, table)
	if l.link {
		code = nil
	}
	certain := code[:0]
	l.link = l.link || open || openTag.MatchString(ln.text)
	for _, c := range code {
		if !l.odd[rowEnd(ln.text, c.from)-c.from] {
			certain = append(certain, c)
		}
	}
	for _, row := range left {
		if l.odd == nil {
			l.odd = map[int]bool{}
		}
		l.odd[row.to-row.from] = true
	}
	return certain
}

// openTag is a tag that may go on in the next line.
var openTag = lazyregexp.New(`<[A-Za-z/!?][^<>]*$`)

// beginsHTML reports whether a line, in lower case, makes all text up to the next
// blank line HTML: with a tag of a block, with a comment, or with one tag alone.
func beginsHTML(low string) bool {
	if !strings.HasPrefix(low, "<") {
		return false
	}
	if strings.HasPrefix(low, "<!") || strings.HasPrefix(low, "<?") || slices.Contains(blockTags, tagName(low)) {
		return true
	}
	t, ok := parseTag(low)
	return ok && strings.TrimSpace(low[t.size:]) == ""
}

// rawEnd is what ends the HTML that a line begins with, where that is more than a
// blank line; "" where it ends on the same line.
func rawEnd(low string) string {
	for _, x := range [][2]string{{"<!--", "-->"}, {"<?", "?>"}, {"<![cdata[", "]]>"}, {"<pre", "</pre>"}, {"<script", "</script>"}, {"<style", "</style>"}, {"<textarea", "</textarea>"}} {
		if rest, ok := strings.CutPrefix(low, x[0]); ok && !strings.Contains(rest, x[1]) {
			return x[1]
		}
	}
	return ""
}

// delimiter is the line below the head of a table.
var delimiter = lazyregexp.New(`^[ \t>|:+*.)0-9-]*\|?[ \t|:-]*$`)

// tableLines says which lines may be of a table: those without a blank line between
// them and a line that may be the one below a table's head.
func tableLines(lines []line) []bool {
	out := make([]bool, len(lines))
	for i := 0; i < len(lines); {
		j, table := i, false
		for ; j < len(lines) && !lines[j].isBlank(); j++ {
			t := lines[j].text
			table = table || strings.Contains(t, "|") && strings.Contains(t, "-") && delimiter.MatchString(t)
		}
		for k := i; k < j; k++ {
			out[k] = table
		}
		i = max(j, i+1)
	}
	return out
}

var bracketed = lazyregexp.New(`\[[^\[\]\n]{1,200}\]`)

// usedLabels counts how often each text stands in brackets, and is no definition.
func usedLabels(s string) map[string]int {
	out := map[string]int{}
	for _, m := range bracketed.FindAllStringIndex(s, -1) {
		if !strings.HasPrefix(s[m[1]:], ":") {
			out[strings.ToLower(s[m[0]:m[1]])]++
		}
	}
	return out
}

// maxMarkup bounds a link, an image or a definition: what is longer is text.
const maxMarkup = 3000

// takeNext takes away or exchanges what begins here; false: nothing does.
func (r *reveal) takeNext() bool {
	switch r.s[r.i] {
	case '&':
		return r.decodeEntity()
	case '<':
		return r.dropMarkup()
	case '[':
		return r.isKind(isStart) && r.dropDefinition() || r.dropEmptyLink()
	case ']':
		return r.dropLinkTitle()
	case '!':
		return r.dropDescription()
	case 'd', 'D':
		return r.emptyData()
	}
	return false
}

// replaceNext writes text in the place of the next n bytes.
func (r *reveal) replaceNext(n int, text string) bool {
	r.out.WriteString(text)
	r.i += n
	return true
}

var (
	ampersands = lazyregexp.New(`^&(?:amp;|#38;|#[xX]26;)+`)
	entityForm = lazyregexp.New(`^&(?:#[xX][0-9a-fA-F]{1,8}|#[0-9]{1,9}|[A-Za-z][A-Za-z0-9]{1,31});?`)
)

func (r *reveal) decodeEntity() bool {
	if m := ampersands.FindString(r.s[r.i:]); m != "" {
		return r.replaceNext(len(m), "&")
	}
	m := entityForm.FindString(r.s[r.i:min(r.i+64, len(r.s))])
	text := html.UnescapeString(m)
	return m != "" && text != m && r.replaceNext(len(m), text)
}

// data takes the content out of data: addresses.
var dataForm = lazyregexp.New(`^(?i:data:)(?:[A-Za-z0-9.+-]+/[A-Za-z0-9.+*-]+)?(?:;[A-Za-z0-9=._-]+)*,[^\s<>()"'\]]*`)

func (r *reveal) emptyData() bool {
	if r.i > 0 && wordByte(r.s[r.i-1]) || !strings.HasPrefix(r.lower[r.i:], "data:") {
		return false
	}
	m := dataForm.FindString(r.s[r.i:])
	return m != "" && r.replaceNext(len(m), "data:")
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// restOfParagraph is the text from here up to the next blank line, of at most n bytes.
func (r *reveal) restOfParagraph(n int) string {
	for len(r.ends) > 1 && r.ends[0] <= r.i {
		r.ends = r.ends[1:]
	}
	return r.s[r.i:min(r.i+n, max(r.ends[0], r.i), len(r.s))]
}

var (
	defForm  = lazyregexp.New(`^\[([^\[\]]{1,200})\]:[ \t]*(?:\r?\n[ \t]*)?(<[^<>\n]*>|[^\s<][^\s]*)?((?:[ \t]*\r?\n)?[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t]*(?:\r?\n|\r|$)`)
	noteForm = lazyregexp.New(`^\[(\^[^\[\]\s]{1,200})\]:[^\r\n]*(?:\r\n|\n|\r|$)`)
	// noteMore are the lines that go on with a footnote: those of its paragraph, and
	// indented ones.
	noteMore = lazyregexp.New(`^(?:[^\s\[][^\r\n]*(?:\r\n|\n|\r|$)|[ \t]+[^\s][^\r\n]*(?:\r\n|\n|\r|$)|(?:[ \t]*(?:\r\n|\n|\r))+(?: {4}|\t)[^\r\n]*(?:\r\n|\n|\r|$))+`)
)

// dropDefinition takes away what a link or a footnote is defined as, where nothing uses
// it, and the titles of the others.
func (r *reveal) dropDefinition() bool {
	rest := r.s[r.i:min(r.i+maxMarkup, len(r.s))]
	if m := noteForm.FindStringSubmatch(rest); m != nil {
		if r.used[strings.ToLower("["+m[1]+"]")] > 0 {
			return false
		}
		n := len(m[0])
		return r.replaceNext(n+len(noteMore.FindString(rest[n:])), "")
	}
	// Its line ends it, which may be a paragraph's last.
	m := defForm.FindStringSubmatch(r.restOfParagraph(maxMarkup))
	switch {
	case m == nil:
		return false
	case r.used[strings.ToLower("["+m[1]+"]")] == 0 || m[2] == "" || m[2] == "#" || m[2] == "<>":
		return r.replaceNext(len(m[0]), "")
	case m[3] == "":
		return false
	}
	end := m[0][len(strings.TrimRight(m[0], "\r\n")):]
	return r.replaceNext(len(m[0]), "["+m[1]+"]: "+m[2]+end)
}

var emptyForm = lazyregexp.New(`^\[\s*\]\([^()\n]*\)`)

// dropEmptyLink takes away a link with no text that anyone could see. An image is seen.
func (r *reveal) dropEmptyLink() bool {
	if r.i > 0 && r.s[r.i-1] == '!' || r.i+1 >= len(r.s) || !strings.ContainsRune("] \t\r\n", rune(r.s[r.i+1])) {
		return false
	}
	m := emptyForm.FindString(r.restOfParagraph(maxMarkup))
	return m != "" && r.replaceNext(len(m), "")
}

var titleForm = lazyregexp.New(`^\]\(\s*(<[^<>\n]*>|[^\s<>"']*)\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\))\s*\)`)

func (r *reveal) dropLinkTitle() bool {
	if !strings.HasPrefix(r.s[r.i:], "](") {
		return false
	}
	// A title stands behind white space: where that is, is looked for once.
	if r.space < r.i+2 {
		n := strings.IndexAny(r.s[r.i+2:], " \t\r\n")
		if n < 0 {
			n = len(r.s)
		}
		r.space = r.i + 2 + n
	}
	if r.space > r.i+maxMarkup {
		return false
	}
	m := titleForm.FindStringSubmatch(r.restOfParagraph(maxMarkup))
	return m != nil && r.replaceNext(len(m[0]), "]("+m[1]+")")
}

// imageForm is an image with a description, which is only seen where the image can't
// be shown.
var imageForm = lazyregexp.New(`^!\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])+)\](\(|\[)`)

func (r *reveal) dropDescription() bool {
	if r.i+1 >= len(r.s) || r.s[r.i+1] != '[' {
		return false
	}
	m := imageForm.FindStringSubmatch(r.restOfParagraph(maxMarkup))
	if m == nil || m[1] == "image" {
		return false
	}
	return r.replaceNext(len(m[0]), "![image]"+m[2])
}

// unseen are elements whose content nobody sees.
var unseen = []string{"script", "style", "template", "noscript"}

// dropMarkup takes comments and hidden elements away, and attributes from tags.
func (r *reveal) dropMarkup() bool {
	rest := r.s[r.i:]
	for _, x := range [][2]string{{"<!--", "-->"}, {"<?", "?>"}, {"<![CDATA[", "]]>"}} {
		if strings.HasPrefix(rest, x[0]) {
			return r.dropUntil(x[0], x[1])
		}
	}
	if len(rest) > 2 && rest[1] == '!' && isLetter(rest[2]) {
		return r.dropUntil("<!", ">")
	}
	t, ok := parseTag(rest)
	if !ok {
		return r.brokenTag(rest)
	}
	if !t.closing && (t.hidden || slices.Contains(unseen, t.name)) {
		return r.dropElement(t)
	}
	kept := t.renderKept()
	return kept != rest[:t.size] && r.replaceNext(t.size, kept)
}

// dropUntil takes everything away up to an end. Without the end that is all the rest
// where a line begins so, because the forge hides it too; elsewhere it is only text.
func (r *reveal) dropUntil(begin, end string) bool {
	rest := r.s[r.i:]
	if r.last[end] >= r.i+len(begin) {
		n := strings.Index(rest[len(begin):], end)
		return r.replaceNext(len(begin)+n+len(end), "")
	}
	if r.isKind(isStart | isHTML) {
		return r.replaceNext(len(rest), "")
	}
	return r.replaceNext(len(begin), "")
}

// dropElement takes a hidden element away, with what is in it.
func (r *reveal) dropElement(t tag) bool {
	rest := r.lower[r.i:]
	if t.isVoid() {
		return r.replaceNext(t.size, "")
	}
	depth, at := 1, t.size
	for depth > 0 {
		n := strings.Index(rest[at:], "<")
		if n < 0 {
			return r.replaceNext(len(rest), "") // it is open to the end
		}
		at += n
		x, ok := parseTag(rest[at:])
		if !ok {
			at++
			continue
		}
		at += x.size
		switch {
		case x.name != t.name:
		case x.closing:
			depth--
		default:
			depth++
		}
	}
	return r.replaceNext(at, "")
}

// brokenTag is a < that begins no tag as Markdown knows it. In HTML it hides what
// follows all the same, up to the next >.
func (r *reveal) brokenTag(rest string) bool {
	return tagName(rest) != "" && r.isKind(isHTML) && r.replaceNext(htmlTagEnd(rest), "")
}

// htmlTagEnd is where a tag ends as browsers read it: at the first > that is in no
// quoted value. Without one, all the rest belongs to it.
func htmlTagEnd(s string) int {
	var quote byte
	value := false // the last character but white space was =
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '>':
			return i + 1
		case value && (c == '"' || c == '\''):
			quote = c
		}
		if !strings.ContainsRune(" \t\r\n\f", rune(c)) {
			value = c == '='
		}
	}
	return len(s)
}

package sanitize

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// rounds bounds how often a text is gone over: what was taken away or decoded may
// have hidden something else.
const rounds = 20

// Incoming takes out of a text from outside what a person who reads it on the forge
// would not see: HTML comments and attributes, elements that are hidden, titles of
// links, descriptions of images, definitions that nothing uses, data in addresses,
// and characters without a width. Entities are decoded. What is visible stays as it
// is, and so does code, but for such characters. Lines end with "\n" alone. A last line
// counts the parts that were left out, so that whoever reads the text knows of the loss.
func Incoming(s string) string {
	s, dropped := dropUnseen(s)
	if dropped == 0 {
		return s
	}
	verb := "were"
	if dropped == 1 {
		verb = "was"
	}
	note := fmt.Sprintf("(%s that readers do not see %s left out.)", text.Plural(dropped, "part"), verb)
	return strings.TrimLeft(strings.TrimRight(s, " \t\n")+"\n\n"+note, "\n")
}

// dropUnseen is Incoming without the last line, and the number that this line tells.
func dropUnseen(s string) (seen string, dropped int) {
	s = dropInvisible(joinLines(s))
	for range rounds {
		next, n := revealOnce(s)
		dropped += n
		if next = dropInvisible(next); next == s {
			return s, dropped
		}
		s = next
	}
	// Nobody nests what is hidden so deeply but to hide it.
	return strings.NewReplacer("<", "(", ">", ")", "&", "+", "[", "(", "]", ")").Replace(s), dropped
}

// Line is a plain text from outside, such as the title of an issue, on one line. A forge
// shows all of it as it stands, so that nothing in it is hidden but invisible characters.
func Line(s string) string { return strings.Join(strings.Fields(dropInvisible(s)), " ") }

// revealOnce goes over a text once, and counts the parts that it takes away.
func revealOnce(s string) (string, int) {
	r := &reveal{s: s, lower: strings.ToLower(s), used: usedLabels(s), code: map[int]int{}, info: map[int]int{}, open: map[string]bool{}}
	if len(r.lower) != len(s) {
		r.lower = s // characters whose cases differ in length: tags in capitals stay
	}
	r.layOut()
	for r.i < len(s) {
		for len(r.lines) > 1 && r.lines[1].from <= r.i {
			r.lines = r.lines[1:]
		}
		switch {
		case r.info[r.i] > r.i:
			r.dropNext(r.info[r.i]-r.i, "")
		case r.code[r.i] > r.i:
			r.replaceNext(r.code[r.i]-r.i, s[r.i:r.code[r.i]])
		case !r.takeNext():
			r.out.WriteByte(s[r.i])
			r.i++
		}
	}
	return r.out.String(), r.dropped
}

// reveal is one pass over a text.
type reveal struct {
	s, lower string
	i        int
	out      strings.Builder
	lines    []line      // the present one and those below it
	code     map[int]int // where what is certainly code begins, and where it ends
	info     map[int]int // the same of what nobody sees of a code block's first line
	used     map[string]int
	open     map[string]bool // the ends of comments and the like that don't come any more
	dropped  int
}

// line is one line of a text.
type line struct {
	from, text, to int  // where it begins, its text behind its containers, and the next one
	paragraph      int  // where its paragraph ends
	html           bool // it is HTML, in which no Markdown counts
}

// layOut finds the lines, and the code in them.
func (r *reveal) layOut() {
	at := 0
	for text := range strings.Lines(r.s) {
		bare := strings.TrimSuffix(text, "\n")
		r.lines = append(r.lines, line{from: at, text: at + len(bare) - len(trimContainers(bare)), to: at + len(text)})
		at += len(text)
	}
	end := len(r.s)
	for i, ln := range slices.Backward(r.lines) {
		if isBlank(r.s[ln.from:ln.to]) {
			end = ln.from
		}
		r.lines[i].paragraph = end
	}
	var l layout
	for i, ln := range r.lines {
		for _, c := range l.readLine(strings.TrimSuffix(r.s[ln.from:ln.to], "\n"), r.s[ln.to:max(ln.to, ln.paragraph)]) {
			r.code[ln.from+c.from] = ln.from + c.to
		}
		r.info[ln.from+l.info.from] = ln.from + l.info.to
		r.lines[i].html = l.html || l.raw != ""
	}
}

// layout follows the lines of a text and says what of them is certainly code, on whatever
// forge.
type layout struct {
	open   *fence
	doubt  bool   // a code block was not what it seemed: nothing is certain any more
	raw    string // the end of the HTML that is open, in lower case
	html   bool   // a line since the last blank one begins with a tag
	unsure bool   // a backtick may belong to something else than code, up to the next blank line
	table  bool   // a line may be one of a table, up to there
	info   span   // of the present line: what follows the language of a code block
}

// readLine reads a line, of whose paragraph the rest follows, and returns its code.
func (l *layout) readLine(text, rest string) []span {
	low := strings.ToLower(trimContainers(text))
	l.info = span{}
	switch {
	case l.raw != "":
		if strings.Contains(low, l.raw) {
			l.raw = ""
		}
		return nil
	case l.open != nil:
		return l.inFence(text)
	case isBlank(text):
		l.html, l.unsure, l.table = false, false, false
		return nil
	}
	if f, ok := openFence(text); ok {
		rest := strings.TrimLeft(text[len(f.before)+len(f.mark):], " \t")
		l.info = span{from: len(text) - len(rest) + len(language.FindString(rest)), to: len(text)}
		if !l.doubt || l.html {
			l.open = &f
		}
		l.doubt = l.doubt || l.html
		return nil
	}
	if beginsHTML(low) {
		l.html, l.raw = true, rawEnd(low)
	}
	if l.html || l.doubt {
		return nil
	}
	return l.findCode(text, rest)
}

// inFence is a line of a code block. One with less before it than the first line has
// may lie outside of the list or quote that the block is in.
func (l *layout) inFence(text string) []span {
	f := l.open
	if f.closedBy(text) {
		l.open = nil
		return nil
	}
	before := text[:len(text)-len(strings.TrimLeft(text, " \t>"))]
	if f.isQuoted() && !strings.Contains(before, ">") || !isBlank(text) && len(before) < len(f.before) {
		l.doubt, l.open = true, nil
	}
	if l.doubt {
		return nil
	}
	return []span{{to: len(text)}}
}

var (
	// inert are escaped marks, tags, addresses in < and >, and comments: what is in them
	// begins nothing.
	inert = lazyregexp.New(`\\[[:punct:]]|<[A-Za-z][A-Za-z0-9-]*(?:\s+[A-Za-z_:][\w.:-]*(?:\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'=<>]+))?)*\s*/?>|` +
		`</[A-Za-z][A-Za-z0-9-]*\s*>|<[A-Za-z][A-Za-z0-9+.-]+:[^\s<>]*>|<!--(?:-?[^<>-])*-->`)
	// whole are links that have ended, and what looks like a tag: they own no later backtick.
	whole = lazyregexp.New(`\]\((?:[^\s()<>]|\([^\s()<>]*\))*(?:\s+(?:"[^<"]*"|'[^<']*'|\([^<()]*\)))?\s*\)|\]\[[^\[\]<>]*\]|<[A-Za-z/][^<>\[\]"']*>`)
	// owner may begin such a thing, up to a later line. In a tag, a backtick is quoted.
	owner = lazyregexp.New(`\]\(|\]\[|<[!?]|<[A-Za-z/][^<>\x00]*(?:=\s*["']|\n)|<[A-Za-z][A-Za-z0-9+.-]+:[^\s<>]*$`)
	// bareAddress is a link by itself, up to white space.
	bareAddress = lazyregexp.New(`(?i:://|www\.)[^\s<\x00]*$`)
	// delimiter is the line below the head of a table.
	delimiter = lazyregexp.New(`^[ \t|:-]*$`)
	// cellEnd is a | that no backslash takes its meaning.
	cellEnd = lazyregexp.New(`(?:[^\\]|\\\\)\|`)
)

// mayOwn reports whether a backtick, or the end of a line, that follows what is before it may
// belong to a link, a tag or an address.
func mayOwn(before string) bool {
	before = inert.ReplaceAllStringFunc(before, func(m string) string {
		if m[0] == '<' {
			return "\x00" // no text has one, and it ends an address
		}
		return "-"
	})
	return bareAddress.MatchString(before) || owner.MatchString(whole.ReplaceAllString(before, ""))
}

// findCode are the code within a line of text.
func (l *layout) findCode(text, rest string) (certain []span) {
	next, _, _ := strings.Cut(rest, "\n")
	l.table = l.table || strings.Contains(next, "-") && strings.ContainsAny(next, "|:") && delimiter.MatchString(trimContainers(next))
	at := 0
	for _, s := range findSpans(text) {
		code := text[s.from:s.to]
		l.unsure = l.unsure || s.isAlone() && findPartner(rest, span{marks: s.marks}) > 0 || mayOwn(text[at:s.from]) || l.table && cellEnd.MatchString(code)
		if !l.unsure {
			certain = append(certain, s)
		}
		at = s.to
	}
	l.unsure = l.unsure || mayOwn(text[at:]+"\n")
	return certain
}

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
	return ok && isBlank(low[t.size:])
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

// dataAddress is one that holds its content.
const dataAddress = `(?i:data:)(?:[A-Za-z0-9.+-]+/[A-Za-z0-9.+*-]+)?(?:;[A-Za-z0-9=._-]+)*,[^\s<>()"'\]]*`

// unseen are parts of a paragraph of which nobody sees all: what they begin with, and what
// is put in their place.
var unseen = []struct {
	begin string
	form  *lazyregexp.Regexp
	with  string
	long  bool // it may be longer than markup
}{
	{"&", lazyregexp.New(`^&(?:amp;|#38;|#[xX]26;)+`), "&", true},
	{"](", lazyregexp.New(`^\]\(\s*(<[^<>\n]*>|[^\s<>"']*)\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\))\s*\)`), "]($1)", false},
	// A description is only seen where the image can't be shown.
	{"![", lazyregexp.New(`^!\[(?:[^\[\]\\]|\\.|\[[^\[\]]*\])+\]([(\[])`), "![image]$1", false},
	{"![", lazyregexp.New(`^!\[\]\(`), "![](", false},
	{"[", lazyregexp.New(`^\[\s*\]\([^()\n]*\)`), "", false}, // a link with no text
	{"data:", lazyregexp.New(`^` + dataAddress), "data:", true},
}

// takeNext takes away or exchanges what begins here; false: nothing does.
func (r *reveal) takeNext() bool {
	switch c := r.s[r.i]; {
	case c == '<':
		return r.dropMarkup()
	case !strings.ContainsRune("&[]!dD", rune(c)):
		return false
	case c == '[' && r.i == r.lines[0].text && r.dropDefinition():
		return true
	}
	for _, x := range unseen {
		rest := r.s[r.i:]
		if !x.long {
			rest = r.restOfParagraph()
		}
		switch {
		case !strings.HasPrefix(r.lower[r.i:], x.begin), x.begin == "data:" && word.MatchString(r.s[max(r.i-1, 0):r.i]):
			continue
		case x.begin == "](" && !strings.ContainsAny(rest, " \t\n"): // a title stands behind white space
			continue
		}
		m := x.form.FindString(rest)
		switch with := x.form.ReplaceAllString(m, x.with); {
		case m == "":
		case x.begin == "&":
			return r.replaceNext(len(m), with)
		default:
			return r.dropNext(len(m), with)
		}
	}
	return r.decodeEntity()
}

var word = lazyregexp.New(`\w`)

// replaceNext writes text in the place of the next n bytes.
func (r *reveal) replaceNext(n int, text string) bool {
	r.out.WriteString(text)
	r.i += n
	return true
}

// dropNext is replaceNext for what takes something away.
func (r *reveal) dropNext(n int, kept string) bool {
	if bare.Replace(r.s[r.i:r.i+n]) != bare.Replace(kept) {
		r.dropped++
	}
	return r.replaceNext(n, kept)
}

// bare leaves out how a tag is written.
var bare = strings.NewReplacer(" ", "", "\t", "", "\n", "", `"`, "", "'", "", "/", "")

// restOfParagraph is the text from here up to the next blank line, as long as markup is.
func (r *reveal) restOfParagraph() string {
	return r.s[r.i:min(r.i+maxMarkup, max(r.lines[0].paragraph, r.i))]
}

var entityForm = lazyregexp.New(`^&(?:#[xX][0-9a-fA-F]{1,8}|#[0-9]{1,9}|[A-Za-z][A-Za-z0-9]{1,31});?`)

func (r *reveal) decodeEntity() bool {
	m := entityForm.FindString(r.s[r.i:min(r.i+64, len(r.s))])
	text := html.UnescapeString(m)
	return m != "" && text != m && r.replaceNext(len(m), text)
}

var (
	defForm  = lazyregexp.New(`^\[([^\[\]]{1,200})\]:[ \t]*(?:\n[ \t]*)?(<[^<>\n]*>|[^\s<][^\s]*)?((?:[ \t]*\n)?[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t]*(?:\n|$)`)
	noteForm = lazyregexp.New(`^\[(\^[^\[\]\s]{1,200})\]:[^\n]*(?:\n|$)`)
	// noteMore are the lines that go on with a footnote: those of its paragraph, and
	// indented ones.
	noteMore = lazyregexp.New(`^(?:[^\s\[][^\n]*(?:\n|$)|[ \t]+[^\s][^\n]*(?:\n|$)|(?:[ \t]*\n)+(?: {4}|\t)[^\n]*(?:\n|$))+`)
)

// dropDefinition takes away what a link or a footnote is defined as, where nothing uses
// it, and the titles of the others.
func (r *reveal) dropDefinition() bool {
	rest := r.s[r.i:min(r.i+maxMarkup, len(r.s))]
	isUsed := func(label string) bool { return r.used[strings.ToLower("["+label+"]")] > 0 }
	if m := noteForm.FindStringSubmatch(rest); m != nil {
		n := len(m[0])
		return !isUsed(m[1]) && r.dropNext(n+len(noteMore.FindString(rest[n:])), "")
	}
	// Its line ends it, which may be a paragraph's last.
	m := defForm.FindStringSubmatch(r.restOfParagraph())
	switch {
	case m == nil:
		return false
	case !isUsed(m[1]) || m[2] == "" || m[2] == "#" || m[2] == "<>":
		return r.dropNext(len(m[0]), "")
	case m[3] == "":
		return false
	}
	return r.dropNext(len(m[0]), "["+m[1]+"]: "+m[2]+m[0][len(strings.TrimRight(m[0], "\n")):])
}

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
	switch {
	case !ok:
		return r.dropBroken(rest)
	case !t.closing && t.isUnseen():
		return r.dropElement(t)
	}
	kept := t.renderKept()
	return kept != rest[:t.size] && r.dropNext(t.size, kept)
}

// dropUntil takes everything away up to an end. Without the end that is all the rest
// where a line begins so, because the forge hides it too; elsewhere it is only text.
func (r *reveal) dropUntil(begin, end string) bool {
	rest := r.s[r.i+len(begin):]
	if !r.open[end] {
		if n := strings.Index(rest, end); n >= 0 {
			return r.dropNext(len(begin)+n+len(end), "")
		}
		r.open[end] = true // it is looked for once
	}
	switch {
	case r.lines[0].html || r.i == r.lines[0].text:
		return r.dropNext(len(begin)+len(rest), "")
	}
	return r.dropNext(len(begin), "")
}

// hasEnd reports whether an end, in lower case, follows.
func (r *reveal) hasEnd(end string) bool {
	r.open[end] = r.open[end] || !strings.Contains(r.lower[r.i:], end)
	return !r.open[end]
}

// dropElement takes a hidden element away, with what is in it; all the rest, if it is open to
// the end. Forges show what follows a template that nothing ends, as people write it in prose.
func (r *reveal) dropElement(t tag) bool {
	rest := r.lower[r.i:]
	if t.isVoid() || t.name == "template" && !t.hidden && !r.hasEnd("</template") {
		return r.dropNext(t.size, "")
	}
	at := t.size
	for depth := 1; depth > 0; {
		n := strings.Index(rest[at:], "<")
		if n < 0 {
			return r.dropNext(len(rest), "")
		}
		at += n
		x, ok := parseTag(rest[at:])
		switch at += max(x.size, 1); {
		case !ok || x.name != t.name:
		case x.closing:
			depth--
		default:
			depth++
		}
	}
	return r.dropNext(at, "")
}

// htmlTag is a tag as browsers read it: up to the first > that is in no quoted value.
var htmlTag = lazyregexp.New(`^<(?:[^>=]|=\s*(?:"[^"]*"|'[^']*'|[^"'\s>]))*=?\s*>`)

// dropBroken takes away what a < hides that begins no tag as Markdown knows it: in HTML all
// up to the end of the tag, or of the text.
func (r *reveal) dropBroken(rest string) bool {
	if tagName(rest) == "" || !r.lines[0].html {
		return false
	}
	n := len(htmlTag.FindString(rest))
	if n == 0 {
		n = len(rest)
	}
	return r.dropNext(n, "")
}

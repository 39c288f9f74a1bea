package sanitize

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Options of Outgoing.
type Options struct {
	// Closes are the issues of this repository that the text may close by a keyword,
	// such as that of "Fixes #12".
	Closes []int
	// Repo is this repository as owner/name, and Server its forge's address
	// (https://github.com): links to issues of other repositories are made
	// harmless. Empty: all are.
	Repo, Server string
	// Max is the most characters; 0 means MaxText.
	Max int
}

// MaxText is the default of Options.Max: below the 65,536 characters of a forge's
// comments, with room for what is written around the text.
const MaxText = 60_000

// Outgoing makes what an agent wrote harmless before it is posted. It mentions
// nobody, closes no issue but those of the options, gives no bot a command, leaves no
// trace in other repositories, fetches no picture, and can't pass for what uwf writes
// itself. Code stays code; its blocks begin at the margin, so that there is no doubt.
// What is too long is cut, and says so.
func Outgoing(s string, o Options) string {
	most := o.Max
	if most <= 0 {
		most = MaxText
	}
	s = dropInvisible(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s))
	// What is far too long need not be looked at whole.
	if len(s) <= 8*most {
		if out := settleText(s, o); utf8.RuneCountInString(out) <= most {
			return out
		}
	}
	return cutToFit(s, o, most)
}

// cutToFit takes so much of a text that it fits with the mark that says so.
func cutToFit(s string, o Options, most int) string {
	all := utf8.RuneCountInString(s)
	rs := []rune(strings.ToValidUTF8(s[:min(len(s), 4*most)], ""))
	for n := min(len(rs), most); ; {
		kept := string(rs[:n])
		if i := strings.LastIndexByte(kept, '\n'); i > len(kept)/2 {
			kept = kept[:i]
		}
		kept = strings.TrimRight(kept, " \n\t")
		mark := fmt.Sprintf("… cut here: %d more characters", all-utf8.RuneCountInString(kept))
		out := settleText(rewriteText(kept+"\n", o)+"\n"+mark, o)
		size := utf8.RuneCountInString(out)
		if size <= most {
			return out
		}
		if n == 0 {
			return string([]rune(mark)[:min(most, len([]rune(mark)))])
		}
		n = max(min(n-1, n*most/size-8), 0)
	}
}

// settleText goes over a text until nothing changes: so what comes out was read as it
// stands, and nothing in it is taken for code that is none.
func settleText(s string, o Options) string {
	for range rounds {
		next := dropInvisible(rewriteText(s, o))
		if next == s {
			return s
		}
		s = next
	}
	// No text that is meant to be read comes here.
	return strings.NewReplacer("`", "'", "~", "-", "<", "(", ">", ")", "&", "+", "@", "＠", "#", "＃", "[", "(", "]", ")", "|", "/", "\\", "/", "\n/", "\n", ":", ";").Replace(s)
}

// rewriteText goes over a whole text.
func rewriteText(s string, o Options) string {
	p := poster{o: o}
	lines := splitLines(s)
	tables := tableLines(lines)
	for i, ln := range lines {
		p.writeLine(ln, tables[i])
	}
	p.closeAll()
	return p.defuseClosings(p.out.String())
}

// poster writes a text anew, line by line.
type poster struct {
	o       Options
	out     strings.Builder
	fence   *fence
	html    bool // a line since the last blank one begins with a tag: no Markdown counts
	link    bool // an earlier line of the paragraph may have opened a link: no code is certain
	details int  // how many are open
}

func (p *poster) writeLine(ln line, table bool) {
	if p.fence != nil {
		p.codeLine(ln)
		return
	}
	text := decodeLine(ln.text)
	if f, ok := openFence(text); ok {
		p.openBlock(f)
		return
	}
	if strings.TrimSpace(text) == "" {
		p.html, p.link = false, false
		p.out.WriteString(text + ln.end)
		return
	}
	text = commands.ReplaceAllString(p.rewriteLine(text, table), `$1\/$2`)
	p.html = p.html || strings.HasPrefix(trimContainers(text), "<")
	p.out.WriteString(text + ln.end)
}

// openBlock begins a code block: at the margin, because where it lies in a list or a quote
// its end depends on what follows.
func (p *poster) openBlock(f fence) {
	if before := strings.TrimRight(f.before, " \t"); strings.Trim(before, " \t>") != "" {
		p.out.WriteString(before + "\n")
	}
	if p.html {
		p.out.WriteString("\n") // ends the HTML
	}
	p.html, p.link, p.fence = false, false, &f
	p.out.WriteString(f.mark + language.FindString(f.info) + "\n")
}

// language is the part of a code block's first line that says how to show it.
var language = lazyregexp.New(`^[A-Za-z0-9_+#.-]{1,40}`)

func (p *poster) codeLine(ln line) {
	f := p.fence
	if f.closedBy(ln.text) {
		p.fence = nil
		p.out.WriteString(f.mark + "\n")
		return
	}
	text := ln.text
	for i := 0; i < len(f.before) && text != "" && (text[0] == ' ' || text[0] == '>' && f.isQuoted()); i++ {
		text = text[1:]
	}
	if codeCommand.MatchString(text) {
		text = " " + text
	}
	p.out.WriteString(marker.ReplaceAllString(text, "<! --$1") + "\n")
}

// closeAll closes what the agent left open.
func (p *poster) closeAll() {
	end := func() {
		if s := p.out.String(); s != "" && !strings.HasSuffix(s, "\n") {
			p.out.WriteString("\n")
		}
	}
	if p.fence != nil {
		end()
		p.out.WriteString(p.fence.mark + "\n")
	}
	for ; p.details > 0; p.details-- {
		end()
		p.out.WriteString("</details>\n")
	}
}

var (
	// commands are those of bots, at the beginning of a line. What they take for white
	// space differs: that of Unicode and what has no width, as event.ParseCommand does.
	commands    = lazyregexp.New(`^((?:[\s\pZ\p{Cf}]|>|(?:[-*+]|\d{1,9}[.)])[\s\pZ\p{Cf}])*)/([A-Za-z][A-Za-z0-9_-]*(?:[^A-Za-z0-9_/.-]|$))`)
	codeCommand = lazyregexp.New(`^/[A-Za-z][A-Za-z0-9_-]*(?:[^A-Za-z0-9_/.-]|$)`)
	// marker begins what uwf finds its own comments by.
	marker = lazyregexp.New(`<!--(\s*uwf)`)
)

// decodeLine is a line of text without entities, but for those that keep a < or & from
// being one. The forge looks for mentions and references after it has decoded them.
func decodeLine(text string) string {
	for range rounds {
		next := dropInvisible(anyEntity.ReplaceAllStringFunc(text, decodeOne))
		next = strings.NewReplacer("\n", " ", "\r", " ").Replace(next)
		if next == text {
			return text
		}
		text = next
	}
	return strings.ReplaceAll(text, "&", "+")
}

var anyEntity = lazyregexp.New(`&(?:#[xX][0-9a-fA-F]{1,50}|#[0-9]{1,50}|[A-Za-z][A-Za-z0-9]{1,31});?`)

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func decodeOne(entity string) string {
	text := html.UnescapeString(entity)
	if text == entity {
		return entity
	}
	return escape.Replace(text)
}

// rewriteLine is one line, without code blocks. The code in it is only code where nothing
// but this line decides so: rows of backticks without a partner are escaped, so that
// they find none on another line.
func (p *poster) rewriteLine(s string, table bool) string {
	code, left, open := codeSpans(s, table)
	if p.link || p.html || strings.HasPrefix(trimContainers(s), "<") {
		code, left = nil, findRows(s) // backticks mean nothing in HTML
	}
	p.link = p.link || open
	var b strings.Builder
	at := 0
	for at < len(s) {
		switch {
		case len(code) > 0 && code[0].from == at:
			b.WriteString(separatorAfter(b.String()) + marker.ReplaceAllString(s[at:code[0].to], "<! --$1"))
			at, code = code[0].to, code[1:]
		case len(left) > 0 && left[0].from == at:
			b.WriteString(separatorAfter(b.String()) + strings.Repeat("\\`", left[0].to-at))
			at, left = left[0].to, left[1:]
		default:
			end := len(s)
			if len(code) > 0 {
				end = code[0].from
			}
			if len(left) > 0 {
				end = min(end, left[0].from)
			}
			b.WriteString(p.rewritePlain(s[at:end]))
			at = end
		}
	}
	return b.String()
}

// separatorAfter is what has to stand between a text and a row of backticks, after
// something between them was taken away.
func separatorAfter(before string) string {
	slashes := len(before) - len(strings.TrimRight(before, "\\"))
	switch {
	case slashes%2 == 1:
		return "\\"
	case strings.HasSuffix(before, "`"):
		return " "
	}
	return ""
}

// rewritePlain is a part of a line that is neither code nor a backtick.
func (p *poster) rewritePlain(s string) string {
	s = comment.ReplaceAllString(s, "")
	s = dataAnywhere.ReplaceAllString(s, "${1}data:")
	s = p.escapeTags(s)
	s = images.ReplaceAllString(s, "[")
	s = strings.ReplaceAll(s, "[](", "[link](")
	var b strings.Builder
	at := 0
	for _, m := range address.FindAllStringIndex(s, -1) {
		b.WriteString(p.defuseWords(s[at:m[0]]))
		b.WriteString(p.defuseAddress(s[m[0]:m[1]]))
		at = m[1]
	}
	b.WriteString(p.defuseWords(s[at:]))
	return b.String()
}

var (
	comment      = lazyregexp.New(`<!--.*?-->`)
	dataAnywhere = lazyregexp.New(`(^|[^A-Za-z0-9_])(?i:data:)(?:[A-Za-z0-9.+-]+/[A-Za-z0-9.+*-]+)?(?:;[A-Za-z0-9=._-]+)*,[^\s<>()"'\]]*`)
	images       = lazyregexp.New(`!+\[`)
	address      = lazyregexp.New(`(?i:https?://)[^\s<>()"'\[\]|` + "`" + `*]+`)

	escapedAt = lazyregexp.New(`\\+@`) // all of them: behind one that is taken away is the next
	mention   = lazyregexp.New(`(^|[^A-Za-z0-9])@([A-Za-z0-9])`)
	backlink  = lazyregexp.New(`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)?)\\?#(\d)`)
)

// defuseWords is text without addresses.
func (p *poster) defuseWords(s string) string {
	s = escapedAt.ReplaceAllString(s, "@")
	s = mention.ReplaceAllString(s, "$1＠$2")
	return backlink.ReplaceAllStringFunc(s, func(m string) string {
		i := strings.LastIndexByte(m, '#')
		name := strings.TrimSuffix(m[:i], `\`)
		if p.o.Repo != "" && strings.EqualFold(name, p.o.Repo) {
			return m
		}
		return name + "＃" + m[i+1:]
	})
}

// issueAddress leads to what notes down who links to it.
var issueAddress = lazyregexp.New(`^(?i:(https?://)([^/\s]+))/((?:[^/\s]+/)*?[^/\s]+/[^/\s]+)/((?i:issues|pulls?|discussions|commits?))/([0-9A-Fa-f])(.*)$`)

// defuseAddress is a link. Mentions hide in links too; one that leads to another
// repository's issue goes a way on which that issue doesn't notice.
func (p *poster) defuseAddress(s string) string {
	s = mention.ReplaceAllString(s, "$1%40$2")
	m := issueAddress.FindStringSubmatch(s)
	if m == nil || p.isOwnRepo(m[1]+m[2], m[3]) {
		return s
	}
	host := strings.ToLower(m[2])
	if host == "github.com" || host == "www.github.com" {
		return m[1] + "redirect.github.com/" + m[3] + "/" + m[4] + "/" + m[5] + m[6]
	}
	if host == "redirect.github.com" {
		return s
	}
	return m[1] + m[2] + "/" + m[3] + "/" + m[4] + "/" + fmt.Sprintf("%%%02X", m[5][0]) + m[6]
}

// isOwnRepo reports whether an address is that of this repository.
func (p *poster) isOwnRepo(server, repo string) bool {
	return p.o.Repo != "" && strings.EqualFold(server+"/"+repo, strings.TrimSuffix(p.o.Server, "/")+"/"+p.o.Repo)
}

// someTag is one of the few tags that are let through, always without attributes.
var someTag = lazyregexp.New(`(?i)^</?(?:details|summary|br|sub|sup|kbd)(?:\s+open)?\s*/?>`)

// maxDetails is how deep details may lie in one another.
const maxDetails = 5

// escapeTags escapes all HTML but a few tags that belong together.
func (p *poster) escapeTags(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	found := pairTags(s)
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '<' {
			b.WriteByte(s[i])
			i++
			continue
		}
		name, size := found[i], len(someTag.FindString(s[i:]))
		switch {
		case name == "":
			b.WriteString("&lt;")
			i++
			continue
		case name == "details" && p.details < maxDetails:
			p.details++
		case name == "/details" && p.details > 0:
			p.details--
		case name == "details" || name == "/details":
			b.WriteString("&lt;")
			i++
			continue
		}
		b.WriteString("<" + name + ">")
		i += size
	}
	return b.String()
}

// pairTags finds the tags that may stay: what opens and closes within the line, and
// details, which are counted elsewhere.
func pairTags(s string) map[int]string {
	out := map[int]string{}
	open := map[string][]int{}
	for i := range len(s) {
		if s[i] != '<' {
			continue
		}
		m := someTag.FindString(s[i:])
		if m == "" {
			continue
		}
		name := strings.ToLower(tagName(m))
		closing := strings.HasPrefix(m, "</")
		switch {
		case name == "br":
			out[i] = "br"
		case name == "details" && closing:
			out[i] = "/details"
		case name == "details":
			out[i] = "details"
		case !closing:
			open[name] = append(open[name], i)
		case len(open[name]) > 0:
			last := len(open[name]) - 1
			out[open[name][last]], out[i] = name, "/"+name
			open[name] = open[name][:last]
		}
	}
	return out
}

// closing is a keyword before a reference to an issue. What stands between them may
// be marks, and one end of a line.
var closing = lazyregexp.New(`(?i)(\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?|reopen(?:s|ed)?|duplicate[ \t]+of)\b[^A-Za-z0-9\n#!]{0,30}\n?[^A-Za-z0-9\n#!]{0,30})((?:[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+)?[#!]\d+|gh-\d+|https?://[^\s<>()]*/(?:issues|pulls?)/\d+)`)

// defuseClosings puts a word between a keyword and its reference, so that it closes
// nothing. That is done in code too: the text may become a commit's message.
func (p *poster) defuseClosings(s string) string {
	return closing.ReplaceAllStringFunc(s, func(m string) string {
		parts := closing.FindStringSubmatch(m)
		if p.mayClose(parts[1], parts[2]) {
			return m
		}
		return parts[1] + "issue " + parts[2]
	})
}

// mayClose reports whether the options let a keyword close what it refers to.
func (p *poster) mayClose(keyword, ref string) bool {
	k := strings.ToLower(keyword)
	if strings.HasPrefix(k, "reopen") || strings.HasPrefix(k, "duplicate") {
		return false
	}
	repo, n, _ := strings.Cut(ref, "#")
	if repo != "" && !strings.EqualFold(repo, p.o.Repo) {
		return false
	}
	return slices.ContainsFunc(p.o.Closes, func(c int) bool { return n == fmt.Sprint(c) })
}

// maxTitle is GitHub's bound on the title of an issue or a pull request.
const maxTitle = 256

// Title is a text on one line of at most 256 characters, as the title of an issue or
// a pull request: it mentions and closes nothing, because it may become a commit's
// message too. It is no Markdown: what shows it as such has to escape it.
func Title(s string) string {
	p := poster{}
	s = dropInvisible(s)
	for range rounds {
		next := strings.Join(strings.Fields(comment.ReplaceAllString(dropInvisible(html.UnescapeString(s)), "")), " ")
		next = p.defuseClosings(p.defuseWords(next))
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

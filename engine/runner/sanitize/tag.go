package sanitize

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// tag is an HTML tag.
type tag struct {
	name    string // in lower case
	written string // the name as it stands there
	closing bool
	hidden  bool // an attribute hides the element
	self    bool // it ends with />
	open    bool // the attribute open, of details
	address string
	size    int // bytes of the text that it takes
}

// blockTags begin a block of HTML at the beginning of a line, whole or not
// (CommonMark, HTML blocks, condition 6).
var blockTags = strings.Fields(`address article aside base basefont blockquote body caption center col colgroup dd
	details dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html
	iframe legend li link main menu menuitem nav noframes ol optgroup option p param search section summary table tbody td
	tfoot th thead title tr track ul pre script style textarea`)

// unseenTags are elements whose content nobody sees.
var unseenTags = strings.Fields("script style template noscript")

var voidTags = strings.Fields("area base br col embed hr img input link meta param source track wbr")

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func tagName(s string) string {
	s = strings.TrimPrefix(strings.TrimPrefix(s, "<"), "/")
	if s == "" || !isLetter(s[0]) {
		return ""
	}
	n := 1
	for n < len(s) && (isLetter(s[n]) || s[n] >= '0' && s[n] <= '9' || s[n] == '-') {
		n++
	}
	return s[:n]
}

// attribute is one attribute as browsers read it, with the white space before it.
var attribute = lazyregexp.New(`^(?:\s+|/)*([^\s"'<>/=]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'=<>` + "`" + `]+))?`)

// tagEnd ends a tag.
var tagEnd = lazyregexp.New(`^\s*(/?)\s*>`)

// maxTag bounds a tag: a longer one is text.
const maxTag = 16 << 10

// parseTag reads the tag that s begins with.
func parseTag(s string) (tag, bool) {
	name := tagName(s)
	if name == "" {
		return tag{}, false
	}
	t := tag{name: strings.ToLower(name), written: name, closing: strings.HasPrefix(s, "</")}
	s = s[:min(len(s), maxTag)]
	at := strings.Index(s, name) + len(name)
	for {
		if m := tagEnd.FindStringSubmatch(s[at:]); m != nil {
			t.self, t.size = m[1] != "", at+len(m[0])
			return t, true
		}
		m := attribute.FindStringSubmatch(s[at:])
		if m == nil || !strings.HasPrefix(m[0], "/") && strings.TrimLeft(m[0], " \t\r\n\f") == m[0] {
			return tag{}, false
		}
		t.readAttribute(strings.ToLower(m[1]), strings.Trim(m[2], `"'`))
		at += len(m[0])
	}
}

var hiding = lazyregexp.New(`(?i)display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0*\.?0*(?:%|;|\s|!|$)|font-size\s*:\s*0*\.?0*(?:[a-z%]|;|\s|!|$)|color\s*:\s*transparent|(?:text-indent|left|top|margin-left)\s*:\s*-\d{3}|(?:width|height)\s*:\s*0*\.?0*(?:[a-z%]|;|\s|$)|clip(?:-path)?\s*:`)

func (t *tag) readAttribute(name, value string) {
	switch name {
	case "hidden":
		t.hidden = true
	case "style":
		t.hidden = t.hidden || hiding.MatchString(value)
	case "width", "height":
		// An image of one pixel is there to be fetched, not to be seen.
		t.hidden = t.hidden || t.name == "img" && (value == "0" || value == "1")
	case "type":
		t.hidden = t.hidden || t.name == "input" && strings.EqualFold(value, "hidden")
	case "href", "src":
		t.address = value
	case "open":
		t.open = t.name == "details"
	}
}

// isUnseen reports whether nobody sees the element.
func (t tag) isUnseen() bool { return t.hidden || slices.Contains(unseenTags, t.name) }

func (t tag) isVoid() bool { return t.self || slices.Contains(voidTags, t.name) }

// webAddress is an address that leads to a page or a picture.
var webAddress = lazyregexp.New(`^(?i:https?://|mailto:|/|#|\.)[^\s"<>]{0,1000}$`)

// renderKept is the tag with what is seen of it.
func (t tag) renderKept() string {
	var b strings.Builder
	b.WriteByte('<')
	if t.closing {
		b.WriteByte('/')
	}
	b.WriteString(t.written)
	switch {
	case t.closing:
	case t.name == "a" && webAddress.MatchString(t.address):
		b.WriteString(` href="` + t.address + `"`)
	case t.name == "img" && webAddress.MatchString(t.address):
		b.WriteString(` src="` + t.address + `"`)
	case t.open:
		b.WriteString(" open")
	}
	if t.self {
		b.WriteString("/")
	}
	b.WriteByte('>')
	return b.String()
}

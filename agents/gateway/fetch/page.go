package fetch

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"github.com/united-workforce/uwf/internal/text"
)

// readResult reads an answer's text, as far as there is room for it.
func readResult(resp *http.Response) (Result, error) {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		kind = "application/octet-stream"
	}
	// What the transport unpacks itself has lost this header.
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return Result{}, fmt.Errorf("the answer is packed as %.40q, which was not asked for", enc)
	}
	if !isText(kind) {
		return Result{}, fmt.Errorf("the answer (status %d) is %.80s, and only text is taken", resp.StatusCode, kind)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return Result{}, fmt.Errorf("read the answer: %w", err)
	}
	r := Result{Status: resp.StatusCode, Type: kind, Cut: len(body) > maxBody}
	page, err := decodeText(body[:min(len(body), maxBody)], resp.Header.Get("Content-Type"))
	if err != nil {
		return Result{}, fmt.Errorf("read the answer: %w", err)
	}
	if kind == "text/html" || kind == "application/xhtml+xml" {
		page = readHTML(page)
	}
	if r.Text = page; len(page) > maxText {
		r.Text, r.Cut = text.Cut(page, maxText), true
	}
	return r, nil
}

// isText reports whether a media type is that of a text.
func isText(kind string) bool {
	family, sub, _ := strings.Cut(kind, "/")
	if family == "text" {
		return true
	}
	return family == "application" && (strings.HasSuffix(sub, "+json") || strings.HasSuffix(sub, "+xml") ||
		slices.Contains([]string{"json", "xml", "javascript", "ecmascript", "x-javascript", "yaml", "x-yaml", "toml", "x-ndjson", "jsonl", "sql", "x-sh"}, sub))
}

// decodeText makes UTF-8 of a body, by the character set that its header or the page itself
// names, else by what its bytes look like. Bytes that are none become U+FFFD.
func decodeText(body []byte, contentType string) (string, error) {
	set, _, named := charset.DetermineEncoding(body, contentType)
	if !named && utf8.Valid(body) { // which it overlooks in a few words
		return string(body), nil
	}
	decoded, err := set.NewDecoder().Bytes(body)
	return strings.ToValidUTF8(string(decoded), "\ufffd"), err
}

// readHTML is what a page says, without what only a browser wants: one line for each block,
// headings after #, items after -, preformatted text as it stands. It looks at one token after
// the other, so that no nesting costs anything.
func readHTML(page string) string {
	w := &pageWriter{}
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		switch kind {
		case html.ErrorToken: // the end: a string can be read
			return strings.TrimSpace(w.out.String())
		case html.TextToken:
			w.writeText(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, _ := z.TagName()
			w.passTag(atom.Lookup(name), kind)
		}
	}
}

// pageWriter writes the text of a page.
type pageWriter struct {
	out    strings.Builder
	hidden atom.Atom // the element whose content is left out; 0: none
	pre    bool
	space  bool // white space came after the last word
	fresh  bool // the line is empty but for its mark
}

func (w *pageWriter) passTag(tag atom.Atom, kind html.TokenType) {
	if w.hidden != 0 {
		if kind == html.EndTagToken && tag == w.hidden {
			w.hidden = 0
		}
		return
	}
	begins := kind == html.StartTagToken
	switch tag {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Select:
		if begins {
			w.hidden = tag
		}
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		w.breakLine()
		if begins {
			w.startLine("\n" + strings.Repeat("#", int(tag.String()[1]-'0')) + " ")
		}
	case atom.Li:
		w.breakLine()
		if begins {
			w.startLine("- ")
		}
	case atom.Pre:
		w.pre = begins
		w.breakLine()
	case atom.Td, atom.Th:
		w.space = true
	case atom.P, atom.Div, atom.Br, atom.Tr, atom.Ul, atom.Ol, atom.Dl, atom.Dt, atom.Dd, atom.Table, atom.Section, atom.Article, atom.Header, atom.Footer,
		atom.Main, atom.Nav, atom.Aside, atom.Blockquote, atom.Title, atom.Hr, atom.Figure, atom.Form, atom.Option, atom.Details, atom.Summary:
		w.breakLine()
	}
}

func (w *pageWriter) startLine(mark string) {
	w.out.WriteString(mark)
	w.fresh = true
}

func (w *pageWriter) breakLine() {
	if !w.fresh && w.out.Len() > 0 {
		w.out.WriteByte('\n')
	}
	w.fresh, w.space = true, false
}

func (w *pageWriter) writeText(s string) {
	if w.hidden != 0 {
		return
	}
	if w.pre {
		w.out.WriteString(s)
		w.fresh, w.space = strings.HasSuffix(s, "\n"), false
		return
	}
	for i, word := range strings.Fields(s) {
		if !w.fresh && (i > 0 || w.space || startsWithSpace(s)) {
			w.out.WriteByte(' ')
		}
		w.out.WriteString(word)
		w.fresh, w.space = false, false
	}
	if s != "" && strings.TrimRight(s, " \t\r\n\f") != s {
		w.space = true
	}
}

func startsWithSpace(s string) bool { return strings.TrimLeft(s, " \t\r\n\f") != s }

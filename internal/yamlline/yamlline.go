// Package yamlline says on which line a document of YAML is broken. The library counts the
// lines of the constructs that it was reading, from the construct's beginning, from 0 or
// from 1, or not at all: a key that is indented wrongly is said to be where its mapping
// begins, or a line before that. Package yamlline does no I/O.
package yamlline

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// What looking for the line costs at most: the text is parsed again for each line that it
// may be.
const (
	maxText  = 256 << 10 // bytes; of longer ones the library's line is taken
	maxTries = 60
)

// Find says on which line of a text, from 1, the mistake is that the library found there,
// and what it is, without the library's own line. 0: it can't be told. err is the library's.
func Find(text string, err error) (line int, message string) {
	said := splitError(err)
	if len(text) > maxText {
		return said.line, said.message
	}
	// With a line before it, the first one has a number as well.
	d := &document{lines: strings.SplitAfter("\n"+normalizeText(text), "\n")}
	f, bad := probeText(d.textUntil(len(d.lines)))
	if !bad {
		return said.line, said.message
	}
	return max(d.findLine(f)-1, 1), f.message
}

// Lines are the lines of a text as the library counts them, without their ends.
func Lines(text string) []string { return strings.Split(normalizeText(text), "\n") }

// normalizeText is a text with one kind of line break, and without a mark of its byte order.
func normalizeText(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(strings.TrimPrefix(text, "\ufeff"))
}

// fault is what the library says of a text.
type fault struct {
	line    int // as it counts; 0: it says none
	message string
	read    int // bytes that it had read by then
}

var saidLine = lazyregexp.New(`^(?:yaml: )?(?:line ([0-9]+): )?`)

func splitError(err error) fault {
	text := err.Error()
	m := saidLine.FindStringSubmatch(text)
	n, _ := strconv.Atoi(m[1]) // 0 where there is none
	return fault{line: n, message: text[len(m[0]):]}
}

// probeText parses a text, with all its documents.
func probeText(text string) (f fault, bad bool) {
	r := &slowReader{text: text}
	defer func() {
		if recover() != nil { // the library's own inconsistency: it says no line
			f, bad = fault{message: "it can't be read", read: r.at}, true
		}
	}()
	for dec := yaml.NewDecoder(r); ; {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return fault{}, false
		}
		if err != nil {
			f := splitError(err)
			f.read = r.at
			return f, true
		}
	}
}

// slowReader gives one byte at a time: how far it was read tells where the library was.
type slowReader struct {
	text string
	at   int
}

// Read implements io.Reader.
func (r *slowReader) Read(p []byte) (int, error) {
	if r.at == len(r.text) || len(p) == 0 {
		return 0, io.EOF
	}
	p[0] = r.text[r.at]
	r.at++
	return 1, nil
}

// document is a text by its lines, which count from 1.
type document struct{ lines []string }

// textUntil is the text up to a line, with it.
func (d *document) textUntil(line int) string { return strings.Join(d.lines[:line], "") }

// lineAt is the line of the last one of the bytes that were read.
func (d *document) lineAt(read int) int {
	return strings.Count(d.textUntil(len(d.lines))[:max(read-1, 0)], "\n") + 1
}

// lineOfText is the line of the last character among them that is no space.
func (d *document) lineOfText(read int) int {
	return strings.Count(strings.TrimRight(d.textUntil(len(d.lines))[:read], " \t\n"), "\n") + 1
}

// findLine is the line of a fault: the one where the library noticed it, or one before, since
// it reads ahead, and takes what follows an open quote or bracket for its content.
func (d *document) findLine(f fault) int {
	line := min(f.line, len(d.lines))
	switch m := f.message; {
	case strings.Contains(m, "end of stream"):
		return line // where the quote was opened
	case strings.Contains(m, "tab character"):
		return d.lineAt(f.read)
	case f.line == 0, strings.Contains(m, "escape"), strings.Contains(m, "hexdecimal"), strings.HasPrefix(m, "did not find"):
		line = d.lineOfText(f.read) // the library's own is where what it was reading began
	}
	if strings.HasPrefix(strings.TrimSpace(d.lines[line-1]), "```") {
		return line // of a page that it was copied from
	}
	for range maxTries {
		if line <= 2 {
			break
		}
		before, bad := probeText(d.textUntil(line - 1))
		switch {
		case !bad:
			return line
		case strings.Contains(before.message, "end of stream"):
			if d.isOutdented(before.line, line) || opensQuote.MatchString(d.lines[line-1]) {
				return before.line
			}
			return line
		case isOpenBracket(before.message):
			return d.inBrackets(line)
		}
		line--
	}
	return line
}

// isOpenBracket tells the complaint about a text that ends within brackets.
func isOpenBracket(message string) bool {
	return strings.Contains(message, "',' or") || strings.Contains(message, "node content")
}

// inBrackets is the line of a mistake within brackets that was noticed on a line: where
// they were opened, if they seem not to be closed; the line before, if that lacks its comma.
func (d *document) inBrackets(line int) int {
	opened := line
	for range maxTries {
		if _, bad := probeText(d.textUntil(opened - 1)); opened <= 2 || !bad {
			break
		}
		opened--
	}
	if d.isOutdented(opened, line) {
		return opened
	}
	before := opened
	for n := opened + 1; n <= line; n++ {
		text := strings.TrimSpace(d.lines[n-1])
		if text == "" {
			continue
		}
		if lacksComma(d.lines[before-1]) && (n == line || keyOfLine.MatchString(text)) {
			return before
		}
		before = n
	}
	return line
}

// lacksComma reports whether something within brackets ends with a line.
func lacksComma(line string) bool {
	text := strings.TrimSpace(line)
	return text != "" && !strings.ContainsAny(text[len(text)-1:], ",[{:")
}

var (
	// keyOfLine is the beginning of a line that is a key.
	keyOfLine = lazyregexp.New(`^(?:[\w$-]+|"[^"]*"|'[^']*'):(?: |$)`)
	// opensQuote is a line whose first quote begins a value: it ends none.
	opensQuote = lazyregexp.New(`^[^"']*[:,\[{-] ?["']`)
)

// isOutdented reports whether a line, or one after that which opened a quote or a bracket, is
// indented no deeper than that one: it is no content of it, unless it closes it.
func (d *document) isOutdented(opened, line int) bool {
	return slices.ContainsFunc(d.lines[opened:line], func(l string) bool {
		body := strings.TrimLeft(l, " \t\n")
		return body != "" && !strings.ContainsAny(body[:1], `]}"'#`) && countIndent(l) <= countIndent(d.lines[opened-1])
	})
}

func countIndent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

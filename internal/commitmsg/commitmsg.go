// Package commitmsg makes the messages of the commits that uwf writes, and takes them
// apart. What agents and strangers wrote stands in them, on branches that a forge shows
// and acts on: nothing in a message mentions anybody, refers to an issue, closes one, or
// passes for a trailer. It is pure.
package commitmsg

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// ErrInvalid: there can be no such message.
var ErrInvalid = errors.New("no commit message")

// Limits of a commit message, in bytes.
const (
	maxSubject = 200
	maxBody    = 4 << 10
	maxTrailer = 1000
)

// bodyIndent stands before every line of the body: no text of an agent can form
// a trailer, or a line that another program takes for its own.
const bodyIndent = "    "

// skipCI keeps CI systems from running on a branch. It has a paragraph of its own:
// within the trailers' it would make git read none of them.
const skipCI = "[skip ci]"

var trailerKey = lazyregexp.New(`^[A-Za-z][A-Za-z0-9-]{0,60}$`)

// Trailer is one "Key: value" line at the end of a message.
type Trailer struct{ Key, Value string }

// Message is a commit's message.
type Message struct {
	Subject, Body string
	Trailers      []Trailer
	SkipCI        bool // CI systems don't run for the commit
}

// Format writes a message: the subject on one line, the first 4 KB of the body,
// indented, and the trailers. Control characters, line breaks where none belong and
// characters that change the direction of text become U+FFFD; all of it is Quiet. The
// error matches ErrInvalid.
func (m Message) Format() (string, error) {
	subject := text.Cut(Line(m.Subject), maxSubject)
	if subject == "" {
		return "", fmt.Errorf("%w: a commit without a subject", ErrInvalid)
	}
	var b strings.Builder
	b.WriteString(subject)
	b.WriteByte('\n')
	if body := text.Cut(Quiet(text.Cut(neutraliseText(m.Body), maxBody)), maxBody); strings.TrimSpace(body) != "" {
		b.WriteByte('\n')
		for line := range strings.SplitSeq(strings.TrimRight(body, " \n"), "\n") {
			if line = strings.TrimRight(line, " "); line != "" {
				b.WriteString(bodyIndent + line)
			}
			b.WriteByte('\n')
		}
	}
	if m.SkipCI {
		b.WriteString("\n" + skipCI + "\n")
	}
	if len(m.Trailers) > 0 {
		b.WriteByte('\n')
	}
	for _, t := range m.Trailers {
		if !trailerKey.MatchString(t.Key) {
			return "", fmt.Errorf("%w: trailer key %.60q", ErrInvalid, t.Key)
		}
		// Git drops a trailer without a value.
		b.WriteString(t.Key + ": " + cmp.Or(text.Cut(Line(t.Value), maxTrailer), "-") + "\n")
	}
	return b.String(), nil
}

// Subject is the subject of a commit about a thread: the beginning of its title, what
// happened, and the thread's short id, by which people tell threads of one title apart.
func Subject(title, what, short string) string {
	if title = text.Line(title); title == "" {
		return what + " · " + short
	}
	return text.Cut(title, maxTitle) + " · " + what + " · " + short
}

// maxTitle bounds the title in a subject, in bytes.
const maxTitle = 50

// Line is text as a subject or a trailer has it: quiet, on one line.
func Line(s string) string { return Quiet(text.Line(s)) }

// Parse takes a commit's message apart, as Format puts it together. It is for showing:
// what stands in a message is a claim, never a fact.
func Parse(text string) (m Message) {
	text = strings.TrimRight(text, "\n")
	subject, rest, _ := strings.Cut(text, "\n")
	m.Subject = subject
	paragraphs := strings.Split(strings.TrimLeft(rest, "\n"), "\n\n")
	last := paragraphs[len(paragraphs)-1]
	if ts, ok := parseTrailers(last); ok {
		m.Trailers = ts
		paragraphs = paragraphs[:len(paragraphs)-1]
	}
	if n := len(paragraphs); n > 0 && paragraphs[n-1] == skipCI {
		paragraphs, m.SkipCI = paragraphs[:n-1], true
	}
	var b strings.Builder
	for line := range strings.SplitSeq(strings.Join(paragraphs, "\n\n"), "\n") {
		b.WriteString(strings.TrimPrefix(line, bodyIndent))
		b.WriteByte('\n')
	}
	m.Body = strings.Trim(b.String(), "\n")
	return m
}

func parseTrailers(paragraph string) ([]Trailer, bool) {
	var out []Trailer
	for line := range strings.SplitSeq(paragraph, "\n") {
		key, val, ok := strings.Cut(line, ": ")
		if !ok || !trailerKey.MatchString(key) {
			return nil, false
		}
		out = append(out, Trailer{key, val})
	}
	return out, true
}

// neutraliseText makes text harmless where it is shown: line breaks stay, tabs as spaces.
func neutraliseText(s string) string { return strings.ReplaceAll(text.Lines(s), "\t", "    ") }

// Quiet makes text mean nothing to a forge: GitHub and Gitea notify whom a commit's
// message mentions, note in every issue that it names where it was named, and close what
// comes after a keyword, code or not; and CI systems run nothing for a commit with [skip
// ci] or the like anywhere in its message. The characters for that are exchanged for others
// that look like them, and the addresses of issues lose what makes them links.
func Quiet(s string) string {
	if !strings.ContainsAny(s, "@#!:-[*") {
		return s
	}
	s = skipWord.ReplaceAllString(s, "［$1]")
	s = azureSkip.ReplaceAllString(s, "***$1 $2***")
	s = skipChecks.ReplaceAllString(s, "$1\u2011$2")
	s = mention.ReplaceAllString(s, "${1}＠$2")
	s = issueNumber.ReplaceAllString(s, "＃$1")
	s = requestNumber.ReplaceAllString(s, "！$1")
	s = shortForm.ReplaceAllString(s, "${1}\u2011$2")
	return linked.ReplaceAllStringFunc(s, func(m string) string {
		for scheme.MatchString(m) && issueAddress.MatchString(m) {
			m = scheme.ReplaceAllString(m, "")
		}
		return m
	})
}

var (
	skipWord      = lazyregexp.New(`(?i)\[([^\[\]\n]{0,30}\b(?:skip|no[ _-]*ci)\b[^\[\]\n]{0,30})\]`)
	azureSkip     = lazyregexp.New(`(?i)\*\*\*(NO)_(CI)\*\*\*`)
	skipChecks    = lazyregexp.New(`(?i)\b(skip)-(checks)\b`)
	mention       = lazyregexp.New(`(^|[^A-Za-z0-9])@([A-Za-z0-9])`)
	issueNumber   = lazyregexp.New(`#(\d)`)
	requestNumber = lazyregexp.New(`!(\d)`)
	shortForm     = lazyregexp.New(`(?i)\b(gh)-(\d)`)
	linked        = lazyregexp.New(`(?i)\S*https?://\S*`)
	scheme        = lazyregexp.New(`(?i)https?://`)
	issueAddress  = lazyregexp.New(`(?i)/(?:issues|pulls?|discussions|commits?)/[0-9a-f]`)
)

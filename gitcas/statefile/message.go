package statefile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// Limits of a commit message, in bytes.
const (
	maxSubject = 200
	maxBody    = 4 << 10
	maxTrailer = 1000
)

// bodyIndent stands before every line of the body: no text of an agent can form
// a trailer, or a line that another program takes for its own.
const bodyIndent = "    "

// skipCI keeps CI systems from running on the state branch. It has a paragraph
// of its own: within the trailers' it would make git read none of them.
const skipCI = "[skip ci]"

var trailerKey = lazyregexp.New(`^[A-Za-z][A-Za-z0-9-]{0,60}$`)

// Message makes the message of a state commit: the subject on one line, the first
// 4 KB of the body, indented, and the trailers. Control characters, line breaks
// where none belong and characters that change the direction of text become
// U+FFFD. The error matches ErrUnstorable.
func Message(subject, body string, trailers []Trailer) (string, error) {
	subject = cut(oneLine(subject), maxSubject)
	if subject == "" {
		return "", fmt.Errorf("%w: a commit without a subject", ErrUnstorable)
	}
	var b strings.Builder
	b.WriteString(subject)
	b.WriteByte('\n')
	if body = strings.TrimRight(cut(neutral(body), maxBody), " \n"); strings.TrimSpace(body) != "" {
		b.WriteByte('\n')
		for line := range strings.SplitSeq(body, "\n") {
			if line = strings.TrimRight(line, " "); line != "" {
				b.WriteString(bodyIndent + line)
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString("\n" + skipCI + "\n")
	if len(trailers) > 0 {
		b.WriteByte('\n')
	}
	for _, t := range trailers {
		val := cut(oneLine(t.Value), maxTrailer)
		if !trailerKey.MatchString(t.Key) {
			return "", fmt.Errorf("%w: trailer key %.60q", ErrUnstorable, t.Key)
		}
		if val == "" {
			val = "-" // git drops a trailer without a value
		}
		b.WriteString(t.Key + ": " + val + "\n")
	}
	return b.String(), nil
}

// ParseMessage takes a commit message apart, as Message puts it together. It is
// for showing: what stands in a message is a claim, never a fact.
func ParseMessage(msg string) (subject, body string, trailers []Trailer) {
	msg = strings.TrimRight(msg, "\n")
	subject, rest, _ := strings.Cut(msg, "\n")
	paragraphs := strings.Split(strings.TrimLeft(rest, "\n"), "\n\n")
	last := paragraphs[len(paragraphs)-1]
	if ts, ok := parseTrailers(last); ok {
		trailers = ts
		paragraphs = paragraphs[:len(paragraphs)-1]
	}
	if n := len(paragraphs); n > 0 && paragraphs[n-1] == skipCI {
		paragraphs = paragraphs[:n-1]
	}
	var b strings.Builder
	for line := range strings.SplitSeq(strings.Join(paragraphs, "\n\n"), "\n") {
		b.WriteString(strings.TrimPrefix(line, bodyIndent))
		b.WriteByte('\n')
	}
	return subject, strings.Trim(b.String(), "\n"), trailers
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

// neutral makes text harmless where it is shown: line breaks and tabs stay, tabs
// as spaces.
func neutral(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\t", "    ").Replace(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r == '\n' || !dangerous(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// dangerous reports whether r moves a cursor, ends a line or turns the direction
// of text around.
func dangerous(r rune) bool {
	return unicode.Is(unicode.Cc, r) || r == 0x2028 || r == 0x2029 || r == 0x061c || r == 0x200e || r == 0x200f ||
		r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(neutral(s)), " ")
}

// cut shortens s to at most n bytes, at the boundary of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}

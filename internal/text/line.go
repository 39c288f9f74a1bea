package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsUnsafe reports whether a character does something where it is shown instead of being
// seen: it moves a cursor or begins an escape (the controls C0, DEL and C1, among them line
// break and tab), ends a line (U+2028, U+2029), turns the direction of text around
// (Unicode's Bidi_Control) or is a byte order mark. Who shows text that others wrote asks
// nobody else.
func IsUnsafe(r rune) bool {
	switch {
	case r < ' ':
		return true
	case r < 0x7f:
		return false
	}
	return r <= 0x9f || r == 0x2028 || r == 0x2029 || r == 0xfeff || unicode.Is(unicode.Bidi_Control, r)
}

// IsLine reports whether s can be shown on one line as it is: it is UTF-8 and has no
// unsafe characters.
func IsLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, IsUnsafe)
}

// Lines makes s safe to show: unsafe characters and bytes that are no UTF-8 become U+FFFD.
// Line breaks and tabs stay, and every line ends with "\n" alone.
func Lines(s string) string {
	if strings.ContainsRune(s, '\r') {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && IsUnsafe(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// Line makes s safe to show on one line: as Lines, and white space of any kind and length
// becomes one blank.
func Line(s string) string { return strings.Join(strings.Fields(Lines(s)), " ") }

// maxHeading is the most that OneLine leaves, in bytes.
const maxHeading = 200

// OneLine makes text fit for a heading or a trailer: on one line, of at most 200 bytes.
func OneLine(s string) string { return Cut(Line(s), maxHeading) }

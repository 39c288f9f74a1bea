package sanitize

import (
	"strings"
	"unicode"
)

// dropInvisible takes out characters that nobody sees: controls but for tabs and line
// ends, marks of direction, what has no width, tags and variation selectors. Kept is
// what changes how a visible character looks: the joiners and the selector of emoji,
// and joiners within words of scripts that are written with them.
func dropInvisible(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsFunc(s, isSuspicious) {
		return s
	}
	rs := []rune(s)
	var b strings.Builder
	b.Grow(len(s))
	prev := rune(-1)
	for i, r := range rs {
		next := rune(-1)
		if i+1 < len(rs) {
			next = rs[i+1]
		}
		switch {
		case r == '\u2028' || r == '\u2029':
			r = '\n'
		case isSuspicious(r) && !isWanted(prev, r, next):
			continue
		}
		b.WriteRune(r)
		prev = r
	}
	return b.String()
}

// isSuspicious reports whether a character may have to go.
func isSuspicious(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || r >= ' ' && r < 0x7f:
		return false
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case unicode.Is(unicode.Cf, r):
		return !unicode.Is(unicode.Prepended_Concatenation_Mark, r) // those of Arabic are seen
	case unicode.Is(unicode.Variation_Selector, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	case r >= 0xE0000 && r <= 0xE0FFF, r >= 0xFFF0 && r <= 0xFFF8, r&0xFFFE == 0xFFFE, r >= 0xFDD0 && r <= 0xFDEF:
		return true
	}
	return false
}

// isWanted reports whether a suspicious character belongs to what stands beside it.
func isWanted(prev, r, next rune) bool {
	switch r {
	case '\uFE0E', '\uFE0F':
		return isEmoji(prev) || prev == '#' || prev == '*' || prev >= '0' && prev <= '9'
	case '\u200D':
		return (isEmoji(prev) || prev == '\uFE0F') && isEmoji(next) || takesJoiners(prev) && takesJoiners(next)
	case '\u200C':
		return takesJoiners(prev) && takesJoiners(next)
	}
	return false
}

// isEmoji reports whether a character is a pictograph, or a colour of skin or hair.
func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) && r != '\u2800' || r >= 0x1F3FB && r <= 0x1F3FF || r == '\u203C' || r == '\u2049' || r >= '\u2190' && r <= '\u21FF'
}

// takesJoiners reports whether a character is of a script that is written with joiners.
func takesJoiners(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsMark(r)) && unicode.In(r,
		unicode.Arabic, unicode.Syriac, unicode.Nko, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati,
		unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala)
}

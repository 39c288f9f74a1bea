package ignore

import "strings"

// retry is where matching goes on when it has failed: after a star that takes more.
type retry struct {
	there         bool
	pattern, text int
}

// matchWild is git's wildmatch(3) with WM_PATHNAME: a star and a question mark
// stop at slashes, ** between slashes does not. It says how many steps it took, one for each
// byte of the pattern that it looked at, and gives up soon after so many as are left.
//
// Only the last star is tried with more text, and the last **: whatever an earlier one
// could take instead, the later one can as well. So it takes no more steps than the
// pattern's length times the text's.
func matchWild(pattern, text string, left int64) (ok bool, steps int64) {
	var star, deep retry
	p, t := 0, 0
	for steps = 1; steps <= left; {
		n := 0
		for byteAt(pattern, p+n) == '*' {
			n++
		}
		if n > 0 {
			whole := n > 1 && (p == 0 || pattern[p-1] == '/') // as far as what is before it goes
			p, steps = p+n, steps+int64(n)
			switch {
			case whole && p == len(pattern):
				return true, steps
			case whole && pattern[p] == '/': // it also stands for no folder at all
				p++
				star, deep = retry{}, retry{true, p, t}
			default:
				star = retry{true, p, t}
			}
			continue
		}
		if t == len(text) {
			return p == len(pattern), steps
		}
		n, ok := matchOne(pattern[p:], text[t])
		steps += int64(n)
		switch {
		case ok:
			p, t = p+n, t+1
		case star.there && text[star.text] != '/':
			star.text++
			p, t = star.pattern, star.text
		case deep.there:
			next := strings.IndexByte(text[deep.text:], '/')
			if next < 0 {
				return false, steps
			}
			deep.text += next + 1
			star, p, t = retry{}, deep.pattern, deep.text
		default:
			return false, steps
		}
	}
	return false, steps
}

// matchOne matches one byte with what stands first in a pattern, which is no star. It
// returns the length of that.
func matchOne(pattern string, c byte) (n int, ok bool) {
	switch byteAt(pattern, 0) {
	case 0:
		return 1, false
	case '?':
		return 1, c != '/'
	case '[':
		n, ok = matchSet(pattern, c)
		return n, ok && c != '/'
	}
	literal, n := readByte(pattern, 0)
	return n, literal == c && c != 0
}

// byteAt is the byte of s at i, 0 past its end: neither a pattern nor a path holds
// a NUL.
func byteAt(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// readByte is the byte that a pattern means at i, and where the next one is. A backslash
// at the end stands for nothing that a path could hold.
func readByte(pattern string, i int) (c byte, next int) {
	if byteAt(pattern, i) == '\\' {
		i++
	}
	return byteAt(pattern, i), i + 1
}

// matchSet matches c against the bracket expression that a pattern begins with. It returns
// where that ends; one that doesn't end matches nothing.
func matchSet(pattern string, c byte) (end int, matched bool) {
	p, closing := 1, 0 // closing: the bracket that may end a class, searched for once
	negated := byteAt(pattern, p) == '!' || byteAt(pattern, p) == '^'
	if negated {
		p++
	}
	for first := true; first || byteAt(pattern, p) != ']'; first = false {
		if byteAt(pattern, p) == '[' && byteAt(pattern, p+1) == ':' {
			if closing < p+2 {
				n := strings.IndexByte(pattern[p+2:], ']')
				if n < 0 {
					return len(pattern), false
				}
				closing = p + 2 + n
			}
			if name, ok := strings.CutSuffix(pattern[p+2:closing], ":"); ok {
				ranges := classRanges(name)
				if ranges == "" {
					return len(pattern), false
				}
				matched = matched || inRanges(ranges, c)
				p = closing + 1
				continue
			} // else it is a set that holds a bracket
		}
		low, next := readByte(pattern, p)
		high := low
		if after := byteAt(pattern, next+1); byteAt(pattern, next) == '-' && after != 0 && after != ']' {
			high, next = readByte(pattern, next+1)
		}
		if low == 0 || high == 0 {
			return len(pattern), false
		}
		matched = matched || low == c || low <= c && c <= high
		p = next
	}
	return p + 1, matched != negated
}

// classRanges are first and last byte of each range of a class of POSIX; empty: there is
// no such class.
func classRanges(name string) string {
	for _, class := range [...]struct{ name, ranges string }{
		{"alnum", "09AZaz"},
		{"alpha", "AZaz"},
		{"blank", "\t\t  "},
		{"cntrl", "\x00\x1f\x7f\x7f"},
		{"digit", "09"},
		{"graph", "!~"},
		{"lower", "az"},
		{"print", " ~"},
		{"punct", "!/:@[`{~"},
		{"space", "\t\r  "},
		{"upper", "AZ"},
		{"xdigit", "09AFaf"},
	} {
		if class.name == name {
			return class.ranges
		}
	}
	return ""
}

func inRanges(ranges string, c byte) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] <= c && c <= ranges[i+1] {
			return true
		}
	}
	return false
}

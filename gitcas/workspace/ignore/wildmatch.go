package ignore

import "strings"

// maxSteps bounds the work for one pattern and one path: patterns with many
// stars could take exponential time. A pattern that needs more matches nothing.
const maxSteps = 100_000

type verdict int

const (
	noMatch verdict = iota
	match
	// abort: the text ended, so that no other place for an outer star helps.
	abort
	// abortToStarStar: a slash was met, so that only a ** further out helps.
	abortToStarStar
)

// wildmatch is git's wildmatch(3) with WM_PATHNAME: a star and a question mark
// stop at slashes, ** between slashes does not.
func wildmatch(pattern, text string) bool {
	m := matcher{pattern: pattern, text: text, steps: maxSteps}
	return m.run(0, 0) == match
}

type matcher struct {
	pattern, text string
	steps         int
}

// at is the byte of s at i, 0 past its end: neither a pattern nor a path holds
// a NUL.
func at(s string, i int) byte {
	if i < len(s) && i >= 0 {
		return s[i]
	}
	return 0
}

func (m *matcher) run(p, t int) verdict {
	for ; p < len(m.pattern); p, t = p+1, t+1 {
		if m.steps--; m.steps < 0 {
			return abort
		}
		c := m.pattern[p]
		if t >= len(m.text) && c != '*' {
			return abort
		}
		switch c {
		case '*':
			return m.star(p, t)
		case '?':
			if m.text[t] == '/' {
				return noMatch
			}
		case '[':
			end, ok := m.class(p, m.text[t])
			if end < 0 {
				return abort
			}
			if !ok || m.text[t] == '/' {
				return noMatch
			}
			p = end
		case '\\':
			// A backslash at the end stands for nothing that a path could hold.
			p++
			if at(m.pattern, p) != m.text[t] {
				return noMatch
			}
		default:
			if c != m.text[t] {
				return noMatch
			}
		}
	}
	if t < len(m.text) {
		return noMatch
	}
	return match
}

// star matches from a star in the pattern on.
func (m *matcher) star(p, t int) verdict {
	slashes := false // the star takes slashes too
	if at(m.pattern, p+1) == '*' {
		before := p
		for at(m.pattern, p+1) == '*' {
			p++
		}
		next := at(m.pattern, p+1)
		escaped := next == '\\' && at(m.pattern, p+2) == '/'
		if (before == 0 || m.pattern[before-1] == '/') && (p+1 == len(m.pattern) || next == '/' || escaped) {
			// "**/" also stands for no folder at all.
			if next == '/' && m.run(p+2, t) == match {
				return match
			}
			slashes = true
		}
	}
	p++
	if p == len(m.pattern) {
		if !slashes && strings.IndexByte(m.text[t:], '/') >= 0 {
			return abortToStarStar
		}
		return match
	}
	if !slashes && m.pattern[p] == '/' {
		// One star, then a slash: it takes the whole part of the path.
		n := strings.IndexByte(m.text[t:], '/')
		if n < 0 {
			return abort
		}
		return m.run(p+1, t+n+1)
	}
	return m.try(p, t, slashes)
}

// try lets a star take 0, 1, 2 … bytes until the rest of the pattern matches.
func (m *matcher) try(p, t int, slashes bool) verdict {
	for ; t < len(m.text); t++ {
		if m.steps--; m.steps < 0 {
			return abort
		}
		v := m.run(p, t)
		if v != noMatch && (!slashes || v != abortToStarStar) {
			return v
		}
		if v == noMatch && !slashes && m.text[t] == '/' {
			return abortToStarStar
		}
	}
	return abort
}

// class matches c against the bracket expression that begins at p. It returns
// where the expression ends, -1 when it doesn't.
func (m *matcher) class(p int, c byte) (end int, matched bool) {
	p++
	negated := at(m.pattern, p) == '!' || at(m.pattern, p) == '^'
	if negated {
		p++
	}
	var prev byte
	for first := true; first || at(m.pattern, p) != ']'; first = false {
		ch := at(m.pattern, p)
		m.steps--
		switch {
		case ch == 0 || m.steps < 0:
			return -1, false
		case ch == '\\':
			p++
			if ch = at(m.pattern, p); ch == 0 {
				return -1, false
			}
			matched = matched || ch == c
		case ch == '-' && prev != 0 && at(m.pattern, p+1) != 0 && at(m.pattern, p+1) != ']':
			p++
			hi := m.pattern[p]
			if hi == '\\' {
				p++
				if hi = at(m.pattern, p); hi == 0 {
					return -1, false
				}
			}
			matched = matched || prev <= c && c <= hi
			ch = 0 // what follows a range begins no range
		case ch == '[' && at(m.pattern, p+1) == ':':
			n := strings.IndexByte(m.pattern[p+2:], ']')
			if n < 0 {
				return -1, false
			}
			if n == 0 || m.pattern[p+2+n-1] != ':' {
				// No ":]": it is a set that holds a bracket.
				matched = matched || c == '['
				break
			}
			in, known := posixClass(m.pattern[p+2:p+2+n-1], c)
			if !known {
				return -1, false
			}
			matched = matched || in
			p += 2 + n
			ch = 0
		default:
			matched = matched || ch == c
		}
		prev = ch
		p++
	}
	return p, matched != negated
}

// posixClass reports whether c is in the class, and whether there is such a one.
func posixClass(name string, c byte) (in, known bool) {
	lower, upper, digit := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9'
	graph := c > ' ' && c < 0x7f
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || c >= '\t' && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F', true
	}
	return false, false
}

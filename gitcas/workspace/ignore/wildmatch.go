package ignore

import "strings"

type verdict uint8

const (
	unknown verdict = iota
	noMatch
	match
	// abort: the text ended, so that no other place for an outer star helps.
	abort
	// abortToStarStar: a slash was met, so that only a ** further out helps.
	abortToStarStar
)

// matchWild is git's wildmatch(3) with WM_PATHNAME: a star and a question mark
// stop at slashes, ** between slashes does not. It says how many steps it took, and
// gives up, without a match, after one more than left.
func matchWild(pattern, text string, left int64) (ok bool, steps int64) {
	// Nearly every comparison is over after a few steps. Where several stars try
	// each other's places again and again, what they found is written down.
	m := matcher{pattern: pattern, text: text, left: min(left, fewSteps)}
	v := m.matchFrom(0, 0)
	if m.steps <= m.left || m.left == left {
		return v == match && m.steps <= m.left, m.steps
	}
	again := matcher{pattern: pattern, text: text, left: left - m.steps}
	again.writeDown()
	v = again.matchFrom(0, 0)
	return v == match && again.steps <= again.left, m.steps + again.steps
}

const fewSteps = 2_000

type matcher struct {
	pattern, text string
	left, steps   int64
	// stars and tries are the verdicts of star and try, for each star of the pattern
	// and each place in the text; nil: they are not written down.
	stars, tries []verdict
	number       []int // of stars before a place in the pattern
}

// writeDown has each star try each place only once.
func (m *matcher) writeDown() {
	m.number = make([]int, len(m.pattern)+1)
	for i := range m.pattern {
		m.number[i+1] = m.number[i]
		if m.pattern[i] == '*' {
			m.number[i+1]++
		}
	}
	size := m.number[len(m.pattern)] * (len(m.text) + 1)
	if m.steps += int64(size / 8); m.steps <= m.left { // clearing memory takes time, too
		m.stars, m.tries = make([]verdict, size), make([]verdict, size)
	}
}

// verdictAt is where the verdict of a star at a place in the text is written down.
func (m *matcher) verdictAt(star, t int) int { return star*(len(m.text)+1) + t }

// spendStep counts a step, and says whether it was one too many.
func (m *matcher) spendStep() bool {
	m.steps++
	return m.steps > m.left
}

// byteAt is the byte of s at i, 0 past its end: neither a pattern nor a path holds
// a NUL.
func byteAt(s string, i int) byte {
	if i < len(s) && i >= 0 {
		return s[i]
	}
	return 0
}

func (m *matcher) matchFrom(p, t int) verdict {
	for ; p < len(m.pattern); p, t = p+1, t+1 {
		if m.spendStep() {
			return abort
		}
		c := m.pattern[p]
		if t >= len(m.text) && c != '*' {
			return abort
		}
		switch c {
		case '*':
			return m.starAt(p, t)
		case '?':
			if m.text[t] == '/' {
				return noMatch
			}
		case '[':
			end, ok := m.matchClass(p, m.text[t])
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
			if byteAt(m.pattern, p) != m.text[t] {
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

// starAt is star, each place once.
func (m *matcher) starAt(p, t int) verdict {
	if m.stars == nil {
		return m.matchStar(p, t)
	}
	known := &m.stars[m.verdictAt(m.number[p], t)]
	if *known == unknown {
		*known = m.matchStar(p, t)
	}
	return *known
}

// matchStar matches from a star in the pattern on.
func (m *matcher) matchStar(p, t int) verdict {
	slashes := false // the star takes slashes too
	if byteAt(m.pattern, p+1) == '*' {
		before := p
		for byteAt(m.pattern, p+1) == '*' {
			p++
		}
		next := byteAt(m.pattern, p+1)
		escaped := next == '\\' && byteAt(m.pattern, p+2) == '/'
		if (before == 0 || m.pattern[before-1] == '/') && (p+1 == len(m.pattern) || next == '/' || escaped) {
			// "**/" also stands for no folder at all.
			if next == '/' && m.matchFrom(p+2, t) == match {
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
		return m.matchFrom(p+1, t+n+1)
	}
	return m.tryStar(p, t, slashes)
}

// tryStar lets a star take 0, 1, 2 … bytes until the rest of the pattern matches.
func (m *matcher) tryStar(p, t int, slashes bool) verdict {
	v, from := abort, t
	for ; t < len(m.text); t++ {
		if m.spendStep() {
			return abort
		}
		if m.tries != nil {
			if known := m.tries[m.verdictAt(m.number[p]-1, t)]; known != unknown {
				v = known
				break
			}
		}
		if v = m.matchFrom(p, t); v != noMatch && (!slashes || v != abortToStarStar) {
			break
		}
		if v == noMatch && !slashes && m.text[t] == '/' {
			v = abortToStarStar
			break
		}
		v = abort
	}
	// Whoever begins at one of these places comes to the same end.
	for ; m.tries != nil && from <= t; from++ {
		m.tries[m.verdictAt(m.number[p]-1, from)] = v
	}
	return v
}

// matchClass matches c against the bracket expression that begins at p. It returns
// where the expression ends, -1 when it doesn't.
func (m *matcher) matchClass(p int, c byte) (end int, matched bool) {
	p++
	negated := byteAt(m.pattern, p) == '!' || byteAt(m.pattern, p) == '^'
	if negated {
		p++
	}
	var prev byte
	for first := true; first || byteAt(m.pattern, p) != ']'; first = false {
		ch := byteAt(m.pattern, p)
		switch {
		case ch == 0 || m.spendStep():
			return -1, false
		case ch == '\\':
			p++
			if ch = byteAt(m.pattern, p); ch == 0 {
				return -1, false
			}
			matched = matched || ch == c
		case ch == '-' && prev != 0 && byteAt(m.pattern, p+1) != 0 && byteAt(m.pattern, p+1) != ']':
			p++
			hi := m.pattern[p]
			if hi == '\\' {
				p++
				if hi = byteAt(m.pattern, p); hi == 0 {
					return -1, false
				}
			}
			matched = matched || prev <= c && c <= hi
			ch = 0 // what follows a range begins no range
		case ch == '[' && byteAt(m.pattern, p+1) == ':':
			n := strings.IndexByte(m.pattern[p+2:], ']')
			if n < 0 {
				return -1, false
			}
			m.steps += int64(n / 8) // it was searched
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

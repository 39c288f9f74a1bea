package literal

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// walk compares one literal with a text in which more than the literal stands: line
// breaks, and what is around them. It goes on wherever the literal may go on, and so
// needs no copy of the text without them.
type walk struct {
	b, text []byte
	// open is how many bytes of the literal there are where b ends before it is
	// certain that the literal does not stand there; 0: it is certain.
	open int
	gaps int // that were looked at
	most int // of them
}

// newWalk begins to compare a literal. One may have a break after each two of its bytes.
func (s *scan) newWalk(l *Literal) walk {
	return walk{b: s.b, text: l.Text, most: min(len(l.Text)/2+64, s.gaps)}
}

// matchPlain returns the end of the literal's bytes from j on in b from i on; -1: they do
// not stand there.
func (w *walk) matchPlain(i, j int) int {
	same := commonPrefix(w.b[i:], w.text[j:])
	i, j = i+same, j+same
	if j == len(w.text) {
		return i
	}
	end := w.matchOverBreak(i, j)
	if end < 0 && same > 0 && (isOperator(w.b[i-1]) || isQuote(w.b[i-1])) {
		end = w.matchOverBreak(i-1, j-1) // what looked like the literal belonged to the break
	}
	return end
}

// matchOverBreak is plain where a line break begins at b[i].
func (w *walk) matchOverBreak(i, j int) int {
	if w.gaps >= w.most {
		return -1
	}
	g := lineGap(w.b, i)
	if g.open {
		w.open = max(w.open, j)
	}
	if g.n > 0 {
		w.gaps++
	}
	// The break may stand in the place of spaces, or have taken them up.
	after := skipBlank(w.text, j)
	for _, to := range g.targetPlaces() {
		if after == len(w.text) {
			return to
		}
		for _, n := range [...]int{j, after} {
			if to < len(w.b) && w.b[to] == w.text[n] {
				if end := w.matchPlain(to, n); end >= 0 {
					return end
				}
			}
			if after == j {
				break
			}
		}
	}
	return -1
}

// commonPrefix is how many bytes a and b begin with alike.
func commonPrefix(a, b []byte) int {
	const block = 256
	most, n := min(len(a), len(b)), 0
	for n+block <= most && bytes.Equal(a[n:n+block], b[n:n+block]) {
		n += block
	}
	for ; n+8 <= most; n += 8 {
		if diff := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); diff != 0 {
			return n + bits.TrailingZeros64(diff)/8
		}
	}
	for n < most && a[n] == b[n] {
		n++
	}
	return n
}

// Next is where a text goes on after b[:i]: there, or after a line break; open: b ends
// before that is certain.
func Next(b []byte, i int) (next int, open bool) {
	g := lineGap(b, i)
	if g.n > 0 {
		return g.to[0], g.open
	}
	return i, g.open
}

// gap is where a text may go on after something that is not part of it.
type gap struct {
	to   [maxTargets]int
	n    int
	open bool // b ends in it
}

// maxTargets bounds the places where a text may go on after one gap.
const maxTargets = 32

func (g *gap) targetPlaces() []int { return g.to[:g.n] }

// addPlace takes a place, if there is room for it and it is another one than the last.
func (g *gap) addPlace(b []byte, at int) {
	g.open = g.open || at >= len(b)
	if at <= len(b) && g.n < maxTargets && (g.n == 0 || g.to[g.n-1] != at) {
		g.to[g.n] = at
		g.n++
	}
}

// maxBlank bounds white space in a gap, in bytes.
const maxBlank = 256

// lineGap is the line break that begins at b[i], in each of the ways to read what is
// around it: white space; the soft break of quoted-printable (=); a line of a shell or
// a program that goes on (\); a string that is closed and opened again, with an
// operator between; the marks of quoted mail, diffs and comments before the next line.
func lineGap(b []byte, i int) (g gap) {
	p := i
	quoted := p < len(b) && isQuote(b[p])
	if quoted {
		p++
	}
	p = skipBlank(b, p)
	if p < len(b) && (b[p] == '\\' || b[p] == '=' || quoted && isOperator(b[p])) {
		p++
		for quoted && p < len(b) && isOperator(b[p]) {
			p++
		}
		p = skipBlank(b, p)
	}
	switch {
	case p == len(b):
		g.open = true
		return g
	case b[p] != '\n' && b[p] != '\r':
		return g
	}
	g.addLine(b, p)
	return g
}

// addLine adds where a text may go on in the line after the break at b[p].
func (g *gap) addLine(b []byte, p int) {
	p = skipSpace(b, p)
	g.addPlace(b, p)
	for range maxMarks {
		if p < len(b) && isQuote(b[p]) {
			g.addPlace(b, p+1)
		}
		n := markLength(b[p:])
		if n == 0 {
			g.open = g.open || p+1 == len(b) && b[p] == '/'
			return
		}
		g.addPlace(b, p+1) // the mark of a diff before a value that begins with it
		g.addPlace(b, p+n)
		p = skipBlank(b, p+n)
		g.addPlace(b, p)
	}
}

// maxMarks is how many marks may stand before a line: a diff of a quotation.
const maxMarks = 5

// markLength is the length of a mark at the beginning of a line: > | + - # ; * // -- and
// operators before a string that goes on.
func markLength(b []byte) int {
	switch {
	case len(b) == 0:
		return 0
	case len(b) > 1 && (b[0] == '/' || b[0] == '-') && b[1] == b[0]:
		return 2
	case b[0] == '>' || b[0] == '|' || b[0] == '+' || b[0] == '-' || b[0] == '#' || b[0] == ';' || b[0] == '*' || b[0] == '.' || b[0] == '&':
		return 1
	}
	return 0
}

// breakStarts are the places at and before the line break at b[i] where what belongs to it
// may begin: white space, an operator, white space, a quote.
func breakStarts(b []byte, i int) (at [7]int, n int) {
	at[0], n = i, 1
	for range 2 {
		p := i
		for i > 0 && p-i < maxBlank && isBlank(b[i-1]) {
			i--
		}
		if i+1 < p {
			at[n], n = i+1, n+1 // the first space may be the literal's
		}
		if i != p {
			at[n], n = i, n+1
		}
		if i > 0 && (isOperator(b[i-1]) || isQuote(b[i-1])) {
			i--
			at[n], n = i, n+1
		}
	}
	return at, n
}

// skipBlank is the first byte from b[p] on that is no space.
func skipBlank(b []byte, p int) int {
	for end := min(len(b), p+maxBlank); p < end && isBlank(b[p]); {
		p++
	}
	return p
}

// skipSpace is skipBlank over lines.
func skipSpace(b []byte, p int) int {
	for end := min(len(b), p+maxBlank); p < end && (isBlank(b[p]) || b[p] == '\n'); {
		p++
	}
	return p
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }
func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }
func isOperator(c byte) bool {
	return c == '+' || c == '.' || c == '&' || c == ',' || c == '\\' || c == '='
}

package literal

import "bytes"

// Bytes in hexadecimal are found in the ways in which programs show them: pairs of
// digits with nothing, a separator or 0x between them; and the dumps of xxd, hexdump
// and od, in which every line has an offset before the pairs and may have the
// characters behind them.

// leastApart is how many digits a literal needs to be looked for with something between
// its pairs, where all of them are decimal: numbers from 30 to 79 stand beside each
// other in many tables.
const leastApart = 24

// isApart says whether a literal is looked for with something between its pairs.
func isApart(digits []byte) bool {
	return len(digits) >= leastApart || bytes.ContainsAny(digits, "abcdef")
}

// separators may stand behind a pair of digits.
const separators = " \t\r\n:;,.-_|/\\\"'%=+xh)]}"

// hexKeys are the bytes that a literal in hexadecimal may begin with.
func hexKeys(digits []byte) [][]byte {
	var out [][]byte
	third := digitCases(digits[2])
	if isApart(digits) {
		third = append(third, separators...)
	}
	for _, a := range digitCases(digits[0]) {
		for _, b := range digitCases(digits[1]) {
			for i, c := range third {
				if bytes.IndexByte(third[:i], c) < 0 {
					out = append(out, []byte{a, b, c})
				}
			}
		}
	}
	return out
}

// digitCases are a digit in small and in capital letters.
func digitCases(c byte) []byte {
	if c >= 'a' && c <= 'f' {
		return []byte{c, c - 'a' + 'A'}
	}
	return []byte{c}
}

// matchHex is plain for pairs of hexadecimal digits.
func (w *walk) matchHex(i, j int) int {
	for j < len(w.text) && i+2 <= len(w.b) && sameDigit(w.b[i], w.text[j]) && sameDigit(w.b[i+1], w.text[j+1]) {
		i, j = i+2, j+2
	}
	if j == len(w.text) {
		return i
	}
	w.noteOpenEnd(i, j)
	if w.gaps >= w.most {
		return -1
	}
	w.gaps++
	g := w.hexGap(i)
	if g.open {
		w.open = max(w.open, j)
	}
	for _, to := range g.targetPlaces() {
		w.noteOpenEnd(to, j)
		if to+2 <= len(w.b) && sameDigit(w.b[to], w.text[j]) && sameDigit(w.b[to+1], w.text[j+1]) {
			if end := w.matchHex(to, j); end >= 0 {
				return end
			}
		}
	}
	return -1
}

// noteOpenEnd notes that what is searched ends before, or within, the pair at i, which would
// be the one at j of the literal: the literal may go on there.
func (w *walk) noteOpenEnd(i, j int) {
	if i >= len(w.b) || i+1 == len(w.b) && sameDigit(w.b[i], w.text[j]) {
		w.open = max(w.open, j+len(w.b)-min(i, len(w.b)))
	}
}

func sameDigit(c, digit byte) bool {
	return c == digit || c >= 'A' && c <= 'F' && c-'A'+'a' == digit
}

// maxBetween is how many bytes may stand between two pairs of one line, before 0x.
const maxBetween = 4

// hexGap is what stands between the pair before b[i] and the next one.
func (w *walk) hexGap(i int) (g gap) {
	if !isApart(w.text) {
		if len(w.text) >= minBroken {
			g = lineGap(w.b, i)
		}
		return g
	}
	p := i
	for p < len(w.b) && p-i < maxBetween && isBetween(w.b[p]) {
		p++
	}
	if p > i {
		g.addPlace(w.b, p)
	}
	g.addPrefixed(w.b, p)
	switch end, ends := lineEnd(w.b, i); {
	case ends && end == len(w.b):
		g.open = true
	case ends:
		g.addDump(w.b, end)
	}
	return g
}

// addPrefixed adds the place behind what may stand before a pair: 0x, \x, x, % or =.
func (g *gap) addPrefixed(b []byte, p int) {
	switch {
	case p >= len(b):
		return
	case b[p] == 'x' || b[p] == 'X' || b[p] == '%' || b[p] == '=':
		g.addPlace(b, p+1)
	case (b[p] == '0' || b[p] == '\\') && p+1 == len(b):
		g.open = true
	case (b[p] == '0' || b[p] == '\\') && (b[p+1] == 'x' || b[p+1] == 'X'):
		g.addPlace(b, p+2)
	}
}

// maxGutter bounds what stands behind the pairs of a line, in bytes.
const maxGutter = 256

// lineEnd is where the line ends (len(b): b ends before that), if behind the pair before
// b[i] it has no other pair: only separators, or the characters that its pairs stand for.
func lineEnd(b []byte, i int) (end int, ends bool) {
	p := i
	for p < len(b) && p-i < 2*maxBetween && isBetween(b[p]) {
		p++
	}
	if p < len(b) && !isBreak(b[p]) && !isGutter(b, i) {
		return 0, false
	}
	return endOfLine(b, p)
}

// isGutter says whether the characters of a dumped line begin at b[i]: behind
// two spaces, | or >.
func isGutter(b []byte, i int) bool {
	p := skipBlank(b, i)
	return p-i > 1 || p < len(b) && (b[p] == '|' || p > i && b[p] == '>')
}

// endOfLine is the next end of a line, also one that a string has as an escape.
func endOfLine(b []byte, p int) (end int, ends bool) {
	window := b[p:min(len(b), p+maxGutter)]
	for i, c := range window {
		if isBreak(c) || c == '\\' && isEscapedBreak(b[p+i:]) {
			return p + i, true
		}
	}
	return len(b), len(window) < maxGutter
}

// isEscapedBreak says whether b begins with a line break as a string has it, and not
// with the same characters out of a dump: what follows is the string's end, or another
// line of the dump.
func isEscapedBreak(b []byte) bool {
	rest := bytes.TrimLeft(b, `\`)
	if len(rest) == 0 || rest[0] != 'n' && rest[0] != 'r' {
		return false
	}
	rest = bytes.TrimLeft(rest[1:], "> +-|#*")
	if len(rest) == 0 || isQuote(rest[0]) || rest[0] == '\\' {
		return true
	}
	const offset = 4 // digits
	return len(rest) >= offset && !bytes.ContainsFunc(rest[:offset], func(c rune) bool { return c > '~' || !isHexDigit(byte(c)) })
}

// addDump adds where the pairs may go on in the line after the break at b[p]: where a
// text may, also behind an offset and behind 0x.
func (g *gap) addDump(b []byte, p int) {
	var line gap
	line.addLine(b, p)
	g.open = g.open || line.open
	for _, to := range line.targetPlaces() {
		g.addPlace(b, to)
		g.addPrefixed(b, to)
		g.addOffset(b, to)
	}
}

// addOffset adds the place behind an offset at b[p]: at least two digits, a colon or
// more, white space.
func (g *gap) addOffset(b []byte, p int) {
	start := p
	for p < len(b) && p-start < 18 && (isHexDigit(b[p]) || p == start+1 && b[p] == 'x') {
		p++
	}
	if p-start < 2 && p < len(b) {
		return
	}
	digits := p
	for p < len(b) && p-digits < 4 && (b[p] == ':' || b[p] == '|' || b[p] == 'h') {
		p++
	}
	space := p
	p = skipBlank(b, p)
	if p < len(b) && p == space {
		return
	}
	g.addPlace(b, p)
	g.addPrefixed(b, p)
}

// dumpEnd is the end of what was found up to b[i]: where the characters that these bytes
// stand for follow in the line, the end of that. open: b ends before that is certain.
func dumpEnd(b []byte, i int) (end int, open bool) {
	for p := i; p-i < maxGutter; p++ {
		switch {
		case p == len(b):
			return i, true
		case isGutter(b, p):
			if end, ends := endOfLine(b, p); ends {
				return end, end == len(b)
			}
			return i, false
		case !isHexDigit(b[p]) && !isBlank(b[p]):
			return i, false
		}
	}
	return i, false
}

func isBreak(c byte) bool { return c == '\n' || c == '\r' }
func isHexDigit(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// isBetween says whether a byte may stand between two pairs.
func isBetween(c byte) bool {
	switch c {
	case ' ', '\t', '\r', ':', ';', ',', '.', '-', '_', '|', '/', '"', '\'', '+', 'h', ')', ']', '}', '[', '{', '(':
		return true
	}
	return false
}

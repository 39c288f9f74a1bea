// Package literal finds byte sequences in a text, all of them in one pass: as they
// are, divided by line breaks with what stands around these, and, for bytes in
// hexadecimal, as programs dump them. It is pure.
package literal

import (
	"bytes"
	"encoding/binary"
)

// KeySize is how many bytes of a literal the index looks up; no literal is
// shorter.
const KeySize = 3

// minBroken is the length from which a literal is looked for across line breaks:
// shorter ones would join the ends of ordinary lines.
const minBroken = 10

// Literal is one byte sequence to look for: a form of a secret, or the fixed
// beginning of a shape.
type Literal struct {
	Text        []byte
	Left, Right bool // base64: the neighbouring character holds bits of the value
	// Hex: Text is bytes in hexadecimal, two small digits each. It is found in small and
	// capital letters, and as programs dump bytes: see dump.go.
	Hex    bool
	Secret int // or -1
	Shape  int // or -1
}

// Index finds literals in one pass: a filter of 64 Ki bits (which stays in the
// first-level cache) over three bytes at each position, then a bucket of the
// literals that begin with these. Its memory is that of the literals themselves.
type Index struct {
	literals []Literal
	lefts    bool // a literal has a character before it that holds bits of the value
	filter   [1 << 10]uint64
	buckets  map[uint32][]int32
	first    [256]bool       // bytes that begin a literal
	second   [1 << 10]uint64 // pairs that begin a literal, a bit each
}

// Add takes a literal of at least KeySize bytes.
func (x *Index) Add(l Literal) { x.literals = append(x.literals, l) }

// Lefts says whether the character before a literal may hold bits of a value.
func (x *Index) Lefts() bool { return x.lefts }

// Build makes the index of the literals that were added.
func (x *Index) Build() {
	x.buckets = map[uint32][]int32{}
	for i := range x.literals {
		l := &x.literals[i]
		x.lefts = x.lefts || l.Left
		if !l.Hex {
			x.addKey(l.Text, i)
			continue
		}
		for _, k := range hexKeys(l.Text) {
			x.addKey(k, i)
		}
	}
}

func (x *Index) addKey(b []byte, i int) {
	k := keyOf(b)
	h := hashKey(k)
	x.filter[h>>6] |= 1 << (h & 63)
	x.buckets[k] = append(x.buckets[k], int32(i))
	x.first[b[0]] = true
	pair := binary.LittleEndian.Uint16(b)
	x.second[pair>>6] |= 1 << (pair & 63)
}

func (x *Index) canBegin(a, b byte) bool {
	pair := uint16(a) | uint16(b)<<8
	return x.second[pair>>6]&(1<<(pair&63)) != 0
}

// keyOf is the first three bytes of a text as a number: literals are looked up by it.
func keyOf(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

func hashKey(k uint32) uint32 { return k * 0x9E3779B1 >> 16 }

// bucketOf is the literals that may begin with three bytes.
func (x *Index) bucketOf(k uint32) []int32 {
	h := hashKey(k)
	if x.filter[h>>6]&(1<<(h&63)) == 0 {
		return nil
	}
	return x.buckets[k]
}

// Scan calls hit for each literal that stands at b[at:end], and part, which may be nil,
// for each position from which the rest of b may be the beginning of a literal: so many
// bytes of it. It takes linear time: where more of b is made of gaps than any dump or
// quotation is, literals are only found in one piece.
func (x *Index) Scan(b []byte, hit func(at, end int, l *Literal), part func(at, size int)) {
	s := scan{x: x, b: b, gaps: 2*len(b) + 4<<10, hit: hit, part: part}
	for i := 0; i+KeySize <= len(b); i++ {
		k := keyOf(b[i:])
		h := hashKey(k)
		if x.filter[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, n := range x.buckets[k] {
			s.tryLiteral(i, &x.literals[n])
		}
	}
	s.findBroken()
}

// scan is one pass over a text.
type scan struct {
	x    *Index
	b    []byte
	gaps int // that may still be looked at
	hit  func(at, end int, l *Literal)
	part func(at, size int) // may be nil
}

// tryLiteral looks whether a literal begins at b[at].
func (s *scan) tryLiteral(at int, l *Literal) {
	end, size := s.matchLiteral(at, l)
	if end > 0 {
		s.hit(at, end, l)
	}
	if size > 0 && s.part != nil {
		s.part(at, size)
	}
}

// matchLiteral compares a literal with b from at on. end is where it ends there; 0: it does
// not stand there. size is how much of it there is where b ends before that is certain.
func (s *scan) matchLiteral(at int, l *Literal) (end, size int) {
	switch {
	case l.Hex:
		return s.matchHex(at, l)
	case len(l.Text) <= len(s.b)-at && bytes.Equal(s.b[at:at+len(l.Text)], l.Text):
		return at + len(l.Text), 0
	case len(l.Text) < minBroken || l.Shape >= 0:
		if bytes.HasPrefix(l.Text, s.b[at:]) {
			return 0, len(s.b) - at
		}
		return 0, 0
	}
	w := s.newWalk(l)
	end = w.matchPlain(at, 0)
	s.gaps -= w.gaps
	return max(end, 0), w.open
}

func (s *scan) matchHex(at int, l *Literal) (end, size int) {
	w := s.newWalk(l)
	end = w.matchHex(at, 0)
	s.gaps -= w.gaps
	if end < 0 {
		return 0, w.open
	}
	end, open := dumpEnd(s.b, end)
	if open {
		size = len(l.Text)
	}
	return end, size
}

// findBroken finds what has only one or two bytes before a line break, or before the
// end of b, so that the first three do not stand together.
func (s *scan) findBroken() {
	b := s.b
	for from, line := 0, -1; ; {
		if line < from { // the next end of a line is at line, or at a \r before it
			if line = bytes.IndexByte(b[from:], '\n'); line < 0 {
				line = len(b) - from
			}
			line += from
		}
		i := line
		if r := bytes.IndexByte(b[from:line], '\r'); r >= 0 {
			i = from + r
		}
		if i == len(b) && s.part == nil {
			return
		}
		starts, n := breakStarts(b, i)
		for _, at := range starts[:n] {
			s.tryBreak(at)
		}
		if from = i + 1; i == len(b) {
			return
		}
	}
}

// tryBreak looks at the break that begins at b[at].
func (s *scan) tryBreak(at int) {
	b := s.b
	one := at >= 1 && s.x.first[b[at-1]]
	two := at >= 2 && s.x.canBegin(b[at-2], b[at-1])
	if !one && !two {
		return
	}
	g := lineGap(b, at)
	for _, to := range g.targetPlaces() {
		if to == len(b) {
			continue
		}
		next := b[to:min(len(b), to+2)]
		if two {
			s.tryBroken(at-2, [3]byte{b[at-2], b[at-1], next[0]})
		}
		if one && len(next) > 1 {
			s.tryBroken(at-1, [3]byte{b[at-1], next[0], next[1]})
		}
		for _, c := range []byte{' ', '\t'} { // the break stands in the place of a space
			if one {
				s.tryBroken(at-1, [3]byte{b[at-1], c, next[0]})
			}
			if two {
				s.tryBroken(at-2, [3]byte{b[at-2], b[at-1], c})
			}
		}
	}
	if s.part == nil || !g.open {
		return
	}
	if two {
		s.part(at-2, 2)
	} else {
		s.part(at-1, 1)
	}
}

// tryBroken tries the literals that begin with three bytes of which not all stand at b[at].
func (s *scan) tryBroken(at int, first [3]byte) {
	for _, n := range s.x.bucketOf(keyOf(first[:])) {
		if l := &s.x.literals[n]; !l.Hex && l.Shape < 0 && len(l.Text) >= minBroken {
			s.tryLiteral(at, l)
		}
	}
}

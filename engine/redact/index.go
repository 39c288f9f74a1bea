package redact

import (
	"bytes"
	"encoding/binary"
)

// keySize is how many bytes of a literal the index looks up; no literal is
// shorter.
const keySize = 3

// minWrapped is the length from which a literal is searched across line breaks:
// shorter ones would join the ends of ordinary lines.
const minWrapped = 10

// literal is one byte sequence to search for: a form of a secret, or the fixed
// beginning of a shape.
type literal struct {
	text        []byte
	left, right bool // base64: the neighbouring character holds bits of the value
	secret      int  // or -1
	shape       int  // or -1
}

// index finds literals in one pass: a filter of 64 Ki bits (which stays in the
// first-level cache) over three bytes at each position, then a bucket of the
// literals that begin with these. Its memory is that of the literals themselves.
type index struct {
	literals []literal
	names    []string // by secret
	lefts    bool     // a literal has a character before it that holds bits of the value
	filter   [1 << 10]uint64
	buckets  map[uint32][]int32
	first    [256]bool       // bytes that begin a literal
	second   map[uint16]bool // pairs that begin a literal
}

func (x *index) add(l literal) { x.literals = append(x.literals, l) }

func (x *index) build() {
	x.buckets = map[uint32][]int32{}
	x.second = map[uint16]bool{}
	for i, l := range x.literals {
		k := key(l.text)
		h := hash(k)
		x.filter[h>>6] |= 1 << (h & 63)
		x.buckets[k] = append(x.buckets[k], int32(i))
		x.first[l.text[0]] = true
		x.second[binary.LittleEndian.Uint16(l.text)] = true
		x.lefts = x.lefts || l.left
	}
}

func key(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

func hash(k uint32) uint32 { return k * 0x9E3779B1 >> 16 }

// scan calls hit for each literal that stands at a position of b, and part for
// each position from which the rest of b is the beginning of a literal.
func (x *index) scan(b []byte, hit func(at int, l *literal), part func(at int)) {
	for i := 0; i+keySize <= len(b); i++ {
		k := key(b[i:])
		h := hash(k)
		if x.filter[h>>6]&(1<<(h&63)) == 0 {
			continue
		}
		for _, n := range x.buckets[k] {
			l := &x.literals[n]
			switch {
			case len(l.text) <= len(b)-i:
				if bytes.Equal(b[i:i+len(l.text)], l.text) {
					hit(i, l)
				}
			case part != nil && bytes.HasPrefix(l.text, b[i:]):
				part(i)
			}
		}
	}
	if part == nil {
		return
	}
	if n := len(b); n >= 2 && x.second[binary.LittleEndian.Uint16(b[n-2:])] {
		part(n - 2)
	} else if n >= 1 && x.first[b[n-1]] {
		part(n - 1)
	}
}

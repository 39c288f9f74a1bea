// Package collide makes nodes of a given hash, as an attacker does. Content addresses
// are XXH64, which can be run backwards: eight bytes of text that one is free to choose
// are enough for any hash. It is for tests: what they show is that nothing depends on a
// hash alone.
package collide

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
)

// The primes of XXH64.
const (
	prime1 uint64 = 0x9E3779B185EBCA87
	prime2 uint64 = 0xC2B2AE3D27D4EB4F
	prime3 uint64 = 0x165667B19E3779F9
	prime4 uint64 = 0x85EBCA77C2B2AE63
	prime5 uint64 = 0x27D4EB2F165667C5
)

// mark stands where the eight bytes go.
const mark = "@COLLIDE"

// ErrNone: no text was found. The text must stand near the end of the payload's CBOR:
// what follows it may have 23 bytes at most.
var ErrNone = errors.New("no text gives that hash")

// tries is how many texts are tried. One in three thousand is printable.
const tries = 1 << 18

// Text finds a text, printable and without quotes, so that the payload that build makes
// of it has this hash as a node of type typ.
func Text(target node.Hash, typ node.Hash, build func(text string) any) (string, error) {
	want, err := parseHash(target)
	if err != nil {
		return "", err
	}
	fits := false
	for n := range tries {
		if n == 32 && !fits {
			break // every length of the filler was tried
		}
		// Fillers of all lengths bring the bytes to where they can be worked out.
		salt := fmt.Sprintf("%s%06d ", strings.Repeat(".", n%32), n)
		cbor, err := node.EncodeCBOR(build(salt + mark))
		if err != nil {
			return "", err
		}
		data := append([]byte(typ), cbor...)
		word, ok := solveWord(data, bytes.LastIndex(data, []byte(mark)), want)
		fits = fits || ok
		if !ok || !isPrintable(word) {
			continue
		}
		text := salt + string(word)
		if got, err := node.HashOf(typ, build(text)); err == nil && got == target {
			return text, nil
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNone, target)
}

// Node is Text with the node that it makes.
func Node(target node.Hash, typ node.Hash, build func(text string) any) (node.Node, error) {
	text, err := Text(target, typ, build)
	if err != nil {
		return node.Node{}, err
	}
	payload, err := node.Normalize(build(text))
	return node.Node{Type: typ, Payload: payload}, err
}

func isPrintable(word []byte) bool {
	for _, c := range word {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// parseHash is the hash's 64 bits.
func parseHash(h node.Hash) (uint64, error) {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	if !h.Valid() || h[0] > 'F' {
		return 0, fmt.Errorf("%w: %q", node.ErrInvalidHash, h)
	}
	var u uint64
	for i := range len(h) {
		u = u<<5 | uint64(strings.IndexByte(alphabet, h[i]))
	}
	return u, nil
}

// solveWord works out the eight bytes at a place of data that give it the hash; ok is false
// where they are not one word of the tail, which is hashed last.
func solveWord(data []byte, at int, want uint64) (word []byte, ok bool) {
	tail := len(data) - len(data)%32
	if at < tail || (at-tail)%8 != 0 || at+8 > len(data)-len(data)%8 {
		return nil, false
	}
	before := hashStripes(data[:tail], len(data))
	for i := tail; i < at; i += 8 {
		before = hashWord(before, binary.LittleEndian.Uint64(data[i:]))
	}
	after := runBackwards(want, data[at+8:])
	k := invertRound(rotateBack((after-prime4)*modInverse(prime1), 27) ^ before)
	return binary.LittleEndian.AppendUint64(nil, k), true
}

// hashStripes is the state after the stripes of 32 bytes.
func hashStripes(stripes []byte, size int) uint64 {
	h := prime5
	if len(stripes) > 0 {
		v := [4]uint64{}
		v[0], v[1] = prime1, prime2 // the constants overflow on purpose
		v[0] += prime2
		v[3] -= prime1
		for i := 0; i < len(stripes); i += 8 {
			lane := i / 8 % 4
			v[lane] = xxRound(v[lane], binary.LittleEndian.Uint64(stripes[i:]))
		}
		h = bits.RotateLeft64(v[0], 1) + bits.RotateLeft64(v[1], 7) + bits.RotateLeft64(v[2], 12) + bits.RotateLeft64(v[3], 18)
		for _, x := range v {
			h = (h^xxRound(0, x))*prime1 + prime4
		}
	}
	return h + uint64(size)
}

func xxRound(acc, input uint64) uint64 {
	return bits.RotateLeft64(acc+input*prime2, 31) * prime1
}

// invertRound is the input for which round of 0 gives x.
func invertRound(x uint64) uint64 {
	return rotateBack(x*modInverse(prime1), 31) * modInverse(prime2)
}

func hashWord(h, word uint64) uint64 {
	return bits.RotateLeft64(h^xxRound(0, word), 27)*prime1 + prime4
}

// runBackwards runs what follows a word backwards, the avalanche at the end first.
func runBackwards(h uint64, rest []byte) uint64 {
	h ^= h >> 32
	h *= modInverse(prime3)
	h = h ^ h>>29 ^ h>>58
	h *= modInverse(prime2)
	h = h ^ h>>33
	words, left := rest[:len(rest)/8*8], rest[len(rest)/8*8:]
	four := 0
	if len(left) >= 4 {
		four = 4
	}
	for i := len(left) - 1; i >= four; i-- {
		h = rotateBack(h*modInverse(prime1), 11) ^ uint64(left[i])*prime5
	}
	if four > 0 {
		h = rotateBack((h-prime3)*modInverse(prime2), 23) ^ uint64(binary.LittleEndian.Uint32(left))*prime1
	}
	for i := len(words) - 8; i >= 0; i -= 8 {
		h = rotateBack((h-prime4)*modInverse(prime1), 27) ^ xxRound(0, binary.LittleEndian.Uint64(words[i:]))
	}
	return h
}

func rotateBack(x uint64, k int) uint64 { return bits.RotateLeft64(x, -k) }

// modInverse is the inverse of an odd number, modulo 2^64, by Newton's method.
func modInverse(x uint64) uint64 {
	y := x
	for range 6 {
		y *= 2 - x*y
	}
	return y
}

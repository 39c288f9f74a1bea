package node

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// ErrInvalidHash is wrapped by errors about text that is no content address.
var ErrInvalidHash = errors.New("not a node's hash (13 characters of 0-9 and A-Z without I, L, O, U)")

// HashLen is the number of characters of a Hash.
const HashLen = 13

// crockford is the alphabet of the addresses, by value of five bits.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// ParseHash reads a content address. Nothing is folded: lower case, and the
// letters that Crockford's alphabet leaves out, are refused.
func ParseHash(s string) (Hash, error) {
	if !Hash(s).Valid() {
		return "", fmt.Errorf("%w: %.40q", ErrInvalidHash, s)
	}
	return Hash(s), nil
}

// ReadHash reads a content address as people type it: small letters stand for large ones, as in
// thread ids.
func ReadHash(s string) (Hash, error) {
	if h := Hash(strings.ToUpper(s)); h.Valid() {
		return h, nil
	}
	return ParseHash(s)
}

// Valid reports whether h has the form of a content address. The first
// character of an address that a payload can have is 0-F, as 13 characters hold
// 65 bits; the peers' format allows all 32, so Valid does too.
func (h Hash) Valid() bool {
	for i := range len(h) {
		if c := h[i]; c < '0' || c > '9' && c < 'A' || c > 'Z' || c == 'I' || c == 'L' || c == 'O' || c == 'U' {
			return false
		}
	}
	return len(h) == HashLen
}

// String is the address as text.
func (h Hash) String() string { return string(h) }

// HashOf is the content address of a payload under a type: base32 of
// XXH64(seed 0, ASCII(type) ++ CBOR(payload)). The meta-schema is hashed without a type
// prefix, as it is its own type.
func HashOf(typ Hash, payload any) (Hash, error) {
	return Node{Type: typ, Payload: payload}.ComputeHash()
}

// SelfHash is the content address of a payload that is its own type: base32 of
// XXH64(seed 0, CBOR(payload)). Only the meta-schema is one.
func SelfHash(payload any) (Hash, error) {
	b, err := EncodeCBOR(payload)
	if err != nil {
		return "", fmt.Errorf("hash a payload: %w", err)
	}
	return encodeBase32(xxhash.Sum64(b)), nil
}

// encodeBase32 writes 64 bits as 13 characters, most significant first; the first
// holds four bits.
func encodeBase32(u uint64) Hash {
	var b [HashLen]byte
	for i := HashLen - 1; i >= 0; i-- {
		b[i] = crockford[u&31]
		u >>= 5
	}
	return Hash(b[:])
}

package node

import (
	"errors"
	"fmt"
	"strings"
)

// Pin names one node beyond doubt: by its hash, and by its Sum where that is known.
type Pin struct {
	Hash   Hash
	Digest Digest // empty: not known
}

// pinMark stands between the two parts of a Pin's text.
const pinMark = "@sha256:"

// String is HASH@sha256:DIGEST, or the hash alone where no digest is known.
func (p Pin) String() string {
	if p.Digest == "" {
		return string(p.Hash)
	}
	return string(p.Hash) + pinMark + string(p.Digest)
}

// ErrInvalidPin is wrapped by errors about text that is no Pin.
var ErrInvalidPin = errors.New("not HASH@sha256:DIGEST with a digest of 64 small hexadecimal digits")

// ParsePin reads what String writes.
func ParsePin(s string) (Pin, error) {
	hash, digest, pinned := strings.Cut(s, pinMark)
	h, err := ParseHash(hash)
	if err != nil {
		return Pin{}, err
	}
	if pinned && !Digest(digest).Valid() {
		return Pin{}, fmt.Errorf("%w: %.100q", ErrInvalidPin, s)
	}
	return Pin{Hash: h, Digest: Digest(digest)}, nil
}

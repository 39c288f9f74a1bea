package text

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// fenceSize is how many bytes of a SHA-256 make a fence: 18 hexadecimal digits.
const fenceSize = 9

// FenceOf is the word that marks where s begins and ends, where s is shown as data: the
// beginning of its SHA-256. The same text has the same fence, so that what is shown again is
// byte for byte what a model has read before. A text can't hold its own fence: one that was
// made to is hashed again, with its first fence behind it.
func FenceOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return fenceAfter(s, hex.EncodeToString(sum[:fenceSize]))
}

// fenceAfter is the first of a row of words, beginning with word, that s doesn't hold.
func fenceAfter(s, word string) string {
	for strings.Contains(s, word) {
		sum := sha256.Sum256([]byte(s + word))
		word = hex.EncodeToString(sum[:fenceSize])
	}
	return word
}

// Fence puts s between two lines with its fence.
func Fence(s string) string {
	word := FenceOf(s)
	return "----- BEGIN " + word + " -----\n" + s + "\n----- END " + word + " -----"
}

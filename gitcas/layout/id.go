package layout

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ThreadID names a thread: a ULID of 26 characters, or an id of the TypeScript
// uwf (128 bits shifted left by two, beginning with "06").
type ThreadID string

// ErrBadThreadID: the text is no thread id.
var ErrBadThreadID = errors.New("not a thread id")

// idAlphabet is Crockford's base32.
const idAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// Valid reports whether the id has the form of one: 26 characters of Crockford base32
// in upper case, the first one 0–7.
func (t ThreadID) Valid() bool {
	return len(t) == 26 && t[0] <= '7' && strings.Trim(string(t), idAlphabet) == ""
}

// Check is nil for a valid id. The error matches [ErrBadThreadID].
func (t ThreadID) Check() error {
	if !t.Valid() {
		return fmt.Errorf("%w: %.40q is not 26 characters of base32 in upper case", ErrBadThreadID, string(t))
	}
	return nil
}

// Short is the end of an id, which is random: by it people tell threads apart.
func (t ThreadID) Short() string { return string(t[max(len(t)-shortID, 0):]) }

// shortID is how many characters that has.
const shortID = 4

// Time is when the thread was started, as its id says. It is no proof of
// anything: whoever makes an id chooses it. The zero time for an invalid id.
func (t ThreadID) Time() time.Time {
	if !t.Valid() {
		return time.Time{}
	}
	var ms uint64
	for i := range 10 {
		ms = ms<<5 | uint64(strings.IndexByte(idAlphabet, t[i]))
	}
	if strings.HasPrefix(string(t), "06") {
		ms >>= 2 // the TypeScript uwf's ids are shifted left by two
	}
	return time.UnixMilli(int64(ms)).UTC()
}

package statefile

import (
	"fmt"
	"strconv"
	"strings"
)

// Format is the format of the state branch that this program reads and writes.
const Format = "2"

// unreleased is the format of stores that were made before the first release.
const unreleased = "1"

// MaxVersionFile is the largest VERSION that is read, in bytes.
const MaxVersionFile = 4 << 10

const refsKey = "refs"

// maxRefs bounds what VERSION can say of refs.
const maxRefs = 9999

// Version is the content of VERSION. It is written with the branch, and again when it is
// learnt how many refs the remote takes in a push.
type Version struct {
	// Store is the store's random id: 16 to 64 characters of [0-9a-z].
	Store string
	// Atomic records whether the remote took atomic pushes when the store was
	// made.
	Atomic bool
	// Refs is how many refs the remote was found to take in a push, at most 9999; 0: no
	// bound is known.
	Refs int
}

// EncodeVersion writes VERSION. The error matches ErrUnstorable.
func EncodeVersion(v Version) ([]byte, error) {
	if !storeIDOK(v.Store) {
		return nil, fmt.Errorf("%w: store id %.80q", ErrUnstorable, v.Store)
	}
	text := fmt.Appendf(nil, "format: %s\nstore: %s\natomic: %t\n", Format, v.Store, v.Atomic)
	if v.Refs == 0 {
		return text, nil
	}
	return SetVersionRefs(text, v.Refs)
}

// SetVersionRefs sets how many refs the remote takes in a push, 1 to 9999, in a VERSION whose
// other lines stay: a later uwf may have written them. The error matches ErrUnstorable.
func SetVersionRefs(text []byte, n int) ([]byte, error) {
	if n < 1 || n > maxRefs {
		return nil, fmt.Errorf("%w: %d refs a push", ErrUnstorable, n)
	}
	var out []byte
	for line := range strings.Lines(string(text)) {
		if key, _, _ := strings.Cut(strings.TrimSpace(line), ":"); key != refsKey {
			out = append(append(out, strings.TrimRight(line, "\r\n")...), '\n')
		}
	}
	return fmt.Appendf(out, "%s: %d\n", refsKey, n), nil
}

// ParseVersion reads VERSION. A format that this program doesn't know is
// ErrFormat, whatever else the file holds, and format 1 ErrUnreleased as well; other errors match ErrMalformed.
// Lines with unknown keys are skipped: format 2 may learn more of them.
func ParseVersion(data []byte) (Version, error) {
	if len(data) > MaxVersionFile {
		return Version{}, fmt.Errorf("%w: %d bytes, more than %d", ErrMalformed, len(data), MaxVersionFile)
	}
	keys := map[string]string{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, val, ok := strings.Cut(line, ":")
		if _, twice := keys[key]; !ok || twice {
			return Version{}, newMalformedError(n, "not one more «key: value»")
		}
		keys[key] = strings.TrimSpace(val)
	}
	format, ok := keys["format"]
	if !ok {
		return Version{}, fmt.Errorf("%w: no format", ErrMalformed)
	}
	if format == unreleased {
		return Version{}, fmt.Errorf("%w: %s, which no released uwf wrote; this program knows %s", ErrUnreleased, format, Format)
	}
	if format != Format {
		return Version{}, fmt.Errorf("%w: %.40q; this program knows %s", ErrFormat, format, Format)
	}
	v := Version{Store: keys["store"], Atomic: keys["atomic"] == "true"}
	if !storeIDOK(v.Store) {
		return Version{}, fmt.Errorf("%w: %.80q is no store id", ErrMalformed, v.Store)
	}
	if a := keys["atomic"]; a != "true" && a != "false" {
		return Version{}, fmt.Errorf("%w: atomic: %.40q is neither true nor false", ErrMalformed, a)
	}
	if text, ok := keys[refsKey]; ok {
		n, _ := strconv.Atoi(text) // what is no number is written in another way than n
		if n < 0 || n > maxRefs || text != strconv.Itoa(n) {
			return Version{}, fmt.Errorf("%w: %s: %.40q is no number from 0 to %d", ErrMalformed, refsKey, text, maxRefs)
		}
		v.Refs = n
	}
	return v, nil
}

func storeIDOK(s string) bool {
	return len(s) >= 16 && len(s) <= 64 && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

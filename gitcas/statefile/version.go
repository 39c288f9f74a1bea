package statefile

import (
	"fmt"
	"strings"
)

// Format is the format of the state branch that this program reads and writes.
const Format = "2"

// unreleased is the format of stores that were made before the first release.
const unreleased = "1"

// MaxVersionFile is the largest VERSION that is read, in bytes.
const MaxVersionFile = 4 << 10

// Version is the content of VERSION. It is written once, with the branch.
type Version struct {
	// Store is the store's random id: 16 to 64 characters of [0-9a-z].
	Store string
	// Atomic records whether the remote took atomic pushes when the store was
	// made.
	Atomic bool
}

// EncodeVersion writes VERSION. The error matches ErrUnstorable.
func EncodeVersion(v Version) ([]byte, error) {
	if !storeIDOK(v.Store) {
		return nil, fmt.Errorf("%w: store id %.80q", ErrUnstorable, v.Store)
	}
	return fmt.Appendf(nil, "format: %s\nstore: %s\natomic: %t\n", Format, v.Store, v.Atomic), nil
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
			return Version{}, malformed(n, "not one more «key: value»")
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
	return v, nil
}

func storeIDOK(s string) bool {
	return len(s) >= 16 && len(s) <= 64 && strings.Trim(s, "0123456789abcdefghijklmnopqrstuvwxyz") == ""
}

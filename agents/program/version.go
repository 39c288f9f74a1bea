package program

import (
	"slices"
	"strconv"
	"strings"
)

// Range are the versions of a program that were tried, and what lies between them.
type Range struct {
	Min    string `json:"from"` // the oldest
	Tested string `json:"to"`   // the newest
}

// String is one version, or the first and the last.
func (r Range) String() string {
	if r.Min == r.Tested {
		return r.Tested
	}
	return r.Min + "–" + r.Tested
}

// Contains says whether a version lies in the range; ok is false where it is no version.
func (r Range) Contains(version string) (in, ok bool) {
	v := parseNumbers(version)
	if v == nil {
		return false, false
	}
	return slices.Compare(v, parseNumbers(r.Min)) >= 0 && slices.Compare(v, parseNumbers(r.Tested)) <= 0, true
}

// parseNumbers is a version as numbers; nil: it is none. What follows a hyphen or a plus is left out.
func parseNumbers(version string) []int {
	version, _, _ = strings.Cut(strings.TrimPrefix(version, "v"), "+")
	version, _, _ = strings.Cut(version, "-")
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil
		}
		out = append(out, n)
	}
	return out
}

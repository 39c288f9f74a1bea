// Package consent keeps what a person has allowed a repository to do on this machine.
//
// A repository's files may name programs, the shell, a network and places of the machine.
// Each of these is a [Demand]. A person consents to all demands of a repository at once, by
// the SHA-256 of exactly what they say: one byte more or less, and they are asked again. The
// consents lie in a folder of the user's own, never in the repository.
package consent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// Demand is one thing that a repository's files want of the machine they are used on.
type Demand struct {
	// Path is the setting that says it: agents.reviewer.
	Path string `json:"path"`
	// Says is what it says there, as JSON.
	Says string `json:"says"`
	// Means says for people what it leads to: "runs as an agent".
	Means string `json:"means"`
	// Shows is what people are shown in place of Says where JSON hides what it is; empty: Says.
	Shows string `json:"-"`
}

// Line shows a demand to people on one line, whole, and free of what a terminal would obey.
func (d Demand) Line() string {
	return text.Line(d.Path + ": " + cmp.Or(d.Shows, d.Says) + " (" + d.Means + ")")
}

// Digest is the SHA-256 of what demands say, in hexadecimal digits. Their order is of no
// account, nor is what they are explained to mean.
func Digest(demands []Demand) string {
	said := lists.Map(demands, func(d Demand) [2]string { return [2]string{d.Path, d.Says} })
	slices.SortFunc(said, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	b, err := json.Marshal(said)
	if err != nil { // texts can always be written
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Diff shows what changed between two lists of demands, a line each: "- " before what is
// gone, "+ " before what is new, two spaces before what stayed.
func Diff(before, after []Demand) []string {
	var out []string
	for _, d := range before {
		if !says(after, d) {
			out = append(out, "- "+d.Line())
		}
	}
	for _, d := range after {
		mark := "+ "
		if says(before, d) {
			mark = "  "
		}
		out = append(out, mark+d.Line())
	}
	return out
}

// says reports whether one of the demands says the same.
func says(demands []Demand, d Demand) bool {
	return slices.ContainsFunc(demands, func(x Demand) bool { return x.Path == d.Path && x.Says == d.Says })
}

// IsDigest reports whether a text may be the SHA-256 of demands.
func IsDigest(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

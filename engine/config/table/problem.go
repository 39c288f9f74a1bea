package table

import (
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong, where it stands, and what to do.
type Problem struct {
	File      string // or the variable
	Line, Col int    // from 1; 0: unknown
	Path      string // of the setting: providers.openai.baseUrl
	Message   string
	Fix       string // empty: the message says it
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Fix != "" {
		b.WriteString("; " + p.Fix)
	}
	return b.String()
}

// Suggest is the known name that is nearest to a wrong one; empty: none is near.
func Suggest(name string, known []string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(s))
	}
	best, at := "", len(name)/3+2
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := editDistance(plain(name), plain(k)); d < at {
			best, at = k, d
		}
	}
	return best
}

// editDistance is how many letters must be put in, taken out, changed or swapped with
// their neighbour to turn a into b.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 { // not a slip of the finger
		return 64
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

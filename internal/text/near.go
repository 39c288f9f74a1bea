package text

import (
	"fmt"
	"strings"
)

// Suggest returns the candidate that a mistyped name most likely means; "" where none is
// close. Case, and the signs between words, make no difference.
func Suggest(name string, candidates []string) string {
	fold := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(s))
	}
	best, at := "", min(len(name)/3, 4)+1
	for _, c := range candidates {
		if d := Distance(fold(name), fold(c)); d < at {
			best, at = c, d
		}
	}
	return best
}

// DidYouMean says what to do about a name that is not known: it asks for the candidate that
// is most likely meant, or says otherwise where none is close.
func DidYouMean(name string, candidates []string, otherwise string) string {
	if meant := Suggest(name, candidates); meant != "" {
		return fmt.Sprintf("did you mean %q?", meant)
	}
	return otherwise
}

// KnownAre lists what is known in place of a name that is not.
func KnownAre(candidates []string) string {
	if len(candidates) == 0 {
		return "there are none; add it"
	}
	return "known are: " + strings.Join(candidates, ", ")
}

// maxCompared is the longest text that Distance compares, in bytes: longer ones differ by
// more than a slip of the finger.
const maxCompared = 64

// Distance is how many letters must be put in, taken out, changed or swapped with their
// neighbour to turn a into b; 64 where one of them has more than 64 bytes.
func Distance(a, b string) int {
	if len(a) > maxCompared || len(b) > maxCompared {
		return maxCompared
	}
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

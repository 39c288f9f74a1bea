// Package advice says what people and models most likely mean by what is wrong in a
// definition: names that differ a little from others, words of other languages,
// what is nearly a JSON schema. It reports nothing itself.
package advice

import "strings"

// maxName is the longest name that is compared, in bytes.
const maxName = 64

// Suggest returns the candidate that a mistyped name most likely means; "" where
// none is close.
func Suggest(name string, candidates []string) string {
	if len(name) > maxName {
		return ""
	}
	best, bestDistance := "", len(name)/3
	if bestDistance > 4 {
		bestDistance = 4
	}
	for _, c := range candidates {
		if len(c) > maxName {
			continue
		}
		if d := editDistance(strings.ToLower(name), strings.ToLower(c), bestDistance); d < bestDistance+1 && (best == "" || d < bestDistance) {
			best, bestDistance = c, d
		}
	}
	return best
}

// editDistance is the number of insertions, deletions, replacements and swaps of
// adjacent ones that turn a into b; anything above limit is limit+1.
func editDistance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if absInt(len(x)-len(y)) > limit {
		return limit + 1
	}
	before, prev, cur := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		// Cells further than limit from the diagonal are above limit in any case.
		from, to := max(1, i-limit), min(len(y), i+limit)
		cur[from-1] = limit + 1
		if from == 1 {
			cur[0] = i
		}
		best := cur[from-1]
		for j := from; j <= to; j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
			best = min(best, cur[j])
		}
		if to < len(y) {
			cur[to+1] = limit + 1
		}
		if best > limit {
			return limit + 1
		}
		before, prev, cur = prev, cur, before
	}
	return min(prev[len(y)], limit+1)
}

func absInt(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

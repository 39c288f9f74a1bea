// Package advice says what people and models most likely mean by what is wrong in a
// definition: names that differ a little from others, words of other languages,
// what is nearly a JSON schema. It reports nothing itself.
package advice

import (
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// maxName is the longest name that is compared, in bytes.
const maxName = 64

// Suggest returns the candidate that a mistyped name most likely means; "" where
// none is close.
func Suggest(name string, candidates []string) string {
	if len(name) > maxName {
		return ""
	}
	best, bestDistance := "", min(len(name)/3, 4)
	for _, c := range candidates {
		if len(c) > maxName {
			continue
		}
		if d := text.Distance(strings.ToLower(name), strings.ToLower(c)); d < bestDistance+1 && (best == "" || d < bestDistance) {
			best, bestDistance = c, d
		}
	}
	return best
}

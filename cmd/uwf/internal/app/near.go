package app

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
)

// maxNear is how many suggestions an error makes.
const maxNear = 3

// Near lists what a mistyped id most likely means: what it is the beginning of,
// or else what differs from it little.
func Near(id string, candidates []string) []string {
	candidates = slices.Compact(slices.Sorted(slices.Values(candidates)))
	var out []string
	for _, c := range candidates {
		if len(id) >= 3 && len(id) < len(c) && strings.HasPrefix(c, strings.ToUpper(id)) || strings.EqualFold(c, id) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		if s := workflow.Suggest(id, candidates); s != "" {
			out = append(out, s)
		}
	}
	return out[:min(len(out), maxNear)]
}

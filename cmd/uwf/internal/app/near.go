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
	if len(out) > 0 {
		return out[:min(len(out), maxNear)]
	}
	if s := workflow.Suggest(id, candidates); s != "" {
		return []string{s}
	}
	return nearBeginning(id, candidates)
}

// minBeginning is the least length of a mistyped beginning that is compared with
// those of candidates; nearly all share what is shorter.
const minBeginning = 6

// nearBeginning lists the candidates whose beginning differs little from id.
func nearBeginning(id string, candidates []string) []string {
	if len(id) < minBeginning {
		return nil
	}
	byBeginning := map[string][]string{}
	var beginnings []string
	for _, c := range candidates {
		if len(c) > len(id) {
			b := c[:len(id)]
			byBeginning[b] = append(byBeginning[b], c)
			beginnings = append(beginnings, b)
		}
	}
	out := byBeginning[workflow.Suggest(id, beginnings)]
	return out[:min(len(out), maxNear)]
}

// NearWords lists the words that a wrong one may have meant: one that was mistyped, or
// those that it is the beginning of.
func NearWords(word string, words []string) []string {
	near := Near(word, words)
	if len(near) == 0 && len(word) > 1 {
		for _, w := range words {
			if strings.HasPrefix(w, strings.ToLower(word)) {
				near = append(near, w)
			}
		}
	}
	return near[:min(len(near), maxNear)]
}

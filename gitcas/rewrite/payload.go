package rewrite

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
)

// spot is one value or key of a payload in which something is to be replaced.
type spot struct {
	at   string // JSON pointer, cleaned
	set  func(v any)
	old  any
	cand []any // what may stand there instead, best first
	// free: where nothing fits the old value may stay.
	free bool
}

// maxTried bounds how many spots are fitted one by one: each costs a check of the
// whole payload.
const maxTried = 2000

// payload is a node's payload on its way to another one.
type payload struct {
	find Finder
	all  bool // every free text goes, not only those that find finds
	rule func(path []string, v any) rule
	ref  func(string) bool // a string that is a node's hash

	root  any
	spots []spot
	fixed []string // names that hold what is looked for
	texts []string // with all: what was taken out
}

// copyValue copies a value and notes the spots in it.
func (p *payload) copyValue(v any) {
	p.root = node.MapStrings(v, func(s string) string { return s })
	p.addValue(nil, p.root, func(v any) { p.root = v })
}

func (p *payload) addValue(path []string, v any, set func(any)) {
	switch x := v.(type) {
	case string:
		p.addText(path, x, set)
	case int64, float64:
		p.addNumber(path, x, set)
	case []any:
		for i, e := range x {
			p.addValue(append(path, strconv.Itoa(i)), e, func(v any) { x[i] = v })
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			p.addValue(append(path, k), x[k], func(v any) { x[k] = v })
		}
		for _, k := range slices.Sorted(maps.Keys(x)) {
			p.addKey(path, k, x)
		}
	}
}

func (p *payload) addText(path []string, s string, set func(any)) {
	is := p.rule(path, s)
	if is == word || p.ref(s) {
		return
	}
	fixed := is == name || p.inTag(s, is)
	if p.all {
		if !fixed && s != "" && s != Purged {
			p.texts = append(p.texts, s)
			p.spots = append(p.spots, spot{at: p.pointerTo(path), set: set, old: s, cand: []any{Purged, maskText(s), ""}, free: true})
		}
		return
	}
	out, n := p.find.Replace(s, nil)
	if n == 0 {
		return
	}
	if fixed {
		p.fixed = append(p.fixed, p.pointerTo(path))
		return
	}
	cand := []any{out}
	if masked, _ := p.find.Replace(s, maskText); masked != out {
		if _, still := p.find.Replace(masked, nil); still == 0 {
			cand = append(cand, masked)
		}
	}
	p.spots = append(p.spots, spot{at: p.pointerTo(path), set: set, old: s, cand: cand})
}

// addNumber: a text of digits may have been stored as a number.
func (p *payload) addNumber(path []string, v any, set func(any)) {
	if p.all {
		return
	}
	if out, n := p.find.Replace(node.Text(v), nil); n > 0 && out == Purged {
		p.spots = append(p.spots, spot{at: p.pointerTo(path), set: set, old: v, cand: []any{Purged, int64(0)}})
	}
}

func (p *payload) addKey(path []string, k string, in map[string]any) {
	if p.all {
		return
	}
	out, n := p.find.Replace(k, nil)
	if n == 0 {
		return
	}
	at := p.pointerTo(append(path, k))
	switch p.rule(append(path, k), nil) {
	case word:
		return
	case name:
		p.fixed = append(p.fixed, at+" (the key)")
		return
	}
	other := out
	for i := 2; ; i++ {
		if _, taken := in[other]; !taken {
			break
		}
		other = fmt.Sprintf("%s#%d", out, i)
	}
	now := k
	p.spots = append(p.spots, spot{at: at + " (the key)", old: k, cand: []any{other}, set: func(v any) {
		to, _ := v.(string)
		if to != now {
			in[to] = in[now]
			delete(in, now)
			now = to
		}
	}})
}

// inTag reports whether what is looked for stands between the braces of a
// template: a variable's name.
func (p *payload) inTag(s string, is rule) bool {
	if is != template {
		return false
	}
	return slices.ContainsFunc(tag.FindAllString(s, -1), func(t string) bool {
		_, n := p.find.Replace(t, nil)
		return n > 0
	})
}

// pointerTo is a JSON pointer without what is looked for.
func (p *payload) pointerTo(path []string) string {
	clean := make([]string, len(path))
	for i, s := range path {
		s, _ = p.find.Replace(s, nil)
		clean[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(s)
	}
	if len(path) == 0 {
		return ""
	}
	out := "/" + strings.Join(clean, "/")
	out, _ = p.find.Replace(out, nil)
	return out
}

// fitSpots replaces what it may: all at once where the result passes check, else spot
// by spot. It returns where nothing fits.
func (p *payload) fitSpots(check func(any) error) (bound []string) {
	for _, s := range p.spots {
		s.set(s.cand[0])
	}
	if check(p.root) == nil {
		return nil
	}
	for _, s := range slices.Backward(p.spots) {
		s.set(s.old)
	}
	if len(p.spots) > maxTried {
		return []string{fmt.Sprintf("%s and %d more", p.spots[0].at, len(p.spots)-1)}
	}
	for _, s := range p.spots {
		if !p.tryCandidates(s, check) && !s.free {
			bound = append(bound, s.at)
		}
	}
	return bound
}

// tryCandidates puts the first candidate that fits into a spot.
func (p *payload) tryCandidates(s spot, check func(any) error) bool {
	for _, c := range s.cand {
		s.set(c)
		if check(p.root) == nil {
			return true
		}
		s.set(s.old)
	}
	return false
}

// maskText is a text of the same shape that says nothing.
func maskText(s string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= '0' && c <= '9':
			return '0'
		case c >= 'a' && c <= 'z':
			return 'x'
		case c >= 'A' && c <= 'Z':
			return 'X'
		case c > 0x7f:
			return 'x'
		}
		return c
	}, s)
}
